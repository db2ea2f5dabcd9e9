//! Structured fields written in the one form that signatures are made over (RFC 9651 4.1).
//!
//! Must never write what it cannot write exactly: a value in doubt is `None`, and its signature
//! stays unverified.

use data_encoding::{BASE64, BASE64_NOPAD};
use message::sf::{BareItem, InnerList, Item, Parameters, Value};

/// Appends an item.
pub(crate) fn write_item(item: Item<'_>, out: &mut Vec<u8>) -> Option<()> {
    write_bare(item.bare, out)?;
    write_parameters(item.parameters, out)
}

/// Appends an inner list with its parameters.
pub(crate) fn write_list(
    list: InnerList<'_>,
    parameters: Parameters<'_>,
    out: &mut Vec<u8>,
) -> Option<()> {
    out.push(b'(');
    for (at, item) in list.members().enumerate() {
        if at > 0 {
            out.push(b' ');
        }
        write_item(item, out)?;
    }
    out.push(b')');
    write_parameters(parameters, out)
}

/// Appends the value of a dictionary's member.
pub(crate) fn write_value(
    value: Value<'_>,
    parameters: Parameters<'_>,
    out: &mut Vec<u8>,
) -> Option<()> {
    match value {
        Value::Item(bare) => write_item(Item { bare, parameters }, out),
        Value::List(list) => write_list(list, parameters, out),
    }
}

fn write_parameters(parameters: Parameters<'_>, out: &mut Vec<u8>) -> Option<()> {
    for (at, (key, value)) in parameters.iter().enumerate() {
        // A repeated one has the place of the first and the value of the last: no one writes that.
        if parameters.iter().take(at).any(|(earlier, _)| earlier == key) {
            return None;
        }
        out.push(b';');
        out.extend_from_slice(key);
        if value != BareItem::Boolean(true) {
            out.push(b'=');
            write_bare(value, out)?;
        }
    }
    Some(())
}

fn write_bare(item: BareItem<'_>, out: &mut Vec<u8>) -> Option<()> {
    let quoted = |text: &[u8]| [b"\"", text, b"\""].concat();
    let written = match item {
        BareItem::Integer(number) => number.to_string().into_bytes(),
        BareItem::Decimal(thousandths) => decimal(thousandths),
        // Its only escapes are those that it must have.
        BareItem::String(text) => quoted(text),
        BareItem::Token(token) => token.to_vec(),
        BareItem::Bytes(text) => {
            let data = text.split(|b| *b == b'=').next().unwrap_or_default();
            let bytes = BASE64_NOPAD.decode(data).ok()?;
            format!(":{}:", BASE64.encode(&bytes)).into_bytes()
        }
        BareItem::Boolean(is_true) => format!("?{}", u8::from(is_true)).into_bytes(),
        BareItem::Date(secs) => format!("@{secs}").into_bytes(),
        // It may be escaped in more than one way, and no component has one.
        BareItem::Display(_) => return None,
    };
    out.extend_from_slice(&written);
    Some(())
}

/// A decimal with at least one digit behind the point, and no zero at the end of several.
fn decimal(thousandths: i64) -> Vec<u8> {
    let sign = if thousandths < 0 { "-" } else { "" };
    let (whole, rest) = (thousandths.unsigned_abs() / 1000, thousandths.unsigned_abs() % 1000);
    let text = format!("{sign}{whole}.{rest:03}");
    let end = text.trim_end_matches('0').len();
    let least = text.len() - 2;
    text.as_bytes()[..end.max(least)].to_vec()
}

#[cfg(test)]
mod tests {
    use message::sf::parse_dictionary;
    use proptest::prelude::*;

    use super::*;

    /// The only member of a dictionary, written.
    fn written(member: &str) -> Option<String> {
        let mut out = Some(Vec::new());
        let lines = std::iter::once(member.as_bytes());
        let parsed = parse_dictionary(lines, |member| {
            let mut value = Vec::new();
            let done = write_value(member.value, member.parameters, &mut value);
            out = done.map(|()| value);
        });
        parsed.expect("a dictionary");
        out.map(|out| String::from_utf8(out).expect("text"))
    }

    #[test]
    fn values_have_one_form() {
        for (member, value) in [
            ("a=-007;b", "-7;b"),
            ("a=1.50;  b=?1;c=?0", "1.5;b;c=?0"),
            ("a=-0.120", "-0.12"),
            ("a=2.0", "2.0"),
            (r#"a="x\"y";k=to/k"#, r#""x\"y";k=to/k"#),
            ("a=(  1   \"b\";key=\"c\"  );d=@5", "(1 \"b\";key=\"c\");d=@5"),
            ("a=()", "()"),
            ("a=:aGk=:", ":aGk=:"),
            ("a=:aGk:", ":aGk=:"),
            ("a", "?1"),
        ] {
            assert_eq!(written(member).as_deref(), Some(value), "{member}");
        }
    }

    #[test]
    fn what_has_several_forms_is_not_written() {
        // Bits behind the last byte, a repeated parameter, and a string of percent escapes.
        for member in ["a=:aGl=:", "a=1;b=1;b=2", "a=%\"x\""] {
            assert_eq!(written(member), None, "{member}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_equal(
            number in -999_999_999_999_999_i64..=999_999_999_999_999,
            thousandths in -999_999_999_999_i64..=999_999_999_999,
            text in "[ !#-\\[\\]-~]{0,20}",
        ) {
            let mut decimal_text = decimal(thousandths);
            let member = format!(
                "a=({number} \"{text}\");d={}",
                String::from_utf8(std::mem::take(&mut decimal_text)).expect("text"),
            );
            let once = written(&member).expect("writable");
            prop_assert_eq!(format!("a={once}"), member);
        }
    }
}
