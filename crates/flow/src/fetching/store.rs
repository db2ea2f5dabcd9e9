//! Store step of a fetch: the response is stored, confirms the stored one, or passes through.

use std::rc::Rc;
use std::sync::Arc;

use base::Counter;
use bytes::Bytes;
use cache::{BodyWindow as Window, DemotionPolicy, ExternalBody, NewObject};
use message::Framing;
use origin::Exchange;

use crate::body_transfer::{
    TransferEnd, TransferOutcome, VariantSelector, carry, drain, note_begun,
};
use crate::fetch::{
    Confirmation, Fetch, FetchResult, InsertionPlan, Job, Judge, Mark, PassingResponse,
    ResponseBodySource, RevalidationVerdict, UnstoredEffects, UnstoredResponse,
};
use crate::recode::{BodyRecoding, Coder, decode_limits};
use crate::slices::{self, SliceStart, shape_of};
use crate::state::body::ReplyBody;
use crate::tier::Spool;

/// A body too large for one piece of memory, and its destination.
enum LargeBody {
    Slices(SliceStart),
    Spool(Spool),
}

impl LargeBody {
    /// Takes the body of `exchange`, or returns it if it is not so large. `None` if the response is
    /// unusable.
    fn of(
        fetch: &mut Fetch,
        exchange: Box<Exchange>,
        plan: &InsertionPlan,
    ) -> Result<Option<Self>, Box<Exchange>> {
        if let Some((shape, extent)) = shape_of(fetch, &exchange, plan) {
            return Ok(SliceStart::new(fetch, exchange, shape, extent, plan).map(Self::Slices));
        }
        // A part must never be stored as the whole.
        if fetch.part.is_some() {
            return Ok(None);
        }
        Spool::begin(fetch, exchange, plan).map(|spool| Some(Self::Spool(spool)))
    }

    /// The body that is stored.
    fn body(&self) -> Arc<dyn ExternalBody> {
        match self {
            Self::Slices(cut) => cut.body(),
            Self::Spool(spool) => spool.body(),
        }
    }
}

impl<J: Judge> Job<J> {
    /// Stores a response; it is delivered while its body arrives.
    pub(crate) async fn keep(mut self: Box<Self>, body: ResponseBodySource, plan: InsertionPlan) {
        let body = match body {
            ResponseBodySource::Exchange(exchange) => {
                match LargeBody::of(&mut self.fetch, exchange, &plan) {
                    Ok(Some(large)) => return self.keep_elsewhere(large, plan).await,
                    Ok(None) => return,
                    Err(exchange) => ResponseBodySource::Exchange(exchange),
                }
            }
            body => body,
        };
        let Some(mut lead) = self.fetch.lead.take() else { return };
        let InsertionPlan { permit, over, new, selector, recode, filter, attached, sinks } = plan;
        let given = body.length();
        let length = given.filter(|_| !recode.changes());
        let new = NewObject { length, ..new };
        lead.set_window_limit(self.fetch.passage.clone());
        over.inspect(|over| lead.renews(over));
        let trace = self.fetch.trace.clone();
        let trace = trace.as_deref();
        let is_coded = matches!(recode, BodyRecoding::Encode(..));
        let limits = decode_limits(&self.fetch.live.limits);
        let account = &self.fetch.passage.account;
        let Ok(coder) = Coder::new(recode, given, limits, account) else { return lead.fail() };
        let variant = selector.as_ref().map(VariantSelector::variant);
        let mut filling = lead.store(permit, new, variant);
        note_begun(&self.fetch.core, trace, filling.refused());
        self.fetch.core.counters.add(Counter::BodiesCoded, u64::from(is_coded));
        let (object, stored) = (filling.object().clone(), filling.stored());
        object.set_sinks(sinks);
        // A body too large to store becomes a window, whose reader must exist before it moves.
        let reader = object.reader();
        let fetched = FetchResult::Object { object: Arc::clone(&object), stored, reader };
        let outcome = match body {
            ResponseBodySource::Exchange(exchange) => {
                self.tell(fetched);
                let watch = self.fetch.watch(&exchange);
                carry(*exchange, filling, coder, trace, filter.as_ref(), watch).await
            }
            ResponseBodySource::Whole(whole) => {
                _ = filling.push(&whole.bytes);
                let (bytes, stored) = (whole.bytes.len() as u64, filling.stored());
                let end =
                    if filling.finish() { TransferEnd::Whole } else { TransferEnd::Cut(None) };
                if let Some(plain) = whole.plain {
                    object.note_plain_length(plain);
                }
                if let Some(attached) = attached {
                    object.attach(attached);
                }
                self.tell(fetched);
                TransferOutcome { end, bytes, stored, plain: None, limit: None }
            }
            ResponseBodySource::Stored(_) => {
                filling.abort();
                let end = TransferEnd::Cut(None);
                TransferOutcome { end, bytes: 0, stored: false, plain: None, limit: None }
            }
        };
        if let Some(plain) = outcome.plain {
            object.note_plain_length(plain);
        }
        outcome.limit.inspect(|limit| self.fetch.core.counters.limit(*limit));
        self.fetch.note(|trace| outcome.note(trace));
        self.judge.carried(&outcome);
    }

