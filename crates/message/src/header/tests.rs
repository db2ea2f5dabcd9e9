//! Tests of header names and blocks.

use super::*;

#[test]
fn only_a_single_line_is_spelled_anew() {
    let mut block = HeaderBlock::new();
    block.push_named(b"cookie", b"a");
    block.push_named(b"x-one", b"1");
    assert!(block.respell(HeaderId::Cookie, b"Cookie"));
    assert!(block.respell(HeaderId::Other, b"X-One"));
    assert!(!block.respell(HeaderId::Other, b"X-Two"), "it is not there");
    block.push_named(b"x-one", b"2");
    assert!(!block.respell(HeaderId::Other, b"X-ONE"), "there are two");
    let names: Vec<_> = block.iter().map(|f| String::from_utf8_lossy(f.name)).collect();
    assert_eq!(names, ["Cookie", "X-One", "x-one"]);
}

#[test]
fn fields_are_written_from_where_they_lie_and_from_pieces() {
    let mut block = HeaderBlock::new();
    let head = b"A: 1\r\nTE: 22\r\nd:3\r\nE: \r\nF:  6\r\nG: 7\r\nH: 8";
    // Positions of names and values, as a parser finds them.
    for (name_at, name_len, value_at, value_len) in [
        (0, 1, 3, 1),
        (6, 2, 10, 2),
        (14, 1, 16, 1),
        (19, 1, 22, 0),
        (24, 1, 28, 1),
        (31, 1, 34, 1),
        (37, 1, 40, 1),
    ] {
        let id = if name_len == 2 { HeaderId::Te } else { HeaderId::Other };
        block.push_span(FieldSpan { id, name_at, name_len, value_at, value_len });
    }
    block.adopt(head);
    block.push_named(b"I", b"9");
    let written = |block: &HeaderBlock, without: &[HeaderId]| {
        let mut out = b"> ".to_vec();
        block.write_end_to_end(&mut out, without);
        String::from_utf8(out).expect("text")
    };
    let all = "> A: 1\r\nd: 3\r\nE: \r\nF: 6\r\nG: 7\r\nH: 8\r\nI: 9\r\n";
    assert_eq!(written(&block, &[]), all);
    assert_eq!(written(&block, &[HeaderId::Other]), "> ");
    block.remove_named(b"A");
    block.insert(5, HeaderId::Age, b"0");
    block.remove_named(b"d");
    let moved = "> E: \r\nF: 6\r\nG: 7\r\nAge: 0\r\nH: 8\r\nI: 9\r\n";
    assert_eq!(written(&block, &[]), moved);
    assert_eq!(written(&block, &[HeaderId::Age]), moved.replace("Age: 0\r\n", ""));
}

#[test]
fn a_value_can_be_written_in_place() {
    let mut block = HeaderBlock::new();
    block.push(HeaderId::Host, b"x");
    block.push_with(HeaderId::Age, |out| out.extend_from_slice(b"12"));
    assert_eq!(block.value(HeaderId::Age), Some(&b"12"[..]));
    assert_eq!(block.value(HeaderId::Host), Some(&b"x"[..]));
}

#[test]
fn every_known_name_is_found_in_any_case() {
    for id in IDS {
        assert_eq!(HeaderId::of(id.name().as_bytes()), *id);
        assert_eq!(HeaderId::of(id.name().to_lowercase().as_bytes()), *id);
        assert_eq!(HeaderId::of(id.name().to_uppercase().as_bytes()), *id);
    }
    assert_eq!(HeaderId::of(b"X-Unheard-Of"), HeaderId::Other);
    assert_eq!(HeaderId::of(b""), HeaderId::Other);
    assert_eq!(HeaderId::of(b"t"), HeaderId::Other);
}

