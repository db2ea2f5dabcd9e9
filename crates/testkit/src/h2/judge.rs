//! The judge of a server's frames by RFC 9113: the first violation is a [`ProtocolFault`]. It also
//! records what the server sent.
//!
//! It reads both directions, but does not judge the client's frames, which may be invalid on
//! purpose; from them it learns the open streams and their windows. It never touches a socket.

use std::collections::{BTreeMap, VecDeque};

use loona_hpack::Decoder;

use super::frames::{Frame, PAYLOAD_BYTES, PREFACE, flag, kind, setting};

mod answers;
mod fault;
#[cfg(test)]
mod tests;

pub use answers::Exchange;
pub use fault::ProtocolFault;

/// The initial window (RFC 9113 6.9.2).
const WINDOW: i64 = 65_535;
/// Initial size of a decoder's table (RFC 7541, RFC 9113 6.5.2).
const TABLE_BYTES: u32 = 4_096;

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFrame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream.
    pub stream: u32,
    /// Bytes of the payload.
    pub length: usize,
}

/// Limits that the client has set for the server.
#[derive(Debug, Default)]
struct Allowed {
    window: i64,
    frame_bytes: usize,
    table_bytes: u32,
}

/// A field block whose last frame is missing.
#[derive(Debug)]
struct UnfinishedReply {
    stream: u32,
    block: Vec<u8>,
    end: bool,
}

/// The judge of both directions of one connection.
pub struct Judge {
    decoder: Decoder<'static>,
    /// Bytes sent that are not a whole frame yet; `None` once they are not HTTP/2.
    outgoing: Option<Vec<u8>>,
    greeted: bool,
    allowed: Allowed,
    /// SETTINGS sent and not acknowledged yet.
    pending: VecDeque<Vec<(u16, u32)>>,
    /// The largest values among these, which may be in force before they are acknowledged.
    promised: Allowed,
    /// True if the next block must begin with a change of the table's size.
    shrunk: bool,
    window: i64,
    unfinished: Option<UnfinishedReply>,
    exchanges: BTreeMap<u32, Exchange>,
    pings: Vec<[u8; 8]>,
    /// Remaining connection window for the client's DATA.
    sending: i64,
    theirs: BTreeMap<u16, u32>,
    goaways: Vec<(u32, u32)>,
    seen: Vec<SeenFrame>,
}

impl Default for Judge {
    fn default() -> Self {
        Self {
            decoder: Decoder::new(),
            outgoing: Some(Vec::new()),
            greeted: false,
            allowed: Allowed {
                window: WINDOW,
                frame_bytes: PAYLOAD_BYTES,
                table_bytes: TABLE_BYTES,
            },
            pending: VecDeque::new(),
            promised: Allowed::default(),
            shrunk: false,
            window: WINDOW,
            unfinished: None,
            exchanges: BTreeMap::new(),
            pings: Vec::new(),
            sending: WINDOW,
            theirs: BTreeMap::new(),
            goaways: Vec::new(),
            seen: Vec::new(),
        }
    }
}

impl Judge {
    /// Makes a judge of a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// All received frames.
    pub fn seen(&self) -> &[SeenFrame] {
        &self.seen
    }

    /// Number of received frames of `kind`.
    pub fn count(&self, kind: u8) -> usize {
        self.seen.iter().filter(|seen| seen.kind == kind).count()
    }

    /// The exchange on `stream`, if the client opened it.
    pub fn exchange(&self, stream: u32) -> Option<&Exchange> {
        self.exchanges.get(&stream)
    }

    /// All received GOAWAYs: last stream and error code.
    pub fn goaways(&self) -> &[(u32, u32)] {
        &self.goaways
    }

    /// The server's value of a setting, if it sent one.
    pub fn setting(&self, id: u16) -> Option<u32> {
        self.theirs.get(&id).copied()
    }

