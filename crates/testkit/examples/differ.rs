//! Runs scenarios while they are written: `differ FOLDER [--only TEXT] [--larder BINARY] [--show]`.
//!
//! Without a binary Varnish runs against itself, which shows what in a scenario is left to chance.
//! `--show` tells what it did.

use std::path::PathBuf;
use std::process::ExitCode;

use testkit::differ::peer::Kind;
use testkit::differ::suite::{self, Suite};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let mut folder = PathBuf::from(".");
    let (mut only, mut other) = (String::new(), Kind::varnishd());
    let (mut pairs, mut show) = (4, false);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_default();
        match word.as_str() {
            "--only" => only = value(),
            "--larder" => other = Kind::larder(&PathBuf::from(value())),
            "--show" => show = true,
            "--pairs" => pairs = value().parse().unwrap_or(pairs),
            _ => folder = PathBuf::from(word),
        }
    }
    let suite = Suite { peers: (Kind::varnishd(), other), pairs, only };
    match suite::read(&folder).and_then(|files| suite::run(&suite, files)) {
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        Ok(outcome) => {
            for told in outcome.oracle.iter().filter(|_| show).chain(&outcome.failed) {
                println!("{told}");
            }
            println!("{} scenarios, {} failed", outcome.run, outcome.failed.len());
            if outcome.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
    }
}
