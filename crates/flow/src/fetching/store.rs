//! The end of a fetch: the response is stored, confirms what is stored, or passes through.

use std::rc::Rc;
use std::sync::Arc;

use base::Counter;
use bytes::Bytes;
use cache::{Body as Window, Elsewhere, NewObject, Sinks};
use message::Framing;
use origin::Exchange;

use crate::carry::{Carried, End, Selected, carry, drain, note_begun};
use crate::fetch::{
    Body, Confirmation, Confirmed, Fetch, Fetched, Job, Judge, Left, Mark, Passing, Plan, Unstored,
};
use crate::recode::{Coder, Recode, decode_limits};
use crate::slices::{self, Cut, shape_of};
use crate::state::body::ReplyBody;
use crate::tier::Spool;

/// A body that is too large to be one piece of memory, and where it goes.
enum Large {
    Slices(Cut),
    Spool(Spool),
}

impl Large {
    /// Takes the body of `exchange` on; gives it back if that is no such body. `None` if it is of
    /// no use.
    fn of(
        fetch: &mut Fetch,
        exchange: Box<Exchange>,
        plan: &Plan,
    ) -> Result<Option<Self>, Box<Exchange>> {
        if let Some((shape, extent)) = shape_of(fetch, &exchange, plan) {
            return Ok(Cut::new(fetch, exchange, shape, extent, plan).map(Self::Slices));
        }
        // A part must never pass for the whole.
        if fetch.part.is_some() {
            return Ok(None);
        }
        Spool::begin(fetch, exchange, plan).map(|spool| Some(Self::Spool(spool)))
    }

    /// The body that is stored.
    fn body(&self) -> Arc<dyn Elsewhere> {
        match self {
            Self::Slices(cut) => cut.body(),
            Self::Spool(spool) => spool.body(),
        }
    }
}

impl<J: Judge> Job<J> {
    /// Stores a response, whose body is delivered while it arrives.
    pub(crate) async fn keep(mut self: Box<Self>, body: Body, plan: Plan) {
        let body = match body {
            Body::Exchange(exchange) => match Large::of(&mut self.fetch, exchange, &plan) {
                Ok(Some(large)) => return self.keep_elsewhere(large, plan).await,
                Ok(None) => return,
                Err(exchange) => Body::Exchange(exchange),
            },
            body => body,
        };
        let Some(mut lead) = self.fetch.lead.take() else { return };
        let Plan { permit, over, new, selected, recode, gate, attached, sinks } = plan;
        let given = body.length();
        let length = given.filter(|_| !recode.changes());
        let new = NewObject { length, ..new };
        lead.passes_by(self.fetch.passage.clone());
        over.inspect(|over| lead.renews(over));
        let trace = self.fetch.trace.clone();
        let trace = trace.as_deref();
        let is_coded = matches!(recode, Recode::Encode(..));
        let limits = decode_limits(&self.fetch.live.limits);
        let account = &self.fetch.passage.account;
        let Ok(coder) = Coder::new(recode, given, limits, account) else { return lead.fail() };
        let variant = selected.as_ref().map(Selected::variant);
        let mut filling = lead.store(permit, new, variant);
        note_begun(&self.fetch.core, trace, filling.refused());
        self.fetch.core.counters.add(Counter::BodiesCoded, u64::from(is_coded));
        let (object, stored) = (filling.object().clone(), filling.stored());
        object.set_sinks(sinks);
        // A body too large to keep is a window: its reader must be there before it moves.
        let reader = object.reader();
        let fetched = Fetched::Object { object: Arc::clone(&object), stored, reader };
        let carried = match body {
            Body::Exchange(exchange) => {
                self.tell(fetched);
                carry(*exchange, filling, coder, trace, gate.as_ref()).await
            }
            Body::Whole(whole) => {
                _ = filling.push(&whole.bytes);
                let (bytes, stored) = (whole.bytes.len() as u64, filling.stored());
                let end = if filling.finish() { End::Whole } else { End::Cut(None) };
                if let Some(plain) = whole.plain {
                    object.note_plain_length(plain);
                }
                if let Some(attached) = attached {
                    object.attach(attached);
                }
                self.tell(fetched);
                Carried { end, bytes, stored, plain: None, limit: None }
            }
            Body::Stored(_) => {
                filling.abort();
                Carried { end: End::Cut(None), bytes: 0, stored: false, plain: None, limit: None }
            }
        };
        if let Some(plain) = carried.plain {
            object.note_plain_length(plain);
        }
        carried.limit.inspect(|limit| self.fetch.core.counters.limit(*limit));
        self.fetch.note(|trace| carried.note(trace));
        self.judge.carried(&carried);
    }

