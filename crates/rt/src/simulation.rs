//! The simulation: virtual time on one thread, in an order that a seed decides. Runs with one seed
//! are equal.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use base::Now;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::Instant;

/// Both clocks at the start of a simulation: 2026-01-01, on a machine that has run for a day.
const START: Now = Now { mono_ms: 86_400_000, unix_ms: 1_767_225_600_000 };
/// One poll of a task in this many is postponed.
const PUT_OFF: u64 = 4;

#[derive(Clone, Copy)]
struct SimulationState {
    began: Instant,
    state: Draws,
}

/// Random numbers of a seed: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Copy, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number below `below`, or 0 if that is 0.
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        mixed.checked_rem(below).unwrap_or(0)
    }

    /// One of `choices`.
    pub fn of<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        choices[self.below(N as u64) as usize]
    }
}

thread_local! {
    static RUNNING: Cell<Option<SimulationState>> = const { Cell::new(None) };
}

/// Ends the simulation of this thread at the end of a run.
struct SimulationGuard;

impl Drop for SimulationGuard {
    fn drop(&mut self) {
        RUNNING.set(None);
    }
}

/// Runs `future`, and all tasks that it spawns until its end.
///
/// # Errors
/// The runtime cannot be made.
pub fn run<F: Future>(seed: u64, future: F) -> io::Result<F::Output> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build()?;
    let local = LocalSet::new();
    let _end = SimulationGuard;
    Ok(local.block_on(&runtime, async {
        RUNNING.set(Some(SimulationState { began: Instant::now(), state: Draws::new(seed) }));
        future.await
    }))
}

/// Returns true if this thread runs a simulation.
pub fn is_on() -> bool {
    RUNNING.get().is_some()
}

/// A random number below `below`, or 0 if that is 0.
///
/// # Panics
/// Outside a simulation, which must not depend on it.
pub fn random(below: u64) -> u64 {
    let Some(mut running) = RUNNING.get() else { panic!("no simulation runs on this thread") };
    let drawn = running.state.below(below);
    RUNNING.set(Some(running));
    drawn
}

pub(crate) fn now() -> Option<Now> {
    let ms = micros_since()? / 1000;
    Some(Now { mono_ms: START.mono_ms + ms, unix_ms: START.unix_ms + ms })
}

pub(crate) fn micros() -> Option<u64> {
    micros_since().map(|micros| START.mono_ms * 1000 + micros)
}

fn micros_since() -> Option<u64> {
    let running = RUNNING.get()?;
    Some(u64::try_from(running.began.elapsed().as_micros()).unwrap_or(u64::MAX))
}

/// A task whose polls are postponed now and then, so that others run first.
pub(crate) struct JitteredTask<T>(Pin<Box<dyn Future<Output = T>>>);

pub(crate) fn unsteady<T>(future: impl Future<Output = T> + 'static) -> JitteredTask<T> {
    JitteredTask(Box::pin(future))
}

impl<T> Future for JitteredTask<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if is_on() && random(PUT_OFF) == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.0.as_mut().poll(cx)
    }
}
