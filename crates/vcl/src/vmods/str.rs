//! VMOD `str`: searches in strings and parts of them, by bytes and not characters.

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;
use crate::vmod::{Function, Module, Parameter};
use crate::vmods::args::{Args, number, owned, required_parameter, text};

/// The module.
pub static MODULE: Module = Module {
    name: "str",
    about: "Searches strings and extracts parts of them. Characters are bytes.",
    functions: FUNCTIONS,
    classes: &[],
    refused: &[],
};

const TWO: &[Parameter] =
    &[required_parameter("s1", Type::String), required_parameter("s2", Type::String)];

const FUNCTIONS: &[Function] = &[
    Function {
        name: "count",
        about: "Length in bytes. -1 if there is no string.",
        returns: Type::Int,
        params: &[required_parameter("s", Type::String)],
        from: Subs::ALL,
        call: |_, args| Ok(Value::Int(args.string(0).map_or(-1, |s| s.len() as i64))),
    },
    Function {
        name: "startswith",
        about: "Whether the first string begins with the second. False if either is missing.",
        returns: Type::Bool,
        params: TWO,
        from: Subs::ALL,
        call: |_, args| both(args, |s1, s2| s1.starts_with(s2)),
    },
    Function {
        name: "endswith",
        about: "Whether the first string ends with the second. False if either is missing.",
        returns: Type::Bool,
        params: TWO,
        from: Subs::ALL,
        call: |_, args| both(args, |s1, s2| s1.ends_with(s2)),
    },
    Function {
        name: "contains",
        about: "Whether the first string contains the second. False if either is missing.",
        returns: Type::Bool,
        params: TWO,
        from: Subs::ALL,
        call: |_, args| both(args, |s1, s2| memchr::memmem::find(s1, s2).is_some()),
    },
    Function {
        name: "take",
        about: "At most n bytes, starting at the offset. A negative offset counts from the end. A \
                negative n takes the bytes before the offset, or before the end if the offset is \
                0. No string if there is none.",
        returns: Type::String,
        params: &[
            required_parameter("s", Type::String),
            required_parameter("n", Type::Int),
            number("offset", Type::Int, 0.0),
        ],
        from: Subs::ALL,
        call: |_, args| {
            let (n, offset) = (args.int(1).unwrap_or(0), args.int(2).unwrap_or(0));
            Ok(Value::String(args.string(0).map(|s| take(s, n, offset))))
        },
    },
    Function {
        name: "reverse",
        about: "The bytes in reverse order. No string if there is none.",
        returns: Type::String,
        params: &[required_parameter("s", Type::String)],
        from: Subs::ALL,
        call: |_, args| match args.string(0) {
            Some(s) => Ok(owned(s.iter().rev().copied().collect::<Vec<u8>>())),
            None => Ok(Value::String(None)),
        },
    },
    Function {
        name: "split",
        about: "The n-th word of a string. Words are separated by any number of the bytes of \
                `sep`. The first is 1; a negative n counts from the end. No string if there are \
                fewer words.",
        returns: Type::String,
        params: &[
            required_parameter("S", Type::String),
            required_parameter("n", Type::Int),
            text("sep", " \t"),
        ],
        from: Subs::ALL,
        call: nth_word,
    },
];

fn both(args: &[Value], is: fn(&[u8], &[u8]) -> bool) -> Result<Value, ProgramFailure> {
    Ok(Value::Bool(match (args.string(0), args.string(1)) {
        (Some(s1), Some(s2)) => is(s1, s2),
        _ => false,
    }))
}

fn take(s: &Bytes, n: i64, offset: i64) -> Bytes {
    let len = s.len() as i64;
    // Before the beginning there is nothing: an offset of 0 means the end there.
    let from_end = offset < 0 || (offset == 0 && n < 0);
    let base = if from_end { len.saturating_add(offset) } else { offset };
    let other = base.saturating_add(n);
    let within = |at: i64| at.clamp(0, len) as usize;
    s.slice(within(base.min(other))..within(base.max(other)))
}

fn nth_word(_: &mut Ctx<'_>, args: &[Value]) -> Result<Value, ProgramFailure> {
    let Some(s) = args.string(0) else { return Ok(Value::String(None)) };
    let (n, sep) = (args.int(1).unwrap_or(0), args.bytes(2));
    Ok(Value::String(word(s, n, sep).map(|word| s.slice_ref(word))))
}

fn word<'a>(s: &'a [u8], n: i64, sep: &[u8]) -> Option<&'a [u8]> {
    let mut words = s.split(|b| sep.contains(b)).filter(|word| !word.is_empty());
    let skipped = usize::try_from(n.checked_abs()?.checked_sub(1)?).ok()?;
    if n > 0 { words.nth(skipped) } else { words.nth_back(skipped) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // Results of Varnish's VMOD.
    #[test]
    fn parts_are_taken_from_either_side_of_the_offset() {
        let s = Bytes::from_static(b"abcdef");
        for (n, offset, part) in [
            (2, 0, "ab"),
            (2, 2, "cd"),
            (10, 2, "cdef"),
            (-2, 3, "bc"),
            (2, -3, "de"),
            (-2, -3, "bc"),
            (2, 10, ""),
            (2, -10, ""),
            (0, 0, ""),
            (-20, 3, "abc"),
            (8, -10, "abcd"),
            (-2, 0, "ef"),
            (-8, 10, "cdef"),
            (-2, 6, "ef"),
            (2, -6, "ab"),
            (-2, 7, "f"),
            (3, -7, "ab"),
            (3, -9, ""),
            (-1, -5, "a"),
        ] {
            assert_eq!(take(&s, n, offset), part, "n {n} offset {offset}");
        }
    }

    #[test]
    fn words_are_counted_from_either_end() {
        for (n, expected) in
            [(1, Some("a")), (2, Some("b")), (3, Some("c")), (4, None), (0, None), (-1, Some("c"))]
        {
            assert_eq!(word(b" a b  c ", n, b" \t"), expected.map(str::as_bytes), "{n}");
        }
        assert_eq!(word(b"a,b;;c", 3, b",;"), Some(&b"c"[..]));
        assert_eq!(word(b"abc", 1, b""), Some(&b"abc"[..]));
        assert_eq!(word(b"abc", i64::MIN, b""), None);
    }

    proptest! {
        #[test]
        fn a_part_is_as_long_as_was_asked_or_at_an_edge(
            s in "[a-z]{0,20}", n in -30_i64..30, offset in -30_i64..30,
        ) {
            let part = take(&Bytes::from(s.clone()), n, offset);
            prop_assert!(part.len() as u64 <= n.unsigned_abs());
            let is_part = s.as_bytes().windows(part.len().max(1)).any(|w| w == part);
            prop_assert!(is_part || part.is_empty());
        }
    }

    #[test]
    fn numbers_of_any_size_are_taken() {
        let s = Bytes::from_static(b"abc");
        for n in [i64::MIN, -1, 0, 1, i64::MAX] {
            for offset in [i64::MIN, -1, 0, 1, i64::MAX] {
                take(&s, n, offset);
            }
        }
    }
}
