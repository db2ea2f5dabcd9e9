//! Reserved addresses, which no origin may lead to: the daemon's own admin listener, which clients'
//! requests must never reach.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Addresses and unix sockets that are never connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedAddresses {
    addresses: Vec<SocketAddr>,
    sockets: Vec<PathBuf>,
}

impl ReservedAddresses {
    /// Reserves these addresses, and the sockets at these paths.
    pub fn new(addresses: impl IntoIterator<Item = SocketAddr>, sockets: Vec<PathBuf>) -> Self {
        Self { addresses: addresses.into_iter().map(reached).collect(), sockets }
    }

    /// Returns true if a connection to `address` would reach a reserved one.
    pub fn has(&self, address: SocketAddr) -> bool {
        !self.addresses.is_empty() && self.addresses.contains(&reached(address))
    }

    /// Returns true if `path` leads to one of the sockets, through any links.
    fn has_socket(&self, path: &Path) -> bool {
        let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let Some(meant) = identity(path) else { return false };
        self.sockets.iter().any(|own| identity(own) == Some(meant))
    }

    pub(crate) fn admit(&self, address: SocketAddr) -> io::Result<()> {
        if self.has(address) { Err(refusal()) } else { Ok(()) }
    }

    pub(crate) fn admit_socket(&self, path: &Path) -> io::Result<()> {
        if self.has_socket(path) { Err(refusal()) } else { Ok(()) }
    }
}

fn refusal() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "the admin listener must not be an origin")
}

/// The address that the kernel connects to: an IPv4-mapped address is IPv4, and the unspecified
/// address is this machine.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip().to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_known_in_every_form() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let reserved = ReservedAddresses::new([at("127.0.0.1:6080"), at("[::1]:6080")], Vec::new());
        for (address, known) in [
            ("127.0.0.1:6080", true),
            ("0.0.0.0:6080", true),
            ("[::1]:6080", true),
            ("[::]:6080", true),
            ("[::ffff:127.0.0.1]:6080", true),
            ("[::ffff:0.0.0.0]:6080", true),
            ("127.0.0.1:6081", false),
            ("127.0.0.2:6080", false),
            ("192.0.2.1:6080", false),
        ] {
            assert_eq!(reserved.has(at(address)), known, "{address}");
        }
        assert!(!ReservedAddresses::default().has(at("127.0.0.1:6080")));
    }

    #[test]
    fn a_socket_is_known_by_links_too() {
        let folder = std::env::temp_dir().join(format!("larder-reserved-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let (socket, link) = (folder.join("admin.sock"), folder.join("link.sock"));
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        std::os::unix::fs::symlink(&socket, &link).expect("a link");
        fs::write(folder.join("other"), "").expect("a file");
        let reserved = ReservedAddresses::new([], vec![socket.clone()]);
        assert!(reserved.admit_socket(&socket).is_err() && reserved.admit_socket(&link).is_err());
        assert!(reserved.admit_socket(&folder.join("other")).is_ok());
        assert!(reserved.admit_socket(&folder.join("none")).is_ok());
        fs::remove_dir_all(&folder).expect("removed");
    }
}
