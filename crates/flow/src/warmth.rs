//! Warming: carries out the tasks of [`SharedWarmth`](crate::SharedWarmth) on the cores, as
//! requests without a client.
//!
//! A task takes the course of a visitor's request without cookies and credentials, so that it
//! stores what that would, and nothing else. It goes as far as the store without asking anybody;
//! what is missing there or near its end is fetched once the origin's lane has a place. It must
//! never pass the store, be answered to anybody, or hold what a visitor's request waits for before
//! it has its place.

mod full_lanes;
mod page_reading;
mod warming_core;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Now;
use message::{Request, target};
use observe::CipherSuite;
use observe::record::Kind;
use origin::Origin;
use policy::ConnectionPeer;
use vcl::backend::Backend;
use vcl::program::Instance;

use self::full_lanes::FullLanes;
use self::page_reading::drain;
use self::warming_core::{PageFetch, WarmStep};
use crate::disposition::Start;
use crate::stage::Entrant;
use crate::stage_row;
use crate::state::client::Client;
use crate::state::core::CoreState;
use crate::state::downstream::Downstream;
use crate::state::finish::{RequestStart, TransactionFacts};
use crate::state::live_configuration::{LiveConfiguration, LiveRef};
use crate::state::reply::{CacheOutcome, Reply};
use crate::state::request_context::RequestConnection;
use crate::state::site::Site;
use crate::state::site_context::SiteContext;
use crate::state::vcl::link::BackendOrigin;
use crate::state::warmth::{
    LaneTerms, SiteClaim, WarmOutcome, WarmPermit, WarmReply, WarmTask, WarmTicket,
};
use crate::vcl::start as program;

/// The pause between two looks at an origin whose connections are in use. The end of a fetch ends
/// it early.
const PAUSE: Duration = Duration::from_millis(50);

impl CoreState {
    /// Carries out what is to be warmed, for as long as the core runs.
    pub async fn keep_warming(self: &Rc<Self>) {
        let warmth = &self.shared.warmth;
        loop {
            while let Some(order) = warmth.next_reading() {
                let core = Rc::clone(self);
                rt::spawn_local(async move { core.read_page(order).await });
            }
            while let Some(claim) = warmth.claim() {
                let core = Rc::clone(self);
                rt::spawn_local(async move { core.work_off(claim).await });
            }
            warmth.wanted().await;
        }
    }

    /// Finds the request of a task, and takes the permit to ask its origin.
    ///
    /// # Errors
    /// The reason for which it gets none.
    async fn take_place(
        self: &Rc<Self>,
        ticket: &mut WarmTicket,
        claim: &SiteClaim,
        full: &mut FullLanes,
    ) -> Result<WarmRequest, PlaceRefusal> {
        loop {
            let (task, now_ms) = (ticket.task(), self.now().mono_ms);
            // Nothing is done for a task whose lane is known to be full.
            if let Some(lane) = only_lane(&self.live(), task)
                && let Some(round) = full.round_after(&lane, task.round, now_ms)
            {
                return Err(PlaceRefusal::Again { round });
            }
            let warm = WarmRequest::find(self, ticket).map_err(PlaceRefusal::End)?;
            if let Some(permit) = warm.place(self, task, claim, full).await? {
                full.note_entry(&warm.lane);
                ticket.enter(permit);
                return Ok(warm);
            }
            // Another configuration may have other limits.
            full.clear();
        }
    }

    /// Carries out the tasks of a site, the hottest first.
    async fn work_off(self: &Rc<Self>, claim: SiteClaim) {
        let mut full = FullLanes::default();
        while let Some(task) = claim.next() {
            let mut ticket = WarmTicket::new(&self.shared.warmth, task);
            let warm = match self.take_place(&mut ticket, &claim, &mut full).await {
                Ok(warm) => warm,
                Err(refusal) => {
                    match refusal {
                        PlaceRefusal::End(outcome) => ticket.end(outcome),
                        PlaceRefusal::Again { round } => ticket.wait_again(round),
                    }
                    // Many tasks may need no fetch, and others want the core, too.
                    rt::yield_now().await;
                    continue;
                }
            };
            let core = Rc::clone(self);
            rt::spawn_local(async move { warm.carry_out(&core, ticket).await });
        }
    }
}

/// The reason for which a task gets no place in a lane.
enum PlaceRefusal {
    /// It needs none, or has been stopped.
    End(WarmOutcome),
    /// There has been none for some time, or others come before it: it waits again, in this round.
    Again { round: u32 },
}

