//! List of a director's members with their weights. It never holds its lock while a member
//! resolves.

use base::Limit;
use parking_lot::RwLock;

use crate::failure::ProgramFailure;
use crate::state::backend::{AdminHealth, Backend, Director, Health};
use crate::state::ctx::Ctx;
use crate::state::environment::ProgramEnvironment;
use crate::vmods::directors::member::{check_member, health_of};

/// Members in the order of addition. Requests may run while it changes.
#[derive(Debug)]
pub(super) struct List {
    /// The operator's order about the director.
    pub(super) admin_health: AdminHealth,
    members: RwLock<Vec<(Backend, f64)>>,
}

impl List {
    /// An empty list, made at `now`.
    pub(super) fn new(now: f64) -> Self {
        Self { admin_health: AdminHealth::since(now), members: RwLock::default() }
    }

    /// Adds a member to the director `owner`.
    ///
    /// # Errors
    /// If the backend cannot be a member, or the list is full.
    pub(super) fn add(
        &self,
        owner: &dyn Director,
        backend: &Backend,
        weight: f64,
        environment: &dyn ProgramEnvironment,
    ) -> Result<(), ProgramFailure> {
        check_member(owner, backend)?;
        let mut members = self.members.write();
        if members.len() >= environment.shared().most_backends() {
            environment.limit(Limit::DirectorBackends);
            let why = format!("{}: more backends than director_backends allows", owner.name());
            return Err(ProgramFailure::new(why));
        }
        // A weight below 0 counts as 0.
        members.push((backend.clone(), if weight > 0.0 { weight } else { 0.0 }));
        Ok(())
    }

    /// Removes the first entry of `backend`; returns its position.
    pub(super) fn remove(&self, backend: &Backend) -> Option<usize> {
        let mut members = self.members.write();
        let at = members.iter().position(|(member, _)| member.is(backend))?;
        members.remove(at);
        Some(at)
    }

    /// All members.
    pub(super) fn all(&self) -> Vec<Backend> {
        self.read(|members| members.iter().map(|(backend, _)| backend.clone()).collect())
    }

    pub(super) fn health(&self) -> Health {
        self.read(|members| health_of(members.iter().map(|(backend, _)| backend)))
    }

    /// Reads the members under the lock. `look` must not resolve a director, which might change the
    /// list.
    pub(super) fn read<T>(&self, look: impl FnOnce(&[(Backend, f64)]) -> T) -> T {
        look(&self.members.read())
    }

    /// The healthy member at `point` (in [0, 1)), where each member's range is proportional to its
    /// weight.
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
