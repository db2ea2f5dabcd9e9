//! Tests of attacks on memory: each requests as much as it can and reads nothing. Memory stays
//! below the ceiling and a tenth more, origin connections are bounded, and other clients are
//! served.
//!
//! Pages of files do not count as the daemon's memory here. They are the program itself, which is
//! five times larger in a debug build than in a release, and the kernel can take them back.

mod fortress;

mod ahead;
mod bodies;
mod decoded;
mod held;
mod idle;
mod texts;
