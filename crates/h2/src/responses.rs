//! Responses: their heads, and the schedule of their bodies' bytes. No byte may exceed a client's
//! window.

use message::{HeaderId, Trailers};

use crate::budget::EARNED;
use crate::connection::{Connection, Farewell, StreamHandle};
use crate::encode::EncodedFields;
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, HEAD_BYTES, PAYLOAD_BYTES, flag, kind};
use crate::streams::{EarlyResponse, Priority, Stream, StreamEnding};

/// The next bytes of a stream's body to send, after the head of their frame, which is written
/// already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The stream.
    pub stream: StreamHandle,
    /// The number of bytes.
    pub bytes: usize,
    /// True if they complete the response, except for announced trailers.
    pub ends: bool,
}

impl Connection {
    /// Returns true if a stream can still be answered.
    pub fn has(&self, at: StreamHandle) -> bool {
        self.streams.of(at).is_some()
    }

    /// Begins the head of a response or an interim response. Nothing else may be written until
    /// [`Connection::end_head`].
    pub fn begin_head(&mut self, status: u16, out: &mut Vec<u8>) {
        self.head_at = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        self.encoder.begin(status, out);
    }

    /// Appends the fields of an encoded block to the head.
    pub fn block(&mut self, block: &EncodedFields, out: &mut Vec<u8>) {
        self.encoder.block(block, out);
    }

    /// Appends a field to the head.
    pub fn field(&mut self, id: HeaderId, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        self.encoder.field(id, name, value, out);
    }

    /// Ends a head. `ends` is true if there is no body; the stream has then ended on this side.
    pub fn end_head(&mut self, at: StreamHandle, ends: bool, out: &mut Vec<u8>) {
        close_head(at.id, self.head_at, ends, out);
        if ends {
            self.sent_all(at, out);
        }
    }

    /// Adds `more` bytes to those of a response's body that can be sent; with `ends`, they are the
    /// last.
    pub fn offer(&mut self, at: StreamHandle, more: u64, ends: bool) {
        let Some(stream) = self.streams.of_mut(at) else { return };
        stream.offered += more;
        stream.ends |= ends;
        stream.made &= !ends;
        self.requeue(at.place);
    }

    /// Declares that bytes of a response's body are produced when the client's windows permit them
    /// ([`Connection::is_open_to`]), until [`Connection::offer`] ends the body.
    pub fn makes(&mut self, at: StreamHandle) {
        if let Some(stream) = self.streams.of_mut(at) {
            stream.made = true;
        }
    }

    /// Returns true if the client's windows permit bytes of a stream.
    pub fn is_open_to(&self, at: StreamHandle) -> bool {
        let is_open = |stream: &Stream| stream.send_window > 0 && self.send_window > 0;
        self.streams.of(at).is_some_and(is_open)
    }

    /// Bytes that the connection's window permits.
    pub fn send_room(&self) -> usize {
        usize::try_from(self.send_window).unwrap_or(0)
    }

    /// Declares that only trailers follow the offered bytes: [`Connection::trailers`] writes them
    /// after the grant that ends the body.
    pub fn offer_trailers(&mut self, at: StreamHandle) {
        if self.has(at) {
            self.streams.get_mut(at.place).trailed = true;
            self.offer(at, 0, true);
        }
    }

    /// Writes a response's trailers, which end the stream on this side.
    pub fn trailers(&mut self, at: StreamHandle, trailers: &Trailers, out: &mut Vec<u8>) {
        self.head_at = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        self.encoder.begin_trailers(out);
        for field in trailers.iter() {
            self.encoder.field(field.id, field.name, field.value, out);
        }
        self.end_head(at, true, out);
    }

    /// The most bytes of a body in one frame.
    pub const FRAME_BYTES: usize = PAYLOAD_BYTES;