/// The request of a task.
struct WarmRequest {
    live: LiveRef,
    site: Arc<Site>,
    /// As a client would send it.
    request: Request,
    /// The name of its lane.
    lane: Arc<str>,
    /// The origins that it may be sent to.
    origins: Vec<Arc<Origin>>,
}

impl WarmRequest {
    /// The request of a task whose response must be fetched.
    ///
    /// # Errors
    /// The outcome of a task that needs no fetch.
    fn find(core: &Rc<CoreState>, ticket: &WarmTicket) -> Result<Self, WarmOutcome> {
        let task = ticket.task();
        let live = core.live();
        let mut request = task.url.request();
        let site = live.sites.by_host.find(&request.host).ok_or(WarmOutcome::Unstored)?;
        let site = Arc::clone(site);
        // Its visitors have certificates.
        if site.client_check.is_some() {
            return Err(WarmOutcome::Unstored);
        }
        if let Some(instance) = &site.vcl {
            let origins = origins_of(instance);
            return Ok(Self { lane: Arc::clone(&site.name), live, site, request, origins });
        }
        target::canonical(&mut request);
        let mut warm = Self { lane: Arc::clone(&site.name), live, site, request, origins: vec![] };
        match warm.look(core) {
            (WarmStep::End(outcome), _) => return Err(outcome),
            (_, Some(origin)) => {
                warm.lane = Arc::clone(origin.name());
                warm.origins.push(origin);
            }
            (_, None) => return Err(WarmOutcome::Unstored),
        }
        Ok(warm)
    }

    /// Waits for a place in the lane: visitors come first. A lane without a place is noted in
    /// `full`, which says how long the wait is. `None` if another configuration is in force now.
    async fn place(
        &self,
        core: &Rc<CoreState>,
        task: &WarmTask,
        claim: &SiteClaim,
        full: &mut FullLanes,
    ) -> Result<Option<WarmPermit>, PlaceRefusal> {
        let (lanes, round) = (&core.shared.warmth.lanes, task.round);
        loop {
            let now_ms = core.now().mono_ms;
            if task.campaign.is_stopped() {
                return Err(PlaceRefusal::End(WarmOutcome::Dropped));
            }
            // Its origins may have been replaced.
            if !Arc::ptr_eq(&core.live(), &self.live) {
                return Ok(None);
            }
            if let Some(permit) = lanes.try_enter(&self.lane, self.terms(now_ms), now_ms) {
                return Ok(Some(permit));
            }
            full.note(&self.lane, round, now_ms);
            if let Some(round) = full.round_after(&self.lane, round, now_ms) {
                return Err(PlaceRefusal::Again { round });
            }
            // A new task may have another origin.
            if claim.has_before(round) {
                return Err(PlaceRefusal::Again { round });
            }
            _ = rt::time::timeout(PAUSE, lanes.wait()).await;
        }
    }

    fn terms(&self, now_ms: u64) -> LaneTerms {
        let limits = &self.live.limits;
        let connections = self.origins.iter().map(|origin| connections_of(origin)).min();
        let share = connections.flatten().map_or(u64::MAX, |all| all * limits.warm_share / 100);
        // A sick backend is not asked, and nobody waits for it.
        let is_full = self.origins.iter().any(|origin| origin.is_full(now_ms));
        let is_any = self.origins.is_empty() || self.origins.iter().any(|own| own.has_room(now_ms));
        LaneTerms { most: share.min(limits.warm_fetches).max(1), has_room: is_any && !is_full }
    }

    /// Fetches.
    async fn carry_out(self, core: &Rc<CoreState>, mut ticket: WarmTicket) {
        let (now, began_us) = (core.now(), core.micros());
        let PageFetch { waiting, request } = match &self.site.vcl {
            Some(instance) => match self.start_program(core, instance, now) {
                Ok(fetch) => fetch,
                Err(outcome) => return ticket.end(outcome),
            },
            None => match self.look(core).0 {
                WarmStep::End(outcome) => return ticket.end(outcome),
                WarmStep::Fetch(fetch) => *fetch,
                WarmStep::Renew(renewal) => return renewal.begin(core, ticket),
            },
        };
        let account = Arc::clone(&core.background);
        let connection = RequestConnection::of(&account);
        // Boxed, as in a connection.
        let mut reply = Box::pin(waiting.run(core, &request, None, connection)).await;
        if let Some(trace) = reply.about.trace.clone() {
            ticket.follow(&trace);
        }
        let (failed, mut body_bytes) = (reply.about.failure.is_some(), 0);
        ticket.note_reply(match reply.served {
            CacheOutcome::Fetched { stored: true, .. } | CacheOutcome::Revalidated if !failed => {
                let drained = drain(&mut reply).await;
                body_bytes = drained.unwrap_or_default();
                if drained.is_some() { WarmReply::Stored } else { WarmReply::Failed }
            }
            _ if failed => WarmReply::Failed,
            _ => WarmReply::Other,
        });
        self.record(core, &reply, &request, RecordTimes { now, began_us, body_bytes });
    }

