//! Failed requests: the latest ones of the log, with similar requests merged into one row.
//!
//! Its texts come from clients and origins. They must never reach a terminal unescaped.

use std::collections::VecDeque;

use crate::format::FieldPositions;
use crate::record::{Flags, Record};
use crate::text::Printable;

/// Longest text that is kept, in bytes.
const TEXT_BYTES: usize = 400;

/// A row: one failed request, and the number of similar ones.
///
/// Its texts are escaped for a terminal ([`Printable`]), but not for HTML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedRequest {
    /// Start of the latest request, in milliseconds since 1970 UTC.
    pub unix_ms: u64,
    /// Number of similar requests.
    pub count: u64,
    /// Status sent.
    pub status: u16,
    /// Cache result, as logs show it.
    pub served: &'static str,
    /// Method of the first request.
    pub method: String,
    /// Site of the request.
    pub site: String,
    /// Host and target.
    pub url: String,
    /// True if the scheme was `https`.
    pub secure: bool,
    /// The error that occurred.
    pub error: String,
    /// The limit that was reached.
    pub limit: String,
    /// Origin and server that the request was sent to.
    pub server: String,
    /// Client address of the latest request; empty over a unix socket.
    pub client: String,
    /// User-Agent of the latest request.
    pub agent: String,
}

/// Status that the log has for a client that left before its response, as in nginx's log.
const CLIENT_LEFT: u16 = 499;

/// The latest failed requests, the oldest row first.
#[derive(Clone, Debug)]
pub struct FailedRequests {
    rows: VecDeque<FailedRequest>,
    left: u64,
    most: usize,
}

/// Returns true if the request failed in Larder or at the origin. A missing page is no failure, nor
/// is a client that left.
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

/// Joins two texts with `between`.
fn joined(first: &[u8], between: &[u8], second: &[u8]) -> String {
    kept(&[first, between, second].concat())
}

impl FailedRequests {
    /// Makes an empty list of at most `most` rows.
    pub fn new(most: usize) -> Self {
        Self { rows: VecDeque::with_capacity(most), left: 0, most: most.max(1) }
    }

    /// Adds the record if its request failed.
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

    /// Returns the rows of one site.
    pub fn of_site(&self, site: &str) -> Self {
        let mut own = Self::new(self.most);
        own.rows.extend(self.rows.iter().filter(|row| row.site == site).cloned());
        own
    }

    /// Returns the number of clients that left before their response.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Iterates over the rows, the latest first.
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
        let (mut failed_requests, fields) = (FailedRequests::new(3), FieldPositions::default());
        for (at, target) in [b"/1", b"/2", b"/1", b"/3"].into_iter().enumerate() {
            let record = Record { start_unix_ms: at as u64, ..failed(target, b"connect") };
            failed_requests.add(&record, &fields);
        }
        let told = |failed_requests: &FailedRequests| -> Vec<(String, u64, u64)> {
            failed_requests.latest().map(|row| (row.url.clone(), row.count, row.unix_ms)).collect()
        };
        let row = |url: &str, count, at| (url.to_owned(), count, at);
        assert_eq!(told(&failed_requests), [row("a/3", 1, 3), row("a/1", 2, 2), row("a/2", 1, 1)]);
        failed_requests.add(&failed(b"/1", b"first byte"), &fields);
        assert_eq!(failed_requests.latest().count(), 3, "no more than were asked for");
        assert_eq!(failed_requests.latest().next().map(|row| row.count), Some(1), "another reason");
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
        let (mut failed_requests, fields) = (FailedRequests::new(3), FieldPositions::default());
        failed_requests
            .add(&Record { status: 499, ..failed(b"/favicon.ico", b"client gone") }, &fields);
        failed_requests.add(&Record { site: b"shop", ..failed(b"/cart", b"connect") }, &fields);
        failed_requests.add(&failed(b"/other", b"connect"), &fields);
        assert_eq!((failed_requests.left(), failed_requests.latest().count()), (1, 2));
        let shop = failed_requests.of_site("shop");
        let urls: Vec<_> = shop.latest().map(|row| row.url.as_str()).collect();
        assert_eq!(urls, ["a/cart"]);
    }

    #[test]
    fn texts_are_short_and_do_nothing() {
        let mut failed_requests = FailedRequests::new(1);
        let target = [b"/\x1b[2J".as_slice(), &[b'x'; 1000]].concat();
        failed_requests.add(&failed(&target, b"connect"), &FieldPositions::default());
        let row = failed_requests.latest().next().expect("one");
        assert!(row.url.starts_with("a/\\x1B[2J") && row.url.len() < 420, "{}", row.url);
    }
}