    /// Takes window for the whole body of a response, unless another stream waits for some. The
    /// caller must write the body at once, in frames of [`Connection::data_head`], and then call
    /// [`Connection::sent_all`].
    pub fn take(&mut self, at: StreamHandle, bytes: usize) -> bool {
        let Some(stream) = self.streams.of_mut(at) else { return false };
        let window = bytes as i64;
        let may =
            self.queues.is_empty() && stream.send_window >= window && self.send_window >= window;
        if may {
            stream.send_window -= window;
            self.send_window -= window;
        }
        may
    }

    /// Appends the head of a DATA frame.
    pub fn data_head(&self, at: StreamHandle, bytes: usize, ends: bool, out: &mut Vec<u8>) {
        let flags = if ends { flag::END_STREAM } else { 0 };
        FrameHead { length: bytes, kind: kind::DATA, flags, stream: at.id }.write(out);
    }

    /// Returns the next bytes to send, at most `most`; the head of their frame is appended to
    /// `out`. `None` if there are none, or the client's windows permit none.
    pub fn grant(&mut self, most: usize, out: &mut Vec<u8>) -> Option<Grant> {
        loop {
            let place = self.queues.first()?;
            let stream = self.streams.get_mut(place);
            let room = stream.send_window.min(self.send_window).max(0) as u64;
            let bytes = stream.offered.min(room).min(PAYLOAD_BYTES.min(most) as u64) as usize;
            let ends = stream.ends && bytes as u64 == stream.offered;
            if bytes == 0 && !ends {
                if stream.offered > 0 && stream.send_window > 0 {
                    // The connection's window is closed, or this round is full.
                    return self.grant_end(out);
                }
                stream.queued = false;
                self.queues.pop();
                continue;
            }
            stream.offered -= bytes as u64;
            stream.send_window -= bytes as i64;
            self.send_window -= bytes as i64;
            let (turns, urgency) = (stream.priority.incremental, stream.priority.urgency);
            let at = StreamHandle { place, id: stream.id };
            self.control.earn(EARNED);
            if stream.offered == 0 || turns {
                stream.queued = stream.offered > 0;
                let again = stream.queued;
                self.queues.pop();
                if again {
                    self.queues.push(urgency, place);
                }
            }
            return Some(self.granted(at, bytes, ends, out));
        }
    }

    /// An end without bytes needs no window, so it does not wait for streams that need some.
    fn grant_end(&mut self, out: &mut Vec<u8>) -> Option<Grant> {
        let place = self.streams.places().find(|place| {
            let stream = self.streams.get(*place);
            stream.queued && stream.ends && stream.offered == 0
        })?;
        let stream = self.streams.get_mut(place);
        stream.queued = false;
        let (urgency, id) = (stream.priority.urgency, stream.id);
        self.queues.remove(urgency, place);
        Some(self.granted(StreamHandle { place, id }, 0, true, out))
    }

    fn granted(&self, at: StreamHandle, bytes: usize, ends: bool, out: &mut Vec<u8>) -> Grant {
        let trailed = ends && self.streams.get(at.place).trailed;
        if bytes > 0 || !trailed {
            self.data_head(at, bytes, ends && !trailed, out);
        }
        Grant { stream: at, bytes, ends }
    }

    /// Declares that all bytes of a grant with `ends` were written: the stream has ended. If the
    /// request has not, the client is asked to stop (RFC 9113 8.1) after it has read the response,
    /// which a PING shows: some clients report a failure for an RST_STREAM received with a response
    /// (curl before 8.0). Until then the request's bytes are dropped, and its window is not
    /// extended.
    pub fn sent_all(&mut self, at: StreamHandle, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.of_mut(at) else { return };
        if stream.receives {
            (stream.takes, stream.due) = (false, None);
            (stream.offered, stream.made, stream.ends) = (0, false, false);
            self.unreturned += std::mem::take(&mut stream.held);
            stream.early_response = Some(EarlyResponse::default());
            frame::write(out, kind::PING, 0, 0, &ping_data(at.id));
        } else {
            self.forget(at, StreamEnding::Ended);
        }
        self.give_back(out);
    }

