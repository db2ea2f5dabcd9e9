//! Load models, which decide when requests are sent: closed loop, ramp, open loop, sessions.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::lane::{Group, Lane, group};
use super::pacer::{Arrivals, DueRequest, Timer};
use super::thread::Thread;
use crate::settings::{Load, Protocol, Visit};

/// Delay after a failed connection attempt, so that a server that is down is not flooded.
const BACK_OFF: Duration = Duration::from_millis(10);

/// Lanes per connection.
fn lanes_each(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Http1 { .. } => 1,
        Protocol::Http2 { streams } => streams.max(1),
    }
}

/// The part of `all` that thread `own` of `threads` gets.
fn share(all: usize, own: usize, threads: usize) -> usize {
    all / threads + usize::from(own < all % threads)
}

/// Runs the load of `thread`, number `own` of all threads, until the measurement is over.
pub(crate) async fn run(thread: &Rc<Thread>, own: usize) -> Result<(), String> {
    let settings = &thread.plan.settings;
    let threads = settings.threads;
    match &settings.load {
        Load::Closed { connections } => closed(thread, share(*connections, own, threads)).await,
        Load::Ramp { from, to } => ramp(thread, *from, *to, own).await,
        load => {
            let begin = thread.times.begin;
            let arrivals = Arrivals::new(load, &settings.list, begin, own, threads)
                .ok_or("a load without due times")?;
            let most = share(load.connections(), own, threads);
            open(thread, arrivals, most).await
        }
    }
}

/// Waits until `at` or the end of the measurement.
async fn until(thread: &Thread, at: Instant) {
    while !thread.is_over(Instant::now()) && Instant::now() < at {
        let step = at.saturating_duration_since(Instant::now()).min(Duration::from_millis(50));
        tokio::time::sleep(step).await;
    }
}

/// Ends the tasks with the measurement. Requests in flight do not count as failed.
async fn finish(thread: &Thread, mut tasks: JoinSet<()>) {
    loop {
        tokio::select! {
            next = tasks.join_next() => {
                if next.is_none() {
                    return;
                }
            }
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                if thread.is_over(Instant::now()) {
                    return;
                }
            }
        }
    }
}

async fn closed(thread: &Rc<Thread>, connections: usize) -> Result<(), String> {
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        begin_closed(thread, &mut tasks);
    }
    finish(thread, tasks).await;
    Ok(())
}

/// Starts the lanes of one connection.
fn begin_closed(thread: &Rc<Thread>, tasks: &mut JoinSet<()>) {
    let group = group(thread.plan.endpoints.len());
    for _ in 0..lanes_each(thread.plan.settings.protocol) {
        tasks.spawn_local(one_closed(Rc::clone(thread), group.clone()));
    }
}

async fn one_closed(thread: Rc<Thread>, group: Group) {
    let mut lane = Lane::new(&thread, &group);
    let pipeline = match thread.plan.settings.protocol {
        Protocol::Http1 { pipeline, .. } => pipeline.max(1),
        Protocol::Http2 { .. } => 1,
    };
    let mut begun = Instant::now();
    while !thread.is_over(begun) {
        let mut asks = Vec::new();
        while asks.len() < pipeline && thread.take_one(begun) {
            match thread.next() {
                Some(ask) => asks.push(ask),
                None => break,
            }
        }
        let mut failed = false;
        match asks.as_slice() {
            [] => return,
            [ask] => {
                let result = lane.ask(ask).await;
                failed = result.is_err();
                let start = begun;
                count_closed(&thread, ask.number, &mut begun, start, &result);
            }
            several => {
                let start = begun;
                let each = |ask: &super::plan::PreparedRequest, result| {
                    failed |= Result::is_err(&result);
                    count_closed(&thread, ask.number, &mut begun, start, &result);
                };
                lane.send_pipelined(several, each).await;
            }
        }
        if failed {
            tokio::time::sleep(BACK_OFF).await;
            begun = Instant::now();
        }
    }
}

