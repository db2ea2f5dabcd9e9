//! Core state: what the requests of one core share, and their access to the store.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, Counters, KeyBuf, Now};
use cache::{BeginOptions, CacheLookup};
use files::OpenFileCache;
use message::Request;
use origin::CorePool;
use policy::{ConnectionPeer, Notes};
use vcl::counts::Counts;
use vcl::sub::Sub;

use crate::key::{self, KeyAddition, select_by};
use crate::state::configuration_holder::CoreConfiguration;
use crate::state::crawlers::SignatureQuota;
use crate::state::finish::{CoreLog, Records};
use crate::state::gate::AuthMemory;
use crate::state::invalidate::{InvalidationMode, Outcome};
use crate::state::live_configuration::LiveRef;
use crate::state::request_context::RequestContext;
use crate::state::shared::SharedState;
use crate::state::site::Site;
use crate::state::slices::SliceFetcher;
use crate::state::task_slots::TaskSlots;
use crate::state::term::Term;
use crate::state::tier;
use crate::state::tier::MissStep;
use crate::state::vcl::CoreVcl;
use crate::state::verification::CoreVerification;
use purge::{Cause, Invalidation, InvalidationError, InvalidationTarget, Sites, Url};

/// Scratch buffers that a core's requests reuse one after the other.
#[derive(Default)]
pub(crate) struct ScratchBuffers {
    pub(crate) key: RefCell<KeyBuf>,
    /// A request's cookies.
    pub(crate) cookies: Cell<Vec<u8>>,
}

/// The state of one core: the owner of what its requests and fetches share without a lock.
///
/// A core is a pinned thread. Its worker makes one `CoreState` when it starts and holds it in an
/// `Rc` until it ends; connections, waiting requests and fetch tasks hold clones. It holds the
/// connections to origins, the open files, the granted authentications, the log buffer, and the
/// state of programs; all that cores share is behind [`CoreState::shared`].
///
/// The calls, in their order:
///
/// 1. [`CoreState::with_records`], once, on the thread that will use it.
/// 2. [`CoreState::live`] before each request. It takes over a replaced configuration; the request
///    keeps the returned one until its reply has been sent.
/// 3. [`CoreState::start`](Self::start) for each request. It never waits. Its result is a reply, or
///    a request whose [`run`](crate::WaitingRequest::run) is awaited by the connection.
/// 4. [`CoreLog::answered`] once a reply has been sent or cut off.
/// 5. [`CoreState::sweep`] once a second. [`CoreLog::keep_flushing`] runs beside it for as long as
///    the core does, and [`CoreLog::flush`] ends it.
///
/// What must never happen: it reaches another thread; a `RefCell` of it is borrowed across an
/// await; a request mixes two configurations; `start` or `sweep` blocks the thread.
pub struct CoreState {
    /// The state that all cores share.
    pub shared: Arc<SharedState>,
    /// This core's counters.
    pub counters: Arc<Counters>,
    /// State of this core's programs.
    pub(crate) vcl: CoreVcl,
    pool: RefCell<CorePool>,
    configuration: CoreConfiguration,
    pub(crate) scratch: ScratchBuffers,
    pub(crate) files: RefCell<OpenFileCache>,
    pub(crate) slice_fetcher: SliceFetcher,
    /// The account of memory reserved for no client: by background fetches, and by slices that are
    /// fetched ahead.
    pub(crate) background: Arc<Account>,
    /// The copies of requests under way.
    pub(crate) mirrors: TaskSlots,
    /// The comparisons of hits with the origin.
    pub(crate) verification: CoreVerification,
    /// The cache of granted authentications.
    pub(crate) auth_memory: AuthMemory,
    /// The signatures of agents that may be verified yet.
    pub(crate) signatures: SignatureQuota,
    /// This core's log buffer and counts.
    pub log: CoreLog,
}

impl CoreState {
    /// A core over `shared` that writes no records.
    pub fn new(shared: Arc<SharedState>) -> Rc<Self> {
        Self::with_records(shared, &Records::default(), 0)
    }

    /// Core number `index` over `shared`, which writes its records to `records`.
    pub fn with_records(shared: Arc<SharedState>, records: &Records, index: usize) -> Rc<Self> {
        let counters = shared.counters.register();
        let log = CoreLog::new(records, index, shared.tallies.register(), &counters);
        let configuration = CoreConfiguration::of(&shared.in_force);
        log.want(shared.in_force.wanted());
        Rc::new(Self {
            pool: RefCell::new(CorePool::with_shared_pool(
                Arc::clone(&shared.shared_pool),
                Arc::clone(&counters),
                &shared.live().limits,
            )),
            log,
            configuration,
            scratch: ScratchBuffers::default(),
            slice_fetcher: SliceFetcher::default(),
            background: Account::open(shared.cache.memory(), u64::MAX),
            mirrors: TaskSlots::default(),
            verification: CoreVerification::default(),
            signatures: SignatureQuota::default(),
            auth_memory: AuthMemory::new(
                Account::open(shared.cache.memory(), u64::MAX),
                &shared.verified_passwords,
                &counters,
            ),
            files: RefCell::default(),
            vcl: CoreVcl::new(&shared.vcl),
            shared,
            counters,
        })
    }

