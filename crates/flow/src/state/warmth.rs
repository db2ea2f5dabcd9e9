//! Warmth: what is to be fetched before a visitor asks for it, in a queue for each site; the pace
//! for each origin; and the hot list of each site.
//!
//! Nothing here fetches. It must never be in the way of a visitor: a task is taken only with a
//! permit of its origin's lane.

mod adaptive_window;
mod campaign;
mod hot_list;
mod site_warmth;
mod warm_lanes;
mod warm_queue;
mod warm_ticket;
mod warm_url;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Account, Counter, Counters, Limit, Limits, MemoryBudget};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::state::live_configuration::LiveConfiguration;

pub use self::campaign::{Campaign, CampaignCounts, WarmOutcome};
use self::hot_list::HotList;
pub use self::hot_list::HotUrl;
pub(crate) use self::hot_list::PageHits;
pub use self::site_warmth::SiteWarmth;
pub use self::warm_lanes::LaneListing;
pub(crate) use self::warm_lanes::{LaneTerms, WarmLanes, WarmPermit};
pub(crate) use self::warm_queue::WarmTask;
use self::warm_queue::{PushResult, WarmQueue};
pub(crate) use self::warm_ticket::{WarmReply, WarmTicket};
pub use self::warm_url::{VariantField, WarmUrl};

/// Campaigns that are remembered, those that are over the shortest.
const CAMPAIGNS_MAX: usize = 16;

/// Wishes that are added under one hold of the lock: cores wait for it between two tasks.
const ADDED_AT_ONCE: usize = 256;

/// The title of the campaign for what purges have removed.
const REWARMED: &str = "what was purged";
/// The least score of a page that comes back: that of one visit, half a day ago.
const VISITED: f64 = 0.5;
/// Times that a task asks a failing origin.
const TRIES: u8 = 3;
/// Steps of a score in the order of tasks.
const SCORE_STEPS: f64 = 16.0;

/// The state of all cores for warming.
#[derive(Debug)]
pub struct SharedWarmth {
    sites: Mutex<SiteQueues>,
    /// The account of the queues' memory.
    account: Arc<Account>,
    pub(crate) lanes: Arc<WarmLanes>,
    hot: Mutex<HashMap<Arc<str>, HotList>>,
    campaigns: Mutex<Vec<Arc<Campaign>>>,
    sequence: AtomicU64,
    /// Told of queues that no core works on.
    wanted: Notify,
    /// The daemon ends.
    ended: AtomicBool,
    /// The hot lists from before the start are known.
    loaded: AtomicBool,
    readings: Mutex<VecDeque<ReadingOrder>>,
    /// Behind a lock, as several threads count.
    counters: Mutex<Arc<Counters>>,
}

/// An order to read a page of a site.
pub(crate) struct ReadingOrder {
    pub(crate) url: WarmUrl,
    pub(crate) most_bytes: u64,
    /// Gets the body, or the reason for its lack.
    pub(crate) tell: oneshot::Sender<Result<Vec<u8>, String>>,
}

impl std::fmt::Debug for ReadingOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.url.fmt(f)
    }
}

/// The queues of all sites, by name.
type SiteQueues = HashMap<Arc<str>, SiteQueue>;

/// The queue of one site.
#[derive(Debug, Default)]
struct SiteQueue {
    tasks: WarmQueue,
    /// A core works on it.
    is_claimed: bool,
}

/// A page that was asked for, as a source of warming has it.
#[derive(Clone, Debug)]
pub struct WarmWish {
    /// The site's name.
    pub site: Arc<str>,
    /// The URL and variant.
    pub url: Arc<WarmUrl>,
    /// The heat: about the number of its visits.
    pub score: u64,
}

impl WarmWish {
    /// The wish for a page of a site's hot list.
    pub fn of_hot(site: &Arc<str>, HotUrl { url, score }: HotUrl) -> Self {
        let score = (score * SCORE_STEPS) as u64;
        Self { site: Arc::clone(site), url, score }
    }
}

