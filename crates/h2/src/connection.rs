//! Connection of a client, on the server's side: converts frames to events (RFC 9113 3 to 6).
//!
//! A malformed request ends its stream only. Any other violation must end the connection, even
//! where RFC 9113 permits a stream error: honest clients cause none, and for an attacker it is work
//! at no cost (MadeYouReset, CVE-2025-8671). Stream errors are counted.

use base::{HashSeed, Limit, Limits};
use message::{Request, Scheme, Trailers};

use crate::budget::Budget;
use crate::decode::Decoder;
use crate::encode::Encoder;
use crate::error::ConnectionError;
use crate::frame::{self, FrameHead, HEAD_BYTES, PREFACE, flag, kind, setting};
use crate::payload;
use crate::queue::Queues;
use crate::request::{Collector, ListLimits, RequestError};
use crate::streams::{Priority, Streams, WINDOW_MAX};

/// Size of the field table that clients may use.
const TABLE_BYTES: usize = 4096;
/// The default window of both sides (RFC 9113 6.9.2).
pub(crate) const FIRST_WINDOW: u32 = 65_535;

/// Limits of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(crate) streams: u32,
    pub(crate) stream_window: u32,
    pub(crate) connection_window: u32,
    pub(crate) continuations: u64,
    resets: u64,
    control_frames: u64,
    pub(crate) list: ListLimits,
}

impl Settings {
    /// Sets whether `:path` may have raw UTF-8.
    pub fn with_raw_utf8(mut self, raw_utf8: bool) -> Self {
        self.list.raw_utf8 = raw_utf8;
        self
    }

    /// Bytes of one request's body that are accepted before any is used.
    pub fn stream_window(&self) -> u32 {
        self.stream_window
    }
}

impl From<&Limits> for Settings {
    fn from(limits: &Limits) -> Self {
        let window = |bytes: u64| {
            let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            bytes.clamp(FIRST_WINDOW, WINDOW_MAX as u32)
        };
        Self {
            streams: limits.h2_streams.clamp(1, STREAMS_MAX) as u32,
            stream_window: window(limits.window_bytes.min(limits.h2_memory / 8)),
            connection_window: window(limits.h2_memory / 4),
            continuations: limits.h2_continuations,
            resets: limits.h2_resets,
            control_frames: limits.h2_control_frames,
            list: ListLimits::from(limits),
        }
    }
}

/// The most concurrent streams, whatever the setting: lookups scan their slots.
const STREAMS_MAX: u64 = 1000;

/// An event of a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A request; the caller's [`Request`] has its head.
    Request {
        /// The stream to answer on.
        stream: StreamHandle,
        /// True if the request has no body.
        ends: bool,
    },
    /// A request that is rejected, or a malformed one.
    Refused {
        /// The stream to answer on; `None` if it was reset.
        stream: Option<StreamHandle>,
        /// The reason for the rejection.
        error: RequestError,
    },
    /// A part of a request's body. Its bytes must be reported to [`Connection::used`].
    Data {
        /// The stream of the request.
        stream: StreamHandle,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// A request's body is complete.
    End {
        /// The stream of the request.
        stream: StreamHandle,
        /// Its trailer fields that may pass, if any.
        trailers: Option<Trailers>,
    },
    /// A stream has ended early; work for it should stop. Its slot may be reused soon.
    Reset {
        /// The stream.
        stream: StreamHandle,
        /// True if the client has reset the stream; otherwise the client has sent an invalid frame.
        by_client: bool,
    },
}

/// A stream's number, and its slot among the open streams: a small number, fixed for the stream's
/// life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamHandle {
    /// The slot.
    pub place: usize,
    /// The number.
    pub id: u32,
}

/// A DATA frame that is not complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialDataFrame {
    pub(crate) id: u32,
    /// The slot of its stream; `None` if the bytes are dropped.
    pub(crate) place: Option<usize>,
    /// Bytes of the frame still to come.
    pub(crate) left: usize,
    /// The part of `left` that is padding; `None` before its first byte.
    pub(crate) padding: Option<usize>,
    pub(crate) ends: bool,
}

/// A field block that is not complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartialFieldBlock {
    pub(crate) id: u32,
    pub(crate) ends: bool,
    pub(crate) continuations: u64,
}

/// The state of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReceiveStage {
    /// This many bytes of the preface were received.
    Preface(usize),
    /// The first frame must be SETTINGS.
    Settings,
    Frames,
}

