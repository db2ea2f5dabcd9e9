//! Heads that a program sees: the fields of a request that a backend request inherits, and the
//! fields of a backend's response that are stored, as in Varnish. A hop-by-hop field is never
//! forwarded.

use message::authority::parse_authority;
use message::{Framing, HeaderBlock, HeaderId, Method, Request, Response, Status, Upgrade};

/// Purpose of a backend request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A pass: for one request, not stored.
    Pass,
    /// A fetch whose response may be stored.
    Fetch,
    /// A pipe: bytes in both directions.
    Pipe,
}

/// Fields that are about one connection.
const HOP_BY_HOP: [HeaderId; 6] = [
    HeaderId::Connection,
    HeaderId::KeepAlive,
    HeaderId::Te,
    HeaderId::Trailer,
    HeaderId::TransferEncoding,
    HeaderId::Upgrade,
];

/// Fields that ask for part of a representation, or make conditions.
const OF_ONE_CLIENT: [HeaderId; 10] = [
    HeaderId::CacheControl,
    HeaderId::ContentRange,
    HeaderId::IfMatch,
    HeaderId::IfModifiedSince,
    HeaderId::IfNoneMatch,
    HeaderId::IfRange,
    HeaderId::IfUnmodifiedSince,
    HeaderId::ProxyAuthenticate,
    HeaderId::ProxyAuthorization,
    HeaderId::Range,
];

/// Disposition of a backend's response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseDisposition {
    /// The response to a passed request.
    Passed,
    /// Fetched to be stored, but uncacheable: for one request only.
    Uncacheable,
    /// It is stored.
    Stored,
}

/// Fields between a proxy and its client.
const OF_A_PROXY: [HeaderId; 2] = [HeaderId::ProxyAuthenticate, HeaderId::ProxyAuthorization];

/// Turns the client's request into `bereq`, still without the transaction's number. Fields named by
/// the client's Connection were removed on arrival; as in Varnish, a program may set them again.
pub fn bereq(bereq: &mut Request, purpose: Purpose, gzip: bool) {
    bereq.headers.retain(|field| match purpose {
        Purpose::Pipe => !matches!(
            field.id,
            HeaderId::Connection | HeaderId::KeepAlive | HeaderId::TransferEncoding
        ),
        Purpose::Pass | Purpose::Fetch => {
            !HOP_BY_HOP.contains(&field.id)
                && field.id != HeaderId::AcceptRanges
                && field.id != HeaderId::Expect
                && !field.name.eq_ignore_ascii_case(b"HTTP2-Settings")
                && !(purpose == Purpose::Fetch && OF_ONE_CLIENT.contains(&field.id))
        }
    });
    if purpose != Purpose::Pipe {
        bereq.upgrade = Upgrade::None;
    }
    if purpose == Purpose::Fetch && gzip {
        bereq.headers.set(HeaderId::AcceptEncoding, b"gzip");
    }
}

/// Removes the fields of a backend's response that are neither stored nor forwarded.
pub fn beresp(headers: &mut HeaderBlock, disposition: ResponseDisposition) {
    headers.retain(|field| {
        let dropped = HOP_BY_HOP.contains(&field.id)
            || matches!(field.id, HeaderId::Age | HeaderId::ProxyConnection)
            || (disposition != ResponseDisposition::Passed && field.id == HeaderId::AcceptRanges)
            || (disposition == ResponseDisposition::Stored && OF_A_PROXY.contains(&field.id));
        !dropped
    });
}

/// Adjusts the head for a body that is stored in gzip and sent to each client as it accepts it.
pub fn keep_gzip(headers: &mut HeaderBlock) {
    vary_by_coding(headers);
}

/// Returns true if the body is complete and in gzip.
pub fn is_gzip(response: &Response) -> bool {
    let coding = response.headers.value(HeaderId::ContentEncoding);
    response.status != Status::PARTIAL_CONTENT
        && coding.is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip"))
}

