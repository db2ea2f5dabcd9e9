//! Writer of headers.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::v2;

/// Both addresses in one family: IPv4 if possible.
enum AddressPair {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl AddressPair {
    fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        let six = |ip| match ip {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        match (source.ip().to_canonical(), destination.ip().to_canonical()) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Self::V4(source, destination),
            (source, destination) => Self::V6(six(source), six(destination)),
        }
    }
}

/// Appends a version 1 line for a connection from `source` to `destination`. If only one of them is
/// IPv4, it is written as an IPv4-mapped IPv6 address.
pub fn write_v1(out: &mut Vec<u8>, source: SocketAddr, destination: SocketAddr) {
    let (from, to) = (source.port(), destination.port());
    match AddressPair::new(source, destination) {
        AddressPair::V4(source, destination) => {
            write!(out, "PROXY TCP4 {source} {destination} {from} {to}\r\n")
        }
        AddressPair::V6(source, destination) => {
            // The mapped form with dots is longer, and not every reader accepts it.
            let (source, destination) = (Groups(source), Groups(destination));
            write!(out, "PROXY TCP6 {source} {destination} {from} {to}\r\n")
        }
    }
    .expect("a vector takes whatever is written to it");
}

/// An IPv6 address; an IPv4-mapped one in hexadecimal.
struct Groups(Ipv6Addr);

impl std::fmt::Display for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.0.to_ipv4_mapped(), self.0.segments()) {
            (Some(_), [.., high, low]) => write!(f, "::ffff:{high:x}:{low:x}"),
            (None, _) => write!(f, "{}", self.0),
        }
    }
}

/// Appends a version 2 header for a connection from `source` to `destination`.
pub fn write_v2(out: &mut Vec<u8>, source: SocketAddr, destination: SocketAddr) {
    out.extend_from_slice(&v2::SIGNATURE);
    match AddressPair::new(source, destination) {
        AddressPair::V4(source, destination) => {
            out.extend_from_slice(&[v2::PROXY, v2::TCP4, 0, 12]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
        AddressPair::V6(source, destination) => {
            out.extend_from_slice(&[v2::PROXY, v2::TCP6, 0, 36]);
            out.extend_from_slice(&source.octets());
            out.extend_from_slice(&destination.octets());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

/// Appends a version 2 header that asks a proxy to connect to `destination`, with `authority`
/// (`PP2_TYPE_AUTHORITY`) if that is not empty. It names no client: source and destination are
/// equal, as for Varnish's `.via`.
pub fn write_via(out: &mut Vec<u8>, destination: SocketAddr, authority: &str) {
    let start = out.len();
    write_v2(out, destination, destination);
    let authority = &authority.as_bytes()[..authority.len().min(v2::AUTHORITY_MAX)];
    if !authority.is_empty() {
        let length = authority.len() as u16;
        out.push(v2::TYPE_AUTHORITY);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(authority);
        let [high, low] = [start + v2::SIGNATURE.len() + 2, start + v2::SIGNATURE.len() + 3];
        let all = u16::from_be_bytes([out[high], out[low]]) + 3 + length;
        [out[high], out[low]] = all.to_be_bytes();
    }
}

/// Appends a version 2 header for a connection of the sender's own.
pub fn write_local(out: &mut Vec<u8>) {
    out.extend_from_slice(&v2::SIGNATURE);
    out.extend_from_slice(&[v2::LOCAL, 0, 0, 0]);
}
