//! Access log lines: a parser of the combined format of Apache and nginx (further fields may
//! follow), the common format, and Larder's JSON.
//!
//! It must accept any bytes: a line that it cannot read is `None`, never a panic.

use message::date::parse_http_date;

/// A parsed line of an access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The client's address or name, as the log has it.
    pub client: String,
    /// Time of the request in seconds since 1970 UTC.
    pub unix_s: u64,
    /// Offset of the log's time zone from UTC, in seconds.
    pub zone_s: i64,
    /// Method; empty if the request could not be read.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Status.
    pub status: u16,
    /// Bytes of body.
    pub bytes: u64,
    /// User-Agent; empty if absent.
    pub agent: String,
    /// True if the cache answered; `None` if the log does not say.
    pub hit: Option<bool>,
}

/// Parses a line; `None` if its format is unknown.
pub fn parse(line: &str) -> Option<Line> {
    let line = line.trim_end_matches(['\r', '\n']);
    if line.starts_with('{') { json(line) } else { combined(line) }
}

fn combined(line: &str) -> Option<Line> {
    let (client, rest) = line.split_once(' ')?;
    // A user name may contain blanks; the bracket of the date follows it in any case.
    let (_, rest) = rest.split_once(" [")?;
    let (date, rest) = rest.split_once("] \"")?;
    let (unix_s, zone_s) = time(date)?;
    let (request, rest) = quoted(rest)?;
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut numbers = rest.trim_start().splitn(3, ' ');
    let status = numbers.next()?.parse().ok()?;
    let bytes = match numbers.next()? {
        "-" => 0,
        bytes => bytes.parse().ok()?,
    };
    let (agent, behind) = numbers.next().and_then(fields).unwrap_or_default();
    let agent = if agent == "-" { String::new() } else { agent };
    Some(Line {
        client: client.to_owned(),
        unix_s,
        zone_s,
        method: if target.is_empty() { String::new() } else { method.to_owned() },
        target: target.to_owned(),
        status,
        bytes,
        agent,
        hit: behind.split([' ', '"', '=', ',']).find_map(verdict),
    })
}

/// Returns the second of two quoted texts, and the rest of the line.
fn fields(rest: &str) -> Option<(String, &str)> {
    let (_, rest) = quoted(rest.strip_prefix('"')?)?;
    let (agent, rest) = quoted(rest.trim_start().strip_prefix('"')?)?;
    Some((agent, rest))
}

/// Returns the text up to its closing quote, and the rest of the line.
fn quoted(rest: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, &rest[at + 1..])),
            // Apache writes `\"` where nginx writes `\x22`.
            '\\' => {
                text.push(c);
                text.extend(chars.next().map(|(_, c)| c));
            }
            c => text.push(c),
        }
    }
    None
}

/// Reads the cache's result: true for a hit, false for a miss, `None` for results that the hit
/// ratio leaves out. It knows the values of nginx's `$upstream_cache_status`, of Varnish's
/// `%{Varnish:handling}x`, Squid's result codes, and Larder's own.
fn verdict(word: &str) -> Option<bool> {
    let word = word.split('/').next().unwrap_or_default();
    match word.to_ascii_uppercase().as_str() {
        "HIT" | "STALE" | "UPDATING" | "STALE-ERROR" | "TCP_HIT" | "TCP_MEM_HIT"
        | "TCP_IMS_HIT" | "TCP_INM_HIT" => Some(true),
        "REVALIDATED"
        | "MISS"
        | "EXPIRED"
        | "BYPASS"
        | "PASS"
        | "COLLAPSED"
        | "HIT-FOR-MISS"
        | "PIPE"
        | "TCP_MISS"
        | "TCP_REFRESH_UNMODIFIED"
        | "TCP_REFRESH_MODIFIED" => Some(false),
        _ => None,
    }
}

/// Parses `10/Oct/2000:13:55:36 -0700` to seconds since 1970 UTC and the zone's offset in seconds.
fn time(text: &str) -> Option<(u64, i64)> {
    let (date, zone) = text.split_once(' ')?;
    let (day, clock) = date.split_once(':')?;
    let [day, month, year] = <[&str; 3]>::try_from(day.split('/').collect::<Vec<_>>()).ok()?;
    // The parser of HTTP dates does not check the weekday.
    let date = format!("Thu, {day} {month} {year} {clock} GMT");
    let local = parse_http_date(date.as_bytes(), 0)?;
    let (sign, digits) = match zone.as_bytes().first()? {
        b'+' => (1, &zone[1..]),
        b'-' => (-1, &zone[1..]),
        _ => return None,
    };
    let number: i64 = digits.parse().ok().filter(|_| digits.len() == 4)?;
    let zone_s = sign * (number / 100 * 3600 + number % 100 * 60);
    Some((local.checked_add_signed(-zone_s)?, zone_s))
}

