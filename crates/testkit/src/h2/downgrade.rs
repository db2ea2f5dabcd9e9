//! Downgrade cases: requests that are valid as HTTP/2 frames and dangerous as HTTP/1 text, with the
//! required result of each.
//!
//! The classes are those of the literature on HTTP/2 downgrades. A malformed request (RFC 9113) is
//! rejected on its stream, without effect on the connection and later requests.

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

/// All cases. Hosts and targets of smuggled requests contain `evil` or `smuggled`.
pub fn cases() -> Vec<Case> {
    let mut table = DowngradeTable { cases: Vec::new() };
    octets::add(&mut table);
    pseudo::add(&mut table);
    framing::add(&mut table);
    targets::add(&mut table);
    accepted::add(&mut table);
    table.cases
}
