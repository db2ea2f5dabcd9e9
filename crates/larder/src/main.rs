//! The `larder` program: verbs over the libraries.

mod check;
mod demo;
mod disk_verb;
mod hitch;
mod preset;
mod serve_verb;
mod varnishd;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use tools::{AdminArgs, ExternalVerbArgs};

use serve_verb::USUAL_CONFIG;

#[cfg(not(larder_demo))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The program with the screens, and the one that puts load on servers.
const TOP: &str = "larder-top";
const BENCH: &str = "larder-bench";

/// The ways to stop a daemon.
const STOP: &str = "larder: a daemon is stopped by `systemctl stop larder`, one that was started by \
                    hand by Ctrl-C or `kill -TERM PID`: it finishes its requests first";

/// HTTP accelerator: page cache, policy and origin client in one daemon.
#[derive(Debug, Parser)]
#[command(name = "larder", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: LarderVerb,
}

#[derive(Debug, Subcommand)]
enum LarderVerb {
    /// Run the daemon, in the foreground.
    #[command(aliases = ["run", "start"])]
    Serve(Box<serve_verb::ServeArgs>),
    /// Run it in front of a slow built-in origin, and show what happens.
    Demo(demo::DemoArgs),
    /// Check a configuration file and say what is wrong, and where.
    #[command(aliases = ["validate", "test"])]
    Check {
        /// The file.
        #[arg(default_value = USUAL_CONFIG)]
        config: PathBuf,
        /// Also print every site in full: presets applied, rules in the order in which they decide.
        #[arg(long)]
        show: bool,
    },
    /// Presets: rules for a kind of site, such as wordpress.
    #[command(subcommand)]
    Preset(preset::PresetVerb),
    /// Have the running daemon read its configuration again; the cache and all connections stay.
    Reload(AdminArgs),
    Dashboard(tools::DashboardArgs),
    Explain(tools::ExplainArgs),
    Purge(tools::PurgeArgs),
    /// Nodes that tell each other what they invalidate, and share a configuration (`[cluster]`).
    #[command(subcommand)]
    Cluster(tools::ClusterVerb),
    /// Look whether a log of changes (`[admin] audit`) is whole.
    CheckAudit {
        /// The file.
        file: PathBuf,
    },
    Log(tools::LogArgs),
    /// Show what is asked for most: URLs, clients, user agents, statuses and more, as it changes.
    Top(ExternalVerbArgs),
    /// Show how long requests take, as it changes: hits as `|`, all others as `#`.
    Hist(ExternalVerbArgs),
    Stat(tools::StatArgs),
    Status(tools::StatusArgs),
    Logstat(tools::LogstatArgs),
    /// Ask a server as often as wanted, and say what came of it.
    Bench(ExternalVerbArgs),
    /// Look after the cache on disk (`[disk]`) while no daemon uses it.
    #[command(subcommand)]
    Disk(disk_verb::DiskVerb),
    /// Print what a shell needs to complete verbs and options.
    Completions(ExternalVerbArgs),
    /// Say how a daemon is stopped.
    #[command(hide = true)]
    Stop,
    /// Print the version.
    #[command(hide = true)]
    Version,
    /// Write the man pages and the shells' completions below a folder, as packages have them.
    #[command(hide = true)]
    Manual(ExternalVerbArgs),
    /// Helper process that a daemon starts beside itself.
    #[command(hide = true)]
    Keeper(KeeperArgs),
}

/// Arguments that the keeper gets at its start.
#[derive(Debug, Args)]
struct KeeperArgs {
    /// Configuration file whose files may be opened, and which may be itself.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Further file that may be read; repeatable.
    #[arg(long)]
    file: Vec<PathBuf>,
    /// File or folder that is taken away when the daemon has ended; repeatable.
    #[arg(long)]
    clear: Vec<PathBuf>,
}

fn main() -> ExitCode {
    if tools::print_description(&Cli::command(), settings) {
        return ExitCode::SUCCESS;
    }
    let result = match Cli::parse().verb {
        LarderVerb::Serve(args) => serve_verb::serve(*args),
        LarderVerb::Demo(args) => demo::run(&args),
        LarderVerb::Check { config, show } => check::check(&config, show),
        LarderVerb::Preset(verb) => preset::run(&verb),
        LarderVerb::Reload(args) => tools::reload(&args.admin_socket),
        LarderVerb::Dashboard(args) => tools::dashboard(&args),
        LarderVerb::Explain(args) => tools::explain(&args),
        LarderVerb::Purge(args) => tools::purge(&args),
        LarderVerb::Cluster(verb) => tools::cluster(&verb, gather),
        LarderVerb::CheckAudit { file } => check::check_audit(&file),
        LarderVerb::Log(args) => tools::log(&args),
        LarderVerb::Top(args) => args.run(TOP, &["top"]),
        LarderVerb::Hist(args) => args.run(TOP, &["hist"]),
        LarderVerb::Stat(args) => stat(&args),
        LarderVerb::Status(args) => tools::status(&args),
        LarderVerb::Completions(args) => args.run(TOP, &["completions"]),
        LarderVerb::Manual(args) => args.run(TOP, &["manual"]),
        LarderVerb::Stop => Err(STOP.to_owned()),
        LarderVerb::Version => {
            base::show!("larder {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        LarderVerb::Logstat(args) => tools::logstat(&args),
        LarderVerb::Bench(args) => args.run(BENCH, &[]),
        LarderVerb::Disk(verb) => disk_verb::run(&verb),
        LarderVerb::Keeper(KeeperArgs { config, file, clear }) => {
            daemon::keep(&daemon::KeeperArgs::new(config, file, clear))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            base::say!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Shows the figures: moving ones if there is a terminal and the program that draws on it.
fn stat(args: &tools::StatArgs) -> Result<(), String> {
    if args.moves() {
        // It returns only where there is none.
        _ = tools::exec_program(TOP, std::env::args_os().skip(1));
    }
    tools::stat(args)
}

/// The tables of larder.toml, for its page.
fn settings() -> tools::SettingsReference {
    let key = |key: config::Key| tools::Key {
        name: key.name.to_owned(),
        takes: key.takes.to_owned(),
        default: key.default.to_string(),
        about: key.about.to_owned(),
    };
    let sections = config::reference_sections().into_iter().map(|section| tools::Section {
        title: section.title.to_owned(),
        about: section.about.to_owned(),
        keys: (section.keys)().into_iter().map(key).collect(),
    });
    let introduction = config::REFERENCE_INTRODUCTION.to_owned();
    tools::SettingsReference { introduction, sections: sections.collect() }
}

/// Reads a configuration that nodes are to share, as it is rolled out.
fn gather(path: &std::path::Path) -> Result<serde_json::Value, String> {
    let carried = daemon::gather(path)?;
    serde_json::to_value(carried).map_err(|error| format!("larder: {error}"))
}