impl SharedWarmth {
    /// The state of a daemon that has warmed nothing.
    pub(crate) fn new(counters: Arc<Counters>, memory: &Arc<MemoryBudget>) -> Self {
        Self {
            sites: Mutex::default(),
            account: Account::open(memory, u64::MAX),
            lanes: Arc::default(),
            hot: Mutex::default(),
            campaigns: Mutex::default(),
            sequence: AtomicU64::new(0),
            wanted: Notify::new(),
            ended: AtomicBool::new(false),
            loaded: AtomicBool::new(false),
            readings: Mutex::default(),
            counters: Mutex::new(counters),
        }
    }

    /// Begins a campaign with this title. It is open until [`Campaign::close`].
    pub fn begin(&self, title: impl Into<String>, now_ms: u64) -> Arc<Campaign> {
        let number = self.sequence.fetch_add(1, Ordering::Relaxed) + 1;
        let campaign = Campaign::new(title.into(), number, now_ms);
        let mut campaigns = self.campaigns.lock();
        if campaigns.len() >= CAMPAIGNS_MAX {
            let over = campaigns.iter().position(|own| own.is_over());
            campaigns.remove(over.unwrap_or(0));
        }
        campaigns.push(Arc::clone(&campaign));
        campaign
    }

    /// The campaigns, oldest first.
    pub fn campaigns(&self) -> Vec<Arc<Campaign>> {
        self.campaigns.lock().clone()
    }

    /// Adds wishes to a campaign. A site has at most `most` that wait; the coldest are dropped.
    pub fn add(
        &self,
        campaign: &Arc<Campaign>,
        wishes: impl IntoIterator<Item = WarmWish>,
        most: u64,
        now_ms: u64,
    ) {
        let mut wishes = wishes.into_iter().peekable();
        while wishes.peek().is_some() {
            let mut sites = self.sites.lock();
            for WarmWish { site, url, score } in wishes.by_ref().take(ADDED_AT_ONCE) {
                campaign.note_found();
                let campaign = Arc::clone(campaign);
                let task = WarmTask { site, url, failures: 0, score, round: 0, campaign };
                self.push(&mut sites, task, most, now_ms);
            }
        }
        let sites = self.sites.lock();
        let is_waiting = |queue: &SiteQueue| !queue.is_claimed && queue.tasks.len() > 0;
        let waiting = sites.values().filter(|queue| is_waiting(queue)).count();
        drop(sites);
        (0..waiting).for_each(|_| self.wanted.notify_one());
    }

    fn push(&self, sites: &mut SiteQueues, task: WarmTask, most: u64, now_ms: u64) {
        if self.ended.load(Ordering::Acquire) || task.campaign.is_stopped() {
            return self.note(&task.campaign, WarmOutcome::Dropped, now_ms);
        }
        let queue = sites.entry(Arc::clone(&task.site)).or_default();
        let pushed = queue.tasks.push(task, most);
        queue.tasks.charge(&self.account);
        match pushed {
            PushResult::Added => {}
            // It will be fresh once the other task is done.
            PushResult::Twice(task) => self.note(&task.campaign, WarmOutcome::Fresh, now_ms),
            PushResult::Full(task) => {
                self.counters.lock().limit(Limit::WarmUrls);
                self.note(&task.campaign, WarmOutcome::Dropped, now_ms);
            }
        }
    }

    /// Puts a task back whose origin has failed, behind hotter ones. It fails for good after some
    /// tries.
    fn try_again(&self, task: WarmTask, now_ms: u64) {
        let task =
            WarmTask { failures: task.failures.saturating_add(1), score: task.score / 2, ..task };
        if task.failures >= TRIES {
            return self.note(&task.campaign, WarmOutcome::Failed, now_ms);
        }
        self.put_back(task, now_ms);
    }

