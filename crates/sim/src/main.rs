//! The simulator's command line: `sim FROM COUNT` plays schedules and checks forecasts, with
//! `--first` until the first failure; `sim --trace SEED` plays one with all its events.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // Most failures before it ends.
    let most = if args.last().is_some_and(|last| last == "--first") { 1 } else { 20 };
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse::<u64>().ok());
    let (from, count, traced) = match (args.first().map(String::as_str), number(0), number(1)) {
        (Some("--trace"), _, Some(seed)) => (seed, 1, true),
        (_, Some(from), Some(count)) => (from, count, false),
        _ => {
            eprintln!("usage: sim FROM COUNT [--first] | sim --trace SEED");
            return ExitCode::from(2);
        }
    };
    let (begun_us, mut failed, mut answers, mut played) = (rt::micros(), 0, 0, 0);
    let mut forecasts = 0;
    for seed in from..from.saturating_add(count) {
        played += 1;
        let played = sim::run(seed, traced).map_err(|failure| failure.to_string());
        let broken = match played {
            Ok(tally) => {
                answers += tally.answers;
                if traced {
                    println!("{tally:?}");
                }
                sim::compare_forecasts(seed).map(|compared| forecasts += compared.forecasts).err()
            }
            Err(failure) => Some(failure),
        };
        if let Some(broken) = broken {
            failed += 1;
            println!("{broken}");
            if failed >= most {
                break;
            }
        }
    }
    let ms = rt::micros().saturating_sub(begun_us) / 1_000;
    println!(
        "{played} schedules, {answers} answers, {forecasts} forecasts, {failed} failed, {ms} ms"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
