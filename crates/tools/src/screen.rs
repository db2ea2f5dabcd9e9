//! The screen of tools that redraw. It must restore the terminal however they end.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

/// Interval between two redraws without a key.
const TICK: Duration = Duration::from_millis(1000);
/// Interval between two polls of the ring, short enough to lose no records.
const LOOK: Duration = Duration::from_millis(50);

/// A tool with a screen.
pub(crate) trait ScreenView {
    /// Takes new records; `passed` seconds after the last call.
    fn look(&mut self, passed: f64) -> Result<(), String>;
    /// Handles a key.
    fn key(&mut self, key: KeyCode);
    /// Draws the screen.
    fn draw(&mut self, frame: &mut Frame<'_>);
}

/// Shows `view` until `q`, Escape or Ctrl-C, and then restores the terminal, also after an error.
pub(crate) fn show(view: &mut dyn ScreenView) -> Result<(), String> {
    let mut terminal =
        ratatui::try_init().map_err(|error| format!("larder: no terminal to draw on: {error}"))?;
    let shown = turn(&mut terminal, view);
    ratatui::restore();
    shown
}

fn turn(terminal: &mut DefaultTerminal, view: &mut dyn ScreenView) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("larder: the terminal is gone: {error}");
    let mut looked = Instant::now();
    let mut drawn: Option<Instant> = None;
    loop {
        let passed = looked.elapsed();
        looked += passed;
        view.look(passed.as_secs_f64())?;
        if drawn.is_none_or(|drawn| drawn.elapsed() >= TICK) {
            terminal.draw(|frame| view.draw(frame)).map_err(failed)?;
            drawn = Some(Instant::now());
        }
        if !event::poll(LOOK).map_err(failed)? {
            continue;
        }
        match event::read().map_err(failed)? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let control = key.modifiers.contains(KeyModifiers::CONTROL);
                match key.code {
                    KeyCode::Char('c' | 'd') if control => return Ok(()),
                    KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                    code => view.key(code),
                }
                drawn = None;
            }
            Event::Resize(..) => drawn = None,
            _ => {}
        }
    }
}
