//! Weight of a member of Accept or Accept-Language (RFC 9110 12.4.2).

use message::list::trim;

/// The weight of a member without one, in thousandths.
const FULL: u16 = 1000;

/// The range of a member, and its weight in thousandths. Other parameters are left out. `None` if
/// the weight is not a number.
///
/// `.2` counts as a number: Java's URLConnection sends it.
pub(super) fn weighted(member: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = member.split(|byte| *byte == b';').map(trim);
    let range = parts.next().filter(|range| !range.is_empty())?;
    for part in parts {
        let Some(equals) = memchr::memchr(b'=', part) else { continue };
        if trim(&part[..equals]).eq_ignore_ascii_case(b"q") {
            return Some((range, thousandths(trim(&part[equals + 1..]))?));
        }
    }
    Some((range, FULL))
}

fn thousandths(text: &[u8]) -> Option<u16> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &b""[..]),
    };
    if text.iter().all(|byte| *byte == b'.') || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| fraction.get(at).map_or(0, |digit| u16::from(digit - b'0'));
    match whole {
        b"" | b"0" => Some(digit(0) * 100 + digit(1) * 10 + digit(2)),
        b"1" => Some(FULL),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_thousandths() {
        for (member, range, weight) in [
            ("de", "de", Some(1000)),
            ("de;q=0.8", "de", Some(800)),
            ("de ; Q = 0.85", "de", Some(850)),
            ("text/html;level=1;q=0.125", "text/html", Some(125)),
            ("text/html;q=0.5;level=1", "text/html", Some(500)),
            ("*/*; q=.2", "*/*", Some(200)),
            ("de;q=0", "de", Some(0)),
            ("de;q=0.0004", "de", Some(0)),
            ("de;q=1.5", "de", Some(1000)),
            ("de;q=1.", "de", Some(1000)),
            ("de;q=", "de", None),
            ("de;q=.", "de", None),
            ("de;q=2", "de", None),
            ("de;q=0.x", "de", None),
            ("de;q=-1", "de", None),
            ("de;v=b3", "de", Some(1000)),
            ("de;x", "de", Some(1000)),
        ] {
            let expected = weight.map(|weight| (range.as_bytes(), weight));
            assert_eq!(weighted(member.as_bytes()), expected, "{member}");
        }
        assert_eq!(weighted(b";q=1"), None);
    }
}
