//! Requests whose framing servers have disagreed about, and ones every server must take: one table
//! for the engine's own tests and for tests of the whole server.
//!
//! The classes are those of the smuggling literature. Each rejected case goes wrong in its first
//! request.

mod accepted;
mod bodies;
mod fields;
mod lines;
mod table;

use table::FramingTable;
pub use table::{FramingCase, Treatment};

/// The whole table.
pub fn cases() -> Vec<FramingCase> {
    let mut table = FramingTable { cases: Vec::new() };
    lines::add(&mut table);
    fields::add(&mut table);
    bodies::add(&mut table);
    accepted::add(&mut table);
    table.cases
}
