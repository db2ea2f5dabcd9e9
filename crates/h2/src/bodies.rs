//! Bodies of requests, and the flow-control windows that limit them (RFC 9113 5.2 and 6.1).

use message::Trailers;

use crate::connection::{Connection, Event, FIRST_WINDOW, PartialDataFrame, StreamHandle};
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, flag, kind};
use crate::streams::StreamEnding;

impl Connection {
    /// Starts a DATA frame.
    pub(crate) fn data(
        &mut self,
        head: FrameHead,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        let (id, ends, left) = (head.stream, head.has(flag::END_STREAM), head.length);
        let window = left as i64;
        if id == 0 || id > self.last {
            return Err(ConnectionError::protocol("DATA on a stream that has not begun"));
        }
        if head.has(flag::PADDED) && left == 0 {
            return Err(ConnectionError::new(Code::FrameSize, "padding without its length"));
        }
        if left == 0 && !ends {
            self.control.spend(now_ms, "too many empty DATA frames")?;
        }
        self.receive_window -= window;
        if self.receive_window < 0 {
            return Err(ConnectionError::new(
                Code::FlowControl,
                "more than the connection's window",
            ));
        }
        let place = self.streams.find(id);
        match place {
            Some(place) => {
                let stream = self.streams.get_mut(place);
                if !stream.receives {
                    return Err(ConnectionError::new(
                        Code::StreamClosed,
                        "DATA after the stream's end",
                    ));
                }
                stream.receive_window -= window;
                if stream.receive_window < 0 {
                    return Err(ConnectionError::new(
                        Code::FlowControl,
                        "more than the stream's window",
                    ));
                }
            }
            // The frame may have been sent before the client knew.
            None if self.streams.ending_of(id) == Some(StreamEnding::Reset) => {
                self.used_in_all(left, out);
            }
            None => {
                return Err(ConnectionError::new(Code::StreamClosed, "DATA on a closed stream"));
            }
        }
        let padding = if head.has(flag::PADDED) { None } else { Some(0) };
        self.incoming = Some(PartialDataFrame { id, place, left, padding, ends });
        Ok(())
    }

    /// Continues a DATA frame.
    pub(crate) fn incoming<'a>(
        &mut self,
        input: &mut &'a [u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let Some(mut frame) = self.incoming else { return Ok(None) };
        let padding = match frame.padding {
            Some(padding) => padding,
            None => {
                let Some((length, rest)) = input.split_first() else { return Ok(None) };
                *input = rest;
                let padding = usize::from(*length);
                frame.left -= 1;
                if padding > frame.left {
                    return Err(ConnectionError::protocol("more padding than frame"));
                }
                if padding == frame.left && !frame.ends {
                    self.control.spend(now_ms, "too many DATA frames of padding alone")?;
                }
                self.used_at(frame.place, 1 + padding, out);
                padding
            }
        };
        let (bytes, rest) = input.split_at(input.len().min(frame.left - padding));
        frame.left -= bytes.len();
        *input = rest;
        let skipped = if frame.left == padding { input.len().min(padding) } else { 0 };
        *input = &input[skipped..];
        frame.left -= skipped;
        frame.padding = Some(padding - skipped);
        self.incoming = (frame.left > 0 || !bytes.is_empty()).then_some(frame);
        if let (Some(place), false) = (frame.place, bytes.is_empty()) {
            return self.body_bytes(StreamHandle { place, id: frame.id }, bytes, out, now_ms);
        }
        match frame.place {
            Some(place) if frame.left == 0 && frame.ends => {
                self.body_ends(StreamHandle { place, id: frame.id }, None, out, now_ms)
            }
            _ => Ok(None),
        }
    }

    /// Handles a part of a body.
    fn body_bytes<'a>(
        &mut self,
        at: StreamHandle,
        bytes: &'a [u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let stream = self.streams.get_mut(at.place);
        if stream.early_response.is_some() {
            self.used_in_all(bytes.len(), out);
            return Ok(None);
        }
        stream.held += bytes.len() as u32;
        if let Some(due) = &mut stream.due {
            match due.checked_sub(bytes.len() as u64) {
                Some(left) => *due = left,
                None => return self.wrong_length(at, out, now_ms).map(Some),
            }
        }
        if stream.takes {
            return Ok(Some(Event::Data { stream: at, bytes }));
        }
        self.used(at, bytes.len(), out);
        Ok(None)
    }

    /// Handles the end of a request's body.
    pub(crate) fn body_ends<'a>(
        &mut self,
        at: StreamHandle,
        trailers: Option<Trailers>,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let stream = self.streams.get_mut(at.place);
        if stream.due.is_some_and(|due| due > 0) {
            return self.wrong_length(at, out, now_ms).map(Some);
        }
        stream.receives = false;
        if stream.early_response.is_some() {
            self.forget(at, StreamEnding::Ended);
            return Ok(None);
        }
        Ok(stream.takes.then_some(Event::End { stream: at, trailers }))
    }

    /// Handles a body whose length differs from its request's Content-Length: a stream error (RFC
    /// 9113 8.1.1).
    fn wrong_length<'a>(
        &mut self,
        stream: StreamHandle,
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Event<'a>, ConnectionError> {
        self.resets.spend(now_ms, "too many streams reset")?;
        self.reset(stream, Code::Protocol, out);
        Ok(Event::Reset { stream, by_client: false })
    }

    /// Reports `bytes` of [`Event::Data`] as used, so that the client may send as many more. Those
    /// of an ended stream were returned when it ended.
    pub fn used(&mut self, at: StreamHandle, bytes: usize, out: &mut Vec<u8>) {
        if let Some(stream) = self.streams.of_mut(at) {
            stream.held -= bytes as u32;
            self.used_at(Some(at.place), bytes, out);
        }
    }

    /// Returns true if less than half of the connection's window is left.
    pub fn is_short(&self) -> bool {
        self.receive_window < i64::from(self.settings.connection_window / 2)
    }

    /// Returns true if the connection's window is exhausted until some bytes are used.
    pub fn is_full(&self) -> bool {
        self.receive_window <= 0
    }

    /// Declares that no more of a request's body is needed; later bytes are dropped.
    pub fn refuse_body(&mut self, at: StreamHandle, out: &mut Vec<u8>) {
        if let Some(stream) = self.streams.of_mut(at) {
            stream.takes = false;
            let held = stream.held;
            self.used(at, held as usize, out);
        }
    }

    fn used_at(&mut self, place: Option<usize>, bytes: usize, out: &mut Vec<u8>) {
        let Some(place) = place else { return };
        let most = self.settings.stream_window;
        let stream = self.streams.get_mut(place);
        stream.used += bytes as u32;
        // Half of the window at once: a frame for every piece would cost more than it helps.
        if stream.receives && stream.early_response.is_none() && stream.used >= most / 2 {
            let more = std::mem::take(&mut stream.used);
            stream.receive_window += i64::from(more);
            frame::write(out, kind::WINDOW_UPDATE, 0, stream.id, &more.to_be_bytes());
        }
        self.used_in_all(bytes, out);
    }

    pub(crate) fn used_in_all(&mut self, bytes: usize, out: &mut Vec<u8>) {
        self.used += bytes as u32;
        if self.used >= self.settings.connection_window.max(FIRST_WINDOW) / 2 {
            let more = std::mem::take(&mut self.used);
            self.receive_window += i64::from(more);
            frame::write(out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
    }
}
