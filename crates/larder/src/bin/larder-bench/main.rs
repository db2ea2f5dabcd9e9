//! `larder-bench`: the load tool, which `larder bench` runs.

mod args;
mod compare;
mod diff;
mod figures;
mod measure;
mod quick;
mod report;
mod urls;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bench::conditions::RoundCondition;
use bench::result::{RunRemark, RunResult};
use bench::settings::{Tls, UsageSource};
use bench::target::TargetServer;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

#[cfg(not(larder_demo))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Exit code of a run in which a condition of --fail-if held.
const FAILED_IF: u8 = 3;

const AFTER_HELP: &str = "\
Examples:
  larder bench http://127.0.0.1:8080/                        10 connections for 10 s
  larder bench -c 1,2,5,10..400 --rounds 5 http://127.0.0.1/ each of them, five times in turns
  larder bench --rate 500,1000,2000 http://127.0.0.1/        fixed rates, timed from when due
  larder bench --ramp 1..1000 -d 60s --urls list http://127.0.0.1
  larder bench --http2 32 -c 16 --fail-if 'p99 > 20ms or errors > 0' https://example.org/

Exit codes: 0 measured; 1 nothing could be measured; 2 wrong arguments; 3 a condition of --fail-if \
held. Ctrl-C ends a run and prints what was measured until then.";

/// Put load on a server, and measure it.
#[derive(Debug, Parser)]
#[command(
    name = "larder-bench",
    bin_name = "larder bench",
    version,
    max_term_width = 100,
    after_help = AFTER_HELP,
    args_conflicts_with_subcommands = true
)]
struct BenchArgs {
    #[command(subcommand)]
    verb: Option<BenchVerb>,
    #[command(flatten)]
    run: measure::MeasureArgs,
}

#[derive(Clone, Debug, Subcommand)]
enum BenchVerb {
    Compare(Box<compare::CompareArgs>),
    Diff(diff::DiffArgs),
    Quick(quick::QuickArgs),
    Report(report::ReportArgs),
    /// Make lists of URLs.
    #[command(subcommand)]
    Urls(urls::UrlsVerb),
}

/// Arguments of every measuring verb.
#[derive(Clone, Debug, Args)]
struct RunArgs {
    #[command(flatten)]
    ask: args::AskArgs,
    #[command(flatten)]
    load: args::LoadArgs,
    #[command(flatten)]
    protocol: args::ProtocolArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// Servers that are observed, and destinations of the result.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Result")]
struct ResultArgs {
    /// Server process whose CPU time and memory are measured, with its descendants; repeatable.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Control group (version 2) that is measured, by its folder; repeatable.
    #[arg(long, value_name = "FOLDER")]
    cgroup: Vec<PathBuf>,
    /// Unit of systemd that is measured; repeatable.
    #[arg(long, value_name = "UNIT")]
    unit: Vec<String>,
    /// Metrics page (Prometheus' text format) from which the server's CPU time and memory, its hits
    /// and its requests to the origin are read, by its URL; repeatable.
    #[arg(long, value_name = "URL")]
    metrics: Vec<String>,
    /// Command that runs before each round, such as one that empties the cache.
    #[arg(long, value_name = "COMMAND")]
    before: Option<String>,
    /// Admin socket of the Larder that is measured: its metrics are read, --cold empties its cache,
    /// and requests past the cache are reported with its reasons.
    #[arg(long, value_name = "PATH")]
    admin_socket: Option<PathBuf>,
    /// Empty the cache before each round.
    #[arg(long, requires = "admin_socket")]
    cold: bool,
    /// Print plain lines, not a live view.
    #[arg(long)]
    plain: bool,
    /// Write the result to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Exit with code 3 if this is true for a round, such as `p99 > 20ms or errors > 0`.
    #[arg(long, value_name = "CONDITION", value_parser = condition)]
    fail_if: Option<RoundCondition>,
    #[command(flatten)]
    pages: report::PageArgs,
}

fn condition(text: &str) -> Result<RoundCondition, String> {
    RoundCondition::parse(text).map_err(|error| error.to_string())
}

/// The exit code and message that a verb ends with.
struct VerbError {
    code: u8,
    text: String,
}

impl VerbError {
    /// The measurement failed.
    fn unmeasured(text: String) -> Self {
        Self { code: 1, text }
    }
}

/// Wrong arguments.
impl From<String> for VerbError {
    fn from(text: String) -> Self {
        Self { code: 2, text }
    }
}

fn main() -> ExitCode {
    if tools::print_description(&BenchArgs::command(), tools::SettingsReference::default) {
        return ExitCode::SUCCESS;
    }
    let args = BenchArgs::parse();
    let result = match &args.verb {
        None => measure::run(&args.run),
        Some(BenchVerb::Compare(args)) => compare::run(args),
        Some(BenchVerb::Diff(args)) => diff::run(args),
        Some(BenchVerb::Quick(args)) => quick::run(args),
        Some(BenchVerb::Report(args)) => report::run(args),
        Some(BenchVerb::Urls(verb)) => urls::run(verb),
    };
    result.unwrap_or_else(|trouble| {
        base::say!("larder bench: {}", trouble.text);
        ExitCode::from(trouble.code)
    })
}

/// A flag that Ctrl-C sets, so that the results so far are printed; a second one ends the program.
fn stopped_at_interrupt() -> Result<Arc<AtomicBool>, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    std::thread::Builder::new()
        .name("bench-signals".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else {
                return;
            };
            runtime.block_on(async {
                if tokio::signal::ctrl_c().await.is_ok() {
                    set.store(true, Ordering::Relaxed);
                }
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(130);
                }
            });
        })
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(stop)
}

