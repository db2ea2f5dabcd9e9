//! The load: threads that send requests, and the measured rounds.

mod document;
mod exchange;
mod facts;
mod failure;
mod http1;
mod http2;
mod lane;
mod models;
mod pacer;
mod plan;
mod recorder;
mod stream;
mod thread;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;
use tokio::task::LocalSet;

pub use document::fetch;
pub(crate) use document::fetch_from;
pub(crate) use exchange::{ExchangeBounds, ExchangeServer, WholeResponse};
pub(crate) use http1::Http1;
pub(crate) use plan::LoadPlan;
use recorder::Recorder;
pub(crate) use stream::Stream;
use thread::{MeasurementTimes, SharedStatus, Thread};

use crate::machine::{self, Meter};
use crate::result::Round;
use crate::settings::{Background, Load, MeasurementEnd, Protocol, Settings, UsageSource};
use crate::urls::Picks;

/// Windows of a ramp; each is counted separately.
const RAMP_WINDOWS: usize = 20;
/// Delay between the start of the threads and the start of the load.
const LEAD: Duration = Duration::from_millis(20);
/// Tasks that a thread runs before it polls its connections.
const TASKS_BEFORE_EVENTS: u32 = 16;

/// Sends the first request once; the error is the reason for which it got no response.
pub fn probe(settings: &Settings) -> Result<(), String> {
    let settings = Settings {
        load: Load::Closed { connections: 1 },
        protocol: match settings.protocol {
            Protocol::Http2 { .. } => Protocol::Http2 { streams: 1 },
            Protocol::Http1 { old, keep_alive, .. } => {
                Protocol::Http1 { old, keep_alive, pipeline: 1 }
            }
        },
        until: MeasurementEnd::Count(1),
        warm_up: Duration::ZERO,
        threads: 1,
        background: Background::default(),
        ..settings.clone()
    };
    let runner = Runner::new(&settings, Vec::new(), Arc::default())?;
    let round = runner.round(&mut |_| ())?;
    let Some((kind, text)) = round.error_texts.iter().next() else {
        return Ok(());
    };
    let hint =
        if kind == "tls" { "; -k accepts every certificate, --ca names authorities" } else { "" };
    Err(format!("{}: {text}{hint}", settings.first_url()))
}

/// A prepared run, which can be measured any number of times.
pub struct Runner {
    plan: Arc<LoadPlan>,
    observed: Vec<(String, UsageSource)>,
    stop: Arc<AtomicBool>,
}

impl Runner {
    /// Prepares a run: serialises its requests and resolves its servers. `stop` ends the
    /// measurement.
    pub fn new(
        settings: &Settings,
        observed: Vec<(String, UsageSource)>,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, String> {
        machine::raise_descriptors(settings.load.connections() + settings.background.all())?;
        Ok(Self { plan: Arc::new(LoadPlan::new(settings)?), observed, stop })
    }

    /// Measures one round. `watch` is called several times per second.
    pub fn round(&self, watch: &mut dyn FnMut(&LoadProgress)) -> Result<Round, String> {
        let mut rounds = self.measure(1, watch)?;
        rounds.pop().map(|(_, round)| round).ok_or_else(|| "nothing was measured".to_owned())
    }

    /// Measures one ramp: a round for each window of it, with the number of connections in the
    /// middle of the window.
    pub fn ramp(&self, watch: &mut dyn FnMut(&LoadProgress)) -> Result<Vec<(f64, Round)>, String> {
        self.measure(RAMP_WINDOWS, watch)
    }

    fn measure(
        &self,
        windows: usize,
        watch: &mut dyn FnMut(&LoadProgress),
    ) -> Result<Vec<(f64, Round)>, String> {
        let settings = &self.plan.settings;
        let background = crate::background::BackgroundConnections::start(&self.plan)?;
        let begin = Instant::now() + LEAD;
        let start = begin + settings.warm_up;
        let (end, left) = match settings.until {
            MeasurementEnd::Time(time) => (Some(start + time), u64::MAX),
            MeasurementEnd::Count(count) => (None, count),
        };
        let times = MeasurementTimes { begin, start, end, windows };
        let shared = Arc::new(SharedStatus {
            stop: AtomicBool::new(false),
            left: AtomicU64::new(left),
            completed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            recent: Mutex::new(Histogram::new(2).map_err(|error| error.to_string())?),
        });
        let threads = (0..settings.threads)
            .map(|own| self.thread(own, times, &shared))
            .collect::<Result<Vec<_>, String>>()?;
        let mut supervisor = Supervisor { runner: self, shared: &shared, times, watch };
        let meters = supervisor.wait(&threads);
        let mut all: Vec<Recorder> =
            (0..windows).map(|_| Recorder::new()).collect::<Result<_, _>>()?;
        let (mut unfinished, mut last, mut exhausted) = (0, start, true);
        for thread in threads {
            let done = thread.join().map_err(|_| "a thread of the load panicked".to_owned())??;
            unfinished += done.unfinished;
            last = last.max(done.last);
            exhausted &= done.exhausted;
            for (sum, own) in all.iter_mut().zip(&done.recorders) {
                sum.add(own)?;
            }
        }
        let stopped = shared.stop.load(Ordering::Relaxed);
        let elapsed = match end {
            Some(end) if !stopped && !exhausted => end - start,
            _ => last - start,
        };
        let held = background.held();
        drop(background);
        let mut rounds = Vec::new();
        for ((recorder, at), edges) in all.iter().zip(0..).zip(meters.windows(2)) {
            let mut round = recorder.round(elapsed / u32::try_from(windows).unwrap_or(1))?;
            if windows == 1 {
                round.unfinished = unfinished;
            }
            if let [before, after] = edges {
                after.since(before, &mut round);
            }
            round.background = held;
            round.generator_threads = settings.threads as u64;
            rounds.push((self.connections_in(at, windows), round));
        }
        Ok(rounds)
    }

    /// The number of connections in the middle of window `at`.
    fn connections_in(&self, at: usize, windows: usize) -> f64 {
        match self.plan.settings.load {
            Load::Ramp { from, to } => {
                let part = (at as f64 + 0.5) / windows as f64;
                (from as f64 + (to as f64 - from as f64) * part).round()
            }
            ref load => load.connections() as f64,
        }
    }

    fn thread(
        &self,
        own: usize,
        times: MeasurementTimes,
        shared: &Arc<SharedStatus>,
    ) -> Result<JoinHandle<Result<ThreadResult, String>>, String> {
        let (plan, shared) = (Arc::clone(&self.plan), Arc::clone(shared));
        std::thread::Builder::new()
            .name(format!("bench-{own}"))
            .spawn(move || {
                let settings = &plan.settings;
                let picks = Picks::share(&settings.list, settings.order, own, settings.threads);
                one_thread(own, Thread::new(Arc::clone(&plan), shared, times, picks)?)
            })
            .map_err(|error| format!("cannot start a thread: {error}"))
    }
}

/// The counts of a thread.
struct ThreadResult {
    recorders: Vec<Recorder>,
    unfinished: u64,
    last: Instant,
    exhausted: bool,
}

fn one_thread(own: usize, thread: Thread) -> Result<ThreadResult, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_BEFORE_EVENTS)
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    let thread = Rc::new(thread);
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        tokio::time::sleep_until(thread.times.begin.into()).await;
        models::run(&thread, own).await
    }))?;
    let unfinished = thread.in_flight.get();
    // Tasks hold the thread's state until they are dropped.
    drop(local);
    drop(runtime);
    let thread = Rc::into_inner(thread).ok_or("a task outlived its runtime")?;
    let (last, exhausted) = (thread.last.get(), thread.exhausted.get());
    Ok(ThreadResult { unfinished, last, exhausted, recorders: thread.into_recorders() })
}

