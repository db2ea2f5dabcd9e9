//! Heads: field blocks of requests and trailers (RFC 9113 6.2, 6.10 and 8.1).

use base::Limit;
use message::{Framing, HeaderId, Request};

use crate::budget::EARNED;
use crate::connection::{Connection, Event, Farewell, PartialFieldBlock, StreamHandle};
use crate::error::{Code, ConnectionError};
use crate::frame::{FrameHead, flag};
use crate::payload;
use crate::priority::priority;
use crate::request::RequestError;
use crate::streams::{Priority, Stream, StreamEnding};
use crate::table::OVERHEAD;

/// A list that exceeds the limit by this factor is not decoded to its end.
const FAR_TOO_LARGE: usize = 2;

impl Connection {
    pub(crate) fn headers<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        request: &mut Request,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let id = head.stream;
        if id.is_multiple_of(2) {
            return Err(ConnectionError::protocol("HEADERS on a stream that is not a client's"));
        }
        let fragment = payload::fragment(head, payload)?;
        let ends = head.has(flag::END_STREAM);
        if id <= self.last {
            self.may_have_trailers(id)?;
        }
        let open = PartialFieldBlock { id, ends, continuations: 0 };
        if head.has(flag::END_HEADERS) {
            return self.block_is_whole(open, fragment, request, out, now_ms);
        }
        self.block.extend_from_slice(fragment);
        self.open = Some(open);
        Ok(None)
    }

    /// Checks that a second block on a stream can be its trailers. A stream that this end has reset
    /// may still get blocks that were sent before the client knew.
    fn may_have_trailers(&self, id: u32) -> Result<(), ConnectionError> {
        let Some(place) = self.streams.find(id) else {
            return match self.streams.ending_of(id) {
                Some(StreamEnding::Reset) => Ok(()),
                Some(StreamEnding::Ended) => {
                    Err(ConnectionError::new(Code::StreamClosed, "HEADERS on a closed stream"))
                }
                None => Err(ConnectionError::protocol("a stream lower than those before it")),
            };
        };
        if !self.streams.get(place).receives {
            return Err(ConnectionError::new(Code::StreamClosed, "HEADERS after the stream's end"));
        }
        Ok(())
    }

    pub(crate) fn continuation<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        request: &mut Request,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let Some(mut open) = self.open.take() else { return Ok(None) };
        open.continuations += 1;
        if open.continuations > self.settings.continuations {
            return Err(ConnectionError::limit(
                Limit::H2Continuations,
                "too many CONTINUATION frames",
            ));
        }
        self.block.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            self.open = Some(open);
            return Ok(None);
        }
        let block = std::mem::take(&mut self.block);
        let event = self.block_is_whole(open, &block, request, out, now_ms);
        payload::give_back(&mut self.block, block);
        event
    }

    /// Handles a complete block.
    fn block_is_whole<'a>(
        &mut self,
        open: PartialFieldBlock,
        block: &[u8],
        request: &mut Request,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        if open.id <= self.last {
            return self.read_trailers(open, block, out, now_ms);
        }
        self.last = open.id;
        let requested = self.read_request(block, request)?;
        let requested =
            self.take_early_priority(open.id).or(requested).unwrap_or(Priority::DEFAULT);
        if self.farewell == Farewell::Said {
            // The client was informed that this stream would not be processed.
            self.streams.remember(open.id, StreamEnding::Reset);
            return Ok(None);
        }
        if self.streams.len() >= self.settings.streams as usize {
            self.resets.spend(now_ms, "too many streams refused")?;
            self.streams.remember(open.id, StreamEnding::Reset);
            Self::write_reset(open.id, Code::RefusedStream, out);
            let error = RequestError::Limit(Limit::H2Streams);
            return Ok(Some(Event::Refused { stream: None, error }));
        }
        let whole = self.collector.finish(open.ends, request);
        if let Err(error) = whole
            && error.status().is_none()
        {
            self.resets.spend(now_ms, "too many malformed requests")?;
            self.streams.remember(open.id, StreamEnding::Reset);
            Self::write_reset(open.id, Code::Protocol, out);
            return Ok(Some(Event::Refused { stream: None, error }));
        }
        let stream = self.begin(open, request, requested, whole.is_ok());
        Ok(Some(match whole {
            Ok(()) => Event::Request { stream, ends: open.ends },
            Err(error) => Event::Refused { stream: Some(stream), error },
        }))
    }

    fn begin(
        &mut self,
        open: PartialFieldBlock,
        request: &Request,
        priority: Priority,
        takes: bool,
    ) -> StreamHandle {
        self.control.earn(EARNED);
        let due = match request.framing {
            Framing::Length(length) if takes && !open.ends => Some(length),
            _ => None,
        };
        let place = self.streams.open(Stream {
            id: open.id,
            receives: !open.ends,
            takes,
            due,
            receive_window: i64::from(self.settings.stream_window),
            held: 0,
            used: 0,
            send_window: self.first_send_window,
            offered: 0,
            made: false,
            ends: false,
            trailed: false,
            queued: false,
            early_response: None,
            priority,
        });
        StreamHandle { place, id: open.id }
    }

    /// Decodes a request's block; returns its priority.
    fn read_request(
        &mut self,
        block: &[u8],
        request: &mut Request,
    ) -> Result<Option<Priority>, ConnectionError> {
        let Self { settings, decoder, collector, scheme, .. } = self;
        let limits = settings.list;
        let (mut requested, mut size) = (None, 0);
        collector.start(*scheme, request);
        decoder.block(block, |id, name, value| {
            size += name.len() + value.len() + OVERHEAD;
            if id == HeaderId::Priority {
                requested = Some(priority(value));
            }
            collector.field(id, name, value, &limits, request);
            size <= FAR_TOO_LARGE * limits.list_bytes
        })?;
        Ok(requested)
    }

    /// Decodes trailers, and keeps those that may pass.
    fn read_trailers<'a>(
        &mut self,
        open: PartialFieldBlock,
        block: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let Self { settings, decoder, collector, .. } = self;
        let limits = settings.list;
        let mut size = 0;
        collector.start_trailer();
        decoder.block(block, |id, name, value| {
            size += name.len() + value.len() + OVERHEAD;
            collector.trailer(id, name, value, &limits);
            size <= FAR_TOO_LARGE * limits.list_bytes
        })?;
        let Some(place) = self.streams.find(open.id) else { return Ok(None) };
        let at = StreamHandle { place, id: open.id };
        match self.collector.finish_trailer() {
            // A second head (RFC 9113 8.1).
            Ok(_) if !open.ends => self.bad_trailers(at, Code::Protocol, out, now_ms).map(Some),
            Ok(trailers) => self.body_ends(at, trailers, out, now_ms),
            Err(error) => {
                let code = match error.limit() {
                    Some(_) => Code::EnhanceYourCalm,
                    None => Code::Protocol,
                };
                self.bad_trailers(at, code, out, now_ms).map(Some)
            }
        }
    }

    fn bad_trailers<'a>(
        &mut self,
        stream: StreamHandle,
        code: Code,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Event<'a>, ConnectionError> {
        self.resets.spend(now_ms, "too many malformed trailers")?;
        self.reset(stream, code, out);
        Ok(Event::Reset { stream, by_client: false })
    }
}
