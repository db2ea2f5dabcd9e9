//! Chunked bodies: sizes, extensions, line ends, trailers.

use super::table::{FramingTable, SMUGGLED, chunked};

pub(super) fn add(table: &mut FramingTable) {
    chunk_size(table);
    chunk_ext(table);
    chunk_term(table);
    trailer(table);
}

fn chunk_size(table: &mut FramingTable) {
    for (name, size) in [
        ("empty", &b""[..]),
        ("plus sign", b"+5"),
        ("minus sign", b"-5"),
        ("minus zero", b"-0"),
        ("0x", b"0x5"),
        ("0X", b"0X5"),
        ("x", b"x5"),
        ("h after", b"5h"),
        ("underscore", b"0_5"),
        ("comma", b"5,"),
        ("decimal point", b"5.0"),
        ("exponent sign", b"5p0"),
        ("space before", b" 5"),
        ("space after", b"5 "),
        ("spaces after", b"5     "),
        ("tab before", b"\t5"),
        ("tab after", b"5\t"),
        ("space inside", b"0 5"),
        ("NUL before", b"\x005"),
        ("NUL after", b"5\0"),
        ("vertical tab after", b"5\x0b"),
        ("high byte", b"5\xff"),
        ("double quotes", b"\"5\""),
        ("not a digit", b"g"),
        ("seventeen digits", b"00000000000000005"),
        ("seventeen digits, 2^64", b"10000000000000000"),
        ("2^64 and five", b"10000000000000005"),
        ("twenty digits", b"ffffffffffffffffffff"),
        ("forty zeros", b"0000000000000000000000000000000000000005"),
    ] {
        table.reject("chunk-size", name, chunked(&[size, b"\r\nhello\r\n0\r\n\r\n"].concat()));
    }
    for (name, size) in [("leading zeros", &b"0000000000000005"[..]), ("one digit", b"5")] {
        let body = [size, b"\r\nhello\r\n0\r\n\r\n"].concat();
        table.accept("chunk-size", name, 2, [&chunked(&body), SMUGGLED].concat());
    }
    let both_cases = [b"a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", SMUGGLED].concat();
    table.accept("chunk-size", "digits of both cases", 2, chunked(&both_cases));
}

fn chunk_ext(table: &mut FramingTable) {
    for (name, ext) in [
        ("nothing after the semicolon", &b";"[..]),
        ("two semicolons", b";;a"),
        ("space only", b"; "),
        ("space before the semicolon", b" ;a"),
        ("space before the end", b";a "),
        ("space after the value", b";a=b "),
        ("no name", b";=b"),
        ("no value", b";a="),
        ("two equals signs", b";a==b"),
        ("no semicolon", b"a=b"),
        ("comma", b";a,b"),
        ("name in quotes", b";\"a\""),
        ("open quotes", b";a=\"b"),
        ("text after quotes", b";a=\"b\"c"),
        ("LF", b";a\nb"),
        ("CR", b";a\rb"),
        ("CR in quotes", b";a=\"\r\""),
        ("LF in quotes", b";a=\"\n\""),
        ("CRLF in quotes", b";a=\"\r\n\""),
        ("escaped CR", b";a=\"\\\r\""),
        ("escaped LF", b";a=\"\\\n\""),
        ("NUL", b";a\0"),
        ("NUL in quotes", b";a=\"\0\""),
        ("DEL in quotes", b";a=\"\x7f\""),
        ("high byte in a name", b";\xff"),
        ("vertical tab", b";a\x0b"),
        ("ended by LF after CR CR", b";a\r\r"),
    ] {
        let body = [b"5", ext, b"\r\nhello\r\n0\r\n\r\n"].concat();
        table.reject("chunk-ext", name, chunked(&body));
    }
    let long = [b"5;", &vec![b'a'; 4096][..], b"\r\nhello\r\n0\r\n\r\n"].concat();
    table.reject("chunk-ext", "beyond its limit", chunked(&long));
    let many = [&b"1;aaaa\r\nx\r\n".repeat(1000)[..], b"0\r\n\r\n"].concat();
    table.reject("chunk-ext", "beyond its limit in many chunks", chunked(&many));
    for (name, ext) in [
        ("name", &b";a"[..]),
        ("name and value", b";a=b"),
        ("several", b";a=b;c;d=\"e\""),
        ("quotes with anything", b";a=\"b;c=\\\"d\\\\ \t\xff\""),
        ("empty quotes", b";a=\"\""),
        ("bad white space", b"; a = b ; c"),
    ] {
        let body = [b"5", ext, b"\r\nhello\r\n0", ext, b"\r\n\r\n"].concat();
        table.accept("chunk-ext", name, 2, [&chunked(&body), SMUGGLED].concat());
    }
}

