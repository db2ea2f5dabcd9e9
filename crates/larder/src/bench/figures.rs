//! Figures of a run on the terminal.

use bench::latency::Latency;
use bench::load::Progress;
use bench::result::{Axis, Round, Run};

/// The table of rounds.
pub(crate) struct Table {
    axis: Axis,
    begun: bool,
}

impl Table {
    /// A table with `axis` in its first column.
    pub(crate) fn new(axis: Axis) -> Self {
        Self { axis, begun: false }
    }

    /// Prints a round, below the heads of the columns.
    pub(crate) fn row(&mut self, x: f64, round: &Round) {
        if !self.begun {
            self.begun = true;
            let axis = match self.axis {
                Axis::Connections => "connections",
                Axis::Rate => "rate",
                Axis::Sessions => "sessions/s",
                Axis::Speed => "speed",
            };
            println!(
                "{axis:>11} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}",
                "requests/s", "mean", "p50", "p90", "p99", "p99.9", "max", "hits", "errors"
            );
        }
        let failed = round.attempted - round.completed;
        let rate = round.completed as f64 / (round.elapsed_us.max(1) as f64 / 1e6);
        let of = |value: fn(&Latency) -> f64| match &round.last_byte {
            Some(latency) => time(value(latency)),
            None => "-".to_owned(),
        };
        println!(
            "{x:>11} {rate:>10.1} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {failed:>7}",
            of(|latency| latency.mean),
            of(|latency| latency.p50 as f64),
            of(|latency| latency.p90 as f64),
            of(|latency| latency.p99 as f64),
            of(|latency| latency.p99_9 as f64),
            of(|latency| latency.max as f64),
            hit_ratio(round)
                .map_or_else(|| "-".to_owned(), |ratio| format!("{:.1}%", ratio * 100.0)),
        );
    }
}

/// Share of hits among the responses that told.
fn hit_ratio(round: &Round) -> Option<f64> {
    let told = round.completed.checked_sub(round.source_unknown).filter(|told| *told > 0)?;
    Some(round.hits.values().sum::<u64>() as f64 / told as f64)
}

/// Prints what the rounds of a run had together: what was received, from where, at what cost.
pub(crate) fn rest(run: &Run) {
    let points = run.series.iter().flat_map(|series| &series.points);
    let all = Round::together(points.flat_map(|point| &point.rounds));
    let seconds = all.elapsed_us.max(1) as f64 / 1e6;
    println!();
    let statuses: Vec<_> =
        all.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect();
    println!("responses   {} ({})", all.completed, statuses.join(", "));
    for (kind, count) in &all.errors {
        let text = all.error_texts.get(kind).map_or("", String::as_str);
        println!("errors      {count} x {kind}: {text}");
    }
    // A closed loop ends in the middle of its last requests.
    let open = run.series.iter().any(|series| series.axis != Axis::Connections);
    if all.unfinished > 0 && (open || all.completed == 0) {
        println!("unfinished  {}", all.unfinished);
    }
    println!(
        "received    {:.2} MB/s, sent {:.2} MB/s, {} connections",
        all.bytes_received as f64 / 1e6 / seconds,
        all.bytes_sent as f64 / 1e6 / seconds,
        all.connections
    );
    let share = |cpu_us: u64| cpu_us as f64 / all.elapsed_us.max(1) as f64 * 100.0;
    println!("this tool   {:.0}% of a core", share(all.generator_cpu_us));
    for (name, usage) in &all.servers {
        let each = usage.cpu_us as f64 / all.completed.max(1) as f64;
        println!(
            "server      {name}: {:.0}% of a core, {each:.1} us a response, {} MiB",
            share(usage.cpu_us),
            usage.resident_bytes >> 20
        );
    }
    notes(run);
}

/// Prints the tool's remarks.
pub(crate) fn notes(run: &Run) {
    for verdict in &run.verdicts {
        println!("note        {}", verdict.text);
    }
}

/// A time in microseconds, in the unit that fits it.
fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1e3 => format!("{micros:.0} us"),
        _ if micros < 1e4 => format!("{:.2} ms", micros / 1e3),
        _ if micros < 1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// Writes where a measurement is, over what stood there.
pub(crate) fn line(place: &str, progress: &Progress) {
    let state = match (progress.measured, progress.whole) {
        (None, _) => "warming up".to_owned(),
        (Some(measured), Some(whole)) => {
            format!("{:.0} of {:.0} s", measured.as_secs_f64(), whole.as_secs_f64())
        }
        (Some(measured), None) => format!("{:.0} s", measured.as_secs_f64()),
    };
    let recent = progress.recent.map_or_else(String::new, |(p50, p99)| {
        format!(", p50 {}, p99 {}", time(p50 as f64), time(p99 as f64))
    });
    eprint!(
        "\r\x1b[K{place}: {state}, {} responses, {} errors{recent}",
        progress.completed, progress.failed
    );
}

/// Takes the line away.
pub(crate) fn clear() {
    eprint!("\r\x1b[K");
}
