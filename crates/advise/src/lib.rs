//! Advice on a cache's settings: visits of the past are replayed through the site's own policy, one
//! change at a time, and counted. Pure: no socket, no file, no clock.
//!
//! Advice must never contradict what the visits prove, and never widens who sees a response without
//! proof that visitors with different cookies got equal bytes.
//!
//! Begin with [`Visit`].

pub mod visit;

pub use visit::{BodyPrint, Visit};
