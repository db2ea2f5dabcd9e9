//! Structured field dictionaries (RFC 9651), parsed strictly: one invalid byte invalidates the
//! whole field.
//!
//! Must never copy: members and parameters are slices of the field's lines, checked once. The crate
//! `sfv` would allocate each value, and these fields are parsed on the hit path.

use crate::header::is_token_byte;
use crate::percent;

/// Error for a field that is malformed: not a dictionary, or not an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedDictionary;

impl std::fmt::Display for MalformedDictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a structured field of this kind")
    }
}

impl std::error::Error for MalformedDictionary {}

/// A bare item (RFC 9651 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BareItem<'a> {
    /// An integer of at most 15 digits.
    Integer(i64),
    /// A decimal, in thousandths.
    Decimal(i64),
    /// A string: the part between its quotes, with its escapes.
    String(&'a [u8]),
    /// A token.
    Token(&'a [u8]),
    /// A byte sequence: the base64 text between its colons.
    Bytes(&'a [u8]),
    /// A boolean.
    Boolean(bool),
    /// A date, in seconds since 1970.
    Date(i64),
    /// A display string: the part between its quotes, with its percent escapes.
    Display(&'a [u8]),
}

/// An item with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The value.
    pub bare: BareItem<'a>,
    /// The parameters.
    pub parameters: Parameters<'a>,
}

/// A member's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// One item.
    Item(BareItem<'a>),
    /// An inner list.
    List(InnerList<'a>),
}

/// A checked inner list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerList<'a>(&'a [u8]);

impl<'a> InnerList<'a> {
    /// The items, without their parameters.
    pub fn items(self) -> impl Iterator<Item = BareItem<'a>> {
        self.members().map(|item| item.bare)
    }

    /// The items.
    pub fn members(self) -> impl Iterator<Item = Item<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            skip(&mut rest, b" ");
            if rest.is_empty() { None } else { item(&mut rest).ok() }
        })
    }
}

/// Checked parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters<'a>(&'a [u8]);

impl<'a> Parameters<'a> {
    /// Keys and values in order; the last value of a repeated key counts.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], BareItem<'a>)> {
        let mut rest = self.0;
        std::iter::from_fn(move || if rest.is_empty() { None } else { parameter(&mut rest).ok() })
    }
}

/// One member of a dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The value; [`BareItem::Boolean`] `true` if it is absent.
    pub value: Value<'a>,
    /// The parameters.
    pub parameters: Parameters<'a>,
}

/// Parses all lines of a dictionary, and calls `visit` with each member in order. The last value of
/// a repeated key counts. Returns the number of members.
///
/// # Errors
/// [`MalformedDictionary`] if any line is malformed; the members visited before must be discarded.
pub fn parse_dictionary<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    mut visit: impl FnMut(Member<'a>),
) -> Result<usize, MalformedDictionary> {
    let (mut members, mut blank, mut count) = (0, false, 0);
    for line in lines {
        let mut rest = line;
        skip(&mut rest, b" ");
        let before = members;
        while !rest.is_empty() {
            visit(member(&mut rest)?);
            members += 1;
            skip(&mut rest, b" \t");
            if rest.is_empty() {
                break;
            }
            expect(&mut rest, b',')?;
            skip(&mut rest, b" \t");
            if rest.is_empty() {
                return Err(MalformedDictionary);
            }
        }
        blank |= before == members;
        count += 1;
    }
    // Lines are joined by commas, so a blank line leaves a comma too many.
    if blank && count > 1 { Err(MalformedDictionary) } else { Ok(members) }
}

/// Parses a field that is one item.
///
/// # Errors
/// [`MalformedDictionary`] if the field is malformed.
pub fn parse_item(field: &[u8]) -> Result<Item<'_>, MalformedDictionary> {
    let mut rest = field.trim_ascii();
    let item = item(&mut rest)?;
    if rest.is_empty() { Ok(item) } else { Err(MalformedDictionary) }
}

fn item<'a>(rest: &mut &'a [u8]) -> Result<Item<'a>, MalformedDictionary> {
    let bare = bare_item(rest)?;
    Ok(Item { bare, parameters: parameters(rest)? })
}

