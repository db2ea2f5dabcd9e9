//! Records of requests: one record per transaction, the ring in which a core leaves its records,
//! the reader that follows rings from another process, and the reports made from records.
//!
//! Nothing here knows a socket or a clock. A writer never waits: not for a reader, not for a lock,
//! not for another core. A reader trusts nothing that it reads.

pub mod access;
pub mod failed_requests;
pub mod field_subscriptions;
pub mod format;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod heads;
pub mod histogram;
pub mod pattern;
pub mod query;
pub mod record;
pub mod ring;
pub mod steps;
pub mod suite;
pub mod tally;
pub mod text;
mod view;
pub mod visitor_statistics;
pub mod vsl;

pub use field_subscriptions::{FieldSubscription, FieldSubscriptions, basic_user};
pub use pattern::{Pattern, PatternError};
pub use query::{Query, QueryError};
pub use record::{DictionaryUse, Flags, Kind, Record, Served};
pub use suite::CipherSuite;
