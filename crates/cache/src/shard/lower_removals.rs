//! Responses that leave the lower tier as another one comes in.

/// Responses of a key that are to leave the lower tier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LowerRemovals<'a, P> {
    All,
    /// The one that came up from this place.
    Raised(P),
    /// All that is not in memory, but these.
    AllBut(&'a [P]),
}
