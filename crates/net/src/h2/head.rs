//! Heads of replies in HTTP/2.

use data_encoding::BASE64;
use flow::reply::{FieldSink, HeadSource};
use flow::{LiveRef, Reply, ReplyBody};
use h2::Connection;
use message::{HeaderId, Request, Response};

use crate::core::{CoreCtx, fields, lines_of};

/// Writes the head of `reply`, whose body has `length` bytes if that is known. The block is left
/// open for further fields.
pub(crate) fn write(
    engine: &mut Connection,
    core: &CoreCtx,
    live: &LiveRef,
    reply: &Reply,
    length: Option<u64>,
    out: &mut Vec<u8>,
) {
    engine.begin_head(reply.status.code(), out);
    match &reply.head {
        HeadSource::Stored(object) if reply.keeps_all_fields() => {
            engine.block(core.encoded_heads.borrow_mut().head(object), out);
        }
        HeadSource::Stored(object) => {
            for (id, name, value) in fields(object.head()) {
                if reply.keeps_field(id, name) {
                    engine.field(id, name, value, out);
                }
            }
        }
        HeadSource::File { file, date_s, .. } => {
            let date = message::date::HttpDate::new(*date_s);
            engine.field(HeaderId::Date, b"date", date.as_bytes(), out);
            let lines = file.lines(reply.status == message::Status::NOT_MODIFIED);
            for (id, name, value) in lines_of(lines) {
                if reply.keeps_field(id, name) {
                    engine.field(id, name, value, out);
                }
            }
        }
        HeadSource::Owned(response) => own_fields(engine, response, out),
    }
    let mut value = core.value.borrow_mut();
    reply.add_fields(live, &mut AddedFields { engine, out, value: &mut value });
    let length = match &reply.body {
        ReplyBody::None if reply.status.has_no_body() => None,
        ReplyBody::Head(length) => *length,
        _ => length,
    };
    if let Some(length) = length {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(length).as_bytes();
        engine.field(HeaderId::ContentLength, b"content-length", digits, out);
    }
}

/// Writes an interim response's head; the block is left open.
pub(crate) fn interim(engine: &mut Connection, response: &Response, out: &mut Vec<u8>) {
    engine.begin_head(response.status.code(), out);
    own_fields(engine, response, out);
}

fn own_fields(engine: &mut Connection, response: &Response, out: &mut Vec<u8>) {
    for field in response.headers.iter() {
        // The omitted fields are about framing, or about the origin's connection.
        let announces = response.passes_trailers && field.id == HeaderId::Trailer;
        if announces || !field.id.is_hop_by_hop() && field.id != HeaderId::ContentLength {
            engine.field(field.id, field.name, field.value, out);
        }
    }
}

/// Fields that are added to a head.
struct AddedFields<'a> {
    engine: &'a mut Connection,
    out: &'a mut Vec<u8>,
    value: &'a mut Vec<u8>,
}

impl FieldSink for AddedFields<'_> {
    fn add(&mut self, id: HeaderId, write: impl FnOnce(&mut Vec<u8>)) {
        self.value.clear();
        write(self.value);
        self.engine.field(id, id.name().as_bytes(), self.value, self.out);
    }
}

/// Converts an extended CONNECT (RFC 8441) to an HTTP/1 upgrade: a WebSocket handshake there needs
/// a key (RFC 6455 4.1).
pub(crate) fn as_http1_upgrade(request: &mut Request) {
    let mut key = [0; 16];
    for half in key.as_chunks_mut::<8>().0 {
        *half = base::HashSeed::random().hash(b"key").to_le_bytes();
    }
    request.headers.remove_named(b"Sec-WebSocket-Key");
    request.headers.push_named(b"Sec-WebSocket-Key", BASE64.encode(&key).as_bytes());
}
