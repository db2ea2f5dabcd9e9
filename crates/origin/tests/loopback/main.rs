//! Tests of the client against small scripted servers on loopback sockets, rule by rule.
//!
//! No test asserts speed: deadlines that must not pass are generous, timeouts under test are short.

mod backends;
mod bodies;
mod health;
mod kit;
mod multiplexed;
mod multiplexed_bounds;
mod places;
mod queue;
mod responses;
mod retry;
mod reuse;
mod timeouts;
