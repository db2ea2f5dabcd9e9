//! Programs that listen on a port, as far as `/proc` lets this user see.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The state of a listening socket in the kernel's tables (`TCP_LISTEN`).
const LISTENING: &str = "0A";

/// Programs named in one sentence.
const NAMED_MAX: usize = 3;

/// Those that keep `address` from being listened on, such as `nginx (pid 7)`.
pub(crate) fn of(address: SocketAddr) -> Option<String> {
    let mut sockets: Vec<String> = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let rows = fs::read_to_string(table).unwrap_or_default();
        sockets.extend(rows.lines().skip(1).filter_map(|row| conflicting(row, address)));
    }
    let mut who = Vec::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if has_one_of(&entry.path(), &sockets) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            who.push((pid, name.trim_end().escape_debug().to_string()));
        }
    }
    who.sort_unstable();
    let who: Vec<_> = who.iter().map(|(pid, name)| format!("{name} (pid {pid})")).collect();
    match who.len() {
        0 => None,
        count if count > NAMED_MAX => {
            Some(format!("{} and {} more", who[..NAMED_MAX].join(", "), count - NAMED_MAX))
        }
        _ => Some(who.join(", ")),
    }
}

/// The link target of descriptors of a row's socket; `None` unless the socket listens where
/// `address` is.
fn conflicting(row: &str, address: SocketAddr) -> Option<String> {
    let mut columns = row.split_whitespace().skip(1);
    let (ip, port) = columns.next()?.split_once(':')?;
    let state = columns.nth(1)?;
    let inode = columns.nth(5)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let ip = parse_ip(ip)?;
    let meets = ip == address.ip() || ip.is_unspecified() || address.ip().is_unspecified();
    (state == LISTENING && port == address.port() && meets).then(|| format!("socket:[{inode}]"))
}

/// An address as the kernel prints it: words of four bytes, each in the machine's order.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    if hex.len() == 8 {
        return word(0).map(|bytes| Ipv4Addr::from(bytes).into());
    }
    let bytes = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
    let bytes: [u8; 16] = bytes.try_into().ok()?;
    Some(Ipv6Addr::from(bytes).to_canonical())
}

/// Tells whether a process has a descriptor of one of these sockets.
fn has_one_of(process: &Path, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(process.join("fd")) else { return false };
    files.flatten().any(|file| {
        let target = fs::read_link(file.path());
        target.is_ok_and(|target| sockets.iter().any(|own| target.as_os_str() == own.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_listening_sockets_are_those_of_the_address_or_of_all() {
        let row = |ip: &str, state: &str| {
            format!(
                "   0: {ip}:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  33  0 4711 1 x"
            )
        };
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let found = |ip: &str, state, text| conflicting(&row(ip, state), at(text)).is_some();
        let one = u32::from_ne_bytes([127, 0, 0, 1]);
        let one = format!("{one:08X}");
        assert!(found(&one, LISTENING, "127.0.0.1:8080"));
        assert!(found("00000000", LISTENING, "127.0.0.1:8080"));
        assert!(found(&one, LISTENING, "0.0.0.0:8080"));
        assert!(!found(&one, LISTENING, "127.0.0.2:8080"));
        assert!(!found(&one, LISTENING, "127.0.0.1:8081"));
        assert!(!found(&one, "01", "127.0.0.1:8080"));
        let row = row(&one, LISTENING);
        assert_eq!(conflicting(&row, at("127.0.0.1:8080")).as_deref(), Some("socket:[4711]"));
        assert_eq!(parse_ip(&"0".repeat(32)), Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
    }

    #[test]
    fn a_process_finds_itself() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let who = of(listener.local_addr().expect("an address")).expect("somebody");
        assert!(who.contains(&format!("(pid {})", std::process::id())), "{who}");
    }
}
