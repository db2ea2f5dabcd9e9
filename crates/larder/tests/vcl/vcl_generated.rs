//! Generated VCL programs, origins and requests on Debian's varnishd and on Larder: nothing may
//! differ.
//!
//! A few seeds each time. For longer: `LARDER_TEST_SECONDS=1800`, from `LARDER_TEST_SEED` on. A
//! failing seed is reported as a scenario, which can be cut down and kept beside the written ones.

use std::env;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testkit::differ::peer::ServerProgram;
use testkit::differ::scenario::scenarios;
use testkit::differ::suite::{self, Suite};
use testkit::vclgen;

/// Seeds of a file, which one pair of servers takes at a time; and how many files at least.
const SEEDS: u64 = 20;
const FILES: u64 = 2;

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
    let first = number("LARDER_TEST_SEED");
    let files = (0..).take_while(|file| *file < FILES || Instant::now() < until).map(|file| {
        let seeds = first + file * SEEDS..first + (file + 1) * SEEDS;
        println!("seeds {seeds:?}");
        let texts: String = seeds.map(vclgen::scenario).collect();
        scenarios("generated", &texts, &|_| None).expect("scenarios")
    });
    let peers = (ServerProgram::varnishd(), ServerProgram::larder(&larder));
    let suite = Suite { peers, pairs: 4, only: String::new(), random: true };
    let outcome = suite::run(&suite, files).expect("both start");
    outcome.left_out.iter().for_each(|told| println!("left out: {told}"));
    println!("{} programs, {} left out", outcome.run, outcome.left_out.len());
    let failed = &outcome.failed;
    assert!(failed.is_empty(), "{} of {} differ\n{}", failed.len(), outcome.run, failed.join("\n"));
}
