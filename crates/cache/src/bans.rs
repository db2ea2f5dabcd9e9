//! Bans: invalidations that are not by key. They are in force when they have been made, and every
//! stored response is tested against them before it is used again.
//!
//! A ban has a number; a response remembers the newest one it has passed. So a hit compares two
//! numbers, and the first hit after a ban tests. [`Cache::sweep`](crate::Cache::sweep) tests the
//! rest and gives their memory back; a ban that all have passed is over.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::ledger::Charge;
use crate::record::Record;
use crate::size;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering};
use crate::tags::Tags;

/// Milliseconds that a ban is kept after it is over. In this time the response of a fetch that
/// began before the ban is tested against the ban. A response that comes later is not stored.
const KEEP_MS: u64 = 60_000;

/// A test that selects stored responses. It must not call the cache.
pub trait Test: fmt::Debug + Send + Sync {
    /// Returns true if the response of this record is to be invalidated.
    fn matches(&self, record: &Record) -> bool;

    /// Returns false if it never matches a response of this key. A mark, which is no response and
    /// has nothing else to be tested by, ends by what this does not exclude.
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
    /// The object passes this test, which is asked last.
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

/// A ban to be made.
#[derive(Clone, Debug, Default)]
pub struct NewBan {
    /// The least number it may have, where bans are numbered outside of this store: its place in a
    /// log. With zero it has the next one.
    pub number: u32,
    /// Opaque bytes from which the ban can be made again. They are kept for the code that copies
    /// bans to another store.
    pub data: Box<[u8]>,
    /// For lists of bans. A later ban of the same words, as soft as this one, takes its place.
    pub text: Box<str>,
    /// The stored responses to invalidate.
    pub which: BanSelector,
    /// True if the responses only become stale and keep their grace.
    pub soft: bool,
    /// When it is made: milliseconds of the monotonic clock.
    pub now_ms: u64,
}

/// A ban in force.
#[derive(Debug)]
pub struct Ban {
    number: u32,
    text: Box<str>,
    data: Box<[u8]>,
    which: BanSelector,
    /// The time from which responses that the ban meets are stale, in milliseconds of the monotonic
    /// clock; `None` if they leave.
    soft: Option<i64>,
    made_ms: u64,
    objects: AtomicU64,
    finds: AtomicU64,
    _charge: Option<Charge>,
}

impl Ban {
    /// Bytes to reserve for one.
    pub(crate) fn cost(new: &NewBan) -> u64 {
        let tags = new.which.tags.as_ref().map_or(0, |tags| size::class(tags.len() * 8));
        size::arc::<Self>() + size::class(new.text.len()) + size::class(new.data.len()) + tags
    }

    /// Its number: later bans have larger ones.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// [`NewBan::data`].
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Its words.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Since when what it meets is stale, in milliseconds of the monotonic clock; `None` if that
    /// leaves.
    pub fn stale_since_ms(&self) -> Option<i64> {
        self.soft
    }

    /// Returns true if responses that the ban meets only become stale.
    pub fn is_soft(&self) -> bool {
        self.soft.is_some()
    }

    /// When it was made: milliseconds of the monotonic clock.
    pub fn made_ms(&self) -> u64 {
        self.made_ms
    }

    /// Stored responses it has met so far; all of them once it is over.
    pub fn objects(&self) -> u64 {
        self.objects.load(Ordering::Relaxed)
    }

    /// The same as Varnish's xkey counts: each response once for every pair of a tag of its own and
    /// an equal one that is meant. A soft ban counts a response once, if it was fresh.
    pub fn finds(&self) -> u64 {
        self.finds.load(Ordering::Relaxed)
    }

    /// Counts a response that leaves.
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

/// Bans that something stored, or being fetched, may not have been tested by.
#[derive(Clone, Debug, Default)]
struct List {
    /// In the order of their numbers.
    bans: VecDeque<Arc<Ban>>,
    newest: u32,
    /// Everything in the index has passed the bans up to this one.
    swept: u32,
    /// Bans up to this one may be gone from the list.
    forgotten: u32,
}

/// The result of a test against the bans.
#[derive(Debug)]
pub(crate) enum BanTestResult {
    /// The object may be used.
    Yes,
    /// It has been banned; `None` for a ban that is no longer known.
    No(Option<Arc<Ban>>),
}

/// The bans of a cache. Who tests takes no lock: the list is replaced as a whole.
#[derive(Debug, Default)]
pub(crate) struct Bans {
    newest: AtomicU32,
    list: ArcSwap<List>,
    /// Held by who replaces the list.
    changing: Mutex<()>,
}

impl Bans {
    /// The number of the newest ban; zero when there was none.
    pub(crate) fn newest(&self) -> u32 {
        self.newest.load(Ordering::Acquire)
    }