    /// Puts a task back.
    fn put_back(&self, task: WarmTask, now_ms: u64) {
        let mut sites = self.sites.lock();
        // It had a place before.
        let site = Arc::clone(&task.site);
        self.push(&mut sites, task, u64::MAX, now_ms);
        let is_claimed = sites.get(&site).is_some_and(|queue| queue.is_claimed);
        drop(sites);
        // The end of a claim tells of what remains.
        if !is_claimed {
            self.wanted.notify_one();
        }
    }

    /// Stops all campaigns: what waits is dropped, what is being fetched ends.
    pub fn stop(&self, now_ms: u64) {
        self.campaigns().iter().for_each(|campaign| campaign.stop(now_ms));
        let waiting: Vec<WarmTask> =
            self.sites.lock().values_mut().flat_map(|queue| queue.tasks.clear()).collect();
        waiting.iter().for_each(|task| self.note(&task.campaign, WarmOutcome::Dropped, now_ms));
    }

    /// Stops for good, as the daemon ends.
    pub fn end(&self, now_ms: u64) {
        self.ended.store(true, Ordering::Release);
        self.stop(now_ms);
    }

    /// Notes that the hot lists from before the start have been read.
    pub fn note_loaded(&self) {
        self.loaded.store(true, Ordering::Release);
    }

    /// Returns true if the hot lists from before the start have been read, so that they may be
    /// saved again.
    pub fn is_loaded(&self) -> bool {
        self.loaded.load(Ordering::Acquire)
    }

    /// Notes the fate of a task.
    pub(crate) fn note(&self, campaign: &Campaign, outcome: WarmOutcome, now_ms: u64) {
        self.counters.lock().inc(match outcome {
            WarmOutcome::Fetched => Counter::WarmFetched,
            WarmOutcome::Fresh => Counter::WarmFresh,
            WarmOutcome::Unstored => Counter::WarmUnstored,
            WarmOutcome::Failed => Counter::WarmFailed,
            WarmOutcome::Dropped => Counter::WarmDropped,
        });
        campaign.note_outcome(outcome, now_ms);
    }

    /// The body of a page as all visitors get it, without a content coding, of at most this many
    /// bytes.
    ///
    /// # Errors
    /// The reason why it cannot be had.
    pub async fn read(&self, url: WarmUrl, most_bytes: u64) -> Result<Vec<u8>, String> {
        let (tell, body) = oneshot::channel();
        self.readings.lock().push_back(ReadingOrder { url, most_bytes, tell });
        self.wanted.notify_one();
        body.await.unwrap_or_else(|_| Err("the daemon ends".to_owned()))
    }

    /// Removes the oldest order to read a page.
    pub(crate) fn next_reading(&self) -> Option<ReadingOrder> {
        self.readings.lock().pop_front()
    }

    /// Waits until a queue may want a core.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Claims a queue that no core works on, until the claim is dropped.
    pub(crate) fn claim(self: &Arc<Self>) -> Option<SiteClaim> {
        let mut sites = self.sites.lock();
        let (site, queue) =
            sites.iter_mut().find(|(_, queue)| !queue.is_claimed && queue.tasks.len() > 0)?;
        queue.is_claimed = true;
        Some(SiteClaim { warmth: Arc::clone(self), site: Arc::clone(site) })
    }

    /// The number of URLs that wait, by site.
    pub fn waiting(&self) -> Vec<(Arc<str>, u64)> {
        let sites = self.sites.lock();
        let waiting =
            sites.iter().map(|(site, queue)| (Arc::clone(site), queue.tasks.len() as u64));
        let mut waiting: Vec<_> = waiting.filter(|(_, count)| *count > 0).collect();
        waiting.sort();
        waiting
    }

    /// The lanes of origins that are or were warmed.
    pub fn lanes(&self, now_ms: u64) -> Vec<LaneListing> {
        self.lanes.list(now_ms)
    }

