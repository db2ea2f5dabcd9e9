//! Control frames of a server: settings, windows, resets, farewells (RFC 9113 6.4 to 6.9).

use super::{ClientConnection, ClientEvent};
use crate::error::{Code, ConnectionError};
use crate::frame::{self, FrameHead, flag, kind, setting};
use crate::payload::{self, LENGTH};
use crate::streams::WINDOW_MAX;

/// Window updates below this size count as control frames.
const SMALL_UPDATE: i64 = 1024;

impl ClientConnection {
    pub(super) fn reset_by_server<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        head.of_stream()?;
        let code = u32::from_be_bytes(payload.try_into().map_err(|_| LENGTH)?);
        let Some(at) = self.streams.iter().position(|stream| stream.id == head.stream) else {
            self.control.spend(now_ms, "too many resets of ended streams")?;
            return self.has_begun(head).map(|()| None);
        };
        self.streams.swap_remove(at);
        Ok(Some(ClientEvent::Reset { stream: head.stream, code }))
    }

    pub(super) fn settings<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        head.of_connection()?;
        self.control.spend(now_ms, "too many SETTINGS frames")?;
        if head.has(flag::ACK) {
            return if payload.is_empty() { Ok(None) } else { Err(LENGTH) };
        }
        let (mut window, mut permitted) = (self.first_send_window, None);
        for read in payload::settings(payload)? {
            let (name, value) = read?;
            match name {
                setting::INITIAL_WINDOW_SIZE => window = i64::from(value),
                setting::HEADER_TABLE_SIZE => self.encoder.allow(value),
                setting::MAX_HEADER_LIST_SIZE => self.head_most = Some(value),
                setting::MAX_CONCURRENT_STREAMS => permitted = Some(value),
                setting::ENABLE_PUSH if value != 0 => {
                    return Err(ConnectionError::protocol("a server that permits pushes"));
                }
                _ => {}
            }
        }
        // Without the setting there is no limit (RFC 9113 6.5.2).
        match permitted {
            Some(permitted) => self.permitted = permitted,
            None if !self.greeted => self.permitted = u32::MAX,
            None => {}
        }
        self.greeted = true;
        let change = window - std::mem::replace(&mut self.first_send_window, window);
        for stream in &mut self.streams {
            stream.send_window += change;
            if stream.send_window > WINDOW_MAX {
                return Err(ConnectionError::new(Code::FlowControl, "a window too large"));
            }
        }
        frame::write(out, kind::SETTINGS, flag::ACK, 0, &[]);
        Ok(Some(ClientEvent::Room))
    }

    pub(super) fn ping(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        payload::ping(head, payload)?;
        self.control.spend(now_ms, "too many PING frames")?;
        if !head.has(flag::ACK) {
            frame::write(out, kind::PING, flag::ACK, 0, payload);
        }
        Ok(())
    }

    pub(super) fn goaway<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        head.of_connection()?;
        let (last, rest) = payload.split_first_chunk().ok_or(LENGTH)?;
        if rest.len() < 4 {
            return Err(LENGTH);
        }
        self.leaves = true;
        let last = u32::from_be_bytes(*last) & 0x7fff_ffff;
        self.streams.retain(|stream| stream.id <= last);
        Ok(Some(ClientEvent::Leaves { last }))
    }

    pub(super) fn window_update<'a>(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        out: &mut Vec<u8>,
        now_ms: u64,
    ) -> Result<Option<ClientEvent<'a>>, ConnectionError> {
        let more = i64::from(payload::increment(payload)?);
        if more < SMALL_UPDATE {
            self.control.spend(now_ms, "too many small WINDOW_UPDATE frames")?;
        }
        if head.stream == 0 {
            self.send_window += more;
            return match self.send_window > WINDOW_MAX {
                true => Err(ConnectionError::new(Code::FlowControl, "a window too large")),
                false => Ok(Some(ClientEvent::Room)),
            };
        }
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == head.stream) else {
            return self.has_begun(head).map(|()| None);
        };
        stream.send_window += more;
        if stream.send_window > WINDOW_MAX {
            self.reset(head.stream, Code::FlowControl, out);
            let code = Code::FlowControl as u32;
            return Ok(Some(ClientEvent::Reset { stream: head.stream, code }));
        }
        Ok(Some(ClientEvent::Room))
    }
}
