//! Tests of requests: accepted ones with their canonical form, rejected ones with the reason.

use super::*;
use message::target::TargetError;

/// The pseudo-fields of a normal request; `...` in a row.
const USUAL: &[&str] = &[":method: GET", ":scheme: https", ":authority: a.example", ":path: /"];

enum Want {
    /// Accepted as `METHOD authority target framing | field: value | ...`, without Host.
    As(&'static str),
    Bad(Malformed),
    Not(RequestError),
}
use Want::{As, Bad, Not};

/// The kind of connection and request.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// Over TLS, without a body.
    Tls,
    /// Over TLS, with a body.
    Body,
    /// Over a plain connection.
    Plain,
}
use By::{Body, Plain, Tls};

fn split(line: &str) -> (&[u8], &[u8]) {
    let (at, _) = line.match_indices(": ").find(|(at, _)| *at != 0).expect("name: value");
    (&line.as_bytes()[..at], &line.as_bytes()[at + 2..])
}

fn feed(collector: &mut Collector, lines: &[&str], limits: &ListLimits, request: &mut Request) {
    for line in lines {
        if *line == "..." {
            feed(collector, USUAL, limits, request);
            continue;
        }
        let (name, value) = split(line);
        collector.field(HeaderId::of(name), name, value, limits, request);
    }
}

fn limits() -> ListLimits {
    ListLimits::from(&Limits::default())
}

fn read(by: By, lines: &[&str], limits: &ListLimits) -> Result<Request, RequestError> {
    let (mut collector, mut request) = (Collector::default(), Request::new());
    let scheme = if by == Plain { Scheme::Http } else { Scheme::Https };
    collector.start(scheme, &mut request);
    feed(&mut collector, lines, limits, &mut request);
    collector.finish(by != Body, &mut request)?;
    assert_eq!((request.version, request.scheme), (Version::Http2, scheme));
    assert!(request.keep_alive);
    Ok(request)
}

fn describe(request: &Request) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut authority = Vec::new();
    write_authority(&mut authority, request);
    let framing = match request.framing {
        Framing::None => "none".to_owned(),
        Framing::Length(length) => length.to_string(),
        Framing::Chunked => "chunked".to_owned(),
        Framing::UntilClose => "until close".to_owned(),
    };
    let target = text(&request.target);
    let mut line = format!("{} {} {target} {framing}", request.method, text(&authority));
    let mut fields = request.headers.iter();
    let host = fields.next().expect("a Host");
    assert_eq!((host.id, host.value), (HeaderId::Host, &authority[..]));
    for field in fields {
        line += &format!(" | {}: {}", text(field.name), text(field.value));
    }
    line
}

struct Row<'a> {
    name: &'a str,
    by: By,
    lines: &'a [&'a str],
    want: Want,
}

fn row<'a>(name: &'a str, by: By, lines: &'a [&'a str], want: Want) -> Row<'a> {
    Row { name, by, lines, want }
}

fn bad<'a>(name: &'a str, lines: &'a [&'a str], why: Malformed) -> Row<'a> {
    row(name, Tls, lines, Bad(why))
}

