//! Bans: numbered invalidations by a test instead of by key (Varnish). A stored response remembers
//! the newest ban it has passed, so a hit compares two numbers, and only the first hit after a ban
//! tests. [`Cache::sweep`](crate::Cache::sweep) tests the other objects; a ban that all have passed
//! is completed. A response must never be served before it has passed every ban in force.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::ledger::Charge;
use crate::record::Record;
use crate::size;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use crate::tags::Tags;

/// Milliseconds for which a completed ban is kept. A fetch that began before the ban and ends
/// within this time is tested against it. The response of a later fetch is not stored.
const KEEP_MS: u64 = 60_000;

/// A test that selects stored responses. It must not call the cache.
pub trait Test: fmt::Debug + Send + Sync {
    /// Returns true if the response of this record is to be invalidated.
    fn matches(&self, record: &Record) -> bool;

    /// Returns false if no response of this key can match. A hit-for-miss mark has no response to
    /// test: the first ban for which this is true ends the mark.
    fn may_match(&self, _key: &[u8]) -> bool {
        true
    }
}

/// Selects stored responses. An object matches if it has one of `tags` and passes `test`; an absent
/// condition always matches.
#[derive(Clone, Debug, Default)]
pub struct BanSelector {
    /// The object has any of these tags.
    pub tags: Option<Tags>,
    /// The object passes this test. The test runs last.
    pub test: Option<Arc<dyn Test>>,
}

impl BanSelector {
    fn has(&self, record: &Record) -> bool {
        let tagged = |tags: &Tags| record.stored_tags().is_some_and(|theirs| tags.meets(theirs));
        self.tags.as_ref().is_none_or(tagged)
            && self.test.as_ref().is_none_or(|test| test.matches(record))
    }

    fn may_have(&self, key: &[u8]) -> bool {
        self.test.as_ref().is_none_or(|test| test.may_match(key))
    }
}

/// The input of a new ban.
#[derive(Clone, Debug, Default)]
pub struct NewBan {
    /// The least number of the ban, for bans that are numbered outside this store, by their
    /// position in a log. With zero the ban gets the next free number.
    pub number: u32,
    /// Opaque bytes from which the ban can be made again, for copies to another store.
    pub data: Box<[u8]>,
    /// The text for lists of bans. A later ban with an equal text and equal softness replaces this
    /// one.
    pub text: Box<str>,
    /// The stored responses to invalidate.
    pub which: BanSelector,
    /// True for a soft ban: matching responses become stale and keep their grace.
    pub soft: bool,
    /// The time of the ban, in milliseconds of the monotonic clock.
    pub now_ms: u64,
}

/// A ban in force.
#[derive(Debug)]
pub struct Ban {
    number: u32,
    text: Box<str>,
    data: Box<[u8]>,
    which: BanSelector,
    /// The time from which matching responses are stale, in milliseconds of the monotonic clock.
    /// `None` for a hard ban, which removes them.
    soft: Option<i64>,
    made_ms: u64,
    objects: Arc<AtomicU64>,
    finds: AtomicU64,
    _charge: Option<Charge>,
}

impl Ban {
    /// Bytes to reserve for one ban.
    pub(crate) fn cost(new: &NewBan) -> u64 {
        let tags = new.which.tags.as_ref().map_or(0, |tags| size::class(tags.len() * 8));
        size::arc::<Self>() + size::class(new.text.len()) + size::class(new.data.len()) + tags
    }

    /// The ban's number. Later bans have larger numbers.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// [`NewBan::data`].
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The ban's text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The time from which matching responses are stale, in milliseconds of the monotonic clock.
    /// `None` for a hard ban.
    pub fn stale_since_ms(&self) -> Option<i64> {
        self.soft
    }

    /// Returns true for a soft ban: matching responses only become stale.
    pub fn is_soft(&self) -> bool {
        self.soft.is_some()
    }

    /// The time of the ban, in milliseconds of the monotonic clock.
    pub fn made_ms(&self) -> u64 {
        self.made_ms
    }