/// Adjusts the head for a body that is encoded in gzip.
pub fn gzip(headers: &mut HeaderBlock) {
    headers.remove(HeaderId::ContentLength);
    headers.set(HeaderId::ContentEncoding, b"gzip");
    weaken_etag(headers);
    vary_by_coding(headers);
}

/// Adjusts the head for a body that is decoded from gzip.
pub fn gunzip(headers: &mut HeaderBlock) {
    headers.remove(HeaderId::ContentLength);
    headers.remove(HeaderId::ContentEncoding);
    weaken_etag(headers);
}

/// Weakens the entity tag, since the coding changes.
pub fn weaken_etag(headers: &mut HeaderBlock) {
    if let Some(etag) = headers.value(HeaderId::Etag)
        && !etag.starts_with(b"W/")
    {
        let weak = [b"W/", etag].concat();
        headers.set(HeaderId::Etag, &weak);
    }
}

/// Adds Accept-Encoding to Vary.
pub fn vary_by_coding(headers: &mut HeaderBlock) {
    if !names_accept_encoding(headers) {
        let before = headers.values(HeaderId::Vary).collect::<Vec<_>>().join(&b", "[..]);
        let vary = match before.is_empty() {
            true => b"Accept-Encoding".to_vec(),
            false => [&before, &b", Accept-Encoding"[..]].concat(),
        };
        headers.set(HeaderId::Vary, &vary);
    }
}

fn names_accept_encoding(headers: &HeaderBlock) -> bool {
    let names = headers.values(HeaderId::Vary).flat_map(|line| line.split(|b| *b == b','));
    names.into_iter().any(|name| name.trim_ascii().eq_ignore_ascii_case(b"accept-encoding"))
}

/// Joins the lines of a field to one.
pub fn collect(headers: &mut HeaderBlock, id: HeaderId) {
    if !headers.contains(id) || headers.values(id).nth(1).is_none() {
        return;
    }
    let joined = headers.values(id).collect::<Vec<_>>().join(&b", "[..]);
    headers.set(id, &joined);
}

/// Completes a 304's head with the fields of the stored response that it lacks.
pub fn merge(confirmation: &mut HeaderBlock, stored: &HeaderBlock) {
    for id in [HeaderId::ContentEncoding, HeaderId::ContentLength] {
        confirmation.remove(id);
    }
    let own = confirmation.clone();
    for field in stored.iter() {
        if own.value_named(field.name).is_none() {
            confirmation.push_as(field.id, field.name, field.value);
        }
    }
}

/// Returns true if the client accepts gzip (`RFC2616_Req_Gzip`): it names gzip with a weight above
/// 0.
pub fn takes_gzip(headers: &HeaderBlock) -> bool {
    [&b"gzip"[..], b"x-gzip"].iter().any(|coding| {
        let lines = headers.values(HeaderId::AcceptEncoding);
        let mut members = lines.flat_map(|line| line.split(|b| *b == b','));
        // The first parameter of a name counts.
        members.find_map(|member| {
            let mut parts = member.split(|b| *b == b';').map(<[u8]>::trim_ascii);
            let named = parts.next().unwrap_or_default().eq_ignore_ascii_case(coding);
            named.then(|| parts.find_map(weighs_something).unwrap_or(true))
        }) == Some(true)
    })
}

/// Returns true for a weight above 0; `None` for another parameter. As in Varnish, a malformed
/// number is 0, and text behind a number is ignored.
fn weighs_something(parameter: &[u8]) -> Option<bool> {
    let value = parameter.strip_prefix(b"q")?.trim_ascii_start().strip_prefix(b"=")?;
    let whole = value.iter().position(|b| !b.is_ascii_digit()).unwrap_or(value.len());
    let behind = value[whole..].strip_prefix(b".").unwrap_or_default();
    let fraction = behind.iter().take_while(|b| b.is_ascii_digit());
    Some(value[..whole].iter().chain(fraction).any(|b| *b != b'0'))
}

/// Adds Host as programs see it to a request that has it in its canonical form only.
pub fn show_host(request: &mut Request) {
    let mut host = request.host.clone();
    if let Some(port) = request.port {
        host.extend_from_slice(format!(":{port}").as_bytes());
    }
    request.headers.set(HeaderId::Host, &host);
}

