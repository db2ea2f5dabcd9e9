//! A duty to fetch what the disk may have.

use crate::state::tier::Lead;

/// A duty to fetch what the disk may have.
pub(crate) enum Below<L = Lead> {
    /// Others wait.
    Lead(L),
    /// Nobody waits.
    Alone(L),
}
