//! Diagnostics of a TCP connection from the kernel, by netlink (sock_diag(7)).
//!
//! The shorter way, `getsockopt(TCP_INFO)`, needs `unsafe`. The query names one connection by its
//! addresses and never blocks.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use flow::vcl::TcpInfo;
use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{self, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// `NLMSG_ERROR`
const ERROR: u16 = 2;
/// `SOCK_DIAG_BY_FAMILY`
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST`
const REQUEST: u16 = 1;
/// `INET_DIAG_INFO`, the attribute with a `tcp_info`.
const INFO: u16 = 2;
/// `AF_INET`
const INET: u8 = 2;
/// `AF_INET6`
const INET6: u8 = 10;
/// `IPPROTO_TCP`
const TCP: u8 = 6;
/// A `nlmsghdr`.
const HEADER_BYTES: usize = 16;
/// An `inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;
/// Size of the buffer for a reply: the message and a `tcp_info`, which grows with the kernel's
/// version.
const ANSWER_BYTES: usize = 4096;

/// Offset of `idiag_wqueue` in an `inet_diag_msg`: the bytes that the peer has not acknowledged.
const QUEUED_AT: usize = 60;

/// Returns the kernel's measurements of the connected `socket`.
///
/// # Errors
/// The system's; `Unsupported` for a socket other than TCP, and for a reply that cannot be parsed.
pub(crate) fn measured(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let answer = asked(socket, 1 << (INFO - 1))?;
    info(message(&answer)?.get(MESSAGE_BYTES..).unwrap_or_default())
        .and_then(numbers)
        .ok_or_else(unreadable)
}

/// Returns the number of sent bytes that the peer of the connected `socket` has not acknowledged.
///
/// # Errors
/// As [`measured`].
pub(crate) fn queued(socket: &impl AsFd) -> io::Result<u32> {
    u32_at(message(&asked(socket, 0)?)?, QUEUED_AT).ok_or_else(unreadable)
}

/// The kernel's reply for `socket`, with the attributes of the bits in `wanted`.
fn asked(socket: &impl AsFd, wanted: u8) -> io::Result<Vec<u8>> {
    let end = |address: net::SocketAddrAny| {
        SocketAddr::try_from(address).map_err(|_| io::Error::from(io::ErrorKind::Unsupported))
    };
    let local = end(net::getsockname(socket)?)?;
    let remote = end(net::getpeername(socket)?.ok_or(io::ErrorKind::NotConnected)?)?;
    let netlink = net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        Some(SOCK_DIAG),
    )?;
    let (kernel, request) = (SocketAddrNetlink::new(0, 0), question(local, remote, wanted));
    net::sendto(netlink.as_fd(), &request, SendFlags::empty(), &kernel)?;
    let mut answer = vec![0; ANSWER_BYTES];
    let (_, length) = net::recv(netlink.as_fd(), &mut answer[..], RecvFlags::empty())?;
    answer.truncate(length);
    Ok(answer)
}