fn member<'a>(rest: &mut &'a [u8]) -> Result<Member<'a>, MalformedDictionary> {
    let key = key(rest)?;
    let value = if rest.first() == Some(&b'=') {
        *rest = &rest[1..];
        if rest.first() == Some(&b'(') {
            Value::List(inner_list(rest)?)
        } else {
            Value::Item(bare_item(rest)?)
        }
    } else {
        Value::Item(BareItem::Boolean(true))
    };
    Ok(Member { key, value, parameters: parameters(rest)? })
}

fn inner_list<'a>(rest: &mut &'a [u8]) -> Result<InnerList<'a>, MalformedDictionary> {
    expect(rest, b'(')?;
    let start = *rest;
    loop {
        skip(rest, b" ");
        if rest.first() == Some(&b')') {
            let inside = &start[..start.len() - rest.len()];
            *rest = &rest[1..];
            return Ok(InnerList(inside));
        }
        item(rest)?;
        if !matches!(rest.first(), Some(b' ' | b')')) {
            return Err(MalformedDictionary);
        }
    }
}

fn parameters<'a>(rest: &mut &'a [u8]) -> Result<Parameters<'a>, MalformedDictionary> {
    let start = *rest;
    while rest.first() == Some(&b';') {
        parameter(rest)?;
    }
    Ok(Parameters(&start[..start.len() - rest.len()]))
}

fn parameter<'a>(rest: &mut &'a [u8]) -> Result<(&'a [u8], BareItem<'a>), MalformedDictionary> {
    expect(rest, b';')?;
    skip(rest, b" ");
    let key = key(rest)?;
    if rest.first() != Some(&b'=') {
        return Ok((key, BareItem::Boolean(true)));
    }
    *rest = &rest[1..];
    Ok((key, bare_item(rest)?))
}

fn key<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], MalformedDictionary> {
    if !matches!(rest.first(), Some(b'a'..=b'z' | b'*')) {
        return Err(MalformedDictionary);
    }
    Ok(take_while(rest, |b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*')))
}

fn bare_item<'a>(rest: &mut &'a [u8]) -> Result<BareItem<'a>, MalformedDictionary> {
    match rest.first() {
        Some(b'-' | b'0'..=b'9') => number(rest),
        Some(b'"') => {
            *rest = &rest[1..];
            string(rest)
        }
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'*') => {
            Ok(BareItem::Token(take_while(rest, |b| is_token_byte(b) || matches!(b, b':' | b'/'))))
        }
        Some(b':') => {
            *rest = &rest[1..];
            bytes(rest)
        }
        Some(b'?') => {
            let value = match rest.get(1) {
                Some(b'0') => false,
                Some(b'1') => true,
                _ => return Err(MalformedDictionary),
            };
            *rest = &rest[2..];
            Ok(BareItem::Boolean(value))
        }
        Some(b'@') => {
            *rest = &rest[1..];
            match number(rest)? {
                BareItem::Integer(secs) => Ok(BareItem::Date(secs)),
                _ => Err(MalformedDictionary),
            }
        }
        Some(b'%') => {
            *rest = &rest[1..];
            expect(rest, b'"')?;
            display(rest)
        }
        _ => Err(MalformedDictionary),
    }
}

/// An integer of up to 15 digits or a decimal of up to 12 and 3 (RFC 9651 4.2.4).
fn number<'a>(rest: &mut &'a [u8]) -> Result<BareItem<'a>, MalformedDictionary> {
    let negative = rest.first() == Some(&b'-');
    if negative {
        *rest = &rest[1..];
    }
    let sign = if negative { -1 } else { 1 };
    let whole = take_while(rest, |b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 15 {
        return Err(MalformedDictionary);
    }
    let value = |digits: &[u8]| digits.iter().fold(0, |sum: i64, b| sum * 10 + i64::from(b - b'0'));
    if rest.first() != Some(&b'.') {
        return Ok(BareItem::Integer(sign * value(whole)));
    }
    *rest = &rest[1..];
    let fraction = take_while(rest, |b| b.is_ascii_digit());
    if whole.len() > 12 || fraction.is_empty() || fraction.len() > 3 {
        return Err(MalformedDictionary);
    }
    let thousandths = value(fraction) * [100, 10, 1][fraction.len() - 1];
    Ok(BareItem::Decimal(sign * (value(whole) * 1000 + thousandths)))
}

