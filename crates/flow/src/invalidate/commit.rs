//! Commit of invalidations: each batch is recorded in the journal, propagated to other caches, and
//! put in force, in this order.
//!
//! Must never put a part of a batch in force.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Counter, Now};
use cache::ObjectEnding;
use purge::{Cause, Level, PeerCaches, PreparedPropagation, Propagation};
use smallvec::SmallVec;

use super::hot_pages::HotPages;
use super::plan::{Bans, InvalidationPlan, Planner};
use super::{
    Id, Invalidation, InvalidationError, InvalidationTarget, Journal, JournalWrite,
    ResponseSelector, Sites,
};
use crate::state::invalidate::{
    InvalidationMode, InvalidationWait, Invalidator, Outcome, RecentInvalidation,
};
use crate::state::live_configuration::LiveConfiguration;

/// Plans of a batch, which take effect together or not at all.
type Plans = SmallVec<[InvalidationPlan; 1]>;

/// Invalidations beyond which a batch is carried out on another thread.
const AT_ONCE_MAX: usize = 16;

/// Index slots that [`InvalidationMode::Counted`] examines: some milliseconds. Responses beyond
/// them are not counted.
const COUNT_PLACES: usize = 64 * 1024;

impl Invalidator {
    /// An invalidation made at `now`, which has not been applied.
    pub fn invalidation(
        &self,
        what: InvalidationTarget,
        soft: bool,
        sites: Sites,
        now: Now,
    ) -> Invalidation {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let id = Id { node: self.node, sequence };
        let cause = Cause::default();
        Invalidation { id, at_unix_ms: now.unix_ms, sites, soft, what, cause }
    }

    /// Records invalidations in `journal` before they take effect; false if there is a journal
    /// already.
    pub fn record_invalidations(&self, journal: Arc<dyn Journal>) -> bool {
        self.journal.set(journal).is_ok()
    }

    /// Propagates local invalidations to `others`; false if there is a receiver already.
    pub fn tell_others(&self, others: Arc<dyn PeerCaches>) -> bool {
        self.others.set(others).is_ok()
    }

    /// Invalidates all that `batch` selects, or nothing. Once this returns no core uses the
    /// selected responses. `patience` bounds the wait in milliseconds for the count of all selected
    /// responses. Site names are looked up in `live`. A journal has recorded the batch, and other
    /// nodes have confirmed it as far as `patience` demands.
    ///
    /// # Errors
    /// The journal refuses the batch, or a site is unknown.
    pub async fn invalidate(
        self: &Arc<Self>,
        live: Option<&Arc<LiveConfiguration>>,
        batch: impl IntoIterator<Item = Invalidation>,
        now: Now,
        wait: impl Into<InvalidationWait>,
    ) -> Result<Outcome, InvalidationError> {
        let InvalidationWait { count_ms, level } = wait.into();
        let plans = self.plan(live, batch, now)?;
        let is_recorded = self.journal.get().is_some();
        let long =
            is_recorded || plans.len() > AT_ONCE_MAX || plans.iter().any(InvalidationPlan::is_long);
        let mut committed = if long {
            // On another thread: it may wait for the journal, and with many bans it completes the
            // oldest first.
            let invalidator = Arc::clone(self);
            let admission = rt::run_blocking(move || {
                if plans.iter().any(InvalidationPlan::is_long) {
                    invalidator.cache.complete_bans(now.mono_ms);
                }
                let mut committed = invalidator.enter(plans, BatchSource::New, level)?;
                invalidator.wait_for_record(&mut committed).map(|()| committed)
            });
            admission.await?
        } else {
            self.enter(plans, BatchSource::New, level)?
        };
        if let Some(propagation) = committed.propagation.take() {
            propagation.wait().await.map_err(InvalidationError::NotEverywhere)?;
        }
        let Some(newest) = committed.newest_ban() else { return Ok(committed.outcome(false)) };
        let sweep = self.sweep(newest, now.mono_ms);
        let swept = rt::time::timeout(Duration::from_millis(count_ms), sweep).await;
        Ok(committed.outcome(swept.is_err()))
    }

