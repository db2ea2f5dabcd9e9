//! The log: one record per transaction, the ring in which a core writes its records, the reader
//! that follows the rings from another process, and the reports made from records.
//!
//! The crate has no socket and no clock. A writer must never wait: for no reader, no lock, no other
//! core. A reader must never trust the bytes of a ring.
//!
//! Begin with [`Record`], which is the form of a record, and [`ring`], which is the file. [`Query`]
//! filters records, and [`format`](mod@format) and [`Pattern`] write them.

pub mod access;
pub mod failed_requests;
pub mod fetch_evidence;
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