/// The state of a graceful shutdown by this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    No,
    /// The first GOAWAY was sent; the acknowledgement of the PING behind it is awaited.
    Announced,
    /// The final GOAWAY was sent.
    Said,
}

/// A server's side of a connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) settings: Settings,
    pub(crate) scheme: Scheme,
    stage: ReceiveStage,
    /// A partial frame.
    held: Vec<u8>,
    pub(crate) incoming: Option<PartialDataFrame>,
    pub(crate) open: Option<PartialFieldBlock>,
    pub(crate) block: Vec<u8>,
    pub(crate) decoder: Decoder,
    pub(crate) collector: Collector,
    pub(crate) encoder: Encoder,
    pub(crate) streams: Streams,
    pub(crate) queues: Queues,
    /// The highest stream number of the client.
    pub(crate) last: u32,
    /// Priorities of streams that have not begun, the oldest first.
    pub(crate) early: Vec<(u32, Priority)>,
    pub(crate) receive_window: i64,
    /// Used bytes that were not returned to the client's window yet.
    pub(crate) used: u32,
    /// Buffered bytes of ended streams.
    pub(crate) unreturned: u32,
    pub(crate) send_window: i64,
    pub(crate) first_send_window: i64,
    pub(crate) resets: Budget,
    pub(crate) control: Budget,
    pub(crate) farewell: Farewell,
    pub(crate) client_leaves: bool,
    /// The start of the head that is being written.
    pub(crate) head_at: usize,
    /// The part of the connection's window that was not announced to the client yet.
    pub(crate) unannounced: u32,
}

impl Connection {
    /// The preface of a client (RFC 9113 3.4).
    pub const PREFACE: &[u8] = PREFACE;

    /// A connection whose client has sent nothing yet; appends this end's preface to `out`.
    pub fn new(
        settings: Settings,
        scheme: Scheme,
        seed: HashSeed,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Self {
        let connection = Self {
            settings,
            scheme,
            stage: ReceiveStage::Preface(0),
            held: Vec::new(),
            incoming: None,
            open: None,
            block: Vec::new(),
            decoder: Decoder::new(TABLE_BYTES),
            collector: Collector::default(),
            encoder: Encoder::new(seed),
            streams: Streams::new(),
            queues: Queues::default(),
            last: 0,
            early: Vec::new(),
            receive_window: i64::from(settings.connection_window),
            used: 0,
            unreturned: 0,
            send_window: i64::from(FIRST_WINDOW),
            first_send_window: i64::from(FIRST_WINDOW),
            resets: Budget::new(Limit::H2Resets, settings.resets, now_ms),
            control: Budget::new(Limit::H2ControlFrames, settings.control_frames, now_ms),
            farewell: Farewell::No,
            client_leaves: false,
            head_at: 0,
            unannounced: settings.connection_window.saturating_sub(FIRST_WINDOW),
        };
        connection.write_settings(out);
        connection
    }

    fn write_settings(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(30);
        for (name, value) in [
            (setting::MAX_CONCURRENT_STREAMS, self.settings.streams),
            (setting::INITIAL_WINDOW_SIZE, self.settings.stream_window),
            (setting::MAX_HEADER_LIST_SIZE, self.settings.list.list_bytes as u32),
            (setting::ENABLE_CONNECT_PROTOCOL, 1),
            (setting::NO_RFC7540_PRIORITIES, 1),
        ] {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frame::write(out, kind::SETTINGS, 0, 0, &payload);
    }

    /// Returns true if the client has sent its preface and its settings.
    pub fn is_greeted(&self) -> bool {
        self.stage == ReceiveStage::Frames
    }

    /// Returns true if no stream is open and no frame is partial.
    pub fn is_idle(&self) -> bool {
        self.streams.len() == 0 && self.held.is_empty() && self.open.is_none()
    }

    /// The number of open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns true if one side has announced the end, and every stream has ended.
    pub fn is_over(&self) -> bool {
        self.streams.len() == 0 && (self.client_leaves || self.farewell == Farewell::Said)
    }

    /// Parses `input` up to the next event; `None` if it is used up.
    ///
    /// `request` receives a request's head; `out` receives frames for the client, which must be
    /// sent before more is read.
    ///
    /// # Errors
    /// If the connection must end: [`Connection::end`] sends the reason to the client.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        request: &mut Request,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        loop {
            if let Some(event) = self.incoming(input, out, now_ms)? {
                return Ok(Some(event));
            }
            match self.incoming {
                Some(frame) if frame.left > 0 && input.is_empty() => return Ok(None),
                Some(_) => continue,
                None if input.is_empty() => return Ok(None),
                None => {}
            }
            if let ReceiveStage::Preface(_) = self.stage {
                self.preface(input)?;
                continue;
            }
            if let Some(event) = self.frame(input, request, out, now_ms)? {
                return Ok(Some(event));
            }
        }
    }

