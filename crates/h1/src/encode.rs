//! Encoder of heads and chunk framing. Only this module writes Content-Length, Transfer-Encoding,
//! Host and Connection; those in a header block are ignored.
//!
//! Must never be given unchecked bytes: names and values were checked by the reader or by the code
//! that set them. Debug builds assert it.

use message::authority::write_authority;
use message::header::{is_token, is_value};
use message::{Framing, HeaderBlock, HeaderId, Method, Request, Status, Trailers, Upgrade};

/// Ends a chunk's data.
pub const CHUNK_END: &[u8] = b"\r\n";
/// Ends a chunked body, without trailer fields.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// The framing with which a response's body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No body and no framing fields: 1xx, 204, 304.
    None,
    /// Exactly this many bytes.
    Length(u64),
    /// Chunked transfer coding; never to an HTTP/1.0 client (RFC 9112 6.1).
    Chunked,
    /// Until the connection ends; implies `Connection: close`.
    UntilClose,
    /// No body, since the request was HEAD; the Content-Length of a GET, if known.
    HeadOf(Option<u64>),
}

/// The Connection field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionHeader {
    /// The connection is kept, which is the default of HTTP/1.1: no field.
    KeepAliveDefault,
    /// The connection is kept, with a field for an HTTP/1.0 client.
    KeepAliveExplicit,
    /// The connection is closed.
    Close,
}

/// Announces that trailers are accepted, hop by hop (RFC 9110 10.1.4).
const CONNECTION_TE: &[u8] = b"Connection: TE\r\nTE: trailers\r\n";

/// Fields at the end of the head of a request for an upgrade.
const CONNECTION_UPGRADE: &[u8] = b"Connection: Upgrade\r\nUpgrade: ";

