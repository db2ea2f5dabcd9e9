//! Body transfer: moves the body of an origin's response to its sink, recoded on the way, under
//! both policies.
//!
//! Must never leave a body in the store that ended early, or that had to be tested and was not.

use std::future::pending;
use std::time::Duration;

use base::{Counter, Limit};
use cache::{AbandonedBody, BodyWriter, PushOutcome, ReaderWatch, StoreRefusal, Variant};
use message::vary::{VaryNames, vary_signature};
use message::{Request, Trailers};
use origin::Exchange;

use crate::body_watch::BodyWatch;
use crate::recode::{Coder, YieldCounter, limit_of};
use crate::state::core::CoreState;
use crate::state::tier::Filling;
use crate::state::trace::{FailureNote, Trace};
use crate::trailers::{TrailerFilter, of_any_form};
use crate::unstored_reason::UnstoredReason;

/// The outcome of a transfer.
#[derive(Debug)]
pub(crate) struct TransferOutcome {
    pub(crate) end: TransferEnd,
    /// Bytes of the body that arrived.
    pub(crate) bytes: u64,
    /// The body is stored.
    pub(crate) stored: bool,
    /// The length of the body without its coding, if it was counted.
    pub(crate) plain: Option<u64>,
    /// The limit that ended the transfer.
    pub(crate) limit: Option<Limit>,
}

/// The end of a transfer.
#[derive(Debug)]
pub(crate) enum TransferEnd {
    /// The body arrived whole.
    Whole,
    /// No reader was left.
    Left,
    /// The connection broke, for this reason, or the body's length is not the declared one.
    Cut(Option<origin::Error>),
    /// The body is not in the coding that its head names.
    Uncoded,
}

impl TransferEnd {
    /// Returns true if the origin caused the end.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, Self::Cut(_) | Self::Uncoded)
    }
}

/// The destination of a body.
pub(crate) trait Sink {
    fn push(&mut self, data: &[u8]) -> PushOutcome;
    async fn room(&mut self) -> Result<(), AbandonedBody>;
    fn finish(self) -> bool;
    fn abort(self);

    /// Ends the body as whole, for its present readers only.
    fn finish_unkept(self) -> bool
    where
        Self: Sized,
    {
        self.finish()
    }

    /// Ends the body as whole, followed by `trailers` where the sink supports them.
    fn finish_with(self, _trailers: Option<Trailers>) -> bool
    where
        Self: Sized,
    {
        self.finish()
    }

    /// Bytes that the next read should bring at most.
    fn at_most(&self) -> usize;

    /// Returns true if the store keeps the body.
    fn stored(&self) -> bool {
        false
    }

    /// The reason for which the store refused the body, if it was to be stored.
    fn refused(&self) -> Option<StoreRefusal> {
        None
    }

    /// Returns a watch that completes once no reader is left, for a sink that ends then.
    fn watch(&self) -> Option<ReaderWatch> {
        None
    }
}

impl Sink for Filling {
    fn push(&mut self, data: &[u8]) -> PushOutcome {
        Self::push(self, data)
    }

    async fn room(&mut self) -> Result<(), AbandonedBody> {
        Self::room(self).await
    }

    fn finish(self) -> bool {
        Self::finish(self)
    }

    fn abort(self) {
        Self::abort(self);
    }

    fn finish_unkept(self) -> bool {
        Self::finish_unkept(self)
    }

    fn finish_with(self, trailers: Option<Trailers>) -> bool {
        Self::finish_with(self, trailers)
    }

    fn at_most(&self) -> usize {
        Self::at_most(self)
    }

    fn stored(&self) -> bool {
        Self::stored(self)
    }

    fn refused(&self) -> Option<StoreRefusal> {
        Self::refused(self)
    }
}

impl Sink for BodyWriter {
    fn push(&mut self, data: &[u8]) -> PushOutcome {
        Self::push(self, data)
    }

    async fn room(&mut self) -> Result<(), AbandonedBody> {
        Self::room(self).await
    }

    fn finish(self) -> bool {
        Self::finish(self)
    }

    fn abort(self) {
        Self::abort(self);
    }

    fn at_most(&self) -> usize {
        Self::at_most(self)
    }

    fn finish_with(self, trailers: Option<Trailers>) -> bool {
        Self::finish_with(self, trailers)
    }