impl ResultArgs {
    /// The servers that are observed.
    fn observed(&self) -> Result<Vec<(String, UsageSource)>, String> {
        let mut all = Vec::new();
        for pid in &self.pid {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            all.push((format!("{} {pid}", name.trim()), UsageSource::Process(*pid)));
        }
        for folder in &self.cgroup {
            all.push((folder.display().to_string(), UsageSource::Group(folder.clone())));
        }
        for unit in &self.unit {
            all.push((unit.clone(), UsageSource::Group(unit_group(unit)?)));
        }
        let counters_only = !all.is_empty();
        for url in &self.metrics {
            let (target, path) = TargetServer::parse(url)?;
            let tls = Tls { authorities: base::system_authorities(), resume: true };
            all.push((url.clone(), UsageSource::Metrics { target, path, tls, counters_only }));
        }
        if let Some(socket) = &self.admin_socket {
            let (target, path) = TargetServer::parse("http://localhost/metrics")?;
            let target = TargetServer { unix_socket: Some(socket.clone()), ..target };
            let tls = Tls { authorities: None, resume: true };
            let metrics = UsageSource::Metrics { target, path, tls, counters_only };
            all.push((format!("larder at {}", socket.display()), metrics));
        }
        for (_, one) in &all {
            bench::machine::check(one)?;
        }
        Ok(all)
    }

    /// Prepares a round.
    fn before(&self) -> Result<(), String> {
        if let (true, Some(socket)) = (self.cold, &self.admin_socket) {
            tools::purge_all(socket)?;
        }
        let Some(text) = &self.before else {
            return Ok(());
        };
        let status = std::process::Command::new("sh")
            .args(["-c", text])
            .status()
            .map_err(|error| format!("--before '{text}': {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("--before '{text}': {status}")) }
    }

    /// Adds Larder's own reasons to the remark that it did not cache.
    fn ask_why(&self, verdicts: &mut [RunRemark], url: &str) {
        let remark = verdicts.iter_mut().find(|verdict| verdict.name == "not-cached");
        if let (Some(remark), Some(socket)) = (remark, &self.admin_socket) {
            match tools::reasons(socket, url, &[]) {
                Ok(reasons) => {
                    remark.text = format!("{}. Larder on {url}: {reasons}", remark.text);
                }
                // The measurement is kept without the reason.
                Err(error) => base::say!("larder bench: no reason for {url}: {error}"),
            }
        }
    }

    /// Writes `run` to its destinations, and returns the program's exit code.
    fn conclude(&self, run: &RunResult) -> Result<ExitCode, VerbError> {
        if let Some(path) = &self.json {
            let text = bench::result::to_json(run)?;
            std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        let points = || run.series.iter().flat_map(|series| &series.points);
        let rounds = || points().flat_map(|point| &point.rounds);
        if rounds().map(|round| round.completed).sum::<u64>() == 0 {
            return Err(VerbError::unmeasured("no request was answered".to_owned()));
        }
        self.pages.write(vec![("run".to_owned(), run.clone())])?;
        let Some(condition) = &self.fail_if else {
            return Ok(ExitCode::SUCCESS);
        };
        let held: Vec<_> = points()
            .filter(|point| point.rounds.iter().any(|round| condition.holds(round)))
            .map(|point| point.x.to_string())
            .collect();
        if held.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        let text = format!("the condition of --fail-if held at {}", held.join(", "));
        Err(VerbError { code: FAILED_IF, text })
    }
}

/// The control group of a unit.
fn unit_group(unit: &str) -> Result<PathBuf, String> {
    let output = std::process::Command::new("systemctl")
        .args(["show", "--property", "ControlGroup", "--value", "--", unit])
        .output()
        .map_err(|error| format!("--unit {unit}: systemctl: {error}"))?;
    let group = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if group.is_empty() {
        return Err(format!("--unit {unit}: it is not running, or systemd is not"));
    }
    Ok(PathBuf::from(format!("/sys/fs/cgroup{group}")))
}
