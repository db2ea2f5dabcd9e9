//! Shell patterns as in fnmatch(3) of the GNU library, in the C locale.

/// Options of a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True if only `/` matches `/`.
    pub pathname: bool,
    /// True if a backslash is an ordinary character.
    pub noescape: bool,
    /// True if only `.` matches a leading `.`.
    pub period: bool,
}

/// Returns true if `pattern` matches all of `subject`. Time is at most the product of both lengths:
/// only the last star is ever retried, and with `pathname` one star in each part of a path.
pub fn fnmatch(pattern: &[u8], subject: &[u8], options: Options) -> bool {
    let (mut p, mut s) = (0, 0);
    // Position of the last star, and how much of the subject it has taken.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(p) == Some(&b'*') && !is_leading_period(subject, s, options) {
            star = Some((p, s));
            p += 1;
            continue;
        }
        match step(pattern, p, subject, s, options) {
            Element::End => return true,
            Element::Next(after) => {
                p = after;
                s += 1;
            }
            Element::Differs => {
                let Some((at, taken)) = star else { return false };
                // The star takes one more byte, if permitted.
                match subject.get(taken) {
                    None => return false,
                    Some(b'/') if options.pathname => return false,
                    Some(_) => {}
                }
                star = Some((at, taken + 1));
                (p, s) = (at + 1, taken + 1);
            }
        }
    }
}

enum Element {
    /// Both are at their end.
    End,
    /// One byte matches; the pattern continues at this offset.
    Next(usize),
    Differs,
}

fn step(pattern: &[u8], p: usize, subject: &[u8], s: usize, options: Options) -> Element {
    let Some(byte) = subject.get(s).copied() else {
        return if p == pattern.len() { Element::End } else { Element::Differs };
    };
    let shuts = byte == b'/' && options.pathname || is_leading_period(subject, s, options);
    let literal = |at: usize, is: u8| if is == byte { Element::Next(at) } else { Element::Differs };
    match pattern.get(p).copied() {
        None | Some(b'*') => Element::Differs,
        Some(b'?') if shuts => Element::Differs,
        Some(b'?') => Element::Next(p + 1),
        Some(b'[') => match bracket(&pattern[p + 1..], byte, options) {
            None => literal(p + 1, b'['),
            Some((len, true)) if !shuts => Element::Next(p + 1 + len),
            Some(_) => Element::Differs,
        },
        Some(b'\\') if !options.noescape => match pattern.get(p + 1) {
            Some(escaped) => literal(p + 2, *escaped),
            None => Element::Differs,
        },
        Some(other) => literal(p + 1, other),
    }
}

fn is_leading_period(subject: &[u8], s: usize, options: Options) -> bool {
    let is_first = s == 0 || options.pathname && subject[s - 1] == b'/';
    options.period && is_first && subject.get(s) == Some(&b'.')
}

/// Reads a bracket expression behind `[`: its length with `]`, and true if it contains `byte`.
/// `None` if it is not closed, which makes `[` an ordinary character.
fn bracket(text: &[u8], byte: u8, options: Options) -> Option<(usize, bool)> {
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    let first = usize::from(is_negated);
    let (mut at, mut has) = (first, false);
    loop {
        let start = *text.get(at)?;
        if start == b']' && at > first {
            return Some((at + 1, has != is_negated));
        }
        // A bracket expression never spans two parts of a path.
        if start == b'/' && options.pathname {
            return None;
        }
        if let Some((len, in_class)) = class(&text[at..], byte) {
            has |= in_class;
            at += len;
            continue;
        }
        let (low, after) = member(text, at, options)?;
        at = after;
        let is_range = text.get(at) == Some(&b'-') && text.get(at + 1).is_some_and(|b| *b != b']');
        if is_range {
            let (high, after) = member(text, at + 1, options)?;
            has |= (low..=high).contains(&byte);
            at = after;
        } else {
            has |= low == byte;
        }
    }
}

/// A byte of a bracket expression, and the offset behind it.
fn member(text: &[u8], at: usize, options: Options) -> Option<(u8, usize)> {
    match text.get(at)? {
        b'\\' if !options.noescape => Some((*text.get(at + 1)?, at + 2)),
        byte => Some((*byte, at + 1)),
    }
}

/// `[:alpha:]` at the beginning of `text`: its length, and true if it contains `byte`.
fn class(text: &[u8], byte: u8) -> Option<(usize, bool)> {
    let name = text.strip_prefix(b"[:")?;
    let len = name.windows(2).position(|pair| pair == b":]")?;
    let has = match &name[..len] {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == b'\x0b',
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => return None,
    };
    Some((len + 4, has))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shell_patterns_match_as_a_plain_reading_of_them_does(
            pattern in "[ab*?/.]{0,8}",
            subject in "[ab/.]{0,8}",
            pathname: bool,
            period: bool,
        ) {
            let options = Options { pathname, period, noescape: false };
            let (p, s) = (pattern.as_bytes(), subject.as_bytes());
            prop_assert_eq!(fnmatch(p, s, options), plain(p, s, None, options));
        }
    }

    /// Match by brute force.
    fn plain(pattern: &[u8], subject: &[u8], before: Option<u8>, options: Options) -> bool {
        let leads = before.is_none() || options.pathname && before == Some(b'/');
        let shuts =
            |byte: u8| byte == b'/' && options.pathname || byte == b'.' && options.period && leads;
        match (pattern, subject) {
            ([], subject) => subject.is_empty(),
            ([b'*', pattern @ ..], subject) => {
                let skip = |(first, rest): (&u8, &[u8])| {
                    !shuts(*first)
                        && plain(&[&b"*"[..], pattern].concat(), rest, Some(*first), options)
                };
                let leading = subject.first() == Some(&b'.') && shuts(b'.');
                !leading && plain(pattern, subject, before, options)
                    || subject.split_first().is_some_and(skip)
            }
            ([b'?', pattern @ ..], [first, rest @ ..]) => {
                !shuts(*first) && plain(pattern, rest, Some(*first), options)
            }
            ([literal, pattern @ ..], [first, rest @ ..]) => {
                literal == first && plain(pattern, rest, Some(*first), options)
            }
            (_, []) => false,
        }
    }
}
