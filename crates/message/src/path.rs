//! Path normalisation for matching routes, as nginx matches locations.
//!
//! Only for matching: the key and the forwarded request have the path as received, except for its
//! spelling ([`target::canonical`](crate::target::canonical)). Paths that an origin may treat as
//! equal have one normal form, so that no spelling evades a rule.

use std::fmt;

use crate::class::{below, equal};
use crate::percent;

/// The reason why a path has no normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// `%` without two hexadecimal digits.
    BadEscape,
    /// A control byte, escaped or not; NUL above all.
    Control,
    /// `..` beyond the root.
    AboveRoot,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadEscape => "a percent sign without two hexadecimal digits",
            Self::Control => "a control character in the path",
            Self::AboveRoot => "a path above the root",
        })
    }
}

impl std::error::Error for PathError {}

/// Normalises `path` (without query): decodes percent escapes once, merges slashes, and resolves
/// `.` and `..`, including escaped ones.
///
/// `Ok(true)`: the normal form differs and is in `out`. `Ok(false)`: `path` is its own normal form,
/// and `out` is unchanged.
///
/// # Errors
/// [`PathError`] for a path that honest clients never send.
pub fn normal_form(path: &[u8], out: &mut Vec<u8>) -> Result<bool, PathError> {
    if is_ordinary(path) {
        return Ok(false);
    }
    out.clear();
    out.reserve(path.len());
    let mut rest = path;
    while let Some(byte) = decoded(&mut rest)? {
        if byte == b'/' {
            end_segment(out)?;
            if out.last() != Some(&b'/') {
                out.push(b'/');
            }
        } else {
            out.push(byte);
        }
    }
    end_segment(out)?;
    Ok(out != path)
}

/// Returns true if `path` is its own normal form and has no byte that some origins interpret
/// specially: `;` and `\`. Looks at each byte once.
pub fn is_ordinary(path: &[u8]) -> bool {
    let mut refused = ALWAYS;
    path.iter().all(|byte| {
        let class = CLASSES[usize::from(*byte)];
        let fits = class & refused == 0;
        refused = class >> NEXT & !BEHIND_DOT;
        fits
    })
}

/// Returns true if `path` [`is_ordinary`] and has a dot in its last segment only. Most paths are
/// plain, and need no second check for scripts with a path info.
pub fn is_plain(path: &[u8]) -> bool {
    let mut refused = ALWAYS;
    path[undotted(path)..].iter().all(|byte| {
        let class = CLASSES[usize::from(*byte)];
        let fits = class & refused == 0;
        refused = class >> NEXT | refused & BEHIND_DOT;
        fits
    })
}

/// The length of a prefix of `path` that is plain and without dots, except for its last byte, which
/// must be checked again: groups of eight bytes are checked, and each begins with the last byte of
/// the one before.
fn undotted(path: &[u8]) -> usize {
    const STEP: usize = size_of::<u64>() - 1;
    let mut end = 0;
    while let Some(word) = path[end..].first_chunk()
        && is_undotted(u64::from_le_bytes(*word))
    {
        end += STEP;
    }
    match path.last_chunk() {
        Some(word) if path.len() - end <= STEP && is_undotted(u64::from_le_bytes(*word)) => {
            path.len()
        }
        _ => end,
    }
}

/// Returns true if none of eight bytes is a dot, `%`, `;`, `\\` or a control, and no two adjacent
/// bytes are slashes.
fn is_undotted(word: u64) -> bool {
    let found = below(word, b' ')
        | equal(word, 0x7f)
        | equal(word, b'%')
        | equal(word, b';')
        | equal(word, b'\\')
        | equal(word, b'.');
    // A byte behind a slash that may be marked wrongly is a dot, which is found anyway.
    let slashes = equal(word, b'/');
    found == 0 && slashes & (slashes << 8) == 0
}

