//! Comparison of records: the parts of a reply that count, and the differences of two records.
//!
//! Ignored are: the servers' own names (`Server`, `Via`, the last line of a synthetic page),
//! transaction ids, `Date`, one second of `Age`, `Connection: keep-alive` in HTTP/1.1, a
//! `Content-Length: 0` towards origins (RFC 9110 8.6 asks for it), and the framing of the bare 500
//! after a failure in `vcl_synth`, which Varnish omits. A whole gzip body counts decoded, because
//! coders differ. All else must be equal. Fields are a set, except that lines of one name keep
//! their order; names ignore case.

use std::fmt::{self, Write};
use std::io::Read;

use flate2::read::MultiGzDecoder;

use super::scenario::{Leeway, ScenarioRequest};
use crate::reference_reader::ParsedRequest;
use crate::reply::{Reply, ReplyOutcome};
use crate::wire::Fields;

/// Replaces a length that includes ignored bytes.
const UNCOUNTED: &str = "LENGTH";

/// The fields of a reply that no program has changed.
const BARE: [&str; 2] = ["connection: close", "content-length: 0"];

/// An event, as lines to compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Title of the event, such as the request of a reply.
    pub head: String,
    /// The lines to compare.
    pub lines: Vec<String>,
}

/// The events of one server in one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Events in order; simultaneous ones are sorted.
    pub events: Vec<Event>,
    /// Expectations that failed.
    pub failed: Vec<String>,
    /// True if an origin received bytes that are no request.
    pub garbled: bool,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = String::new();
        for event in &self.events {
            whole(&mut told, ' ', event);
        }
        f.write_str(&told)
    }
}

/// Shows a reply as lines; `line` is its status line, `old` means a request in HTTP/1.0.
pub(super) fn answer(line: &str, seen: &ReplyOutcome, old: bool) -> Vec<String> {
    let (mark, reply) = match seen {
        ReplyOutcome::Complete(reply) => (None, reply),
        ReplyOutcome::Truncated(reply) => (Some("the body is cut short"), reply),
        other => return vec![format!("{other:?} {line}").trim_end().to_owned()],
    };
    let mut lines: Vec<String> =
        reply.interim.iter().map(|status| format!("interim {status}")).collect();
    lines.push(line.to_owned());
    let (body, touched) = body(reply);
    let mut own = fields(&reply.fields, touched);
    if line == "HTTP/1.1 500 Internal Server Error" && own == BARE {
        own.clear();
    }
    let own = own.into_iter();
    lines.extend(own.filter(|line| old || line != "connection: keep-alive"));
    // The length of a cut body is chance.
    lines.push(mark.map_or_else(|| format!("| {body}"), str::to_owned));
    lines
}

/// Removes the parts of a reply that may differ.
pub(super) fn without(seen: &ReplyOutcome, allows: Leeway, ask: &ScenarioRequest) -> ReplyOutcome {
    let mut seen = seen.clone();
    let ReplyOutcome::Complete(reply) = &mut seen else { return seen };
    let mut unsaid: Vec<&str> = Vec::new();
    if allows.framing && ask.method != "HEAD" && ![206, 304, 416].contains(&reply.status) {
        unsaid.extend(["content-length", "transfer-encoding"]);
        if ask.old {
            unsaid.push("connection");
        }
    }
    reply.fields.retain(|(name, _)| !unsaid.iter().any(|own| name.eq_ignore_ascii_case(own)));
    seen
}

/// Shows a request to an origin as lines.
pub(super) fn request(seen: &Result<ParsedRequest, String>) -> Vec<String> {
    match seen {
        Err(fault) => vec![fault.clone()],
        Ok(request) => {
            let version = if request.old { "1.0" } else { "1.1" };
            let mut lines = vec![format!("{} {} HTTP/{version}", request.method, request.target)];
            let own = fields(&request.fields, false).into_iter();
            lines.extend(own.filter(|line| line != "content-length: 0"));
            lines.push(format!("| {}", shown(&request.body)));
            lines
        }
    }
}

