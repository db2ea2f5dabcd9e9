//! Live view of a measurement: its progress, its current figures, and the finished rows.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Gauge, Sparkline};
use ratatui::{DefaultTerminal, Frame};

use crate::numbers::{grouped, time};

/// Number of snapshots in the curves.
const MOMENTS: usize = 200;
/// Interval between two redraws.
const TICK: Duration = Duration::from_millis(200);

/// A snapshot of a running measurement.
#[derive(Clone, Debug)]
pub struct MeasurementSnapshot {
    /// The part that is measured, such as a round and its load.
    pub place: String,
    /// The progress of the part, as text.
    pub state: String,
    /// The progress of the part from 0 to 1; `None` if unknown.
    pub share: Option<f64>,
    /// Responses of the part so far.
    pub completed: u64,
    /// Requests of the part that failed.
    pub failed: u64,
    /// The median and the 99th percentile since the last snapshot, in microseconds.
    pub recent: Option<(u64, u64)>,
}

/// The view. It uses the terminal's alternate screen until it is dropped.
pub struct LiveView {
    terminal: DefaultTerminal,
    shown: LiveViewState,
    drawn: Option<Instant>,
}

/// The contents of the view.
struct LiveViewState {
    title: String,
    moment: Option<MeasurementSnapshot>,
    seen: (Instant, u64),
    rates: Vec<u64>,
    slowest: Vec<u64>,
    rows: Vec<String>,
}

impl LiveView {
    /// Opens the view.
    ///
    /// # Errors
    /// No terminal that can be drawn on.
    pub fn open(title: &str) -> Result<Self, String> {
        let terminal = ratatui::try_init()
            .map_err(|error| format!("larder: no terminal to draw on: {error}"))?;
        let shown = LiveViewState {
            title: title.to_owned(),
            moment: None,
            seen: (Instant::now(), 0),
            rates: Vec::new(),
            slowest: Vec::new(),
            rows: Vec::new(),
        };
        Ok(Self { terminal, shown, drawn: None })
    }

