//! State of one thread, shared by its connections: the next requests, and the counts.

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
    /// The beginning of the load.
    pub(crate) begin: Instant,
    /// The beginning of the measurement.
    pub(crate) start: Instant,
    /// The end of the measurement, if it has a fixed time.
    pub(crate) end: Option<Instant>,
    /// The number of windows of equal length that are counted separately.
    pub(crate) windows: usize,
}

impl MeasurementTimes {
    /// The beginning of each window and the end of the last one; only the beginning if the end is
    /// not fixed.
    pub(crate) fn edges(&self) -> Vec<Instant> {
        let Some(end) = self.end else {
            return vec![self.start];
        };
        let whole = end.saturating_duration_since(self.start);
        let part = |nth: usize| whole.mul_f64(nth as f64 / self.windows.max(1) as f64);
        (0..=self.windows).map(|nth| self.start + part(nth)).collect()
    }
}

/// State that threads share with each other and with the supervisor.
#[derive(Debug)]
pub(crate) struct SharedStatus {
    /// True once all threads must stop.
    pub(crate) stop: AtomicBool,
    /// Requests that may still be sent.
    pub(crate) left: AtomicU64,
    /// Responses and failures of all threads so far.
    pub(crate) completed: AtomicU64,
    pub(crate) failed: AtomicU64,
    /// Latencies since the last report of progress.
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
    /// Requests in flight.
    pub(crate) in_flight: Cell<u64>,
    /// The time of the last measured response.
    pub(crate) last: Cell<Instant>,
    /// True once no more requests will be due, because the log is at its end.
    pub(crate) exhausted: Cell<bool>,
    /// The latest validator of each request, if requests are conditional.
    validators: RefCell<RapidHashMap<u32, Precondition>>,
    /// Responses, failures and latencies that are not in [`SharedStatus`] yet.
    fresh: RefCell<(u64, u64, Histogram<u64>)>,
    reported_at: Cell<Instant>,
}

/// Interval at which a thread adds its counts to [`SharedStatus`].
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

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
            reported_at: Cell::new(times.begin),
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

    /// The precondition of request `number`, from its last response (RFC 9110 13.1).
    pub(crate) fn condition(&self, number: u32) -> Option<Precondition> {
        if !self.plan.settings.conditional {
            return None;
        }
        self.validators.borrow().get(&number).cloned()
    }

    /// Returns true if the measurement was stopped early.
    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Returns true if no more requests may be sent at `now`.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.times.end.is_some_and(|end| now >= end) || self.is_stopped()
    }

    /// Takes one request or session from the remaining count; false if none is left. Those before
    /// the measurement do not count.
    pub(crate) fn take_one(&self, now: Instant) -> bool {
        if !matches!(self.plan.settings.until, MeasurementEnd::Count(_)) || now < self.times.start {
            return true;
        }
        let left = &self.shared.left;
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// Calls `with` with the recorder of the window of `when`; not at all outside of the
    /// measurement.
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

    /// Counts the end of a request that was due at `due`, in the window of `when`.
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
        if end.saturating_duration_since(self.reported_at.get()) > REPORT_INTERVAL {
            self.reported_at.set(end);
            self.shared.completed.fetch_add(fresh.0, Ordering::Relaxed);
            self.shared.failed.fetch_add(fresh.1, Ordering::Relaxed);
            // Both histograms have equal bounds, so adding cannot fail.
            let _ = self.shared.recent.lock().add(&fresh.2);
            (fresh.0, fresh.1) = (0, 0);
            fresh.2.reset();
        }
    }

    /// Counts an opened connection.
    pub(crate) fn opened(&self, opened: &ConnectionTimes) {
        self.record(Instant::now(), |recorder| recorder.opened(opened));
    }

    /// Counts transferred bytes.
    pub(crate) fn moved(&self, when: Instant, moved: TransferCounts) {
        self.record(when, |recorder| {
            recorder.bytes_sent += moved.sent;
            recorder.bytes_received += moved.received;
        });
    }

    /// Returns the recorders, by window.
    pub(crate) fn into_recorders(self) -> Vec<Recorder> {
        self.recorders.into_inner()
    }
}