/// Field lines sorted by name.
fn fields(fields: &Fields, touched: bool) -> Vec<String> {
    let mut lines: Vec<(String, String)> = fields
        .iter()
        .map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            let value = plain(&name, &String::from_utf8_lossy(value), touched);
            (name, value)
        })
        .collect();
    // A stable sort by name alone: one name's lines keep their order.
    lines.sort_by(|one, other| one.0.cmp(&other.0));
    lines.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

/// A field's value without the ignored parts.
fn plain(name: &str, value: &str, touched: bool) -> String {
    let is_name = |text: &str| ["varnish", "larder"].contains(&text.to_ascii_lowercase().as_str());
    match name {
        "date" => "DATE".to_owned(),
        "x-varnish" => value.split(' ').map(|_| "#").collect::<Vec<_>>().join(" "),
        "server" if is_name(value.split('/').next().unwrap_or_default()) => "NAME".to_owned(),
        "content-length" if touched => UNCOUNTED.to_owned(),
        "via" => {
            let hops = value.split(',').map(|hop| {
                let version = hop.trim().split(' ').next().unwrap_or_default();
                format!("{version} NAME")
            });
            hops.collect::<Vec<_>>().join(", ")
        }
        _ => value.to_owned(),
    }
}

/// Decodes a gzip body, or an empty one; `None` if it is incomplete.
fn unpacked(body: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    if !body.is_empty() {
        MultiGzDecoder::new(body).read_to_end(&mut plain).ok()?;
    }
    Some(plain)
}

/// The body without the ignored parts, and true if there were any.
fn body(reply: &Reply) -> (String, bool) {
    let coding = reply.field("content-encoding");
    if coding.is_some_and(|coding| coding.eq_ignore_ascii_case("gzip"))
        && let Some(unpacked) = unpacked(&reply.body)
    {
        return (format!("gzip: {}", shown(&unpacked)), true);
    }
    let text = shown(&reply.body);
    let mut plain = String::new();
    for line in text.split_inclusive('\n') {
        let inner = line.trim();
        if inner.starts_with("<p>XID: ") {
            plain.push_str("<p>XID: #</p>\n");
        } else if inner.starts_with("<p>") && inner.ends_with(" cache server</p>") {
            plain.push_str("<p>NAME cache server</p>\n");
        } else {
            plain.push_str(line);
        }
    }
    // Of a synthetic page requested by HEAD only the length is known.
    let page = text.is_empty() && reply.field("retry-after").is_some_and(|value| value == "5");
    let touched = page || plain != text;
    (plain, touched)
}

/// Shows text as it is; of a long one the beginning, the length and a checksum.
fn shown(bytes: &[u8]) -> String {
    if bytes.len() < 2000 {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, b| {
        (sum ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3)
    });
    let begin = String::from_utf8_lossy(&bytes[..100]);
    format!("{begin}... {} bytes, sum {sum:x}", bytes.len())
}

/// Returns true if two lines are equal, with `Age` within a second.
fn same(one: &str, other: &str) -> bool {
    let age = |line: &str| line.strip_prefix("age: ").and_then(|age| age.parse::<i64>().ok());
    match (age(one), age(other)) {
        (Some(one), Some(other)) => (one - other).abs() <= 1,
        _ => one == other,
    }
}

/// The differences of two records; empty if there are none. `-` is the first one's, `+` the
/// other's.
pub fn differences(one: &Record, other: &Record) -> String {
    let mut told = String::new();
    let (a, b) = (&one.events, &other.events);
    for at in 0..a.len().max(b.len()) {
        match (a.get(at), b.get(at)) {
            (Some(one), Some(other)) => parts(&mut told, one, other),
            (Some(one), None) => whole(&mut told, '-', one),
            (None, Some(other)) => whole(&mut told, '+', other),
            (None, None) => {}
        }
    }
    told
}

fn whole(told: &mut String, sign: char, event: &Event) {
    _ = writeln!(told, "  {sign} {}", event.head);
    for line in &event.lines {
        _ = writeln!(told, "  {sign}   {}", line.trim_end());
    }
}