    /// Handles an acknowledged PING: true if it was that of a completed response, whose client is
    /// now asked to end its request.
    pub(crate) fn was_read(&mut self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let over = |place: &usize| {
            let stream = self.streams.get(*place);
            stream.early_response.is_some() && ping_data(stream.id) == payload
        };
        let Some(place) = self.streams.places().find(over) else { return false };
        self.ask_to_end(place, out);
        true
    }

    /// Asks clients to end requests whose responses they have not acknowledged within `wait_ms`;
    /// returns their number. Must be called regularly.
    pub fn nudge_ends(&mut self, now_ms: u64, wait_ms: u64, out: &mut Vec<u8>) -> usize {
        let mut tired = Vec::new();
        for place in self.streams.places().collect::<Vec<_>>() {
            let Some(early) = &mut self.streams.get_mut(place).early_response else { continue };
            let seen_ms = *early.seen_ms.get_or_insert(now_ms);
            if now_ms.saturating_sub(seen_ms) >= wait_ms {
                tired.push(place);
            }
        }
        tired.iter().for_each(|place| self.ask_to_end(*place, out));
        tired.len()
    }

    fn ask_to_end(&mut self, place: usize, out: &mut Vec<u8>) {
        let id = self.streams.id_at(place);
        Self::write_reset(id, Code::None, out);
        self.forget(StreamHandle { place, id }, StreamEnding::Reset);
        self.give_back(out);
    }

    /// Resets a stream.
    pub fn reset(&mut self, at: StreamHandle, code: Code, out: &mut Vec<u8>) {
        if self.has(at) {
            Self::write_reset(at.id, code, out);
            self.forget(at, StreamEnding::Reset);
        }
        self.give_back(out);
    }

    pub(crate) fn write_reset(id: u32, code: Code, out: &mut Vec<u8>) {
        frame::write(out, kind::RST_STREAM, 0, id, &(code as u32).to_be_bytes());
    }

    /// Frees a stream's slot. Its buffered bytes count as used.
    pub(crate) fn forget(&mut self, at: StreamHandle, ending: StreamEnding) {
        let stream = self.streams.get_mut(at.place);
        if std::mem::take(&mut stream.queued) {
            self.queues.remove(stream.priority.urgency, at.place);
        }
        self.unreturned += stream.held;
        if let Some(frame) = &mut self.incoming
            && frame.place == Some(at.place)
        {
            frame.place = None;
            // Padding was returned when its length was known.
            self.unreturned += (frame.left - frame.padding.unwrap_or(0)) as u32;
        }
        self.streams.close(at.place, ending);
    }

    /// Returns the window of ended streams to the client.
    pub(crate) fn give_back(&mut self, out: &mut Vec<u8>) {
        let unreturned = std::mem::take(&mut self.unreturned);
        if unreturned > 0 {
            self.used_in_all(unreturned as usize, out);
        }
    }

    /// Adds a stream to its queue if it has bytes that the windows permit.
    pub(crate) fn requeue(&mut self, place: usize) {
        let stream = self.streams.get_mut(place);
        let may = stream.offered > 0 && stream.send_window > 0;
        if stream.early_response.is_some()
            || stream.queued
            || !(may || stream.ends && stream.offered == 0)
        {
            return;
        }
        stream.queued = true;
        self.queues.push(stream.priority.urgency, place);
    }

    pub(crate) fn requeue_all(&mut self) {
        let places: Vec<usize> = self.streams.places().collect();
        for place in places {
            self.requeue(place);
        }
    }

    /// Applies a new priority from the client.
    pub(crate) fn prefer(&mut self, place: usize, requested: Priority) {
        let stream = self.streams.get_mut(place);
        let before = std::mem::replace(&mut stream.priority, requested);
        if stream.queued && before.urgency != requested.urgency {
            self.queues.remove(before.urgency, place);
            self.queues.push(requested.urgency, place);
        }
    }

