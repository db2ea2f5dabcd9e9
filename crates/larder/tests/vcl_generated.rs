//! Random programs, origins and requests on Debian's varnishd and on Larder: nothing may differ.
//!
//! A few seeds each time. For longer: `LARDER_TEST_SECONDS=1800`, from `LARDER_TEST_SEED` on. What
//! is told of a seed is its scenario, ready to be cut down and kept beside the written ones.

use std::env;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::differ::peer::Kind;
use testkit::differ::scenario::scenarios;
use testkit::differ::suite::{self, Suite};
use testkit::vclgen;

/// Seeds of one round: a file of [`SEEDS`] for each pair of servers.
const PAIRS: usize = 2;
const SEEDS: u64 = 20;

fn number(name: &str) -> u64 {
    env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn random_programs_do_the_same() {
    if Command::new("varnishd").arg("-V").stderr(Stdio::null()).status().is_err() {
        return eprintln!("skipped: no varnishd");
    }
    let larder = testkit::larder::binary().expect("the binary");
    let until = Instant::now() + Duration::from_secs(number("LARDER_TEST_SECONDS"));
    let mut seed = number("LARDER_TEST_SEED");
    loop {
        let mut files = Vec::new();
        for file in 0..PAIRS {
            let texts: String = (0..SEEDS).map(|n| vclgen::scenario(seed + n)).collect();
            let name = format!("generated{file}");
            files.push(scenarios(&name, &texts, &|_| None).expect("scenarios"));
            seed += SEEDS;
        }
        let peers = (Kind::varnishd(), Kind::larder(&larder));
        let suite = Suite { peers, pairs: PAIRS, only: String::new(), random: true };
        let outcome = suite::run(&suite, files).expect("both start");
        outcome.left_out.iter().for_each(|told| println!("left out: {told}"));
        let failed = outcome.failed.join("\n");
        assert!(outcome.failed.is_empty(), "seeds up to {seed} differ\n{failed}");
        println!("seeds up to {seed}: the same");
        if Instant::now() >= until {
            return;
        }
    }
}
