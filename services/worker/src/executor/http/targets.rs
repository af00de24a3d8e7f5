//! Whom a request may go to.
//!
//! A name is resolved here, every address is judged, and the connection is made to one of those that
//! were judged: a name that means something else a moment later changes nothing, and neither does a
//! redirect, whose target is judged like the first. An address that stands in a URL is judged as it is.
//!
//! Private networks and this machine are refused unless the manifest allows them, by `private: true` or
//! by naming such an address itself. Link-local addresses, where clouds keep their credentials, need
//! both.

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The rules for one tool.
#[derive(Clone, Debug)]
pub(in crate::executor) struct Targets {
    private: bool,
    /// The host that the manifest names.
    named: Option<String>,
}

/// An address that may not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{host} is {kind}, which the tool may not ask: `private: true` in its tool file allows it")]
struct Refused {
    host: String,
    kind: &'static str,
}

/// How far an address is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    Private(&'static str),
    LinkLocal,
    /// Nobody can be there.
    Nowhere,
}

impl Targets {
    /// For a tool whose file names the host.
    pub(in crate::executor) fn of_file(origin: &str, private: bool) -> Self {
        let named = Url::parse(origin).ok().and_then(|url| url.host_str().map(str::to_owned));
        Self { private, named }
    }

    /// For a tool whose host a model chooses.
    pub(in crate::executor) fn of_model(private: bool) -> Self {
        Self { private, named: None }
    }

    /// Whether a URL may be asked, as far as it says so itself; a name is judged when it is resolved.
    pub(in crate::executor) fn check(&self, url: &Url) -> Result<(), String> {
        let Some(host) = url.host_str() else { return Err("the URL names no host".to_owned()) };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => self.judge(host, address).map_err(|refused| refused.to_string()),
            Err(_) => Ok(()),
        }
    }

    fn judge(&self, host: &str, address: IpAddr) -> Result<(), Refused> {
        let is_named = self.named.as_deref() == Some(host);
        let is_literal = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        // The name of this machine is as plain as its address.
        let is_plain = is_named && (is_literal || (host == "localhost" && address.is_loopback()));
        let refused = |kind| Err(Refused { host: host.to_owned(), kind });
        match kind(address) {
            Kind::Public => Ok(()),
            Kind::Private(_) if self.private || is_plain => Ok(()),
            Kind::Private(kind) => refused(kind),
            Kind::LinkLocal if self.private && is_plain => Ok(()),
            Kind::LinkLocal => refused("a link-local address"),
            Kind::Nowhere => refused("no address of a host"),
        }
    }
}

impl Resolve for Targets {
    fn resolve(&self, name: Name) -> Resolving {
        let (targets, host) = (self.clone(), name.as_str().to_owned());
        Box::pin(async move {
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            if found.is_empty() {
                return Err(io::Error::from(io::ErrorKind::NotFound).into());
            }
            // One bad address among good ones is a trap as well.
            for address in &found {
                targets.judge(&host, address.ip())?;
            }
            let addresses: Addrs = Box::new(found.into_iter());
            Ok(addresses)
        })
    }
}

/// Whether a request failed because its target may not be asked.
pub(in crate::executor) fn is_refusal(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<Refused>() {
            return true;
        }
        next = error.source();
    }
    false
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_of_v4(address),
        IpAddr::V6(address) => kind_of_v6(address),
    }
}

fn kind_of_v4(address: Ipv4Addr) -> Kind {
    let [a, b, c, _] = address.octets();
    if address.is_loopback() {
        return Kind::Private("this machine");
    }
    if address.is_link_local() {
        return Kind::LinkLocal;
    }
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_trial = a == 198 && (b == 18 || b == 19);
    if address.is_private() || is_shared || is_trial || (a, b, c) == (192, 0, 0) {
        return Kind::Private("in a private network");
    }
    if a == 0 {
        return Kind::Private("this machine");
    }
    if address.is_multicast() || a >= 240 { Kind::Nowhere } else { Kind::Public }
}

fn kind_of_v6(address: Ipv6Addr) -> Kind {
    if let Some(inner) = inner(address) {
        return kind_of_v4(inner);
    }
    let [first, ..] = address.segments();
    if address.is_loopback() || address.is_unspecified() {
        return Kind::Private("this machine");
    }
    match first {
        0xfe80..=0xfebf => Kind::LinkLocal,
        0xfc00..=0xfdff | 0xfec0..=0xfeff => Kind::Private("in a private network"),
        0xff00..=0xffff => Kind::Nowhere,
        _ => Kind::Public,
    }
}

/// The IPv4 address that an IPv6 address stands for: mapped, translated (NAT64), 6to4, Teredo.
fn inner(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let parts = address.segments();
    let of = |high: u16, low: u16| {
        let ([one, two], [three, four]) = (high.to_be_bytes(), low.to_be_bytes());
        Some(Ipv4Addr::new(one, two, three, four))
    };
    match parts {
        [0, 0, 0, 0, 0, 0, high @ 1..=0xffff, low]
        | [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => of(high, low),
        // The local form of the translation's prefix: wherever it leads, it is not public.
        [0x64, 0xff9b, 1, ..] => Some(Ipv4Addr::new(10, 0, 0, 0)),
        [0x2001, 0, .., high, low] => of(!high, !low),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(targets: &Targets, url: &str) -> Result<(), String> {
        Url::parse(url).map_err(|error| error.to_string()).and_then(|url| targets.check(&url))
    }

    #[test]
    fn a_model_reaches_no_private_address_in_any_spelling() {
        let targets = Targets::of_model(false);
        for host in [
            "127.0.0.1",
            "127.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.169.254",
            "198.18.0.1",
            "[::1]",
            "[::]",
            "[fe80::1]",
            "[fd00::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[::127.0.0.1]",
            "[2001:0:1:2:3:4:80ff:fffe]",
            "[ff02::1]",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert!(asked(&targets, &format!("http://{host}/x")).is_err(), "{host}");
        }
        for host in ["93.184.216.34", "[2606:4700::1111]", "172.32.0.1", "11.0.0.1"] {
            assert_eq!(asked(&targets, &format!("https://{host}/")), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_file_may_name_a_private_address_and_only_that_one() {
        let targets = Targets::of_file("http://10.0.0.1:8080", false);
        assert_eq!(asked(&targets, "http://10.0.0.1:8080/x"), Ok(()));
        assert!(asked(&targets, "http://10.0.0.2:8080/x").is_err());
        let metadata = Targets::of_file("http://169.254.169.254", false);
        assert!(asked(&metadata, "http://169.254.169.254/latest").is_err());
        let metadata = Targets::of_file("http://169.254.169.254", true);
        assert_eq!(asked(&metadata, "http://169.254.169.254/latest"), Ok(()));
    }

    #[test]
    fn a_name_may_lead_into_a_private_network_only_when_the_file_allows_it() {
        let home: IpAddr = "10.1.2.3".parse().unwrap();
        let cloud: IpAddr = "169.254.169.254".parse().unwrap();
        let this: IpAddr = "127.0.0.1".parse().unwrap();
        let plain = Targets::of_file("https://api.example.com", false);
        assert!(plain.judge("api.example.com", home).is_err());
        let allowed = Targets::of_file("https://api.example.com", true);
        assert!(allowed.judge("api.example.com", home).is_ok());
        assert!(allowed.judge("api.example.com", cloud).is_err());
        assert!(Targets::of_file("http://localhost:1", false).judge("localhost", this).is_ok());
        assert!(Targets::of_model(false).judge("localhost", this).is_err());
        assert!(Targets::of_model(true).judge("localhost", this).is_ok());
    }
}
