//! Tests of the CLI's protocol. Without another note, expectations are the replies of varnishd 7.1.

use proptest::prelude::*;

use super::*;

fn words(line: &[u8]) -> Result<Vec<String>, SyntaxError> {
    let text = |word: &Vec<u8>| String::from_utf8_lossy(word).into_owned();
    crate::words::split(line).map(|words| words.iter().map(text).collect())
}

#[test]
fn lines_are_cut_into_words() {
    for (line, expected) in [
        (&b"ping"[..], &["ping"][..]),
        (b"  ping\t1\r", &["ping", "1"]),
        (b"a\x0bb\x0cc", &["a", "b", "c"]),
        (b"\"a b\" c", &["a b", "c"]),
        (b"\"1\"2", &["1", "2"]),
        (b"\"\" x", &["", "x"]),
        (b"pi\\x6eg \"pi\\156g\"", &["ping", "ping"]),
        (b"\\n\\r\\t\\\"\\\\", &["\n\r\t\"\\"]),
        (b"\\18 \\7", &["\u{1}8", "\u{7}"]),
        (b"a\\x20b", &["a b"]),
        (b"# x", &["#", "x"]),
    ] {
        let expected: Vec<_> = expected.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(words(line), Ok(expected), "{}", line.escape_ascii());
    }
    for line in [&b"\"ping"[..], b"ping \"", b"ping \"a\\\""] {
        assert_eq!(words(line), Err(SyntaxError::Quote), "{}", line.escape_ascii());
    }
    for line in [&b"a\"b"[..], b"a\"", b"\"1\"2\""] {
        assert_eq!(words(line), Err(SyntaxError::QuoteWithin), "{}", line.escape_ascii());
    }
    for line in [&b"ping\\"[..], b"\\q", b"\"\\x1\"", b"\\xg0", b"\\x+1", b"\\9", b"\\400"] {
        assert_eq!(words(line), Err(SyntaxError::Backslash), "{}", line.escape_ascii());
    }
}

/// Every request in `bytes`, its words joined by `|`.
fn requests(bytes: &[u8], here_documents: bool) -> Vec<String> {
    let mut reader = Reader::new(1000);
    reader.feed(bytes);
    let mut found = Vec::new();
    while let Some(words) = reader.next(here_documents).expect("short") {
        let words = words.expect("well-formed");
        found
            .push(words.iter().map(|w| w.escape_ascii().to_string()).collect::<Vec<_>>().join("|"));
    }
    found
}

#[test]
fn a_here_document_is_the_last_argument() {
    for (bytes, expected) in [
        (&b"ping << E\nE\nping\n"[..], &["ping|", "ping"][..]),
        (b"ping << E\na b\n\n  \"\nE\n", &["ping|a b\\n\\n  \\\"\\n"]),
        (b"ping \"<<\" E\nx\nE\n", &["ping|x\\n"]),
        (b"ping << E\r\nx\r\nE\r\n", &["ping|x\\r\\n"]),
        (b"a b << A << B\nx\nA\nB\n", &["a|b|<<|A|x\\nA\\n"]),
        (b"<< E\nE\n", &[""]),
        (b"ping <<\n", &["ping|<<"]),
        (b"ping <<E\n", &["ping|<<E"]),
        (b"ping << E\nnever ended\n", &[]),
    ] {
        assert_eq!(requests(bytes, true), expected, "{}", bytes.escape_ascii());
    }
    assert_eq!(requests(b"ping << E\nE\n", false), ["ping|<<|E", "E"]);
}

#[test]
fn lines_of_blanks_are_no_requests() {
    assert_eq!(requests(b"\n  \r\n\tping\n\n", true), ["ping"]);
}

#[test]
fn an_oversized_request_is_reported_before_its_end() {
    for bytes in [&b"12345678901"[..], b"12345678901\n", b"a << E\n1234567\n1234\nE\n"] {
        let mut reader = Reader::new(10);
        reader.feed(bytes);
        assert_eq!(reader.next(true), Err(OversizedRequest), "{}", bytes.escape_ascii());
    }
    let mut reader = Reader::new(10);
    reader.feed(b"1234567890\n");
    assert!(matches!(reader.next(true), Ok(Some(Ok(_)))));
}

/// Status and text of the reply to a rejected line; 0 for a line that is a command.
fn refused(line: &str, authenticated: bool) -> (u16, String) {
    let words = crate::words::split(line.as_bytes()).expect("well-formed");
    match read(words, authenticated) {
        Ok(_) => (0, String::new()),
        Err(reply) => (reply.status as u16, reply.text),
    }
}

