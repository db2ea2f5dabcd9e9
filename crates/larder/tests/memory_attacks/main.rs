//! What clients can have the daemon hold: each attack asks for as much as it can and takes nothing.
//! Memory stays below what may be taken and a tenth more, connections to the origin stay bounded,
//! and other clients are answered.
//!
//! Of the daemon's memory the pages of files count nowhere here: they are the program itself, which
//! is five times larger in a debug build than in a release, and the kernel takes them back when it
//! likes.

#[path = "../support/mod.rs"]
mod support;

mod fortress;

mod ahead;
mod bodies;
mod held;