    /// Invalidates on a core's thread, which must not wait.
    ///
    /// # Errors
    /// The journal refuses the batch, unless `mode` disregards that; or a site is unknown.
    pub(crate) fn invalidate_at_once(
        self: &Arc<Self>,
        live: Option<&Arc<LiveConfiguration>>,
        batch: impl IntoIterator<Item = Invalidation>,
        now: Now,
        mode: InvalidationMode,
    ) -> Result<Outcome, InvalidationError> {
        let plans = self.plan(live, batch, now)?;
        let source = if mode == InvalidationMode::Regardless {
            BatchSource::Regardless
        } else {
            BatchSource::New
        };
        let committed = self.enter(plans, source, None)?;
        if let Some(newest) = committed.newest_ban() {
            let all = mode == InvalidationMode::Counted && self.sweep_first(now.mono_ms);
            if !all {
                self.sweep_beside(newest, now.mono_ms);
            }
        }
        Ok(committed.outcome(false))
    }

    /// Applies a record of a journal, unless its identity was applied before. `number` is the
    /// lowest number of its ban if the journal numbers bans; otherwise 0.
    ///
    /// # Errors
    /// The record cannot be read, or its site is unknown here.
    pub fn replay(
        self: &Arc<Self>,
        record: &[u8],
        number: u32,
        now: Now,
    ) -> Result<Outcome, InvalidationError> {
        self.apply_record(record, BatchSource::Replayed(number), now)
    }

    /// Applies a record like [`Invalidator::replay`], at the start of a process: memory is empty,
    /// so no sweep is needed. Beyond the limit on bans, the oldest are forgotten.
    ///
    /// # Errors
    /// Those of `replay`.
    pub(crate) fn replay_unswept(&self, record: &[u8], now: Now) -> Result<(), InvalidationError> {
        let plans = self.plan(None, [Invalidation::decode(record)?], now)?;
        self.cache.complete_bans(now.mono_ms);
        self.enter(plans, BatchSource::Replayed(0), None).map(drop)
    }

    /// Applies an invalidation of another node, unless it was applied before. The journal records
    /// it; it is not propagated again.
    ///
    /// # Errors
    /// The record cannot be read, or its site is unknown here.
    pub fn apply_told(
        self: &Arc<Self>,
        record: &[u8],
        now: Now,
    ) -> Result<Outcome, InvalidationError> {
        self.apply_record(record, BatchSource::Told, now)
    }

    /// Has each stored response revalidated before use: an invalidation was missed that may select
    /// it.
    pub fn doubt(self: &Arc<Self>, now: Now) {
        let all = self.invalidation(
            InvalidationTarget::Many(ResponseSelector::Everything),
            true,
            Sites::Every,
            now,
        );
        // The ban's effect is that later fetches count as older.
        let done = self.plan(None, [all], now).and_then(|plans| {
            let committed = self.enter(plans, BatchSource::Told, None)?;
            committed.newest_ban().into_iter().for_each(|ban| self.sweep_beside(ban, now.mono_ms));
            Ok(())
        });
        if let Err(why) = done {
            base::tell!(Error, "larder: cluster: {why}");
        }
        self.trust.doubt(now.mono_ms);
    }

    /// Waits until all invalidations in force survive this process, as far as they are recorded.
    ///
    /// # Errors
    /// A sentence with the reason why they may not.
    pub fn settle(&self) -> Result<(), String> {
        self.journal.get().map_or(Ok(()), |journal| journal.wait())
    }

    /// Puts a ban of another store in force, from its [`cache::Ban::data`] and with its number or a
    /// higher one, even if its invalidation was applied here.
    ///
    /// # Errors
    /// The data cannot be read, or its site is unknown here.
    pub fn restore_ban(
        self: &Arc<Self>,
        data: &[u8],
        number: u32,
        now: Now,
    ) -> Result<(), InvalidationError> {
        self.apply_record(data, BatchSource::Restored(number), now).map(|_| ())
    }

