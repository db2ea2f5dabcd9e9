//! The two sides from which a transaction is told.

/// From which side a transaction is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionView {
    /// The client's.
    Client,
    /// The origin's, where it was asked: Larder is its client.
    Backend,
}
