//! Tests of known attacks on HTTP/2 servers, at full speed beside a well-behaved client: each
//! attacking connection is ended, the limit that ended it is counted, memory is bounded, and the
//! clean client is served.
//!
//! `LARDER_TEST_FULL=1` repeats the attacks for ten seconds each. Figures are printed: run with
//! `--nocapture`, against a release build by `LARDER_BIN`, to see realistic ones.

mod blocks;
mod frames;
mod resets;
mod siege;
mod windows;