    fn watch(&self) -> Option<ReaderWatch> {
        Some(Self::watch(self))
    }
}

/// The pause after which a coder is flushed, so that the beginning of a slow page is shown.
const PAUSE: Duration = Duration::from_millis(20);

/// Pushes a response's body into `sink`, through `coder` if there is one. Trailers follow if
/// `filter` is set. Notes in `trace` why the store refuses the body; `watch` sees it as it comes.
pub(crate) async fn carry(
    mut exchange: Exchange,
    mut sink: impl Sink,
    mut coder: Option<Coder>,
    trace: Option<&Trace>,
    filter: Option<&TrailerFilter>,
    mut watch: Option<BodyWatch>,
) -> TransferOutcome {
    let mut readers = sink.watch();
    let mut left = async || match &mut readers {
        Some(readers) => readers.abandoned().await,
        None => pending().await,
    };
    let (mut bytes, mut limit) = (0, None);
    let end = loop {
        let mut push = PushOutcome::Ok;
        exchange.read_at_most(sink.at_most());
        let holds_back = coder.as_ref().is_some_and(Coder::holds_back);
        let take = &mut |data: &[u8]| {
            bytes += data.len() as u64;
            watch.iter_mut().for_each(|watch| watch.push(data));
            match &mut coder {
                Some(coder) => coder.take(data),
                None => push = sink.push(data),
            }
        };
        let pause =
            async || if holds_back { rt::time::sleep(PAUSE).await } else { pending().await };
        // Cancelling the read loses nothing.
        let next = tokio::select! {
            biased;
            next = exchange.next(take) => Some(next),
            () = left() => break TransferEnd::Left,
            () = pause() => None,
        };
        if let Some(coder) = &mut coder
            && !matches!(next, Some(Err(_)))
        {
            let last = next.as_ref().map(|next| matches!(next, Ok(false)));
            match recode(coder, last, &mut sink).await {
                Ok(last) => push = last,
                Err(RecodeFailure::Left) => break TransferEnd::Left,
                Err(RecodeFailure::Bad(error)) => {
                    limit = limit_of(error);
                    break TransferEnd::Uncoded;
                }
            }
        }
        match next {
            None => {}
            Some(Ok(true)) if push == PushOutcome::Ok => {}
            Some(Ok(true)) => {
                note_refused(trace, sink.refused());
                if sink.room().await.is_err() {
                    break TransferEnd::Left;
                }
            }
            Some(Ok(false)) => {
                watch.iter_mut().for_each(|watch| watch.finish(&exchange));
                let trailers = filter.zip(exchange.take_trailers());
                let trailers = trailers.and_then(|(filter, it)| filter.pass(it));
                let end = BodyEnd::of(&exchange, coder.as_ref(), bytes, trailers);
                return end.finish(trace, sink);
            }
            Some(Err(error)) => break TransferEnd::Cut(Some(error)),
        }
    };
    sink.abort();
    TransferOutcome { end, bytes, stored: false, plain: None, limit }
}

/// A body that was read to its end.
struct BodyEnd {
    bytes: u64,
    /// The body did not fail, and passed its test if one was needed.
    is_fit: bool,
    /// The length without the coding, if it is known.
    plain: Option<u64>,
    trailers: Option<Trailers>,
}

impl BodyEnd {
    /// Judges the end of the body of `exchange`, which has passed through `coder` completely if
    /// there is one.
    fn of(
        exchange: &Exchange,
        coder: Option<&Coder>,
        bytes: u64,
        trailers: Option<Trailers>,
    ) -> Self {
        let changes = coder.is_some_and(Coder::changes);
        let trailers = if changes { trailers.and_then(of_any_form) } else { trailers };
        let is_fit = !exchange.has_failed() && !coder.is_some_and(Coder::is_untested);
        Self { bytes, is_fit, plain: coder.and_then(Coder::plain_length), trailers }
    }

    /// Ends the body in `sink`, which has received all of it.
    fn finish(self, trace: Option<&Trace>, sink: impl Sink) -> TransferOutcome {
        let Self { bytes, is_fit, plain, trailers } = self;
        note_refused(trace, sink.refused());
        let stored = sink.stored() && is_fit;
        let whole = match is_fit {
            false => {
                note_refused(trace, Some(StoreRefusal::Unwanted));
                sink.finish_unkept()
            }
            true => sink.finish_with(trailers),
        };
        let (end, stored) =
            if whole { (TransferEnd::Whole, stored) } else { (TransferEnd::Cut(None), false) };
        TransferOutcome { end, bytes, stored, plain, limit: None }
    }
}