#[test]
fn a_field_that_is_set_takes_the_place_of_all_of_its_name() {
    for (name, other) in [("X-Mine", "X-Mine-Too"), ("Cookie", "Accept")] {
        let id = HeaderId::of(name.as_bytes());
        let mut block = HeaderBlock::new();
        block.set_as(id, name.as_bytes(), b"first");
        block.push_named(other.as_bytes(), b"stays");
        for value in [&b"12345"[..], b"1", b"", b"longer than any before", b"short"] {
            block.set_as(id, name.to_lowercase().as_bytes(), value);
            assert_eq!(block.value_as(id, name.as_bytes()), Some(value), "{name}");
            assert_eq!(block.value_named(other.as_bytes()), Some(&b"stays"[..]));
            assert_eq!(block.len(), 2);
        }
        assert!(block.iter().any(|field| field.name == name.to_lowercase().as_bytes()));
        block.push_named(name.as_bytes(), b"second");
        block.set_as(id, name.as_bytes(), b"1");
        let values: Vec<_> = block.values_named(name.as_bytes()).collect();
        assert_eq!(values, [b"1"], "{name}");
        block.remove_as(id, name.as_bytes());
        assert_eq!((block.value_as(id, name.as_bytes()), block.len()), (None, 1));
    }
}

#[test]
fn a_name_with_one_bit_changed_is_known_only_when_that_is_case() {
    for id in IDS {
        for (at, bit) in (0..id.name().len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut name = id.name().as_bytes().to_vec();
            name[at] ^= 1 << bit;
            let expected = IDS
                .iter()
                .find(|id| id.name().as_bytes().eq_ignore_ascii_case(&name))
                .unwrap_or(&HeaderId::Other);
            assert_eq!(HeaderId::of(&name), *expected, "{name:?}");
        }
    }
}

#[test]
fn a_capital_anywhere_is_seen() {
    for name in IDS.iter().map(|id| id.name().to_lowercase()).chain(["x".into(), "!_~".into()]) {
        let lower = |name: &str| HeaderId::of(name.as_bytes()).is_lower_case(name.as_bytes());
        assert!(lower(&name), "{name}");
        for at in 0..name.len() {
            let mut other = name.clone();
            other[at..=at].make_ascii_uppercase();
            assert!(other == name || !lower(&other), "{other}");
        }
    }
    for name in [&b""[..], b"a b", b"a:", b"\xff", b"a\0"] {
        assert!(!HeaderId::Other.is_lower_case(name), "{}", name.escape_ascii());
    }
}

#[test]
fn a_block_keeps_order_and_spelling() {
    let mut block = HeaderBlock::new();
    block.push_named(b"aCCept", b"text/html");
    block.push_named(b"X-One", b"1");
    block.push(HeaderId::Accept, b"*/*");
    assert_eq!(block.value(HeaderId::Accept), Some(&b"text/html"[..]));
    assert_eq!(block.values(HeaderId::Accept).count(), 2);
    assert_eq!(block.value_named(b"x-one"), Some(&b"1"[..]));
    block.remove_named(b"X-ONE");
    assert_eq!(block.value_named(b"x-one"), None);
    let first = block.iter().next().expect("two fields");
    assert_eq!(first.name, b"aCCept");
    block.set(HeaderId::Accept, b"a/b");
    assert_eq!(block.len(), 1);
}

#[test]
fn a_field_may_be_put_before_others() {
    let mut block = HeaderBlock::new();
    for (at, id) in [(0, HeaderId::Age), (0, HeaderId::Host), (1, HeaderId::Date)] {
        block.insert(at, id, id.name().as_bytes());
    }
    block.insert(9, HeaderId::Via, b"Via");
    let order: Vec<_> = block.iter().map(|f| (f.id, f.value)).collect();
    let ids = [HeaderId::Host, HeaderId::Date, HeaderId::Age, HeaderId::Via];
    assert_eq!(order, ids.map(|id| (id, id.name().as_bytes())));
    assert!(block.contains(HeaderId::Date));
}

#[test]
#[should_panic(expected = "outside its bytes")]
fn spans_must_lie_in_the_adopted_bytes() {
    let mut block = HeaderBlock::new();
    block.push_span(FieldSpan {
        id: HeaderId::Age,
        name_at: 0,
        name_len: 3,
        value_at: 5,
        value_len: 9,
    });
    block.adopt(b"Age: 1");
}