fn check(rows: &[Row<'_>]) {
    for Row { name, by, lines, want } in rows {
        let found = read(*by, lines, &limits()).map(|request| describe(&request));
        let expected = match want {
            As(request) => Ok((*request).to_owned()),
            Bad(what) => Err(RequestError::Malformed(*what)),
            Not(error) => Err(*error),
        };
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn utf8_in_a_path_is_escaped_unless_that_is_not_wanted() {
    let lines = [":method: GET", ":scheme: https", ":authority: a.example", ":path: /é?é"];
    let form = |limits: &ListLimits| read(Tls, &lines, limits).map(|request| describe(&request));
    assert_eq!(form(&limits()), Ok("GET a.example /%C3%A9?%C3%A9 none".to_owned()));
    let sent = read(Tls, &lines, &limits()).map(|request| request.sent_target().to_vec());
    assert_eq!(sent.as_deref(), Ok("/é?é".as_bytes()));
    let strict = ListLimits { raw_utf8: false, ..limits() };
    assert_eq!(form(&strict), Err(Malformed::Target(TargetError::Byte).into()));
    // The limit applies to the escaped form.
    let short = ListLimits { target_bytes: 13, ..limits() };
    assert_eq!(form(&short), Err(Limit::TargetBytes.into()));
}

#[test]
fn requests_have_one_form() {
    check(&[
        row("as a browser sends it", Tls, &["..."], As("GET a.example / none")),
        row(
            "in any order",
            Tls,
            &[":path: /b", ":authority: a.example", ":scheme: https", ":method: HEAD"],
            As("HEAD a.example /b none"),
        ),
        row(
            "a host in capitals, with a dot and the default port",
            Tls,
            &[":method: GET", ":scheme: https", ":authority: A.Example.:443", ":path: /"],
            As("GET a.example / none"),
        ),
        row(
            "another port",
            Tls,
            &[":method: GET", ":scheme: https", ":authority: a.example:80", ":path: /"],
            As("GET a.example:80 / none"),
        ),
        row(
            "an IPv6 literal",
            Tls,
            &[":method: GET", ":scheme: https", ":authority: [2001:DB8:0::1]", ":path: /"],
            As("GET [2001:db8::1] / none"),
        ),
        row(
            "a Host instead of an authority",
            Tls,
            &[":method: GET", ":scheme: https", ":path: /", "a: 1", "host: A.example"],
            As("GET a.example / none | a: 1"),
        ),
        row(
            "a Host that agrees",
            Tls,
            &["...", "host: A.EXAMPLE.:443"],
            As("GET a.example / none"),
        ),
        row(
            "an asterisk",
            Tls,
            &[":method: OPTIONS", ":scheme: https", ":authority: a", ":path: *"],
            As("OPTIONS a * none"),
        ),
        row(
            "OPTIONS of a path",
            Tls,
            &[":method: OPTIONS", ":scheme: https", ":authority: a", ":path: /x"],
            As("OPTIONS a /x none"),
        ),
        row(
            "a path with a query",
            Tls,
            &[":method: GET", ":scheme: https", ":authority: a", ":path: //a/../b;c?d=%00&e"],
            As("GET a //a/../b;c?d=%00&e none"),
        ),
        row(
            "an unknown method",
            Tls,
            &[":method: Odd!", ":scheme: https", ":authority: a", ":path: /"],
            As("Odd! a / none"),
        ),
        row(
            "a plain connection",
            Plain,
            &[":method: GET", ":scheme: http", ":authority: a:80", ":path: /"],
            As("GET a / none"),
        ),
        row(
            "behind a balancer that ends TLS",
            Plain,
            &[":method: GET", ":scheme: https", ":authority: a:443", ":path: /"],
            As("GET a:443 / none"),
        ),
        row(
            "a scheme in capitals",
            Plain,
            &[":method: GET", ":scheme: HTTP", ":authority: a", ":path: /"],
            As("GET a / none"),
        ),
    ]);
}

#[test]
fn pseudo_fields_are_those_of_requests_once_and_first() {
    use Malformed::*;
    check(&[
        bad("nothing", &[], PseudoMissing),
        bad("no method", &[":scheme: https", ":authority: a", ":path: /"], PseudoMissing),
        bad("no scheme", &[":method: GET", ":authority: a", ":path: /"], PseudoMissing),
        bad("no path", &[":method: GET", ":scheme: https", ":authority: a"], PseudoMissing),
        bad("no host", &[":method: GET", ":scheme: https", ":path: /"], MissingHost),
        bad("two methods", &["...", ":method: GET"], PseudoRepeated),
        bad("two schemes", &["...", ":scheme: https"], PseudoRepeated),
        bad("two authorities", &["...", ":authority: a.example"], PseudoRepeated),
        bad("two paths", &["...", ":path: /"], PseudoRepeated),
        bad("that of responses", &["...", ":status: 200"], PseudoUnknown),
        bad("an unknown one", &["...", ":x: 1"], PseudoUnknown),
        bad("in capitals", &[":Method: GET"], PseudoUnknown),
        bad("one without a name", &["...", "::: 1"], PseudoUnknown),
        bad(
            "one behind a field",
            &[":method: GET", ":scheme: https", ":authority: a", "a: 1", ":path: /"],
            PseudoOrder,
        ),
        bad(
            "one behind a Host",
            &[":method: GET", ":scheme: https", ":path: /", "host: a", ":authority: a"],
            PseudoOrder,
        ),
        bad(
            "one behind a cookie",
            &[":method: GET", ":scheme: https", ":authority: a", "cookie: a", ":path: /"],
            PseudoOrder,
        ),
    ]);
}

#[test]
fn their_values_are_what_they_must_be() {
    use Malformed::*;
    let target = |error| Bad(Target(error));
    let mut rows: Vec<(&str, By, Vec<&str>, Want)> = Vec::new();
    for (method, want) in [
        (":method: ", Bad(Method)),
        (":method: GE T", Bad(Method)),
        (":method: GET\r\nX: y", Bad(Method)),
        (":method: G:T", Bad(Method)),
        (":method: GÉT", Bad(Method)),
        (":method: AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDDE", Not(RequestError::MethodTooLong)),
    ] {
        rows.push((method, Tls, vec![method, ":scheme: https", ":authority: a", ":path: /"], want));
    }
    for scheme in [":scheme: ", ":scheme: ftp", ":scheme: http", ":scheme: https "] {
        let lines = vec![":method: GET", scheme, ":authority: a", ":path: /"];
        rows.push((scheme, Tls, lines, Bad(Scheme)));
    }
    for authority in [
        ":authority: ",
        ":authority: user@a",
        ":authority: a, b",
        ":authority: a b",
        ":authority: a:0",
        ":authority: a:65536",
        ":authority: a/b",
        ":authority: a%2eb",
        ":authority: a..b",
        ":authority: a\0",
        ":authority: a\r\nx: y",
        ":authority: é.example",
    ] {
        let lines = vec![":method: GET", ":scheme: https", authority, ":path: /"];
        rows.push((authority, Tls, lines, Bad(Authority)));
    }
    for (path, want) in [
        (":path: ", target(TargetError::Form)),
        (":path: a", target(TargetError::Form)),
        (":path: *", target(TargetError::Form)),
        (":path: ?a", target(TargetError::Form)),
        (":path: https://a/", target(TargetError::Form)),
        (":path: /a#b", target(TargetError::Byte)),
        (":path: /a b", target(TargetError::Byte)),
        (":path: /a\tb", target(TargetError::Byte)),
        (":path: /\0", target(TargetError::Byte)),
        (":path: /\x7f", target(TargetError::Byte)),
        (":path: / HTTP/1.1\r\nHost: b", target(TargetError::Byte)),
        (":path: /a%00", target(TargetError::EncodedNul)),
    ] {
        let lines = vec![":method: GET", ":scheme: https", ":authority: a", path];
        rows.push((path, Tls, lines, want));
    }
    for (name, by, lines, want) in rows {
        check(&[row(name, by, &lines, want)]);
    }
}

#[test]
fn fields_are_names_in_lower_case_and_values_without_framing() {
    use Malformed::*;
    check(&[
        row(
            "fields keep their order",
            Tls,
            &["...", "x-b: 2", "accept: */*", "x-a: 1", "accept: a/b", "te: trailers"],
            As("GET a.example / none | x-b: 2 | accept: */* | x-a: 1 | accept: a/b | te: trailers"),
        ),
        row(
            "values may be empty, and hold tabs and high bytes",
            Tls,
            &["...", "x: ", "y: a\tb é"],
            As("GET a.example / none | x:  | y: a\tb é"),
        ),
        row(
            "a priority",
            Tls,
            &["...", "priority: u=1"],
            As("GET a.example / none | priority: u=1"),
        ),
        row(
            "an underscore elsewhere",
            Tls,
            &["...", "content_type: a"],
            As("GET a.example / none | content_type: a"),
        ),
        bad("a capital", &["...", "X: 1"], Name),
        bad("a capital in a known name", &["...", "Accept: */*"], Name),
        bad("a space in a name", &["...", "a b: 1"], Name),
        bad("a space before a name", &["...", " a: 1"], Name),
        bad("a colon in a name", &["...", "a:b: 1"], Name),
        bad("a line end in a name", &["...", "a\r\nb: 1"], Name),
        bad("a NUL in a name", &["...", "a\0: 1"], Name),
        bad("a high byte in a name", &["...", "é: 1"], Name),
        bad("a NUL in a value", &["...", "a: b\0c"], Value),
        bad("a CR in a value", &["...", "a: b\rc"], Value),
        bad("an LF in a value", &["...", "a: b\nc"], Value),
        bad("a smuggled field", &["...", "a: b\r\ntransfer-encoding: chunked"], Value),
        bad("a control byte in a value", &["...", "a: \x1b[2J"], Value),
        bad("a DEL in a value", &["...", "a: \x7f"], Value),
        bad("a line end in a cookie", &["...", "cookie: a\r\nb"], Value),
        bad("a space before a value", &["...", "a:  b"], ValueSpace),
        bad("a space behind a value", &["...", "a: b "], ValueSpace),
        bad("a tab behind a value", &["...", "a: b\t"], ValueSpace),
        bad("nothing but a space", &["...", "a:  "], ValueSpace),
        bad("Connection", &["...", "connection: close"], ConnectionField),
        bad("Proxy-Connection", &["...", "proxy-connection: a"], ConnectionField),
        bad("Keep-Alive", &["...", "keep-alive: a"], ConnectionField),
        bad("Transfer-Encoding", &["...", "transfer-encoding: chunked"], ConnectionField),
        bad("Upgrade", &["...", "upgrade: websocket"], ConnectionField),
        bad("TE", &["...", "te: gzip"], Te),
        bad("TE with more", &["...", "te: trailers, deflate"], Te),
        bad("a lookalike of a length", &["...", "content_length: 1"], Lookalike),
        bad("a lookalike of a coding", &["...", "transfer_encoding: chunked"], Lookalike),
        bad("another Host", &["...", "host: b.example"], HostMismatch),
        bad("a Host with another port", &["...", "host: a.example:80"], HostMismatch),
        bad("two Hosts", &["...", "host: a.example", "host: a.example"], DuplicateHost),
        bad("an empty Host", &["...", "host: "], Authority),
        bad("a Host that is none", &["...", "host: a.example@b"], Authority),
        bad(
            "an empty Host alone",
            &[":method: GET", ":scheme: https", ":path: /", "host: "],
            Authority,
        ),
    ]);
    let nameless = read_raw(&[(b"", b"1")]);
    assert_eq!(nameless.err(), Some(RequestError::Malformed(Name)));
}

/// The pseudo-fields of a normal request, and `fields` that a row cannot contain.
fn read_raw(fields: &[(&[u8], &[u8])]) -> Result<Request, RequestError> {
    let usual = USUAL.iter().map(|line| split(line));
    crate::fuzz::request(usual.chain(fields.iter().copied()), Scheme::Https, true)
}

#[test]
fn bodies_have_one_length() {
    check(&[
        row("none", Tls, &["..."], As("GET a.example / none")),
        row("not known", Body, &["..."], As("GET a.example / chunked")),
        row(
            "known",
            Body,
            &["...", "content-length: 17"],
            As("GET a.example / 17 | content-length: 17"),
        ),
        row(
            "known to be none",
            Tls,
            &["...", "content-length: 0"],
            As("GET a.example / 0 | content-length: 0"),
        ),
        row(
            "the largest",
            Body,
            &["...", "content-length: 9223372036854775807"],
            As("GET a.example / 9223372036854775807 | content-length: 9223372036854775807"),
        ),
        row("promised", Tls, &["...", "content-length: 1"], Bad(Malformed::ContentLength)),
        row("empty", Body, &["...", "content-length: "], Bad(Malformed::ContentLength)),
        row("signed", Body, &["...", "content-length: +1"], Bad(Malformed::ContentLength)),
        row("listed", Body, &["...", "content-length: 1, 1"], Bad(Malformed::ContentLength)),
        row(
            "too large",
            Body,
            &["...", "content-length: 9223372036854775808"],
            Bad(Malformed::ContentLength),
        ),
        row(
            "said twice",
            Body,
            &["...", "content-length: 1", "content-length: 1"],
            Bad(Malformed::DuplicateContentLength),
        ),
    ]);
}

#[test]
fn a_split_cookie_is_one_field_where_it_began() {
    check(&[
        row(
            "whole",
            Tls,
            &["...", "cookie: a=1; b=2", "x: y"],
            As("GET a.example / none | Cookie: a=1; b=2 | x: y"),
        ),
        row(
            "split",
            Tls,
            &["...", "x: y", "cookie: a=1", "cookie: b=2", "cookie: c", "z: "],
            As("GET a.example / none | x: y | Cookie: a=1; b=2; c | z: "),
        ),
        row(
            "scattered",
            Tls,
            &["...", "cookie: a=1", "x: y", "cookie: b=2"],
            As("GET a.example / none | Cookie: a=1; b=2 | x: y"),
        ),
        row(
            "empty crumbs",
            Tls,
            &["...", "cookie: ", "cookie: a", "cookie: ", "cookie: b", "cookie: "],
            As("GET a.example / none | Cookie: a; b"),
        ),
        row("empty", Tls, &["...", "cookie: "], As("GET a.example / none | Cookie: ")),
    ]);
}

#[test]
fn expectations_are_met_or_refused() {
    let expects = |by, lines: &[&str]| read(by, lines, &limits()).map(|r| r.expect_continue);
    assert_eq!(expects(Body, &["...", "expect: 100-Continue"]), Ok(true));
    assert_eq!(expects(Body, &["...", "expect: 100-continue", "content-length: 1"]), Ok(true));
    assert_eq!(expects(Tls, &["...", "expect: 100-continue"]), Ok(false));
    let none = ["...", "expect: 100-continue", "content-length: 0"];
    assert_eq!(expects(Body, &none), Ok(false));
    for other in ["expect: x", "expect: 100-continue, x", "expect: "] {
        assert_eq!(expects(Body, &["...", other]), Err(RequestError::Expectation), "{other}");
    }
    let both = ["...", "expect: x", "expect: 100-continue"];
    assert_eq!(expects(Body, &both), Err(RequestError::Expectation));
}

#[test]
fn connect_is_for_websocket_alone() {
    let (connect, authority) = (":method: CONNECT", ":authority: a");
    let (scheme, path, protocol) = (":scheme: https", ":path: /c?d", ":protocol: websocket");
    check(&[
        row("a tunnel", Body, &[connect, authority], Not(RequestError::Connect)),
        row("a tunnel with a path", Body, &[connect, authority, path], Bad(Malformed::Connect)),
        row("a tunnel with a scheme", Body, &[connect, scheme, authority], Bad(Malformed::Connect)),
        row("a tunnel to nowhere", Body, &[connect], Bad(Malformed::Connect)),
        row(
            "a WebSocket",
            Body,
            &[connect, protocol, scheme, path, authority, "origin: b"],
            As("GET a /c?d none | origin: b | Upgrade: websocket"),
        ),
        row(
            "in capitals",
            Body,
            &[connect, ":protocol: WebSocket", scheme, path, authority],
            As("GET a /c?d none | Upgrade: websocket"),
        ),
        row(
            "another protocol",
            Body,
            &[connect, ":protocol: connect-udp", scheme, path, authority],
            Not(RequestError::Connect),
        ),
        row(
            "no protocol",
            Body,
            &[connect, ":protocol: ", scheme, path, authority],
            Bad(Malformed::Protocol),
        ),
        row(
            "a control byte in it",
            Body,
            &[connect, ":protocol: a\r\nb", scheme, path, authority],
            Bad(Malformed::Value),
        ),
        row(
            "no path",
            Body,
            &[connect, protocol, scheme, authority],
            Bad(Malformed::PseudoMissing),
        ),
        row(
            "no scheme",
            Body,
            &[connect, protocol, path, authority],
            Bad(Malformed::PseudoMissing),
        ),
        row("no host", Body, &[connect, protocol, scheme, path], Bad(Malformed::MissingHost)),
        row("no CONNECT", Body, &["...", protocol], Bad(Malformed::Protocol)),
        row("twice", Body, &[connect, protocol, protocol], Bad(Malformed::PseudoRepeated)),
        row(
            "a length",
            Body,
            &[connect, protocol, scheme, path, authority, "content-length: 0"],
            Bad(Malformed::ContentLength),
        ),
    ]);
}

#[test]
fn the_engine_is_told_of_an_extended_connect() {
    let (mut collector, mut request) = (Collector::default(), Request::new());
    let fields =
        [":method: CONNECT", ":protocol: websocket", ":scheme: https", ":path: /", ":authority: a"];
    for (lines, extended) in [(&fields[..], true), (USUAL, false)] {
        collector.start(Scheme::Https, &mut request);
        feed(&mut collector, lines, &limits(), &mut request);
        assert_eq!(collector.finish(true, &mut request), Ok(()));
        assert_eq!(collector.is_extended(), extended);
        assert_eq!(request.upgrade == Upgrade::Asked, extended);
    }
}

#[test]
fn a_request_leaves_nothing_to_the_next() {
    let (mut collector, mut request) = (Collector::default(), Request::new());
    let first = ["...", "host: a.example", "cookie: a", "expect: x", "content-length: 1", "X: 1"];
    collector.start(Scheme::Https, &mut request);
    feed(&mut collector, &first, &limits(), &mut request);
    assert!(collector.finish(false, &mut request).is_err());
    collector.start(Scheme::Https, &mut request);
    feed(&mut collector, &["...", "cookie: b"], &limits(), &mut request);
    assert_eq!(collector.finish(true, &mut request), Ok(()));
    assert_eq!(describe(&request), "GET a.example / none | Cookie: b");
}

#[test]
fn limits_count_every_field() {
    let usual: usize = USUAL.iter().map(|line| line.len() - ": ".len() + 32).sum();
    assert_eq!(usual, 175);
    let small = |change: fn(&mut ListLimits)| {
        let mut limits = limits();
        change(&mut limits);
        move |lines: &[&str]| read(Tls, lines, &limits).map(drop)
    };
    let beyond = |limit| Err(RequestError::Limit(limit));
    let read = small(|limits| limits.list_bytes = 175 + 34);
    assert_eq!(read(&["...", "a: 1"]), Ok(()));
    assert_eq!(read(&["...", "a: 12"]), beyond(Limit::HeaderBytes));
    assert_eq!(read(&["...", "a: ", "b: "]), beyond(Limit::HeaderBytes));
    let read = small(|limits| limits.list_bytes = 175 + 32 + "cookie".len() + "a; b; cc".len());
    assert_eq!(read(&["...", "cookie: a", "cookie: b", "cookie: cc"]), Ok(()));
    assert_eq!(read(&["...", "cookie: a", "cookie: b", "cookie: ccc"]), beyond(Limit::HeaderBytes));
    let read = small(|limits| limits.fields = 6);
    assert_eq!(read(&["...", "a: 1", "cookie: b", "cookie: c"]), Ok(()));
    assert_eq!(read(&["...", "a: 1", "b: 1", "c: 1"]), beyond(Limit::HeaderCount));
    assert_eq!(read(&["...", "a: 1", "b: 1", "host: a.example"]), beyond(Limit::HeaderCount));
    let read = small(|limits| limits.field_bytes = 12);
    assert_eq!(read(&["...", "a: 12345678901", "cookie: abcdef"]), Ok(()));
    assert_eq!(read(&["...", "a: 123456789012"]), beyond(Limit::HeaderFieldBytes));
    assert_eq!(read(&["...", "cookie: a", "cookie: bcd"]), Ok(()));
    assert_eq!(read(&["...", "cookie: a", "cookie: bcde"]), beyond(Limit::HeaderFieldBytes));
    let read = small(|limits| limits.target_bytes = 1);
    assert_eq!(read(&["..."]), Ok(()));
    assert_eq!(read(&[":path: /a"]), beyond(Limit::TargetBytes));
}

#[test]
fn names_are_never_longer_than_a_block_can_hold() {
    let generous = ListLimits { list_bytes: 1 << 20, field_bytes: 1 << 20, ..limits() };
    let (mut collector, mut request) = (Collector::default(), Request::new());
    for (length, expected) in
        [(65_535, Ok(())), (65_536, Err(RequestError::Limit(Limit::HeaderFieldBytes)))]
    {
        let name = vec![b'a'; length];
        collector.start(Scheme::Https, &mut request);
        feed(&mut collector, USUAL, &generous, &mut request);
        collector.field(HeaderId::Other, &name, b"", &generous, &mut request);
        assert_eq!(collector.finish(true, &mut request), expected);
    }
}

#[test]
fn the_first_fault_counts() {
    let read = |lines: &[&str]| read(Tls, lines, &limits()).map(drop);
    let name = Err(RequestError::Malformed(Malformed::Name));
    assert_eq!(read(&["...", "A: 1", "b: \0", "connection: close"]), name);
    assert_eq!(read(&["A: 1"]), name);
}

#[test]
fn what_a_refused_request_asked_for_is_known() {
    for (lines, target) in [
        (&[":method: PUT", ":path: /\x1b"][..], "/\x1b"),
        (&[":path: /\n", "A: 1", ":method: GET"], "/\n"),
    ] {
        let (mut collector, mut request) = (Collector::default(), Request::new());
        collector.start(Scheme::Https, &mut request);
        feed(&mut collector, lines, &limits(), &mut request);
        assert!(collector.finish(true, &mut request).is_err());
        assert_eq!(request.target, target.as_bytes());
    }
}

#[test]
fn trailers_are_checked() {
    let read = |lines: &[&str]| crate::fuzz::trailer(lines.iter().map(|line| split(line)));
    let bad = |what| Err(RequestError::Malformed(what));
    assert_eq!(read(&[]), Ok(()));
    assert_eq!(read(&["x-sum: 1", "grpc-status: 0", "cookie: a"]), Ok(()));
    for (line, what) in [
        (":path: /", Malformed::PseudoTrailer),
        (":x: ", Malformed::PseudoTrailer),
        ("X: 1", Malformed::Name),
        ("a b: 1", Malformed::Name),
        ("a: \n", Malformed::Value),
        ("a:  b", Malformed::ValueSpace),
        ("content-length: 1", Malformed::Trailer),
        ("content_length: 1", Malformed::Trailer),
        ("transfer-encoding: chunked", Malformed::Trailer),
        ("host: a", Malformed::Trailer),
        ("te: trailers", Malformed::Trailer),
        ("connection: close", Malformed::Trailer),
    ] {
        assert_eq!(read(&["x: 1", line, "y: 1"]), bad(what), "{line}");
    }
    let long = format!("a: {}", "b".repeat(8159));
    assert_eq!(read(&[&long]), Ok(()));
    let beyond = RequestError::Limit(Limit::TrailerBytes);
    assert_eq!(read(&["x: 1", &long]), Err(beyond));
    assert_eq!(beyond.status().map(|s| s.code()), Some(400));
}

#[test]
fn refusals_have_a_status_unless_malformed() {
    for (error, status) in [
        (RequestError::Malformed(Malformed::Name), None),
        (RequestError::Limit(Limit::TargetBytes), Some(414)),
        (RequestError::Expectation, Some(417)),
        (RequestError::Limit(Limit::HeaderBytes), Some(431)),
        (RequestError::Connect, Some(501)),
        (RequestError::MethodTooLong, Some(501)),
    ] {
        assert_eq!(error.status().map(|s| s.code()), status, "{error}");
    }
    let limit = RequestError::Limit(Limit::HeaderCount);
    assert_eq!(limit.limit(), Some(Limit::HeaderCount));
    assert_eq!(limit.to_string(), "beyond the limit header_count");
    assert_eq!(RequestError::Malformed(Malformed::Authority).to_string(), "malformed host");
}

#[test]
fn a_request_like_the_last_is_read_without_allocating() {
    let lines = [
        "...",
        "user-agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
        "accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        "accept-encoding: gzip, deflate, br, zstd",
        "cookie: session=0123456789abcdef",
        "cookie: theme=dark",
        "host: a.example",
        "priority: u=0, i",
    ];
    let (mut collector, mut request, limits) = (Collector::default(), Request::new(), limits());
    let mut once = || {
        collector.start(Scheme::Https, &mut request);
        feed(&mut collector, &lines, &limits, &mut request);
        assert_eq!(collector.finish(true, &mut request), Ok(()));
    };
    once();
    assert_eq!(allocation_counter::measure(once).count_total, 0);
}
