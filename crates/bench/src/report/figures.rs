//! Figures of reports, read from rounds.

use hdrhistogram::Histogram;

use super::chart::Spread;
use super::text::{number, time};
use crate::latency::Latency;
use crate::result::{Axis, Point, Round, Series};

/// A figure of a round: a column of the table, and a y axis.
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

/// The title of an axis.
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
        let latency = |of: fn(&Latency) -> f64| round.last_byte.as_ref().map(of);
        match self {
            Self::Rate => (round.completed > 0).then(|| round.rate()),
            Self::Mean => latency(|latency| latency.mean),
            Self::Deviation => latency(|latency| latency.stdev),
            Self::Max => latency(|latency| latency.max as f64),
            Self::FirstByte => round.first_byte.as_ref().map(|latency| latency.p50 as f64),
            Self::Percentile(share) => {
                let histogram = round.last_byte.as_ref()?.histogram().ok()?;
                Some(histogram.value_at_quantile(share) as f64)
            }
            Self::Cpu => (!round.servers.is_empty())
                .then(|| round.usage().cpu_us as f64 / 1e4 / round.seconds()),
        }
    }

    /// The figure of a point: the median of its rounds, with the smallest and largest.
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

/// The latencies of all rounds of a point, merged.
pub(super) fn latencies(point: &Point) -> Option<Histogram<u64>> {
    let each = point.rounds.iter().filter_map(|round| round.last_byte.as_ref()?.histogram().ok());
    each.reduce(|mut all, one| {
        // Histograms of this tool have equal bounds, so adding cannot fail.
        let _ = all.add(one);
        all
    })
}

/// The table: column heads, and a row for each point of each series.
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
    let all = Round::merged(&point.rounds);
    let memory = point.rounds.iter().map(|round| round.usage().resident_bytes).max();
    let memory = memory.unwrap_or_default();
    let or_none = |known: bool, text: String| if known { text } else { "–".to_owned() };
    vec![
        name.to_owned(),
        number(point.x),
        point.rounds.len().to_string(),
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
        all.hit_share().map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", share * 100.0)),
        number(all.failed() as f64),
        number((all.with_status(0, 199).saturating_add(all.with_status(201, u16::MAX))) as f64),
        of(Column::Cpu, |percent| format!("{percent:.0}%")),
        or_none(memory > 0, format!("{} MiB", memory >> 20)),
        format!("{:.0}%", all.generator_cpu_us as f64 / 1e4 / all.seconds()),
    ]
}
