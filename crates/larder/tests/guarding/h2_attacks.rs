//! The known attacks on HTTP/2 servers, at full speed beside a client that behaves: each attacking
//! connection is ended, the limit that ended it is counted, memory stays within its bounds, and the
//! clean client is served.
//!
//! `LARDER_TEST_FULL=1` has the attackers come again for ten seconds each. Figures are printed: run
//! with `--nocapture`, against a release build by `LARDER_BIN`, to see them as they are.

mod blocks;
mod frames;
mod resets;
mod siege;
mod windows;
