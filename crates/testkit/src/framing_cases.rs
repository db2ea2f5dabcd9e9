//! Framing cases: requests whose framing servers have disagreed about, and requests that every
//! server must accept. The engine's tests and the server's tests share the table.
//!
//! The classes are those of the literature on request smuggling. Each rejected case is wrong in its
//! first request.

mod accepted;
mod bodies;
mod fields;
mod lines;
mod table;

use table::FramingTable;
pub use table::{FramingCase, Treatment};

/// All cases.
pub fn cases() -> Vec<FramingCase> {
    let mut table = FramingTable { cases: Vec::new() };
    lines::add(&mut table);
    fields::add(&mut table);
    bodies::add(&mut table);
    accepted::add(&mut table);
    table.cases
}
