//! The latest requests that went wrong, those alike in one row.

use std::collections::VecDeque;

use crate::format::FieldPositions;
use crate::record::{Flags, Record};
use crate::text::Printable;

/// Bytes of a text that are kept.
const TEXT_BYTES: usize = 400;

/// One request that went wrong, and how many were like it.
///
/// Its texts come from strangers. They are fit for a terminal ([`Printable`]), and no more than
/// text for whoever shows them elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// When the latest of them began: milliseconds since 1970 UTC.
    pub unix_ms: u64,
    /// The number of such requests.
    pub count: u64,
    /// Status sent.
    pub status: u16,
    /// The way in which it was served.
    pub served: &'static str,
    /// Method of the first.
    pub method: String,
    /// The site that was asked.
    pub site: String,
    /// Host and target.
    pub url: String,
    /// It was asked for with `https`.
    pub secure: bool,
    /// The error that occurred.
    pub error: String,
    /// The limit that was reached.
    pub limit: String,
    /// Origin and server that was asked.
    pub server: String,
    /// The client of the latest of them; empty over a unix socket.
    pub client: String,
    /// The latest one's User-Agent.
    pub agent: String,
}

/// The status of a request whose client left before its answer, as nginx logs it.
const CLIENT_LEFT: u16 = 499;

/// The latest of them, the oldest first.
#[derive(Clone, Debug)]
pub struct FailedRequests {
    rows: VecDeque<FailedRequest>,
    left: u64,
    most: usize,
}

/// Returns true if a request failed here or at the origin. A page that does not exist is no
/// failure, nor is a client that left.
pub fn went_wrong(record: &Record<'_>) -> bool {
    if record.status == CLIENT_LEFT {
        return false;
    }
    record.status >= 500
        || !record.error.is_empty()
        || !record.limit.is_empty()
        || record.flags.has(Flags::REFUSED)
}

fn kept(text: &[u8]) -> String {
    Printable(&text[..text.len().min(TEXT_BYTES)]).to_string()
}

/// Two texts, one behind the other.
fn joined(first: &[u8], between: &[u8], second: &[u8]) -> String {
    kept(&[first, between, second].concat())
}

impl FailedRequests {
    /// None yet; `most` rows are kept.
    pub fn new(most: usize) -> Self {
        Self { rows: VecDeque::with_capacity(most), left: 0, most: most.max(1) }
    }

    /// Takes a record in, if something went wrong.
    pub fn add(&mut self, record: &Record<'_>, fields: &FieldPositions) {
        self.left += u64::from(record.status == CLIENT_LEFT);
        if !went_wrong(record) {
            return;
        }
        let url = kept(&record.address());
        let (error, limit) = (kept(record.error), kept(record.limit));
        let alike = |row: &FailedRequest| {
            row.status == record.status
                && row.url == url
                && row.error == error
                && row.limit == limit
        };
        let before = self.rows.iter().position(alike).and_then(|at| self.rows.remove(at));
        let count = before.map_or(0, |row| row.count) + 1;
        if self.rows.len() == self.most {
            self.rows.pop_front();
        }
        let between: &[u8] = if record.server.is_empty() { b"" } else { b" " };
        self.rows.push_back(FailedRequest {
            unix_ms: record.start_unix_ms,
            count,
            status: record.status,
            served: record.served.word(),
            method: kept(record.method),
            site: kept(record.site),
            url,
            secure: record.flags.has(Flags::TLS),
            error,
            limit,
            server: joined(record.origin, between, record.server),
            client: record.client.map(|address| address.to_string()).unwrap_or_default(),
            agent: kept(fields.agent(record).unwrap_or_default()),
        });
    }

    /// Those of one site, to go on from.
    pub fn of_site(&self, site: &str) -> Self {
        let mut own = Self::new(self.most);
        own.rows.extend(self.rows.iter().filter(|row| row.site == site).cloned());
        own
    }

    /// The number of clients that left before their answer came.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The latest first.
    pub fn latest(&self) -> impl Iterator<Item = &FailedRequest> {
        self.rows.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed<'a>(target: &'a [u8], error: &'a [u8]) -> Record<'a> {
        Record { host: b"a", target, error, status: 503, ..Record::default() }
    }

    #[test]
    fn those_alike_share_a_row_which_comes_first_again() {
        let (mut troubles, fields) = (FailedRequests::new(3), FieldPositions::default());
        for (at, target) in [b"/1", b"/2", b"/1", b"/3"].into_iter().enumerate() {
            let record = Record { start_unix_ms: at as u64, ..failed(target, b"connect") };
            troubles.add(&record, &fields);
        }
        let told = |troubles: &FailedRequests| -> Vec<(String, u64, u64)> {
            troubles.latest().map(|row| (row.url.clone(), row.count, row.unix_ms)).collect()
        };
        let row = |url: &str, count, at| (url.to_owned(), count, at);
        assert_eq!(told(&troubles), [row("a/3", 1, 3), row("a/1", 2, 2), row("a/2", 1, 1)]);
        troubles.add(&failed(b"/1", b"first byte"), &fields);
        assert_eq!(troubles.latest().count(), 3, "no more than were asked for");
        assert_eq!(troubles.latest().next().map(|row| row.count), Some(1), "another reason");
    }

    #[test]
    fn a_page_that_is_not_there_is_no_trouble() {
        assert!(!went_wrong(&Record { status: 404, ..Record::default() }));
        assert!(went_wrong(&Record { status: 404, limit: b"ranges", ..Record::default() }));
        assert!(went_wrong(&Record { status: 200, error: b"cut off", ..Record::default() }));
        assert!(went_wrong(&Record { status: 502, ..Record::default() }));
    }

    #[test]
    fn clients_that_left_are_counted_and_no_trouble() {
        let (mut troubles, fields) = (FailedRequests::new(3), FieldPositions::default());
        troubles.add(&Record { status: 499, ..failed(b"/favicon.ico", b"client gone") }, &fields);
        troubles.add(&Record { site: b"shop", ..failed(b"/cart", b"connect") }, &fields);
        troubles.add(&failed(b"/other", b"connect"), &fields);
        assert_eq!((troubles.left(), troubles.latest().count()), (1, 2));
        let shop = troubles.of_site("shop");
        let urls: Vec<_> = shop.latest().map(|row| row.url.as_str()).collect();
        assert_eq!(urls, ["a/cart"]);
    }

    #[test]
    fn texts_are_short_and_do_nothing() {
        let mut troubles = FailedRequests::new(1);
        let target = [b"/\x1b[2J".as_slice(), &[b'x'; 1000]].concat();
        troubles.add(&failed(&target, b"connect"), &FieldPositions::default());
        let row = troubles.latest().next().expect("one");
        assert!(row.url.starts_with("a/\\x1B[2J") && row.url.len() < 420, "{}", row.url);
    }
}
