//! Uploads over HTTP/2: DATA frames go to the readers of request bodies, and bytes that were read
//! return to the client as flow-control window.

use std::rc::Rc;
use std::task::Context;

use base::{Limit, Now};
use h2::StreamHandle;
use message::Trailers;

use super::H2;
use super::stream_state::UploadProgress;
use crate::core::CoreCtx;
use crate::exchange::BodyFault;

impl H2 {
    /// Passes a part of a request's body to its reader.
    pub(super) fn data(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        bytes: &[u8],
        now: Now,
        cx: &mut Context<'_>,
    ) {
        let Some(state) = self.state(at) else {
            return self.engine.refuse_body(at, &mut self.out.bytes);
        };
        let (Some(upload), Some(deferred)) = (&mut state.upload, &state.deferred) else {
            return self.engine.refuse_body(at, &mut self.out.bytes);
        };
        upload.push(bytes, now.mono_ms);
        state.received = upload.given();
        let limits = &deferred.live.limits;
        if upload.given() > limits.request_body_bytes {
            let fault = BodyFault::too_large(&core.flow.counters);
            return self.refuse(core, at, fault.page());
        }
        let enough = limits.body_buffer_bytes.min(limits.window_bytes / 4);
        let ready = if upload.given() >= enough { state.waiting.take() } else { None };
        if let Some((slow, reader)) = ready {
            core.flow.counters.limit(Limit::BodyBufferBytes);
            self.start(core, at, slow, Some(reader));
        }
        self.look_at_upload(at, cx);
        if self.engine.is_short() {
            self.stop_gathering(core, cx);
        }
    }

    /// Starts every request that waits for more of its body: together they may fill the
    /// connection's window, so that the client may send none.
    pub(super) fn stop_gathering(&mut self, core: &Rc<CoreCtx>, cx: &mut Context<'_>) {
        for place in 0..self.states.len() {
            let state = &mut self.states[place];
            let at = StreamHandle { place, id: state.id };
            if let Some((slow, reader)) = state.waiting.take() {
                self.start(core, at, slow, Some(reader));
                self.look_at_upload(at, cx);
            }
        }
    }

    /// Returns the bytes that the reader has taken to the client's window.
    pub(super) fn look_at_upload(&mut self, at: StreamHandle, cx: &mut Context<'_>) {
        let Some(state) = self.state(at).filter(|state| state.waiting.is_none()) else { return };
        let Some(upload) = &mut state.upload else { return };
        match upload.poll_taken(cx) {
            UploadProgress::All(more) => {
                upload.waits = false;
                if upload.is_whole() {
                    state.upload = None;
                }
                self.engine.used(at, more, &mut self.out.bytes);
            }
            UploadProgress::Part(more) => {
                if !std::mem::replace(&mut upload.waits, true) {
                    self.uploads.push(at);
                }
                self.engine.used(at, more, &mut self.out.bytes);
            }
            UploadProgress::Unwanted => {
                state.upload = None;
                self.engine.refuse_body(at, &mut self.out.bytes);
            }
        }
    }

    pub(super) fn poll_uploads(&mut self, cx: &mut Context<'_>) {
        for at in std::mem::take(&mut self.uploads) {
            if let Some(upload) = self.state(at).and_then(|state| state.upload.as_mut()) {
                upload.waits = false;
            }
            self.look_at_upload(at, cx);
        }
    }

    pub(super) fn body_ends(
        &mut self,
        core: &Rc<CoreCtx>,
        at: StreamHandle,
        trailers: Option<Trailers>,
        cx: &mut Context<'_>,
    ) {
        let Some(state) = self.state(at) else { return };
        if let Some(upload) = &mut state.upload {
            upload.finish(trailers);
        }
        if let Some((slow, reader)) = state.waiting.take() {
            self.start(core, at, slow, Some(reader));
        }
        self.look_at_upload(at, cx);
    }
}
