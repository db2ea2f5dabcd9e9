//! A screen of its own for tools that redraw: opened, kept and given back in order.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

/// The time after which a screen is drawn anew when nobody presses a key.
const TICK: Duration = Duration::from_millis(1000);
/// The time between two looks at the ring, so short that nothing is lost.
const LOOK: Duration = Duration::from_millis(50);

/// A tool that runs on a screen.
pub(crate) trait ScreenView {
    /// Takes what came in; `passed` seconds since the last time.
    fn look(&mut self, passed: f64) -> Result<(), String>;
    /// Heeds a key.
    fn key(&mut self, key: KeyCode);
    /// Draws.
    fn draw(&mut self, frame: &mut Frame<'_>);
}

/// Shows `view` until `q`, Escape or Ctrl-C. The terminal is given back however it ends.
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
