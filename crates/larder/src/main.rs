//! The `larder` program: verbs over the libraries.

#[cfg(not(larder_demo))]
mod bench;
mod check;
mod demo;
mod disk_verb;
mod hitch;
#[cfg(any(test, larder_demo))]
mod left_out;
#[cfg(not(larder_demo))]
mod parts;
mod preset;
mod serve_verb;
mod varnishd;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
#[cfg(larder_demo)]
use left_out as parts;
use tools::AdminArgs;

/// The configuration file, where none is named.
const USUAL_CONFIG: &str = "/etc/larder/larder.toml";

/// The ways to stop a daemon.
const STOP: &str = "larder: a daemon is stopped by `systemctl stop larder`, one that was started by \
                    hand by Ctrl-C or `kill -TERM PID`: it finishes its requests first";

/// HTTP accelerator: page cache, policy and origin client in one daemon.
#[derive(Debug, Parser)]
#[command(name = "larder", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
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
    Top(parts::TopArgs),
    Hist(parts::HistArgs),
    Stat(tools::StatArgs),
    Status(tools::StatusArgs),
    Logstat(tools::LogstatArgs),
    Bench(Box<parts::BenchArgs>),
    /// Look after the cache on disk (`[disk]`) while no daemon uses it.
    #[command(subcommand)]
    Disk(disk_verb::DiskVerb),
    /// Print what a shell needs to complete verbs and options.
    #[command(after_help = "Examples:\n  \
                            source <(larder completions bash)\n  \
                            larder completions fish > ~/.config/fish/completions/larder.fish")]
    Completions {
        /// The shell.
        shell: parts::Shell,
    },
    /// Say how a daemon is stopped.
    #[command(hide = true)]
    Stop,
    /// Print the version.
    #[command(hide = true)]
    Version,
    /// Write the man pages and the shells' completions below a folder, as packages have them.
    #[command(hide = true)]
    Manual {
        /// The folder; it is made if it is not there.
        folder: PathBuf,
        /// Date of the pages, such as 2026-11-27.
        #[arg(long)]
        date: String,
    },
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
    let result = match Cli::parse().verb {
        Verb::Serve(args) => serve_verb::serve(*args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Check { config, show } => check::check(&config, show),
        Verb::Preset(verb) => preset::run(&verb),
        Verb::Reload(args) => tools::reload(&args.admin_socket),
        Verb::Dashboard(args) => tools::dashboard(&args),
        Verb::Explain(args) => tools::explain(&args),
        Verb::Purge(args) => tools::purge(&args),
        Verb::Cluster(verb) => tools::cluster(&verb, gather),
        Verb::CheckAudit { file } => check::check_audit(&file),
        Verb::Log(args) => tools::log(&args),
        Verb::Top(args) => parts::top(&args),
        Verb::Hist(args) => parts::hist(&args),
        Verb::Stat(args) => tools::stat(&args),
        Verb::Status(args) => tools::status(&args),
        Verb::Completions { shell } => parts::complete(&Cli::command(), shell),
        Verb::Stop => Err(STOP.to_owned()),
        Verb::Version => {
            base::show!("larder {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        Verb::Logstat(args) => tools::logstat(&args),
        Verb::Bench(args) => return parts::bench(&args),
        Verb::Disk(verb) => disk_verb::run(&verb),
        Verb::Manual { folder, date } => parts::manual(&Cli::command(), &date, &folder),
        Verb::Keeper(KeeperArgs { config, file, clear }) => {
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

/// Reads a configuration that nodes are to share, as it is rolled out.
fn gather(path: &std::path::Path) -> Result<serde_json::Value, String> {
    let carried = daemon::gather(path)?;
    serde_json::to_value(carried).map_err(|error| format!("larder: {error}"))
}

#[cfg(all(test, not(larder_demo)))]
mod tests {
    use clap::Command;

    use super::*;

    /// Pushes the names of all verbs below `command` that help shows, with their options.
    fn collect(command: &Command, name: &str, found: &mut Vec<(String, Vec<String>)>) {
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set());
        let long = arguments.filter_map(|argument| argument.get_long());
        found.push((name.to_owned(), long.map(|long| format!("--{long}")).collect()));
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            collect(verb, &format!("{name}-{}", verb.get_name()), found);
        }
    }

    #[test]
    fn every_verb_and_option_has_its_page_and_its_completions() {
        let documents = manual::documents(&Cli::command(), "2026-01-02").expect("memory");
        let text = |path: &str| {
            let found = documents.iter().find(|document| document.path == path);
            let found = found.unwrap_or_else(|| panic!("no {path}"));
            String::from_utf8(found.bytes.clone()).expect("text")
        };
        let shells = ["larder", "_larder", "larder.fish"];
        let shells = shells.map(|name| text(&format!("completions/{name}")));
        let mut verbs = Vec::new();
        collect(&Cli::command(), "larder", &mut verbs);
        assert!(verbs.len() > 20, "{verbs:?}");
        for (name, options) in &verbs {
            let page = text(&format!("man1/{name}.1")).replace("\\-", "-");
            let verb = name.rsplit('-').next().unwrap_or_default();
            assert!(shells.iter().all(|words| words.contains(verb)), "{name}");
            for option in options {
                assert!(page.contains(option.as_str()), "{name} {option}");
                let [bash, zsh, fish] = &shells;
                assert!(bash.contains(option.as_str()), "{name} {option}");
                assert!(zsh.contains(option.as_str()), "{name} {option}");
                // Below a verb's verb, clap_complete has nothing for fish.
                let deep = name.starts_with("larder-bench-urls-");
                let word = format!("-l {}", &option[2..]);
                assert!(fish.contains(&word) || deep, "{name} {option}");
            }
        }
        let pages = documents.iter().filter(|document| document.path.starts_with("man1/"));
        assert_eq!(pages.count(), verbs.len(), "no page of what help does not show");
    }
}