/// Class of the bytes that make a path not ordinary: `%`, `;`, `\` and controls.
const ALWAYS: u8 = 1;
/// Class of the bytes that do so behind a slash: another slash, and a dot.
const BEHIND_SLASH: u8 = 2;
/// Class of the byte that makes a path not plain if it follows a dot: a slash.
const BEHIND_DOT: u8 = 4;
/// Shift of the bits with the classes that may not follow a byte.
const NEXT: u32 = 4;

static CLASSES: [u8; 256] = {
    let mut classes = [ALWAYS << NEXT; 256];
    let mut byte = 0;
    while byte < 256 {
        let (here, next) = match byte as u8 {
            b'%' | b';' | b'\\' | 0..b' ' | 0x7f => (ALWAYS, ALWAYS),
            b'/' => (BEHIND_SLASH | BEHIND_DOT, ALWAYS | BEHIND_SLASH),
            b'.' => (BEHIND_SLASH, ALWAYS | BEHIND_DOT),
            _ => (0, ALWAYS),
        };
        classes[byte] = here | next << NEXT;
        byte += 1;
    }
    classes
};

/// The normal form of `path` for origins with other rules: the part of a segment from a `;` on is a
/// parameter, and is removed (RFC 3986 3.3; servlet containers), and an escaped `\` is a slash
/// (IIS). `None` if `path` has neither.
///
/// # Errors
/// As [`normal_form`].
pub fn lenient_form(path: &[u8]) -> Result<Option<Vec<u8>>, PathError> {
    let mut bare = Vec::with_capacity(path.len());
    for (at, segment) in path.split(|b| *b == b'/').enumerate() {
        if at > 0 {
            bare.push(b'/');
        }
        let end = segment.iter().position(|b| *b == b';').unwrap_or(segment.len());
        let mut rest = &segment[..end];
        while let [byte, after @ ..] = rest {
            let escaped = matches!(rest, [b'%', b'5', b'c' | b'C', ..]);
            bare.push(if escaped { b'/' } else { *byte });
            rest = if escaped { &rest[3..] } else { after };
        }
    }
    if bare == path {
        return Ok(None);
    }
    let mut normal = Vec::new();
    Ok(Some(if normal_form(&bare, &mut normal)? { normal } else { bare }))
}

/// Takes the next byte, decoding an escape.
fn decoded(rest: &mut &[u8]) -> Result<Option<u8>, PathError> {
    let (byte, after) = match *rest {
        [] => return Ok(None),
        [b'%', ..] => (percent::escaped(rest).ok_or(PathError::BadEscape)?, &rest[3..]),
        [byte, after @ ..] => (*byte, after),
    };
    if byte.is_ascii_control() {
        return Err(PathError::Control);
    }
    *rest = after;
    Ok(Some(byte))
}

