//! State that the connections of one thread share: what is asked next, and what has come of it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use rapidhash::RapidHashMap;

use super::facts::Precondition;
use super::failure::LoadFailure;
use super::http1::SCRATCH;
use super::plan::{LoadPlan, PreparedRequest};
use super::recorder::{MeasuredResponse, Recorder};
use super::stream::{ConnectionTimes, TransferCounts};
use crate::settings::MeasurementEnd;
use crate::urls::Picks;

/// Times of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasurementTimes {
    /// The moment at which the load begins.
    pub(crate) begin: Instant,
    /// The moment from which it is measured.
    pub(crate) start: Instant,
    /// The moment at which the measurement ends, if it has a time.
    pub(crate) end: Option<Instant>,
    /// Parts of the measurement that are counted each by itself, all of one length.
    pub(crate) windows: usize,
}

impl MeasurementTimes {
    /// The beginning of each window and the end of the last one; the beginning alone if the end is
    /// not known.
    pub(crate) fn edges(&self) -> Vec<Instant> {
        let Some(end) = self.end else {
            return vec![self.start];
        };
        let whole = end.saturating_duration_since(self.start);
        let part = |nth: usize| whole.mul_f64(nth as f64 / self.windows.max(1) as f64);
        (0..=self.windows).map(|nth| self.start + part(nth)).collect()
    }
}

/// Words of threads to each other and to whoever watches them.
#[derive(Debug)]
pub(crate) struct SharedStatus {
    /// True once everything shall end.
    pub(crate) stop: AtomicBool,
    /// Requests that may still be begun.
    pub(crate) left: AtomicU64,
    /// Responses and errors so far, of all threads.
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Latencies since somebody looked.
    pub(crate) recent: Mutex<Histogram<u64>>,
}

/// One thread's state.
pub(crate) struct Thread {
    pub(crate) plan: Arc<LoadPlan>,
    pub(crate) shared: Arc<SharedStatus>,
    pub(crate) times: MeasurementTimes,
    pub(crate) scratch: RefCell<Vec<u8>>,
    picks: RefCell<Picks>,
    turn: Cell<usize>,
    recorders: RefCell<Vec<Recorder>>,
    /// Requests that wait for their responses.
    pub(crate) in_flight: Cell<u64>,
    /// The end of the last response of a measurement.
    pub(crate) last: Cell<Instant>,
    /// True once nothing more will be due: a log is at its end.
    pub(crate) exhausted: Cell<bool>,
    /// The last validator of each request, where requests are conditional.
    validators: RefCell<RapidHashMap<u32, Precondition>>,
    /// Responses, errors and latencies that those who watch were not told of yet.
    fresh: RefCell<(u64, u64, Histogram<u64>)>,
    told: Cell<Instant>,
}

/// Time between two words to those who watch.
const TOLD_EACH: Duration = Duration::from_millis(100);

impl Thread {
    pub(crate) fn new(
        plan: Arc<LoadPlan>,
        shared: Arc<SharedStatus>,
        times: MeasurementTimes,
        picks: Picks,
    ) -> Result<Self, String> {
        let recorders = (0..times.windows).map(|_| Recorder::new()).collect::<Result<_, _>>()?;
        Ok(Self {
            plan,
            shared,
            times,
            scratch: RefCell::new(vec![0; SCRATCH]),
            picks: RefCell::new(picks),
            turn: Cell::new(0),
            recorders: RefCell::new(recorders),
            in_flight: Cell::new(0),
            last: Cell::new(times.start),
            exhausted: Cell::new(false),
            validators: RefCell::default(),
            fresh: RefCell::new((0, 0, Histogram::new(2).map_err(|error| error.to_string())?)),
            told: Cell::new(times.begin),
        })
    }

    /// The next request of the list.
    pub(crate) fn next(&self) -> Option<&PreparedRequest> {
        let number = self.picks.borrow_mut().next()?;
        self.request_by_number(number)
    }

    /// Request `number` of the list.
    pub(crate) fn request_by_number(&self, number: u32) -> Option<&PreparedRequest> {
        let turn = self.turn.get();
        self.turn.set(turn.wrapping_add(1));
        self.plan.ask(number, turn)
    }

    /// The condition that request `number` is asked with: what was received last is not wanted
    /// again (RFC 9110 13.1).
    pub(crate) fn condition(&self, number: u32) -> Option<Precondition> {
        if !self.plan.settings.conditional {
            return None;
        }
        self.validators.borrow().get(&number).cloned()
    }

    /// True if somebody ended the measurement before its time.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// True if nothing more is begun at `now`.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.times.end.is_some_and(|end| now >= end) || self.is_stopped()
    }

    /// Takes one from the count of requests or sessions, where there is one; false if none is left.
    /// What is begun before the measurement does not count.
    pub(crate) fn take_one(&self, now: Instant) -> bool {
        if !matches!(self.plan.settings.until, MeasurementEnd::Count(_)) || now < self.times.start {
            return true;
        }
        let left = &self.shared.left;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Lets `with` count in the window of `when`; nothing is counted outside of the measurement.
    pub(crate) fn record(&self, when: Instant, with: impl FnOnce(&mut Recorder)) {
        let Some(since) = when.checked_duration_since(self.times.start) else {
            return;
        };
        let at = match self.times.end {
            None => 0,
            Some(end) => {
                let whole = end.saturating_duration_since(self.times.start).as_nanos().max(1);
                since.as_nanos() * self.times.windows as u128 / whole
            }
        };
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if let Some(recorder) = self.recorders.borrow_mut().get_mut(at) {
            with(recorder);
        }
    }

    /// Counts the end of a request that was due at `due`; `when` says in which window.
    pub(crate) fn ended(
        &self,
        when: Instant,
        number: u32,
        due: Instant,
        result: &Result<MeasuredResponse, LoadFailure>,
    ) {
        let end = match result {
            Ok(answer) => {
                self.record(when, |recorder| recorder.answered(number, due, answer));
                if let Some(condition) = &answer.facts.condition {
                    self.validators.borrow_mut().insert(number, condition.clone());
                }
                answer.last_byte
            }
            Err(failure) => {
                self.record(when, |recorder| recorder.failed(failure));
                Instant::now()
            }
        };
        self.last.set(end);
        let mut fresh = self.fresh.borrow_mut();
        match result {
            Ok(_) => {
                fresh.0 += 1;
                let latency = end.saturating_duration_since(due);
                fresh.2.saturating_record(super::recorder::micros(latency).max(1));
            }
            Err(_) => fresh.1 += 1,
        }
        if end.saturating_duration_since(self.told.get()) > TOLD_EACH {
            self.told.set(end);
            self.shared.completed.fetch_add(fresh.0, Ordering::Relaxed);
            self.shared.failed.fetch_add(fresh.1, Ordering::Relaxed);
            // Both have the same bounds, so that adding cannot fail.
            let _ = self.shared.recent.lock().add(&fresh.2);
            (fresh.0, fresh.1) = (0, 0);
            fresh.2.reset();
        }
    }

    /// Counts a connection.
    pub(crate) fn opened(&self, opened: &ConnectionTimes) {
        self.record(Instant::now(), |recorder| recorder.opened(opened));
    }

    /// Counts bytes.
    pub(crate) fn moved(&self, when: Instant, moved: TransferCounts) {
        self.record(when, |recorder| {
            recorder.bytes_sent += moved.sent;
            recorder.bytes_received += moved.received;
        });
    }

    /// The counts, by window.
    pub(crate) fn into_recorders(self) -> Vec<Recorder> {
        self.recorders.into_inner()
    }
}
