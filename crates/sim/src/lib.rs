//! The simulator: clients, protocol engines, the cache and origins on one thread, in virtual time.
//! It must never depend on anything but its seed, so that a failure can be repeated.
//!
//! [`run`] plays the schedule of a seed: the sites, the origins' faults, the clients' requests, the
//! purges and the order of tasks. Module `oracle`, which shares no code with the product, checks
//! every answer. Equal seeds give equal digests ([`ScheduleTally::digest`]). [`compare_forecasts`]
//! checks forecasts of `larder explain`. Begin with modules `simulation`, `client` and `oracle`.

mod client;
mod direct_core;
mod forecasts;
mod http;
mod oracle;
mod origin;
mod page_reader;
mod pages;
mod plan;
mod purge;
mod simulation;
mod wire;

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Once;

pub use forecasts::{ForecastTally, run as compare_forecasts};
pub use oracle::ScheduleTally;

use crate::oracle::Oracle;
use crate::plan::SchedulePlan;
use crate::simulation::Simulation;

/// A schedule in which a promise was broken.
#[derive(Debug)]
pub struct ScheduleFailure {
    /// The seed, which plays it again.
    pub seed: u64,
    /// The broken promises.
    pub broken: Vec<String>,
    /// Events in order; empty unless they were requested.
    pub events: Vec<String>,
}

impl fmt::Display for ScheduleFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        for broken in &self.broken {
            writeln!(f, "seed {}: {broken}", self.seed)?;
        }
        write!(f, "again: cargo run -p sim -- --trace {}", self.seed)
    }
}

thread_local! {
    /// Panics of this thread's schedule, caught ones included.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Installs a hook that counts panics, in addition to the present hook.
fn count_panics() {
    static COUNTED: Once = Once::new();
    COUNTED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICS.set(PANICS.get() + 1);
            before(panic);
        }));
    });
}

/// Plays the schedule of `seed`; with `traced`, a failure contains all events.
///
/// # Errors
/// Broken promises.
pub fn run(seed: u64, traced: bool) -> Result<ScheduleTally, Box<ScheduleFailure>> {
    count_panics();
    let oracle = Rc::new(Oracle::new(traced));
    let plan = SchedulePlan::draw(seed);
    if let Err(error) = rt::simulation::run(seed, play(Rc::clone(&oracle), plan)) {
        oracle.fail(|| format!("no runtime: {error}"));
    }
    let panics = PANICS.replace(0);
    if panics > 0 {
        oracle.fail(|| format!("{panics} panics"));
    }
    let broken = oracle.take_broken();
    if broken.is_empty() {
        return Ok(oracle.tally());
    }
    Err(Box::new(ScheduleFailure { seed, broken, events: oracle.take_events() }))
}

async fn play(oracle: Rc<Oracle>, plan: SchedulePlan) {
    let simulation = Simulation::build(&oracle, plan, origin::serve);
    let mut tasks: Vec<_> = (0..simulation.plan.clients)
        .map(|number| rt::spawn_local(client::live(Rc::clone(&simulation), number)))
        .collect();
    if !simulation.plan.quiet {
        tasks.push(rt::spawn_local(purge::live(Rc::clone(&simulation))));
    }
    let sweeper = rt::spawn_local(simulation::sweep(Rc::clone(&simulation)));
    for task in tasks {
        if task.await.is_err() {
            oracle.fail(|| "a task ended by a panic".to_owned());
        }
    }
    sweeper.abort();
    simulation.settle().await;
}