    /// The configuration in force.
    pub fn live(&self) -> LiveRef {
        self.configuration.live(|in_force, before, next| {
            if next.limits != before.limits {
                let pool = self.pool().with_limits(&next.limits);
                *self.pool.borrow_mut() = pool;
            }
            self.log.want(in_force.wanted());
        })
    }

    /// A number that grows whenever [`CoreState::live`] would return another configuration.
    pub fn version(&self) -> u64 {
        self.configuration.version()
    }

    /// This core's origin connections.
    pub(crate) fn pool(&self) -> CorePool {
        self.pool.borrow().clone()
    }

    /// This core's counters under Varnish's names.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.vcl.counts
    }

    /// The time by both clocks.
    pub fn now(&self) -> Now {
        rt::now()
    }

    /// Microseconds of the monotonic clock, for durations.
    pub fn micros(&self) -> u64 {
        rt::micros()
    }

    /// Does the core's maintenance, once a second.
    pub fn sweep(&self, now: Now) {
        // Releases a replaced configuration even if no request comes.
        self.live();
        self.shared.invalidator.sweep_bans(now.mono_ms);
        self.shared.early_removal.continue_round(&self.shared.cache, now.mono_ms);
        tier::look_after(&self.shared.cache, now.mono_ms);
        self.log.forget(now.mono_ms);
        // The spare memory keeps its program, which may have been discarded.
        drop(self.vcl.spare_turn.take());
        self.pool().sweep(now.mono_ms);
        self.files.borrow_mut().sweep(now.mono_ms);
        self.shared.failing.sweep(now.mono_ms);
        self.auth_memory.sweep(now.mono_ms);
        self.shared.slices.sweep();
    }

    /// Makes the key of a request: scheme, host, port and target of its canonical form, then the
    /// policy's additions.
    pub(crate) fn make_key(
        &self,
        site: &Site,
        request: &Request,
        notes: &Notes,
        extra: Option<&dyn KeyAddition>,
        key: &mut KeyBuf,
    ) {
        key::make_key(&self.shared.seed, &*site.policy, request, notes, extra, key);
    }

    /// The invalidation of the responses stored for a request.
    pub(crate) fn removal(
        &self,
        site: &Site,
        request: &Request,
        notes: &Notes,
        now: Now,
    ) -> Invalidation {
        let invalidator = &self.shared.invalidator;
        let target = match &site.extra {
            // What its vcl_hash adds to the key of a reader's request is not known here.
            Some(extra) if extra.program().uses().own.has(Sub::Hash) => {
                let client = notes.client.unwrap_or(ConnectionPeer::Local);
                InvalidationTarget::Url(Url::of(request, client))
            }
            _ => {
                let mut key = self.scratch.key.borrow_mut();
                self.make_key(site, request, notes, None, &mut key);
                InvalidationTarget::key(&key)
            }
        };
        let removal = invalidator.invalidation(target, false, Sites::Every, now);
        removal.by(Cause::change(request))
    }

    /// The number of this core's invalidations that were passed to a journal and not waited for.
    pub(crate) fn recorded(&self) -> u64 {
        self.counters.value(Counter::InvalidationsRecorded)
    }

    /// Invalidates without waiting.
    pub(crate) fn invalidate(
        &self,
        ctx: &RequestContext<'_>,
        batch: [Invalidation; 1],
    ) -> Result<Outcome, InvalidationError> {
        self.shared.invalidator.invalidate_at_once(
            Some(ctx.live),
            batch,
            ctx.now,
            InvalidationMode::Beside,
        )
    }

    pub(crate) fn find(&self, key: &KeyBuf, request: &Request, now: Now) -> CacheLookup {
        self.shared.cache.lookup(key, &mut select_by(&request.headers), now.mono_ms)
    }

    /// Asks the store which request fetches this key.
    pub(crate) fn begin(
        &self,
        ctx: &RequestContext<'_>,
        key: &KeyBuf,
        options: BeginOptions<'_>,
    ) -> MissStep {
        let mut select = select_by(&ctx.request.headers);
        self.shared.cache.begin(key, &mut select, options, self.now().mono_ms)
    }

    /// The term of an entry about an origin's missing ranges: from now, for `rangeless_ttl`.
    pub(crate) fn rangeless_term(&self) -> Term {
        let from_ms = self.now().mono_ms;
        Term { from_ms, until_ms: from_ms.saturating_add(self.live().limits.rangeless_ttl) }
    }

    /// Notes the result of a fetch for the store: `Some(unreachable)` if it failed.
    pub(crate) fn note_fetch(&self, key_hash: u64, failed: Option<bool>) {
        self.shared.failing.note(key_hash, failed, self.now().mono_ms);
    }
}
