//! `larder bench compare`: interleaved rounds of several servers, and the ratios of their results.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bench::comparison::{Comparison, Figure};
use bench::load::Runner;
use bench::result::{Axis, Point, Round, Series};
use clap::Args;

use super::args::settings;
use super::measure::{now, run_of};
use super::view::RunView;
use super::{ResultArgs, RunArgs, VerbError, figures, stopped_at_interrupt};

/// Duration of a round, and of its warm-up.
const TIMES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(100));
/// Rounds of each server: enough to detect 5% on a machine whose rounds differ by 4%. Many short
/// rounds are better than a few long ones, since other load on the machine varies.
const ROUNDS: usize = 40;

const AFTER_HELP: &str = "\
Each round asks all servers, one after another, the next round in the other order. A ratio is the \
middle of all rounds' ratios to the first server, with the interval of the signed-rank test at \
99.9%. Differences below 1% are not told.

Examples:
  larder bench compare http://127.0.0.1:8080/ http://127.0.0.1:8081/
  larder bench compare --rate 2000 --urls paths http://127.0.0.1:8080 http://127.0.0.1:8081";

/// Compare servers: interleaved rounds, and ratios with their intervals.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct CompareArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Compares.
pub(super) fn run(args: &CompareArgs) -> Result<ExitCode, VerbError> {
    let RunArgs { ask, load, protocol, result } = &args.run;
    if ask.url.len() < 2 {
        return Err("a comparison needs two URLs or more".to_owned().into());
    }
    let stop = stopped_at_interrupt()?;
    let observed = result.observed()?;
    let mut sides = Vec::new();
    let mut axis = None;
    for url in &ask.url {
        let (settings, values) = settings(&ask.of_one(url), load, protocol, TIMES)?;
        let [value] = values.as_slice() else {
            return Err("a comparison is made at one load, not at several".to_owned().into());
        };
        let settings = bench::sweep::at(&settings, *value);
        axis = Some((bench::sweep::axis(&settings.load), *value));
        bench::load::probe(&settings).map_err(VerbError::unmeasured)?;
        let runner = Runner::new(&settings, observed.clone(), Arc::clone(&stop))?;
        sides.push((url.clone(), runner, Vec::<Round>::new()));
    }
    let Some((axis, x)) = axis else {
        return Err("a comparison needs two URLs or more".to_owned().into());
    };
    let began_s = now();
    let mut view = RunView::new("larder bench compare", axis, result.plain, &stop)?;
    let rounds = load.rounds.unwrap_or(ROUNDS).max(1);
    for round in 0..rounds {
        for nth in 0..sides.len() {
            let at = if round % 2 == 0 { nth } else { sides.len() - 1 - nth };
            let Some((url, runner, measured)) = sides.get_mut(at) else {
                continue;
            };
            if stop.load(Ordering::Relaxed) {
                continue;
            }
            result.before()?;
            let mut watch = |progress: &bench::load::LoadProgress| {
                view.watch(format!("round {} of {rounds}, {url}", round + 1), progress);
            };
            measured.push(runner.round(&mut watch).map_err(VerbError::unmeasured)?);
        }
    }
    drop(view);
    let sides: Vec<_> = sides.into_iter().map(|(url, _, rounds)| (url, rounds)).collect();
    conclude(result, &sides, axis, x, began_s)
}

fn conclude(
    result: &ResultArgs,
    sides: &[(String, Vec<Round>)],
    axis: Axis,
    x: f64,
    began_s: u64,
) -> Result<ExitCode, VerbError> {
    base::show!("{}", Comparison::of(sides, &Figure::ALL).to_string().trim_end());
    let series: Vec<_> = sides
        .iter()
        .map(|(url, rounds)| Series {
            name: url.clone(),
            axis,
            points: vec![Point { x, rounds: rounds.clone() }],
        })
        .collect();
    let mut verdicts = bench::remarks::of_sides(sides);
    for one in &series {
        // The intervals cover the spread of single rounds.
        let own = bench::remarks::of_series(one, 0);
        verdicts.extend(own.into_iter().filter(|verdict| verdict.name != "noisy").map(
            |mut verdict| {
                verdict.text = format!("{}: {}", one.name, verdict.text);
                verdict
            },
        ));
    }
    let run = run_of(series, verdicts, began_s);
    figures::notes(&run);
    result.conclude(&run)
}
