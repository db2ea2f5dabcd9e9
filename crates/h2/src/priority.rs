//! Priority of responses, as a client requests it (RFC 9218).

use crate::streams::Priority;
use message::sf::{BareItem, Value, parse_dictionary};

/// Default urgency of a request (RFC 9218 4.1); 0 is the most urgent, 7 the least.
pub(crate) const URGENCY: u8 = 3;

/// Parses a Priority field or the value of a PRIORITY_UPDATE frame: urgency, and the flag
/// `incremental`. Missing and invalid parts get their default (RFC 9218 4).
pub(crate) fn priority(value: &[u8]) -> Priority {
    let (mut urgency, mut incremental) = (URGENCY, false);
    let read = parse_dictionary([value], |member| match (member.key, member.value) {
        (b"u", Value::Item(BareItem::Integer(u @ 0..=7))) => urgency = u as u8,
        (b"u", _) => urgency = URGENCY,
        (b"i", value) => incremental = value == Value::Item(BareItem::Boolean(true)),
        _ => {}
    });
    match read {
        Ok(_) => Priority { urgency, incremental },
        Err(_) => Priority { urgency: URGENCY, incremental: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_heeded_and_what_is_wrong_is_not() {
        for (value, expected) in [
            ("", (3, false)),
            ("u=0", (0, false)),
            ("u=5, i", (5, true)),
            ("i=?1,u=7", (7, true)),
            ("i=?0", (3, false)),
            ("u=2;x=1, y=z", (2, false)),
            ("u=1, u=4", (4, false)),
            ("u=1, u=9", (3, false)),
            ("u=8", (3, false)),
            ("u=-1, i", (3, true)),
            ("u=1.0", (3, false)),
            ("u=\"1\"", (3, false)),
            ("i=1", (3, false)),
            ("i=(1)", (3, false)),
            ("u=1, i, ", (3, false)),
            ("u=1 i", (3, false)),
            ("U=1", (3, false)),
        ] {
            let read = priority(value.as_bytes());
            assert_eq!((read.urgency, read.incremental), expected, "{value}");
        }
    }
}
