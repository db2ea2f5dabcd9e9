//! The project's chores: `tidy` checks the tree's own rules, `docs` writes the reference pages,
//! `counts` compares the request path's instructions with a baseline, `test` runs all tests, and
//! `package` makes packages.
//!
//! It must never change a source file, and never reach outside the workspace. Begin with
//! `tidy::run`, whose modules have a rule each, and `suites::run`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod counts;
mod docs;
mod package;
mod suites;
mod tidy;

const USAGE: &str = "usage: cargo xtask tidy | docs [--check] | counts [--write] | \
                     test [--rounds N] [--busy] [--package NAME] | \
                     package [--binary PATH] [--out DIR]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["docs"] => docs::write(&root()),
        ["docs", "--check"] => docs::check(&root()),
        ["test", words @ ..] => suites::run(&root(), words),
        ["package", words @ ..] => package::run(&root(), words),
        ["counts"] => counts::run(&root(), false),
        ["counts", "--write"] => counts::run(&root(), true),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(said) => {
            eprintln!("{said}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root: two folders above this crate.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .unwrap_or_else(|| Path::new("."))
        .to_path_buf()
}