fn parts(told: &mut String, one: &Event, other: &Event) {
    let fits = |lines: &[String], line: &String| lines.iter().any(|own| same(own, line));
    let gone: Vec<&String> = one.lines.iter().filter(|line| !fits(&other.lines, line)).collect();
    let new: Vec<&String> = other.lines.iter().filter(|line| !fits(&one.lines, line)).collect();
    let order = gone.is_empty() && new.is_empty() && one.lines.len() == other.lines.len();
    let in_order = one.lines.iter().zip(&other.lines).all(|(a, b)| same(a, b));
    if one.head == other.head && order && in_order {
        return;
    }
    if gone.is_empty() && new.is_empty() {
        whole(told, '-', one);
        return whole(told, '+', other);
    }
    _ = writeln!(told, "    {}", one.head);
    if one.head != other.head {
        _ = writeln!(told, "  + {}", other.head);
    }
    for (sign, lines) in [('-', gone), ('+', new)] {
        for line in lines {
            _ = writeln!(told, "  {sign}   {}", line.trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{ConnectionEnd, read_reply};

    fn event(head: &str, reply: &str) -> Record {
        let (seen, _) =
            read_reply(reply.as_bytes(), "GET", ConnectionEnd::Closed).expect("a reply");
        let line = reply.lines().next().unwrap_or_default();
        let event = Event { head: head.to_owned(), lines: answer(line, &seen, false) };
        Record { events: vec![event], ..Record::default() }
    }

    #[test]
    fn names_ids_and_dates_do_not_count() {
        let one = "HTTP/1.1 503 No\r\nVia: 1.1 varnish (Varnish/7.1)\r\nX-Varnish: 1 2\r\nAge: 3\r\n\
                   Server: Varnish\r\nDate: today\r\nContent-Length: 15\r\n\r\n<p>XID: 12</p>\n";
        let other = "HTTP/1.1 503 No\r\nx-varnish: 300 2\r\nAGE: 4\r\nVia: 1.1 larder\r\n\
                     Date: now\r\nServer: Larder\r\nContent-Length: 16\r\n\r\n<p>XID: 123</p>\n";
        assert_eq!(differences(&event("GET /", one), &event("GET /", other)), "");
    }

    #[test]
    fn everything_else_counts() {
        let one = "HTTP/1.1 200 OK\r\nA: 1\r\nA: 2\r\nAge: 3\r\nContent-Length: 1\r\n\r\na";
        for (from, to, told) in [
            ("200 OK", "200 Ok", "    GET /\n  -   HTTP/1.1 200 OK\n  +   HTTP/1.1 200 Ok\n"),
            ("\r\n\r\na", "\r\n\r\nb", "    GET /\n  -   | a\n  +   | b\n"),
            ("Age: 3", "Age: 5", "    GET /\n  -   age: 3\n  +   age: 5\n"),
            ("A: 1\r\n", "", "    GET /\n  -   a: 1\n"),
        ] {
            let other = one.replace(from, to);
            assert_eq!(differences(&event("GET /", one), &event("GET /", &other)), told);
        }
        let swapped = one.replace("A: 1\r\nA: 2", "A: 2\r\nA: 1");
        assert_ne!(differences(&event("GET /", one), &event("GET /", &swapped)), "");
    }

    #[test]
    fn a_bare_500_needs_no_framing() {
        let one = "HTTP/1.1 500 Internal Server Error\r\n\r\n";
        let other = "HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n\
                     Content-Length: 0\r\n\r\n";
        assert_eq!(differences(&event("GET /", one), &event("GET /", other)), "");
        let more = other.replace("Connection", "X-A: 1\r\nConnection");
        assert_ne!(differences(&event("GET /", one), &event("GET /", &more)), "");
    }

    #[test]
    fn a_surplus_request_is_shown_whole() {
        let (one, other) = (Record::default(), event("o1", "HTTP/1.1 200 OK\r\n\r\n"));
        assert!(differences(&one, &other).starts_with("  + o1\n"));
    }
}
