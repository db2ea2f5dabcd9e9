//! The backends of a director, with their weights.

use base::Limit;
use parking_lot::RwLock;

use crate::failure::ProgramFailure;
use crate::state::backend::{AdminHealth, Backend, Director, Health};
use crate::state::ctx::Ctx;
use crate::state::environment::ProgramEnvironment;
use crate::vmods::directors::member::{check_member, health_of};

/// Backends in the order in which they were added. May change while requests run.
#[derive(Debug)]
pub(super) struct List {
    /// The operator's order about the director.
    pub(super) word: AdminHealth,
    members: RwLock<Vec<(Backend, f64)>>,
}

impl List {
    /// An empty one, made at `now`.
    pub(super) fn new(now: f64) -> Self {
        Self { word: AdminHealth::since(now), members: RwLock::default() }
    }

    /// Adds one to those of `owner`.
    ///
    /// # Errors
    /// It cannot be one of them, or there are as many as may be already.
    pub(super) fn add(
        &self,
        owner: &dyn Director,
        backend: &Backend,
        weight: f64,
        world: &dyn ProgramEnvironment,
    ) -> Result<(), ProgramFailure> {
        check_member(owner, backend)?;
        let mut members = self.members.write();
        if members.len() >= world.shared().most_backends() {
            world.limit(Limit::DirectorBackends);
            let why = format!("{}: more backends than director_backends allows", owner.name());
            return Err(ProgramFailure::new(why));
        }
        // Nothing is chosen by a weight below nothing.
        members.push((backend.clone(), if weight > 0.0 { weight } else { 0.0 }));
        Ok(())
    }

    /// Removes the first that is `backend`; where it stood.
    pub(super) fn remove(&self, backend: &Backend) -> Option<usize> {
        let mut members = self.members.write();
        let at = members.iter().position(|(member, _)| member.is(backend))?;
        members.remove(at);
        Some(at)
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Backend> {
        self.read(|members| members.iter().map(|(backend, _)| backend.clone()).collect())
    }

    pub(super) fn health(&self) -> Health {
        self.read(|members| health_of(members.iter().map(|(backend, _)| backend)))
    }

    /// Looks at them. No director is asked for a backend meanwhile: it might want to change them.
    pub(super) fn read<T>(&self, look: impl FnOnce(&[(Backend, f64)]) -> T) -> T {
        look(&self.members.read())
    }

    /// The healthy one that `point` (of at least 0, less than 1) falls to, when each has a stretch
    /// as long as its weight.
    pub(super) fn pick(&self, ctx: &Ctx<'_>, point: f64) -> Option<Backend> {
        self.read(|members| {
            let healthy: Vec<&(Backend, f64)> =
                members.iter().filter(|(backend, _)| backend.is_healthy_for(ctx)).collect();
            let total: f64 = healthy.iter().map(|(_, weight)| weight).sum();
            let mut left = point * total;
            let last = healthy.iter().rev().find(|(_, weight)| *weight > 0.0)?;
            let found = healthy.iter().find(|(_, weight)| {
                let is_here = left < *weight;
                left -= weight;
                is_here
            });
            // Rounding may lead past the end.
            Some(found.unwrap_or(last).0.clone())
        })
    }
}
