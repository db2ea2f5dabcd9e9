//! Members of directors: the backends that may be one, and their joint health. A director never
//! contains itself.

use crate::failure::ProgramFailure;
use crate::state::backend::{Backend, Director, Health};

/// Most nested directors. Varnish has no limit, and crashes on a director that contains itself.
const DEPTH_MAX: usize = 32;

/// Checks that `backend` can be a member of `owner`.
///
/// # Errors
/// If the backend is `none`, or contains the owner.
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

/// Returns true if `from` contains `to`, or nests more than `depth` directors.
fn leads_to(from: &dyn Director, to: &dyn Director, depth: usize) -> bool {
    if std::ptr::addr_eq(from, to) || depth == 0 {
        return true;
    }
    from.members().iter().any(|member| match member {
        Backend::Director(director) => leads_to(&**director, to, depth - 1),
        _ => false,
    })
}

/// Joint health of `members`: healthy if one is. As in Varnish, the time of change is the latest up
/// to that member.
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
