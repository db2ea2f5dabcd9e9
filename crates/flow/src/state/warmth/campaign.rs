//! Campaign: URLs that are warmed together, and the count of what became of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Faults that are kept.
const FAULTS_MAX: usize = 20;

/// The fate of a URL that was to be warmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmOutcome {
    /// It was fetched, and is stored.
    Fetched,
    /// A fresh response was stored already.
    Fresh,
    /// Its response may not be stored for all visitors, or does not come from an origin.
    Unstored,
    /// Its origin failed.
    Failed,
    /// It had no place, or the campaign was stopped.
    Dropped,
}

/// A campaign.
#[derive(Debug)]
pub struct Campaign {
    /// Its purpose or sources, in words.
    pub title: String,
    /// Its number, which counts from 1.
    pub number: u64,
    /// Its beginning, in milliseconds of the monotonic clock.
    pub began_ms: u64,
    ended_ms: AtomicU64,
    counts: CampaignCounters,
    /// Sources from which further URLs may come.
    open: AtomicU64,
    /// Sources that could not be read, the first ones.
    faults: Mutex<Vec<String>>,
    stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct CampaignCounters {
    found: AtomicU64,
    fetched: AtomicU64,
    fresh: AtomicU64,
    unstored: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

/// The counts of a campaign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CampaignCounts {
    /// URLs so far.
    pub found: u64,
    /// URLs that were fetched and are stored.
    pub fetched: u64,
    /// URLs with a fresh stored response.
    pub fresh: u64,
    /// URLs whose responses are not for all visitors.
    pub unstored: u64,
    /// URLs whose origin failed.
    pub failed: u64,
    /// URLs without a place, or behind the stop.
    pub dropped: u64,
}

impl CampaignCounts {
    /// URLs whose fate is known.
    pub fn done(&self) -> u64 {
        self.fetched + self.fresh + self.unstored + self.failed + self.dropped
    }
}

impl Campaign {
    pub(super) fn new(title: String, number: u64, now_ms: u64) -> Arc<Self> {
        Arc::new(Self {
            title,
            number,
            began_ms: now_ms,
            ended_ms: AtomicU64::new(0),
            counts: CampaignCounters::default(),
            open: AtomicU64::new(1),
            faults: Mutex::default(),
            stopped: AtomicBool::new(false),
        })
    }

    /// The counts so far.
    pub fn counts(&self) -> CampaignCounts {
        let counts = &self.counts;
        let load = |count: &AtomicU64| count.load(Ordering::Acquire);
        // Found last, so that it is never less than what is done.
        let mut read = CampaignCounts {
            found: 0,
            fetched: load(&counts.fetched),
            fresh: load(&counts.fresh),
            unstored: load(&counts.unstored),
            failed: load(&counts.failed),
            dropped: load(&counts.dropped),
        };
        read.found = load(&counts.found);
        read
    }

    /// Opens one more source, which is to be closed.
    pub fn open(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    /// Closes a source: no further URLs come from it.
    pub fn close(&self, now_ms: u64) {
        let less = |open: u64| open.checked_sub(1);
        _ = self.open.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        self.note_end(now_ms);
    }

    /// Notes that something could not be read.
    pub fn note_fault(&self, fault: String) {
        let mut faults = self.faults.lock();
        if faults.len() < FAULTS_MAX {
            faults.push(fault);
        }
    }

    /// Sources that could not be read, the first ones.
    pub fn faults(&self) -> Vec<String> {
        self.faults.lock().clone()
    }

    /// Returns true if it has been stopped: its sources need not be read any further.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Returns true if the fate of all its URLs is known, and no further ones come.
    pub fn is_over(&self) -> bool {
        let counts = self.counts();
        self.open.load(Ordering::Acquire) == 0 && counts.done() >= counts.found
    }

    /// Milliseconds that it has taken so far, or took.
    pub fn took_ms(&self, now_ms: u64) -> u64 {
        let end_ms = match self.ended_ms.load(Ordering::Acquire) {
            0 => now_ms,
            ended_ms => ended_ms,
        };
        end_ms.saturating_sub(self.began_ms)
    }

    pub(super) fn stop(&self, now_ms: u64) {
        self.stopped.store(true, Ordering::Release);
        self.note_end(now_ms);
    }

    pub(super) fn note_found(&self) {
        self.counts.found.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn note_outcome(&self, outcome: WarmOutcome, now_ms: u64) {
        let counts = &self.counts;
        let count = match outcome {
            WarmOutcome::Fetched => &counts.fetched,
            WarmOutcome::Fresh => &counts.fresh,
            WarmOutcome::Unstored => &counts.unstored,
            WarmOutcome::Failed => &counts.failed,
            WarmOutcome::Dropped => &counts.dropped,
        };
        count.fetch_add(1, Ordering::AcqRel);
        self.note_end(now_ms);
    }

    fn note_end(&self, now_ms: u64) {
        if self.is_over() {
            let end = now_ms.max(1);
            _ = self.ended_ms.compare_exchange(0, end, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
