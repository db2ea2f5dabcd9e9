//! Fields: Transfer-Encoding, Content-Length, Expect, Upgrade and Connection, alone and combined.

use super::table::{FramingTable, SMUGGLED, get, post};

pub(super) fn add(table: &mut FramingTable) {
    te_values(table);
    te_lines(table);
    te_version(table);
    cl_syntax(table);
    cl_dup(table);
    together(table);
    expect(table);
    upgrade(table);
    hop_by_hop(table);
}

/// Values of Transfer-Encoding other than one `chunked`.
fn te_values(table: &mut FramingTable) {
    for (name, value) in [
        ("unknown coding", &b"xchunked"[..]),
        ("longer word", b"chunkedd"),
        ("shorter word", b"chunke"),
        ("another word", b"cow"),
        ("identity", b"identity"),
        ("gzip", b"gzip"),
        ("trailers", b"trailers"),
        ("chunked then identity", b"chunked, identity"),
        ("identity then chunked", b"identity, chunked"),
        ("gzip then chunked", b"gzip, chunked"),
        ("chunked twice", b"chunked, chunked"),
        ("comma after", b"chunked,"),
        ("comma before", b",chunked"),
        ("comma and space before", b", chunked"),
        ("space and comma after", b"chunked ,"),
        ("parameter", b"chunked;q=1"),
        ("parameter after space", b"chunked; a=b"),
        ("empty parameter", b"chunked;"),
        ("double quotes", b"\"chunked\""),
        ("single quotes", b"'chunked'"),
        ("space inside", b"chun ked"),
        ("tab inside", b"chun\tked"),
        ("space between words", b"chunked identity"),
        ("backslash", b"\\chunked"),
        ("slash", b"chunked/1"),
        ("vertical tab before", b"\x0bchunked"),
        ("vertical tab after", b"chunked\x0b"),
        ("form feed before", b"\x0cchunked"),
        ("NUL before", b"\0chunked"),
        ("NUL after", b"chunked\0"),
        ("unit separator after", b"chunked\x1f"),
        ("DEL after", b"chunked\x7f"),
        ("no-break space after", b"chunked\xa0"),
        ("no-break space in UTF-8 before", b"\xc2\xa0chunked"),
        ("byte order mark", b"\xef\xbb\xbfchunked"),
        ("high byte after", b"chunked\xff"),
        ("Kelvin sign for k", b"chun\xe2\x84\xaaed"),
        ("empty", b""),
        ("white space only", b" \t "),
        ("colon before", b": chunked"),
    ] {
        let field = [b"Transfer-Encoding: ", value, b"\r\n"].concat();
        table.reject("te-obfuscation", name, post(&field, b"0\r\n\r\n"));
        let both = [b"Content-Length: 5\r\n", &field[..]].concat();
        table.reject(
            "te-obfuscation",
            &format!("{name}, with a length"),
            post(&both, b"0\r\n\r\n"),
        );
    }
}

