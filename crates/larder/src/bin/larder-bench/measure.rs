//! `larder bench URL...`: measures one list, at one load or several.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bench::result::{RunRemark, RunResult, Series, VERSION};
use bench::sweep::Sweep;
use clap::Args;

use super::args::settings;
use super::view::RunView;
use super::{RunArgs, VerbError, figures, stopped_at_interrupt};

/// Duration of a round, and of its warm-up.
const TIMES: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(1));

/// Arguments of a run.
#[derive(Clone, Debug, Args)]
pub(super) struct MeasureArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Name of the series in the result.
    #[arg(long, value_name = "NAME", help_heading = "Result")]
    name: Option<String>,
}

/// Measures.
pub(super) fn run(args: &MeasureArgs) -> Result<ExitCode, VerbError> {
    let RunArgs { ask, load, protocol, result } = &args.run;
    let (settings, values) = settings(ask, load, protocol, TIMES)?;
    let observed = result.observed()?;
    let first = settings.first_url();
    bench::load::probe(&settings).map_err(VerbError::unmeasured)?;
    let began_s = now();
    let name = args.name.clone().unwrap_or_else(|| ask.url.join(" "));
    let besides = settings.background.all() as u64;
    let stop = stopped_at_interrupt()?;
    let axis = bench::sweep::axis(&settings.load);
    let view = RunView::new(&format!("larder bench {first}"), axis, result.plain, &stop)?;
    let view = RefCell::new(view);
    let series = Sweep {
        settings,
        values,
        rounds: load.rounds.unwrap_or(1).max(1),
        name,
        observed,
        before: &mut || result.before(),
        watch: &mut |round, x, progress| {
            view.borrow_mut().watch(format!("round {} at {x}", round + 1), progress);
        },
        done: &mut |_, x, round| view.borrow_mut().row(x, round),
        stop,
    }
    .run();
    // The live view must end before anything is printed.
    drop(view);
    let series = series.map_err(VerbError::unmeasured)?;
    let mut verdicts = bench::remarks::of_series(&series, besides);
    result.ask_why(&mut verdicts, &first);
    let run = run_of(vec![series], verdicts, began_s);
    figures::rest(&run);
    result.conclude(&run)
}

/// The present moment, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// A run of these series on this machine.
pub(super) fn run_of(series: Vec<Series>, verdicts: Vec<RunRemark>, began_s: u64) -> RunResult {
    RunResult {
        version: VERSION,
        settings: BTreeMap::new(),
        machine: bench::machine::describe(),
        versions: BTreeMap::from([("larder".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        began_s,
        series,
        verdicts,
    }
}
