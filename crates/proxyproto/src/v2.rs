//! Version 2: a binary header.

use std::net::{IpAddr, SocketAddr};

use crate::crc;
use crate::error::Error;
use crate::header::{Header, HeaderProgress, agree, canonical};

pub(crate) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Signature, version and command, family and transport, length of the rest.
pub(crate) const FIXED: usize = 16;

/// Version in the high half, command in the low one.
pub(crate) const LOCAL: u8 = 0x20;
pub(crate) const PROXY: u8 = 0x21;

/// Family in the high half, transport in the low one. Datagrams are invalid on connections.
const UNSPECIFIED: u8 = 0x00;
pub(crate) const TCP4: u8 = 0x11;
pub(crate) const TCP6: u8 = 0x21;
const UNIX: u8 = 0x31;

/// Two paths of 108 bytes.
const UNIX_BYTES: usize = 216;

/// The type of the value with the requested host name.
pub(crate) const TYPE_AUTHORITY: u8 = 0x02;

/// The type of the value with a CRC-32C of the whole header.
const TYPE_CRC32C: u8 = 0x03;

/// The longest host name (RFC 1035 2.3.4).
pub(crate) const AUTHORITY_MAX: usize = 255;

pub(crate) fn read(bytes: &[u8], max: usize) -> Result<HeaderProgress, Error> {
    if !agree(bytes, &SIGNATURE) {
        return Err(Error::Signature);
    }
    if bytes.get(12).is_some_and(|kind| !matches!(*kind, LOCAL | PROXY)) {
        return Err(Error::Kind);
    }
    let Some(fixed) = bytes.first_chunk::<FIXED>() else { return Ok(HeaderProgress::Partial) };
    let length = FIXED + usize::from(u16::from_be_bytes([fixed[14], fixed[15]]));
    if length > max {
        return Err(Error::TooLong);
    }
    let Some(header) = bytes.get(..length) else { return Ok(HeaderProgress::Partial) };
    of_header(header).map(|header| HeaderProgress::Complete(header, length))
}

/// The additional values of a complete header that names a client.
pub(crate) fn values(header: &[u8]) -> Option<&[u8]> {
    let fixed = header.first_chunk::<FIXED>().filter(|_| header.starts_with(&SIGNATURE))?;
    let used = match (fixed[12], fixed[13]) {
        (PROXY, UNSPECIFIED) => 0,
        (PROXY, TCP4) => 12,
        (PROXY, TCP6) => 36,
        (PROXY, UNIX) => UNIX_BYTES,
        _ => return None,
    };
    header.get(FIXED + used..)
}

/// Parses a complete header.
fn of_header(header: &[u8]) -> Result<Header, Error> {
    let body = &header[FIXED..];
    let (found, used) = match (header[12], header[13]) {
        // The rest must be ignored.
        (LOCAL, _) => return Ok(Header::Local),
        (_, UNSPECIFIED) => return Ok(Header::Unnamed),
        (_, TCP4) => {
            let block = body.first_chunk::<12>().ok_or(Error::Length)?;
            let [a, b, c, d, e, f, g, h, ports @ ..] = *block;
            (proxied([a, b, c, d].into(), [e, f, g, h].into(), ports), block.len())
        }
        (_, TCP6) => {
            let block = body.first_chunk::<36>().ok_or(Error::Length)?;
            let (source, rest) = block.split_first_chunk::<16>().ok_or(Error::Length)?;
            let (destination, ports) = rest.split_first_chunk::<16>().ok_or(Error::Length)?;
            let ports = *ports.first_chunk().ok_or(Error::Length)?;
            (proxied((*source).into(), (*destination).into(), ports), block.len())
        }
        (_, UNIX) if body.len() >= UNIX_BYTES => (Header::Unnamed, UNIX_BYTES),
        (_, UNIX) => return Err(Error::Length),
        _ => return Err(Error::Kind),
    };
    check_values(header, FIXED + used)?;
    Ok(found)
}

fn proxied(source: IpAddr, destination: IpAddr, [a, b, c, d]: [u8; 4]) -> Header {
    let at = |ip, port| canonical(SocketAddr::new(ip, u16::from_be_bytes(port)));
    Header::Proxied { source: at(source, [a, b]), destination: at(destination, [c, d]) }
}

/// Checks that the additional values from `at` on end where the header ends, and verifies a
/// checksum.
fn check_values(header: &[u8], mut at: usize) -> Result<(), Error> {
    let mut checked = false;
    while at < header.len() {
        let Some(&[kind, high, low]) = header[at..].first_chunk() else {
            return Err(Error::Length);
        };
        let value = at + 3;
        at = value + usize::from(u16::from_be_bytes([high, low]));
        let Some(bytes) = header.get(value..at) else { return Err(Error::Length) };
        if kind != TYPE_CRC32C {
            continue;
        }
        let sum = <[u8; 4]>::try_from(bytes).map_err(|_| Error::Length)?;
        let parts = [&header[..value], &[0; 4], &header[at..]];
        if checked || u32::from_be_bytes(sum) != crc::crc32c(&parts) {
            return Err(Error::Checksum);
        }
        checked = true;
    }
    Ok(())
}