/// Derives host and port of the request from Host, which a program may have changed. An invalid
/// Host is ignored: the backend's own is sent then.
pub fn follow_host(request: &mut Request) {
    let mut host = std::mem::take(&mut request.host);
    let raw = request.headers.value(HeaderId::Host).unwrap_or_default();
    match parse_authority(raw, request.scheme, &mut host) {
        Ok(port) => request.port = port,
        Err(_) => {
            host.clear();
            request.port = None;
        }
    }
    request.host = host;
}

/// Returns true if the request has a body.
pub fn has_body(request: &Request) -> bool {
    !matches!(request.framing, Framing::None | Framing::Length(0))
}

/// Prepares received fields as a program first sees them; `address` is the client's.
pub fn prepare_received(headers: &mut HeaderBlock, address: &[u8]) {
    headers.remove(HeaderId::Expect);
    collect(headers, HeaderId::CacheControl);
    collect(headers, HeaderId::XForwardedFor);
    match headers.value(HeaderId::XForwardedFor) {
        Some(before) => {
            let value = [before, b", ", address].concat();
            headers.set(HeaderId::XForwardedFor, &value);
        }
        None => headers.push(HeaderId::XForwardedFor, address),
    }
}

/// Reduces Accept-Encoding to gzip, or removes it.
pub fn normalize_accept_encoding(headers: &mut HeaderBlock) {
    if !headers.contains(HeaderId::AcceptEncoding) {
        return;
    }
    if takes_gzip(headers) {
        headers.set(HeaderId::AcceptEncoding, b"gzip");
    } else {
        headers.remove(HeaderId::AcceptEncoding);
    }
}

/// Keeps Host as the program has left it, without canonical case and port.
pub fn keep_host_spelling(bereq: &mut Request) {
    if !bereq.host.is_empty()
        && let Some(spelled) = bereq.headers.value(HeaderId::Host)
    {
        bereq.host.clear();
        bereq.host.extend_from_slice(spelled.trim_ascii());
        bereq.port = None;
    }
}

/// Returns true if `target` is a valid request target (RFC 9112 3.2): a path, an absolute URI, or
/// `*` with OPTIONS.
pub fn is_target(target: &[u8], method: &Method) -> bool {
    target.starts_with(b"/")
        || [&b"http://"[..], b"https://"].iter().any(|scheme| target.starts_with(scheme))
        || (target == b"*" && *method == Method::Options)
}

