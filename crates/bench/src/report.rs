//! A report of runs: one self-contained HTML page, Markdown, or SVG charts.
//!
//! The x axis must be a setting, never an outcome. Outcomes are on the y axis, with the spread of
//! their rounds.

mod chart;
mod figures;
mod html;
mod markdown;
mod scale;
mod text;

use std::collections::BTreeMap;

pub use text::time;

use crate::result::{Axis, RunResult, Series};
use chart::{ChartText, Plot, Spread};
use figures::Column;
use text::Unit;

/// Percentiles of a distribution's curve.
const CURVE: [f64; 24] = [
    0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 92.0,
    94.0, 95.0, 96.0, 97.0, 98.0, 99.0, 99.9, 100.0,
];

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Short name, usable as a file name.
    pub id: String,
    /// Caption.
    pub caption: String,
    /// The SVG drawing.
    pub svg: String,
}

/// A report of runs.
pub struct Report {
    title: String,
    runs: Vec<(String, RunResult)>,
    /// The series of all runs, with unique names.
    series: Vec<Series>,
}

impl Report {
    /// Makes a report of `runs`, each with a name, such as its file's.
    ///
    /// # Errors
    /// No points, or series that have different axes.
    pub fn new(title: &str, runs: Vec<(String, RunResult)>) -> Result<Self, String> {
        let mut names = BTreeMap::new();
        for series in runs.iter().flat_map(|(_, run)| &run.series) {
            *names.entry(series.name.clone()).or_insert(0) += 1;
        }
        let mut all: Vec<Series> = Vec::new();
        for (run, one) in &runs {
            for series in &one.series {
                let mut series = series.clone();
                series.points.retain(|point| point.rounds.iter().any(|round| round.completed > 0));
                if names.get(&series.name).is_some_and(|count| *count > 1) {
                    series.name = format!("{run}: {}", series.name);
                }
                if !series.points.is_empty() {
                    all.push(series);
                }
            }
        }
        let axis = all.first().map(|series| series.axis).ok_or("there is nothing to show")?;
        if all.iter().any(|series| series.axis != axis) {
            return Err("the runs have different axes: connections, rates, sessions or speeds; \
                        report each by itself"
                .to_owned());
        }
        Ok(Self { title: title.to_owned(), runs, series: all })
    }

    fn axis(&self) -> Axis {
        self.series.first().map_or(Axis::Connections, |series| series.axis)
    }

    /// All charts.
    pub fn charts(&self) -> Vec<Chart> {
        let mut charts = Vec::new();
        for (id, title, figure, unit) in [
            ("p50", "Latency, median", Column::Percentile(0.5), Unit::Time),
            ("p99", "Latency, 99th percentile", Column::Percentile(0.99), Unit::Time),
        ] {
            charts.push(self.over_x(id, title, "latency", figure, unit, false));
        }
        charts.push(self.over_x(
            "rate",
            "Throughput",
            "requests/s",
            Column::Rate,
            Unit::Number,
            true,
        ));
        if self.has(Column::Cpu) {
            let title = "CPU time of the server, in percent of a core";
            charts.push(self.over_x("cpu", title, "percent", Column::Cpu, Unit::Number, true));
        }
        charts.push(self.distribution());
        charts
    }

    fn has(&self, figure: Column) -> bool {
        let rounds = self.series.iter().flat_map(|series| &series.points);
        rounds.flat_map(|point| &point.rounds).any(|round| figure.of(round).is_some())
    }

    fn over_x(
        &self,
        id: &str,
        title: &str,
        y: &str,
        figure: Column,
        unit: Unit,
        bars: bool,
    ) -> Chart {
        let x = figures::axis(self.axis());
        let labels = ChartText { id, title, x, x_unit: Unit::Number, y, y_unit: unit };
        let lines: Vec<_> = self
            .series
            .iter()
            .map(|series| Plot {
                name: series.name.clone(),
                points: series.points.iter().filter_map(|point| figure.spread(point)).collect(),
            })
            .collect();
        let svg = if bars { chart::bars(&labels, &lines) } else { chart::lines(&labels, &lines) };
        let spread = if bars { "the line on a bar" } else { "the band" };
        let caption = format!(
            "{title} over {x}; the median of the rounds, and from least to most ({spread})."
        );
        Chart { id: id.to_owned(), caption, svg }
    }

    /// The latency distributions at the largest load that all series have.
    fn distribution(&self) -> Chart {
        let mut shared: Vec<f64> = self
            .series
            .first()
            .map(|series| series.points.iter().map(|point| point.x).collect())
            .unwrap_or_default();
        shared.retain(|x| {
            self.series.iter().all(|series| series.points.iter().any(|point| point.x == *x))
        });
        let at = shared.iter().copied().reduce(f64::max);
        let lines: Vec<_> = self
            .series
            .iter()
            .map(|series| {
                let point = match at {
                    Some(x) => series.points.iter().find(|point| point.x == x),
                    None => series.points.last(),
                };
                let histogram = point.and_then(figures::latencies);
                let points = histogram.map_or_else(Vec::new, |histogram| {
                    let each = CURVE.into_iter().map(|percentile| {
                        let x = histogram.value_at_quantile(percentile / 100.0) as f64;
                        Spread {
                            x: x.max(1.0),
                            low: percentile,
                            middle: percentile,
                            high: percentile,
                        }
                    });
                    each.collect()
                });
                Plot { name: series.name.clone(), points }
            })
            .collect();
        let axis = figures::axis(self.axis());
        let place = at.map_or_else(String::new, |x| format!(" at {} {axis}", text::number(x)));
        let title = format!("Distribution of latencies{place}");
        let labels = ChartText {
            id: "distribution",
            title: &title,
            x: "latency",
            x_unit: Unit::Time,
            y: "responses within it",
            y_unit: Unit::Percent,
        };
        let caption =
            format!("{title}: the share of responses that took no longer, all rounds together.");
        Chart { id: "distribution".to_owned(), caption, svg: chart::lines(&labels, &lines) }
    }

    /// Remarks on the runs: name and text, with the run's name if there are several.
    fn remarks(&self) -> impl Iterator<Item = (&str, String)> {
        let several = self.runs.len() > 1;
        self.runs.iter().flat_map(move |(run, one)| {
            one.verdicts.iter().map(move |verdict| {
                let text = &verdict.text;
                let text = if several { format!("{run}: {text}") } else { text.clone() };
                (verdict.name.as_str(), text)
            })
        })
    }
}

#[cfg(test)]
mod tests;
