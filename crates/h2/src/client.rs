//! Client connection: the client's side of a connection to a server (RFC 9113).
//!
//! The server's bytes become one canonical [`Response`] per stream, or an error. A malformed
//! response ends its stream; any other violation must end the connection.

mod control;
mod response;
mod sending;

use base::{HashSeed, Limit, Limits};
use message::{Framing, Response, Trailers};

pub use self::response::ResponseError;
use self::response::{ResponseCollector, ResponseLimits};
use crate::budget::Budget;
use crate::connection::FIRST_WINDOW;
use crate::decode::Decoder;
use crate::encode::Encoder;
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, HEAD_BYTES, PREFACE, flag, kind, setting};
use crate::payload;
use crate::request::Collector;
use crate::streams::WINDOW_MAX;
use crate::table::OVERHEAD;

/// Limits of one connection to a server.
#[derive(Clone, Copy, Debug)]
pub struct ClientSettings {
    streams: u32,
    stream_window: u32,
    control_frames: u64,
    head: ResponseLimits,
}

impl From<&Limits> for ClientSettings {
    fn from(limits: &Limits) -> Self {
        let window = u32::try_from(limits.origin_h2_window).unwrap_or(u32::MAX);
        Self {
            streams: limits.origin_h2_streams.clamp(1, STREAMS_MAX) as u32,
            stream_window: window.clamp(FIRST_WINDOW, LARGEST_WINDOW),
            control_frames: limits.origin_h2_control_frames,
            head: ResponseLimits::from(limits),
        }
    }
}

/// The most concurrent streams, whatever the setting: lookups scan them.
const STREAMS_MAX: u64 = 1000;
/// The first window of a stream, which [`ClientConnection::widen`] makes larger.
const NARROW_WINDOW: u32 = 64 << 10;
/// The largest window of a stream: that of the connection is a multiple of it.
const LARGEST_WINDOW: u32 = 1 << 28;
/// Windows of streams that the connection's window has. It is returned as bytes arrive, so that a
/// slow reader stops only its own stream.
const WINDOWS: u32 = 4;
/// Size of the field table that servers may use.
const TABLE_BYTES: usize = 4096;
/// Streams that a server permits before its settings are known.
const ASSUMED_STREAMS: u32 = 100;

/// An event of a connection to a server.
#[derive(Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// A response's head, which the caller's [`Response`] has; an interim one has another behind
    /// it.
    Head {
        /// The request's stream.
        stream: u32,
        /// The framing of the body.
        framing: Framing,
    },
    /// A part of a response's body. Its bytes must be reported to [`ClientConnection::used`].
    Data {
        /// The request's stream.
        stream: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A response is complete.
    End {
        /// The request's stream.
        stream: u32,
        /// Its trailer fields that may pass, if any.
        trailers: Option<Trailers>,
    },
    /// The server has ended a stream.
    Reset {
        /// The request's stream.
        stream: u32,
        /// The error code (RFC 9113 7).
        code: u32,
    },
    /// A response was rejected, and its stream ended.
    Rejected {
        /// The request's stream.
        stream: u32,
        /// The reason.
        error: ResponseError,
    },
    /// The server will not process streams above this one, and takes no new ones.
    Leaves {
        /// The last stream that the server may process.
        last: u32,
    },
    /// Windows have grown, or more streams are permitted.
    Room,
}

/// One stream of a client.
#[derive(Debug)]
struct ClientStream {
    id: u32,
    is_head: bool,
    /// The request is not complete.
    sends: bool,
    /// The response is not complete.
    receives: bool,
    /// The final response's head has arrived.
    answered: bool,
    /// Bytes of Content-Length that are still to come.
    due: Option<u64>,
    receive_window: i64,
    /// The size of the window.
    window: u32,
    /// Used bytes that were not returned to the window yet.
    used: u32,
    send_window: i64,
}

/// A field block that is not complete.
#[derive(Clone, Copy, Debug)]
struct OpenBlock {
    id: u32,
    ends: bool,
}

/// A response that has ended, whose end was not reported yet.
#[derive(Debug)]
struct PendingEnd {
    id: u32,
    trailers: Option<Trailers>,
}