fn json(line: &str) -> Option<Line> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let time = value["time"].as_f64().filter(|time| (0.0..1e12).contains(time))?;
    Some(Line {
        client: value["client"].as_str()?.to_owned(),
        unix_s: time as u64,
        zone_s: 0,
        method: text("method"),
        target: text("target"),
        status: value["status"].as_u64()?.try_into().ok()?,
        bytes: value["bytes"].as_u64().unwrap_or(0),
        agent: text("agent"),
        hit: value["cache"].as_str().and_then(verdict),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const APACHE: &str = "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \
        \"GET /apache_pb.gif?a=b HTTP/1.0\" 200 2326 \"http://www.example.com/start.html\" \
        \"Mozilla/4.08 [en] (Win98; \\\"I\\\" ;Nav)\"";

    #[test]
    fn a_combined_line_is_read() {
        let line = parse(APACHE).expect("a line");
        assert_eq!((line.unix_s, line.zone_s), (971_211_336, -7 * 3600));
        assert_eq!((line.client.as_str(), line.method.as_str()), ("127.0.0.1", "GET"));
        assert_eq!((line.status, line.bytes, line.hit), (200, 2326, None));
        assert_eq!(line.target, "/apache_pb.gif?a=b");
        assert_eq!(line.agent, "Mozilla/4.08 [en] (Win98; \\\"I\\\" ;Nav)");
    }

    #[test]
    fn caches_say_their_verdict_behind_it() {
        for (behind, hit) in [
            (" HIT", Some(true)),
            (" \"MISS\"", Some(false)),
            (" rt=0.001 cache=\"STALE\"", Some(true)),
            (" TCP_MEM_HIT:HIER_NONE", None),
            (" TCP_MEM_HIT/200", Some(true)),
            (" \"-\"", None),
        ] {
            assert_eq!(parse(&format!("{APACHE}{behind}")).expect("a line").hit, hit, "{behind}");
        }
    }

    #[test]
    fn common_lines_and_unreadable_requests_are_lines_too() {
        let line = parse("::1 - - [01/Jan/2026:00:00:01 +0130] \"-\" 400 -").expect("a line");
        assert_eq!((line.client.as_str(), line.method.as_str()), ("::1", ""));
        assert_eq!((line.unix_s, line.bytes), (1_767_225_601 - 5400, 0));
        assert_eq!((line.agent.as_str(), line.target.as_str()), ("", ""));
    }

    #[test]
    fn what_larder_writes_is_read() {
        use crate::format::{self, FieldPositions};
        use crate::{Record, Served};
        let record = Record {
            start_unix_ms: 1_795_600_000_250,
            client: Some([192, 0, 2, 1].into()),
            status: 200,
            body_out: 7,
            served: Served::Hit,
            method: b"GET",
            target: b"/a b\"c",
            ..Record::default()
        };
        let read = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            parse(&String::from_utf8(out).expect("text")).expect("a line")
        };
        let fields = FieldPositions::default();
        let json = read(&|out| format::json(&record, &fields, false, out));
        let plain = read(&|out| format::combined(&record, &fields, out));
        assert_eq!((json.unix_s, json.bytes, json.hit), (1_795_600_000, 7, Some(true)));
        assert_eq!((plain.unix_s, plain.client.as_str()), (json.unix_s, "192.0.2.1"));
    }

    proptest::proptest! {
        #[test]
        fn no_line_makes_it_fail(
            text in ".{0,80}",
            date in "[0-9/:JanFeb +-]{0,30}",
            numbers in "[0-9 .-]{0,20}",
        ) {
            crate::fuzz::access_line(text.as_bytes());
            let line = format!("a - - [{date}] \"GET {text}\" {numbers} \"{text}");
            crate::fuzz::access_line(line.as_bytes());
        }
    }

    #[test]
    fn other_lines_are_none() {
        for text in [
            "",
            "{}",
            "{\"time\":-1,\"client\":\"a\",\"status\":200}",
            "hello",
            "a - - [x] \"GET / HTTP/1.1\" 200 1",
            "a - - [01/Jan/2026:00:00:01] \"GET / HTTP/1.1\" 200 1",
            "a - - [01/Jan/2026:00:00:01 +00é0] \"GET / HTTP/1.1\" 200 1",
            "a - - [01/Jan/2026:00:00:01 +0000] \"GET / HTTP/1.1 200 1",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
