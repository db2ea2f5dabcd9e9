//! Control of a connection by VCL programs: its timeouts, and its socket options.
//!
//! The socket is a second descriptor of the connection. It is opened only if a program in force
//! needs it, and must be closed together with the stream; otherwise the client would not see the
//! connection end.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::Rc;

use flow::vcl::{Connection, ConnectionTimeouts, TcpInfo, VclConnection};
use rustix::net::sockopt;
use rustix::net::{AddressFamily, getsockname};

use crate::diag;
use crate::guard::Guard;
use crate::pace::SocketPace;

/// The part of a connection that programs read and set.
#[derive(Debug)]
pub(crate) struct ConnectionControl {
    guard: Rc<Guard>,
    socket: RefCell<Option<ControlledSocket>>,
}

#[derive(Debug)]
struct ControlledSocket {
    fd: OwnedFd,
    family: AddressFamily,
    pace: Rc<SocketPace>,
}

impl ConnectionControl {
    pub(crate) fn new(guard: Rc<Guard>) -> Rc<Self> {
        Rc::new(Self { guard, socket: RefCell::default() })
    }

    fn has_socket(&self) -> bool {
        self.socket.borrow().is_some()
    }

    /// Runs `ask` on the TCP socket. The error is `Unsupported` without one.
    fn of_tcp<T>(&self, ask: impl FnOnce(&ControlledSocket) -> io::Result<T>) -> io::Result<T> {
        match &*self.socket.borrow() {
            Some(socket) if socket.family != AddressFamily::UNIX => ask(socket),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

impl Connection for ConnectionControl {
    fn times(&self) -> ConnectionTimeouts {
        self.guard.times()
    }

    fn set_times(&self, times: ConnectionTimeouts) {
        self.guard.set_times(times);
    }

    fn set_tos(&self, tos: u8) -> io::Result<()> {
        let socket = self.socket.borrow();
        let Some(ControlledSocket { fd, family, .. }) = &*socket else { return Ok(()) };
        match *family {
            AddressFamily::INET => Ok(sockopt::set_ip_tos(fd, tos)?),
            AddressFamily::INET6 => Ok(sockopt::set_ipv6_tclass(fd, tos.into())?),
            _ => Ok(()),
        }
    }

    fn set_congestion(&self, algorithm: &str) -> io::Result<()> {
        self.of_tcp(|socket| Ok(sockopt::set_tcp_congestion(&socket.fd, algorithm)?))
    }

    fn congestion(&self) -> io::Result<String> {
        self.of_tcp(|socket| Ok(sockopt::tcp_congestion(&socket.fd)?))
    }

    fn measured(&self) -> io::Result<TcpInfo> {
        self.of_tcp(|socket| diag::measured(&socket.fd))
    }

    fn set_pace(&self, bytes_per_second: u64) {
        if let Some(socket) = &*self.socket.borrow() {
            socket.pace.set(bytes_per_second);
        }
    }
}

/// A connection as programs see it, valid as long as its stream.
pub(crate) struct ProgramConnection {
    pub(crate) line: VclConnection,
    control: Rc<ConnectionControl>,
}

impl ProgramConnection {
    /// The connection that `line` describes.
    pub(crate) fn new(line: VclConnection, guard: &Rc<Guard>) -> Box<Self> {
        let own = ConnectionControl::new(Rc::clone(guard));
        let control: Rc<dyn Connection> = own.clone();
        Box::new(Self { line: VclConnection { control: Some(control), ..line }, control: own })
    }

    /// Gives programs access to the socket `fd`; returns the stream's pace if it is new.
    pub(crate) fn hold(&self, fd: impl FnOnce() -> io::Result<OwnedFd>) -> Option<Rc<SocketPace>> {
        if self.control.has_socket() {
            return None;
        }
        // Without a descriptor, calls of programs return `Unsupported`.
        let fd = fd().ok()?;
        let family = getsockname(fd.as_fd()).ok()?.address_family();
        let pace = Rc::new(SocketPace::new());
        *self.control.socket.borrow_mut() =
            Some(ControlledSocket { fd, family, pace: Rc::clone(&pace) });
        Some(pace)
    }
}

impl Drop for ProgramConnection {
    fn drop(&mut self) {
        // A remaining reference to the control must not keep the connection open.
        self.control.socket.take();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn held(fd: OwnedFd) -> Box<ProgramConnection> {
        let known = ProgramConnection::new(VclConnection::default(), &Guard::new(0));
        known.hold(|| Ok(fd)).expect("it has none yet");
        known
    }

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).expect("a free port");
        let client = TcpStream::connect(listener.local_addr().expect("its address"));
        (client.expect("a listener"), listener.accept().expect("the client").0)
    }

    fn second(stream: &TcpStream) -> OwnedFd {
        stream.try_clone().expect("a descriptor is left").into()
    }

    #[test]
    fn what_a_program_asks_of_the_socket_is_done_to_the_connection() {
        let (_client, server) = pair("127.0.0.1:0");
        let known = held(second(&server));
        known.control.set_tos(8).expect("any type will do");
        assert_eq!(sockopt::ip_tos(&server), Ok(8));
        known.control.set_congestion("reno").expect("every kernel has it");
        assert_eq!(known.control.congestion().expect("it is TCP"), "reno");
        assert_eq!(sockopt::tcp_congestion(&server).as_deref(), Ok("reno"));
        assert!(known.control.set_congestion("nope").is_err());
        assert!(known.control.measured().is_ok_and(|measured| measured.snd_mss > 0));
        let (_client, server) = pair("[::1]:0");
        held(second(&server)).control.set_tos(8).expect("any class will do");
        assert_eq!(sockopt::ipv6_tclass(&server), Ok(8));
    }

    #[test]
    fn a_unix_socket_has_no_tcp() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let known = held(one.into());
        known.control.set_tos(8).expect("nothing happens");
        let error = known.control.set_congestion("reno").expect_err("it is no TCP");
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        assert!(known.control.measured().is_err());
    }

    #[test]
    fn the_client_sees_the_end_though_a_program_still_holds_on() {
        let (mut client, server) = pair("127.0.0.1:0");
        let known = held(second(&server));
        let control = known.line.control.clone().expect("there is one");
        drop((server, known));
        assert_eq!(client.read(&mut [0]).expect("an orderly end"), 0);
        assert!(control.set_congestion("reno").is_err());
    }
}