    /// Adds visits to a site's hot list. Returns them with the URLs' whole scores.
    pub fn note_visits(
        &self,
        site: &Arc<str>,
        visits: Vec<HotUrl>,
        most: u64,
        now_ms: u64,
    ) -> Vec<HotUrl> {
        let mut lists = self.hot.lock();
        let list = lists.entry(Arc::clone(site)).or_default();
        let add = |HotUrl { url, score }| {
            let score = list.add(&url, score, now_ms, most);
            HotUrl { url, score }
        };
        visits.into_iter().map(add).collect()
    }

    /// The scores of pages that have ended.
    fn end_pages(
        &self,
        site: &Arc<str>,
        pages: Vec<PageHits>,
        most: u64,
        now_ms: u64,
    ) -> Vec<HotUrl> {
        let mut lists = self.hot.lock();
        let list = lists.entry(Arc::clone(site)).or_default();
        let end = |page: PageHits| {
            let score = list.end(&page, now_ms, most);
            HotUrl { url: page.url, score }
        };
        pages.into_iter().map(end).collect()
    }

    /// Lets pages come back that have left the store: those that visitors have asked for, the
    /// hottest first.
    pub(crate) fn rewarm(
        &self,
        site: &Arc<str>,
        pages: Vec<PageHits>,
        limits: &Limits,
        now_ms: u64,
    ) {
        let pages = self.end_pages(site, pages, limits.hot_urls, now_ms);
        let hot = pages.into_iter().filter(|page| page.score >= VISITED);
        let mut wishes: Vec<WarmWish> = hot.map(|page| WarmWish::of_hot(site, page)).collect();
        if wishes.is_empty() {
            return;
        }
        wishes.sort_by_key(|wish| std::cmp::Reverse(wish.score));
        let is_under_way =
            |own: &Arc<Campaign>| own.title == REWARMED && !own.is_stopped() && !own.is_over();
        let campaign = self.campaigns().into_iter().rev().find(is_under_way);
        let campaign = campaign.unwrap_or_else(|| {
            let campaign = self.begin(REWARMED, now_ms);
            // This purge opens it, and any that comes before its end.
            campaign.close(now_ms);
            campaign
        });
        campaign.open();
        self.add(&campaign, wishes, limits.warm_urls, now_ms);
        campaign.close(now_ms);
    }

    /// At most `most` URLs of a site's hot list and of `others`, the hottest first.
    pub(crate) fn hottest_with(
        &self,
        site: &str,
        others: Vec<PageHits>,
        most: u64,
        now_ms: u64,
    ) -> Vec<HotUrl> {
        let mut lists = self.hot.lock();
        let list = lists.entry(site.into()).or_default();
        let visits = |page: PageHits| {
            let score = f64::from(list.visits(&page));
            HotUrl { url: page.url, score }
        };
        let others: Vec<HotUrl> = others.into_iter().map(visits).collect();
        let listed = list.hottest(now_ms, most);
        drop(lists);
        let mut both = HotList::default();
        let room = most.saturating_mul(4);
        for HotUrl { url, score } in listed.into_iter().chain(others) {
            both.add(&url, score, now_ms, room);
        }
        both.hottest(now_ms, most)
    }

    /// Forgets what belongs to sites and origins that `live` has no more.
    pub(crate) fn keep_to(&self, live: &LiveConfiguration) {
        let is_site = |name: &str| live.sites.listed.iter().any(|site| *site.name == *name);
        let is_origin = |name: &str| live.find_origin(|own| **own.name() == *name).is_some();
        self.hot.lock().retain(|site, _| is_site(site));
        let mut gone = Vec::new();
        self.sites.lock().retain(|site, queue| {
            let stays = is_site(site) || queue.is_claimed;
            if !stays {
                gone.extend(queue.tasks.clear());
            }
            stays
        });
        if !gone.is_empty() {
            let now_ms = rt::now().mono_ms;
            gone.iter().for_each(|task| self.note(&task.campaign, WarmOutcome::Dropped, now_ms));
        }
        self.lanes.retain(|lane| is_site(lane) || is_origin(lane));
    }
}

