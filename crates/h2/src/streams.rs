//! Streams of a connection that are open, and the endings of recent ones.

use crate::connection::StreamHandle;

/// The largest window (RFC 9113 6.9.1).
pub(crate) const WINDOW_MAX: i64 = 0x7fff_ffff;

/// The priority that a client gives a response (RFC 9218 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub(crate) urgency: u8,
    /// True if the response can be used in parts, and shares bandwidth with others.
    pub(crate) incremental: bool,
}

impl Priority {
    /// The priority of a request without one: default urgency, and incremental, since the client
    /// has not given an order.
    pub(crate) const DEFAULT: Self = Self { urgency: 3, incremental: true };
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The stream's number; 0 if the slot is free.
    pub(crate) id: u32,
    /// The client may send more on it.
    pub(crate) receives: bool,
    /// True if received bytes are still needed.
    pub(crate) takes: bool,
    /// Bytes of Content-Length that are still to come.
    pub(crate) due: Option<u64>,
    /// Bytes that the client may still send.
    pub(crate) receive_window: i64,
    /// Bytes received and not yet used.
    pub(crate) held: u32,
    /// Used bytes that were not returned to the window yet.
    pub(crate) used: u32,
    /// Bytes that may still be sent.
    pub(crate) send_window: i64,
    /// Bytes that are ready to be sent.
    pub(crate) offered: u64,
    /// More bytes are produced when the client's windows permit them.
    pub(crate) made: bool,
    /// The offered bytes are the last, except for trailers.
    pub(crate) ends: bool,
    /// Trailers follow, which end the stream.
    pub(crate) trailed: bool,
    /// The stream is in a queue.
    pub(crate) queued: bool,
    /// The response is complete, and the client has not ended its request.
    pub(crate) early_response: Option<EarlyResponse>,
    pub(crate) priority: Priority,
}

/// A response that was completed before its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EarlyResponse {
    /// The time of the first check.
    pub(crate) seen_ms: Option<u64>,
}

impl Stream {
    /// Returns true if bytes wait for the client's windows, produced or not.
    pub(crate) fn waits(&self) -> bool {
        self.offered > 0 || self.made
    }
}

/// The way in which a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnding {
    /// Both sides have ended it, or the client has reset it.
    Ended,
    /// This end has reset it: frames may have been in flight.
    Reset,
}

/// Slots that an idle connection keeps: browsers seldom use more.
const KEPT: usize = 32;

/// The number of ended streams that are remembered.
const REMEMBERED: usize = 128;

/// All streams. A stream keeps its slot for its life.
#[derive(Debug)]
pub(crate) struct Streams {
    ids: Vec<u32>,
    streams: Vec<Stream>,
    free: Vec<u16>,
    open: usize,
    /// The last ended streams, in a ring.
    ended: Vec<(u32, StreamEnding)>,
    oldest: usize,
}

impl Streams {
    /// The number of slots.
    #[cfg(test)]
    pub(crate) fn places_kept(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn new() -> Self {
        let ended = Vec::new();
        Self { ids: Vec::new(), streams: Vec::new(), free: Vec::new(), open: 0, ended, oldest: 0 }
    }

    /// Frees memory left over from many concurrent streams, if none is open.
    pub(crate) fn fit(&mut self) {
        if self.open == 0 && self.ids.len() > KEPT {
            *self =
                Self { ended: std::mem::take(&mut self.ended), oldest: self.oldest, ..Self::new() };
        }
    }

    /// The number of open streams.
    pub(crate) fn len(&self) -> usize {
        self.open
    }

    /// The slot of the stream `id`.
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|own| *own == id)
    }

    /// The number of the stream in a slot; 0 if it is free.
    pub(crate) fn id_at(&self, place: usize) -> u32 {
        self.ids.get(place).copied().unwrap_or(0)
    }

    /// A stream, if it can still be answered; its slot may have been freed.
    pub(crate) fn of(&self, at: StreamHandle) -> Option<&Stream> {
        let stream = self.streams.get(at.place);
        stream.filter(|stream| stream.id == at.id && stream.early_response.is_none())
    }

    /// A mutable stream, if it can still be answered.
    pub(crate) fn of_mut(&mut self, at: StreamHandle) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(at.place);
        stream.filter(|stream| stream.id == at.id && stream.early_response.is_none())
    }

    pub(crate) fn get(&self, at: usize) -> &Stream {
        &self.streams[at]
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> &mut Stream {
        &mut self.streams[at]
    }

    /// Adds a stream and returns its slot.
    pub(crate) fn open(&mut self, stream: Stream) -> usize {
        self.open += 1;
        if let Some(at) = self.free.pop() {
            let at = usize::from(at);
            self.ids[at] = stream.id;
            self.streams[at] = stream;
            return at;
        }
        self.ids.push(stream.id);
        self.streams.push(stream);
        self.ids.len() - 1
    }

    /// Ends the stream at `at`, and remembers how.
    pub(crate) fn close(&mut self, at: usize, ending: StreamEnding) {
        let id = std::mem::take(&mut self.ids[at]);
        self.streams[at].id = 0;
        // There are never more slots than the setting of streams, which fits 16 bits.
        self.free.push(at as u16);
        self.open -= 1;
        self.remember(id, ending);
    }

    /// Remembers an ended stream, which may never have had a slot.
    pub(crate) fn remember(&mut self, id: u32, ending: StreamEnding) {
        if self.ended.len() < REMEMBERED {
            self.ended.push((id, ending));
        } else {
            self.ended[self.oldest] = (id, ending);
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
    }

    /// The way in which a stream ended, if it is remembered.
    pub(crate) fn ending_of(&self, id: u32) -> Option<StreamEnding> {
        self.ended.iter().find(|(own, _)| *own == id).map(|(_, ending)| *ending)
    }

    /// Adds `change` to every send window; false if one becomes too large.
    pub(crate) fn shift_windows(&mut self, change: i64) -> bool {
        let mut fits = true;
        for stream in self.streams.iter_mut().filter(|stream| stream.id != 0) {
            stream.send_window += change;
            fits &= stream.send_window <= WINDOW_MAX;
        }
        fits
    }

    /// Slots of all streams.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.ids.iter().enumerate().filter(|(_, id)| **id != 0).map(|(at, _)| at)
    }
}
