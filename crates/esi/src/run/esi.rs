//! Variables of ESI 1.0: those of the request, then those that the page has assigned. A page never
//! overrides a variable of the request.

use crate::environment::{Environment, of_cookies, of_query};
use crate::variable::Variable;

use super::value_piece::{Author, ValuePiece};
use super::values::Values;

/// The pieces of a variable's value, or of its default.
pub(super) fn pieces(
    variable: &Variable,
    values: &Values,
    env: &dyn Environment,
) -> Option<Vec<ValuePiece>> {
    if let (false, None, Some(pieces)) =
        (is_of_request(&variable.name), &variable.key, values.pieces(&variable.name))
    {
        return Some(pieces.to_vec());
    }
    let piece = match found(variable, values, env).filter(|value| !value.is_empty()) {
        Some(text) => ValuePiece { author: author(variable), text },
        None => ValuePiece { author: Author::Page, text: variable.default.as_deref()?.to_vec() },
    };
    Some(vec![piece])
}

/// Returns true if the variable is one of the request, which an assignment cannot override.
fn is_of_request(name: &[u8]) -> bool {
    name == b"QUERY_STRING" || name.starts_with(b"HTTP_")
}

fn author(variable: &Variable) -> Author {
    match (&variable.name[..], &variable.key) {
        (b"QUERY_STRING", None) => Author::Query,
        (b"QUERY_STRING", Some(_)) => Author::QueryValue,
        (name, _) if is_of_request(name) => Author::Client,
        _ => Author::Page,
    }
}

fn found(variable: &Variable, values: &Values, env: &dyn Environment) -> Option<Vec<u8>> {
    let header = |name: &[u8]| env.header(name).map(std::borrow::Cow::into_owned);
    match (&variable.name[..], variable.key.as_deref()) {
        (b"HTTP_HOST", None) => Some(env.host().to_vec()),
        (b"HTTP_REFERER", None) => header(b"referer"),
        (b"QUERY_STRING", None) => Some(env.query().to_vec()),
        (b"QUERY_STRING", Some(key)) => of_query(env.query(), key, false).map(<[u8]>::to_vec),
        (b"HTTP_COOKIE", None) => header(b"cookie"),
        (b"HTTP_COOKIE", Some(key)) => of_cookies(&env.header(b"cookie")?, key),
        (b"HTTP_ACCEPT_LANGUAGE", None) => header(b"accept-language"),
        (b"HTTP_ACCEPT_LANGUAGE", Some(key)) => {
            let value = env.header(b"accept-language").unwrap_or_default();
            let accepts = value.split(|byte| *byte == b',').any(|range| {
                let end = memchr::memchr(b';', range).unwrap_or(range.len());
                range[..end].trim_ascii().eq_ignore_ascii_case(key)
            });
            Some(if accepts { b"true".to_vec() } else { b"false".to_vec() })
        }
        (b"HTTP_USER_AGENT", None) => header(b"user-agent"),
        (b"HTTP_USER_AGENT", Some(key)) => agent(&env.header(b"user-agent")?, key),
        (b"HTTP_HEADER", Some(key)) => header(key),
        (name, None) => values.get(name).cloned(),
        (_, Some(_)) => None,
    }
}

/// Marks of browsers in `User-Agent`, in the order in which they are searched for.
const BROWSERS: [(&[u8], &str); 3] =
    [(b"MSIE", "MSIE"), (b"Trident/", "MSIE"), (b"Mozilla", "MOZILLA")];
const SYSTEMS: [(&[u8], &str); 6] = [
    (b"Windows", "WIN"),
    (b"Mac", "MAC"),
    (b"Linux", "UNIX"),
    (b"X11", "UNIX"),
    (b"BSD", "UNIX"),
    (b"Unix", "UNIX"),
];

/// A part of `User-Agent`, with the values that the note defines.
fn agent(value: &[u8], key: &[u8]) -> Option<Vec<u8>> {
    let has = |mark: &[u8]| memchr::memmem::find(value, mark).is_some();
    let of = |marks: &[(&[u8], &str)]| {
        let found = marks.iter().find(|(mark, _)| has(mark));
        found.map_or("OTHER", |(_, name)| name).as_bytes().to_vec()
    };
    match key {
        b"browser" => Some(of(&BROWSERS)),
        b"os" => Some(of(&SYSTEMS)),
        b"version" => [&b"MSIE "[..], b"rv:", b"Mozilla/"]
            .into_iter()
            .filter(|mark| *mark != b"rv:" || has(b"Trident/"))
            .find_map(|mark| {
                let at = memchr::memmem::find(value, mark)? + mark.len();
                let rest = &value[at..];
                let is_version = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
                let end = rest.iter().position(|byte| !is_version(byte)).unwrap_or(rest.len());
                Some(rest[..end].to_vec())
            }),
        _ => None,
    }
}
