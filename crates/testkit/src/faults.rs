//! Origins that fail: every way of breaking a response that a proxy must neither store nor pass on
//! as whole (reliability goals F1 to F5), as data for an end-to-end test.
//!
//! A case says what its origin does and what a client may see; it must never depend on how Larder
//! works.

mod bodies;
mod case;
mod heads;
mod surplus;
#[cfg(test)]
mod tests;

pub use case::{FaultCase, FaultExpectation};
pub use surplus::POISON;

/// Time after which the tests' configuration gives up on a silent origin, in milliseconds. Scripts
/// stay well below it where they mean to be patient, and hang where they mean to exceed it.
pub const ORIGIN_PATIENCE_MS: u64 = 700;

/// All cases.
pub fn fault_cases() -> Vec<FaultCase> {
    let mut cases = heads::cases();
    cases.extend(bodies::cases());
    cases.extend(surplus::cases());
    cases
}