    /// Returns true if bytes could be sent now.
    pub fn has_turn(&self) -> bool {
        self.queues.first().is_some_and(|place| {
            let stream = self.streams.get(place);
            stream.offered == 0 || self.send_window > 0
        })
    }

    /// Returns true if bytes of a stream wait only for the client's windows.
    pub fn is_held_back(&self, at: StreamHandle) -> bool {
        self.streams.of(at).is_some_and(|stream| {
            stream.waits() && (stream.send_window <= 0 || self.send_window <= 0)
        })
    }

    /// Returns true if bytes of a stream wait for its own window.
    pub fn is_shut_to(&self, at: StreamHandle) -> bool {
        self.streams.of(at).is_some_and(|stream| stream.waits() && stream.send_window <= 0)
    }

    /// Returns true if bytes of any stream wait for the connection's window.
    pub fn is_shut(&self) -> bool {
        self.send_window <= 0 && self.streams.places().any(|place| self.streams.get(place).waits())
    }

    /// Announces the end of the connection by a first GOAWAY; true if this was not done before. The
    /// last stream is named when the client has acknowledged the PING behind it (RFC 9113 6.8).
    pub fn announce_end(&mut self, out: &mut Vec<u8>) -> bool {
        if self.farewell != Farewell::No {
            return false;
        }
        self.farewell = Farewell::Announced;
        goaway(out, 0x7fff_ffff, Code::None);
        frame::write(out, kind::PING, 0, 0, &Self::LEAVING);
        true
    }

    /// Returns true if [`Connection::announce_end`] was called, and the last stream was not named
    /// yet.
    pub fn is_leaving(&self) -> bool {
        self.farewell == Farewell::Announced
    }

    /// Sends the final GOAWAY, which names the last stream.
    pub fn write_last_goaway(&mut self, out: &mut Vec<u8>) {
        if self.farewell != Farewell::Said {
            self.farewell = Farewell::Said;
            goaway(out, self.last, Code::None);
        }
    }

    /// Sends a GOAWAY with the reason for the immediate end.
    pub fn end(&mut self, fatal: &ConnectionError, out: &mut Vec<u8>) {
        self.farewell = Farewell::Said;
        goaway(out, self.last, fatal.code);
    }
}

/// The data of the PING after a completed response.
fn ping_data(stream: u32) -> [u8; 8] {
    let mut mark = *b"over....";
    mark[4..].copy_from_slice(&stream.to_be_bytes());
    mark
}

/// Writes the frame's head of a field block that ends `out` and begins at `at`, where space was
/// left for it.
pub(crate) fn close_head(stream: u32, at: usize, ends: bool, out: &mut Vec<u8>) {
    let from = at + HEAD_BYTES;
    let length = out.len() - from;
    let end_stream = if ends { flag::END_STREAM } else { 0 };
    let (first, flags) = match length > PAYLOAD_BYTES {
        true => (PAYLOAD_BYTES, end_stream),
        false => (length, end_stream | flag::END_HEADERS),
    };
    let head = FrameHead { length: first, kind: kind::HEADERS, flags, stream };
    out[at..from].copy_from_slice(&head.bytes());
    if length > PAYLOAD_BYTES {
        continue_head(stream, from + PAYLOAD_BYTES, out);
    }
}

/// Splits the part of a head beyond its first frame, which begins at `at`, into CONTINUATION
/// frames.
fn continue_head(stream: u32, at: usize, out: &mut Vec<u8>) {
    let rest = out.split_off(at);
    let mut pieces = rest.chunks(PAYLOAD_BYTES).peekable();
    while let Some(piece) = pieces.next() {
        let flags = if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        frame::write(out, kind::CONTINUATION, flags, stream, piece);
    }
}

pub(crate) fn goaway(out: &mut Vec<u8>, last: u32, code: Code) {
    FrameHead { length: 8, kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&(code as u32).to_be_bytes());
}
