//! Test helpers: a request, tables of pages, and responses as bytes.

use std::borrow::Cow;
use std::ops::Range;

use crate::{Environment, Fragment, ResolvedNode};

/// The request for the tables' pages.
#[derive(Debug)]
pub(crate) struct Request(pub(crate) &'static str);

impl Environment for Request {
    fn host(&self) -> &[u8] {
        b"h"
    }

    fn path(&self) -> &[u8] {
        b"/base/p"
    }

    fn query(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn header(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        let value: &[u8] = match &name.to_ascii_lowercase()[..] {
            b"host" => b"h",
            b"cookie" => b"c=cv; d=<x> \"&'; q=\"1\"; e=",
            b"x-foo" => b"bar",
            b"x-q" => b"\xe9 ~/?#+%",
            b"x-all" => b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
            b"user-agent" => b"Mozilla/5.0 (X11; Linux x86_64)",
            b"accept-language" => b"de, en-GB;q=0.5",
            _ => return None,
        };
        Some(Cow::Borrowed(value))
    }

    fn unix_seconds(&self) -> u64 {
        0
    }

    fn variable(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        match name {
            b"scheme" => Some(Cow::Borrowed(b"http")),
            b"server_name" => Some(Cow::Borrowed(b"sn")),
            _ => None,
        }
    }
}

/// The response to a client, with the fragments that `fetch` returns; `None` if a fragment fails
/// the page.
pub(crate) fn sent(
    ops: &[ResolvedNode],
    page: &[u8],
    fetch: &dyn Fn(&Fragment) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for op in ops {
        match op {
            ResolvedNode::Text(range) => out.extend_from_slice(&page[place(range)]),
            ResolvedNode::Bytes(bytes) => out.extend_from_slice(bytes),
            ResolvedNode::Include(fragment) => {
                let body = fetch(fragment)?;
                match &fragment.stub {
                    Some(stub) if body.is_empty() => out.extend(sent(stub, page, fetch)?),
                    _ => out.extend(body),
                }
            }
            ResolvedNode::Try { attempt, except } => match sent(attempt, page, fetch) {
                Some(bytes) => out.extend(bytes),
                None => out.extend(sent(except, page, fetch)?),
            },
        }
    }
    Some(out)
}

/// A range of a page in memory.
pub(crate) fn place(range: &Range<u64>) -> Range<usize> {
    let at = |offset: u64| usize::try_from(offset).expect("in memory");
    at(range.start)..at(range.end)
}

/// The bytes of a table's line.
pub(crate) fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => out.push(b'\n'),
                Some('t') => out.push(b'\t'),
                Some('r') => out.push(b'\r'),
                Some('x') => {
                    let digits: String = chars.by_ref().take(2).collect();
                    out.push(u8::from_str_radix(&digits, 16).expect("two digits"));
                }
                _ => out.push(b'\\'),
            },
            c => out.push(u8::try_from(c).expect("ASCII")),
        }
    }
    out
}

/// The line of a table for these bytes.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    let one = |byte: &u8| match byte {
        b'\n' => "\\n".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\\' => "\\\\".to_owned(),
        32..127 => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    };
    bytes.iter().map(one).collect()
}
