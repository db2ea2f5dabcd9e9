//! Control frames: settings, windows, resets, priorities (RFC 9113 6.3 to 6.9, RFC 9218 7).

use crate::connection::{Connection, Event, Farewell, StreamHandle};
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, flag, kind, setting};
use crate::payload::{self, LENGTH, depends_on_itself};
use crate::priority::priority;
use crate::streams::{Priority, StreamEnding, WINDOW_MAX};

/// The number of priorities kept for streams that have not begun.
const EARLY: usize = 16;
/// A smaller window update costs the client next to nothing, and this end as much as any.
const SMALL_UPDATE: u32 = 1024;
impl Connection {
    /// The payload of the PING after the first GOAWAY.
    pub(crate) const LEAVING: [u8; 8] = *b"leaving.";

    pub(crate) fn settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        head.of_connection()?;
        self.control.spend(now_ms, "too many SETTINGS frames")?;
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(()) } else { Err(LENGTH) };
        }
        let mut window = self.first_send_window;
        for read in payload::settings(payload)? {
            let (name, value) = read?;
            match name {
                setting::INITIAL_WINDOW_SIZE => window = i64::from(value),
                setting::HEADER_TABLE_SIZE => self.encoder.allow(value),
                // Frames above the smallest permitted size have no benefit.
                _ => {}
            }
        }
        // All streams once, even if a frame repeats the setting.
        self.set_first_window(window)?;
        frame::write(out, kind::SETTINGS, flag::ACK, 0, &[]);
        // After the first acknowledgement, which must be the first answer to the settings.
        let more = std::mem::take(&mut self.unannounced);
        if more > 0 {
            frame::write(out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
        Ok(())
    }

    /// Changes the windows of all streams (RFC 9113 6.9.2).
    fn set_first_window(&mut self, window: i64) -> Result<(), ConnectionError> {
        let change = window - std::mem::replace(&mut self.first_send_window, window);
        if change == 0 {
            return Ok(());
        }
        if !self.streams.shift_windows(change) {
            return Err(ConnectionError::new(Code::FlowControl, "a window too large"));
        }
        self.requeue_all();
        Ok(())
    }

    pub(crate) fn ping(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        payload::ping(head, payload)?;
        if head.has(flag::ACK) && self.was_read(payload, out) {
            return Ok(());
        }
        self.control.spend(now_ms, "too many PING frames")?;
        if !head.has(flag::ACK) {
            frame::write(out, kind::PING, flag::ACK, 0, payload);
        } else if payload == Self::LEAVING && self.farewell == Farewell::Announced {
            self.write_last_goaway(out);
        }
        Ok(())
    }

    pub(crate) fn goaway(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<(), ConnectionError> {
        head.of_connection()?;
        if payload.len() < 8 {
            return Err(LENGTH);
        }
        self.client_leaves = true;
        Ok(())
    }

    pub(crate) fn priority(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        head.of_stream()?;
        let (parent, [_]) = payload.split_first_chunk().ok_or(LENGTH)? else {
            return Err(LENGTH);
        };
        depends_on_itself(head.stream, parent)?;
        self.control.spend(now_ms, "too many PRIORITY frames")
    }

    pub(crate) fn priority_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        head.of_connection()?;
        self.control.spend(now_ms, "too many PRIORITY_UPDATE frames")?;
        let (id, value) = payload.split_first_chunk().ok_or(LENGTH)?;
        let id = u32::from_be_bytes(*id) & 0x7fff_ffff;
        if id.is_multiple_of(2) {
            return Err(ConnectionError::protocol(
                "PRIORITY_UPDATE of a stream that is not a client's",
            ));
        }
        let requested = priority(value);
        if let Some(place) = self.streams.find(id) {
            self.prefer(place, requested);
        } else if id > self.last {
            self.early.retain(|(own, _)| *own != id);
            if self.early.len() == EARLY {
                self.early.remove(0);
            }
            self.early.push((id, requested));
        }
        Ok(())
    }

    /// Takes the priority that the client gave a stream before the stream began. It precedes the
    /// priority in the stream's own head.
    pub(crate) fn take_early_priority(&mut self, id: u32) -> Option<Priority> {
        if self.early.is_empty() {
            return None;
        }
        let requested =
            self.early.iter().find(|(own, _)| *own == id).map(|(_, requested)| *requested);
        self.early.retain(|(own, _)| *own > id);
        requested
    }

    pub(crate) fn window_update<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let more = payload::increment(payload)?;
        if more < SMALL_UPDATE {
            self.control.spend(now_ms, "too many small WINDOW_UPDATE frames")?;
        }
        if head.stream == 0 {
            self.send_window += i64::from(more);
            return match self.send_window > WINDOW_MAX {
                true => Err(ConnectionError::new(Code::FlowControl, "a window too large")),
                false => Ok(None),
            };
        }
        let Some(place) = self.streams.find(head.stream) else {
            return self.has_begun(head).map(|()| None);
        };
        let stream = self.streams.get_mut(place);
        stream.send_window += i64::from(more);
        if stream.send_window > WINDOW_MAX {
            self.resets.spend(now_ms, "too many streams reset")?;
            let stream = StreamHandle { place, id: head.stream };
            self.reset(stream, Code::FlowControl, out);
            return Ok(Some(Event::Reset { stream, by_client: false }));
        }
        self.requeue(place);
        Ok(None)
    }

    pub(crate) fn reset_by_client<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        head.of_stream()?;
        self.has_begun(head)?;
        if payload.len() != 4 {
            return Err(LENGTH);
        }
        self.resets.spend(now_ms, "too many streams reset")?;
        let Some(place) = self.streams.find(head.stream) else { return Ok(None) };
        let stream = StreamHandle { place, id: head.stream };
        self.forget(stream, StreamEnding::Ended);
        self.give_back(out);
        Ok(Some(Event::Reset { stream, by_client: true }))
    }

    fn has_begun(&self, head: FrameHead) -> Result<(), ConnectionError> {
        if head.stream > self.last || head.stream.is_multiple_of(2) {
            return Err(ConnectionError::protocol("a frame on a stream that has not begun"));
        }
        Ok(())
    }
}
