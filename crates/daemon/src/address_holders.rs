//! Address holders: processes that listen on a port, as far as `/proc` shows them to this user.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::sockopt::socket_peercred;

/// The state of a listening socket in the kernel's tables (`TCP_LISTEN`).
const LISTENING: &str = "0A";

/// Processes named in one sentence.
const NAMED_MAX: usize = 3;

/// Characters of a process's arguments that are shown.
const ARGUMENTS_MAX: usize = 160;

/// The name of this program, as the kernel reports it.
const LARDER: &str = "larder";

/// Processes that keep an address from being bound.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    /// The processes in one phrase, such as `nginx (pid 7)`; `None` if this user cannot see them.
    pub(crate) named: Option<String>,
    /// One of the processes is a Larder daemon.
    pub(crate) is_larder: bool,
}

impl Holders {
    fn new(mut pids: Vec<u32>) -> Self {
        pids.sort_unstable();
        let programs: Vec<_> = pids.iter().map(|pid| Holder::of(*pid)).collect();
        let named: Vec<_> = programs.iter().take(NAMED_MAX).map(Holder::to_string).collect();
        let named = match programs.len() {
            0 => None,
            count if count > NAMED_MAX => {
                Some(format!("{} and {} more", named.join(", "), count - NAMED_MAX))
            }
            _ => Some(named.join(", ")),
        };
        Self { named, is_larder: programs.iter().any(|program| program.name == LARDER) }
    }
}

/// A process, as messages name it.
struct Holder {
    pid: u32,
    name: String,
    /// The arguments of a Larder daemon.
    arguments: Option<String>,
}

impl Holder {
    fn of(pid: u32) -> Self {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).escape_debug().to_string();
        let name = shown(read("comm").trim_ascii_end());
        let arguments = (name == LARDER).then(|| {
            let line = read("cmdline");
            let words: Vec<_> = line.split(|byte| *byte == 0).skip(1).map(shown).collect();
            words.join(" ").trim_end().chars().take(ARGUMENTS_MAX).collect()
        });
        Self { pid, name, arguments }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.arguments {
            Some(arguments) => write!(f, "{} (pid {}, `{arguments}`)", self.name, self.pid),
            None => write!(f, "{} (pid {})", self.name, self.pid),
        }
    }
}

/// The processes that listen on the unix socket `path`.
pub(crate) fn at_path(path: &Path) -> Holders {
    let Ok(stream) = UnixStream::connect(path) else { return Holders::default() };
    let pid = socket_peercred(&stream).ok().map(|peer| peer.pid.as_raw_nonzero().get());
    Holders::new(pid.and_then(|pid| u32::try_from(pid).ok()).into_iter().collect())
}

/// The processes that keep `address` from being bound.
pub(crate) fn of(address: SocketAddr) -> Holders {
    let mut sockets: Vec<String> = Vec::new();
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let rows = fs::read_to_string(table).unwrap_or_default();
        sockets.extend(rows.lines().skip(1).filter_map(|row| conflicting(row, address)));
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        has_one_of(&entry.path(), &sockets).then_some(pid)
    });
    Holders::new(processes.collect())
}

/// The link target of descriptors for a row's socket; `None` unless the socket listens on
/// `address`.
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

/// An address as the kernel prints it: 4-byte words in the machine's byte order.
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

/// Returns true if a process has a descriptor of one of these sockets.
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
    fn a_daemon_is_shown_with_what_it_serves() {
        let program = |name: &str, arguments: Option<&str>| {
            let arguments = arguments.map(str::to_owned);
            Holder { pid: 7, name: name.to_owned(), arguments }.to_string()
        };
        assert_eq!(program("nginx", None), "nginx (pid 7)");
        let serves = program("larder", Some("serve --config /a.toml"));
        assert_eq!(serves, "larder (pid 7, `serve --config /a.toml`)");
    }

    #[test]
    fn a_process_finds_itself() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let who = of(listener.local_addr().expect("an address")).named.expect("somebody");
        assert!(who.contains(&format!("(pid {})", std::process::id())), "{who}");
    }
    #[test]
    fn a_process_finds_itself_at_a_unix_socket() {
        let path = std::env::temp_dir().join(format!("larder-holders-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let who = at_path(&path).named.expect("somebody");
        assert!(who.contains(&format!("(pid {})", std::process::id())), "{who}");
        drop(listener);
        assert!(at_path(&path).named.is_none());
        fs::remove_file(&path).expect("it is there");
    }
}
