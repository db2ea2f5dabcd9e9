//! Answers to requests, encoded as frames: at once, or as their bodies arrive.

use std::rc::Rc;

use base::memory::HoldError;
use base::{Counter, Limit, Now};
use bytes::Bytes;
use flow::finish::{RequestStart, UnreadableRequest};
use flow::{BodyPart, BodyParts, LiveRef, Reply, ReplyBody, pages};
use h2::{Code, Connection, RequestError, StreamHandle};
use message::{Request, Status};

use super::mailbox::BodyBackpressure;
use super::output_queue::BATCH;
use super::stream_state::BodyOrigin;
use super::{H2, head};
use crate::account;
use crate::core::CoreCtx;
use crate::exchange::{ExchangeBytes, Note};
use crate::file;

impl H2 {
    /// Replaces the reply to a request by an error page.
    pub(super) fn refuse(&mut self, core: &Rc<CoreCtx>, at: StreamHandle, page: Option<Reply>) {
        let Some(state) = self.state(at) else { return };
        (state.task, state.waiting, state.upload) = (None, None, None);
        let answered = state.reply.is_some();
        let deferred = state.deferred.clone();
        let page = page.map(|page| match &deferred {
            Some(deferred) => pages::refusal_of(&deferred.request, page),
            None => page,
        });
        self.engine.refuse_body(at, &mut self.out.bytes);
        match page {
            Some(page) if !answered => self.begin_reply(core, at, Box::new(page), None, None),
            _ => self.cut(core, at, Code::Cancel),
        }
    }

    /// Answers a request that the engine rejected; `request` has the fields parsed so far, and `at`
    /// is its stream, if it has one.
    pub(super) fn refused(
        &mut self,
        core: &Rc<CoreCtx>,
        live: &LiveRef,
        at: Option<StreamHandle>,
        request: &Request,
        error: &RequestError,
        started: &RequestStart,
    ) {
        if let Some(limit) = error.limit() {
            core.flow.counters.limit(limit);
        }
        if error.limit() == Some(Limit::H2Streams) {
            // The client may repeat the request, which is valid.
            return;
        }
        core.flow.counters.inc(Counter::BadRequests);
        let status = error.status().or(Status::new(400));
        let Some(status) = status else { return };
        let mut reply = pages::refused(status, &error.to_string()).because_of(error.limit());
        let mut head_out = 0;
        if let Some(at) = at {
            // A short page: only unusual flow-control windows hold it back.
            match self.answer_now(core, live, at, &mut reply, started.at) {
                Some(bytes) => head_out = bytes,
                None => self.engine.reset(at, Code::RefusedStream, &mut self.out.bytes),
            }
        }
        let method = request.method.token();
        let received = match request.target.is_empty() {
            true => Vec::new(),
            false => [method, b" ", &request.target, b" HTTP/2.0"].concat(),
        };
        let unread = UnreadableRequest { received: &received, head_out };
        core.flow.log.refused(live, self.caller.ends.peer, &reply, started, unread);
    }

    /// Rejects a request for which there is no memory. If only this connection's limit is reached,
    /// the client may repeat the request after its others; if the memory of all clients is in use,
    /// it gets an error page.
    pub(super) fn no_memory(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        note: &Note<'_>,
        full: HoldError,
    ) {
        if full == HoldError::Own {
            core.flow.counters.limit(Limit::H2Memory);
            return self.engine.reset(at, Code::RefusedStream, &mut self.out.bytes);
        }
        self.engine.refuse_body(at, &mut self.out.bytes);
        let mut reply = account::no_memory(core);
        reply.answer_to(note.request);
        match self.answer_now(core, note.live, at, &mut reply, note.started.at) {
            Some(head_out) => {
                let body_out = reply.length().unwrap_or(0);
                let moved = ExchangeBytes { head_out, body_out, body_in: 0 };
                note.log_finished(core, &reply, moved);
            }
            // The page cannot be sent now either.
            None => self.engine.reset(at, Code::RefusedStream, &mut self.out.bytes),
        }
    }

