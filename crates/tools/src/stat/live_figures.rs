//! Live figures of `larder stat` on a terminal.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};

use super::figures::{Figures, figures};
use crate::numbers::grouped;
use crate::screen::{self, ScreenView};

/// Titles of the columns.
const TITLES: [&str; 5] = ["now", "rate/s", "since start/s", "10 s", "100 s"];

/// Interval between two requests to the daemon.
const EVERY: Duration = Duration::from_secs(1);

/// Shows the figures of the daemon at `socket` until a key ends it; `first` are the current ones.
pub(super) fn show(socket: &Path, first: Figures) -> Result<(), String> {
    screen::show(&mut Stat::new(socket, first))
}

/// A decaying average over some seconds (as varnishstat's AVG_10 and AVG_100).
#[derive(Clone, Copy, Default)]
struct Average {
    value: f64,
    weight: f64,
}

impl Average {
    fn add(&mut self, rate: f64, passed: f64, over: f64) {
        let keep = (-passed / over).exp();
        self.value = self.value * keep + rate * (1.0 - keep);
        self.weight = self.weight * keep + (1.0 - keep);
    }

    /// Returns the average, corrected for the missing figures before the first.
    fn get(self) -> f64 {
        if self.weight > 0.0 { self.value / self.weight } else { 0.0 }
    }
}

#[derive(Clone, Copy, Default)]
struct MovingAverages {
    now: f64,
    ten: Average,
    hundred: Average,
}

struct Stat<'a> {
    socket: &'a Path,
    figures: Figures,
    moving: BTreeMap<String, MovingAverages>,
    asked: Instant,
    problem: Option<String>,
    all: bool,
    from: usize,
}

impl<'a> Stat<'a> {
    fn new(socket: &'a Path, figures: Figures) -> Self {
        let (moving, asked) = (BTreeMap::new(), Instant::now());
        Self { socket, figures, moving, asked, problem: None, all: false, from: 0 }
    }

    fn take(&mut self, next: Figures, passed: f64) {
        for (name, value) in &next {
            if !is_counter(name) {
                continue;
            }
            let before = self.figures.get(name).copied().unwrap_or(0);
            // A counter that has fallen belongs to a restarted daemon.
            let more = if *value >= before { value - before } else { *value };
            let rate = more as f64 / passed.max(0.001);
            let moving = self.moving.entry(name.clone()).or_default();
            moving.now = rate;
            moving.ten.add(rate, passed, 10.0);
            moving.hundred.add(rate, passed, 100.0);
        }
        self.figures = next;
    }

    fn shown(&self) -> Vec<(&String, &i64)> {
        self.figures.iter().filter(|(_, value)| self.all || **value != 0).collect()
    }
}

/// Returns true if a figure is a counter, whose rate is meaningful.
fn is_counter(name: &str) -> bool {
    name.ends_with("_total") || name.starts_with("limit_hits.")
}

impl ScreenView for Stat<'_> {
    fn look(&mut self, _: f64) -> Result<(), String> {
        let passed = self.asked.elapsed();
        if passed < EVERY {
            return Ok(());
        }
        self.asked += passed;
        match figures(self.socket) {
            Ok(next) => {
                self.problem = None;
                self.take(next, passed.as_secs_f64());
            }
            // The daemon may come back.
            Err(problem) => self.problem = Some(problem),
        }
        Ok(())
    }

    fn key(&mut self, key: KeyCode) {
        let last = self.shown().len().saturating_sub(1);
        self.from = match key {
            KeyCode::Down => (self.from + 1).min(last),
            KeyCode::Up => self.from.saturating_sub(1),
            KeyCode::PageDown => (self.from + 20).min(last),
            KeyCode::PageUp => self.from.saturating_sub(20),
            KeyCode::Char('v') => {
                self.all = !self.all;
                0
            }
            _ => self.from,
        };
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let figure = |name: &str| self.figures.get(name).copied().unwrap_or(0);
        let uptime = figure("uptime_seconds").max(1);
        let (hits, requests) = (figure("hits_total"), figure("requests_total").max(1));
        let title = match &self.problem {
            Some(problem) => problem.clone(),
            None => format!(
                "larder stat  up {}  {} objects  {} % hits since the start",
                spell(uptime.unsigned_abs()),
                grouped(figure("objects").unsigned_abs()),
                hits * 100 / requests
            ),
        };
        frame.render_widget(Line::styled(title, bold), head);
        let right = |text: String| Cell::from(Text::from(text).right_aligned());
        let row = |name: String, figures: [String; 5]| {
            Row::new([Cell::from(name)].into_iter().chain(figures.map(right)).collect::<Vec<_>>())
        };
        let header = row("name".to_owned(), TITLES.map(str::to_owned)).style(bold.reversed());
        let rate = |rate: f64| format!("{rate:.1}");
        let rows = self.shown().into_iter().skip(self.from).map(|(name, value)| {
            let moving = self.moving.get(name).copied().unwrap_or_default();
            let rates = match is_counter(name) {
                true => [
                    rate(moving.now),
                    rate(*value as f64 / uptime as f64),
                    rate(moving.ten.get()),
                    rate(moving.hundred.get()),
                ],
                false => ["", "", "", ""].map(str::to_owned),
            };
            let shown = match value {
                0.. => grouped(value.unsigned_abs()),
                _ => value.to_string(),
            };
            let [a, b, c, d] = rates;
            row(name.clone(), [shown, a, b, c, d])
        });
        let widths =
            [Constraint::Fill(1)].into_iter().chain([18, 12, 14, 12, 12].map(Constraint::Length));
        frame.render_widget(Table::new(rows, widths).header(header), body);
        let keys = " arrows scroll   v zeros   q quit";
        frame.render_widget(Line::styled(keys, Style::new().reversed()), foot);
    }
}

/// Formats seconds as days, hours and minutes.
fn spell(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, rest) = (seconds / 60 % 60, seconds % 60);
    match days {
        0 => format!("{hours}:{minutes:02}:{rest:02}"),
        days => format!("{days} d {hours}:{minutes:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(figures: &[(&str, i64)]) -> Figures {
        figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    #[test]
    fn rates_come_of_counters_only_and_survive_a_restart() {
        let socket = Path::new("/nowhere");
        let mut view = Stat::new(socket, stat(&[("hits_total", 100), ("objects", 5)]));
        view.take(stat(&[("hits_total", 150), ("objects", 9)]), 2.0);
        assert_eq!(view.moving["hits_total"].now, 25.0);
        assert_eq!(view.moving.get("objects").map(|m| m.now), None);
        view.take(stat(&[("hits_total", 10)]), 1.0);
        assert_eq!(view.moving["hits_total"].now, 10.0);
        let mean = view.moving["hits_total"].ten.get();
        assert!(mean > 10.0 && mean < 25.0, "{mean}");
    }

    #[test]
    fn uptimes_are_spelt() {
        assert_eq!([spell(59), spell(3_661), spell(90_000)], ["0:00:59", "1:01:01", "1 d 1:00"]);
    }
}