fn string<'a>(rest: &mut &'a [u8]) -> Result<BareItem<'a>, MalformedDictionary> {
    let start = *rest;
    loop {
        match take(rest)? {
            b'"' => return Ok(BareItem::String(&start[..start.len() - rest.len() - 1])),
            b'\\' if matches!(take(rest)?, b'"' | b'\\') => {}
            b'\\' | 0..=0x1f | 0x7f.. => return Err(MalformedDictionary),
            _ => {}
        }
    }
}

fn bytes<'a>(rest: &mut &'a [u8]) -> Result<BareItem<'a>, MalformedDictionary> {
    let text = take_while(rest, |b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
    expect(rest, b':')?;
    let data = text.iter().position(|b| *b == b'=').unwrap_or(text.len());
    let padded_right = text.len() - data <= 2 && text[data..].iter().all(|b| *b == b'=');
    // Padding is optional, but four characters make three bytes: a single one is invalid.
    if padded_right && data % 4 != 1 { Ok(BareItem::Bytes(text)) } else { Err(MalformedDictionary) }
}

fn display<'a>(rest: &mut &'a [u8]) -> Result<BareItem<'a>, MalformedDictionary> {
    let start = *rest;
    loop {
        match take(rest)? {
            b'"' => break,
            b'%' => {
                for _ in 0..2 {
                    if !matches!(take(rest)?, b'0'..=b'9' | b'a'..=b'f') {
                        return Err(MalformedDictionary);
                    }
                }
            }
            0..=0x1f | 0x7f.. => return Err(MalformedDictionary),
            _ => {}
        }
    }
    let text = &start[..start.len() - rest.len() - 1];
    if is_utf8_when_decoded(text) { Ok(BareItem::Display(text)) } else { Err(MalformedDictionary) }
}

fn is_utf8_when_decoded(text: &[u8]) -> bool {
    let mut decoded = smallvec::SmallVec::<[u8; 64]>::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match percent::escaped(rest) {
            Some(byte) => (byte, &rest[3..]),
            None => (*first, after),
        };
        decoded.push(byte);
        rest = after;
    }
    std::str::from_utf8(&decoded).is_ok()
}

fn take(rest: &mut &[u8]) -> Result<u8, MalformedDictionary> {
    let (byte, after) = rest.split_first().ok_or(MalformedDictionary)?;
    *rest = after;
    Ok(*byte)
}

fn expect(rest: &mut &[u8], byte: u8) -> Result<(), MalformedDictionary> {
    if take(rest)? == byte { Ok(()) } else { Err(MalformedDictionary) }
}

fn take_while<'a>(rest: &mut &'a [u8], accept: impl Fn(u8) -> bool) -> &'a [u8] {
    let len = rest.iter().position(|b| !accept(*b)).unwrap_or(rest.len());
    let (taken, after) = rest.split_at(len);
    *rest = after;
    taken
}

fn skip(rest: &mut &[u8], bytes: &[u8]) {
    take_while(rest, |b| bytes.contains(&b));
}

