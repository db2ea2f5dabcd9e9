//! The course of a fetch: a node, siblings or the origin are asked, and what comes is stored,
//! confirms what is stored, or passes.

mod machine;
mod store;
