//! Sending: requests, their bodies, and the frames that end streams and connections.

use message::authority::write_authority;
use message::{Framing, HeaderId, Method, Request, Scheme, Trailers};

use super::{ClientConnection, ClientStream, NARROW_WINDOW};
use crate::budget::EARNED;
use crate::encode::RequestLine;
use crate::error::{Code, ConnectionError};
use crate::frame::{self, HEAD_BYTES, PAYLOAD_BYTES, flag, kind};
use crate::responses::{close_head, goaway};
use crate::table::OVERHEAD;

/// The names of the four pseudo-header fields, a scheme and a port, and the overhead of three.
const PSEUDO_BYTES: usize = 7 + 7 + 10 + 5 + 5 + 6 + 3 * OVERHEAD;

impl ClientConnection {
    /// Returns true if the server takes the head of `request`, as far as it has said how large one
    /// may be (RFC 9113 6.5.2). Fields that are not sent count, too: at most a few.
    pub fn takes(&self, request: &Request) -> bool {
        let Some(most) = self.head_most else { return true };
        let fields = request.headers.iter().map(|field| field.name.len() + field.value.len());
        let own = request.method.token().len() + request.host.len() + request.target.len();
        let size = fields.chain([own + PSEUDO_BYTES]).fold(0, |size, next| size + next + OVERHEAD);
        size <= most as usize
    }