/// Counts a request in the window in which it ended; the next request begins there.
fn count_closed(
    thread: &Thread,
    number: u32,
    begun: &mut Instant,
    due: Instant,
    result: &Result<super::recorder::MeasuredResponse, super::failure::LoadFailure>,
) {
    let end = result.as_ref().map_or_else(|_| Instant::now(), |answer| answer.last_byte);
    if matches!(thread.plan.settings.until, crate::settings::MeasurementEnd::Time(_))
        || due >= thread.times.start
    {
        thread.ended(end, number, due, result);
    }
    *begun = end;
}

/// Opens more and more connections, from the beginning to the end of the measurement.
async fn ramp(thread: &Rc<Thread>, from: usize, to: usize, own: usize) -> Result<(), String> {
    let threads = thread.plan.settings.threads;
    let end = thread.times.end.ok_or("a ramp needs a duration")?;
    let whole = end.saturating_duration_since(thread.times.start);
    let mut tasks = JoinSet::new();
    for nth in (own..to).step_by(threads) {
        let after = nth.saturating_sub(from) as f64 / to.saturating_sub(from).max(1) as f64;
        if nth >= from {
            until(thread, thread.times.start + whole.mul_f64(after)).await;
        }
        if thread.is_over(Instant::now()) {
            break;
        }
        begin_closed(thread, &mut tasks);
    }
    finish(thread, tasks).await;
    Ok(())
}

/// An open loop of one thread.
struct OpenLoop {
    thread: Rc<Thread>,
    /// Idle lanes, and the time since when one is idle.
    free: RefCell<Vec<Rc<IdleLane>>>,
    free_since: Cell<Instant>,
    /// Requests that were due while every lane was busy.
    queue: RefCell<VecDeque<DueRequest>>,
    made: Cell<usize>,
    last_group: RefCell<Option<Group>>,
}

/// An idle lane's place.
#[derive(Default)]
struct IdleLane {
    due: Cell<Option<(DueRequest, Instant)>>,
    called: Notify,
}

async fn open(thread: &Rc<Thread>, mut arrivals: Arrivals, most: usize) -> Result<(), String> {
    let lanes = lanes_each(thread.plan.settings.protocol);
    let most = most.max(1) * lanes;
    let open = Rc::new(OpenLoop {
        thread: Rc::clone(thread),
        free: RefCell::default(),
        free_since: Cell::new(Instant::now()),
        queue: RefCell::default(),
        made: Cell::new(0),
        last_group: RefCell::default(),
    });
    let mut timer = Timer::new()?;
    let mut tasks = JoinSet::new();
    loop {
        let Some(due) = arrivals.next() else {
            thread.exhausted.set(true);
            break;
        };
        // Requests due after the end are not sent.
        if thread.is_over(due.at) || !thread.take_one(due.at) {
            break;
        }
        let early = Duration::from_millis(20);
        until(thread, due.at.checked_sub(early).unwrap_or(due.at)).await;
        if thread.is_stopped() {
            break;
        }
        timer.until(due.at).await?;
        let free = open.free.borrow_mut().pop();
        if let Some(idle_lane) = free {
            let since = due.at.max(open.free_since.get());
            idle_lane.due.set(Some((due, since)));
            idle_lane.called.notify_one();
        } else if open.made.get() < most {
            let nth = open.made.get();
            open.made.set(nth + 1);
            let group = open.group(nth, lanes);
            tasks.spawn_local(one_open(Rc::clone(&open), group, due));
        } else {
            open.queue.borrow_mut().push_back(due);
            thread.record(due.at, |recorder| recorder.queued += 1);
        }
    }
    // A request that was due before the end may still get its response in time.
    let limit = Instant::now() + patience(thread);
    let is_answered = || open.free.borrow().len() == open.made.get();
    let end = thread.times.end.filter(|_| !thread.exhausted.get());
    let is_early = |now| end.is_some_and(|end| now < end);
    let mut now = Instant::now();
    while !thread.is_stopped() && (is_early(now) || !is_answered() && now < limit) {
        tokio::time::sleep(Duration::from_millis(5)).await;
        now = Instant::now();
    }
    let unanswered = open.queue.borrow().len() as u64 + thread.in_flight.get();
    thread.in_flight.set(unanswered);
    tasks.abort_all();
    Ok(())
}

