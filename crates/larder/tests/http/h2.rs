//! HTTP/2 towards clients, held against RFC 9113, RFC 9218 and RFC 8441 by a client that forgives
//! nothing: whatever the server sends has been judged frame by frame when a test sees it.

// Both ends in the test's hands, as the tests of streaming have them.
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
