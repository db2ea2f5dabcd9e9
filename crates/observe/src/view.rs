//! The view of a transaction that a log line takes: the client's or the backend's.

/// The side from which a transaction is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionView {
    /// The client's request and response.
    Client,
    /// The request to the origin and its response.
    Backend,
}