/// The longest time that a due request or session may take.
fn patience(thread: &Thread) -> Duration {
    let timeout = thread.plan.settings.timeout;
    match thread.plan.settings.load {
        Load::Sessions { visit: Visit { bursts, calls, think }, .. } => {
            let all = |time: Duration, count: usize| {
                time.saturating_mul(u32::try_from(count).unwrap_or(u32::MAX))
            };
            all(think.saturating_add(all(timeout, calls)), bursts)
        }
        _ => timeout,
    }
}

impl OpenLoop {
    /// Marks a lane as idle.
    fn mark_idle(&self, idle_lane: &Rc<IdleLane>) {
        let mut free = self.free.borrow_mut();
        if free.is_empty() {
            self.free_since.set(Instant::now());
        }
        free.push(Rc::clone(idle_lane));
    }

    /// The connection group of lane `nth`. As many lanes share a connection as it has streams.
    fn group(&self, nth: usize, lanes: usize) -> Group {
        let mut last = self.last_group.borrow_mut();
        if nth.is_multiple_of(lanes) {
            *last = None;
        }
        last.get_or_insert_with(|| group(self.thread.plan.endpoints.len())).clone()
    }
}

async fn one_open(open: Rc<OpenLoop>, group: Group, first: DueRequest) {
    let thread = Rc::clone(&open.thread);
    let mut lane = Lane::new(&thread, &group);
    let idle_lane = Rc::new(IdleLane::default());
    let (mut due, mut since) = (first, Some(first.at));
    loop {
        if let Some(since) = since {
            let now = Instant::now();
            let lateness = now.saturating_duration_since(since);
            thread.record(due.at, |recorder| recorder.late(lateness));
        }
        match thread.plan.settings.load {
            Load::Sessions { visit, .. } => session(&thread, &mut lane, due, visit).await,
            _ => one_due(&thread, &mut lane, due).await,
        }
        let queued = open.queue.borrow_mut().pop_front();
        if let Some(next) = queued {
            (due, since) = (next, None);
            continue;
        }
        open.mark_idle(&idle_lane);
        loop {
            idle_lane.called.notified().await;
            if let Some((next, from)) = idle_lane.due.take() {
                (due, since) = (next, Some(from));
                break;
            }
        }
    }
}

async fn one_due(thread: &Thread, lane: &mut Lane, due: DueRequest) {
    let ask = match due.number {
        Some(number) => thread.request_by_number(number),
        None => thread.next(),
    };
    if let Some(ask) = ask {
        let result = lane.ask(ask).await;
        thread.ended(due.at, ask.number, due.at, &result);
    }
}

/// Runs a session: bursts of requests with pauses between, over a connection of its own. The first
/// request is timed from the moment at which the session was due.
async fn session(thread: &Thread, lane: &mut Lane, due: DueRequest, visit: Visit) {
    let Visit { bursts, calls, think } = visit;
    thread.record(due.at, |recorder| recorder.sessions_begun += 1);
    let mut from = Some(due.at);
    for burst in 0..bursts {
        if burst > 0 {
            tokio::time::sleep(think).await;
        }
        for _ in 0..calls {
            let Some(ask) = thread.next() else {
                return;
            };
            let begun = from.take().unwrap_or_else(Instant::now);
            let result = lane.ask(ask).await;
            let failed = result.is_err();
            thread.ended(begun, ask.number, begun, &result);
            if failed {
                lane.close();
                return;
            }
        }
    }
    lane.close();
    thread.record(due.at, |recorder| recorder.sessions_completed += 1);
}
