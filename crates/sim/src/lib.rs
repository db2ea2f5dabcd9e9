//! A seeded simulator: clients, the protocol engines, the store and origins on one thread and in
//! virtual time.
//!
//! [`run`] plays one schedule. Its seed decides everything: what the site serves, what origins do
//! and break, who asks when and leaves when, what is purged, and in which order tasks run. It is
//! held against the truth in module `book`, which shares no code with what it tests. The same seed
//! gives the same [`Tally::digest`].

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

use crate::oracle::Book;
use crate::plan::SchedulePlan;
use crate::simulation::Simulation;

/// A schedule in which something went wrong.
#[derive(Debug)]
pub struct ScheduleFailure {
    /// The seed that plays it again.
    pub seed: u64,
    /// The promises that were broken, in words.
    pub broken: Vec<String>,
    /// Events in their order; empty unless they were asked for.
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
    /// Panics of this thread's schedule, whoever has caught them.
    static PANICS: Cell<u32> = const { Cell::new(0) };
}

/// Has panics counted from now on, besides what is done about them.
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

/// Plays the schedule of `seed`; with `traced`, a failure has all events.
///
/// # Errors
/// A promise was broken.
pub fn run(seed: u64, traced: bool) -> Result<ScheduleTally, Box<ScheduleFailure>> {
    count_panics();
    let book = Rc::new(Book::new(traced));
    let plan = SchedulePlan::draw(seed);
    if let Err(error) = rt::simulation::run(seed, play(Rc::clone(&book), plan)) {
        book.fail(|| format!("no runtime: {error}"));
    }
    let panics = PANICS.replace(0);
    if panics > 0 {
        book.fail(|| format!("{panics} panics"));
    }
    let broken = book.take_broken();
    if broken.is_empty() {
        return Ok(book.tally());
    }
    Err(Box::new(ScheduleFailure { seed, broken, events: book.take_events() }))
}

async fn play(book: Rc<Book>, plan: SchedulePlan) {
    let world = Simulation::build(&book, plan, origin::serve);
    let mut tasks: Vec<_> = (0..world.plan.clients)
        .map(|number| rt::spawn_local(client::live(Rc::clone(&world), number)))
        .collect();
    if !world.plan.quiet {
        tasks.push(rt::spawn_local(purge::live(Rc::clone(&world))));
    }
    let sweeper = rt::spawn_local(simulation::sweep(Rc::clone(&world)));
    for task in tasks {
        if task.await.is_err() {
            book.fail(|| "a task ended by a panic".to_owned());
        }
    }
    sweeper.abort();
    world.settle().await;
}
