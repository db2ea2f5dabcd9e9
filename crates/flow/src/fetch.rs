//! Fetches: the one way to an origin, for sites with a declared policy or with a program.
//!
//! A fetch is a task of its own. The client that caused it may leave without harm to its waiters.
//! A [`Judge`] decides; everything that sends, waits, moves bytes or changes the store is here,
//! once for both policies.

pub(crate) mod collected_body;
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

/// One fetch and all it needs, independent of the client's connection.
pub(crate) struct Fetch {
    pub(crate) core: Rc<CoreState>,
    pub(crate) live: LiveRef,
    /// The request that the origin gets (`bereq`).
    pub(crate) request: Request,
    pub(crate) upload: Upload,
    /// Hash of the cache key. Chooses the server where an origin balances by hash.
    pub(crate) key_hash: u64,
    /// The duty to store the response; absent for a fetch past the store.
    pub(crate) lead: Option<Lead>,
    /// The stored object that a 304 confirms, and that any other response replaces.
    pub(crate) old: Option<Arc<Object>>,
    /// The queue of interim responses for the client; absent if it takes none.
    pub(crate) interims: Option<Rc<Interims>>,
    /// The origin that was asked last.
    pub(crate) asked: Option<Arc<Origin>>,
    /// The version that it has sent all or a part of, if it may be stored in slices.
    pub(crate) edition: Option<Edition>,
    /// The part of it that its body is, where a part was asked for in place of the whole.
    pub(crate) part: Option<Extent>,
    /// The client that the origin is asked for.
    pub(crate) caller: OriginRequestContext,
    /// Bytes of a passing body that may be ahead of its client.
    pub(crate) passage: WindowLimit,
    /// Notes for the record of the request that caused the fetch.
    pub(crate) trace: Option<Rc<Trace>>,
    /// The question to the node that owns its key; absent where no other node may have it.
    pub(crate) asking: Option<Box<OwnerRequest>>,
    /// The question to siblings; absent where none may have it.
    pub(crate) siblings: Option<Box<SiblingMiss>>,
    /// The record of the fetch itself, if no client waits for it.
    pub(crate) background: Option<Box<BackgroundFetch>>,
}

impl Fetch {
    /// A fetch past the store of what hashes to `key_hash`, for the client behind `front`.
    pub(crate) fn new(
        core: &Rc<CoreState>,
        live: &LiveRef,
        front: &RequestConnection<'_>,
        key_hash: u64,
    ) -> Self {
        let account = Some(Arc::clone(front.account));
        let (ends, read_at_most) = (front.ends, front.window);
        Self {
            core: Rc::clone(core),
            live: Rc::clone(live),
            request: Request::new(),
            upload: Upload::None,
            key_hash,
            lead: None,
            old: None,
            interims: front.interims.cloned(),
            asked: None,
            edition: None,
            part: None,
            caller: OriginRequestContext {
                ends,
                read_at_most,
                account,
                ..OriginRequestContext::default()
            },
            passage: front.passage(&live.limits),
            trace: None,
            asking: None,
            siblings: None,
            background: None,
        }
    }

    /// Has others asked before the origin that may have what is missed.
    pub(crate) fn ask_others(&mut self, miss: Miss<'_>) {
        self.asking = OwnerRequest::of(&self.core.shared.peers, miss);
        self.siblings = SiblingMiss::of(&self.core.shared.siblings, miss);
    }

    pub(crate) fn now(&self) -> Now {
        self.core.now()
    }

    pub(crate) fn note(&self, note: impl FnOnce(&Trace)) {
        if let Some(trace) = &self.trace {
            note(trace);
        }
    }
}

