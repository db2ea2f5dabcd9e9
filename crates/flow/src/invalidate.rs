//! Invalidation: one kind of value, and one door by which it reaches the store.
//!
//! Whoever invalidates (a purge request, an unsafe method, a program, an operator, HTCP) says so
//! with an [`Invalidation`], which is data: it can be written to a journal, sent to another node
//! and numbered. The door ([`Door::invalidate`]) has the journal, if
//! there is one, record it; only then does it take effect. A batch takes effect as a whole or not
//! at all, and an invalidation that was applied already does nothing.
//!
//! Nothing else calls the cache's invalidating functions.

mod passing;
mod plan;
mod stored;
mod sweep;

pub use purge::{
    Cause, Everyone, Heard, Id, Invalidation, Journal, Level, NewTimes, NotDone, Others, Prepared,
    Recording, Sites, Target, Telling, Told, Unreadable, Url, What, htcp, neighbour,
};

pub use crate::state::invalidate::{Door, Outcome, Patience};
pub(crate) use plan::sought;
pub use stored::Scope;
pub(crate) use stored::{Meant, Under};

#[cfg(test)]
#[path = "invalidate/tests.rs"]
mod tests;
