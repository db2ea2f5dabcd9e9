//! Claims on addresses: where a daemon listens nobody else does, unless that is wanted.
//!
//! Each core has a socket of its own on an address (`SO_REUSEPORT`), and where that option is set
//! the kernel lets any process of the same user listen, too. It would give a second daemon a part
//! of the connections and nobody a word, while purges, reloads and logs reach one of the two.
//!
//! So an address is claimed by a socket that is without the option when it begins to listen. The
//! kernel then refuses it wherever another socket listens, and the later one of two that are
//! started at once. It knows which addresses overlap, and in which network namespace; and it
//! forgets a claim with the process that made it, however that ended. A file or a name to be locked
//! would do none of these. Afterwards the option is set again: for the other cores, and for a next
//! daemon that is to share the address.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process;
use std::time::Duration;

use socket2::SockRef;

/// Connections the kernel queues for one listener of one core.
pub(crate) const BACKLOG: i32 = 4096;

/// Times that a claim is tried: of two sockets that begin to listen in the same microsecond the
/// kernel may refuse both.
const TRIES: u32 = 8;
/// The longest pause after the first try; a further one may take a multiple.
const PAUSE_MS: u32 = 16;

/// Tells whether others may listen on a daemon's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only the daemon.
    Refused,
    /// Other processes of the same user, which the kernel gives a part of the connections.
    Wanted,
}

/// Has `socket` listen, and claims its address by that. It must have been bound to be shared, as
/// all that are bound to the same address here.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if others listen there.
pub(crate) fn claim(socket: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_reuse_port(false)?;
    let mut listens = socket.listen(BACKLOG);
    for attempt in 1..TRIES {
        match &listens {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            _ => break,
        }
        // Two that are in step get out of it by their numbers.
        let pause = (process::id() % PAUSE_MS + 1) * attempt;
        rt::pause(Duration::from_millis(pause.into()));
        listens = socket.listen(BACKLOG);
    }
    socket.set_reuse_port(true)?;
    listens
}

/// Tells whether a claim on `wide` is one on `address`, too.
pub(crate) fn covers(wide: SocketAddr, address: SocketAddr) -> bool {
    let within = match (wide.ip(), address.ip()) {
        (IpAddr::V4(wide), IpAddr::V4(_)) => wide.is_unspecified(),
        (IpAddr::V6(wide), IpAddr::V6(_)) => wide.is_unspecified(),
        _ => false,
    };
    wide.port() == address.port() && (within || wide.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::{bind_address, probe};

    /// A socket as a core has it, on a free port if `address` names none.
    fn bound(address: &str) -> TcpListener {
        let address = address.parse().expect("an address");
        bind_address(address, Sharing::Wanted).expect("a port")
    }

    fn in_use(result: io::Result<()>) -> bool {
        result.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    }

    #[test]
    fn an_address_is_claimed_once_and_then_shared_by_who_wants_to() {
        let first = bound("127.0.0.1:0");
        let at = first.local_addr().expect("an address");
        let siblings = [bound(&at.to_string()), bound(&at.to_string())];
        let wide = bound(&format!("0.0.0.0:{}", at.port()));
        // Bound is not yet taken: nobody listens.
        assert!(probe(at).is_ok());
        assert!(claim(&first).is_ok());
        assert!(in_use(probe(at)));
        assert!(in_use(claim(&siblings[0])) && in_use(claim(&wide)));
        for shares in siblings.iter().chain([&wide]) {
            assert!(SockRef::from(shares).listen(BACKLOG).is_ok());
        }
        drop((first, siblings));
        assert!(in_use(probe(at)), "all addresses are still listened on");
    }

    #[test]
    fn all_addresses_cover_each_of_their_family_and_port() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        for (wide, address, is) in [
            ("0.0.0.0:80", "127.0.0.1:80", true),
            ("[::]:80", "[::1]:80", true),
            ("127.0.0.1:80", "127.0.0.1:80", true),
            ("0.0.0.0:80", "127.0.0.1:81", false),
            ("[::]:80", "127.0.0.1:80", false),
            ("127.0.0.1:80", "0.0.0.0:80", false),
            ("127.0.0.2:80", "127.0.0.1:80", false),
        ] {
            assert_eq!(covers(at(wide), at(address)), is, "{wide} {address}");
        }
    }
}
