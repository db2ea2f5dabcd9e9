//! Heads of replies in HTTP/1.x.

use flow::reply::HeadSource;
use flow::{LiveRef, Reply, ReplyBody};
use h1::encode::{self, BodyFraming, ConnectionHeader};
use message::trailers::are_taken;
use message::{Request, Version};

/// Writes a reply's head with the framing that this client supports.
pub(crate) fn append(
    live: &LiveRef,
    request: &Request,
    reply: &Reply,
    keep: bool,
    output: &mut Vec<u8>,
) -> BodyFraming {
    let framing = framing(request, reply);
    append_framed(live, request, reply, framing, keep, output);
    framing
}

/// The framing of the body of `reply` to `request`.
pub(crate) fn framing(request: &Request, reply: &Reply) -> BodyFraming {
    match &reply.body {
        ReplyBody::None => BodyFraming::None,
        ReplyBody::Head(length) => BodyFraming::HeadOf(*length),
        _ => framing_of(request, reply.length()),
    }
}

/// The framing of a body of `length` bytes, if known, in the reply to `request`.
pub(crate) fn framing_of(request: &Request, length: Option<u64>) -> BodyFraming {
    match length {
        Some(length) => BodyFraming::Length(length),
        None if request.version == Version::Http10 => BodyFraming::UntilClose,
        None => BodyFraming::Chunked,
    }
}

/// Writes a reply's head with the given framing of its body.
pub(crate) fn append_framed(
    live: &LiveRef,
    request: &Request,
    reply: &Reply,
    framing: BodyFraming,
    keep: bool,
    output: &mut Vec<u8>,
) {
    reply.write_head(live, output);
    let connection = match request.version {
        _ if !keep || framing == BodyFraming::UntilClose => ConnectionHeader::Close,
        Version::Http10 => ConnectionHeader::KeepAliveExplicit,
        Version::Http11 | Version::Http2 => ConnectionHeader::KeepAliveDefault,
    };
    if framing == BodyFraming::Chunked
        && let HeadSource::Owned(response) = &reply.head
        && response.passes_trailers
        && are_taken(&request.headers)
    {
        encode::trailer_names(output, &response.headers);
    }
    encode::response_tail(output, framing, connection);
}