/// Lines that some parsers take for a Transfer-Encoding and others do not.
fn te_lines(table: &mut FramingTable) {
    for (name, lines) in [
        ("space before the colon", &b"Transfer-Encoding : chunked\r\n"[..]),
        ("tab before the colon", b"Transfer-Encoding\t: chunked\r\n"),
        ("vertical tab before the colon", b"Transfer-Encoding\x0b: chunked\r\n"),
        ("NUL before the colon", b"Transfer-Encoding\0: chunked\r\n"),
        ("space for the hyphen", b"Transfer Encoding: chunked\r\n"),
        ("underscore for the hyphen", b"Transfer_Encoding: chunked\r\n"),
        ("underscore in lower case", b"transfer_encoding: chunked\r\n"),
        ("high byte in the name", b"Transfer-Encoding\xff: chunked\r\n"),
        ("dotless i in the name", b"Transfer-Encod\xc4\xb1ng: chunked\r\n"),
        ("space before the name", b" Transfer-Encoding: chunked\r\n"),
        ("tab before the name", b"\tTransfer-Encoding: chunked\r\n"),
        ("colon before the name", b":Transfer-Encoding: chunked\r\n"),
        ("equals sign for the colon", b"Transfer-Encoding=chunked\r\n"),
        ("no colon", b"Transfer-Encoding chunked\r\n"),
        ("folded value", b"Transfer-Encoding:\r\n chunked\r\n"),
        ("value folded with tab", b"Transfer-Encoding:\r\n\tchunked\r\n"),
        ("folded colon", b"Transfer-Encoding\r\n : chunked\r\n"),
        ("folded second coding", b"Transfer-Encoding: chunked\r\n , identity\r\n"),
        ("LF before the value", b"Transfer-Encoding:\nchunked\r\n"),
        ("ended by LF", b"Transfer-Encoding: chunked\n"),
        ("ended by CR", b"Transfer-Encoding: chunked\rA: b\r\n"),
        ("after a bare LF", b"A: b\nTransfer-Encoding: chunked\r\n"),
        ("after a bare CR", b"A: b\rTransfer-Encoding: chunked\r\n"),
        ("after LF CR", b"A: b\n\rTransfer-Encoding: chunked\r\n"),
        ("after NUL", b"A: b\0Transfer-Encoding: chunked\r\n"),
        ("twice", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ("then identity", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
        ("after identity", b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"),
        ("then empty", b"Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n"),
        ("then in lower case", b"Transfer-Encoding: chunked\r\ntransfer-encoding: x\r\n"),
    ] {
        table.reject("te-obfuscation", name, post(lines, b"0\r\n\r\n"));
    }
    for (name, field) in [
        ("upper case", &b"TRANSFER-ENCODING: CHUNKED\r\n"[..]),
        ("no space", b"Transfer-Encoding:chunked\r\n"),
        ("tabs around", b"Transfer-Encoding:\tchunked\t\r\n"),
    ] {
        table.accept("te-obfuscation", name, 2, [&post(field, b"0\r\n\r\n"), SMUGGLED].concat());
    }
}

fn te_version(table: &mut FramingTable) {
    for (name, fields) in [
        ("HTTP/1.0", &b""[..]),
        ("HTTP/1.0 kept alive", b"Connection: keep-alive\r\n"),
        ("HTTP/1.0 with a length", b"Content-Length: 5\r\n"),
        ("HTTP/1.0 with Host", b"Host: example.com\r\n"),
    ] {
        let head = [b"POST / HTTP/1.0\r\n", fields, b"Transfer-Encoding: chunked\r\n\r\n"].concat();
        table.reject("te-version", name, [&head[..], b"0\r\n\r\n"].concat());
    }
}

fn cl_syntax(table: &mut FramingTable) {
    for (name, value) in [
        ("empty", &b""[..]),
        ("white space only", b"  "),
        ("plus sign", b"+5"),
        ("minus sign", b"-5"),
        ("minus zero", b"-0"),
        ("hexadecimal", b"0x5"),
        ("hexadecimal digit", b"a"),
        ("octal with letter", b"0o5"),
        ("underscore", b"1_0"),
        ("exponent", b"1e1"),
        ("decimal point", b"5.0"),
        ("comma", b"5,"),
        ("list of equals", b"5, 5"),
        ("list", b"5, 6"),
        ("list without space", b"5,5"),
        ("two numbers", b"5 5"),
        ("tab between digits", b"5\t0"),
        ("semicolon", b"5;"),
        ("parameter", b"5; a=b"),
        ("double quotes", b"\"5\""),
        ("single quotes", b"'5'"),
        ("letter after", b"5a"),
        ("vertical tab before", b"\x0b5"),
        ("vertical tab after", b"5\x0b"),
        ("NUL after", b"5\0"),
        ("no-break space", b"\xa05"),
        ("Arabic digit", b"\xd9\xa5"),
        ("full-width digit", b"\xef\xbc\x95"),
        ("word", b"five"),
        ("2^63", b"9223372036854775808"),
        ("2^64", b"18446744073709551616"),
        ("2^64 and five", b"18446744073709551621"),
        ("thirty digits", b"999999999999999999999999999999"),
    ] {
        let field = [b"Content-Length: ", value, b"\r\n"].concat();
        table.reject("cl-syntax", name, post(&field, b"hello"));
    }
    for (name, field) in [
        ("space before the colon", &b"Content-Length : 5\r\n"[..]),
        ("tab before the colon", b"Content-Length\t: 5\r\n"),
        ("underscore in the name", b"Content_Length: 5\r\n"),
        ("folded", b"Content-Length:\r\n 5\r\n"),
        ("space before the name", b" Content-Length: 5\r\n"),
        ("ended by LF", b"Content-Length: 5\n"),
    ] {
        table.reject("cl-syntax", name, post(field, b"hello"));
    }
    for (name, field) in [
        ("leading zeros", &b"Content-Length: 0005\r\n"[..]),
        ("no space", b"content-length:5\r\n"),
        ("white space around", b"Content-Length: \t 5 \t\r\n"),
    ] {
        table.accept("cl-syntax", name, 2, [&post(field, b"hello"), SMUGGLED].concat());
    }
}

fn cl_dup(table: &mut FramingTable) {
    for (name, fields) in [
        ("equal", &b"Content-Length: 5\r\nContent-Length: 5\r\n"[..]),
        ("different", b"Content-Length: 5\r\nContent-Length: 6\r\n"),
        ("zero first", b"Content-Length: 0\r\nContent-Length: 5\r\n"),
        ("zero last", b"Content-Length: 5\r\nContent-Length: 0\r\n"),
        ("other case", b"Content-Length: 5\r\ncontent-length: 5\r\n"),
        ("apart", b"Content-Length: 5\r\nA: b\r\nContent-Length: 5\r\n"),
        ("leading zero", b"Content-Length: 5\r\nContent-Length: 05\r\n"),
        ("empty first", b"Content-Length:\r\nContent-Length: 5\r\n"),
        ("empty last", b"Content-Length: 5\r\nContent-Length:\r\n"),
        ("three", b"Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: 5\r\n"),
        ("with sign", b"Content-Length: 5\r\nContent-Length: +5\r\n"),
    ] {
        table.reject("cl-dup", name, post(fields, b"hello"));
    }
}

/// Length and coding together, and bodies with methods that usually have none.
fn together(table: &mut FramingTable) {
    const CL: &[u8] = b"Content-Length: 6\r\n";
    const TE: &[u8] = b"Transfer-Encoding: chunked\r\n";
    let prefix = b"0\r\n\r\nG";
    table.reject("cl.te", "plain", post(&[CL, TE].concat(), prefix));
    table.reject("cl.te", "apart", post(&[CL, b"A: b\r\n", TE].concat(), prefix));
    table.reject(
        "cl.te",
        "upper case coding",
        post(&[CL, b"TE: x\r\nTransfer-Encoding: CHUNKED\r\n"].concat(), prefix),
    );
    table.reject("cl.te", "length of zero", post(&[b"Content-Length: 0\r\n", TE].concat(), prefix));
    table.reject(
        "cl.te",
        "kept alive",
        post(&[b"Connection: keep-alive\r\n", CL, TE].concat(), prefix),
    );
    table.reject("cl.te", "GET", get(&[CL, TE].concat()));
    table.reject(
        "cl.te",
        "coding named by Connection",
        post(&[b"Connection: transfer-encoding\r\n", CL, TE].concat(), prefix),
    );
    let chunk = [b"2c\r\n", SMUGGLED, b"\r\n0\r\n\r\n"].concat();
    table.reject("te.cl", "plain", post(&[TE, b"Content-Length: 4\r\n"].concat(), &chunk));
    table.reject("te.cl", "apart", post(&[TE, b"A: b\r\nContent-Length: 4\r\n"].concat(), &chunk));
    table.reject(
        "te.cl",
        "exact length",
        post(&[TE, b"Content-Length: 5\r\n"].concat(), b"0\r\n\r\n"),
    );
    table.reject(
        "te.cl",
        "malformed length",
        post(&[TE, b"Content-Length: x\r\n"].concat(), b"0\r\n\r\n"),
    );

    // A server that ignores the body of these reads it as the next request: one request, not two.
    let length = format!("Content-Length: {}\r\n", SMUGGLED.len());
    for method in ["GET", "HEAD", "OPTIONS", "DELETE", "PUT", "FOO"] {
        let head = format!("{method} /a HTTP/1.1\r\nHost: example.com\r\n{length}\r\n");
        let bytes = [head.as_bytes(), SMUGGLED].concat();
        table.accept("cl.0", &format!("body of {method}"), 1, bytes);
    }
    let head = format!("POST /a HTTP/1.0\r\n{length}\r\n");
    table.accept("cl.0", "body in HTTP/1.0", 1, [head.as_bytes(), SMUGGLED].concat());
    // Without a length there is no body, whatever the method: two requests.
    table.accept("0.cl", "POST without length", 2, [&post(b"", b""), SMUGGLED].concat());
    table.accept(
        "0.cl",
        "POST with length zero",
        2,
        [&post(b"Content-Length: 0\r\n", b""), SMUGGLED].concat(),
    );
    for (name, fields) in [
        ("length hidden by a space", &b"Content-Length : 44\r\n"[..]),
        ("length hidden by a fold", b"A: b\r\n Content-Length: 44\r\n"),
        ("length hidden by a leading fold", b"A:\r\n Content-Length: 44\r\n"),
        ("length hidden by an empty name", b": a\r\nContent-Length: 44\r\n"),
        ("length hidden by a bare LF", b"A: b\nContent-Length: 44\r\n"),
        ("length hidden by a bare CR", b"A: b\rContent-Length: 44\r\n"),
        ("length hidden by NUL", b"Content-Length\0: 44\r\n"),
    ] {
        table.reject("0.cl", name, [&get(fields), SMUGGLED].concat());
    }
}

fn expect(table: &mut FramingTable) {
    for (name, fields) in [
        ("unknown", &b"Expect: tea\r\nContent-Length: 5\r\n"[..]),
        ("empty", b"Expect:\r\nContent-Length: 5\r\n"),
        ("word before", b"Expect: y 100-continue\r\nContent-Length: 5\r\n"),
        ("word after", b"Expect: 100-continue y\r\nContent-Length: 5\r\n"),
        ("parameter", b"Expect: 100-continue; a=b\r\nContent-Length: 5\r\n"),
        ("list", b"Expect: 100-continue, 100-continue\r\nContent-Length: 5\r\n"),
        (
            "unknown beside a known one",
            b"Expect: 100-continue\r\nExpect: tea\r\nContent-Length: 5\r\n",
        ),
        ("200-ok", b"Expect: 200-ok\r\nContent-Length: 5\r\n"),
        ("vertical tab", b"Expect: \x0b100-continue\r\nContent-Length: 5\r\n"),
        ("unknown without a body", b"Expect: tea\r\n"),
    ] {
        table.reject("expect", name, post(fields, b"hello"));
    }
    let usual = post(b"Expect: 100-Continue\r\nContent-Length: 5\r\n", b"hello");
    table.accept("expect", "continue", 2, [&usual, SMUGGLED].concat());
    let idle = get(b"Expect: 100-continue\r\n");
    table.accept("expect", "continue without a body", 2, [&idle, SMUGGLED].concat());
}

/// Upgrades are offers: the request and its framing are ordinary.
fn upgrade(table: &mut FramingTable) {
    for (name, fields) in [
        ("websocket", &b"Connection: Upgrade\r\nUpgrade: websocket\r\n"[..]),
        (
            "h2c",
            b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        ),
        ("without Connection", b"Upgrade: websocket\r\n"),
        ("Connection alone", b"Connection: upgrade\r\n"),
        ("unknown protocol", b"Connection: upgrade\r\nUpgrade: nonsense\r\n"),
        ("several protocols", b"Connection: upgrade\r\nUpgrade: h2c, websocket\r\n"),
    ] {
        table.accept("upgrade", name, 2, [&get(fields), SMUGGLED].concat());
    }
    let body =
        post(b"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n", b"hello");
    table.accept("upgrade", "with a body", 2, [&body, SMUGGLED].concat());
    for (name, fields) in [
        (
            "length and coding",
            &b"Connection: upgrade\r\nUpgrade: x\r\nContent-Length: 5\r\n\
              Transfer-Encoding: chunked\r\n"[..],
        ),
        ("unknown coding", b"Connection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: x\r\n"),
        ("NUL", b"Connection: upgrade\r\nUpgrade: web\0socket\r\n"),
    ] {
        table.reject("upgrade", name, post(fields, b"0\r\n\r\n"));
    }
}

fn hop_by_hop(table: &mut FramingTable) {
    for (name, fields) in [
        ("names Content-Length", &b"Connection: Content-Length\r\nContent-Length: 5\r\n"[..]),
        (
            "names Content-Length after close",
            b"Connection: close, content-length\r\nContent-Length: 5\r\n",
        ),
        ("names Transfer-Encoding", b"Connection: Transfer-Encoding\r\nContent-Length: 5\r\n"),
        ("names Host", b"Connection: keep-alive, Host\r\nContent-Length: 5\r\n"),
        (
            "in a second field",
            b"Connection: close\r\nConnection: Content-Length\r\nContent-Length: 5\r\n",
        ),
    ] {
        table.reject("hop-by-hop", name, post(fields, b"hello"));
    }
    let many = [b"Connection: ", &b"a,".repeat(40)[..], b"b\r\n"].concat();
    table.reject("hop-by-hop", "names forty fields", get(&many));
    for (name, fields) in [
        (
            "names X-Forwarded-For",
            &b"Connection: X-Forwarded-For\r\nX-Forwarded-For: 127.0.0.1\r\n"[..],
        ),
        ("names Cookie", b"Connection: Cookie\r\nCookie: a=b\r\n"),
        ("names Authorization", b"Connection: Authorization\r\nAuthorization: Basic YTpi\r\n"),
        ("names TE", b"Connection: TE\r\nTE: trailers\r\n"),
        ("Keep-Alive", b"Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"),
    ] {
        table.accept("hop-by-hop", name, 2, [&get(fields), SMUGGLED].concat());
    }
}