    /// Shows a snapshot. Returns true if a key asked to stop: `q`, Escape or Ctrl-C.
    pub fn moment(&mut self, moment: MeasurementSnapshot) -> bool {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= TICK) {
            self.drawn = Some(Instant::now());
            self.shown.take(moment);
            let shown = &self.shown;
            // A measurement goes on without its terminal.
            let _ = self.terminal.draw(|frame| shown.draw(frame));
        }
        is_ended()
    }

    /// Adds a finished row.
    pub fn row(&mut self, text: &str) {
        self.shown.rows.push(text.to_owned());
        self.drawn = None;
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Reads the pressed keys; true if one of them asks to stop.
fn is_ended() -> bool {
    let mut ended = false;
    while event::poll(Duration::ZERO).unwrap_or(false) {
        if let Ok(Event::Key(key)) = event::read()
            && key.kind != KeyEventKind::Release
        {
            let control = key.modifiers.contains(KeyModifiers::CONTROL);
            ended |= match key.code {
                KeyCode::Char('c' | 'd') => control,
                KeyCode::Char('q') | KeyCode::Esc => true,
                _ => false,
            };
        }
    }
    ended
}

impl LiveViewState {
    fn take(&mut self, moment: MeasurementSnapshot) {
        let (then, before) = self.seen;
        self.seen = (Instant::now(), moment.completed);
        // A new part counts from zero.
        let more = moment.completed.checked_sub(before).unwrap_or(moment.completed);
        let passed = then.elapsed().as_secs_f64().max(1e-3);
        keep(&mut self.rates, (more as f64 / passed) as u64);
        keep(&mut self.slowest, moment.recent.map_or(0, |(_, slow)| slow));
        self.moment = Some(moment);
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let lines = Constraint::Length;
        let curve = if frame.area().height < 20 { 2 } else { 4 };
        let [head, gauge, rate, rates, slow, slowest, rows, foot] = Layout::vertical([
            lines(1),
            lines(1),
            lines(1),
            lines(curve),
            lines(1),
            lines(curve),
            Constraint::Min(0),
            lines(1),
        ])
        .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        frame.render_widget(Line::styled(self.title.as_str(), bold), head);
        let Some(moment) = &self.moment else {
            return;
        };
        let MeasurementSnapshot { place, state, completed, failed, .. } = moment;
        let far = format!("{place}: {state}");
        match moment.share {
            Some(share) => {
                let share = share.clamp(0.0, 1.0);
                frame.render_widget(Gauge::default().ratio(share).label(far), gauge);
            }
            None => frame.render_widget(Line::raw(far), gauge),
        }
        let now = self.rates.last().copied().unwrap_or_default();
        let text = format!(
            "{} responses/s   {} responses, {} errors",
            grouped(now),
            grouped(*completed),
            grouped(*failed)
        );
        frame.render_widget(Line::styled(text, bold), rate);
        curve_of(frame, &self.rates, rates);
        let text = match moment.recent {
            Some((middle, slow)) => {
                format!("p99 {}   p50 {}", time(slow as f64), time(middle as f64))
            }
            None => "p99 -".to_owned(),
        };
        frame.render_widget(Line::styled(text, bold), slow);
        curve_of(frame, &self.slowest, slowest);
        self.draw_rows(frame, rows);
        let keys = " q ends the run and prints its figures";
        frame.render_widget(Line::styled(keys, Style::new().reversed()), foot);
    }

    /// Draws the table's head and last rows.
    fn draw_rows(&self, frame: &mut Frame<'_>, area: Rect) {
        let height = usize::from(area.height);
        let (heads, rows) = self.rows.split_at(self.rows.len().min(1));
        let from = rows.len().saturating_sub(height.saturating_sub(1));
        let shown = heads.iter().chain(rows.get(from..).unwrap_or_default());
        for (text, line) in shown.zip(area.rows()) {
            frame.render_widget(Line::raw(text.as_str()), line);
        }
    }
}

fn keep(values: &mut Vec<u64>, value: u64) {
    if values.len() == MOMENTS {
        values.remove(0);
    }
    values.push(value);
}

/// Draws a curve that ends at the right edge.
fn curve_of(frame: &mut Frame<'_>, values: &[u64], area: Rect) {
    let from = values.len().saturating_sub(usize::from(area.width));
    let shown = values.get(from..).unwrap_or_default();
    frame.render_widget(Sparkline::default().data(shown), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn screen(shown: &LiveViewState, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
        terminal.draw(|frame| shown.draw(frame)).expect("drawn");
        terminal.backend().to_string()
    }

    #[test]
    fn a_moment_is_drawn_on_any_screen() {
        let mut shown = LiveViewState {
            title: "larder bench".to_owned(),
            moment: None,
            seen: (Instant::now(), 0),
            rates: Vec::new(),
            slowest: Vec::new(),
            rows: vec!["connections requests/s".to_owned(), "10 5".to_owned()],
        };
        let moment = MeasurementSnapshot {
            place: "round 1 at 10".to_owned(),
            state: "3 of 10 s".to_owned(),
            share: Some(0.3),
            completed: 1234,
            failed: 5,
            recent: Some((90, 1500)),
        };
        for _ in 0..2 * MOMENTS {
            shown.take(moment.clone());
        }
        let drawn = screen(&shown, 80, 24);
        for part in [
            "larder bench",
            "round 1 at 10: 3 of 10 s",
            "1,234 responses, 5 errors",
            "p99 1.5 ms   p50 90 us",
            "connections requests/s",
            "10 5",
            "q ends the run",
        ] {
            assert!(drawn.contains(part), "{part}:\n{drawn}");
        }
        for (width, height) in [(1, 1), (10, 3), (300, 5), (20, 100)] {
            screen(&shown, width, height);
        }
    }
}