    /// Stores a response whose body is too large to be one piece of memory: in slices, the first of
    /// which are cut from what is on its way, or on the disk.
    async fn keep_elsewhere(mut self: Box<Self>, large: Large, plan: Plan) {
        let Some(mut lead) = self.fetch.lead.take() else { return };
        plan.over.inspect(|over| lead.renews(over));
        let body = large.body();
        let new = NewObject { length: Some(body.length()), ..plan.new };
        let variant = plan.selected.as_ref().map(Selected::variant);
        let (object, refused) = lead.store_elsewhere(plan.permit, &new, variant, body);
        object.set_sinks(plan.sinks);
        let core = Rc::clone(&self.fetch.core);
        let trace = self.fetch.trace.clone();
        let stored = note_begun(&core, trace.as_deref(), refused);
        // What is on its way stays near a reader: there must be one before it moves.
        let reader = object.reader();
        self.tell(Fetched::Object { object: Arc::clone(&object), stored, reader });
        let carried = match large {
            Large::Slices(cut) => slices::cut(&core, cut, object).await,
            Large::Spool(spool) => spool.run(&core, object).await,
        };
        let carried = Carried { stored, ..carried };
        self.fetch.note(|trace| carried.note(trace));
        self.judge.carried(&carried);
    }

    /// Gives the stored object the fields and times of the 304 that confirmed it (RFC 9111 4.3.4):
    /// for all, or for the request that caused the fetch.
    pub(crate) async fn confirm(
        mut self: Box<Self>,
        exchange: Option<Box<Exchange>>,
        confirmation: Confirmation,
    ) {
        let fetch = &mut self.fetch;
        let (Some(old), Some(lead)) = (fetch.old.take(), fetch.lead.take()) else { return };
        fetch.core.counters.inc(Counter::Revalidated);
        let new = NewObject { length: None, ..confirmation.new };
        let (object, sinks, stored) = match confirmation.verdict {
            Confirmed::Stored { permit, selected, sinks } => {
                fetch.note(|trace| trace.stored.set(true));
                let variant = selected.as_ref().map(Selected::variant);
                let object = lead.freshen(permit, &old, new, variant);
                if J::COUNTS_ON {
                    object.count_on(&old);
                }
                (object, sinks, true)
            }
            Confirmed::Once { hit_for_miss_until_ms, ends } => {
                (lead.lay_over(&old, &new, ends, hit_for_miss_until_ms), Sinks::Never, false)
            }
        };
        object.set_sinks(sinks);
        self.tell(Fetched::Confirmed { object, stored });
        if let Some(exchange) = exchange {
            drain(*exchange).await;
        }
    }

    /// Delivers a response past the store.
    pub(crate) async fn pass(
        mut self: Box<Self>,
        body: Body,
        left: Left,
        unstored: Unstored<J::Facts>,
    ) {
        leave(&mut self.fetch, left);
        let given = body.length();
        let Unstored { response, head_length, recode, coding, gate, facts } = unstored;
        let length = given.filter(|_| !recode.changes());
        let is_coded = matches!(recode, Recode::Encode(..));
        let limits = decode_limits(&self.fetch.live.limits);
        let account = &self.fetch.passage.account;
        let Ok(coder) = Coder::new(recode, given, limits, account) else { return };
        self.fetch.core.counters.add(Counter::BodiesCoded, u64::from(is_coded));
        let mut plain = None;
        let (body, rest) = match body {
            Body::Exchange(exchange) if exchange.framing != Framing::None => {
                let (writer, reader) = Window::window(self.fetch.passage.clone());
                (ReplyBody::Stream { reader, length }, Some((exchange, Some(writer))))
            }
            Body::Exchange(exchange) => (Bytes::new().into(), Some((exchange, None))),
            Body::Whole(whole) => {
                plain = whole.plain;
                (whole.bytes.into(), None)
            }
            Body::Stored(reader) => (ReplyBody::Stream { reader, length }, None),
        };
        let passing = Passing { response, body, head_length, coding, plain, facts };
        if !self.tell(Fetched::Passing(Box::new(passing))) {
            return;
        }
        match rest {
            Some((mut exchange, Some(writer))) => {
                // The client decides how long it takes, as long as it goes on.
                exchange.lift_total();
                let carried = carry(*exchange, writer, coder, None, gate.as_ref()).await;
                carried.limit.inspect(|limit| self.fetch.core.counters.limit(*limit));
                self.judge.carried(&carried);
            }
            // A script may have written a body all the same.
            Some((exchange, None)) => drain(*exchange).await,
            None => {}
        }
    }
}

/// Leaves behind what a response does that is for one request only.
fn leave(fetch: &mut Fetch, Left { mark, over }: Left) {
    let Some(mut lead) = fetch.lead.take() else { return };
    let until_ms = match mark {
        Mark::None => None,
        Mark::HitForMiss(until_ms) => Some(until_ms),
        Mark::Ends => return lead.unmark(),
        Mark::Object(new, selected) => {
            over.inspect(|over| lead.renews(over));
            return lead.mark(*new, selected.as_ref().map(Selected::variant));
        }
    };
    match over {
        None => lead.refuse(until_ms),
        Some(over) => {
            lead.renews(&over);
            lead.supersede(until_ms);
        }
    }
}
