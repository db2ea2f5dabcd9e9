//! Fetch: the one way to an origin, under both policies.
//!
//! A fetch is a task of the core whose request caused it. The client may leave without harm to the
//! waiters: their result is the object in the store, and only the causing request gets the
//! [`FetchResult`] itself. A [`Judge`] decides and never acts; this module and `fetching` send,
//! wait, move bytes and change the store, once for both policies.
//!
//! A [`Job`] owns its [`Fetch`] and its judge, and is boxed from the beginning:
//!
//! 1. The policy builds it with [`Job::new`]. A fetch for the store owns the key's `Lead`.
//! 2. [`start`] spawns the task and returns the receiver; [`start_behind`] does so for a background
//!    fetch and drops the receiver.
//! 3. Each try follows the row of `sources`: the owner of the key, then the policy, whose
//!    [`Judge::ask`] prepares the request, then files, siblings and the origin.
//! 4. [`Judge::answered`] or [`Judge::unanswered`] turns the result into a [`ResponseFate`];
//!    [`Judge::collected`] does so after a body was collected.
//! 5. The fate is carried out: stored, confirmed, passed, or replaced by an answer.
//!    [`Judge::report`] runs once, before the result is sent.
//! 6. The body moves to its end, and [`Judge::carried`] gets the outcome.
//!
//! What must never happen: a lead is dropped without waking its waiters; a response is stored
//! without a `Permit`; an interim response or a part of a body is taken for the whole response; a
//! panic of one fetch ends more than that fetch.

pub(crate) mod collected_body;
mod mirror;
mod object;
pub(crate) mod origin_request;
mod upload;

use std::rc::Rc;
use std::sync::Arc;

use base::{Counter, Now};
use bytes::Bytes;
use cache::{DemotionPolicy, DerivedData, Flags, NewObject, Object, Reader, Record, WindowLimit};
use codec::Coding;
use message::store::{NotStored, Permit};
use message::{Request, Response};
use origin::{Exchange, Origin, OriginRequestContext, Timeouts};
use tokio::sync::oneshot;

pub(crate) use self::object::{ObjectTimes, new_object};
pub(crate) use self::origin_request::send;
pub(crate) use self::upload::Upload;
use crate::body_transfer::{TransferOutcome, VariantSelector};
use crate::body_watch::BodyWatch;
use crate::crawlers::FetchPermit;
use crate::finish::{BackgroundCause, BackgroundFetch};
use crate::interims::Interims;
use crate::recode::BodyRecoding;
use crate::state::body::ReplyBody;
use crate::state::core::CoreState;
use crate::state::live_configuration::LiveRef;
use crate::state::miss::Miss;
use crate::state::peers::OwnerRequest;
use crate::state::request_context::RequestConnection;
use crate::state::siblings::sibling_miss::SiblingMiss;
use crate::state::site::Site;
use crate::state::slices::{Edition, Extent};
use crate::state::tier::Lead;
use crate::state::trace::Trace;
use crate::trailers::TrailerFilter;
use vcl::trace;

/// A fetch and all it needs, independent of the client's connection.
pub(crate) struct Fetch {
    pub(crate) core: Rc<CoreState>,
    pub(crate) live: LiveRef,
    /// The request for the origin (`bereq`).
    pub(crate) request: Request,
    pub(crate) upload: Upload,
    /// Hash of the cache key. It selects the server of an origin that balances by hash.
    pub(crate) key_hash: u64,
    /// The duty to store the response; `None` for a fetch past the store.
    pub(crate) lead: Option<Lead>,
    /// The stored object that a 304 confirms and any other response replaces.
    pub(crate) old: Option<Arc<Object>>,
    /// The client's queue of interim responses; `None` if it accepts none.
    pub(crate) interims: Option<Rc<Interims>>,
    /// The origin that was asked last.
    pub(crate) asked: Option<Arc<Origin>>,
    /// The version that the origin has sent all or a part of, if it may be stored in slices.
    pub(crate) edition: Option<Edition>,
    /// The part of the whole that the body is, if a part was requested for the store.
    pub(crate) part: Option<Extent>,
    /// The client for whom the origin is asked.
    pub(crate) caller: OriginRequestContext,
    /// The window of a passing body.
    pub(crate) passage: WindowLimit,
    /// Notes for the record of the causing request.
    pub(crate) trace: Option<Rc<Trace>>,
    /// The request to the node that owns the key; `None` if no other node may serve it.
    pub(crate) owner_request: Option<Box<OwnerRequest>>,
    /// The request to siblings; `None` if they may not serve it.
    pub(crate) siblings: Option<Box<SiblingMiss>>,
    /// The permit of a crawler, which ends with the fetch.
    pub(crate) permit: FetchPermit,
    /// The record of a background fetch.
    pub(crate) background: Option<Box<BackgroundFetch>>,
}