#[test]
fn commands_are_known_by_name_and_number_of_arguments() {
    let unknown = "Unknown request.\nType 'help' for more info.\n";
    for (line, status, text) in [
        ("ping", 0, ""),
        ("ping 12", 0, ""),
        ("ping -j 12", 0, ""),
        ("ping -x", 0, ""),
        ("ping 1 2", 105, "Too many parameters\n"),
        ("ping -j 1 2", 105, "Too many parameters\n"),
        ("ban", 104, "Too few parameters\n"),
        ("ban.list -x", 105, "Too many parameters\n"),
        ("ban.list -j x", 105, "Too many parameters\n"),
        ("banner -j", 102, "JSON unimplemented\n"),
        ("quit -j", 102, "JSON unimplemented\n"),
        ("auth", 104, "Too few parameters\n"),
        ("nothing", 101, unknown),
        ("\"\"", 101, unknown),
    ] {
        assert_eq!(refused(line, true), (status, text.to_owned()), "{line}");
    }
    assert_eq!(refused("Ping", true).1, format!("{unknown}all commands are in lower-case.\n"));
}

#[test]
fn without_the_secret_hardly_anything_is_known() {
    for line in ["auth x", "help", "help ban", "ping", "quit"] {
        assert_eq!(refused(line, false).0, 0, "{line}");
    }
    for spec in TABLE.iter().filter(|spec| !["auth", "help", "ping", "quit"].contains(&spec.name)) {
        assert_eq!(refused(spec.name, false).0, 101, "{}", spec.name);
    }
}

#[test]
fn help_says_how_each_command_is_written() {
    let call = |line: &str| {
        let words = crate::words::split(line.as_bytes()).expect("well-formed");
        read(words, true).expect("a command")
    };
    let all = help(&call("help")).text;
    assert_eq!(all.lines().count(), TABLE.len());
    assert!(TABLE.is_sorted_by_key(|spec| spec.name));
    assert_eq!(
        help(&call("help ping")).text,
        "ping [-j] [<timestamp>]\nGet a reply, and keep the connection.\n"
    );
    assert_eq!(help(&call("help nothing")).status, Status::Unknown);
    assert_eq!(help(&call("help -x")), Reply::new(Status::Unknown, "Unknown flag\n"));
    let json = help_json(&call("help -j"), 1_795_346_822_004).text;
    assert!(json.starts_with("[ 2, [\"help\", \"-j\"], 1795346822.004,\n  {\n"), "{json}");
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = value.as_array().expect("an array");
    assert_eq!(rows.len(), 3 + TABLE.len());
    assert_eq!(rows[3]["request"], "auth");
}

#[test]
fn replies_have_their_length() {
    assert_eq!(Reply::ok("PONG").to_wire(), "200 4       \nPONG\n");
    assert_eq!(Reply::new(Status::Auth, "").to_wire(), "107 0       \n\n");
}

#[test]
fn only_the_secret_answers_the_challenge() {
    let challenge = Challenge::new(std::array::from_fn(|at| (at as u8).wrapping_mul(9)));
    assert!(challenge.letters().iter().all(u8::is_ascii_lowercase));
    // Made by `printf '%s\nsecret\n%s\n' LETTERS LETTERS | sha256sum`.
    let answer = b"f71c283d7b96cc77869c40f6ba374924698b1c05cede82519261be8ba73f7bf3";
    assert!(challenge.is_answered(b"secret\n", answer));
    assert!(challenge.is_answered(b"secret\n", &answer.to_ascii_uppercase()));
    for (secret, answer) in [
        (&b"secret"[..], &answer[..]),
        (b"", answer),
        (b"secret\n", b""),
        (b"secret\n", &answer[..63]),
        (b"secret\n", &[b'0'; 64]),
    ] {
        assert!(!challenge.is_answered(secret, answer));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_requests_however_they_are_cut(
        data in proptest::collection::vec(
            prop_oneof![proptest::sample::select(&b"\n \"\\<E"[..]), any::<u8>()],
            0..200,
        )
    ) {
        crate::fuzz::session(&data);
    }

    #[test]
    fn a_quoted_word_is_read_as_it_was(word in ".*") {
        let mut line = String::from("\"");
        for c in word.chars() {
            match c {
                '"' | '\\' => line.extend(['\\', c]),
                c => line.push(c),
            }
        }
        line.push('"');
        prop_assert_eq!(words(line.as_bytes()), Ok(vec![word]));
    }
}
