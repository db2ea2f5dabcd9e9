//! `larder-top`: the program for screens (`larder top`, `hist`, `stat`), and for the man pages and
//! completions of all programs (`larder completions`, `larder manual`).

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Live screens of the running daemon.
#[derive(Debug, Parser)]
#[command(name = "larder-top", bin_name = "larder", version, max_term_width = 100)]
struct TopCli {
    #[command(subcommand)]
    verb: TopVerb,
}

#[derive(Debug, Subcommand)]
enum TopVerb {
    Top(tools::TopArgs),
    Hist(tools::HistArgs),
    Stat(tools::StatArgs),
    /// Print the completions of verbs and options for a shell.
    #[command(after_help = "Examples:\n  \
                            source <(larder completions bash)\n  \
                            larder completions fish > ~/.config/fish/completions/larder.fish")]
    Completions {
        /// The shell.
        shell: manual::Shell,
    },
    /// Write the man pages and the shells' completions below a folder, as for a package.
    #[command(hide = true)]
    Manual {
        /// Folder; it is created if missing.
        folder: PathBuf,
        /// Date of the pages, such as 2026-11-27.
        #[arg(long)]
        date: String,
    },
}

fn main() -> ExitCode {
    if tools::print_description(&TopCli::command(), tools::SettingsReference::default) {
        return ExitCode::SUCCESS;
    }
    let result = match TopCli::parse().verb {
        TopVerb::Top(args) => tools::top(&args),
        TopVerb::Hist(args) => tools::hist(&args),
        TopVerb::Stat(args) => tools::stat_moving(&args),
        TopVerb::Completions { shell } => complete(shell),
        TopVerb::Manual { folder, date } => write(&folder, &date),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            base::say!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// The verbs of all programs, as of one program.
fn whole() -> Result<tools::ProgramDescription, String> {
    let mut whole = tools::read_description("larder")?;
    whole.verb.merge_programs(tools::VerbDescription::of(&TopCli::command()).into_verbs());
    whole.verb.merge_programs([tools::read_description("larder-bench")?.verb.named("bench")]);
    Ok(whole)
}

/// Prints the completions for `shell`; a closed pipe is no failure.
fn complete(shell: manual::Shell) -> Result<(), String> {
    tools::print(&manual::completions(&whole()?.verb.command(), shell)).map(|_| ())
}

/// Writes the man pages and the shells' completions below `folder`.
fn write(folder: &Path, date: &str) -> Result<(), String> {
    manual::write(&whole()?, date, folder)
        .map_err(|error| format!("larder: {}: {error}", folder.display()))
}
