//! Who listens on a port of this machine.

use std::fs;
use std::net::TcpListener;

/// A process that holds a port, as far as this user may see it.
pub(super) fn holder(port: u16) -> Option<String> {
    if TcpListener::bind(("127.0.0.1", port)).is_ok() {
        return None;
    }
    let unknown = || "a process of another user or none that still answers".to_owned();
    Some(listening(port).and_then(|inode| owner(&inode)).unwrap_or_else(unknown))
}

/// The inode of the socket that listens there.
fn listening(port: u16) -> Option<String> {
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|table| {
        let text = fs::read_to_string(table).ok()?;
        text.lines().find_map(|line| inode_of(line, port))
    })
}

/// `sl local remote st … inode`: state 0A is listening.
fn inode_of(line: &str, port: u16) -> Option<String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
    let (_, hex) = local.rsplit_once(':')?;
    let is_it = *state == "0A" && u16::from_str_radix(hex, 16) == Ok(port);
    is_it.then(|| (*inode).to_owned())
}

fn owner(inode: &str) -> Option<String> {
    let wanted = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = numbers.find(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        let mut links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.any(|link| link.to_str() == Some(&wanted))
    })?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(format!("{} (pid {pid})", name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_is_taken_has_its_holder_named() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let found = holder(port).unwrap();
        assert!(found.ends_with(&format!("(pid {})", std::process::id())), "{found}");
        drop(listener);
        assert_eq!(holder(port), None);
    }
}
