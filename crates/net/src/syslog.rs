//! Syslog sender of the logs: one datagram per line.
//!
//! A unix socket (`/dev/log`) gets the format of glibc, without a time; UDP gets RFC 5424 by RFC
//! 5426. A slow daemon costs lines, and must never delay the writing thread by more than a second.

use std::fmt;
use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

/// Facility local7, as in nginx.
const FACILITY: u8 = 23 * 8;
/// Severity info for lines of the access log, as in nginx.
const INFO: u8 = 6;
/// Longest message; the rest of a longer line is cut off. Receivers accept 2 KiB, most accept more
/// (RFC 5426 3.2).
const MESSAGE_BYTES: usize = 8 * 1024;
/// Timeout of one send.
const PATIENCE: Duration = Duration::from_secs(1);

/// The address of a syslog daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyslogAt {
    /// A unix socket.
    Path(PathBuf),
    /// A UDP address.
    Address(SocketAddr),
}

impl fmt::Display for SyslogAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "syslog at {}", path.display()),
            Self::Address(address) => write!(f, "syslog at {address}"),
        }
    }
}

#[derive(Debug)]
enum SyslogSocket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

/// An open connection to a syslog daemon.
#[derive(Debug)]
pub struct Syslog {
    socket: SyslogSocket,
    head: String,
    /// Buffer for a message.
    message: Vec<u8>,
}

impl Syslog {
    /// Opens a connection.
    ///
    /// # Errors
    /// If no daemon listens, as far as the socket shows it.
    pub fn open(at: &SyslogAt) -> io::Result<Self> {
        let pid = std::process::id();
        let (socket, head) = match at {
            SyslogAt::Path(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                (SyslogSocket::Unix(socket), format!("larder[{pid}]: "))
            }
            SyslogAt::Address(address) => {
                let any = match address {
                    SocketAddr::V4(_) => "0.0.0.0:0",
                    SocketAddr::V6(_) => "[::]:0",
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                // The line has its own time; `-` is the nil value.
                (SyslogSocket::Udp(socket), format!("1 - - larder {pid} - - "))
            }
        };
        Ok(Self { socket, head, message: Vec::new() })
    }

    /// Sends a line with a severity of syslog(3).
    ///
    /// # Errors
    /// If the daemon does not accept it.
    pub fn say(&self, severity: u8, line: &[u8]) -> io::Result<()> {
        self.send(severity, line, &mut Vec::new())
    }

    fn send(&self, severity: u8, line: &[u8], message: &mut Vec<u8>) -> io::Result<()> {
        let priority = FACILITY + severity.min(7);
        message.clear();
        message.extend_from_slice(format!("<{priority}>").as_bytes());
        message.extend_from_slice(self.head.as_bytes());
        message.extend_from_slice(line);
        message.truncate(MESSAGE_BYTES);
        match &self.socket {
            SyslogSocket::Unix(socket) => socket.send(message)?,
            SyslogSocket::Udp(socket) => socket.send(message)?,
        };
        Ok(())
    }
}

impl Write for Syslog {
    /// Sends the first line of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = memchr::memchr(b'\n', bytes);
        let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
        if !line.is_empty() {
            let mut message = std::mem::take(&mut self.message);
            let sent = self.send(INFO, line, &mut message);
            self.message = message;
            sent?;
        }
        Ok(end.map_or(bytes.len(), |end| end + 1))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_datagram_of_the_form_its_receiver_reads() {
        let pid = std::process::id();
        let folder = std::env::temp_dir().join(format!("larder-syslog-{pid}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("log");
        let local = UnixDatagram::bind(&path).expect("a socket");
        let remote = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = remote.local_addr().expect("bound");
        let mut buffer = [0; 2 * MESSAGE_BYTES];
        let long = "x".repeat(MESSAGE_BYTES);

        let mut syslog = Syslog::open(&SyslogAt::Path(path)).expect("a listener");
        syslog.write_all(format!("one\ntwo\n{long}\n").as_bytes()).expect("sent");
        for expected in ["one", "two"] {
            let length = local.recv(&mut buffer).expect("a message");
            let expected = format!("<190>larder[{pid}]: {expected}");
            assert_eq!(&buffer[..length], expected.as_bytes());
        }
        assert_eq!(local.recv(&mut buffer).expect("a message"), MESSAGE_BYTES);

        let mut syslog = Syslog::open(&SyslogAt::Address(address)).expect("a socket");
        syslog.write_all(b"one\n").expect("sent");
        let length = remote.recv(&mut buffer).expect("a message");
        let expected = format!("<190>1 - - larder {pid} - - one");
        assert_eq!(&buffer[..length], expected.as_bytes());
        syslog.say(3, b"two").expect("sent");
        let length = remote.recv(&mut buffer).expect("a message");
        assert!(buffer[..length].starts_with(b"<187>1 - - larder "));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }
}
