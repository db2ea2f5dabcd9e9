//! Requested fields: the header fields that log readers request, noted during transactions.

use std::sync::Arc;

use base::Limit;
use message::{Request, Response};
use observe::heads::HeadSide;
use observe::record::{HEADS_MAX, add_heads};
use observe::{FieldSubscriptions, Record};
use origin::Origin;

use super::heads::{HeadRoom, Writer};
use super::{CoreLog, Sinks};
use crate::state::trace::Trace;

impl CoreLog {
    /// Takes over the readers' requests.
    pub(crate) fn want(&self, wanted: Option<Arc<FieldSubscriptions>>) {
        *self.wanted.borrow_mut() = wanted;
    }

    /// Forgets readers that have left.
    pub(crate) fn forget(&self, now_ms: u64) {
        let mut wanted = self.wanted.borrow_mut();
        if let Some(own) = wanted.as_ref().filter(|wanted| wanted.has_ended(now_ms)) {
            let rest = own.without_expired(now_ms).map(Arc::new);
            *wanted = rest;
        }
    }

    /// Returns true if a reader requests header fields.
    pub(crate) fn is_asked(&self) -> bool {
        self.wanted.borrow().is_some()
    }

    /// Notes the head of a request to an origin.
    pub(crate) fn note_bereq(&self, trace: Option<&Trace>, request: &Request, origin: &Origin) {
        self.note(trace, HeadSide::Bereq, |writer| writer.bereq(request, origin));
    }

    /// Notes the head of an origin's response.
    pub(crate) fn note_beresp(&self, trace: Option<&Trace>, response: &Response) {
        self.note(trace, HeadSide::Beresp, |writer| writer.response(HeadSide::Beresp, response));
    }

    fn note(&self, trace: Option<&Trace>, side: HeadSide, write: impl FnOnce(&mut Writer<'_>)) {
        let wanted = self.wanted.borrow();
        let (Some(wanted), Some(trace)) = (&*wanted, trace) else { return };
        if !wanted.keeps_any(side) {
            return;
        }
        let mut heads = trace.heads.borrow_mut();
        let heads = heads.get_or_insert_default();
        let line = &mut self.room.borrow_mut().line;
        write(&mut Writer { heads, line, wanted, most: HEADS_MAX });
    }

    /// Appends heads behind the record at `at` in the batch, if a reader requests them.
    pub(crate) fn add_heads(
        &self,
        core: &Sinks,
        at: usize,
        most: u64,
        write: impl FnOnce(&mut Writer<'_>),
    ) {
        let wanted = self.wanted.borrow();
        let Some(wanted) = &*wanted else { return };
        let mut batch = core.batch.borrow_mut();
        let record = batch.bytes.get(at..).and_then(Record::read);
        if !record.is_some_and(|(record, _)| wanted.matches(&record)) {
            return;
        }
        let mut room = self.room.borrow_mut();
        let HeadRoom { heads, line } = &mut *room;
        heads.clear();
        let most = usize::try_from(most).unwrap_or(HEADS_MAX).min(HEADS_MAX);
        write(&mut Writer { heads, line, wanted, most });
        if heads.is_cut() {
            self.counters.limit(Limit::LogHeads);
        }
        add_heads(&mut batch.bytes, at, heads.bytes(), heads.is_cut());
    }
}