    /// Begins a stream with the head of `request`, written from its canonical form. `ends`: it has
    /// no body. Returns the stream's number; `None` if no stream can begin.
    pub fn start(
        &mut self,
        request: &Request,
        scheme: Scheme,
        ends: bool,
        out: &mut Vec<u8>,
    ) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let id = self.next_id;
        self.next_id += 2;
        self.control.earn(EARNED);
        let at = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        self.text.clear();
        write_authority(&mut self.text, request);
        let line = RequestLine {
            method: request.method.token(),
            scheme: scheme.as_str().as_bytes(),
            authority: &self.text,
            path: &request.target,
        };
        self.encoder.begin_request(&line, out);
        self.fields(request, out);
        close_head(id, at, ends, out);
        self.streams.push(ClientStream {
            id,
            is_head: request.method == Method::Head,
            sends: !ends,
            receives: true,
            answered: false,
            due: None,
            receive_window: i64::from(self.settings.stream_window.min(NARROW_WINDOW)),
            window: self.settings.stream_window.min(NARROW_WINDOW),
            used: 0,
            send_window: self.first_send_window,
        });
        Some(id)
    }

    /// Writes the fields that are for the server: those of HTTP/1 connections stay out (RFC 9113
    /// 8.2.2).
    fn fields(&mut self, request: &Request, out: &mut Vec<u8>) {
        let trailed = request.passes_trailers;
        for field in request.headers.iter() {
            let passes = match field.id {
                HeaderId::ContentLength | HeaderId::Host | HeaderId::Expect => false,
                HeaderId::Trailer => trailed && request.framing == Framing::Chunked,
                id => !id.is_hop_by_hop(),
            };
            if passes {
                self.encoder.field(field.id, field.name, field.value, out);
            }
        }
        if trailed && request.headers.contains(HeaderId::Te) {
            self.encoder.field(HeaderId::Te, b"te", b"trailers", out);
        }
        if let Framing::Length(length) = request.framing {
            let mut digits = itoa::Buffer::new();
            let length = digits.format(length).as_bytes();
            self.encoder.field(HeaderId::ContentLength, b"content-length", length, out);
        }
    }

    /// Bytes of a request's body that the server takes now; `None` if the stream takes no more.
    pub fn send_room(&self, id: u32) -> Option<usize> {
        let stream = self.streams.iter().find(|stream| stream.id == id && stream.sends)?;
        Some(usize::try_from(stream.send_window.min(self.send_window)).unwrap_or(0))
    }

    /// Writes a part of a request's body, at most [`ClientConnection::send_room`]; with `ends`, it
    /// is the last.
    pub fn data(&mut self, id: u32, bytes: &[u8], ends: bool, out: &mut Vec<u8>) {
        let Some(at) = self.streams.iter().position(|stream| stream.id == id) else { return };
        self.streams[at].send_window -= bytes.len() as i64;
        self.send_window -= bytes.len() as i64;
        self.control.earn(EARNED);
        let mut pieces = bytes.chunks(PAYLOAD_BYTES).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if ends && pieces.peek().is_none() { flag::END_STREAM } else { 0 };
            frame::write(out, kind::DATA, flags, id, piece);
        }
        if ends {
            if bytes.is_empty() {
                frame::write(out, kind::DATA, flag::END_STREAM, id, &[]);
            }
            self.sent(at);
        }
    }

    /// Writes a request's trailers, which end it.
    pub fn trailers(&mut self, id: u32, trailers: &Trailers, out: &mut Vec<u8>) {
        let Some(at) = self.streams.iter().position(|stream| stream.id == id) else { return };
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        self.encoder.begin_trailers(out);
        for field in trailers.iter() {
            self.encoder.field(field.id, field.name, field.value, out);
        }
        close_head(id, start, true, out);
        self.sent(at);
    }

    /// Records that a request is complete.
    fn sent(&mut self, at: usize) {
        self.streams[at].sends = false;
        if !self.streams[at].receives {
            self.streams.swap_remove(at);
        }
    }

    /// Reports `bytes` of a response's body as used, so that the server may send as many more.
    pub fn used(&mut self, id: u32, bytes: usize, out: &mut Vec<u8>) {
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) else { return };
        let most = stream.window;
        stream.used += bytes as u32;
        // Half of the window at once: a frame for every piece would cost more than it helps.
        if stream.receives && stream.used >= most / 2 {
            let more = std::mem::take(&mut stream.used);
            stream.receive_window += i64::from(more);
            frame::write(out, kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
        }
    }

    /// The size of a window that was widened.
    pub fn wide_window(&self) -> u32 {
        self.settings.stream_window
    }

    /// Widens the window of a stream from its first size to that of the settings: its reader has
    /// memory for as much.
    pub fn widen(&mut self, id: u32, out: &mut Vec<u8>) {
        let most = self.settings.stream_window;
        let Some(stream) = self.streams.iter_mut().find(|stream| stream.id == id) else { return };
        let more = most.saturating_sub(stream.window);
        if stream.receives && more > 0 {
            stream.window = most;
            stream.receive_window += i64::from(more);
            frame::write(out, kind::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
        }
    }

    /// Returns received bytes to the connection's window.
    pub(super) fn give_back(&mut self, bytes: u32, out: &mut Vec<u8>) {
        self.received += bytes;
        if self.received >= self.settings.stream_window {
            let more = std::mem::take(&mut self.received);
            self.receive_window += i64::from(more);
            frame::write(out, kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
    }

    /// Ends a stream before its time.
    pub fn reset(&mut self, id: u32, code: Code, out: &mut Vec<u8>) {
        if let Some(at) = self.streams.iter().position(|stream| stream.id == id) {
            self.streams.swap_remove(at);
            frame::write(out, kind::RST_STREAM, 0, id, &(code as u32).to_be_bytes());
        }
    }

    /// Asks the server for a sign of life.
    pub fn ask(&mut self, out: &mut Vec<u8>) {
        frame::write(out, kind::PING, 0, 0, &[0; 8]);
    }

    /// Announces the end of a connection without streams.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        self.leaves = true;
        goaway(out, 0, Code::None);
    }

    /// Sends a GOAWAY with the reason for the immediate end.
    pub fn end(&mut self, fatal: &ConnectionError, out: &mut Vec<u8>) {
        self.leaves = true;
        goaway(out, 0, fatal.code);
    }
}
