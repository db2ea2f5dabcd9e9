//! Samples for the scenarios: messages as received, and one site's rules.

use base::{HashSeed, Limits, Now};
use h1::{HeadLimits, ReadProgress, RequestReader, ResponseReader};
use message::{Method, Request, Response, Scheme, Status};
use policy::conditions::RouteScope;
use policy::pattern::PathPattern;
use policy::rules::{RouteRules, Settings};
use policy::{Declared, SiteRules};

/// A load generator's request.
pub(crate) const PLAIN_REQUEST: &[u8] = b"GET /articles/a-slow-page HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: load/1.0\r\n\
    Accept: */*\r\n\
    Connection: keep-alive\r\n\
    \r\n";

/// A browser's navigation request.
pub(crate) const BROWSER_REQUEST: &[u8] = b"GET /articles/a-slow-page HTTP/1.1\r\n\
    Host: www.example.com\r\n\
    User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
        Chrome/130.0.0.0 Safari/537.36\r\n\
    Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,\
        image/webp,*/*;q=0.8\r\n\
    Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\n\
    Connection: keep-alive\r\n\
    Upgrade-Insecure-Requests: 1\r\n\
    Sec-Fetch-Dest: document\r\n\
    Sec-Fetch-Mode: navigate\r\n\
    Sec-Fetch-Site: same-origin\r\n\
    Sec-Fetch-User: ?1\r\n\
    Priority: u=0, i\r\n\
    Referer: https://www.example.com/articles/\r\n\
    \r\n";

/// An origin's response: eight fields and the length of [`BODY`].
pub(crate) const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\n\
    Date: Fri, 20 Nov 2026 10:00:00 GMT\r\n\
    Server: Apache/2.4.62 (Debian)\r\n\
    Last-Modified: Thu, 19 Nov 2026 08:30:00 GMT\r\n\
    ETag: \"5f3c-6271a0b2c3d4e\"\r\n\
    Cache-Control: public, max-age=3600\r\n\
    Content-Type: text/html; charset=UTF-8\r\n\
    Vary: Accept-Encoding\r\n\
    Content-Length: 1024\r\n\
    \r\n";

/// A body of 1 KiB.
pub(crate) const BODY: &[u8] = &[b'x'; 1024];

/// The constant time.
pub(crate) const NOW: Now = Now { mono_ms: 1_000_000, unix_ms: 1_795_600_000_000 };

/// The seed of key hashes, constant so that rounds repeat.
pub(crate) fn seed() -> HashSeed {
    HashSeed::from_u64(1)
}

/// The daemon's default limits on heads.
pub(crate) fn head_limits() -> HeadLimits {
    HeadLimits::from(&Limits::default())
}

/// Parses a request from `wire`.
pub(crate) fn request(wire: &[u8]) -> Request {
    let mut request = Request::new();
    let read = RequestReader::new().read(wire, &head_limits(), Scheme::Http, &mut request);
    assert_eq!(read, Ok(ReadProgress::Complete(wire.len())));
    request
}

/// [`RESPONSE`], parsed.
pub(crate) fn response() -> Response {
    let mut response = Response::new(Status::OK);
    let read = ResponseReader::new().read(RESPONSE, &head_limits(), &Method::Get, &mut response);
    assert!(matches!(read, Ok(ReadProgress::Complete(head)) if head.consumed == RESPONSE.len()));
    response
}

/// A site with the default profile and three routes, which the requests above do not match.
pub(crate) fn site() -> Declared {
    let route = |path: &str, cache| RouteRules {
        name: path.to_owned(),
        scope: RouteScope {
            paths: vec![PathPattern::parse(path).expect("a path pattern")],
            ..RouteScope::default()
        },
        settings: Settings { cache, ..Settings::default() },
    };
    Declared::new(SiteRules {
        routes: vec![route("/admin/*", false), route("*.css", true), route("/login", false)],
        ..SiteRules::default()
    })
}
