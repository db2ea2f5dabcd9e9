//! `larder bench`: the load tool.

mod args;
mod figures;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bench::result::{Run, VERSION};
use bench::settings::Observed;
use bench::sweep::Sweep;
use clap::Args;

const AFTER_HELP: &str = "\
Examples:
  larder bench http://127.0.0.1:8080/                        10 connections for 10 s
  larder bench -c 1,2,5,10..400 --rounds 5 http://127.0.0.1/ each of them, five times in turns
  larder bench --rate 500,1000,2000 http://127.0.0.1/        fixed rates, timed from when due
  larder bench --ramp 1..1000 -d 60s --urls list http://127.0.0.1
  larder bench --http2 32 -c 16 https://example.org/

Exit codes: 0 measured; 1 nothing could be measured; 2 wrong arguments.";

/// Ask a server as often as wanted, and say what came of it.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    ask: args::AskArgs,
    #[command(flatten)]
    load: args::LoadArgs,
    #[command(flatten)]
    protocol: args::ProtocolArgs,
    #[command(flatten)]
    result: ResultArgs,
}

/// What is measured besides, and where the result goes.
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
    /// Command before each round, such as one that empties the cache.
    #[arg(long, value_name = "COMMAND")]
    before: Option<String>,
    /// Name of the series in the result.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the result to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs `larder bench`.
pub(crate) fn run(args: &BenchArgs) -> ExitCode {
    match measured(args) {
        Ok(code) => code,
        Err(message) => {
            base::say!("larder bench: {message}");
            ExitCode::from(2)
        }
    }
}

fn measured(args: &BenchArgs) -> Result<ExitCode, String> {
    let (settings, values) = args::settings(&args.ask, &args.load, &args.protocol)?;
    let observed = args.result.observed()?;
    let stop = Arc::new(AtomicBool::new(false));
    stop_at_interrupt(&stop)?;
    let began_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let name = args.result.name.clone().unwrap_or_else(|| args.ask.url.join(" "));
    let terminal = std::io::stderr().is_terminal();
    let mut table = figures::Table::new(bench::sweep::axis(&settings.load));
    let before = args.result.before.clone();
    let series = Sweep {
        settings,
        values,
        rounds: args.load.rounds.max(1),
        name,
        observed,
        before: &mut || before.as_deref().map_or(Ok(()), command),
        watch: &mut |round, x, progress| {
            if terminal {
                figures::line(round, x, progress);
            }
        },
        done: &mut |_, x, round| {
            if terminal {
                figures::clear();
            }
            table.row(x, round);
        },
        stop: Arc::clone(&stop),
    }
    .run()?;
    let run = Run {
        version: VERSION,
        settings: BTreeMap::new(),
        machine: bench::machine::describe(),
        versions: BTreeMap::from([("larder".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        began_s,
        series: vec![series],
        verdicts: Vec::new(),
    };
    figures::rest(&run);
    if let Some(path) = &args.result.json {
        let text = bench::result::to_json(&run)?;
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let any = run.series.iter().flat_map(|series| &series.points).flat_map(|point| &point.rounds);
    let any = any.map(|round| round.completed).sum::<u64>();
    Ok(if any > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lets Ctrl-C end the measurement, so that what was measured is printed; a second one ends the
/// program.
fn stop_at_interrupt(stop: &Arc<AtomicBool>) -> Result<(), String> {
    let stop = Arc::clone(stop);
    std::thread::Builder::new()
        .name("bench-signals".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else {
                return;
            };
            runtime.block_on(async {
                if tokio::signal::ctrl_c().await.is_ok() {
                    stop.store(true, Ordering::Relaxed);
                }
                if tokio::signal::ctrl_c().await.is_ok() {
                    std::process::exit(130);
                }
            });
        })
        .map(|_| ())
        .map_err(|error| format!("cannot start a thread: {error}"))
}

/// Runs a command of the shell.
fn command(text: &str) -> Result<(), String> {
    let status = std::process::Command::new("sh")
        .args(["-c", text])
        .status()
        .map_err(|error| format!("--before '{text}': {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("--before '{text}': {status}")) }
}

impl ResultArgs {
    fn observed(&self) -> Result<Vec<(String, Observed)>, String> {
        let mut all = Vec::new();
        for pid in &self.pid {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            all.push((format!("{} {pid}", name.trim()), Observed::Process(*pid)));
        }
        for folder in &self.cgroup {
            all.push((folder.display().to_string(), Observed::Group(folder.clone())));
        }
        for unit in &self.unit {
            all.push((unit.clone(), Observed::Group(unit_group(unit)?)));
        }
        for (_, one) in &all {
            bench::machine::check(one)?;
        }
        Ok(all)
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
