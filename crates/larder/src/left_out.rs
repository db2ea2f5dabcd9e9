//! The demo build in place of the parts that it leaves out: each verb says so. It has the system's
//! allocator, too.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Args;

/// Left out of the demo build.
#[derive(Debug, Args)]
pub(crate) struct LeftOutArgs {
    /// Arguments, whatever they are.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _all: Vec<OsString>,
}

pub(crate) type TopArgs = LeftOutArgs;
pub(crate) type HistArgs = LeftOutArgs;
pub(crate) type BenchArgs = LeftOutArgs;
pub(crate) type Shell = String;

fn left_out(verb: &str) -> Result<(), String> {
    Err(format!("larder {verb}: {}", base::DEMO_BUILD))
}

pub(crate) fn top(_: &TopArgs) -> Result<(), String> {
    left_out("top")
}

pub(crate) fn hist(_: &HistArgs) -> Result<(), String> {
    left_out("hist")
}

pub(crate) fn bench(_: &BenchArgs) -> ExitCode {
    if let Err(message) = left_out("bench") {
        base::say!("{message}");
    }
    ExitCode::FAILURE
}

pub(crate) fn complete(_: &clap::Command, _: Shell) -> Result<(), String> {
    left_out("completions")
}

pub(crate) fn manual(_: &clap::Command, _: &str, _: &Path) -> Result<(), String> {
    left_out("manual")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    enum Cli {
        Top(TopArgs),
        Hist(HistArgs),
        Bench(BenchArgs),
        Completions { shell: Shell },
    }

    #[test]
    fn a_verb_that_is_left_out_says_so_whatever_its_arguments_are() {
        let said = |arguments: &[&str]| {
            let words = [&["larder"], arguments].concat();
            match Cli::try_parse_from(words).expect("any arguments are taken") {
                Cli::Top(args) => top(&args),
                Cli::Hist(args) => hist(&args),
                Cli::Bench(args) => {
                    assert_eq!(bench(&args), ExitCode::FAILURE);
                    left_out("bench")
                }
                Cli::Completions { shell } => complete(&Cli::command(), shell),
            }
        };
        let verbs: [&[&str]; 5] = [
            &["top"],
            &["hist", "--ttfb"],
            &["bench", "http://127.0.0.1/", "--rounds", "5", "-c", "8"],
            &["bench", "urls", "from-log", "-"],
            &["completions", "bash"],
        ];
        for arguments in verbs {
            let message = said(arguments).expect_err("it is left out");
            let start = format!("larder {}: this is the demo build", arguments[0]);
            assert!(message.starts_with(&start), "{message}");
            assert!(message.contains("`cargo build --release --package larder` builds"));
        }
        let of_packages = manual(&Cli::command(), "2026-01-02", Path::new("/nowhere"));
        assert!(of_packages.expect_err("left out").starts_with("larder manual: "));
    }
}
