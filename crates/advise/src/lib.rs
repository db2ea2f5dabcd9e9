//! Advice on a cache's settings: visits of the past are replayed through the site's own policy, one
//! change at a time, and counted. Pure: no socket, no file, no clock.
//!
//! Advice must never contradict what the visits prove, and never widens who sees a response without
//! proof that visitors with different cookies got equal bytes.
//!
//! Begin with [`advise`], which takes [`Visit`]s and [`Settings`] and returns [`Advice`].
//! [`sources`] yields visits.

mod advice;
mod comparison;
mod edit;
mod finding;
mod findings;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod memory;
mod questions;
mod reception;
mod replay;
pub mod report;
mod sample;
mod settings;
pub mod sources;
mod trace;
pub mod visit;

pub use advice::{Advice, advise};
pub use edit::Lines;
pub use finding::{Change, Finding, FindingKind, Proof};
pub use questions::{Question, questions};
pub use replay::Figures;
pub use settings::Settings;
pub use visit::{BodyPrint, Visit};
