//! Body watch: completes the fingerprint of an origin's response while its body passes.
//!
//! Must never hold up the body, or give a part of it the fingerprint of the whole.

use std::rc::Rc;

use base::{Limit, Limits};
use fingerprint::BodyHasher;
use origin::Exchange;

use crate::state::core::CoreState;
use crate::state::trace::Trace;

/// A watch on the body of one response.
pub(crate) struct BodyWatch {
    core: Rc<CoreState>,
    trace: Rc<Trace>,
    /// `None` once the fingerprint is complete or given up.
    hasher: Option<Box<BodyHasher>>,
    /// The length of the body, if it is known before its end.
    length: Option<u64>,
    read: u64,
    most: u64,
}

impl BodyWatch {
    /// The watch on the body of `exchange`, whose fetch has the notes `trace`; `None` if it gets no
    /// fingerprint.
    pub(crate) fn of(
        core: &Rc<CoreState>,
        trace: &Rc<Trace>,
        exchange: &Exchange,
        limits: &Limits,
    ) -> Option<Self> {
        let hasher = trace.fetched.borrow_mut().as_mut()?.take_hasher()?;
        let (length, most) = (exchange.framing.length(), limits.fingerprint_bytes);
        if length.is_some_and(|length| length > most) {
            core.counters.limit(Limit::FingerprintBytes);
            return None;
        }
        let (core, trace) = (Rc::clone(core), Rc::clone(trace));
        Some(Self { core, trace, hasher: Some(hasher), length, read: 0, most })
    }

    /// Takes a piece of the body.
    pub(crate) fn push(&mut self, piece: &[u8]) {
        let Some(hasher) = &mut self.hasher else { return };
        self.read += piece.len() as u64;
        if self.read > self.most {
            self.hasher = None;
            return self.core.counters.limit(Limit::FingerprintBytes);
        }
        hasher.push(piece);
        // A reader who knows the length does not wait for more.
        if self.length == Some(self.read) {
            self.complete();
        }
    }

    /// Takes the end of the body. One that has failed is not the whole.
    pub(crate) fn finish(&mut self, exchange: &Exchange) {
        if !exchange.has_failed() {
            self.complete();
        }
    }

    /// Notes the fingerprint of the whole body.
    fn complete(&mut self) {
        if let Some(hasher) = self.hasher.take()
            && let Some(noted) = self.trace.fetched.borrow_mut().as_mut()
        {
            noted.note_fingerprint(hasher.finish());
        }
    }
}
