//! The view of a measurement while it runs: live on a terminal, otherwise plain lines.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bench::load::LoadProgress;
use bench::result::{Axis, Round};
use tools::{LiveView, MeasurementSnapshot};

use super::figures;

/// The view of a run, with its table of rounds.
pub(super) struct RunView {
    live: Option<LiveView>,
    /// True if a line on standard error shows the progress.
    line: bool,
    axis: Axis,
    /// Rows of the table so far.
    rows: Vec<String>,
    stop: Arc<AtomicBool>,
}

impl RunView {
    /// A view with `axis` in the first column of its table; a key of the live one sets `stop`.
    pub(super) fn new(
        title: &str,
        axis: Axis,
        plain: bool,
        stop: &Arc<AtomicBool>,
    ) -> Result<Self, String> {
        let line = std::io::stderr().is_terminal();
        let terminal = line && std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        let live = (terminal && !plain).then(|| LiveView::open(title)).transpose()?;
        Ok(Self { live, line, axis, rows: Vec::new(), stop: Arc::clone(stop) })
    }

    /// Shows the progress of a measurement.
    pub(super) fn watch(&mut self, place: String, progress: &LoadProgress) {
        let moment = moment(place, progress);
        if let Some(live) = &mut self.live {
            if live.moment(moment) {
                self.stop.store(true, Ordering::Relaxed);
            }
        } else if self.line {
            let MeasurementSnapshot { place, state, completed, failed, .. } = moment;
            let recent = progress.recent.map_or_else(String::new, |(p50, p99)| {
                format!(", p50 {}, p99 {}", figures::time(p50 as f64), figures::time(p99 as f64))
            });
            eprint!("\r\x1b[K{place}: {state}, {completed} responses, {failed} errors{recent}");
        }
    }

    /// Adds a round to the table.
    pub(super) fn row(&mut self, x: f64, round: &Round) {
        if self.rows.is_empty() {
            self.print(figures::heads(self.axis));
        }
        self.print(figures::row(x, round));
    }

    fn print(&mut self, text: String) {
        match &mut self.live {
            Some(live) => live.row(&text),
            None => {
                self.clear();
                base::show!("{text}");
            }
        }
        self.rows.push(text);
    }

    fn clear(&self) {
        if self.line {
            eprint!("\r\x1b[K");
        }
    }
}

/// Ends the live view. Its table is printed then.
impl Drop for RunView {
    fn drop(&mut self) {
        if self.live.take().is_some() {
            self.rows.iter().for_each(|row| base::show!("{row}"));
        } else {
            self.clear();
        }
    }
}

fn moment(place: String, progress: &LoadProgress) -> MeasurementSnapshot {
    let (state, share) = match (progress.measured, progress.whole) {
        (None, _) => ("warming up".to_owned(), Some(0.0)),
        (Some(measured), Some(whole)) => (
            format!("{:.0} of {:.0} s", measured.as_secs_f64(), whole.as_secs_f64()),
            Some(measured.as_secs_f64() / whole.as_secs_f64().max(1e-3)),
        ),
        (Some(measured), None) => (format!("{:.0} s", measured.as_secs_f64()), None),
    };
    MeasurementSnapshot {
        place,
        state,
        share,
        completed: progress.completed,
        failed: progress.failed,
        recent: progress.recent,
    }
}