/// Percent-encodes the bytes of a `bereq.url` that would split the request line; an empty target
/// becomes `/`.
pub fn escape_target(target: &mut Vec<u8>) {
    if target.is_empty() {
        target.push(b'/');
    }
    if target.iter().all(u8::is_ascii_graphic) {
        return;
    }
    let mut visible = Vec::with_capacity(target.len() + 16);
    for byte in target.iter() {
        match byte.is_ascii_graphic() {
            true => visible.push(*byte),
            false => visible.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    *target = visible;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)]) -> Request {
        let mut request = Request::new();
        for (name, value) in fields {
            request.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        request
    }

    fn names(headers: &HeaderBlock) -> Vec<String> {
        headers.iter().map(|f| String::from_utf8_lossy(f.name).into_owned()).collect()
    }

    /// Fields of a request to varnishd. The tests expect the fields that it sent to its origin.
    const ASKED: &[(&str, &str)] = &[
        ("Host", "x"),
        ("Via", "1.1 foo"),
        ("Accept-Encoding", "gzip, br"),
        ("Range", "bytes=0-2"),
        ("If-None-Match", "\"x\""),
        ("If-Range", "foo"),
        ("If-Match", "\"a\""),
        ("If-Modified-Since", "Sun, 22 Nov 2026 10:00:00 GMT"),
        ("Connection", "keep-alive"),
        ("Keep-Alive", "3"),
        ("TE", "trailers"),
        ("Trailer", "X"),
        ("Upgrade", "websocket"),
        ("Cache-Control", "no-cache, foo"),
        ("Pragma", "no-cache"),
        ("Proxy-Authenticate", "a"),
        ("Proxy-Authorization", "b"),
        ("Proxy-Connection", "c"),
        ("HTTP2-Settings", "d"),
        ("Max-Forwards", "10"),
        ("Accept-Ranges", "g"),
        ("Age", "4"),
        ("Content-Range", "h"),
    ];

    #[test]
    fn a_fetch_for_the_store_asks_for_the_whole_and_a_pass_for_what_was_asked() {
        let mut fetch = request(ASKED);
        bereq(&mut fetch, Purpose::Fetch, true);
        let expected =
            ["Host", "Via", "Pragma", "Proxy-Connection", "Max-Forwards", "Age", "Accept-Encoding"];
        assert_eq!(names(&fetch.headers), expected);
        assert_eq!(fetch.headers.value(HeaderId::AcceptEncoding), Some(&b"gzip"[..]));
        let mut pass = request(ASKED);
        bereq(&mut pass, Purpose::Pass, true);
        assert_eq!(
            names(&pass.headers),
            [
                "Host",
                "Via",
                "Accept-Encoding",
                "Range",
                "If-None-Match",
                "If-Range",
                "If-Match",
                "If-Modified-Since",
                "Cache-Control",
                "Pragma",
                "Proxy-Authenticate",
                "Proxy-Authorization",
                "Proxy-Connection",
                "Max-Forwards",
                "Age",
                "Content-Range",
            ]
        );
    }

    #[test]
    fn what_connection_still_names_was_set_here_and_goes_on() {
        let mut asked = request(&[("Connection", "close, x-foo"), ("X-Foo", "own")]);
        let mut answer = asked.headers.clone();
        bereq(&mut asked, Purpose::Pass, false);
        assert_eq!(names(&asked.headers), ["X-Foo"]);
        beresp(&mut answer, ResponseDisposition::Passed);
        assert_eq!(names(&answer), ["X-Foo"]);
    }

    #[test]
    fn a_confirmation_keeps_its_own_fields_and_gets_the_stored_ones_it_lacks() {
        let block = |fields| request(fields).headers;
        let mut fresh = block(&[("X-New", "yes"), ("ETag", "\"b\""), ("Content-Length", "0")]);
        merge(&mut fresh, &block(&[("ETag", "\"a\""), ("Content-Type", "text/plain")]));
        assert_eq!(names(&fresh), ["X-New", "ETag", "Content-Type"]);
        assert_eq!(fresh.value(HeaderId::Etag), Some(&b"\"b\""[..]));
    }

    #[test]
    fn gzip_is_taken_where_it_is_named_and_not_refused() {
        for (value, takes) in [
            ("gzip", true),
            ("br, gzip;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip;q=0.000", false),
            ("br", false),
            ("*", false),
            // Results of varnishd 7.1.1.
            ("gzip;q=-1", false),
            ("gzip;q=abc", false),
            ("gzip;q=", false),
            ("gzip;q", true),
            ("gzip;", true),
            ("gzip;q=1x", true),
            ("gzip;Q=0", true),
            ("gzip;q=0.0x1", false),
            ("gzip;x=1;q=0", false),
            ("gzip;q=.5", true),
            ("gzip;q=0, gzip", false),
            ("gzip;q =0", false),
            ("x-gzip;q=0, gzip", true),
            ("gzipx", false),
        ] {
            let request = request(&[("Accept-Encoding", value)]);
            assert_eq!(takes_gzip(&request.headers), takes, "{value}");
        }
    }

    #[test]
    fn nothing_in_a_target_can_split_the_request_line() {
        for (target, sent) in [
            (&b"/a b"[..], &b"/a%20b"[..]),
            (b"/a\r\nX: y", b"/a%0D%0AX:%20y"),
            (b"/\xff", b"/%FF"),
            (b"", b"/"),
            (b"/plain?x=%20", b"/plain?x=%20"),
        ] {
            let mut target = target.to_vec();
            escape_target(&mut target);
            assert_eq!(target, sent);
        }
    }
}