    fn list(&self) -> arc_swap::Guard<Arc<List>> {
        self.list.load()
    }

    /// Bans that may still matter, the oldest first, each with whether it is over.
    pub(crate) fn all(&self) -> Vec<(Arc<Ban>, bool)> {
        let list = self.list();
        list.bans.iter().map(|ban| (Arc::clone(ban), ban.number <= list.swept)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.list().bans.len()
    }

    /// Returns true if something in the index may not have been tested against every ban.
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

    /// Puts a ban in force, and says whether it takes an older one's place. When no number is left
    /// the ban comes back, and is not.
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
            objects: AtomicU64::new(0),
            finds: AtomicU64::new(0),
            _charge: charge,
        });
        if number == shared.newest {
            return (Err(ban), false);
        }
        let mut list = List::clone(&shared);
        // Whatever the older one is for has not passed this one either.
        let before = list.bans.len();
        list.bans.retain(|old| old.text != ban.text || old.is_soft() != ban.is_soft());
        let replaced = list.bans.len() < before;
        list.bans.push_back(Arc::clone(&ban));
        list.newest = number;
        self.list.store(Arc::new(list));
        self.newest.store(number, Ordering::Release);
        (Ok(ban), replaced)
    }

    /// The bans that a response meets and has not been tested against, without anything being done
    /// about it; `None` if some of those are no longer known, which counts as a hard one.
    pub(crate) fn foresee(&self, record: &Record) -> Option<Vec<Arc<Ban>>> {
        Some(self.list().met(record, record.passed())?.map(Arc::clone).collect())
    }

    /// Returns true if no ban later than number `from` is meant for responses of `key`, as far as
    /// the key says.
    pub(crate) fn exempts_key(&self, key: &[u8], from: u32) -> bool {
        let list = self.list();
        let at = list.bans.partition_point(|ban| ban.number <= from);
        from >= list.newest
            || from >= list.forgotten && !list.bans.range(at..).any(|ban| ban.which.may_have(key))
    }

    /// Tests a response against the bans it has not passed. One in the index is counted with the
    /// soft ones that it meets.
    pub(crate) fn test(&self, record: &Record, is_live: bool) -> BanTestResult {
        let list = self.list();
        let from = record.passed();
        let Some(met) = list.met(record, from) else { return BanTestResult::No(None) };
        let mut softly = Vec::new();
        for ban in met {
            match ban.soft {
                Some(since_ms) => {
                    // Of several who test at the same time one makes it stale.
                    if record.expire(since_ms) && is_live {
                        ban.finds.fetch_add(1, Ordering::Relaxed);
                    }
                    softly.push(ban);
                }
                None => return BanTestResult::No(Some(Arc::clone(ban))),
            }
        }
        // Of several who test at the same time one is the first to say that all are passed.
        if record.pass(list.newest) == from && is_live {
            for ban in softly {
                ban.objects.fetch_add(1, Ordering::Relaxed);
            }
        }
        BanTestResult::Yes
    }

    /// Tests what comes up from a lower tier. It may not have passed bans that are not known here:
    /// numbers have not been continued then.
    pub(crate) fn may_raise(&self, record: &Record) -> bool {
        record.passed() <= self.newest() && matches!(self.test(record, false), BanTestResult::Yes)
    }

    /// No bans; `newest` is the newest that there was.
    pub(crate) fn after(newest: u32) -> Self {
        let list = List { newest, swept: newest, forgotten: newest, ..List::default() };
        Self {
            newest: AtomicU32::new(newest),
            list: ArcSwap::from_pointee(list),
            ..Self::default()
        }
    }

    /// Everything in the index has passed the bans up to `number`.
    pub(crate) fn swept_to(&self, number: u32) {
        self.change(|list| list.swept = list.swept.max(number));
    }

    /// Forgets bans that are over until there are no more than `keep`, the oldest first.
    pub(crate) fn forget(&self, keep: usize) {
        self.change(|list| while list.bans.len() > keep && list.forget_one(|_| true) {});
    }

    /// Forgets bans that have been over for so long that hardly a fetch began before them, up to
    /// the number `last`.
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
    /// Bans later than number `from` that a response meets; `None` if some of them may be
    /// forgotten.
    fn met<'l>(
        &'l self,
        record: &'l Record,
        from: u32,
    ) -> Option<impl Iterator<Item = &'l Arc<Ban>>> {
        let at = self.bans.partition_point(|ban| ban.number <= from);
        let later = || self.bans.range(at..).filter(|ban| ban.which.has(record));
        (from >= self.forgotten).then(later)
    }

    /// Forgets the oldest ban if it is over and `may` says so.
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