/// The state of a running measurement.
#[derive(Clone, Debug)]
pub struct LoadProgress {
    /// Time since the measurement began; `None` during the warm-up.
    pub measured: Option<Duration>,
    /// The measurement's duration; `None` if a count of requests ends it.
    pub whole: Option<Duration>,
    /// Responses so far, including the warm-up.
    pub completed: u64,
    /// Failed requests so far.
    pub failed: u64,
    /// The median and the 99th percentile since the last call, in microseconds.
    pub recent: Option<(u64, u64)>,
}

/// A supervisor: it waits for a measurement's end, and reads the machine's meters between its
/// windows.
struct Supervisor<'a> {
    runner: &'a Runner,
    shared: &'a SharedStatus,
    times: MeasurementTimes,
    watch: &'a mut dyn FnMut(&LoadProgress),
}

impl Supervisor<'_> {
    /// Waits for the threads. Returns the readings of the meters: one before the first window, and
    /// one after each window.
    fn wait(&mut self, threads: &[JoinHandle<Result<ThreadResult, String>>]) -> Vec<Meter> {
        let edges = self.times.edges();
        let mut meters = Vec::new();
        let read = || Meter::read(&self.runner.observed);
        let mut looked = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            let now = Instant::now();
            let passed = edges.iter().filter(|edge| **edge <= now).count();
            if passed > meters.len() {
                // An edge that this thread missed gets the next edge's reading.
                meters.resize(passed, read());
            }
            if self.runner.stop.load(Ordering::Relaxed) {
                self.shared.stop.store(true, Ordering::Relaxed);
            }
            if now.duration_since(looked) > Duration::from_millis(200) {
                looked = now;
                let progress = self.progress(now);
                (self.watch)(&progress);
            }
            let step = Duration::from_millis(if meters.is_empty() { 5 } else { 20 });
            let next = edges.get(passed).map(|edge| edge.saturating_duration_since(now));
            std::thread::sleep(next.map_or(step, |next| next.min(step)));
        }
        if meters.len() <= self.times.windows {
            meters.resize(self.times.windows + 1, read());
        }
        meters
    }

    fn progress(&self, now: Instant) -> LoadProgress {
        let mut recent = self.shared.recent.lock();
        let quantiles = (!recent.is_empty())
            .then(|| (recent.value_at_quantile(0.5), recent.value_at_quantile(0.99)));
        recent.reset();
        LoadProgress {
            measured: now.checked_duration_since(self.times.start),
            whole: self.times.end.map(|end| end - self.times.start),
            completed: self.shared.completed.load(Ordering::Relaxed),
            failed: self.shared.failed.load(Ordering::Relaxed),
            recent: quantiles,
        }
    }
}
