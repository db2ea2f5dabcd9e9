//! Requests that are fine as HTTP/2 frames and would become something else as HTTP/1 text: one
//! table of what clients may try when a proxy translates, with what must come of each.
//!
//! The classes are those of the literature on HTTP/2 downgrades. What is malformed by RFC 9113 is
//! refused on its stream; the connection and the requests after it never notice.

mod accepted;
mod case;
mod framing;
mod octets;
mod pseudo;
mod table;
mod targets;
#[cfg(test)]
mod tests;

pub use case::{Case, DataPiece, DowngradeExpectation, ForwardedRequest};
use table::DowngradeTable;

/// The whole table. Names of hosts and targets that only a smuggler asks for hold `evil` or
/// `smuggled`.
pub fn cases() -> Vec<Case> {
    let mut table = DowngradeTable { cases: Vec::new() };
    octets::add(&mut table);
    pseudo::add(&mut table);
    framing::add(&mut table);
    targets::add(&mut table);
    accepted::add(&mut table);
    table.cases
}
