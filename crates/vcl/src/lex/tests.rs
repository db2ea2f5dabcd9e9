//! Tests of the lexer.

use super::*;

fn lex(text: &[u8]) -> (Vec<(TokenKind, String)>, usize) {
    let file = SourceFile { name: "a.vcl".into(), text: text.into(), included_at: None };
    let mut report = Report::default();
    let tokens = tokens(0, &file, &mut report);
    let shown = tokens.iter().map(|t| {
        let bytes = &text[t.span.start as usize..t.span.end as usize];
        (t.kind, String::from_utf8_lossy(bytes).into_owned())
    });
    (shown.collect(), report.errors())
}

fn kinds(text: &str) -> Vec<TokenKind> {
    let (tokens, errors) = lex(text.as_bytes());
    assert_eq!(errors, 0, "{text}");
    tokens.into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn comments_are_left_out() {
    assert_eq!(
        kinds("a # b\n// c\r\n/* d\n // ** */ e"),
        [TokenKind::Identifier, TokenKind::Identifier]
    );
    assert_eq!(kinds("# C{ 'x'"), []);
    for text in ["/* a", "/* /* */", "/* a /* b */ */"] {
        assert!(lex(text.as_bytes()).1 > 0, "{text}");
    }
}

#[test]
fn words_take_digits_and_dashes_but_begin_with_a_letter() {
    assert_eq!(kinds("a-b_c9"), [TokenKind::Identifier]);
    assert_eq!(kinds("a -b"), [TokenKind::Identifier, TokenKind::Sign("-"), TokenKind::Identifier]);
    assert_eq!(kinds("1a"), [TokenKind::Int, TokenKind::Identifier]);
    assert_eq!(lex(b"_a").1, 1);
}

#[test]
fn strings_end_where_varnish_ends_them() {
    for text in ["\"a\\\"", "{\"a\"b\"}", "{\"\n\"}", "\"\"\"a\"\"b\"\"\"", "\"\"", "\"\t\x01\""] {
        assert_eq!(kinds(text), [TokenKind::Str], "{text}");
    }
    for text in ["\"a\n", "\"a", "{\"a", "\"\"\"\"", "{\"a\0b\"}", "\"a\rb\"", "\"a\0\""] {
        let (tokens, errors) = lex(text.as_bytes());
        assert!(errors > 0 && tokens[0].0 == TokenKind::Bad, "{text}");
    }
    assert_eq!(string(b"\"\""), b"");
    assert_eq!(string(b"\"\"\"\"\"\""), b"");
    assert_eq!(string(b"{\"\"}"), b"");
}

#[test]
fn longer_signs_come_first() {
    let signs = |text| {
        kinds(text)
            .into_iter()
            .map(|k| match k {
                TokenKind::Sign(sign) => sign,
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(signs("+= = == !~ ! ~ && <="), ["+=", "=", "==", "!~", "!", "~", "&&", "<="]);
    assert_eq!(signs("--"), ["--"]);
}

#[test]
fn blobs_are_canonical_base64() {
    for text in [":AAAA:", "::", ":AA==:", ":AAA=:", ":+/09:"] {
        assert_eq!(kinds(text), [TokenKind::Blob], "{text}");
    }
    for text in [":AAA:", ": AAAA :", ":A=A=:", ":AA", ":A===:", ":=", ":"] {
        assert!(lex(text.as_bytes()).1 > 0, "{text}");
    }
    assert_eq!(decode(b"SGVsbG8="), Some(b"Hello".to_vec()));
}

#[test]
fn inline_c_is_one_fault_with_advice() {
    let (tokens, errors) = lex(b"C{ int x = '\\''; \"}C a");
    assert_eq!(errors, 1);
    assert_eq!(
        tokens.iter().map(|t| t.0).collect::<Vec<_>>(),
        [TokenKind::Bad, TokenKind::Identifier]
    );
    assert_eq!(lex(b"C{ int").1, 1);
    assert_eq!(kinds("C {"), [TokenKind::Identifier, TokenKind::Sign("{")]);
    assert_eq!(kinds("abC{"), [TokenKind::Identifier, TokenKind::Sign("{")]);
    assert!(replacement(b"#include <syslog.h>").contains("std.syslog"));
    assert!(replacement(b"vrt_sethdr(sp, 0)").contains("regsub"));
}

#[test]
fn stray_bytes_are_one_fault_a_row() {
    assert_eq!(lex(b"a @@@ b").1, 1);
    assert_eq!(lex("a ÄÄÄ b".as_bytes()).1, 1);
    assert_eq!(lex(b"a \xff\xfe b \0").1, 2);
    assert_eq!(lex(b"'a b' c '").1, 2);
    assert_eq!(lex(b"\xef\xbb\xbfvcl").1, 1);
}

#[test]
fn files_and_tokens_have_a_size() {
    let long = "a".repeat(MAX_TOKEN + 1);
    assert_eq!(lex(long.as_bytes()).1, 1);
    let (tokens, errors) = lex(&vec![b';'; MAX_FILE + 1]);
    assert_eq!((tokens.len(), errors), (0, 1));
}