/// A `nlmsghdr` and an `inet_diag_req_v2` for one connection.
fn question(local: SocketAddr, remote: SocketAddr, wanted: u8) -> Vec<u8> {
    const BYTES: usize = HEADER_BYTES + 56;
    let mut out = Vec::with_capacity(BYTES);
    out.extend_from_slice(&(BYTES as u32).to_ne_bytes());
    out.extend_from_slice(&BY_FAMILY.to_ne_bytes());
    out.extend_from_slice(&REQUEST.to_ne_bytes());
    // Sequence and port: there is one query, and the kernel knows its sender.
    out.extend_from_slice(&[0; 8]);
    let family = if local.is_ipv4() { INET } else { INET6 };
    out.extend_from_slice(&[family, TCP, wanted, 0]);
    // Any state.
    out.extend_from_slice(&u32::MAX.to_ne_bytes());
    out.extend_from_slice(&local.port().to_be_bytes());
    out.extend_from_slice(&remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        let mut bytes = [0; 16];
        match address {
            IpAddr::V4(ip) => bytes[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => bytes = ip.octets(),
        }
        out.extend_from_slice(&bytes);
    }
    // Any interface, any cookie (`INET_DIAG_NOCOOKIE`).
    out.extend_from_slice(&0_u32.to_ne_bytes());
    out.extend_from_slice(&[0xff; 8]);
    out
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn unreadable() -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// The `inet_diag_msg` of a reply, with its attributes.
fn message(answer: &[u8]) -> io::Result<&[u8]> {
    match u16_at(answer, 4) {
        Some(BY_FAMILY) => answer.get(HEADER_BYTES..).ok_or_else(unreadable),
        Some(ERROR) => {
            let errno = u32_at(answer, HEADER_BYTES).ok_or_else(unreadable)?;
            Err(io::Error::from_raw_os_error(errno.cast_signed().wrapping_neg()))
        }
        _ => Err(unreadable()),
    }
}

/// The `tcp_info` among attributes. An attribute has a length (which includes its four bytes of
/// header) and a kind, and is padded to a multiple of four.
fn info(mut attributes: &[u8]) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let content = attributes.get(4..length)?;
        if u16_at(attributes, 2)? == INFO {
            return Some(content);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// The fields of a `tcp_info` (linux/tcp.h), by their offsets.
fn numbers(info: &[u8]) -> Option<TcpInfo> {
    Some(TcpInfo {
        snd_mss: u32_at(info, 16)?,
        rcv_mss: u32_at(info, 20)?,
        lost: u32_at(info, 32)?,
        retrans: u32_at(info, 36)?,
        pmtu: u32_at(info, 60)?,
        rtt: u32_at(info, 68)?,
        rttvar: u32_at(info, 72)?,
        snd_cwnd: u32_at(info, 80)?,
        advmss: u32_at(info, 84)?,
        reordering: u32_at(info, 88)?,
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn the_kernel_tells_of_connections_of_both_families() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(address).expect("a free port");
            let mut client = TcpStream::connect(listener.local_addr().expect("its address"))
                .expect("a listener");
            let (mut server, _) = listener.accept().expect("the client");
            client.write_all(b"x").expect("it takes a byte");
            server.read_exact(&mut [0]).expect("the byte");
            let measured = measured(&server).expect("the kernel knows it");
            assert!(measured.snd_mss > 0 && measured.rtt > 0 && measured.pmtu > 1000);
        }
    }

    #[test]
    fn the_kernel_tells_what_a_peer_has_not_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut client =
            TcpStream::connect(listener.local_addr().expect("its address")).expect("a listener");
        let (mut server, _) = listener.accept().expect("the client");
        assert_eq!(queued(&server).expect("the kernel knows it"), 0);
        server.set_nonblocking(true).expect("a socket");
        let mut sent = 0;
        while let Ok(bytes) = server.write(&[b'x'; 65_536]) {
            sent += bytes;
        }
        let before = queued(&server).expect("the kernel knows it");
        assert!(before > 0 && before as usize <= sent, "{before} of {sent}");
        // A partial read shrinks the queue as soon as the kernel has acknowledged it.
        let mut left = sent;
        while queued(&server).expect("the kernel knows it") >= before {
            left -= client.read(&mut vec![0; left]).expect("bytes");
        }
    }

    #[test]
    fn what_is_no_tcp_is_not_asked_for() {
        let (one, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        for error in [measured(&one).expect_err("no TCP"), queued(&one).expect_err("no TCP")] {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
        }
    }

    #[test]
    fn an_answer_that_is_no_answer_is_an_error() {
        let mut error = vec![0; 36];
        error[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        error[16..20].copy_from_slice(&(-2_i32).to_ne_bytes());
        let read_error = message(&error).expect_err("there is no such connection");
        assert_eq!(read_error.kind(), io::ErrorKind::NotFound);
        let mut short = [0; HEADER_BYTES - 1];
        short[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        for length in 0..=short.len() {
            assert!(message(&short[..length]).is_err(), "{length}");
        }
        // Truncated attributes, and one of length 0, which would never end.
        for length in 0..8 {
            assert!(info(&[0; 8][..length]).is_none(), "{length}");
        }
    }
}