/// Resolves the last segment of `out` if it is `.` or `..`.
fn end_segment(out: &mut Vec<u8>) -> Result<(), PathError> {
    if out.ends_with(b"/.") {
        out.pop();
    } else if out.ends_with(b"/..") {
        out.truncate(out.len() - 3);
        let parent = out.iter().rposition(|b| *b == b'/').ok_or(PathError::AboveRoot)?;
        out.truncate(parent + 1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normal(path: &str) -> Result<Option<String>, PathError> {
        let mut out = Vec::new();
        let differs = normal_form(path.as_bytes(), &mut out)?;
        Ok(differs.then(|| String::from_utf8_lossy(&out).into_owned()))
    }

    #[test]
    fn ordinary_paths_are_left_alone() {
        for path in
            ["/", "/a/b.html", "/a.b/c..d/e...", "*", "/a;b=c/d", "/\u{fc}", "/...", "/.a/..b"]
        {
            assert_eq!(normal(path), Ok(None), "{path}");
        }
    }

    #[test]
    fn spellings_of_one_path_have_one_normal_form() {
        for (path, expected) in [
            ("//a///b", "/a/b"),
            ("/a/./b/.", "/a/b/"),
            ("/a/../b", "/b"),
            ("/a/b/..", "/a/"),
            ("/a/b/../..", "/"),
            ("/%61dmin", "/admin"),
            ("/a%2Fb", "/a/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e/b", "/b"),
            ("/a/..%2fb", "/b"),
            ("/a/b//../c", "/a/c"),
            ("/%252e", "/%2e"),
            ("/a%20b", "/a b"),
        ] {
            assert_eq!(normal(path), Ok(Some(expected.to_owned())), "{path}");
        }
    }

    const ODD_PATHS: &str = "[/a.]{0,30}[/a.%;\\\\\u{1}\u{7f}é]{0,12}";

    proptest! {
        #[test]
        fn a_plain_path_is_ordinary_and_has_no_dot_before_a_slash(path in ODD_PATHS) {
            let path = path.as_bytes();
            let dot = path.iter().position(|b| *b == b'.').unwrap_or(path.len());
            prop_assert_eq!(is_plain(path), is_ordinary(path) && !path[dot..].contains(&b'/'));
        }
    }

    #[test]
    fn hostile_paths_are_refused() {
        for path in ["/%00", "/a%0a", "/%7f", "/a\u{1}"] {
            assert_eq!(normal(path), Err(PathError::Control), "{path}");
        }
        for path in ["/%", "/%1", "/%zz", "/%+1"] {
            assert_eq!(normal(path), Err(PathError::BadEscape), "{path}");
        }
        for path in ["/..", "/../a", "/a/../..", "/%2e%2e/", "//..", "/a/../../a"] {
            assert_eq!(normal(path), Err(PathError::AboveRoot), "{path}");
        }
    }

    /// Decode, then split at slashes and walk.
    fn model(path: &str) -> Option<String> {
        let mut decoded = String::new();
        let mut rest = path;
        while let Some(c) = rest.chars().next() {
            rest = &rest[1..];
            if c == '%' {
                decoded.push(char::from(u8::from_str_radix(rest.get(..2)?, 16).ok()?));
                rest = &rest[2..];
            } else {
                decoded.push(c);
            }
        }
        let mut walked = Vec::new();
        let mut directory = true;
        for segment in decoded.split('/').skip(1) {
            directory = matches!(segment, "" | "." | "..");
            match segment {
                "" | "." => {}
                ".." => drop(walked.pop()?),
                name => walked.push(name),
            }
        }
        let end = if directory && !walked.is_empty() { "/" } else { "" };
        Some(format!("/{}{end}", walked.join("/")))
    }

    proptest! {
        #[test]
        fn plain_paths_are_ordinary_and_have_dots_at_their_end_alone(path in "[a./;%-]{0,9}") {
            let path = path.as_bytes();
            let last = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
            assert_eq!(is_plain(path), is_ordinary(path) && !path[..last].contains(&b'.'));
        }

        #[test]
        fn it_agrees_with_the_model(path in "/([a./]|%2e|%2F|%61|%25){0,12}") {
            let ours = normal(&path).ok().map(|n| n.unwrap_or_else(|| path.clone()));
            prop_assert_eq!(ours, model(&path));
        }

        #[test]
        fn without_escapes_the_normal_form_is_final(path in "/[a./]{0,12}") {
            if let Ok(Some(once)) = normal(&path) {
                prop_assert_eq!(normal(&once), Ok(None));
            }
        }
    }

    #[test]
    fn parameters_and_escaped_backslashes_make_another_reading() {
        for (path, other) in [
            ("/admin;x", Some("/admin")),
            ("/x/..;/admin", Some("/admin")),
            ("/;/admin", Some("/admin")),
            ("/a;b=c/d;e", Some("/a/d")),
            ("/static/..%5cadmin", Some("/admin")),
            ("/admin%5Cx", Some("/admin/x")),
            ("/a/b", None),
            ("/a%2fb", None),
            ("/a%3bb", None),
        ] {
            let read = lenient_form(path.as_bytes()).expect("a normal form");
            assert_eq!(read.as_deref(), other.map(str::as_bytes), "{path}");
        }
        assert_eq!(lenient_form(b"/..;/x"), Err(PathError::AboveRoot));
    }
}