    /// Stored responses that have matched so far. The number is final once the ban is completed.
    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// The counter of [`objects`](Self::objects), which outlives the ban.
    pub fn object_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.objects)
    }

    /// Matches as Varnish's xkey counts them: one for each pair of an object's tag and an equal tag
    /// of the ban. A soft ban counts an object once, if it was fresh.
    pub fn finds(&self) -> u64 {
        self.finds.load(Ordering::Relaxed)
    }

    /// Counts a matching response.
    pub(crate) fn met(&self, record: &Record) {
        let tags = self.which.tags.as_ref().zip(record.stored_tags());
        let finds = tags.map_or(1, |(tags, theirs)| tags.pairs_with(theirs));
        self.objects.fetch_add(1, Ordering::Relaxed);
        self.finds.fetch_add(finds, Ordering::Relaxed);
    }

    pub(crate) fn met_all(&self, objects: u64) {
        self.objects.fetch_add(objects, Ordering::Relaxed);
        self.finds.fetch_add(objects, Ordering::Relaxed);
    }
}

/// The bans against which something stored, or being fetched, may not have been tested.
#[derive(Clone, Debug, Default)]
struct List {
    /// Ordered by number.
    bans: VecDeque<Arc<Ban>>,
    newest: u32,
    /// Everything in the index has passed the bans up to this number.
    swept: u32,
    /// Bans up to this number may be missing from the list.
    forgotten: u32,
}

/// The result of testing an object against the bans.
#[derive(Debug)]
pub(crate) enum BanTestResult {
    /// The object may be used.
    Passed,
    /// The object is banned, by this ban. `None` for a ban that is no longer in the list.
    Banned(Option<Arc<Ban>>),
}

/// The bans of a cache. Tests take no lock: each change replaces the whole list.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    newest: AtomicU32,
    list: ArcSwap<List>,
    /// Serialises the changes to the list.
    changing: Mutex<()>,
}

impl Bans {
    /// The number of the newest ban, or zero before the first.
    pub(crate) fn newest(&self) -> u32 {
        self.newest.load(Ordering::Acquire)
    }

    fn list(&self) -> arc_swap::Guard<Arc<List>> {
        self.list.load()
    }

