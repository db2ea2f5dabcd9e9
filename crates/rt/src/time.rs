//! Timers: those of tokio. In a simulation its clock stops while any task can run, and then jumps
//! to the next timer.

pub use tokio::time::error::Elapsed;
pub use tokio::time::{
    Instant, Interval, MissedTickBehavior, Sleep, Timeout, interval, sleep, sleep_until, timeout,
    timeout_at,
};