    /// Returns true if the server has acknowledged all SETTINGS.
    pub fn settings_acknowledged(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if a PING with `data` is not answered yet.
    pub fn awaits_ping(&self, data: [u8; 8]) -> bool {
        self.pings.contains(&data)
    }

    /// Bytes of DATA that the server's windows permit on `stream` now; negative if a setting has
    /// shrunk the window below what was used.
    pub fn may_send(&self, stream: u32) -> i64 {
        let stream = self
            .exchanges
            .get(&stream)
            .map_or(0, |exchange| exchange.sending + i64::from(self.their_window()));
        stream.min(self.sending)
    }

    /// The largest payload that the server accepts.
    pub fn may_send_at_once(&self) -> usize {
        self.setting(setting::MAX_FRAME_SIZE).map_or(PAYLOAD_BYTES, |bytes| bytes as usize)
    }

    fn their_window(&self) -> u32 {
        self.setting(setting::INITIAL_WINDOW_SIZE).unwrap_or(WINDOW as u32)
    }

    /// Records bytes that the client sends, however they are divided.
    pub fn sent(&mut self, bytes: &[u8]) {
        let Some(mut outgoing) = self.outgoing.take() else { return };
        outgoing.extend_from_slice(bytes);
        let mut at = 0;
        if !self.greeted {
            if !outgoing.starts_with(PREFACE) {
                // Bytes without the preface are not HTTP/2; a part of it may become one.
                self.outgoing = PREFACE.starts_with(&outgoing).then_some(outgoing);
                return;
            }
            self.greeted = true;
            at = PREFACE.len();
        }
        while let Some((frame, used)) = Frame::read(&outgoing[at..]) {
            self.sent_frame(&frame);
            at += used;
        }
        outgoing.drain(..at);
        self.outgoing = Some(outgoing);
    }

    fn sent_frame(&mut self, frame: &Frame) {
        match frame.kind {
            kind::HEADERS => {
                let head_only = find(&frame.payload, b"\x07:method\x04HEAD");
                self.exchanges.entry(frame.stream).or_insert_with(|| Exchange::new(head_only));
            }
            kind::DATA => {
                let length = frame.payload.len() as i64;
                self.sending -= length;
                if let Some(exchange) = self.exchanges.get_mut(&frame.stream) {
                    exchange.sending -= length;
                }
            }
            kind::SETTINGS if !frame.has(flag::ACK) => {
                // Equal neighbours count once: floods have hundreds of them.
                let mut settings = pairs(frame);
                settings.dedup();
                self.promise(&settings);
                self.pending.push_back(settings);
            }
            kind::PING if !frame.has(flag::ACK) => {
                self.pings.extend(<[u8; 8]>::try_from(frame.payload.as_slice()));
            }
            kind::WINDOW_UPDATE => {
                let increment = i64::from(frame.number(0).unwrap_or_default() & 0x7fff_ffff);
                if frame.stream == 0 {
                    self.window += increment;
                } else if let Some(exchange) = self.exchanges.get_mut(&frame.stream) {
                    exchange.window += increment;
                }
            }
            _ => {}
        }
    }

    /// Judges a frame of the server.
    ///
    /// # Errors
    /// Any violation, also those that a tolerant client would ignore.
    pub fn received(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        let Frame { kind: what, flags, stream, .. } = *frame;
        let length = frame.payload.len();
        if self.seen.is_empty() && (what != kind::SETTINGS || frame.has(flag::ACK)) {
            return Err(ProtocolFault::FirstFrame(what));
        }
        self.seen.push(SeenFrame { kind: what, flags, stream, length });
        if length > self.frame_bytes() {
            return Err(ProtocolFault::FrameBytes(length));
        }
        let within = self.unfinished.as_ref().map(|unfinished| unfinished.stream);
        if within.is_some_and(|own| what != kind::CONTINUATION || own != stream) {
            return Err(ProtocolFault::Interrupted(what));
        }
        let of_connection = matches!(what, kind::SETTINGS | kind::PING | kind::GOAWAY);
        let of_stream = matches!(
            what,
            kind::DATA | kind::HEADERS | kind::RST_STREAM | kind::CONTINUATION | kind::PRIORITY
        );
        if (of_connection && stream != 0) || (of_stream && stream == 0) {
            return Err(ProtocolFault::Stream { kind: what, stream });
        }
        match what {
            kind::DATA => self.data(frame),
            kind::HEADERS | kind::CONTINUATION => self.headers(frame),
            kind::RST_STREAM => self.reset(frame),
            kind::SETTINGS => self.settings(frame),
            kind::PING => self.ping(frame),
            kind::GOAWAY => self.goaway(frame),
            kind::WINDOW_UPDATE => self.window_update(frame),
            kind::PUSH_PROMISE => Err(ProtocolFault::Push),
            _ => Ok(()),
        }
    }

    /// The largest permitted frame.
    fn frame_bytes(&self) -> usize {
        self.allowed.frame_bytes.max(self.promised.frame_bytes)
    }

    /// Bytes by which stream windows may exceed the acknowledged settings.
    fn allowance(&self) -> i64 {
        (self.promised.window - self.allowed.window).max(0)
    }

    /// Records settings that the server has not acknowledged yet.
    fn promise(&mut self, settings: &[(u16, u32)]) {
        for (id, value) in settings {
            match *id {
                setting::INITIAL_WINDOW_SIZE => {
                    self.promised.window = self.promised.window.max(i64::from(*value));
                }
                setting::MAX_FRAME_SIZE => {
                    self.promised.frame_bytes = self.promised.frame_bytes.max(*value as usize);
                }
                _ => {}
            }
        }
    }

    fn data(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        let body = unpadded(frame)?;
        let (stream, length) = (frame.stream, frame.payload.len() as i64);
        let (allowance, initial) = (self.allowance(), self.allowed.window);
        let exchange = open(&mut self.exchanges, frame)?;
        self.window -= length;
        exchange.window -= length;
        if length > 0 && self.window < 0 {
            return Err(ProtocolFault::ConnectionWindow(-self.window));
        }
        let left = exchange.window + initial + allowance;
        if length > 0 && left < 0 {
            return Err(ProtocolFault::StreamWindow { stream, by: -left });
        }
        exchange.data(body, frame.has(flag::END_STREAM))
    }

    fn headers(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        let mut unfinished = match self.unfinished.take() {
            Some(mut unfinished) => {
                unfinished.block.extend_from_slice(&frame.payload);
                unfinished
            }
            None if frame.kind == kind::CONTINUATION => {
                return Err(ProtocolFault::LoneContinuation);
            }
            None => {
                let block = unpadded(frame)?;
                let skipped = if frame.has(flag::PRIORITY) { 5 } else { 0 };
                let block =
                    block.get(skipped..).ok_or(ProtocolFault::Length { kind: kind::HEADERS })?;
                let (block, end) = (block.to_vec(), frame.has(flag::END_STREAM));
                UnfinishedReply { stream: frame.stream, block, end }
            }
        };
        if !frame.has(flag::END_HEADERS) {
            self.unfinished = Some(unfinished);
            return Ok(());
        }
        let block = std::mem::take(&mut unfinished.block);
        if std::mem::take(&mut self.shrunk) && block.first().is_none_or(|b| b & 0xe0 != 0x20) {
            return Err(ProtocolFault::TableSize);
        }
        let fields = self.decoder.decode(&block);
        let fields = fields.map_err(|error| ProtocolFault::Compression(error.to_string()))?;
        let exchange = open(&mut self.exchanges, frame)?;
        exchange.block(fields, block.len(), unfinished.end)
    }

    fn reset(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        let code = exactly(frame, 4)?.number(0).unwrap_or_default();
        let (what, stream) = (frame.kind, frame.stream);
        let exchange =
            self.exchanges.get_mut(&stream).ok_or(ProtocolFault::Idle { kind: what, stream })?;
        match exchange.reset.replace(code) {
            Some(_) => Err(ProtocolFault::AfterEnd { kind: what, stream }),
            None => Ok(()),
        }
    }

    fn settings(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        if frame.has(flag::ACK) {
            exactly(frame, 0)?;
            let settings = self.pending.pop_front().ok_or(ProtocolFault::UnaskedAck)?;
            self.in_force(&settings);
            self.promised = Allowed::default();
            let pending = std::mem::take(&mut self.pending);
            pending.iter().for_each(|settings| self.promise(settings));
            self.pending = pending;
            return Ok(());
        }
        if !frame.payload.len().is_multiple_of(6) {
            return Err(ProtocolFault::Length { kind: kind::SETTINGS });
        }
        for (id, value) in pairs(frame) {
            let wrong = match id {
                setting::ENABLE_PUSH => value != 0,
                setting::INITIAL_WINDOW_SIZE => value > 0x7fff_ffff,
                setting::MAX_FRAME_SIZE => !(16_384..=16_777_215).contains(&value),
                setting::ENABLE_CONNECT_PROTOCOL | setting::NO_RFC7540_PRIORITIES => value > 1,
                _ => false,
            };
            if wrong {
                return Err(ProtocolFault::Setting { id, value });
            }
            self.theirs.insert(id, value);
        }
        Ok(())
    }

    fn in_force(&mut self, settings: &[(u16, u32)]) {
        for (id, value) in settings {
            match *id {
                setting::INITIAL_WINDOW_SIZE => self.allowed.window = i64::from(*value),
                setting::MAX_FRAME_SIZE => self.allowed.frame_bytes = *value as usize,
                setting::HEADER_TABLE_SIZE => {
                    self.shrunk |= *value < self.allowed.table_bytes.min(TABLE_BYTES);
                    self.allowed.table_bytes = *value;
                    self.decoder.set_max_allowed_table_size(*value as usize);
                }
                _ => {}
            }
        }
    }

    fn ping(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        exactly(frame, 8)?;
        if !frame.has(flag::ACK) {
            return Ok(());
        }
        let place = self.pings.iter().position(|data| data[..] == frame.payload);
        self.pings.remove(place.ok_or(ProtocolFault::UnaskedAck)?);
        Ok(())
    }

    fn goaway(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        let (last, code) = frame
            .number(0)
            .zip(frame.number(4))
            .ok_or(ProtocolFault::Length { kind: kind::GOAWAY })?;
        let raised = self.goaways.last().is_some_and(|(before, _)| last > *before);
        self.goaways.push((last, code));
        if raised { Err(ProtocolFault::RaisedLastStream(last)) } else { Ok(()) }
    }

    fn window_update(&mut self, frame: &Frame) -> Result<(), ProtocolFault> {
        let increment = exactly(frame, 4)?.number(0).unwrap_or_default() & 0x7fff_ffff;
        let (what, stream) = (frame.kind, frame.stream);
        if increment == 0 {
            return Err(ProtocolFault::WindowIncrement);
        }
        let window = if stream == 0 {
            self.sending += i64::from(increment);
            self.sending
        } else {
            let initial = i64::from(self.their_window());
            let exchange = self.exchanges.get_mut(&stream);
            let exchange = exchange.ok_or(ProtocolFault::Idle { kind: what, stream })?;
            exchange.sending += i64::from(increment);
            exchange.sending + initial
        };
        if window > 0x7fff_ffff { Err(ProtocolFault::WindowIncrement) } else { Ok(()) }
    }
}

/// The exchange that a response's frame belongs to.
fn open<'a>(
    exchanges: &'a mut BTreeMap<u32, Exchange>,
    frame: &Frame,
) -> Result<&'a mut Exchange, ProtocolFault> {
    let (what, stream) = (frame.kind, frame.stream);
    let exchange = exchanges.get_mut(&stream).ok_or(ProtocolFault::Idle { kind: what, stream })?;
    if exchange.whole || exchange.reset.is_some() {
        return Err(ProtocolFault::AfterEnd { kind: what, stream });
    }
    Ok(exchange)
}

/// The payload without its padding (RFC 9113 6.1).
fn unpadded(frame: &Frame) -> Result<&[u8], ProtocolFault> {
    if !frame.has(flag::PADDED) {
        return Ok(&frame.payload);
    }
    let padded = frame.payload.split_first().and_then(|(padding, rest)| {
        rest.len().checked_sub(usize::from(*padding)).map(|end| &rest[..end])
    });
    padded.ok_or(ProtocolFault::Padding)
}

fn exactly(frame: &Frame, length: usize) -> Result<&Frame, ProtocolFault> {
    let right = frame.payload.len() == length;
    if right { Ok(frame) } else { Err(ProtocolFault::Length { kind: frame.kind }) }
}

/// Identifiers and values of SETTINGS.
fn pairs(frame: &Frame) -> Vec<(u16, u32)> {
    let read = |six: &[u8; 6]| {
        let [a, b, value @ ..] = *six;
        (u16::from_be_bytes([a, b]), u32::from_be_bytes(value))
    };
    frame.payload.as_chunks().0.iter().map(read).collect()
}

fn find(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