    /// Sends a complete reply if it is at hand and the client's window permits it; returns the
    /// bytes of its head then.
    pub(super) fn answer_now(
        &mut self,
        core: &CoreCtx,
        live: &LiveRef,
        at: StreamHandle,
        reply: &mut Reply,
        now: Now,
    ) -> Option<u64> {
        if reply.is_counted() {
            return None;
        }
        if let Some(BodyPart::File(opened, range)) = reply.body.part()
            && range.end - range.start <= BATCH as u64
        {
            let mut bytes = Vec::new();
            if file::append(opened, range.clone(), &mut bytes, now.mono_ms) {
                reply.body = Bytes::from(bytes).into();
            }
        }
        let length = match &reply.body {
            ReplyBody::None | ReplyBody::Head(_) => 0,
            ReplyBody::Parts(BodyParts::One(BodyPart::Bytes(bytes))) => bytes.len(),
            ReplyBody::Parts(BodyParts::One(part @ BodyPart::Stored(..)))
                if part.len() <= BATCH as u64 =>
            {
                part.len() as usize
            }
            _ => return None,
        };
        if length > 0 && !self.engine.take(at, length) {
            return None;
        }
        let out = &mut self.out;
        let before = out.bytes.len();
        head::write(&mut self.engine, core, live, reply, reply.length(), &mut out.bytes);
        self.engine.end_head(at, length == 0, &mut out.bytes);
        let head_out = (out.bytes.len() - before) as u64;
        let mut from = 0;
        while from < length {
            let bytes = (length - from).min(Connection::FRAME_BYTES);
            self.engine.data_head(at, bytes, from + bytes == length, &mut out.bytes);
            match reply.body.part() {
                Some(BodyPart::Bytes(whole)) => out.push(whole.slice(from..from + bytes)),
                Some(BodyPart::Stored(object, range)) => {
                    let start = range.start + from as u64;
                    out.push_stored(object, start..start + bytes as u64);
                }
                _ => {}
            }
            from += bytes;
        }
        if length > 0 {
            self.engine.sent_all(at, &mut out.bytes);
        }
        Some(head_out)
    }

    /// Begins a reply whose stream has a state.
    pub(super) fn begin_reply(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        mut reply: Box<Reply>,
        feed: Option<Rc<BodyBackpressure>>,
        length: Option<u64>,
    ) {
        let Some(deferred) = self.state(at).and_then(|state| state.deferred.clone()) else {
            return;
        };
        let (reply_held, feed) = match account::hold_reply(&self.caller.account, &reply) {
            Ok(held) => (held, feed),
            Err(_) => {
                *reply = account::no_memory(core);
                // The producer of the body may stop.
                if let Some(state) = self.state(at) {
                    state.task = None;
                }
                (None, None)
            }
        };
        if feed.is_none() {
            reply.answer_to(&deferred.request);
        }
        let length = if feed.is_some() { length } else { reply.length() };
        let ends = feed.is_none() && length == Some(0);
        let out = &mut self.out.bytes;
        let before = out.len();
        head::write(&mut self.engine, core, &deferred.live, &reply, length, out);
        self.engine.end_head(at, ends, out);
        let head_out = (out.len() - before) as u64;
        let now = core.flow.now();
        let source = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            _ if feed.is_some() => {
                feed.map_or(BodyOrigin::None, |feed| BodyOrigin::Fed(<_>::default(), feed))
            }
            ReplyBody::Parts(parts) => BodyOrigin::Parts(parts),
            _ => BodyOrigin::None,
        };
        let fed = matches!(source, BodyOrigin::Fed(..));
        if source.is_made() {
            self.made += 1;
            self.engine.makes(at);
        }
        let Some(state) = self.state(at) else { return };
        state.reply = Some(reply);
        state.reply_held = reply_held;
        state.source = source;
        state.begun_ms = now.mono_ms;
        (state.reply_us, state.head_out) = (core.flow.log.micros(now), head_out);
        if ends {
            self.finished(core, at);
        } else if !fed {
            self.engine.offer(at, length.unwrap_or(0), true);
        }
    }
}