/// The policy's side of a fetch. Its answers are values; it never waits, sends or stores.
pub(crate) trait Judge: Sized + 'static {
    /// Answers that take the place of the origin's response.
    type Instead;
    /// Facts about a passing response that its delivery needs.
    type Facts;
    /// State of a response whose body is collected before the verdict.
    type Pending;
    /// The policy's report to the request that caused the fetch.
    type Report;

    /// Hits of a response that is confirmed are counted on; else they begin anew.
    const COUNTS_ON: bool;

    /// Tells whether the fetch ends when its client leaves: nobody else gains by its response.
    fn ends_with_client(&self, fetch: &Fetch) -> bool;

    /// Where a response is kept that another node has told of.
    fn sinks(&self) -> DemotionPolicy;

    /// Prepares one try: `fetch.request` becomes the request to send.
    fn ask(&mut self, fetch: &mut Fetch) -> Attempt<Self>;

    /// Judges the head of a response.
    fn answered(&mut self, fetch: &mut Fetch, exchange: Box<Exchange>) -> ResponseFate<Self>;

    /// Judges a try without a response.
    fn unanswered(&mut self, fetch: &mut Fetch, error: &origin::Error) -> ResponseFate<Self>;

    /// Judges a response whose body was collected, or could not be, for a reason in words.
    fn collected(
        &mut self,
        fetch: &mut Fetch,
        pending: Self::Pending,
        body: Result<CollectedBody, String>,
    ) -> ResponseFate<Self>;

    /// Judges a response that another node has stored: its rules may be others.
    ///
    /// # Errors
    /// It would not be stored here.
    fn judge_again(&self, fetch: &Fetch, record: &Record) -> Result<Permit, NotStored>;

    /// Takes note of a file that answers in place of a script: `name` is its path below the root
    /// beside the scripts.
    fn found_file(&mut self, fetch: &mut Fetch, name: Vec<u8>) -> ResponseFate<Self>;

    /// Takes note of the end of a body.
    fn carried(&mut self, carried: &TransferOutcome);

    /// Makes the report. Called once, when the fate is known.
    fn report(&mut self) -> Self::Report;

    /// Makes the part of a background fetch's record that only a program has.
    fn told(&mut self, report: Self::Report) -> Option<Box<trace::ProgramTrace>>;
}

/// The next step of a fetch before anything is sent.
pub(crate) enum Attempt<J: Judge> {
    /// Send `fetch.request` there.
    Send(FetchTarget),
    /// Send nothing.
    Fate(ResponseFate<J>),
}

/// The destination of a request.
pub(crate) struct FetchTarget {
    pub(crate) origin: Arc<Origin>,
    /// Timeouts that replace the origin's own.
    pub(crate) timeouts: Option<Timeouts>,
    /// The request's body goes along, if it has one.
    pub(crate) with_body: bool,
    /// A file beside the origin's scripts answers first, if there is one.
    pub(crate) beside_scripts: bool,
    /// A request over a kept connection that has ended is not sent again over a new one.
    pub(crate) once: bool,
}

/// The fate of a response.
pub(crate) enum ResponseFate<J: Judge> {
    /// Ask the origin, or ask it once more.
    Try,
    /// Collect the whole body first, changed so.
    Collect { exchange: Box<Exchange>, recode: BodyRecoding, pending: Box<J::Pending> },
    /// Change a body that was collected once more.
    Recode { whole: Box<CollectedBody>, recode: BodyRecoding, pending: Box<J::Pending> },
    /// Store it; it is delivered while it arrives.
    Store(ResponseBodySource, Box<InsertionPlan>),
    /// The stored object is confirmed by a 304.
    Confirm(Option<Box<Exchange>>, Box<Confirmation>),
    /// Deliver it to this request alone.
    Pass(ResponseBodySource, UnstoredEffects, Box<UnstoredResponse<J::Facts>>),
    /// Give this answer in its place. The body of the response is read off and dropped.
    Instead(J::Instead, Option<Box<Exchange>>),
}

/// The source of a response's body.
pub(crate) enum ResponseBodySource {
    Exchange(Box<Exchange>),
    /// All of it.
    Whole(Box<CollectedBody>),
    /// The body of the stored object that a 304 has confirmed.
    Stored(Reader),
}

impl ResponseBodySource {
    /// Its length, if that is known before its end.
    pub(crate) fn length(&self) -> Option<u64> {
        match self {
            Self::Exchange(exchange) => exchange.framing.length(),
            Self::Whole(whole) => Some(whole.bytes.len() as u64),
            Self::Stored(reader) => reader.length(),
        }
    }
}

/// A body that is there before it is delivered.
pub(crate) struct CollectedBody {
    pub(crate) bytes: Bytes,
    /// The length that it has without its coding, if that was counted.
    pub(crate) plain: Option<u64>,
}

/// The plan for a response that is stored.
pub(crate) struct InsertionPlan {
    /// The rules' permission to store it.
    pub(crate) permit: Permit,
    /// The stored object that it renews, whatever that varies by.
    pub(crate) over: Option<Arc<Object>>,
    /// The object; its length comes from the body.
    pub(crate) new: NewObject,
    /// The variant that it is, if the response varies.
    pub(crate) selected: Option<VariantSelector>,
    /// The change that the body undergoes on its way.
    pub(crate) recode: BodyRecoding,
    /// The gate that trailers pass on their way into the store; without one they are dropped.
    pub(crate) gate: Option<TrailerFilter>,
    /// Something to be kept beside a body that is there.
    pub(crate) attached: Option<Arc<dyn DerivedData>>,
    /// Its fate when it leaves memory.
    pub(crate) sinks: DemotionPolicy,
}

/// A stored object that a 304 has confirmed.
pub(crate) struct Confirmation {
    /// Its new head and times.
    pub(crate) new: NewObject,
    pub(crate) verdict: RevalidationVerdict,
}