    /// Counts on a core's thread. Returns true if everything stored was tested.
    fn sweep_first(&self, now_ms: u64) -> bool {
        let mut lost = HotPages::of(self, now_ms);
        let all = self.cache.sweep_first(COUNT_PLACES, &mut |object, ending| {
            if let Some(lost) = &mut lost {
                lost.note(object, ending);
            }
        });
        lost.into_iter().for_each(HotPages::rewarm);
        all
    }

    fn apply_record(
        self: &Arc<Self>,
        record: &[u8],
        source: BatchSource,
        now: Now,
    ) -> Result<Outcome, InvalidationError> {
        let plans = self.plan(None, [Invalidation::decode(record)?], now)?;
        let committed = self.enter(plans, source, None)?;
        if let Some(newest) = committed.newest_ban() {
            self.sweep_beside(newest, now.mono_ms);
        }
        Ok(committed.outcome(false))
    }

    fn plan(
        &self,
        live: Option<&Arc<LiveConfiguration>>,
        batch: impl IntoIterator<Item = Invalidation>,
        now: Now,
    ) -> Result<Plans, InvalidationError> {
        let planner = Planner { invalidator: self, live, now };
        batch.into_iter().map(|invalidation| planner.plan(invalidation)).collect()
    }

    /// The only path of invalidations into the store.
    fn enter(
        &self,
        mut plans: Plans,
        source: BatchSource,
        level: Option<Level>,
    ) -> Result<CommittedBatch, InvalidationError> {
        let mut applied = self.applied.lock();
        if !source.is_restored() {
            plans.retain(|plan| !applied.has(plan.invalidation.id));
        }
        let (journal, mut number) = match source {
            BatchSource::New | BatchSource::Regardless | BatchSource::Told => {
                (self.journal.get(), 0)
            }
            BatchSource::Replayed(number) | BatchSource::Restored(number) => (None, number),
        };
        let propagation = self.prepare(&plans, source)?;
        let mut recording = None;
        if let Some(journal) = journal
            && !plans.is_empty()
        {
            let batch: Vec<_> = plans.iter().map(|plan| &plan.invalidation).collect();
            match journal.record(&batch) {
                Ok(begun) => {
                    number = begun.least_ban().unwrap_or(0);
                    recording = Some(begun);
                }
                Err(why) => {
                    self.count_refused(batch.len() as u64);
                    if source == BatchSource::New {
                        return Err(InvalidationError::Refused {
                            journal: journal.name().to_owned(),
                            why,
                        });
                    }
                }
            }
        }
        plans.retain(|plan| applied.insert(plan.invalidation.id) || source.is_restored());
        // The journal's order is the order of effects.
        let order = (journal.is_some() || propagation.is_some()).then_some(applied);
        let mut committed = CommittedBatch::default();
        let mut lost = HotPages::of_now(self);
        for plan in plans {
            let selected =
                plan.keys.iter().flat_map(|key| self.cache.peek(key, &mut |_, _| ()).variants);
            if let Some(lost) = &mut lost {
                let soft = plan.invalidation.soft;
                let ending = if soft { ObjectEnding::MadeStale } else { ObjectEnding::Removed };
                let fresh = selected.filter(|variant| lost.is_fresh(&variant.object));
                let fresh: SmallVec<[_; 4]> = fresh.collect();
                fresh.iter().for_each(|variant| lost.note(&variant.object, ending));
            }
            let (selection, soft) = (plan.selection(), plan.invalidation.soft);
            let (unix_ms, earlier) = (plan.invalidation.at_unix_ms, committed.bans.len());
            let objects = plan.carry_out(&self.cache, &mut number, &mut committed.bans);
            committed.objects += objects;
            let bans = &committed.bans[earlier..];
            self.recent.note(RecentInvalidation::new(unix_ms, selection, soft, objects, bans));
        }
        if let Some(recording) = &mut recording {
            recording.took_effect(committed.newest_ban());
        }
        committed.recording = recording;
        committed.propagation = propagation.map(|prepared| prepared.tell(level));
        drop(order);
        lost.into_iter().for_each(HotPages::rewarm);
        Ok(committed)
    }