/// A core's claim to work on the queue of one site.
pub(crate) struct SiteClaim {
    warmth: Arc<SharedWarmth>,
    site: Arc<str>,
}

impl SiteClaim {
    /// Removes the hottest task.
    pub(crate) fn next(&self) -> Option<WarmTask> {
        self.warmth.sites.lock().get_mut(&self.site)?.tasks.pop()
    }

    /// Returns true if a task of an earlier round than `round` waits.
    pub(crate) fn has_before(&self, round: u32) -> bool {
        let sites = self.warmth.sites.lock();
        sites.get(&self.site).and_then(|queue| queue.tasks.round()).is_some_and(|own| own < round)
    }
}

impl Drop for SiteClaim {
    fn drop(&mut self) {
        let mut sites = self.warmth.sites.lock();
        let Some(queue) = sites.get_mut(&self.site) else { return };
        queue.is_claimed = false;
        match queue.tasks.len() {
            0 => _ = sites.remove(&self.site),
            _ => self.warmth.wanted.notify_one(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn warmth() -> (Arc<SharedWarmth>, Arc<Campaign>) {
        let memory = MemoryBudget::new(64 << 20, 64 << 20);
        let warmth = Arc::new(SharedWarmth::new(Arc::default(), &memory));
        let campaign = warmth.begin("", 0);
        (warmth, campaign)
    }

    fn wish(target: &[u8]) -> WarmWish {
        let url = WarmUrl {
            host: b"a".as_slice().into(),
            target: target.into(),
            secure: false,
            port: None,
            fields: Box::default(),
        };
        WarmWish { site: "a".into(), url: Arc::new(url), score: 1 }
    }

    fn is_wanted(warmth: &SharedWarmth) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(warmth.wanted()).as_mut().poll(&mut context) == Poll::Ready(())
    }

    #[test]
    fn a_task_that_waits_again_wants_no_core_before_the_end_of_the_claim() {
        let (warmth, campaign) = warmth();
        warmth.add(&campaign, [wish(b"/")], 9, 0);
        assert!(is_wanted(&warmth));
        let claim = warmth.claim().expect("a queue");
        let task = claim.next().expect("a task");
        WarmTicket::new(&warmth, task).wait_again(1);
        assert!(!is_wanted(&warmth));
        drop(claim);
        assert!(is_wanted(&warmth));
    }

    #[test]
    fn what_waits_counts_as_memory() {
        let (warmth, campaign) = warmth();
        let pages: Vec<_> = (0..2_000).map(|n| wish(format!("/page/{n}").as_bytes())).collect();
        warmth.add(&campaign, pages, 9_000, 0);
        let full = warmth.account.held();
        assert!(full > 2_000 * 250, "{full}");
        let claim = warmth.claim().expect("a queue");
        let taken: Vec<_> = (0..1_500).map(|_| claim.next().expect("a task")).collect();
        assert!(warmth.account.held() < full / 2);
        drop((taken, claim));
        warmth.stop(1);
        assert_eq!(warmth.account.held(), 0);
    }

    #[test]
    fn a_claim_sees_new_tasks_before_those_that_wait_again() {
        let (warmth, campaign) = warmth();
        warmth.add(&campaign, [wish(b"/old")], 9, 0);
        let claim = warmth.claim().expect("a queue");
        WarmTicket::new(&warmth, claim.next().expect("a task")).wait_again(1);
        assert!(!claim.has_before(1));
        warmth.add(&campaign, [wish(b"/new")], 9, 0);
        assert!(claim.has_before(1) && !claim.has_before(0));
        assert_eq!(&*claim.next().expect("a task").url.target, b"/new");
    }
}
