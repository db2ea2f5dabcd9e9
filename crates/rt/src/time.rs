//! Timers. They are tokio's: in a simulation its clock stands still while anything can run, and
//! jumps to the next timer when nothing can.

pub use tokio::time::error::Elapsed;
pub use tokio::time::{
    Instant, Interval, MissedTickBehavior, Sleep, Timeout, interval, sleep, sleep_until, timeout,
    timeout_at,
};