/// Writes `text` as a token if it is one, else as a string; bytes that are not printable ASCII
/// become `?`.
pub(crate) fn write_token_or_string(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let starts = bytes.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'*');
    if starts && bytes.iter().all(|b| is_token_byte(*b) || matches!(b, b':' | b'/')) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
            ' '..='~' => out.push(c as u8),
            _ => out.push(b'?'),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse<'a>(lines: &[&'a str]) -> Result<Vec<Member<'a>>, MalformedDictionary> {
        let mut members = Vec::new();
        parse_dictionary(lines.iter().map(|l| l.as_bytes()), |m| members.push(m))?;
        Ok(members)
    }

    fn item<'a>(text: &'a str) -> Result<BareItem<'a>, MalformedDictionary> {
        let mut rest = text.as_bytes();
        let item = bare_item(&mut rest)?;
        if rest.is_empty() { Ok(item) } else { Err(MalformedDictionary) }
    }

    #[test]
    fn bare_items_have_types() {
        assert_eq!(item("-042"), Ok(BareItem::Integer(-42)));
        assert_eq!(item("999999999999999"), Ok(BareItem::Integer(999_999_999_999_999)));
        assert_eq!(item("1.5"), Ok(BareItem::Decimal(1500)));
        assert_eq!(item("-0.125"), Ok(BareItem::Decimal(-125)));
        assert_eq!(item(r#""a\"b""#), Ok(BareItem::String(br#"a\"b"#)));
        assert_eq!(item("foo/bar:1"), Ok(BareItem::Token(b"foo/bar:1")));
        assert_eq!(item(":aGk=:"), Ok(BareItem::Bytes(b"aGk=")));
        assert_eq!(item("?0"), Ok(BareItem::Boolean(false)));
        assert_eq!(item("@-7"), Ok(BareItem::Date(-7)));
        assert_eq!(item(r#"%"f%c3%bc""#), Ok(BareItem::Display(b"f%c3%bc")));
    }

    #[test]
    fn near_misses_are_malformed() {
        for text in [
            "",
            "-",
            "1.",
            ".5",
            "1.2345",
            "1000000000000000",
            "1234567890123.0",
            "--1",
            "+1",
            "\"a",
            "\"a\\x\"",
            "\"\u{1}\"",
            "\"\u{e9}\"",
            ":a:",
            ":a=b:",
            ":a",
            "?2",
            "?",
            "@1.5",
            "@",
            "%\"%C3\"",
            "%\"%c3\"",
            "%\"%f\"",
            "%x",
            "'a'",
            "&",
        ] {
            assert_eq!(item(text), Err(MalformedDictionary), "{text}");
        }
    }

    #[test]
    fn a_dictionary_may_span_lines() {
        let members = parse(&["a=1;x;y=\"z\",\t b", "c=(1 \"2\";p  three)"]).expect("well-formed");
        let keys: Vec<_> = members.iter().map(|m| m.key).collect();
        assert_eq!(keys, [b"a", b"b", b"c"]);
        let parameters: Vec<_> = members[0].parameters.iter().collect();
        let expected: [(&[u8], _); 2] =
            [(b"x", BareItem::Boolean(true)), (b"y", BareItem::String(b"z"))];
        assert_eq!(parameters, expected);
        assert_eq!(members[1].value, Value::Item(BareItem::Boolean(true)));
        let Value::List(list) = members[2].value else { panic!("an inner list") };
        let named: Vec<_> = list.members().map(|item| item.parameters.iter().count()).collect();
        assert_eq!(named, [0, 1, 0]);
        let items: Vec<_> = list.items().collect();
        let expected = [BareItem::Integer(1), BareItem::String(b"2"), BareItem::Token(b"three")];
        assert_eq!(items, expected);
        assert_eq!(parse(&[""]), Ok(vec![]));
    }

    #[test]
    fn a_field_may_be_one_item() {
        let item = parse_item(b" \"a\";b=1 ").expect("an item");
        assert_eq!(item.bare, BareItem::String(b"a"));
        let parameters: Vec<_> = item.parameters.iter().collect();
        assert_eq!(parameters, [(&b"b"[..], BareItem::Integer(1))]);
        for field in ["", "\"a\", \"b\"", "a b", "a=1", "(a)"] {
            assert_eq!(parse_item(field.as_bytes()), Err(MalformedDictionary), "{field}");
        }
    }

    #[test]
    fn one_wrong_byte_spoils_the_field() {
        for lines in [
            &["a=1,"][..],
            &["a=1,,b"],
            &[",a"],
            &["a =1"],
            &["a= 1"],
            &["A=1"],
            &["a=1 b"],
            &["a=1, &&&"],
            &["a=1;"],
            &["a=1;X"],
            &["a=(1 2"],
            &["a=(1,2)"],
            &["a=(1\"2\")"],
            &["", "a"],
            &["\ta"],
        ] {
            assert_eq!(parse(lines), Err(MalformedDictionary), "{lines:?}");
        }
    }
}
