//! The differ on the command line, for writing scenarios: `differ FOLDER [--only TEXT] [--larder
//! BINARY] [--show]`.
//!
//! Without a binary, Varnish runs against itself, which shows what a scenario leaves to chance.
//! `--show` prints what it did. `--seeds FROM..TO` takes generated programs instead of a folder;
//! `--text` prints them.

use std::path::PathBuf;
use std::process::ExitCode;

use testkit::differ::peer::ServerProgram;
use testkit::differ::scenario::{Scenario, scenarios};
use testkit::differ::suite::{self, Outcome, Suite};
use testkit::vclgen;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut folder = PathBuf::from(".");
    let (mut only, mut other) = (String::new(), ServerProgram::varnishd());
    let (mut pairs, mut show, mut text) = (4, false, false);
    let mut seeds = 0..0;
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_default();
        match word.as_str() {
            "--only" => only = value(),
            "--larder" => other = ServerProgram::larder(&PathBuf::from(value())),
            "--show" => show = true,
            "--text" => text = true,
            "--seeds" => {
                let (from, to) = value().split_once("..").map_or((0, 0), |(from, to)| {
                    (from.parse().unwrap_or(0), to.parse().unwrap_or(0))
                });
                seeds = from..to;
            }
            "--pairs" => pairs = value().parse().unwrap_or(pairs),
            _ => folder = PathBuf::from(word),
        }
    }
    if text {
        seeds.for_each(|seed| println!("{}", vclgen::scenario(seed)));
        return ExitCode::SUCCESS;
    }
    let random = !seeds.is_empty();
    let files = match seeds.is_empty() {
        true => suite::read(&folder),
        false => Ok(generated(seeds)),
    };
    let suite = Suite { peers: (ServerProgram::varnishd(), other), pairs, only, random };
    match files.and_then(|files| suite::run(&suite, files)) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Ok(outcome) => {
            for told in outcome.oracle.iter().filter(|_| show).chain(&outcome.failed) {
                println!("{told}");
            }
            for told in &outcome.flaky {
                println!("flaky: {told}");
            }
            for told in &outcome.left_out {
                println!("left out: {told}");
            }
            let Outcome { run, failed, flaky, left_out, .. } = &outcome;
            let [failed, flaky, left_out] = [failed, flaky, left_out].map(Vec::len);
            println!("{run} scenarios, {failed} failed, {flaky} flaky, {left_out} left out");
            if outcome.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}

/// The scenarios of `seeds`, each in a file of its own.
fn generated(seeds: std::ops::Range<u64>) -> Vec<Vec<Scenario>> {
    let one = |seed: u64| {
        scenarios("generated", &vclgen::scenario(seed), &|_| None).expect("what is made is read")
    };
    seeds.map(one).collect()
}
