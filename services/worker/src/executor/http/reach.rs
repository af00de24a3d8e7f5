//! Which addresses a request may go to. A name is looked up once, what it leads to is judged, and the
//! connection goes to exactly that: a name that leads elsewhere a moment later leads nowhere.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// How far a request may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Addresses of the Internet.
    Public,
    /// Those, and those of private networks and of this machine.
    Private,
    /// Whatever is written, because the tool's file writes the address itself.
    Written,
}

/// Endings of names that no server of the Internet has.
const INTERNAL: [&str; 8] =
    [".local", ".localhost", ".internal", ".lan", ".home.arpa", ".svc", ".test", ".corp"];

impl Reach {
    /// What the file of a tool means by a host that it names: an address is meant as it is, a name of
    /// an internal network may lead into one, and a name of the Internet may not.
    pub(super) fn of_file(url: &Url) -> Self {
        if address_of(url).is_some() {
            return Self::Written;
        }
        let name = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
        let is_internal = !name.contains('.')
            || INTERNAL.iter().any(|end| name.ends_with(end))
            || name.split('.').any(|part| part == "svc");
        if is_internal { Self::Private } else { Self::Public }
    }

    fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Public => kind(address) == Kind::Public,
            Self::Private => kind(address) != Kind::Never,
            Self::Written => true,
        }
    }

    /// Why a URL whose host is an address is not asked.
    pub(super) fn problem(self, url: &Url) -> Option<String> {
        let address = address_of(url)?;
        (!self.allows(address)).then(|| OutOfReach { name: address.to_string() }.to_string())
    }
}

/// The address that a URL has in the place of a name; every spelling is one by now.
fn address_of(url: &Url) -> Option<IpAddr> {
    url.host_str()?.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Who may be meant by an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Public,
    /// Private networks, and this machine.
    Private,
    /// Link-local, where clouds keep their credentials; nobody; everybody.
    Never,
}

fn kind(address: IpAddr) -> Kind {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Kind {
    let [a, b, c, _] = address.octets();
    let is_shared = a == 100 && (64..128).contains(&b);
    let is_reserved = a == 0 || a >= 224 || (a, b, c) == (192, 0, 0);
    if address.is_link_local() || is_reserved {
        Kind::Never
    } else if address.is_private() || address.is_loopback() || is_shared {
        Kind::Private
    } else {
        Kind::Public
    }
}

/// An address of IPv4 in the clothes of IPv6 is still that address.
fn kind_v6(address: Ipv6Addr) -> Kind {
    if address.is_loopback() {
        return Kind::Private;
    }
    let segments = address.segments();
    let embedded = address.to_ipv4().filter(|_| !address.is_unspecified()).or_else(|| {
        let octets = address.octets();
        let last = octets.get(12..).and_then(|last| <[u8; 4]>::try_from(last).ok());
        let is_nat64 = segments.starts_with(&[0x64, 0xff9b]);
        let six_to_four = octets.get(2..6).and_then(|four| <[u8; 4]>::try_from(four).ok());
        match segments {
            [0x2002, ..] => six_to_four.map(Ipv4Addr::from),
            _ => last.filter(|_| is_nat64).map(Ipv4Addr::from),
        }
    });
    if let Some(inner) = embedded {
        return kind_v4(inner);
    }
    if address.is_unspecified() || address.is_multicast() || address.is_unicast_link_local() {
        Kind::Never
    } else if address.is_unique_local() {
        Kind::Private
    } else {
        Kind::Public
    }
}

/// Looks names up, and forgets the addresses that are out of reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names(pub(super) Reach);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let fine: Vec<SocketAddr> =
                found.iter().copied().filter(|address| reach.allows(address.ip())).collect();
            if fine.is_empty() && !found.is_empty() {
                return Err(Box::new(OutOfReach { name }).into());
            }
            let fine: Addrs = Box::new(fine.into_iter());
            Ok(fine)
        })
    }
}

/// A host that leads where the tool may not go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OutOfReach {
    name: String,
}

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` leads to an address of a private network, of this machine or of its neighbours, \
             which this tool may not ask",
            self.name
        )
    }
}

impl std::error::Error for OutOfReach {}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(url: &str) -> Reach {
        Reach::of_file(&Url::parse(url).unwrap())
    }

    #[test]
    fn the_host_in_a_file_says_how_far_it_may_lead() {
        for (url, expected) in [
            ("https://api.example.com/x", Reach::Public),
            ("https://localhost:1/x", Reach::Private),
            ("http://orders/x", Reach::Private),
            ("http://orders.default.svc.cluster.local", Reach::Private),
            ("http://db.corp", Reach::Private),
            ("http://10.0.0.1/x", Reach::Written),
            ("http://[::1]/x", Reach::Written),
        ] {
            assert_eq!(reach(url), expected, "{url}");
        }
    }

    #[test]
    fn no_spelling_of_an_address_hides_what_it_is() {
        for text in [
            "http://127.0.0.1",
            "http://127.1",
            "http://2130706433",
            "http://0x7f000001",
            "http://017700000001",
            "http://0",
            "http://10.1.2.3",
            "http://172.31.0.1",
            "http://192.168.1.1",
            "http://100.64.0.1",
            "http://169.254.169.254",
            "http://224.0.0.1",
            "http://255.255.255.255",
            "http://[::]",
            "http://[::1]",
            "http://[::ffff:127.0.0.1]",
            "http://[::ffff:a9fe:a9fe]",
            "http://[::127.0.0.1]",
            "http://[64:ff9b::7f00:1]",
            "http://[2002:7f00:1::]",
            "http://[fe80::1]",
            "http://[fd00:ec2::254]",
            "http://[ff02::1]",
        ] {
            let url = Url::parse(text).unwrap();
            assert!(Reach::Public.problem(&url).is_some(), "{text}");
            assert_eq!(Reach::Written.problem(&url), None, "{text}");
        }
        for text in ["http://8.8.8.8", "http://[2606:4700::1111]", "http://172.32.0.1"] {
            assert_eq!(Reach::Public.problem(&Url::parse(text).unwrap()), None, "{text}");
        }
        let metadata = Url::parse("http://169.254.169.254/latest").unwrap();
        assert!(Reach::Private.problem(&metadata).is_some());
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_leads_nowhere() {
        let found = Names(Reach::Public).resolve("localhost".parse().unwrap()).await;
        let error = found.err().unwrap().to_string();
        assert!(
            error.starts_with("`localhost` leads to an address of a private network"),
            "{error}"
        );
        assert!(Names(Reach::Private).resolve("localhost".parse().unwrap()).await.is_ok());
    }
}