    /// Bans that may still match, oldest first, each with whether it is completed.
    pub(crate) fn all(&self) -> Vec<(Arc<Ban>, bool)> {
        let list = self.list();
        list.bans.iter().map(|ban| (Arc::clone(ban), ban.number <= list.swept)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.list().bans.len()
    }

    /// Returns true if something in the index has not been tested against every ban.
    pub(crate) fn is_pending(&self) -> bool {
        let list = self.list();
        list.swept < list.newest
    }

    pub(crate) fn swept(&self) -> u32 {
        self.list().swept
    }

    pub(crate) fn forgotten(&self) -> u32 {
        self.list().forgotten
    }

    /// Puts a ban in force, and returns whether it replaces an older one. Returns the input,
    /// without effect, if no number is left.
    pub(crate) fn add(
        &self,
        new: NewBan,
        charge: Option<Charge>,
    ) -> (Result<Arc<Ban>, Arc<Ban>>, bool) {
        let _changing = self.changing.lock();
        let shared = self.list();
        // What is stored may have passed all up to the newest: later bans have larger numbers.
        let number = shared.newest.saturating_add(1).max(new.number);
        let soft = new.soft.then(|| i64::try_from(new.now_ms).unwrap_or(i64::MAX));
        let ban = Arc::new(Ban {
            number,
            text: new.text,
            data: new.data,
            which: new.which,
            soft,
            made_ms: new.now_ms,
            objects: Arc::default(),
            finds: AtomicU64::new(0),
            _charge: charge,
        });
        if number == shared.newest {
            return (Err(ban), false);
        }
        let mut list = List::clone(&shared);
        // Objects that the older ban has not tested have not passed this one either.
        let before = list.bans.len();
        list.bans.retain(|old| old.text != ban.text || old.is_soft() != ban.is_soft());
        let replaced = list.bans.len() < before;
        list.bans.push_back(Arc::clone(&ban));
        list.newest = number;
        self.list.store(Arc::new(list));
        self.newest.store(number, Ordering::Release);
        (Ok(ban), replaced)
    }

    /// The bans that a response matches and has not been tested against, without any effect on the
    /// response. `None` if some of these bans have left the list, which counts as a hard ban.
    pub(crate) fn foresee(&self, record: &Record) -> Option<Vec<Arc<Ban>>> {
        Some(self.list().met(record, record.passed())?.map(Arc::clone).collect())
    }

    /// Returns true if no ban later than number `from` can match a response of `key`.
    pub(crate) fn exempts_key(&self, key: &[u8], from: u32) -> bool {
        let list = self.list();
        let at = list.bans.partition_point(|ban| ban.number <= from);
        from >= list.newest
            || from >= list.forgotten && !list.bans.range(at..).any(|ban| ban.which.may_have(key))
    }

    /// Tests a response against the bans it has not passed. Soft bans count a match only if the
    /// response is in the index.
    pub(crate) fn test(&self, record: &Record, is_live: bool) -> BanTestResult {
        let list = self.list();
        let from = record.passed();
        let Some(met) = list.met(record, from) else { return BanTestResult::Banned(None) };
        let mut softly = Vec::new();
        for ban in met {
            match ban.soft {
                Some(since_ms) => {
                    // Of concurrent tests, one makes the response stale and counts it.
                    if record.expire(since_ms) && is_live {
                        ban.finds.fetch_add(1, Ordering::Relaxed);
                    }
                    softly.push(ban);
                }
                None => return BanTestResult::Banned(Some(Arc::clone(ban))),
            }
        }
        // Of concurrent tests, one marks the response as passed and counts.
        if record.pass(list.newest) == from && is_live {
            for ban in softly {
                ban.objects.fetch_add(1, Ordering::Relaxed);
            }
        }
        BanTestResult::Passed
    }

    /// Tests a response that comes from a lower tier. Returns false if the response may not have
    /// passed bans that have left the list, because ban numbers were not continued.
    pub(crate) fn may_raise(&self, record: &Record) -> bool {
        record.passed() <= self.newest()
            && matches!(self.test(record, false), BanTestResult::Passed)
    }

    /// An empty list of bans, after the ban `newest`.
    pub(crate) fn after(newest: u32) -> Self {
        let list = List { newest, swept: newest, forgotten: newest, ..List::default() };
        Self {
            newest: AtomicU32::new(newest),
            list: ArcSwap::from_pointee(list),
            ..Self::default()
        }
    }

    /// Notes that everything in the index has passed the bans up to `number`.
    pub(crate) fn swept_to(&self, number: u32) {
        self.change(|list| list.swept = list.swept.max(number));
    }

    /// Forgets completed bans, oldest first, until at most `keep` are left.
    pub(crate) fn forget(&self, keep: usize) {
        self.change(|list| while list.bans.len() > keep && list.forget_one(|_| true) {});
    }

    /// Forgets bans up to the number `last` that were completed so long ago that hardly any fetch
    /// can have begun before them.
    pub(crate) fn forget_old(&self, now_ms: u64, last: u32) {
        let is_old = |ban: &Ban| ban.number <= last && now_ms.saturating_sub(ban.made_ms) > KEEP_MS;
        self.change(|list| while list.forget_one(is_old) {});
    }

    fn change(&self, change: impl FnOnce(&mut List)) {
        let _changing = self.changing.lock();
        let mut list = List::clone(&self.list());
        change(&mut list);
        self.list.store(Arc::new(list));
    }
}

impl List {
    /// Bans later than number `from` that a response matches. `None` if some of them may have left
    /// the list.
    fn met<'l>(
        &'l self,
        record: &'l Record,
        from: u32,
    ) -> Option<impl Iterator<Item = &'l Arc<Ban>>> {
        let at = self.bans.partition_point(|ban| ban.number <= from);
        let later = || self.bans.range(at..).filter(|ban| ban.which.has(record));
        (from >= self.forgotten).then(later)
    }

    /// Forgets the oldest ban if it is completed and `may` permits it.
    fn forget_one(&mut self, may: impl Fn(&Ban) -> bool) -> bool {
        let number = match self.bans.front() {
            Some(ban) if ban.number <= self.swept && may(ban) => ban.number,
            _ => return false,
        };
        self.forgotten = number;
        self.bans.pop_front();
        true
    }
}
