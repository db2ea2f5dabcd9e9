//! Members of directors: which backends can be one, and their health together.

use crate::failure::ProgramFailure;
use crate::state::backend::{Backend, Director, Health};

/// Directors within each other, at most. Varnish knows no such limit, and asking one that contains
/// itself ends it.
const DEPTH_MAX: usize = 32;

/// Checks that `backend` can be a member of the director `owner`.
///
/// # Errors
/// The backend is `none`, or leads back to the owner.
pub(super) fn check_member(owner: &dyn Director, backend: &Backend) -> Result<(), ProgramFailure> {
    let refuse = |why| Err(ProgramFailure::new(format!("{}: {why}", owner.name())));
    match backend {
        Backend::None => refuse("None backend cannot be added"),
        Backend::Leaf(_) => Ok(()),
        Backend::Director(member) if leads_to(&**member, owner, DEPTH_MAX) => {
            refuse("a director cannot be among its own backends")
        }
        Backend::Director(_) => Ok(()),
    }
}

/// Returns true if asking `from` may lead to `to`, or to more than `depth` directors within each
/// other.
fn leads_to(from: &dyn Director, to: &dyn Director, depth: usize) -> bool {
    if std::ptr::addr_eq(from, to) || depth == 0 {
        return true;
    }
    from.members().iter().any(|member| match member {
        Backend::Director(director) => leads_to(&**director, to, depth - 1),
        _ => false,
    })
}

/// The health of `members` together: one of them is healthy, and the change is the last of those up
/// to that one, as Varnish tells it.
pub(super) fn health_of<'a>(members: impl IntoIterator<Item = &'a Backend>) -> Health {
    let mut last = 0.0_f64;
    for member in members {
        let Health { is_healthy, changed } = member.health();
        last = last.max(changed);
        if is_healthy {
            return Health { is_healthy, changed: last };
        }
    }
    Health { is_healthy: false, changed: last }
}
