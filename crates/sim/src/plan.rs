//! The plan of a schedule: its constants, drawn from its seed.

use rt::simulation::Draws;

use crate::pages::Pages;

/// A resource, with properties of its responses.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// The number of its site: 0 has a declared policy, 1 a program.
    pub(crate) site: usize,
    pub(crate) path: String,
    pub(crate) ttl_s: u64,
    pub(crate) grace_s: u64,
    pub(crate) error_s: u64,
    pub(crate) varies: bool,
    pub(crate) private: bool,
    pub(crate) has_etag: bool,
    pub(crate) tag: u64,
    pub(crate) bytes_max: u64,
}

/// The engine that clients talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// The core, without an engine.
    Direct,
    Http1,
    Http2,
}

/// The constants of a schedule.
#[derive(Debug)]
pub(crate) struct SchedulePlan {
    pub(crate) seed: u64,
    /// True if nothing fails, nothing is purged and no client leaves: then requests must collapse.
    pub(crate) quiet: bool,
    pub(crate) budget_bytes: u64,
    /// True if memory is so small that requests may fail for it.
    pub(crate) is_tight: bool,
    pub(crate) resources: Vec<Resource>,
    pub(crate) pages: Pages,
    pub(crate) clients: u64,
    pub(crate) requests: u64,
    pub(crate) purges: u64,
    /// Longest pause between two requests of a client, in milliseconds.
    pub(crate) pause_ms: u64,
    /// Faults per thousand answers of the origin.
    pub(crate) faults: u64,
    pub(crate) engine: Engine,
}

impl SchedulePlan {
    /// The plan of `seed`.
    pub(crate) fn draw(seed: u64) -> Self {
        // The simulation draws from the seed itself.
        let mut draw = Draws::new(seed ^ 0x5eed);
        let quiet = draw.below(5) == 0;
        let count = 1 + draw.below(4);
        let resources = (0..count).map(|number| resource(&mut draw, number, quiet)).collect();
        let tight = !quiet && draw.below(3) == 0;
        let budget_bytes = if tight { 60_000 + draw.below(200_000) } else { 16 << 20 };
        let mut plan = Self {
            seed,
            quiet,
            budget_bytes,
            is_tight: tight,
            resources,
            pages: Pages::default(),
            clients: 2 + draw.below(6),
            requests: 3 + draw.below(8),
            purges: draw.below(8),
            pause_ms: draw.of([5, 100, 1_500, 4_000]),
            faults: if quiet { 0 } else { draw.of([0, 50, 200, 500]) },
            engine: [Engine::Direct, Engine::Http1, Engine::Http2][draw.below(3) as usize],
        };
        if tight && plan.engine != Engine::Direct {
            // Connections need memory, too.
            plan.budget_bytes *= 10;
        }
        plan.pages = Pages::draw(&mut draw);
        plan
    }
}

fn resource(draw: &mut Draws, number: u64, quiet: bool) -> Resource {
    let (grace, error) = ([0, 1, 5], [0, 3, 20]);
    Resource {
        site: draw.below(2) as usize,
        path: format!("/r/{number}"),
        ttl_s: draw.of([1, 2, 10]),
        grace_s: if quiet { 0 } else { draw.of(grace) },
        error_s: if quiet { 0 } else { draw.of(error) },
        varies: !quiet && draw.below(3) == 0,
        private: draw.below(5) == 0,
        has_etag: draw.below(2) == 0,
        tag: draw.below(2),
        bytes_max: draw.of([10, 3_000, 30_000, if quiet { 30_000 } else { 150_000 }]),
    }
}
