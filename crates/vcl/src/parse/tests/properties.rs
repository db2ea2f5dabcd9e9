//! Property tests of the parser: for any input it ends without a panic, and positions lie within
//! the files.

use proptest::prelude::*;

use crate::fuzz;

/// Pieces of VCL and of other text, in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "vcl 4.1;",
        "sub ",
        "vcl_recv",
        "{",
        "}",
        "(",
        ")",
        ";",
        "if ",
        "else ",
        "elsif",
        "set ",
        "req.http.x",
        " = ",
        "\"a\"",
        "{\"b\"}",
        "\"\"\"",
        "1",
        "1.5",
        "h",
        "KB",
        " + ",
        " && ",
        "!",
        "~",
        "acl a ",
        "backend b ",
        "probe p ",
        ".host",
        ".probe",
        ".",
        ",",
        "import ",
        "std",
        "return",
        "call ",
        "new ",
        "C{",
        "}C",
        "/*",
        "*/",
        "#",
        "\n",
        ":AAAA:",
        ":",
        "'",
        "none",
        "include \"x\";",
        "é",
        "\0",
        "-",
        "/",
        "none;",
        "\"",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::lexer(&bytes);
        fuzz::parser(&bytes);
    }

    #[test]
    fn any_pieces_are_read_or_refused(text in pieces()) {
        fuzz::lexer(text.as_bytes());
        fuzz::parser(text.as_bytes());
        fuzz::parser(format!("vcl 4.1; sub a {{ {text}").as_bytes());
    }
}