impl Fetch {
    /// A fetch past the store for the client of `connection`; `key_hash` is that of what it
    /// requests.
    pub(crate) fn new(
        core: &Rc<CoreState>,
        live: &LiveRef,
        connection: &RequestConnection<'_>,
        key_hash: u64,
    ) -> Self {
        let account = Some(Arc::clone(connection.account));
        let (ends, read_at_most) = (connection.ends, connection.window);
        Self {
            core: Rc::clone(core),
            live: Rc::clone(live),
            request: Request::new(),
            upload: Upload::None,
            key_hash,
            lead: None,
            old: None,
            interims: connection.interims.cloned(),
            asked: None,
            edition: None,
            part: None,
            caller: OriginRequestContext {
                ends,
                read_at_most,
                account,
                ..OriginRequestContext::default()
            },
            passage: connection.passage(&live.limits),
            trace: None,
            owner_request: None,
            siblings: None,
            permit: FetchPermit::default(),
            background: None,
        }
    }

    /// Lets the owner of the key and the siblings be asked before the origin.
    pub(crate) fn ask_others(&mut self, miss: Miss<'_>) {
        self.owner_request = OwnerRequest::of(&self.core.shared.peers, miss);
        self.siblings = SiblingMiss::of(&self.core.shared.siblings, miss);
    }

    pub(crate) fn now(&self) -> Now {
        self.core.now()
    }

    /// The watch on the body of `exchange`; `None` if it gets no fingerprint.
    pub(crate) fn watch(&self, exchange: &Exchange) -> Option<BodyWatch> {
        BodyWatch::of(&self.core, self.trace.as_ref()?, exchange, &self.live.limits)
    }

    pub(crate) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = &self.trace {
            note(trace);
        }
    }
}

/// The policy's side of a fetch. It returns values, and never waits, sends or stores.
pub(crate) trait Judge: Sized + 'static {
    /// An answer that replaces the origin's response.
    type Instead;
    /// Facts about a passing response that its delivery needs.
    type Facts;
    /// State of a response whose body is collected before the verdict.
    type Pending;
    /// The policy's report to the request that caused the fetch.
    type Report;

    /// A confirmed response keeps its count of hits; otherwise the count starts again.
    const COUNTS_ON: bool;

    /// Returns true if the fetch ends when its client leaves: the response is useless to others.
    fn ends_with_client(&self, fetch: &Fetch) -> bool;

    /// The demotion policy of a response that another node has stored.
    fn sinks(&self) -> DemotionPolicy;

    /// Prepares a try: `fetch.request` becomes the request to send.
    fn ask(&mut self, fetch: &mut Fetch) -> Attempt<Self>;

    /// Judges the head of a response.
    fn answered(&mut self, fetch: &mut Fetch, exchange: Box<Exchange>) -> ResponseFate<Self>;

    /// Judges a try without a response.
    fn unanswered(&mut self, fetch: &mut Fetch, error: &origin::Error) -> ResponseFate<Self>;

    /// Judges a response whose body was collected, or could not be, with the reason.
    fn collected(
        &mut self,
        fetch: &mut Fetch,
        pending: Self::Pending,
        body: Result<CollectedBody, String>,
    ) -> ResponseFate<Self>;

    /// Judges a response that another node has stored, perhaps by other rules.
    ///
    /// # Errors
    /// The response would not be stored here.
    fn judge_again(&self, fetch: &Fetch, record: &Record) -> Result<Permit, NotStored>;

    /// Takes a file that answers instead of a script: `name` is its path below the root beside the
    /// scripts.
    fn found_file(&mut self, fetch: &mut Fetch, name: Vec<u8>) -> ResponseFate<Self>;

    /// Takes the outcome of a body's transfer.
    fn carried(&mut self, outcome: &TransferOutcome);

    /// Makes the report. Called once, when the fate is known.
    fn report(&mut self) -> Self::Report;

    /// Makes the program's part of a background fetch's record.
    fn program_trace(&mut self, report: Self::Report) -> Option<Box<trace::ProgramTrace>>;
}