    fn preface(&mut self, input: &mut &[u8]) -> Result<(), ConnectionError> {
        let ReceiveStage::Preface(seen) = self.stage else { return Ok(()) };
        let due = &PREFACE[seen..];
        let come = due.len().min(input.len());
        if due[..come] != input[..come] {
            return Err(ConnectionError::protocol("not the preface of HTTP/2"));
        }
        *input = &input[come..];
        self.stage = match seen + come {
            all if all == PREFACE.len() => ReceiveStage::Settings,
            part => ReceiveStage::Preface(part),
        };
        Ok(())
    }

    /// Takes the next frame from `input`, or buffers a partial one.
    fn frame<'a>(
        &mut self,
        input: &mut &'a [u8],
        request: &mut Request,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        if self.held.is_empty()
            && let Some(bytes) = input.first_chunk()
        {
            let head = FrameHead::read(bytes);
            let rest = &input[HEAD_BYTES..];
            self.check(head)?;
            if head.kind == kind::DATA {
                *input = rest;
                self.data(head, out, now_ms)?;
                return Ok(None);
            }
            if let Some((payload, rest)) = rest.split_at_checked(head.length) {
                *input = rest;
                return self.whole(head, payload, request, out, now_ms);
            }
        }
        self.hold(input, HEAD_BYTES);
        let Some(bytes) = self.held.first_chunk() else { return Ok(None) };
        let head = FrameHead::read(bytes);
        self.check(head)?;
        if head.kind == kind::DATA {
            self.held.clear();
            self.data(head, out, now_ms)?;
            return Ok(None);
        }
        let whole = HEAD_BYTES + head.length;
        self.hold(input, whole);
        if self.held.len() < whole {
            return Ok(None);
        }
        let held = std::mem::take(&mut self.held);
        let event = self.whole(head, &held[HEAD_BYTES..], request, out, now_ms);
        payload::give_back(&mut self.held, held);
        event
    }

    /// Frees memory that an idle connection does not need.
    pub fn fit(&mut self) {
        self.streams.fit();
    }

    /// Buffered bytes of a partial frame or field block.
    pub fn kept(&self) -> usize {
        self.held.len() + self.block.len()
    }

    /// Moves bytes of `input` to the buffer, until it has `most`.
    fn hold(&mut self, input: &mut &[u8], most: usize) {
        let come = most.saturating_sub(self.held.len()).min(input.len());
        self.held.extend_from_slice(&input[..come]);
        *input = &input[come..];
    }

    /// Checks the head of a frame.
    fn check(&mut self, head: FrameHead) -> Result<(), ConnectionError> {
        head.check(self.open.map(|open| open.id))?;
        if self.stage == ReceiveStage::Settings {
            if head.kind != kind::SETTINGS || head.has(flag::ACK) {
                return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
            }
            self.stage = ReceiveStage::Frames;
        }
        Ok(())
    }

    fn whole<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        request: &mut Request,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        match head.kind {
            kind::HEADERS => return self.headers(head, payload, request, out, now_ms),
            kind::CONTINUATION => return self.continuation(head, payload, request, out, now_ms),
            kind::RST_STREAM => return self.reset_by_client(head, payload, out, now_ms),
            kind::WINDOW_UPDATE => return self.window_update(head, payload, out, now_ms),
            kind::SETTINGS => self.settings(head, payload, out, now_ms)?,
            kind::PING => self.ping(head, payload, out, now_ms)?,
            kind::GOAWAY => self.goaway(head, payload)?,
            kind::PRIORITY => self.priority(head, payload, now_ms)?,
            kind::PRIORITY_UPDATE => self.priority_update(head, payload, now_ms)?,
            kind::PUSH_PROMISE => {
                return Err(ConnectionError::protocol("PUSH_PROMISE from a client"));
            }
            _ => self.control.spend(now_ms, "too many frames of unknown types")?,
        }
        Ok(None)
    }
}
