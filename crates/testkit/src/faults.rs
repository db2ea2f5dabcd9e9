//! Faults of origins: every kind of broken response that a proxy must neither store nor deliver as
//! whole, as data for end-to-end tests.
//!
//! A case says what its origin does and what a client may see. It must never depend on how Larder
//! works.

mod bodies;
mod case;
mod heads;
mod surplus;
#[cfg(test)]
mod tests;

pub use case::{FaultCase, FaultExpectation};
pub use surplus::POISON;

/// Origin timeout of the tests' configuration, in milliseconds. Scripts stay well below it, or hang
/// to exceed it.
pub const ORIGIN_PATIENCE_MS: u64 = 700;

/// All cases.
pub fn fault_cases() -> Vec<FaultCase> {
    let mut cases = heads::cases();
    cases.extend(bodies::cases());
    cases.extend(surplus::cases());
    cases
}
