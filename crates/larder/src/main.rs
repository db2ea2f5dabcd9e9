//! The `larder` program: its verbs, over the libraries.
//!
//! Begin reading at `LarderVerb`, which lists the verbs, and at `serve_verb`, which starts the
//! daemon.

mod advise_verb;
mod check;
mod demo;
mod disk_verb;
mod hitch;
mod import_verb;
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

/// The program with the screens, and the load tool.
const TOP: &str = "larder-top";
const BENCH: &str = "larder-bench";

/// The message about stopping a daemon.
const STOP: &str = "larder: a daemon is stopped by `systemctl stop larder`, one that was started by \
                    hand by Ctrl-C or `kill -TERM PID`: it finishes its requests first";

/// HTTP accelerator: page cache, TLS, FastCGI and VCL in one daemon.
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
    /// Run the daemon in front of a slow built-in origin, and show what happens.
    Demo(demo::DemoArgs),
    /// Check a configuration file and report what is wrong, and where.
    #[command(aliases = ["validate", "test"])]
    Check {
        /// The file.
        #[arg(default_value = USUAL_CONFIG)]
        config: PathBuf,
        /// Also print every site in full: presets applied, rules in the order in which they decide.
        #[arg(long)]
        show: bool,
    },
    Import(import_verb::ImportArgs),
    /// Presets: rules for a kind of site, such as wordpress.
    #[command(subcommand)]
    Preset(preset::PresetVerb),
    /// Make the running daemon read its configuration again; the cache and all connections stay.
    Reload(AdminArgs),
    Upgrade(tools::UpgradeArgs),
    Dashboard(tools::DashboardArgs),
    Explain(tools::ExplainArgs),
    Advise(advise_verb::AdviseArgs),
    Purge(tools::PurgeArgs),
    Warm(tools::WarmArgs),
    /// Show and control a cluster (`[cluster]`): nodes that share invalidations and a
    /// configuration.
    #[command(subcommand)]
    Cluster(tools::ClusterVerb),
    /// Check that an audit log (`[admin] audit`) is complete.
    CheckAudit {
        /// The file.
        file: PathBuf,
    },
    Log(tools::LogArgs),
    /// Show the most frequent URLs, clients, user agents, statuses and more, live.
    Top(ExternalVerbArgs),
    /// Show response times, live: hits as `|`, all others as `#`.
    Hist(ExternalVerbArgs),
    Stat(tools::StatArgs),
    Status(tools::StatusArgs),
    Logstat(tools::LogstatArgs),
    /// Put load on a server, and measure it.
    Bench(ExternalVerbArgs),
    /// Check, report, empty or export the disk cache (`[disk]`) while no daemon uses it.
    #[command(subcommand)]
    Disk(disk_verb::DiskVerb),
    /// Print the completions of verbs and options for a shell.
    Completions(ExternalVerbArgs),
    /// Explain how to stop a daemon.
    #[command(hide = true)]
    Stop,
    /// Print the version.
    #[command(hide = true)]
    Version,
    /// Write the man pages and the shells' completions below a folder, as for a package.
    #[command(hide = true)]
    Manual(ExternalVerbArgs),
    /// Helper process that a daemon starts beside itself.
    #[command(hide = true)]
    Keeper(KeeperArgs),
}

/// Arguments that the keeper gets at its start.
#[derive(Debug, Args)]
struct KeeperArgs {
    /// Configuration file whose files may be opened, and which may be opened itself.
    #[arg(long)]
    config: Option<PathBuf>,
    /// Further file that may be read; repeatable.
    #[arg(long)]
    file: Vec<PathBuf>,
    /// File or folder to remove when the daemon has ended; repeatable.
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
        LarderVerb::Import(args) => return import_verb::run(&args),
        LarderVerb::Preset(verb) => preset::run(&verb),
        LarderVerb::Reload(args) => tools::reload(&args.admin_socket),
        LarderVerb::Upgrade(args) => tools::upgrade(&args),
        LarderVerb::Dashboard(args) => tools::dashboard(&args),
        LarderVerb::Explain(args) => tools::explain(&args),
        LarderVerb::Advise(args) => advise_verb::run(&args),
        LarderVerb::Purge(args) => tools::purge(&args),
        LarderVerb::Warm(args) => tools::warm(&args),
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

/// Shows the figures: live on a terminal, if the program for it is installed.
fn stat(args: &tools::StatArgs) -> Result<(), String> {
    if args.moves() {
        // It returns only if that is missing.
        _ = tools::exec_program(TOP, std::env::args_os().skip(1));
    }
    tools::stat(args)
}

/// The tables of larder.toml, for its man page.
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

/// Reads a configuration to share with all nodes, as a bundle.
fn gather(path: &std::path::Path) -> Result<serde_json::Value, String> {
    let carried = daemon::gather(path)?;
    serde_json::to_value(carried).map_err(|error| format!("larder: {error}"))
}