/// Appends a request head in origin-form, HTTP/1.1.
///
/// Host is the first field and comes from `request.host` and `request.port`; framing comes from
/// `request.framing`. Omitted: Host, framing, hop-by-hop fields, and Expect, which the client's
/// side of the connection answers (as nginx does). A POST, PUT or PATCH without body has
/// `Content-Length: 0` (RFC 9110 8.6). A granted upgrade adds Connection and Upgrade, with the
/// protocols of the request's own Upgrade (RFC 9110 7.8). If trailers are forwarded, TE is added,
/// and Trailer before a chunked body.
pub fn request_head(out: &mut Vec<u8>, request: &Request) {
    debug_assert!(is_token(request.method.token()), "a method is a token");
    debug_assert!(
        request.target.iter().all(|b| b.is_ascii_graphic()) && !request.target.is_empty(),
        "a target is visible ASCII"
    );
    debug_assert!(request.framing != Framing::UntilClose, "a request's body ends by itself");
    out.extend_from_slice(request.method.token());
    out.push(b' ');
    out.extend_from_slice(&request.target);
    out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
    write_authority(out, request);
    out.extend_from_slice(b"\r\n");
    fields(out, &request.headers, &[HeaderId::ContentLength, HeaderId::Host, HeaderId::Expect]);
    let awaits_body = matches!(request.method, Method::Post | Method::Put | Method::Patch);
    match request.framing {
        Framing::Length(length) => content_length(out, length),
        Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Framing::None | Framing::UntilClose if awaits_body => content_length(out, 0),
        Framing::None | Framing::UntilClose => {}
    }
    if request.upgrade == Upgrade::Granted
        && let Some(protocols) = request.headers.value(HeaderId::Upgrade)
    {
        debug_assert!(is_value(protocols), "protocols are tokens");
        out.extend_from_slice(CONNECTION_UPGRADE);
        out.extend_from_slice(protocols);
        out.extend_from_slice(b"\r\n");
    } else if request.passes_trailers {
        if request.headers.contains(HeaderId::Te) {
            out.extend_from_slice(CONNECTION_TE);
        }
        if request.framing == Framing::Chunked {
            trailer_names(out, &request.headers);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the names of the trailer fields that `headers` announces, if any.
pub fn trailer_names(out: &mut Vec<u8>, headers: &HeaderBlock) {
    if let Some(names) = headers.value(HeaderId::Trailer) {
        debug_assert!(is_value(names), "names are tokens");
        for part in [&b"Trailer: "[..], names, b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
}

/// Appends the end of a chunked body, with its trailer fields, if any.
pub fn last_chunk(out: &mut Vec<u8>, trailers: Option<&Trailers>) {
    let Some(trailers) = trailers else { return out.extend_from_slice(LAST_CHUNK) };
    for part in [&b"0\r\n"[..], trailers.lines(), b"\r\n"] {
        out.extend_from_slice(part);
    }
}

/// Appends the part of a response head that the cache stores: status line and end-to-end fields,
/// without framing and without the final blank line. [`response_tail`] completes it.
///
/// An empty `reason` means the standard one.
pub fn stored_head(out: &mut Vec<u8>, status: Status, reason: &[u8], headers: &HeaderBlock) {
    let reason = if reason.is_empty() { status.reason().as_bytes() } else { reason };
    head_with(out, status, reason, headers);
}

/// Appends the head that the cache stores, without a reason phrase.
pub fn head_without_reason(out: &mut Vec<u8>, status: Status, headers: &HeaderBlock) {
    head_with(out, status, b"", headers);
}

fn head_with(out: &mut Vec<u8>, status: Status, reason: &[u8], headers: &HeaderBlock) {
    debug_assert!(is_value(reason), "a reason phrase is checked when it is read");
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(itoa::Buffer::new().format(status.code()).as_bytes());
    out.push(b' ');
    out.extend_from_slice(reason);
    out.extend_from_slice(b"\r\n");
    fields(out, headers, &[HeaderId::ContentLength]);
}

/// Appends framing, Connection and the blank line that ends a response head.
pub fn response_tail(out: &mut Vec<u8>, framing: BodyFraming, connection: ConnectionHeader) {
    match framing {
        BodyFraming::Length(length) | BodyFraming::HeadOf(Some(length)) => {
            content_length(out, length);
        }
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::None | BodyFraming::UntilClose | BodyFraming::HeadOf(None) => {}
    }
    out.extend_from_slice(match connection {
        ConnectionHeader::Close => b"Connection: close\r\n\r\n",
        _ if framing == BodyFraming::UntilClose => b"Connection: close\r\n\r\n",
        ConnectionHeader::KeepAliveDefault => b"\r\n",
        ConnectionHeader::KeepAliveExplicit => b"Connection: keep-alive\r\n\r\n",
    });
}

/// Appends the end of the head of a 101: from here on the connection speaks `protocol`.
pub fn switching_tail(out: &mut Vec<u8>, protocol: &[u8]) {
    debug_assert!(is_value(protocol), "a protocol is a token");
    out.extend_from_slice(CONNECTION_UPGRADE);
    out.extend_from_slice(protocol);
    out.extend_from_slice(b"\r\n\r\n");
}

/// Appends an interim response, such as 100 or 103.
pub fn interim(out: &mut Vec<u8>, status: Status, headers: &HeaderBlock) {
    debug_assert!(status.is_interim(), "{status} ends an exchange");
    stored_head(out, status, b"", headers);
    out.extend_from_slice(b"\r\n");
}

/// Appends the line that begins a chunk of `len` bytes. `len` must not be 0, which would end the
/// body.
pub fn chunk_start(out: &mut Vec<u8>, len: usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    debug_assert!(len != 0, "an empty chunk is the last one");
    let digits = (usize::BITS - len.leading_zeros()).div_ceil(4);
    for digit in (0..digits).rev() {
        out.push(DIGITS[(len >> (4 * digit)) & 15]);
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the end-to-end fields, except those called by one of `without`.
fn fields(out: &mut Vec<u8>, headers: &HeaderBlock, without: &[HeaderId]) {
    debug_assert!(headers.iter().all(|field| is_token(field.name)), "field names are tokens");
    debug_assert!(headers.iter().all(|f| is_value(f.value)), "values have no control bytes");
    headers.write_end_to_end(out, without);
}

fn content_length(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}
