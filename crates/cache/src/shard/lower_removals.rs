//! Lower removals: the responses that leave the lower tier when another one enters the index.

/// The responses of a key that are to leave the lower tier.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LowerRemovals<'a, P> {
    All,
    /// The one that was promoted from this place.
    Raised(P),
    /// All that are not in memory, except these.
    AllBut(&'a [P]),
}