/// The reason for which recoding stops.
enum RecodeFailure {
    /// No reader is left.
    Left,
    /// The body is not in its coding, or exceeds a limit.
    Bad(codec::Error),
}

/// Pushes the output of `coder` into `sink`: all of it if `last` says that the input is complete,
/// or if the body pauses (`None`).
async fn recode(
    coder: &mut Coder,
    last: Option<bool>,
    sink: &mut impl Sink,
) -> Result<PushOutcome, RecodeFailure> {
    let mut turns = YieldCounter::default();
    let mut push = PushOutcome::Ok;
    loop {
        let step = match last {
            Some(last) => coder.step(last),
            None => coder.flush(),
        };
        let Some(out) = step.map_err(RecodeFailure::Bad)? else { return Ok(push) };
        let made = out.len();
        if !out.is_empty() {
            if push != PushOutcome::Ok && sink.room().await.is_err() {
                return Err(RecodeFailure::Left);
            }
            push = sink.push(out);
        }
        turns.pass(made).await;
    }
}

/// Counts a response whose storing began, or notes why it is not stored. Returns true if it began.
pub(crate) fn note_begun(
    core: &CoreState,
    trace: Option<&Trace>,
    refused: Option<StoreRefusal>,
) -> bool {
    let stored = refused.is_none();
    core.counters.inc(if stored { Counter::Stores } else { Counter::StoreRefused });
    note_refused(trace, refused);
    stored
}

fn note_refused(trace: Option<&Trace>, refused: Option<StoreRefusal>) {
    if let (Some(trace), Some(why)) = (trace, refused) {
        trace.note_why(UnstoredReason::Store(why));
    }
}

/// Reads the rest of a response's body and drops it, so that the connection can be reused.
pub(crate) async fn drain(mut exchange: Exchange) {
    while let Ok(true) = exchange.next(&mut |_| {}).await {}
}

/// The longest rest of a discarded response that is read for the sake of its connection.
const REST_BYTES: u64 = 64 << 10;

/// Discards a response without waiting. A short rest is read in a task, so that the connection can
/// be reused; a long or unbounded one closes the connection.
pub(crate) fn discard_response(exchange: Box<Exchange>) {
    if exchange.framing.length().is_some_and(|length| length <= REST_BYTES) {
        rt::spawn_local(drain(*exchange));
    }
}

/// The names in Vary and the request's signature over them, as the store keeps them.
pub(crate) struct VariantSelector {
    names: VaryNames,
    signature: Vec<u8>,
}

impl VariantSelector {
    pub(crate) fn of(names: VaryNames, request: &Request) -> Self {
        let mut signature = Vec::new();
        vary_signature(names.as_bytes(), &request.headers, &mut signature);
        Self { names, signature }
    }

    /// The selector of a stored variant.
    pub(crate) fn of_stored_object(variant: Variant<'_>) -> Self {
        let names = VaryNames::from_blob(variant.spec);
        Self { names, signature: variant.signature.to_vec() }
    }

    pub(crate) fn variant(&self) -> Variant<'_> {
        Variant { spec: self.names.as_bytes(), signature: &self.signature }
    }
}
impl TransferOutcome {
    /// Notes in `trace` the outcome of a body that was to be stored.
    pub(crate) fn note(&self, trace: &Trace) {
        trace.body_bytes.set(self.bytes);
        trace.stored.set(self.stored);
        if self.limit.is_some() {
            trace.limit.set(self.limit);
        }
        match &self.end {
            TransferEnd::Whole | TransferEnd::Left => {}
            TransferEnd::Uncoded => trace.note_why(UnstoredReason::NoGzip),
            TransferEnd::Cut(error) => {
                trace.note_why(UnstoredReason::Cut);
                let failure = |error: &origin::Error| FailureNote {
                    error: error.to_string().into(),
                    limit: error.limit(),
                };
                *trace.failure.borrow_mut() = error.as_ref().map(failure);
            }
        }
    }
}
