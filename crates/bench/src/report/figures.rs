//! Figures of reports: how each is read from rounds.

use hdrhistogram::Histogram;

use super::chart::Spread;
use super::text::{number, time};
use crate::latency::Latency;
use crate::result::{Axis, Point, Round, Series};

/// A figure of a round, as a column of the table and as a chart's y axis.
#[derive(Clone, Copy, Debug)]
pub(super) enum Column {
    Rate,
    Mean,
    Deviation,
    Percentile(f64),
    Max,
    FirstByte,
    Cpu,
}

/// The words of an axis.
pub(super) fn axis(axis: Axis) -> &'static str {
    match axis {
        Axis::Connections => "connections",
        Axis::Rate => "requests/s due",
        Axis::Sessions => "sessions/s",
        Axis::Speed => "times the log's speed",
    }
}

impl Column {
    /// The figure of `round`.
    pub(super) fn of(self, round: &Round) -> Option<f64> {
        let seconds = round.elapsed_us.max(1) as f64 / 1e6;
        let latency = |of: fn(&Latency) -> f64| round.last_byte.as_ref().map(of);
        match self {
            Self::Rate => (round.completed > 0).then(|| round.completed as f64 / seconds),
            Self::Mean => latency(|latency| latency.mean),
            Self::Deviation => latency(|latency| latency.stdev),
            Self::Max => latency(|latency| latency.max as f64),
            Self::FirstByte => round.first_byte.as_ref().map(|latency| latency.p50 as f64),
            Self::Percentile(share) => {
                let histogram = round.last_byte.as_ref()?.histogram().ok()?;
                Some(histogram.value_at_quantile(share) as f64)
            }
            Self::Cpu => {
                let cpu_us: u64 = round.servers.values().map(|usage| usage.cpu_us).sum();
                (!round.servers.is_empty()).then(|| cpu_us as f64 / 1e4 / seconds)
            }
        }
    }

    /// The figure of a point: the median of its rounds, and the least and the most.
    pub(super) fn spread(self, point: &Point) -> Option<Spread> {
        let mut values: Vec<f64> = point.rounds.iter().filter_map(|round| self.of(round)).collect();
        values.sort_by(f64::total_cmp);
        Some(Spread {
            x: point.x,
            low: *values.first()?,
            middle: *values.get(values.len() / 2)?,
            high: *values.last()?,
        })
    }
}

/// Latencies of all rounds of a point together.
pub(super) fn latencies(point: &Point) -> Option<Histogram<u64>> {
    let each = point.rounds.iter().filter_map(|round| round.last_byte.as_ref()?.histogram().ok());
    each.reduce(|mut all, one| {
        // Histograms of one program have the same bounds, so that adding does not fail.
        let _ = all.add(one);
        all
    })
}

/// The table: heads of columns, and a row for each point of each series.
pub(super) fn table(series: &[Series]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let x = series.first().map_or("", |series| axis(series.axis));
    let heads = vec![
        "series",
        x,
        "rounds",
        "requests/s",
        "mean",
        "± stdev",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "p99.99",
        "max",
        "first byte p50",
        "hits",
        "errors",
        "not 200",
        "server CPU",
        "server memory",
        "generator CPU",
    ];
    let rows = series
        .iter()
        .flat_map(|one| one.points.iter().map(move |point| row(&one.name, point)))
        .collect();
    (heads, rows)
}

fn row(name: &str, point: &Point) -> Vec<String> {
    let of = |figure: Column, show: fn(f64) -> String| {
        figure.spread(point).map_or_else(|| "–".to_owned(), |spread| show(spread.middle))
    };
    let rounds = &point.rounds;
    let sum = |of: fn(&Round) -> u64| rounds.iter().map(of).sum::<u64>();
    let told = sum(|round| round.completed.saturating_sub(round.source_unknown));
    let hits = sum(|round| round.hits.values().sum());
    let seconds = sum(|round| round.elapsed_us).max(1) as f64 / 1e6;
    let memory = rounds
        .iter()
        .map(|round| round.servers.values().map(|usage| usage.resident_bytes).sum::<u64>())
        .max()
        .unwrap_or_default();
    let or_none = |known: bool, text: String| if known { text } else { "–".to_owned() };
    vec![
        name.to_owned(),
        number(point.x),
        rounds.len().to_string(),
        of(Column::Rate, number),
        of(Column::Mean, time),
        of(Column::Deviation, time),
        of(Column::Percentile(0.5), time),
        of(Column::Percentile(0.9), time),
        of(Column::Percentile(0.99), time),
        of(Column::Percentile(0.999), time),
        of(Column::Percentile(0.9999), time),
        of(Column::Max, time),
        of(Column::FirstByte, time),
        or_none(told > 0, format!("{:.1}%", hits as f64 / told.max(1) as f64 * 100.0)),
        number((sum(|round| round.attempted) - sum(|round| round.completed)) as f64),
        number(rounds.iter().map(not_200).sum::<u64>() as f64),
        of(Column::Cpu, |percent| format!("{percent:.0}%")),
        or_none(memory > 0, format!("{} MiB", memory >> 20)),
        format!("{:.0}%", sum(|round| round.generator_cpu_us) as f64 / 1e4 / seconds),
    ]
}

fn not_200(round: &Round) -> u64 {
    round.statuses.iter().filter(|(status, _)| **status != 200).map(|(_, count)| count).sum()
}
