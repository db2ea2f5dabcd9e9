//! Accepted cases: requests of real clients. A server must not reject any of them.

use super::table::{FramingTable, chunked, get, post};

pub(super) fn add(table: &mut FramingTable) {
    clients(table);
    forms(table);
    values(table);
    pipelines(table);
}

fn clients(table: &mut FramingTable) {
    for (name, bytes) in CLIENTS {
        table.accept("control-client", name, 1, *bytes);
    }
}

/// Requests as real programs send them.
const CLIENTS: &[(&str, &[u8])] = &[
    (
        "curl",
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n",
    ),
    (
        "curl HEAD",
        b"HEAD /a HTTP/1.1\r\nHost: example.com:8080\r\n\
              User-Agent: curl/8.5.0\r\n\
              Accept: */*\r\n\r\n",
    ),
    (
        "curl POST",
        b"POST /form HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: curl/8.5.0\r\n\
              Accept: */*\r\nContent-Length: 7\r\n\
              Content-Type: application/x-www-form-urlencoded\r\n\r\na=b&c=d",
    ),
    (
        "curl upload",
        b"PUT /file HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: curl/8.5.0\r\nAccept: */*\r\n\
              Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "curl proxy",
        b"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: curl/8.5.0\r\nAccept: */*\r\nProxy-Connection: Keep-Alive\r\n\r\n",
    ),
    (
        "wget",
        b"GET /a HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: Wget/1.21.4\r\nAccept: */*\r\n\
              Accept-Encoding: identity\r\nConnection: Keep-Alive\r\n\r\n",
    ),
    (
        "ab",
        b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: example.com\r\n\
              User-Agent: ApacheBench/2.3\r\nAccept: */*\r\n\r\n",
    ),
    ("netcat", b"GET / HTTP/1.0\r\n\r\n"),
    (
        "Python",
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: python-requests/2.31.0\r\n\
              Accept-Encoding: gzip, deflate\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n",
    ),
    (
        "Go",
        b"POST /api HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: Go-http-client/1.1\r\n\
              Transfer-Encoding: chunked\r\nContent-Type: application/json\r\n\
              Accept-Encoding: gzip\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ),
    (
        "Node",
        b"GET /api/items?limit=10 HTTP/1.1\r\n\
              Accept: application/json, text/plain, */*\r\n\
              User-Agent: axios/1.6.0\r\nAccept-Encoding: gzip, compress, deflate, br\r\n\
              Host: example.com\r\nConnection: keep-alive\r\n\r\n",
    ),
    (
        "Java",
        b"GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\n\
              Content-Length: 0\r\n\
              Host: example.com\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n\
              Upgrade: h2c\r\nUser-Agent: Java-http-client/17\r\n\r\n",
    ),
    (
        "Chrome",
        b"GET /style.css?v=1.2%203 HTTP/1.1\r\nHost: www.example.com\r\n\
              Connection: keep-alive\r\nCache-Control: max-age=0\r\n\
              sec-ch-ua: \"Chromium\";v=\"131\", \"Not_A Brand\";v=\"24\"\r\n\
              sec-ch-ua-mobile: ?0\r\nsec-ch-ua-platform: \"Linux\"\r\n\
              Upgrade-Insecure-Requests: 1\r\n\
              User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like \
              Gecko) Chrome/131.0.0.0 Safari/537.36\r\n\
              Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
              Sec-Fetch-Site: none\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\
              Accept-Language: de-DE,de;q=0.9,en;q=0.8\r\n\
              Cookie: _ga=GA1.1.1; session=a%20b; theme={\"dark\":true}\r\n\
              If-None-Match: W/\"abc\"\r\n\
              If-Modified-Since: Sat, 21 Nov 2026 10:00:00 GMT\r\n\r\n",
    ),
    (
        "Firefox",
        b"GET /search?q=caf%C3%A9&x=[1]|{2} HTTP/1.1\r\nHost: example.com\r\n\
              User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 \
              Firefox/133.0\r\nAccept: text/html\r\nAccept-Language: en-US,en;q=0.5\r\n\
              Accept-Encoding: gzip, deflate\r\nDNT: 1\r\nConnection: keep-alive\r\n\
              Priority: u=0, i\r\nPragma: no-cache\r\nTE: trailers\r\n\r\n",
    ),
    (
        "video player",
        b"GET /movie.mp4 HTTP/1.1\r\nHost: example.com\r\n\
              Range: bytes=0-\r\n\
              If-Range: \"abc\"\r\nAccept-Encoding: identity;q=1, *;q=0\r\n\r\n",
    ),
    (
        "CORS preflight",
        b"OPTIONS /api HTTP/1.1\r\nHost: example.com\r\n\
              Origin: https://a.example\r\n\
              Access-Control-Request-Method: PUT\r\nAccess-Control-Request-Headers: x-a,x-b\r\n\
              \r\n",
    ),
    ("health check", b"OPTIONS * HTTP/1.1\r\nHost: example.com\r\n\r\n"),
    ("purge", b"PURGE /a HTTP/1.1\r\nHost: example.com\r\nX-Purge-Tag: a b\r\n\r\n"),
    (
        "WebDAV",
        b"PROPFIND /dav/ HTTP/1.1\r\nHost: example.com\r\nDepth: 1\r\n\
              Content-Length: 0\r\n\
              \r\n",
    ),
    (
        "WebSocket",
        b"GET /chat HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\n\
              Connection: keep-alive, Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
              Sec-WebSocket-Version: 13\r\n\r\n",
    ),
    (
        "load balancer",
        b"GET / HTTP/1.1\r\nHost: example.com\r\n\
              X-Forwarded-For: 192.0.2.1, 198.51.100.7\r\n\
              X-Forwarded-Proto: https\r\nForwarded: for=\"[2001:db8::1]\";proto=https\r\n\
              Via: 1.1 front\r\nConnection: close\r\n\r\n",
    ),
    ("HTTP/1.0 POST", b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi"),
];

fn forms(table: &mut FramingTable) {
    for (name, bytes) in [
        ("lower-case method and name", &b"get / HTTP/1.1\r\nhost: example.com\r\n\r\n"[..]),
        ("later minor version", b"GET / HTTP/1.2\r\nHost: example.com\r\n\r\n"),
        ("two slashes", b"GET //a//b HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ("dot segments", b"GET /a/../b/./c HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        (
            "URL in the path",
            b"GET /http://other.example/ HTTP/1.1\r\n\
              Host: example.com\r\n\r\n",
        ),
        ("query without value", b"GET /?? HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        (
            "encoded NUL in the query",
            b"GET /announce?info_hash=%00%01 HTTP/1.1\r\nHost: example.com\r\n\r\n",
        ),
        (
            "absolute target without path",
            b"GET http://example.com HTTP/1.1\r\nHost: example.com\r\n\r\n",
        ),
        (
            "absolute target with query only",
            b"GET http://example.com?a HTTP/1.1\r\nHost: example.com\r\n\r\n",
        ),
        (
            "absolute target, other Host",
            b"GET HTTP://Example.com:80/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
        ),
        (
            "absolute OPTIONS",
            b"OPTIONS http://example.com HTTP/1.1\r\n\
              Host: example.com\r\n\r\n",
        ),
        ("IPv4 host", b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"),
        ("IPv6 host", b"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"),
        ("host with trailing dot", b"GET / HTTP/1.1\r\nHost: EXAMPLE.com.:80\r\n\r\n"),
        ("host with underscore", b"GET / HTTP/1.1\r\nHost: my_service\r\n\r\n"),
        ("empty Host in HTTP/1.0", b"GET / HTTP/1.0\r\nHost:\r\n\r\n"),
    ] {
        table.accept("control-form", name, 1, bytes);
    }
}

fn values(table: &mut FramingTable) {
    for (name, fields) in [
        ("empty value", &b"A:\r\nB: \r\n"[..]),
        ("tabs and spaces around", b"A: \t b \t \r\n"),
        ("tab inside", b"A: b\tc\r\n"),
        ("colons inside", b"A: b:c: d\r\n"),
        ("UTF-8", b"X-Name: J\xc3\xbcrgen\r\n"),
        ("Latin-1", b"X-Name: J\xfcrgen\r\n"),
        ("all token bytes in a name", b"!#$%&'*+-.^_`|~09azAZ: b\r\n"),
        ("same field twice", b"Accept: a/b\r\nAccept: c/d\r\n"),
        ("name with underscore", b"X_Api_Key: a\r\n"),
        ("empty Connection members", b"Connection: , keep-alive ,,\r\n"),
    ] {
        table.accept("control-value", name, 1, get(fields));
    }
}

fn pipelines(table: &mut FramingTable) {
    let hello = post(b"Content-Length: 5\r\n", b"hello");
    let chunks = chunked(b"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nA: b\r\n\r\n");
    table.accept("pipeline", "three GETs", 3, get(b"").repeat(3));
    table.accept("pipeline", "after a body", 2, [hello.clone(), get(b"")].concat());
    table.accept("pipeline", "after chunks", 2, [chunks.clone(), get(b"")].concat());
    table.accept(
        "pipeline",
        "bodies only",
        3,
        [hello.clone(), chunks.clone(), hello.clone()].concat(),
    );
    let blank_lines = [b"\r\n", &hello[..], b"\r\n", &chunks, b"\r\n", &get(b"")].concat();
    table.accept("pipeline", "a blank line before each", 3, blank_lines);
}
