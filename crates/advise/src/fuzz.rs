//! Fuzz properties of this crate's parsers, for any bytes. Fuzz targets and property tests share
//! them.

use crate::edit::{Edit, NewValue, Scope, apply};
use crate::sources::{parse_line, read_log};

/// Checks that any line is a visit of a request, or not one, and that a log of any bytes is read to
/// its end.
///
/// # Panics
/// If the property does not hold.
pub fn log_line(bytes: &[u8]) {
    let log = read_log(bytes, 3).expect("a slice can be read");
    assert!(log.visits.len() <= 3);
    assert_eq!(log.unread > 0, log.first_unread.is_some());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(visit) = parse_line(text) {
        assert!(visit.target.starts_with(b"/") && !visit.method.is_empty());
        assert!((100..=999).contains(&visit.status));
    }
}

/// Checks that an edit of any text keeps all its other lines.
///
/// # Panics
/// If the property does not hold.
pub fn edit(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for scope in [Scope::Top, Scope::Site(0), Scope::Route(0, 0), Scope::Path(0, "\"/\"".into())] {
        let value = NewValue::Item("x".to_owned());
        let edit = Edit { scope, table: "cache", key: "ignore", value };
        let Ok((after, made)) = apply(text, &[edit]) else { continue };
        let first = made.first().expect("one edit makes one change");
        let kept = |line: &str| after.lines().any(|own| own == line);
        let lost = text.lines().filter(|line| !kept(line)).count();
        assert!(lost <= 1, "{text:?} became {after:?}");
        let at = after.lines().nth(first.line - 1);
        assert_eq!(at, first.lines.first().map(String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_log(bytes: Vec<u8>) {
            super::log_line(&bytes);
        }

        #[test]
        fn pieces_of_lines_are_a_log(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("127.0.0.1 "), Just("- "), Just("[10/Oct/2000:13:55:36 -0700] "),
                    Just("\"GET /a?b=c HTTP/1.1\" "), Just("200 "), Just("\\x"), Just("\""),
                    Just("{\"time\":1,\"status\":200,"), Just("\"uri\":\"/\"}"), Just("1/2/3/4/5 "),
                    Just("[06/Feb/2009:12:14:14.655] "), Just("rt=0.1 "), Just("é"), Just("\n"),
                ],
                0..12,
            ),
        ) {
            super::log_line(pieces.concat().as_bytes());
        }

        #[test]
        fn edits_keep_other_lines(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("[[site]]"), Just("[[site.route]]"), Just("path = \"/\""), Just(""),
                    Just("[site.cache]"), Just("ignore = []"), Just("ignore = \"a\""),
                    Just("ignore = ["), Just("]"), Just("cache = {}"), Just("cache.ttl = 1"),
                    Just("x = [ # ["), Just("[cache]"), Just("# [x]"), Just("ignore = {"),
                ],
                0..14,
            ),
        ) {
            super::edit(lines.join("\n").as_bytes());
        }
    }
}
