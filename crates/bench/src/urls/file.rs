//! Files of URLs: one per line, with an optional method before and weight behind; also siege's
//! files, with variables and bodies.
//!
//! | line | meaning |
//! |---|---|
//! | `# text` | a comment |
//! | `HOST = www.example.com` | a variable, for `$HOST`, `$(HOST)` and `${HOST}` in lines below |
//! | `http://www.example.com/` | a GET |
//! | `/path 3` | a GET for every target, three times as often as without a number |
//! | `HEAD http://www.example.com/` | another method |
//! | `http://www.example.com/ POST a=1&b=2` | a body, in siege's syntax |
//! | `POST http://www.example.com/ <form.txt` | a body from a file |

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Body, List, ListedRequest, Maker, checked_url};

/// Largest weight of a URL.
const WEIGHT_MAX: u64 = 1_000_000;

/// Longest line after its variables are replaced, in bytes. It bounds variables that contain
/// others.
const LINE_MAX: usize = 64 * 1024;

/// Reads a file of URLs; `source` is its name in messages.
pub fn from_text(source: &str, text: &[u8]) -> List {
    let mut maker = Maker::default();
    let mut variables = HashMap::new();
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    for (line, number) in text.split(|b| *b == b'\n').zip(1..) {
        let read = match std::str::from_utf8(line) {
            Ok(line) => read_line(line.trim(), &mut variables),
            Err(_) => Err("not UTF-8".to_owned()),
        };
        match read {
            Ok(Some((ask, weight))) => maker.add(ask, weight),
            Ok(None) => {}
            Err(what) => maker.fault(source, number, what),
        }
    }
    maker.list()
}

/// Parses a line to a request and its weight; `None` for comments and variables.
fn read_line(
    line: &str,
    variables: &mut HashMap<String, String>,
) -> Result<Option<(ListedRequest, u64)>, String> {
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    if line.len() > LINE_MAX {
        return Err(format!("longer than {LINE_MAX} bytes"));
    }
    if let Some((name, value)) = variable(line) {
        let value = replaced(value, variables)?;
        variables.insert(name.to_owned(), value);
        return Ok(None);
    }
    let line = replaced(line, variables)?;
    let (first, rest) = word(&line);
    let (method, url, rest) = match is_method(first) {
        true => {
            let (url, rest) = word(rest);
            (Some(first), url, rest)
        }
        false => (None, first, rest),
    };
    let url = checked_url(url)?;
    // Siege writes the method behind the URL.
    let (behind, body) = word(rest);
    let (method, rest) = match (method, is_method(behind)) {
        (None, true) => (behind, body),
        (method, _) => (method.unwrap_or("GET"), rest),
    };
    if let Ok(weight) = rest.parse::<u64>()
        && matches!(method, "GET" | "HEAD")
    {
        return match (1..=WEIGHT_MAX).contains(&weight) {
            true => Ok(Some((ask(method, url, Body::None), weight))),
            false => Err(format!("a weight is a number from 1 to {WEIGHT_MAX}")),
        };
    }
    let body = match rest.strip_prefix('<') {
        _ if rest.is_empty() => Body::None,
        Some(path) if path.trim().is_empty() => return Err("no file behind `<`".to_owned()),
        Some(path) => Body::File(PathBuf::from(path.trim())),
        None if matches!(method, "GET" | "HEAD") => {
            return Err(format!("`{rest}` is neither a weight nor a method"));
        }
        None => Body::Text(rest.to_owned()),
    };
    Ok(Some((ask(method, url, body), 1)))
}

fn ask(method: &str, url: &str, body: Body) -> ListedRequest {
    ListedRequest { method: method.to_owned(), url: url.to_owned(), body }
}

/// Splits the first word off.
fn word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    (word, rest.trim_start())
}

/// Returns true for capital letters (RFC 9110 9.1), with which no URL begins.
fn is_method(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
}

/// Parses a line `NAME = value`. A URL with `=` in its query is no variable, because names consist
/// of letters.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    is_name(name).then(|| (name, value.trim()))
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Replaces the variables in `text`. A `$` that begins no name stays.
fn replaced(text: &str, variables: &HashMap<String, String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        let (name, after) = match (behind.strip_prefix('('), behind.strip_prefix('{')) {
            (Some(inner), _) => inner.split_once(')').unwrap_or(("", behind)),
            (_, Some(inner)) => inner.split_once('}').unwrap_or(("", behind)),
            _ => {
                let end = behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                behind.split_at(end.unwrap_or(behind.len()))
            }
        };
        match variables.get(name) {
            Some(value) => out.push_str(value),
            // Dollar signs are valid in URLs and bodies.
            None if !is_name(name) || behind.starts_with(name) => {
                out.push('$');
                rest = behind;
                continue;
            }
            None => return Err(format!("no variable `{name}` above")),
        }
        if out.len() > LINE_MAX {
            return Err(format!("with its variables longer than {LINE_MAX} bytes"));
        }
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}
