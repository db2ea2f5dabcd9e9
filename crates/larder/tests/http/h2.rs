//! Tests of HTTP/2 towards clients, against RFC 9113, RFC 9218 and RFC 8441, by a strict client: it
//! has judged every frame before a test sees it.

// Both ends are the test's, as in the tests of streaming.
use crate::streaming::ends;

mod answers;
mod bodies;
mod closing;
mod errors;
mod flow;
mod listeners;
mod priority;
mod slow;
mod streams;
mod trailers;
mod websocket;