/// The verdict on storing what a 304 makes of a stored object.
pub(crate) enum RevalidationVerdict {
    /// It takes the object's place, as the variant that it is.
    Stored { permit: Permit, selected: Option<VariantSelector>, sinks: DemotionPolicy },
    /// It is for this request alone: the rules forbid that others get what the 304 has brought.
    Once {
        /// The end of the time in which requests do not wait for each other, in monotonic
        /// milliseconds.
        hit_for_miss_until_ms: Option<u64>,
        /// The stored object answers nobody any more.
        ends: bool,
    },
}

/// All that an unstored response leaves behind.
pub(crate) struct UnstoredEffects {
    pub(crate) mark: Mark,
    /// The stored object in whose place it came, where that ends.
    pub(crate) over: Option<Arc<Object>>,
}

/// The mark that an unstored response leaves for later requests of its key.
pub(crate) enum Mark {
    /// No mark; waiters look again.
    None,
    /// Requests do not wait for each other until this time, in monotonic milliseconds.
    HitForMiss(u64),
    /// The mark that there is ends: the next response may be stored.
    Ends,
    /// This object without a body.
    Object(Box<NewObject>, Option<VariantSelector>),
}

/// A response that passes through, before its body has a window.
pub(crate) struct UnstoredResponse<F> {
    pub(crate) response: Response,
    /// The Content-Length of the response to HEAD.
    pub(crate) head_length: Option<u64>,
    /// The change that the body undergoes on its way.
    pub(crate) recode: BodyRecoding,
    /// The coding of the body after that.
    pub(crate) coding: Coding,
    /// The gate that trailers pass; without one they are dropped.
    pub(crate) gate: Option<TrailerFilter>,
    pub(crate) facts: F,
}

/// A response on its way through, not stored.
pub(crate) struct PassingResponse<F> {
    pub(crate) response: Response,
    pub(crate) body: ReplyBody,
    /// The Content-Length of the response to HEAD.
    pub(crate) head_length: Option<u64>,
    /// The coding of the body.
    pub(crate) coding: Coding,
    /// The length of the body without its coding, if it is known.
    pub(crate) plain: Option<u64>,
    pub(crate) facts: F,
}

/// The result of a fetch, known as soon as the head is.
pub(crate) enum FetchResult<J: Judge> {
    /// An object, complete or filling.
    Object {
        object: Arc<Object>,
        /// Other requests will find it.
        stored: bool,
        /// A reader at its beginning.
        reader: Reader,
    },
    /// The stored object in its new form, confirmed by a 304; if it is not `stored`, for this
    /// request only.
    Confirmed { object: Arc<Object>, stored: bool },
    /// A response for this request only.
    Passing(Box<PassingResponse<J::Facts>>),
    /// An answer in place of a response.
    Instead(J::Instead),
}

/// The news that the causing request waits for.
pub(crate) type FetchNews<J> = (FetchResult<J>, <J as Judge>::Report);

/// A fetch with its judge.
pub(crate) struct Job<J: Judge> {
    pub(crate) fetch: Fetch,
    pub(crate) judge: J,
    /// The destination of the try under way, once policy has named it.
    pub(crate) target: Option<FetchTarget>,
    pub(crate) tell: Option<oneshot::Sender<FetchNews<J>>>,
}

impl<J: Judge> Job<J> {
    /// A fetch that has not begun. Boxed at once, it moves from step to step as a pointer.
    pub(crate) fn new(fetch: Fetch, judge: J) -> Box<Self> {
        Box::new(Self { fetch, judge, target: None, tell: None })
    }
}

/// Starts `job`; its result arrives on the channel.
pub(crate) fn start<J: Judge>(mut job: Box<Job<J>>) -> oneshot::Receiver<FetchNews<J>> {
    let (tell, told) = oneshot::channel();
    job.tell = Some(tell);
    let count = PanicCounter(Rc::clone(&job.fetch.core));
    // Boxed, it is written once; the runtime copies what it is given at every turn of its life.
    rt::spawn_local(Box::pin(async move {
        let _count = count;
        job.run().await;
    }));
    told
}

/// Starts `job` behind an answer to `request`: no client waits for it.
pub(crate) fn start_behind<J: Judge>(
    mut job: Box<Job<J>>,
    site: &Arc<Site>,
    request: &Request,
    cause: BackgroundCause,
) {
    let Fetch { core, trace, background, .. } = &mut job.fetch;
    let trace = trace.get_or_insert_default();
    *background = Some(Box::new(BackgroundFetch::begin(core, site, request, cause, trace)));
    drop(start(job));
}

/// Counts the panic that ends a fetch, and only the fetch, whoever waits for it.
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