fn chunk_term(table: &mut FramingTable) {
    for (name, body) in [
        ("LF after the size", &b"5\nhello\r\n0\r\n\r\n"[..]),
        ("LF after the data", b"5\r\nhello\n0\r\n\r\n"),
        ("LF after the last size", b"5\r\nhello\r\n0\n\r\n"),
        ("LF after the last chunk", b"5\r\nhello\r\n0\r\n\n"),
        ("LF everywhere", b"5\nhello\n0\n\n"),
        ("CR after the size", b"5\rhello\r\n0\r\n\r\n"),
        ("CR after the data", b"5\r\nhello\r0\r\n\r\n"),
        ("CR CR LF after the size", b"5\r\r\nhello\r\n0\r\n\r\n"),
        ("CR CR LF after the data", b"5\r\nhello\r\r\n0\r\n\r\n"),
        ("CR and a letter after the size", b"5\rXhello\r\n0\r\n\r\n"),
        ("CR and a letter after the last chunk", b"0\r\n\rX"),
        ("CR CR LF after the last chunk", b"0\r\n\r\r\n"),
        ("nothing after the data", b"5\r\nhello0\r\n\r\n"),
        ("two bytes that are no CRLF", b"5\r\nhelloXX0\r\n\r\n"),
        ("data longer than its size", b"5\r\nhello!\r\n0\r\n\r\n"),
        ("data shorter than its size", b"6\r\nhello\r\n0\r\n\r\n"),
        ("blank line between chunks", b"5\r\nhello\r\n\r\n0\r\n\r\n"),
        ("blank line before the first chunk", b"\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("LF CR after the size", b"5\n\rhello\r\n0\r\n\r\n"),
        ("NUL after the data", b"5\r\nhello\0\r\n0\r\n\r\n"),
    ] {
        table.reject("chunk-term", name, chunked(body));
    }
}

fn trailer(table: &mut FramingTable) {
    for (name, lines) in [
        ("Content-Length", &b"Content-Length: 5\r\n"[..]),
        ("Transfer-Encoding", b"Transfer-Encoding: chunked\r\n"),
        ("Transfer_Encoding", b"transfer_encoding: chunked\r\n"),
        ("Host", b"Host: evil.example\r\n"),
        ("Connection", b"A: b\r\nconnection: close\r\n"),
        ("Upgrade", b"Upgrade: h2c\r\n"),
        ("Trailer", b"Trailer: a\r\n"),
        ("a request line", b"GET /smuggled HTTP/1.1\r\n"),
        ("space before the colon", b"A : b\r\n"),
        ("empty name", b": b\r\n"),
        ("no colon", b"A\r\n"),
        ("name not a token", b"A(: b\r\n"),
        ("folded", b"A: b\r\n c\r\n"),
        ("leading space", b" A: b\r\n"),
        ("NUL", b"A: \0\r\n"),
        ("control byte", b"A: b\x01\r\n"),
        ("ended by LF", b"A: b\n"),
        ("ended by CR", b"A: b\rC: d\r\n"),
        ("CR CR LF", b"A: b\r\r\n"),
        ("LF in the name", b"A\nB: c\r\n"),
    ] {
        table.reject("trailer", name, chunked(&[b"0\r\n", lines, b"\r\n"].concat()));
    }
    let long = [b"0\r\nA: ", &vec![b'a'; 8192][..], b"\r\n\r\n"].concat();
    table.reject("trailer", "beyond its limit", chunked(&long));
    let many = [b"0\r\n", &b"A: b\r\n".repeat(2000)[..], b"\r\n"].concat();
    table.reject("trailer", "many beyond the limit", chunked(&many));
    for (name, lines) in [
        ("one", &b"X-Checksum: abc\r\n"[..]),
        ("several", b"X-Checksum: abc\r\nServer-Timing: a;dur=1\r\n"),
        ("empty value", b"A:\r\n"),
        ("dropped, not merged", b"Authorization: Basic YTpi\r\nCookie: a=b\r\n"),
    ] {
        let body = [b"5\r\nhello\r\n0\r\n", lines, b"\r\n"].concat();
        table.accept("trailer", name, 2, [&chunked(&body), SMUGGLED].concat());
    }
}