/// The next step of a try, before anything is sent.
pub(crate) enum Attempt<J: Judge> {
    /// Send `fetch.request` to this target.
    Send(FetchTarget),
    /// Send nothing; the fate is known.
    Fate(ResponseFate<J>),
}

/// The target of a request.
pub(crate) struct FetchTarget {
    pub(crate) origin: Arc<Origin>,
    /// Timeouts that replace the origin's.
    pub(crate) timeouts: Option<Timeouts>,
    /// The request's body is sent, if there is one.
    pub(crate) with_body: bool,
    /// A file beside the origin's scripts answers first, if there is one.
    pub(crate) beside_scripts: bool,
    /// The origin that gets a copy of the request.
    pub(crate) mirror: Option<Arc<Origin>>,
    /// The request is not repeated on a new connection after a kept one has closed.
    pub(crate) once: bool,
}

/// The fate of a response.
pub(crate) enum ResponseFate<J: Judge> {
    /// Ask the sources, once more after a try.
    Try,
    /// Collect the whole body first, recoded.
    Collect { exchange: Box<Exchange>, recode: BodyRecoding, pending: Box<J::Pending> },
    /// Recode a collected body once more.
    Recode { whole: Box<CollectedBody>, recode: BodyRecoding, pending: Box<J::Pending> },
    /// Store the response; it is delivered while its body arrives.
    Store(ResponseBodySource, Box<InsertionPlan>),
    /// A 304 confirms the stored object.
    Confirm(Option<Box<Exchange>>, Box<Confirmation>),
    /// Deliver the response to this request only.
    Pass(ResponseBodySource, UnstoredEffects, Box<UnstoredResponse<J::Facts>>),
    /// Answer this instead. The rest of the response is read and dropped.
    Instead(J::Instead, Option<Box<Exchange>>),
}

/// The source of a response's body.
pub(crate) enum ResponseBodySource {
    Exchange(Box<Exchange>),
    /// The collected body.
    Whole(Box<CollectedBody>),
    /// The body of the stored object that a 304 confirmed.
    Stored(Reader),
}

impl ResponseBodySource {
    /// The length of the body, if it is known before its end.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Exchange(exchange) => exchange.framing.length(),
            Self::Whole(whole) => Some(whole.bytes.len() as u64),
            Self::Stored(reader) => reader.length(),
        }
    }
}

/// A body that was collected before delivery.
pub(crate) struct CollectedBody {
    pub(crate) bytes: Bytes,
    /// The length of the body without its coding, if it was counted.
    pub(crate) plain: Option<u64>,
}

/// The plan for storing a response.
pub(crate) struct InsertionPlan {
    /// The permit of the rules to store the response.
    pub(crate) permit: Permit,
    /// The stored object that the response replaces, whatever that varies by.
    pub(crate) over: Option<Arc<Object>>,
    /// The object; its length is that of the body.
    pub(crate) new: NewObject,
    /// The variant that the response is, if it varies.
    pub(crate) selector: Option<VariantSelector>,
    /// The recoding of the body.
    pub(crate) recode: BodyRecoding,
    /// The filter of trailers; without one they are dropped.
    pub(crate) filter: Option<TrailerFilter>,
    /// Data derived from a complete body, kept beside it.
    pub(crate) attached: Option<Arc<dyn DerivedData>>,
    /// The demotion policy of the response.
    pub(crate) sinks: DemotionPolicy,
}

/// A stored object that a 304 confirmed.
pub(crate) struct Confirmation {
    /// The object's new head and times.
    pub(crate) new: NewObject,
    pub(crate) verdict: RevalidationVerdict,
}

/// The verdict on storing a confirmed object.
pub(crate) enum RevalidationVerdict {
    /// It replaces the stored object, as this variant.
    Stored { permit: Permit, selector: Option<VariantSelector>, sinks: DemotionPolicy },
    /// It answers this request only: the rules forbid sharing the fields of the 304.
    Once {
        /// The end of the hit-for-miss time, in monotonic milliseconds.
        hit_for_miss_until_ms: Option<u64>,
        /// The stored object ends.
        ends: bool,
    },
}

