//! One core's state: what its requests share, and the store as they ask it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use base::{Account, Counter, Counters, KeyBuf, Now};
use cache::{BeginOptions, CacheLookup};
use files::OpenFileCache;
use message::Request;
use origin::CorePool;
use policy::Notes;
use vcl::counts::Counts;

use crate::key::{self, select_by};
use crate::state::configuration_holder::CoreConfiguration;
use crate::state::finish::{CoreLog, Records};
use crate::state::gate::AuthMemory;
use crate::state::invalidate::{InvalidationMode, Outcome};
use crate::state::live_configuration::LiveRef;
use crate::state::request_context::RequestContext;
use crate::state::shared::SharedState;
use crate::state::site::Site;
use crate::state::slices::SliceFetcher;
use crate::state::term::Term;
use crate::state::tier;
use crate::state::tier::MissStep;
use crate::state::vcl::CoreVcl;
use purge::{Cause, Invalidation, InvalidationError, InvalidationTarget, Sites};

/// Room that a core's requests lend each other.
#[derive(Default)]
pub(crate) struct ScratchBuffers {
    pub(crate) key: RefCell<KeyBuf>,
    /// For the cookies of a request.
    pub(crate) cookies: Cell<Vec<u8>>,
}

/// One core's state. Not shared between threads.
pub struct CoreState {
    /// State that all cores share.
    pub shared: Arc<SharedState>,
    /// This core's counters.
    pub counters: Arc<Counters>,
    /// State of this core's programs.
    pub(crate) vcl: CoreVcl,
    pool: RefCell<CorePool>,
    taken_over: CoreConfiguration,
    pub(crate) room: ScratchBuffers,
    pub(crate) files: RefCell<OpenFileCache>,
    pub(crate) desk: SliceFetcher,
    /// The account of what this core holds for no client: of fetches in the background, and of
    /// slices that are brought ahead.
    pub(crate) background: Arc<Account>,
    /// The memory of who was let in at gates.
    pub(crate) gates: AuthMemory,
    /// This core's records and what goes with them.
    pub log: CoreLog,
}

impl CoreState {
    /// A core over `shared` that nobody wants records of.
    pub fn new(shared: Arc<SharedState>) -> Rc<Self> {
        Self::with_records(shared, &Records::default(), 0)
    }

    /// Core number `index` over `shared`, whose records go to `records`.
    pub fn with_records(shared: Arc<SharedState>, records: &Records, index: usize) -> Rc<Self> {
        let counters = shared.counters.register();
        let log = CoreLog::new(records, index, shared.tallies.register(), &counters);
        let taken_over = CoreConfiguration::of(&shared.in_force);
        log.want(shared.in_force.wanted());
        Rc::new(Self {
            pool: RefCell::new(CorePool::with_shared_pool(
                Arc::clone(&shared.depot),
                Arc::clone(&counters),
                &shared.live().limits,
            )),
            log,
            taken_over,
            room: ScratchBuffers::default(),
            desk: SliceFetcher::default(),
            background: Account::open(shared.cache.memory(), u64::MAX),
            gates: AuthMemory::new(
                Account::open(shared.cache.memory(), u64::MAX),
                &shared.right,
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
        self.taken_over.live(|in_force, before, next| {
            if next.limits != before.limits {
                let pool = self.pool().with_limits(&next.limits);
                *self.pool.borrow_mut() = pool;
            }
            self.log.want(in_force.wanted());
        })
    }

    /// Grows with every change of [`Core::live`].
    pub fn version(&self) -> u64 {
        self.taken_over.version()
    }

    /// This core's origin connections.
    pub(crate) fn pool(&self) -> CorePool {
        self.pool.borrow().clone()
    }

    /// This core's counters under Varnish's names.
    pub(crate) fn counts(&self) -> &Arc<Counts> {
        &self.vcl.counts
    }

    /// Both clocks.
    pub fn now(&self) -> Now {
        rt::now()
    }

    /// Microseconds of the monotonic clock, for measuring.
    pub fn micros(&self) -> u64 {
        rt::micros()
    }

    /// Chores of once a second.
    pub fn sweep(&self, now: Now) {
        // A configuration that was replaced ends here too where no request comes.
        self.live();
        self.shared.door.sweep_bans(now.mono_ms);
        self.shared.early_removal.continue_round(&self.shared.cache, now.mono_ms);
        tier::look_after(&self.shared.cache, now.mono_ms);
        self.log.forget(now.mono_ms);
        // It keeps its program, which may have been discarded.
        drop(self.vcl.spare_turn.take());
        self.pool().sweep(now.mono_ms);
        self.files.borrow_mut().sweep(now.mono_ms);
        self.shared.failing.sweep(now.mono_ms);
        self.gates.sweep(now.mono_ms);
        self.shared.slices.sweep();
    }

    /// The key of a request: scheme, host, port and target of its canonical form, and what policy
    /// adds.
    pub(crate) fn make_key(&self, site: &Site, request: &Request, notes: &Notes, key: &mut KeyBuf) {
        key::make_key(&self.shared.seed, &*site.policy, request, notes, key);
    }

    /// The removal of what is stored for a request.
    pub(crate) fn removal(
        &self,
        site: &Site,
        request: &Request,
        notes: &Notes,
        now: Now,
    ) -> Invalidation {
        let mut key = self.room.key.borrow_mut();
        self.make_key(site, request, notes, &mut key);
        let removal =
            self.shared.door.invalidation(InvalidationTarget::key(&key), false, Sites::Every, now);
        removal.by(Cause::change(request))
    }

    /// The number of this core's invalidations that went to a journal, and were not waited for.
    pub(crate) fn recorded(&self) -> u64 {
        self.counters.value(Counter::InvalidationsRecorded)
    }

    /// Carries an invalidation out without waiting.
    pub(crate) fn invalidate(
        &self,
        ask: &RequestContext<'_>,
        batch: [Invalidation; 1],
    ) -> Result<Outcome, InvalidationError> {
        self.shared.door.invalidate_at_once(
            Some(ask.live),
            batch,
            ask.now,
            InvalidationMode::Beside,
        )
    }

    pub(crate) fn find(&self, key: &KeyBuf, request: &Request, now: Now) -> CacheLookup {
        self.shared.cache.lookup(key, &mut select_by(&request.headers), now.mono_ms)
    }

    /// Asks the store who fetches this key now.
    pub(crate) fn begin(
        &self,
        ask: &RequestContext<'_>,
        key: &KeyBuf,
        options: BeginOptions<'_>,
    ) -> MissStep {
        let mut select = select_by(&ask.request.headers);
        self.shared.cache.begin(key, &mut select, options, self.now().mono_ms)
    }

    /// The term of a memory that begins now and lasts `rangeless_ttl`.
    pub(crate) fn rangeless_term(&self) -> Term {
        let from_ms = self.now().mono_ms;
        Term { from_ms, until_ms: from_ms.saturating_add(self.live().limits.rangeless_ttl) }
    }

    /// Notes what a fetch for the store came to: `Some(unreachable)` when it failed.
    pub(crate) fn note_fetch(&self, key_hash: u64, failed: Option<bool>) {
        self.shared.failing.note(key_hash, failed, self.now().mono_ms);
    }
}
