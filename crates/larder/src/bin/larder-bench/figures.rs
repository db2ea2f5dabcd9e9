//! Figures of a run, printed on the terminal.

use bench::latency::Latency;
use bench::result::{Axis, Round, RunResult};

/// The heads of a table of rounds, with `axis` in its first column.
pub(crate) fn heads(axis: Axis) -> String {
    let axis = match axis {
        Axis::Connections => "connections",
        Axis::Rate => "rate",
        Axis::Sessions => "sessions/s",
        Axis::Speed => "speed",
    };
    format!(
        "{axis:>11} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}",
        "requests/s", "mean", "p50", "p90", "p99", "p99.9", "max", "hits", "errors"
    )
}

/// A row of the table.
pub(crate) fn row(x: f64, round: &Round) -> String {
    let of = |value: fn(&Latency) -> f64| match &round.last_byte {
        Some(latency) => time(value(latency)),
        None => "-".to_owned(),
    };
    let hits = round.hit_share();
    format!(
        "{x:>11} {:>10.1} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7}",
        round.rate(),
        of(|latency| latency.mean),
        of(|latency| latency.p50 as f64),
        of(|latency| latency.p90 as f64),
        of(|latency| latency.p99 as f64),
        of(|latency| latency.p99_9 as f64),
        of(|latency| latency.max as f64),
        hits.map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0)),
        round.failed(),
    )
}

/// Prints what all rounds of a run share: bytes received, source of the responses, cost.
pub(crate) fn rest(run: &RunResult) {
    let points = run.series.iter().flat_map(|series| &series.points);
    let all = Round::merged(points.flat_map(|point| &point.rounds));
    let seconds = all.seconds();
    base::show!("");
    let statuses: Vec<_> =
        all.statuses.iter().map(|(status, count)| format!("{count} x {status}")).collect();
    base::show!("responses   {} ({})", all.completed, statuses.join(", "));
    for (kind, count) in &all.errors {
        let text = all.error_texts.get(kind).map_or("", String::as_str);
        base::show!("errors      {count} x {kind}: {text}");
    }
    // A closed loop ends in the middle of its last requests.
    let open = run.series.iter().any(|series| series.axis != Axis::Connections);
    if all.unfinished > 0 && (open || all.completed == 0) {
        base::show!("unfinished  {}", all.unfinished);
    }
    base::show!(
        "received    {:.2} MB/s, sent {:.2} MB/s, {} connections",
        all.bytes_received as f64 / 1e6 / seconds,
        all.bytes_sent as f64 / 1e6 / seconds,
        all.connections
    );
    if let Some(requests) = all.origin_requests {
        let share = requests as f64 / all.completed.max(1) as f64 * 100.0;
        base::show!("origin      {requests} requests, {share:.1}% of the responses");
    }
    let share = |cpu_us: u64| cpu_us as f64 / all.elapsed_us.max(1) as f64 * 100.0;
    base::show!("this tool   {:.0}% of a core", share(all.generator_cpu_us));
    for (name, usage) in &all.servers {
        let each = usage.cpu_us as f64 / all.completed.max(1) as f64;
        base::show!(
            "server      {name}: {:.0}% of a core, {each:.1} us a response, {} MiB",
            share(usage.cpu_us),
            usage.resident_bytes >> 20
        );
    }
    notes(run);
}

/// Prints the tool's remarks.
pub(crate) fn notes(run: &RunResult) {
    for verdict in &run.verdicts {
        base::show!("note        {}", verdict.text);
    }
}

/// A time in microseconds, in the unit that fits it.
pub(crate) fn time(micros: f64) -> String {
    match micros {
        _ if micros < 1e3 => format!("{micros:.0} us"),
        _ if micros < 1e4 => format!("{:.2} ms", micros / 1e3),
        _ if micros < 1e6 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}
