//! Plays schedules by their seeds: `sim FROM COUNT`, with `--first` behind it until the first that
//! fails; or one of them with all its events: `sim --trace SEED`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // So many failures are looked at before it ends.
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
    for seed in from..from.saturating_add(count) {
        played += 1;
        match sim::run(seed, traced) {
            Ok(tally) => {
                answers += tally.answers;
                if traced {
                    println!("{tally:?}");
                }
            }
            Err(failure) => {
                failed += 1;
                println!("{failure}");
                if failed >= most {
                    break;
                }
            }
        }
    }
    let ms = rt::micros().saturating_sub(begun_us) / 1_000;
    println!("{played} schedules, {answers} answers, {failed} failed, {ms} ms");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
