//! The streams of a connection that are under way, and what is remembered of those before.

use crate::connection::StreamHandle;

/// Most that one window may hold (RFC 9113 6.9.1).
pub(crate) const WINDOW_MAX: i64 = 0x7fff_ffff;

/// The priority that a client gives a response among others (RFC 9218 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    /// 0 is the most urgent, 7 the least.
    pub(crate) urgency: u8,
    /// True if the response is of use in parts, and takes turns with others.
    pub(crate) incremental: bool,
}

impl Priority {
    /// That of a client that says nothing: as urgent as most, and taking turns, since nobody has
    /// said which comes first.
    pub(crate) const UNSAID: Self = Self { urgency: 3, incremental: true };
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// 0 when the place is free.
    pub(crate) id: u32,
    /// The client may send more on it.
    pub(crate) receives: bool,
    /// True if received bytes are still wanted.
    pub(crate) takes: bool,
    /// Bytes that Content-Length says are still to come.
    pub(crate) due: Option<u64>,
    /// Bytes that the client may still send without being told.
    pub(crate) receive_window: i64,
    /// Bytes received and not yet used.
    pub(crate) held: u32,
    /// Bytes that were used, and that the client has not been told of.
    pub(crate) used: u32,
    /// Bytes that may still be sent.
    pub(crate) send_window: i64,
    /// Bytes that are there to be sent.
    pub(crate) offered: u64,
    /// More is made when the client's windows let it through.
    pub(crate) made: bool,
    /// Nothing follows them but trailers, if there are to be any.
    pub(crate) ends: bool,
    /// Trailers follow, which end the stream.
    pub(crate) trailed: bool,
    /// It stands in one of the queues of those that have something to send.
    pub(crate) queued: bool,
    /// Its response is whole, and the client has not ended its request.
    pub(crate) over: Option<EarlyResponse>,
    pub(crate) priority: Priority,
}

/// A response that left before its request was whole, on its way to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EarlyResponse {
    /// When it was first looked at.
    pub(crate) seen_ms: Option<u64>,
}

impl Stream {
    /// Returns true if bytes wait for the client's windows, made or not.
    pub(crate) fn waits(&self) -> bool {
        self.offered > 0 || self.made
    }
}

/// The way in which a stream that is over came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnding {
    /// Both sides have ended it, or the client has reset it.
    Ended,
    /// This end has reset it: the client may not have known when it sent more.
    Reset,
}

/// Places that an idle connection keeps: browsers seldom ask for more at once.
const KEPT: usize = 32;

/// Streams that are over and still remembered.
const REMEMBERED: usize = 128;

/// All streams. A stream keeps its place as long as it lives.
#[derive(Debug)]
pub(crate) struct Streams {
    ids: Vec<u32>,
    streams: Vec<Stream>,
    free: Vec<u16>,
    open: usize,
    /// The last that are over, in a ring.
    over: Vec<(u32, StreamEnding)>,
    oldest: usize,
}

impl Streams {
    /// The number of places there are.
    #[cfg(test)]
    pub(crate) fn places_kept(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn new() -> Self {
        let over = Vec::new();
        Self { ids: Vec::new(), streams: Vec::new(), free: Vec::new(), open: 0, over, oldest: 0 }
    }

    /// Gives back memory that many streams at once have taken, if none is left.
    pub(crate) fn fit(&mut self) {
        if self.open == 0 && self.ids.len() > KEPT {
            *self =
                Self { over: std::mem::take(&mut self.over), oldest: self.oldest, ..Self::new() };
        }
    }

    /// The number of streams under way.
    pub(crate) fn len(&self) -> usize {
        self.open
    }

    /// The place of the stream `id`.
    pub(crate) fn find(&self, id: u32) -> Option<usize> {
        self.ids.iter().position(|own| *own == id)
    }

    /// The stream at a place; 0 if it is absent.
    pub(crate) fn id_at(&self, place: usize) -> u32 {
        self.ids.get(place).copied().unwrap_or(0)
    }

    /// A stream, if it is still there to be answered; its place may be gone, too.
    pub(crate) fn of(&self, at: StreamHandle) -> Option<&Stream> {
        let stream = self.streams.get(at.place);
        stream.filter(|stream| stream.id == at.id && stream.over.is_none())
    }

    /// The same, to be changed.
    pub(crate) fn of_mut(&mut self, at: StreamHandle) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(at.place);
        stream.filter(|stream| stream.id == at.id && stream.over.is_none())
    }

    pub(crate) fn get(&self, at: usize) -> &Stream {
        &self.streams[at]
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> &mut Stream {
        &mut self.streams[at]
    }

    /// Adds a stream and returns its place.
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
    pub(crate) fn close(&mut self, at: usize, was: StreamEnding) {
        let id = std::mem::take(&mut self.ids[at]);
        self.streams[at].id = 0;
        // There are never more places than the setting of streams, which 16 bits hold.
        self.free.push(at as u16);
        self.open -= 1;
        self.remember(id, was);
    }

    /// Notes a stream that is over; it may never have had a place.
    pub(crate) fn remember(&mut self, id: u32, was: StreamEnding) {
        if self.over.len() < REMEMBERED {
            self.over.push((id, was));
        } else {
            self.over[self.oldest] = (id, was);
            self.oldest = (self.oldest + 1) % REMEMBERED;
        }
    }

    /// The way in which a stream came to its end, if it is remembered.
    pub(crate) fn ending_of(&self, id: u32) -> Option<StreamEnding> {
        self.over.iter().find(|(own, _)| *own == id).map(|(_, was)| *was)
    }

    /// Adds `change` to every send window; false when one becomes too large.
    pub(crate) fn shift_windows(&mut self, change: i64) -> bool {
        let mut fits = true;
        for stream in self.streams.iter_mut().filter(|stream| stream.id != 0) {
            stream.send_window += change;
            fits &= stream.send_window <= WINDOW_MAX;
        }
        fits
    }

    /// Places of all streams.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.ids.iter().enumerate().filter(|(_, id)| **id != 0).map(|(at, _)| at)
    }
}
