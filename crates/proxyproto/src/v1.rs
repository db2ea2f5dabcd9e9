//! Version 1: one line of text.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::error::Error;
use crate::header::{Header, HeaderProgress, agree, canonical};

/// The longest line, including its CRLF: UNKNOWN with two IPv6 addresses.
const LINE_MAX: usize = 107;

const PREFIX: &[u8] = b"PROXY ";

pub(crate) fn read(bytes: &[u8]) -> Result<HeaderProgress, Error> {
    if !agree(bytes, PREFIX) {
        return Err(Error::Signature);
    }
    let line = &bytes[..bytes.len().min(LINE_MAX)];
    let Some(end) = line.iter().position(|b| *b == b'\n') else {
        // A line with further bytes behind its CR is malformed.
        let ended = line.split_last().is_some_and(|(_, before)| before.contains(&b'\r'));
        return match bytes.len() < LINE_MAX && !ended {
            true => Ok(HeaderProgress::Partial),
            false => Err(Error::Line),
        };
    };
    let header = line[..end].strip_suffix(b"\r").and_then(|line| {
        let rest = line.strip_prefix(PREFIX)?;
        of_line(std::str::from_utf8(rest).ok()?)
    });
    header.map(|header| HeaderProgress::Complete(header, end + 1)).ok_or(Error::Line)
}

/// Parses the text between `PROXY ` and the line's end; `None` if it is malformed.
fn of_line(text: &str) -> Option<Header> {
    let mut words = text.split(' ');
    let family = words.next()?;
    if family == "UNKNOWN" {
        // The rest must be ignored.
        return (!text.contains('\r')).then_some(Header::Unnamed);
    }
    let (source, destination) = (words.next()?, words.next()?);
    let (source_port, destination_port) = (port(words.next()?)?, port(words.next()?)?);
    if words.next().is_some() {
        return None;
    }
    let address = match family {
        "TCP4" => parse::<Ipv4Addr>,
        "TCP6" => parse::<Ipv6Addr>,
        _ => return None,
    };
    let at = |text, port| Some(canonical(SocketAddr::new(address(text)?, port)));
    Some(Header::Proxied {
        source: at(source, source_port)?,
        destination: at(destination, destination_port)?,
    })
}

fn parse<A: FromStr + Into<IpAddr>>(text: &str) -> Option<IpAddr> {
    text.parse::<A>().ok().map(Into::into)
}

/// A decimal number without sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let plain = text == "0" || text.starts_with(|c: char| matches!(c, '1'..='9'));
    plain.then(|| text.parse().ok()).flatten()
}
