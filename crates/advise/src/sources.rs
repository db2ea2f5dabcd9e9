//! Sources of visits: the log ring of a running daemon, and access logs of nginx, Apache, Caddy,
//! HAProxy, varnishncsa and Larder. The format of each line is recognised by itself.
//!
//! A log is written by clients, too: a line must never be more than data, and one that cannot be
//! read is counted and left out.

mod haproxy;
mod json;
mod ncsa;
mod ring;
mod words;

use std::io::{self, BufRead};

use observe::record::Served;

use crate::visit::Visit;

pub use self::ring::RingVisits;

/// Longest line that is read, in bytes: several fields of 8 KiB, escaped.
const LINE_MAX: usize = 64 * 1024;

/// The visits of a log.
#[derive(Clone, Debug, Default)]
pub struct LogVisits {
    /// The last visits, in the order of the log.
    pub visits: Vec<Visit>,
    /// Lines that could not be read.
    pub unread: u64,
    /// The first of them, and its number from 1.
    pub first_unread: Option<(u64, String)>,
}

/// Reads the last `last` visits of a log.
///
/// # Errors
/// Those of `log`.
pub fn read_log(mut log: impl BufRead, last: usize) -> io::Result<LogVisits> {
    let mut found = LogVisits::default();
    let mut visits = std::collections::VecDeque::new();
    let (mut line, mut number) = (Vec::new(), 0);
    while read_line(&mut log, &mut line)? {
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        // Comments stand in front of W3C's and Squid's lines.
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match parse_line(text) {
            Some(visit) => visits.push_back(visit),
            None => {
                found.unread += 1;
                found.first_unread.get_or_insert_with(|| (number, text.to_owned()));
            }
        }
        if visits.len() > last {
            visits.pop_front();
        }
    }
    found.visits = visits.into();
    Ok(found)
}

/// Reads a line of any length, and keeps its first [`LINE_MAX`] bytes. Returns false at the end.
fn read_line(log: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let mut has_any = false;
    loop {
        let part = log.fill_buf()?;
        if part.is_empty() {
            return Ok(has_any);
        }
        has_any = true;
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(part.len());
        let room = LINE_MAX.saturating_sub(line.len());
        line.extend_from_slice(&part[..taken.min(room)]);
        let consumed = taken + usize::from(end.is_some());
        log.consume(consumed);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// Parses a line of an access log; `None` if its format is unknown.
pub fn parse_line(line: &str) -> Option<Visit> {
    let mut visit = if line.starts_with('{') {
        json::parse(line)?
    } else {
        ncsa::parse(line).or_else(|| haproxy::parse(line))?
    };
    split_absolute(&mut visit);
    if visit.served.is_some_and(Served::is_hit) {
        // The time of the request is none of an origin.
        visit.fetch_us = None;
    }
    let is_request = !visit.method.is_empty() && visit.target.starts_with(b"/");
    (is_request && (100..=999).contains(&visit.status)).then_some(visit)
}

/// Takes the host out of a target in absolute form, as varnishncsa writes targets.
fn split_absolute(visit: &mut Visit) {
    for (scheme, is_tls) in [(&b"http://"[..], false), (b"https://", true)] {
        let Some(rest) = visit.target.strip_prefix(scheme) else { continue };
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (host, path) = (String::from_utf8_lossy(&rest[..end]).into_owned(), &rest[end..]);
        let slash: &[u8] = if path.starts_with(b"/") { b"" } else { b"/" };
        let target = [slash, path].concat();
        visit.set_host(&host);
        visit.is_tls |= is_tls;
        visit.target = target;
    }
}

#[cfg(test)]
mod tests;
