//! NCSA's formats, common and combined, as Apache, nginx, varnishncsa and Larder write them: also
//! with a host in front and further values behind.

use super::words::{ncsa_ms, seconds_us, served, set, set_request};
use crate::visit::Visit;

/// A value of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LogValue {
    /// A bare word.
    Word(String),
    /// A text in quotation marks, without them.
    Quoted(String),
    /// A text in brackets, without them.
    Bracketed(String),
}

pub(super) fn parse(line: &str) -> Option<Visit> {
    let values = values(line);
    let date = values.iter().position(|value| matches!(value, LogValue::Bracketed(_)))?;
    let [LogValue::Bracketed(time), LogValue::Quoted(request), LogValue::Word(status), rest @ ..] =
        &values[date..]
    else {
        return None;
    };
    let mut visit = Visit { at_ms: ncsa_ms(time)?, ..Visit::default() };
    visit.status = status.parse().ok()?;
    set_request(&mut visit, request);
    for value in &values[..date] {
        let LogValue::Word(word) = value else { continue };
        match word.parse() {
            Ok(client) => visit.client = visit.client.or(Some(client)),
            Err(_) if word.contains('.') && visit.client.is_none() => visit.set_host(word),
            Err(_) => {}
        }
    }
    let (bytes, rest) = rest.split_first()?;
    let LogValue::Word(bytes) = bytes else { return None };
    visit.body_bytes = bytes.parse().unwrap_or(0);
    let rest = match rest {
        [LogValue::Quoted(referer), LogValue::Quoted(agent), rest @ ..] => {
            set(&mut visit, "referer", referer);
            set(&mut visit, "user_agent", agent);
            rest
        }
        rest => rest,
    };
    further(&mut visit, rest);
    Some(visit)
}

/// Reads the values behind the combined format by their form: `name=value`, a cache result, times
/// in seconds, cookies, a host.
fn further(visit: &mut Visit, values: &[LogValue]) {
    for value in values {
        let (LogValue::Word(text) | LogValue::Quoted(text) | LogValue::Bracketed(text)) = value;
        let is_quoted = matches!(value, LogValue::Quoted(_));
        let named = text.split_once('=').filter(|(name, _)| !is_quoted && is_name(name));
        if let Some((name, value)) = named {
            set(visit, name, value.trim_matches('"'));
        } else if let Some(served) = served(text) {
            visit.served = Some(served);
        } else if text.contains('.') && seconds_us(text).is_some() {
            // The first is of the request, and the second of the origin.
            visit.fetch_us = seconds_us(text);
        } else if is_quoted && text.contains('=') && visit.field("cookie").is_none() {
            set(visit, "cookie", text);
        } else if visit.host.is_empty() && text.contains('.') && !text.contains([' ', '/', ',']) {
            visit.set_host(text);
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Splits a line into its values. A text without its closing mark ends with the line.
fn values(line: &str) -> Vec<LogValue> {
    let mut values = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (value, after) = match first {
            '"' => {
                let (text, after) = quoted(&rest[1..]);
                (LogValue::Quoted(text), after)
            }
            '[' => {
                let (text, after) = rest[1..].split_once(']').unwrap_or_else(|| (&rest[1..], ""));
                (LogValue::Bracketed(text.to_owned()), after)
            }
            _ => {
                let (text, after) = word(rest);
                (LogValue::Word(text.to_owned()), after)
            }
        };
        values.push(value);
        rest = after.trim_start();
    }
    values
}

/// A bare word; quotation marks behind `=` belong to it, with the blanks between them.
fn word(rest: &str) -> (&str, &str) {
    let mut is_quoted = false;
    let end = rest.char_indices().find(|(_, c)| {
        is_quoted ^= *c == '"';
        *c == ' ' && !is_quoted
    });
    rest.split_at(end.map_or(rest.len(), |(at, _)| at))
}

/// The text up to the closing mark, with escapes resolved: nginx writes `\x22`, Apache `\"`.
fn quoted(rest: &str) -> (String, &str) {
    let mut text = String::new();
    let mut chars = rest.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, &rest[at + 1..]),
            '\\' => match chars.next() {
                Some((at, 'x')) => match hex(rest.get(at + 1..at + 3)) {
                    Some(byte) if byte.is_ascii() => {
                        text.push(char::from(byte));
                        _ = (chars.next(), chars.next());
                    }
                    _ => text.push_str("\\x"),
                },
                Some((_, c)) => text.push(c),
                None => {}
            },
            c => text.push(c),
        }
    }
    (text, "")
}

fn hex(text: Option<&str>) -> Option<u8> {
    u8::from_str_radix(text?, 16).ok()
}
