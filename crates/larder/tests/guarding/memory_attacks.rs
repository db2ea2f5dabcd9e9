//! Attacks that have the daemon hold memory: each asks for as much as it can and takes nothing.
//! Memory stays below what may be taken and a tenth more, connections to the origin stay bounded,
//! and other clients are answered.
//!
//! Pages of files do not count as the daemon's memory here. They are the program itself, which is
//! five times larger in a debug build than in a release, and the kernel takes them back when it
//! likes.

mod fortress;

mod ahead;
mod bodies;
mod decoded;
mod held;
mod idle;
mod texts;
