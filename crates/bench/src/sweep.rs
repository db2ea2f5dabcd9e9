//! A sweep: rounds at every value of a setting, interleaved.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::load::{LoadProgress, Runner};
use crate::result::{Axis, Point, Round, Series};
use crate::settings::{Load, Settings, UsageSource};

/// A sweep.
pub struct Sweep<'a> {
    /// Settings, except for the value that is varied.
    pub settings: Settings,
    /// Values of the axis: connections, requests or sessions per second, or speed.
    pub values: Vec<f64>,
    /// Rounds at each value.
    pub rounds: usize,
    /// Name of the series.
    pub name: String,
    /// Servers whose use of resources is measured.
    pub observed: Vec<(String, UsageSource)>,
    /// Called before each round.
    pub before: &'a mut dyn FnMut() -> Result<(), String>,
    /// Called several times per second, with the round's number and the value.
    pub watch: &'a mut dyn FnMut(usize, f64, &LoadProgress),
    /// Called after every round.
    pub done: &'a mut dyn FnMut(usize, f64, &Round),
    /// Stops the sweep when true.
    pub stop: Arc<AtomicBool>,
}

/// The axis of a load.
pub fn axis(load: &Load) -> Axis {
    match load {
        Load::Closed { .. } | Load::Ramp { .. } => Axis::Connections,
        Load::Open { .. } => Axis::Rate,
        Load::Sessions { .. } => Axis::Sessions,
        Load::Replay { .. } => Axis::Speed,
    }
}

/// The settings with another value of the load's axis.
pub fn at(settings: &Settings, value: f64) -> Settings {
    let mut settings = settings.clone();
    match &mut settings.load {
        Load::Closed { connections } => *connections = value as usize,
        Load::Open { rate, .. } | Load::Sessions { rate, .. } => *rate = value,
        Load::Replay { speed, .. } => *speed = value,
        Load::Ramp { .. } => {}
    }
    settings
}

impl Sweep<'_> {
    /// Measures all rounds. After a stop, returns the rounds so far.
    pub fn run(&mut self) -> Result<Series, String> {
        let axis = axis(&self.settings.load);
        if matches!(self.settings.load, Load::Ramp { .. }) {
            return self.ramps(axis);
        }
        let mut points: Vec<Point> =
            self.values.iter().map(|value| Point { x: *value, rounds: Vec::new() }).collect();
        let runners = self
            .values
            .iter()
            .map(|value| self.runner(at(&self.settings, *value)))
            .collect::<Result<Vec<_>, _>>()?;
        for round in 0..self.rounds {
            for (runner, point) in runners.iter().zip(&mut points) {
                if self.stop.load(Ordering::Relaxed) {
                    break;
                }
                (self.before)()?;
                let x = point.x;
                let measured = runner.round(&mut |progress| (self.watch)(round, x, progress))?;
                (self.done)(round, x, &measured);
                point.rounds.push(measured);
            }
        }
        points.retain(|point| !point.rounds.is_empty());
        Ok(Series { name: self.name.clone(), axis, points })
    }

    fn ramps(&mut self, axis: Axis) -> Result<Series, String> {
        let runner = self.runner(self.settings.clone())?;
        let mut points: Vec<Point> = Vec::new();
        for round in 0..self.rounds {
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            (self.before)()?;
            let parts = runner.ramp(&mut |progress| (self.watch)(round, 0.0, progress))?;
            for (at, (x, measured)) in parts.into_iter().enumerate() {
                (self.done)(round, x, &measured);
                match points.get_mut(at) {
                    Some(point) => point.rounds.push(measured),
                    None => points.push(Point { x, rounds: vec![measured] }),
                }
            }
        }
        Ok(Series { name: self.name.clone(), axis, points })
    }

    fn runner(&self, settings: Settings) -> Result<Runner, String> {
        Runner::new(&settings, self.observed.clone(), Arc::clone(&self.stop))
    }
}