/// A client's side of a connection.
///
/// Order of calls: [`ClientConnection::new`]; then, in any order, [`ClientConnection::start`] for
/// each request, [`ClientConnection::data`] for its body, and [`ClientConnection::next`] for
/// received bytes.
#[derive(Debug)]
pub struct ClientConnection {
    settings: ClientSettings,
    decoder: Decoder,
    encoder: Encoder,
    collector: ResponseCollector,
    trailers: Collector,
    streams: Vec<ClientStream>,
    /// The next stream's number.
    next_id: u32,
    greeted: bool,
    open: Option<OpenBlock>,
    block: Vec<u8>,
    pending: Option<PendingEnd>,
    /// Streams that the server permits.
    permitted: u32,
    leaves: bool,
    /// The largest head that the server takes, by the sizes of its fields.
    head_most: Option<u32>,
    receive_window: i64,
    /// Received bytes that were not returned to the connection's window yet.
    received: u32,
    send_window: i64,
    first_send_window: i64,
    control: Budget,
    /// The target's authority, and the beginning of a head; scratch memory.
    text: Vec<u8>,
}

impl ClientConnection {
    /// A connection on which nothing was sent; appends this end's preface to `out`.
    pub fn new(settings: ClientSettings, seed: HashSeed, now_ms: u64, out: &mut Vec<u8>) -> Self {
        out.extend_from_slice(PREFACE);
        let mut payload = Vec::with_capacity(24);
        for (name, value) in [
            (setting::ENABLE_PUSH, 0),
            (setting::INITIAL_WINDOW_SIZE, settings.stream_window.min(NARROW_WINDOW)),
            (setting::MAX_HEADER_LIST_SIZE, settings.head.list.list_bytes as u32),
            (setting::NO_RFC7540_PRIORITIES, 1),
        ] {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(out, kind::SETTINGS, 0, 0, &payload);
        let window = settings.stream_window * WINDOWS;
        let more = window - FIRST_WINDOW;
        frame::write(out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        Self {
            settings,
            decoder: Decoder::new(TABLE_BYTES),
            encoder: Encoder::new(seed),
            collector: ResponseCollector::default(),
            trailers: Collector::default(),
            streams: Vec::new(),
            next_id: 1,
            greeted: false,
            open: None,
            block: Vec::new(),
            pending: None,
            permitted: ASSUMED_STREAMS,
            leaves: false,
            head_most: None,
            receive_window: i64::from(window),
            received: 0,
            send_window: i64::from(FIRST_WINDOW),
            first_send_window: i64::from(FIRST_WINDOW),
            control: Budget::new(Limit::OriginH2ControlFrames, settings.control_frames, now_ms),
            text: Vec::new(),
        }
    }

    /// Returns true if the server has sent its settings.
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// The number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns true if the server takes no new streams.
    pub fn leaves(&self) -> bool {
        self.leaves
    }

    /// Returns true if another stream can begin.
    pub fn has_room(&self) -> bool {
        let most = self.settings.streams.min(self.permitted) as usize;
        !self.leaves && self.streams.len() < most && i64::from(self.next_id) <= WINDOW_MAX
    }

    /// Returns true if this end's limit of streams is reached, rather than the server's.
    pub fn is_full(&self) -> bool {
        self.streams.len() >= self.settings.streams as usize
    }

    /// Parses `input` up to the next event; `None` if no whole frame is left. The caller keeps what
    /// is left of `input` in front of the bytes that it receives next; a frame has at most
    /// [`ClientConnection::FRAME_BYTES`].
    ///
    /// `response` receives a response's head; `out` receives frames for the server.
    ///
    /// # Errors
    /// If the connection must end: [`ClientConnection::end`] sends the reason to the server.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        response: &mut Response,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        loop {
            if let Some(PendingEnd { id, trailers }) = self.pending.take() {
                return Ok(Some(ClientEvent::End { stream: id, trailers }));
            }
            let Some(bytes) = input.first_chunk() else { return Ok(None) };
            let head = FrameHead::read(bytes);
            head.check(self.open.map(|open| open.id))?;
            if !self.greeted && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
                return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
            }
            let Some((payload, rest)) = input[HEAD_BYTES..].split_at_checked(head.length) else {
                return Ok(None);
            };
            *input = rest;
            if let Some(event) = self.frame(head, payload, response, out, now_ms)? {
                return Ok(Some(event));
            }
        }
    }

    /// The largest frame of a server, with its head.
    pub const FRAME_BYTES: usize = HEAD_BYTES + frame::PAYLOAD_BYTES;

    fn frame<'a>(
        &mut self,
        head: FrameHead,
        payload: &'a [u8],
        response: &mut Response,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        match head.kind {
            kind::DATA => return self.body(head, payload, out, now_ms),
            kind::HEADERS => return self.headers(head, payload, response, out, now_ms),
            kind::CONTINUATION => return self.continuation(head, payload, response, out, now_ms),
            kind::RST_STREAM => return self.reset_by_server(head, payload, now_ms),
            kind::WINDOW_UPDATE => return self.window_update(head, payload, out, now_ms),
            kind::SETTINGS => return self.settings(head, payload, out, now_ms),
            kind::GOAWAY => return self.goaway(head, payload),
            kind::PING => self.ping(head, payload, out, now_ms)?,
            kind::PUSH_PROMISE => {
                return Err(ConnectionError::protocol("PUSH_PROMISE, which is switched off"));
            }
            _ => self.control.spend(now_ms, "too many frames of unknown types")?,
        }
        Ok(None)
    }

    /// Handles a DATA frame (RFC 9113 6.1).
    fn body<'a>(
        &mut self,
        head: FrameHead,
        payload: &'a [u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        head.of_stream()?;
        let (ends, window) = (head.has(flag::END_STREAM), payload.len() as u32);
        let bytes = payload::unpadded(head, payload)?;
        if bytes.is_empty() && !ends {
            self.control.spend(now_ms, "too many empty DATA frames")?;
        }
        self.receive_window -= i64::from(window);
        if self.receive_window < 0 {
            let reason = "more than the connection's window";
            return Err(ConnectionError::new(Code::FlowControl, reason));
        }
        self.give_back(window, out);
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == head.stream) else {
            self.control.spend(now_ms, "too many DATA frames of ended streams")?;
            return self.has_begun(head).map(|()| None);
        };
        if !bytes.is_empty() {
            self.control.earn(1);
        }
        if !stream.receives {
            return Err(ConnectionError::new(Code::StreamClosed, "DATA after the stream's end"));
        }
        stream.receive_window -= i64::from(window);
        if stream.receive_window < 0 {
            return Err(ConnectionError::new(Code::FlowControl, "more than the stream's window"));
        }
        if !stream.answered || stream.is_head && !bytes.is_empty() {
            return Ok(Some(self.reject(head.stream, ResponseError::Order, out)));
        }
        if let Some(due) = &mut stream.due {
            match due.checked_sub(bytes.len() as u64) {
                Some(left) if left == 0 || !ends => *due = left,
                _ => return Ok(Some(self.reject(head.stream, ResponseError::Length, out))),
            }
        }
        // Padding is used at once.
        let padding = payload.len() - bytes.len();
        self.used(head.stream, padding, out);
        if ends {
            self.ended(head.stream, None);
        }
        let event = ClientEvent::Data { stream: head.stream, bytes };
        Ok(Some(event).filter(|_| !bytes.is_empty()))
    }

    /// Records the end of a response; [`ClientConnection::next`] reports it.
    fn ended(&mut self, id: u32, trailers: Option<Trailers>) {
        self.pending = Some(PendingEnd { id, trailers });
        if let Some(at) = self.streams.iter().position(|stream| stream.id == id) {
            self.streams[at].receives = false;
            if !self.streams[at].sends {
                self.streams.swap_remove(at);
            }
        }
    }

    fn headers<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        response: &mut Response,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        head.of_stream()?;
        let fragment = payload::fragment(head, payload)?;
        let open = OpenBlock { id: head.stream, ends: head.has(flag::END_STREAM) };
        if head.has(flag::END_HEADERS) {
            return self.block_is_whole(open, fragment, response, out, now_ms);
        }
        self.block.extend_from_slice(fragment);
        self.open = Some(open);
        Ok(None)
    }

    fn continuation<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        response: &mut Response,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        self.control.spend(now_ms, "too many CONTINUATION frames")?;
        if self.block.len() + payload.len() > 2 * self.settings.head.bytes() {
            return Err(ConnectionError::limit(Limit::HeaderBytes, "a field block far too large"));
        }
        self.block.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        let Some(open) = self.open.take() else { return Ok(None) };
        let block = std::mem::take(&mut self.block);
        let event = self.block_is_whole(open, &block, response, out, now_ms);
        payload::give_back(&mut self.block, block);
        event
    }

    /// Handles a complete block: a head or trailers. Those of ended streams are read, too, because
    /// they change the decoder's table.
    fn block_is_whole<'a>(
        &mut self,
        open: OpenBlock,
        block: &[u8],
        response: &mut Response,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        let OpenBlock { id, ends } = open;
        let Some(at) = self.streams.iter().position(|stream| stream.id == id) else {
            if id.is_multiple_of(2) || id >= self.next_id {
                return Err(ConnectionError::protocol("HEADERS on a stream that has not begun"));
            }
            self.control.spend(now_ms, "too many heads on ended streams")?;
            self.skip(block)?;
            return Ok(None);
        };
        if !self.streams[at].receives {
            return Err(ConnectionError::new(Code::StreamClosed, "HEADERS after the stream's end"));
        }
        if self.streams[at].answered {
            return self.read_trailers(open, block, out);
        }
        let Self { settings, decoder, collector, streams, .. } = self;
        let (limits, mut size) = (settings.head, 0);
        collector.start(response);
        decoder.block(block, |id, name, value| {
            size += name.len() + value.len() + OVERHEAD;
            collector.field(id, name, value, &limits, response);
            size <= 2 * limits.bytes()
        })?;
        let stream = &mut streams[at];
        let framing = match collector.finish(ends, stream.is_head, response) {
            Ok(framing) => framing,
            Err(error) => return Ok(Some(self.reject(id, error, out))),
        };
        if response.status.is_interim() {
            self.control.spend(now_ms, "too many 1xx responses")?;
            return Ok(Some(ClientEvent::Head { stream: id, framing }));
        }
        stream.answered = true;
        stream.due = match framing {
            Framing::Length(length) => Some(length),
            Framing::None => Some(0),
            _ => None,
        };
        if ends {
            self.ended(id, None);
        }
        Ok(Some(ClientEvent::Head { stream: id, framing }))
    }

    /// Decodes a block only to keep the decoder's table.
    fn skip(&mut self, block: &[u8]) -> Result<(), ConnectionError> {
        let (most, mut size) = (2 * self.settings.head.bytes(), 0);
        Ok(self.decoder.block(block, |_, name, value| {
            size += name.len() + value.len() + OVERHEAD;
            size <= most
        })?)
    }

    fn read_trailers<'a>(
        &mut self,
        open: OpenBlock,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        let Self { settings, decoder, trailers: collector, .. } = self;
        let (limits, mut size) = (settings.head.list, 0);
        collector.start_trailer();
        decoder.block(block, |id, name, value| {
            size += name.len() + value.len() + OVERHEAD;
            collector.trailer(id, name, value, &limits);
            size <= 2 * limits.list_bytes
        })?;
        let due = self.streams.iter().find(|stream| stream.id == open.id);
        let is_short = due.is_some_and(|stream| stream.due.is_some_and(|due| due > 0));
        match self.trailers.finish_trailer() {
            Ok(_) if !open.ends => Ok(Some(self.reject(open.id, ResponseError::Order, out))),
            Ok(_) if is_short => Ok(Some(self.reject(open.id, ResponseError::Length, out))),
            Ok(trailers) => {
                self.ended(open.id, trailers);
                Ok(None)
            }
            Err(error) => Ok(Some(self.reject(open.id, error.into(), out))),
        }
    }

    /// Resets the stream of a response that is malformed or too large.
    fn reject<'a>(
        &mut self,
        stream: u32,
        error: ResponseError,
        out: &mut Vec<u8>,
    ) -> ClientEvent<'a> {
        self.reset(stream, Code::Protocol, out);
        ClientEvent::Rejected { stream, error }
    }

    /// Checks that a frame is on a stream that this end has begun: it may have ended since.
    fn has_begun(&self, head: FrameHead) -> Result<(), ConnectionError> {
        if head.stream >= self.next_id || head.stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("a frame on a stream that has not begun"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
