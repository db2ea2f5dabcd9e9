//! Scenarios of the request path for counting instructions with valgrind.
//!
//! `counts` lists them, `counts NAME ROUNDS` runs one, and `cargo xtask counts` compares them with
//! `baseline.json`. A scenario prepares everything before its first round, so the difference
//! between two numbers of rounds is due to rounds alone.
//!
//! Nothing here may differ between runs: no clock, no random seed, no thread, no file. The
//! allocator is the system's, not the daemon's: only `fill` allocates.

use std::process::ExitCode;

mod exchanges;
mod heads;
mod hits;
mod programs;
mod records;
mod rules;
mod samples;
mod stores;

/// A scenario.
struct Scenario {
    name: &'static str,
    run: fn(u32),
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "parse", run: heads::parse },
    Scenario { name: "parse-browser", run: heads::parse_browser },
    Scenario { name: "response", run: heads::response },
    Scenario { name: "serialise", run: heads::serialise },
    Scenario { name: "policy", run: hits::policy },
    Scenario { name: "key", run: stores::key },
    Scenario { name: "lookup", run: stores::lookup },
    Scenario { name: "lookup-variant", run: stores::lookup_variant },
    Scenario { name: "hit", run: hits::hit },
    Scenario { name: "hit-browser", run: hits::hit_browser },
    Scenario { name: "hit-coded", run: hits::hit_coded },
    Scenario { name: "hit-form", run: hits::hit_form },
    Scenario { name: "hit-text", run: hits::hit_text },
    Scenario { name: "hit-text-browser", run: hits::hit_text_browser },
    Scenario { name: "hit-text-gzip", run: hits::hit_text_gzip },
    Scenario { name: "hit-50-routes", run: rules::hit_past },
    Scenario { name: "hit-50-browser", run: rules::hit_past_browser },
    Scenario { name: "hit-50th-route", run: rules::hit_last },
    Scenario { name: "purge-url", run: hits::purge_url },
    Scenario { name: "vcl-hit-builtin", run: programs::hit_builtin },
    Scenario { name: "vcl-hit-site", run: programs::hit_site },
    Scenario { name: "record", run: records::record },
    Scenario { name: "fill", run: stores::fill },
    Scenario { name: "fill-text", run: stores::fill_text },
    Scenario { name: "h2-exchange", run: exchanges::exchange },
];

/// Scenarios that take too long to be counted always; `time counts vcl-compile 100` measures one.
const LONG: &[Scenario] = &[Scenario { name: "vcl-compile", run: programs::compile }];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => {
            for scenario in SCENARIOS {
                println!("{}", scenario.name);
            }
            ExitCode::SUCCESS
        }
        [name, rounds] => run(name, rounds),
        _ => usage(),
    }
}

fn run(name: &str, rounds: &str) -> ExitCode {
    let scenario = SCENARIOS.iter().chain(LONG).find(|scenario| scenario.name == name);
    let (Some(scenario), Ok(rounds)) = (scenario, rounds.parse()) else { return usage() };
    (scenario.run)(rounds);
    ExitCode::SUCCESS
}

fn usage() -> ExitCode {
    eprintln!("usage: counts [SCENARIO ROUNDS]");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::{LONG, SCENARIOS};

    #[test]
    fn every_scenario_does_what_it_says() {
        for scenario in SCENARIOS.iter().chain(LONG) {
            (scenario.run)(3);
        }
    }

    #[test]
    fn every_scenario_has_a_name_of_its_own() {
        for (at, scenario) in SCENARIOS.iter().enumerate() {
            assert!(SCENARIOS[..at].iter().all(|other| other.name != scenario.name));
        }
    }
}