/// The effects of a response that is not stored.
pub(crate) struct UnstoredEffects {
    pub(crate) mark: Mark,
    /// The stored object that the response ends.
    pub(crate) over: Option<Arc<Object>>,
}

/// The mark that an unstored response leaves under its key.
pub(crate) enum Mark {
    /// No mark; waiters look up again.
    None,
    /// Hit-for-miss until this time, in monotonic milliseconds.
    HitForMiss(u64),
    /// The present mark ends: the next response may be stored.
    Ends,
    /// This object without a body, as a mark.
    Object(Box<NewObject>, Option<VariantSelector>),
}

/// A passing response, before its body has a window.
pub(crate) struct UnstoredResponse<F> {
    pub(crate) response: Response,
    /// The Content-Length of a response to HEAD.
    pub(crate) head_length: Option<u64>,
    /// The recoding of the body.
    pub(crate) recode: BodyRecoding,
    /// The coding of the body after that.
    pub(crate) coding: Coding,
    /// The filter of trailers; without one they are dropped.
    pub(crate) filter: Option<TrailerFilter>,
    pub(crate) facts: F,
}

/// A passing response.
pub(crate) struct PassingResponse<F> {
    pub(crate) response: Response,
    pub(crate) body: ReplyBody,
    /// The Content-Length of a response to HEAD.
    pub(crate) head_length: Option<u64>,
    /// The coding of the body.
    pub(crate) coding: Coding,
    /// The length of the body without its coding, if it is known.
    pub(crate) plain: Option<u64>,
    pub(crate) facts: F,
}

/// The result of a fetch, sent once the head is known.
pub(crate) enum FetchResult<J: Judge> {
    /// An object, complete or filling.
    Object {
        object: Arc<Object>,
        /// Lookups find the object.
        stored: bool,
        /// A reader at the beginning of the body.
        reader: Reader,
    },
    /// The confirmed object in its new form; if not `stored`, it is for this request only.
    Confirmed { object: Arc<Object>, stored: bool },
    /// A response for this request only.
    Passing(Box<PassingResponse<J::Facts>>),
    /// An answer that replaces the response.
    Instead(J::Instead),
}

/// The result and the policy's report, for the causing request.
pub(crate) type FetchNews<J> = (FetchResult<J>, <J as Judge>::Report);

/// A fetch with its judge.
pub(crate) struct Job<J: Judge> {
    pub(crate) fetch: Fetch,
    pub(crate) judge: J,
    /// The target of the current try, once the policy has named it.
    pub(crate) target: Option<FetchTarget>,
    pub(crate) tell: Option<oneshot::Sender<FetchNews<J>>>,
}

impl<J: Judge> Job<J> {
    /// A fetch that has not started. It is boxed at once, so that later moves copy a pointer.
    pub(crate) fn new(fetch: Fetch, judge: J) -> Box<Self> {
        Box::new(Self { fetch, judge, target: None, tell: None })
    }
}

/// Starts `job`; its result arrives on the channel.
pub(crate) fn start<J: Judge>(mut job: Box<Job<J>>) -> oneshot::Receiver<FetchNews<J>> {
    let (tell, receiver) = oneshot::channel();
    job.tell = Some(tell);
    let count = PanicCounter(Rc::clone(&job.fetch.core));
    // The boxed future is written once; the runtime copies what it is given at every turn.
    rt::spawn_local(Box::pin(async move {
        let _count = count;
        job.run().await;
    }));
    receiver
}

/// Starts `job` as a background fetch for `request`, whose answer does not wait for it.
pub(crate) fn start_behind<J: Judge>(
    mut job: Box<Job<J>>,
    site: &Arc<Site>,
    request: &Request,
    cause: BackgroundCause,
) {
    let Fetch { core, trace, background, permit, .. } = &mut job.fetch;
    let trace = trace.get_or_insert_default();
    permit.note_trace(trace);
    *background = Some(Box::new(BackgroundFetch::begin(core, site, request, cause, trace)));
    drop(start(job));
}

/// Counts a panic that ends a fetch, and only that fetch.
struct PanicCounter(Rc<CoreState>);

impl Drop for PanicCounter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.counters.inc(Counter::Panics);
        }
    }
}

/// Flags of a mark that is stored as an object.
pub(crate) fn mark_flags(is_pass: bool) -> Flags {
    Flags { hit_for_pass: is_pass, hit_for_miss: !is_pass, ..Flags::default() }
}

#[cfg(test)]
mod tests;