    /// Takes the request of a declared site as far as possible without asking anybody. Also returns
    /// the origin that would be asked.
    fn look(&self, core: &Rc<CoreState>) -> (WarmStep, Option<Arc<Origin>>) {
        let site_ctx = SiteContext { live: &self.live, site: &self.site };
        // The policy changes the request, which may be looked at again.
        let mut request = self.request.clone();
        warming_core::look(core, site_ctx, &mut request)
    }

    /// Starts the request in its site's program.
    fn start_program(
        &self,
        core: &Rc<CoreState>,
        instance: &Arc<Instance>,
        now: Now,
    ) -> Result<PageFetch, WarmOutcome> {
        let site_ctx = SiteContext { live: &self.live, site: &self.site };
        let client = &client_of(core);
        let downstream = &Downstream::Warmth;
        let entrant = Entrant { site_ctx, client, now, downstream };
        let mut request = self.request.clone();
        if stage_row::pass(core, &entrant, &mut request).is_none() {
            return Err(WarmOutcome::Unstored);
        }
        match program::start(core, instance, &entrant, &request) {
            Start::Slow(waiting) if waiting.is_fetch() => Ok(PageFetch { waiting, request }),
            Start::Slow(_) => Err(WarmOutcome::Unstored),
            Start::Reply(reply) => Err(match reply.served {
                CacheOutcome::Hit | CacheOutcome::Stale => WarmOutcome::Fresh,
                _ => WarmOutcome::Unstored,
            }),
        }
    }

    /// Writes the record of a fetch.
    fn record(&self, core: &CoreState, reply: &Reply, request: &Request, times: RecordTimes) {
        let RecordTimes { now, began_us, body_bytes } = times;
        let started = RequestStart {
            at: now,
            began_us,
            read_us: began_us,
            policy_us: began_us,
            head_bytes: 0,
            suite: CipherSuite::default(),
        };
        core.log.beside(
            reply,
            &TransactionFacts {
                request: Some(request),
                body_out: body_bytes,
                kind: Kind::Warm,
                ..TransactionFacts::new(NOBODY, &self.live, &started)
            },
        );
    }
}

/// The lane of a task, if all pages of its site have the same.
fn only_lane(live: &LiveConfiguration, task: &WarmTask) -> Option<Arc<str>> {
    let site = live.sites.by_host.find(&task.url.host)?;
    match (&site.vcl, &*site.origins) {
        (Some(_), _) => Some(Arc::clone(&site.name)),
        (None, [only]) => Some(Arc::clone(only.origin.name())),
        _ => None,
    }
}

/// The times of a record.
struct RecordTimes {
    now: Now,
    began_us: u64,
    body_bytes: u64,
}

/// The client of a task. It is in no list of addresses, so that nothing is stored that only some
/// clients may see.
const NOBODY: ConnectionPeer = ConnectionPeer::Unnamed(None);

/// The client side of a task.
fn client_of(core: &CoreState) -> Client<'_> {
    let account = &core.background;
    Client { peer: NOBODY, near: false, secured: None, vcl_connection: None, account }
}

/// The connections that an origin has at most; `None` without a limit.
fn connections_of(origin: &Origin) -> Option<u64> {
    let config = origin.config();
    let servers = config.servers.iter().filter(|server| !server.backup).count().max(1);
    match config.max_connections {
        0 => None,
        most => Some(u64::from(most).saturating_mul(servers as u64)),
    }
}

/// The origins of a program's backends.
fn origins_of(instance: &Instance) -> Vec<Arc<Origin>> {
    let leaf = |backend: Backend| match backend {
        Backend::Leaf(leaf) => Some(Arc::clone(&BackendOrigin::of(&leaf)?.origin)),
        _ => None,
    };
    instance.backends().into_iter().filter_map(leaf).collect()
}
