//! Lock on a listening address: a second daemon must not share it by accident.
//!
//! With `SO_REUSEPORT`, which cores need, any process of the user may listen and gets connections.
//! So one socket starts to listen without it: the kernel rejects it if another one listens on an
//! overlapping address, and drops the lock with the process. Then the option is set again.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process;
use std::time::Duration;

use socket2::SockRef;

/// Length of the kernel's accept queue of one listener of one core.
pub(crate) const BACKLOG: i32 = 4096;

/// The number of attempts: of two sockets that begin to listen in the same microsecond, the kernel
/// may reject both.
const TRIES: u32 = 8;
/// The longest pause after the first attempt; later pauses are multiples of it.
const PAUSE_MS: u32 = 16;

/// Permission for other processes to listen on the daemon's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Only this daemon may listen.
    Refused,
    /// Other processes of the same user may listen; the kernel gives them a part of the
    /// connections.
    Wanted,
}

/// Lets `socket` listen, and thereby locks its address. The socket must have been bound with
/// `SO_REUSEPORT`, as all sockets on this address are.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] if another process listens on the address.
pub(crate) fn claim(socket: &TcpListener) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_reuse_port(false)?;
    let mut listens = socket.listen(BACKLOG);
    for attempt in 1..TRIES {
        match &listens {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            _ => break,
        }
        // Two processes that retry in step diverge by their ids.
        let pause = (process::id() % PAUSE_MS + 1) * attempt;
        rt::pause(Duration::from_millis(pause.into()));
        listens = socket.listen(BACKLOG);
    }
    socket.set_reuse_port(true)?;
    listens
}

/// Returns true if a lock on `wide` also locks `address`.
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

    /// A socket as a core binds it, on a free port if `address` names none.
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
        // A bound socket that does not listen leaves the address free.
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