    /// Stores a response with a large body: on the disk, or in slices, whose
    /// first are cut from the body as it arrives.
    async fn keep_elsewhere(mut self: Box<Self>, large: LargeBody, plan: InsertionPlan) {
        let Some(mut lead) = self.fetch.lead.take() else { return };
        plan.over.inspect(|over| lead.renews(over));
        let body = large.body();
        let new = NewObject { length: Some(body.length()), ..plan.new };
        let variant = plan.selector.as_ref().map(VariantSelector::variant);
        let (object, refused) = lead.store_elsewhere(plan.permit, &new, variant, body);
        object.set_sinks(plan.sinks);
        let core = Rc::clone(&self.fetch.core);
        let trace = self.fetch.trace.clone();
        let stored = note_begun(&core, trace.as_deref(), refused);
        // The transfer stays close to a reader, which must exist before it moves.
        let reader = object.reader();
        self.tell(FetchResult::Object { object: Arc::clone(&object), stored, reader });
        let outcome = match large {
            LargeBody::Slices(cut) => slices::cut(&core, cut, object).await,
            LargeBody::Spool(spool) => spool.run(&core, object).await,
        };
        let outcome = TransferOutcome { stored, ..outcome };
        self.fetch.note(|trace| outcome.note(trace));
        self.judge.carried(&outcome);
    }

    /// Updates the stored object by the fields and times of its 304 (RFC 9111 4.3.4): for all, or
    /// for the causing request only.
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
            RevalidationVerdict::Stored { permit, selector, sinks } => {
                fetch.note(|trace| trace.stored.set(true));
                let variant = selector.as_ref().map(VariantSelector::variant);
                let object = lead.freshen(permit, &old, new, variant);
                if J::COUNTS_ON {
                    object.count_on(&old);
                }
                (object, sinks, true)
            }
            RevalidationVerdict::Once { hit_for_miss_until_ms, ends } => (
                lead.confirm_for_one(&old, &new, ends, hit_for_miss_until_ms),
                DemotionPolicy::Never,
                false,
            ),
        };
        object.set_sinks(sinks);
        self.tell(FetchResult::Confirmed { object, stored });
        if let Some(exchange) = exchange {
            drain(*exchange).await;
        }
    }

    /// Delivers a response past the store.
    pub(crate) async fn pass(
        mut self: Box<Self>,
        body: ResponseBodySource,
        effects: UnstoredEffects,
        unstored: UnstoredResponse<J::Facts>,
    ) {
        leave(&mut self.fetch, effects);
        let given = body.length();
        let UnstoredResponse { response, head_length, recode, coding, filter, facts } = unstored;
        let length = given.filter(|_| !recode.changes());
        let is_coded = matches!(recode, BodyRecoding::Encode(..));
        let limits = decode_limits(&self.fetch.live.limits);
        let account = &self.fetch.passage.account;
        let Ok(coder) = Coder::new(recode, given, limits, account) else { return };
        self.fetch.core.counters.add(Counter::BodiesCoded, u64::from(is_coded));
        let mut plain = None;
        let (body, rest) = match body {
            ResponseBodySource::Exchange(exchange) if exchange.framing != Framing::None => {
                let (writer, reader) = Window::window(self.fetch.passage.clone());
                (ReplyBody::Stream { reader, length }, Some((exchange, Some(writer))))
            }
            ResponseBodySource::Exchange(exchange) => (Bytes::new().into(), Some((exchange, None))),
            ResponseBodySource::Whole(whole) => {
                plain = whole.plain;
                (whole.bytes.into(), None)
            }
            ResponseBodySource::Stored(reader) => (ReplyBody::Stream { reader, length }, None),
        };
        let passing = PassingResponse { response, body, head_length, coding, plain, facts };
        if !self.tell(FetchResult::Passing(Box::new(passing))) {
            return;
        }
        match rest {
            Some((mut exchange, Some(writer))) => {
                // The client sets the pace from here, as long as it proceeds.
                exchange.lift_total();
                let watch = self.fetch.watch(&exchange);
                let outcome = carry(*exchange, writer, coder, None, filter.as_ref(), watch).await;
                outcome.limit.inspect(|limit| self.fetch.core.counters.limit(*limit));
                self.judge.carried(&outcome);
            }
            // A script may have written a body nevertheless.
            Some((exchange, None)) => drain(*exchange).await,
            None => {}
        }
    }
}

/// Applies the effects of a response that is for one request only.
fn leave(fetch: &mut Fetch, UnstoredEffects { mark, over }: UnstoredEffects) {
    let Some(mut lead) = fetch.lead.take() else { return };
    let until_ms = match mark {
        Mark::None => None,
        Mark::HitForMiss(until_ms) => Some(until_ms),
        Mark::Ends => return lead.unmark(),
        Mark::Object(new, selector) => {
            over.inspect(|over| lead.renews(over));
            return lead.mark(*new, selector.as_ref().map(VariantSelector::variant));
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