    /// The batch for other caches, unless it came from them.
    fn prepare(
        &self,
        plans: &Plans,
        source: BatchSource,
    ) -> Result<Option<Box<dyn PreparedPropagation>>, InvalidationError> {
        let is_own = matches!(source, BatchSource::New | BatchSource::Regardless);
        let Some(others) = self.others.get().filter(|_| !plans.is_empty()) else {
            return Ok(None);
        };
        if !is_own {
            others.note_local_effect();
            return Ok(None);
        }
        let batch: Vec<_> = plans.iter().map(|plan| &plan.invalidation).collect();
        match others.prepare(&batch) {
            Ok(prepared) => Ok(prepared),
            Err(why) if source == BatchSource::New => {
                self.count_refused(batch.len() as u64);
                Err(InvalidationError::Refused { journal: "cluster".to_owned(), why })
            }
            Err(_) => {
                self.count_refused(batch.len() as u64);
                Ok(None)
            }
        }
    }

    /// Waits until the journal has recorded the batch, if it records it.
    fn wait_for_record(&self, committed: &mut CommittedBatch) -> Result<(), InvalidationError> {
        let Some((journal, recording)) = self.journal.get().zip(committed.recording.take()) else {
            return Ok(());
        };
        recording.wait().map_err(|why| {
            self.count_refused(1);
            InvalidationError::NotRecorded { journal: journal.name().to_owned(), why }
        })
    }

    /// Waits until all invalidations so far survive this process, as far as they are recorded.
    pub(crate) async fn wait_for_records(self: &Arc<Self>) {
        let invalidator = Arc::clone(self);
        let waiting = rt::run_blocking(move || {
            if let Some(journal) = invalidator.journal.get()
                && let Err(why) = journal.wait()
            {
                invalidator.count_refused(1);
                base::tell!(
                    Error,
                    "larder: an invalidation may be undone at the next start: {why}"
                );
            }
        });
        waiting.await;
        if let Some(propagation) = self.others.get().and_then(|others| others.outstanding()) {
            // The response has no place for the result; the cluster's counters show it.
            _ = propagation.wait().await;
        }
    }

    fn count_refused(&self, invalidations: u64) {
        self.counters.add(Counter::InvalidationsRefused, invalidations);
    }
}

/// The source of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchSource {
    /// A caller, which can report a refusal.
    New,
    /// A caller that needs the effect, recorded or not.
    Regardless,
    /// Another node.
    Told,
    /// A record of a journal, with the lowest number of its ban.
    Replayed(u32),
    /// A ban of another store, with its number.
    Restored(u32),
}

impl BatchSource {
    fn is_restored(self) -> bool {
        matches!(self, Self::Restored(_))
    }
}

/// A batch in force.
#[derive(Default)]
struct CommittedBatch {
    /// Stored responses that its keys selected.
    objects: u64,
    bans: Bans,
    recording: Option<Box<dyn JournalWrite>>,
    propagation: Option<Box<dyn Propagation>>,
}

impl CommittedBatch {
    fn newest_ban(&self) -> Option<u32> {
        self.bans.iter().map(|ban| ban.number()).max()
    }

    fn outcome(&self, pending: bool) -> Outcome {
        let banned: u64 = self.bans.iter().map(|ban| ban.objects()).sum();
        let finds: u64 = self.bans.iter().map(|ban| ban.finds()).sum();
        Outcome {
            objects: self.objects + banned,
            finds: self.objects + finds,
            pending,
            recorded: self.recording.is_some() || self.propagation.is_some(),
        }
    }
}
