//! HTTP/2 towards clients, held against RFC 9113, RFC 9218 and RFC 8441 by a client that forgives
//! nothing: whatever the server sends has been judged frame by frame when a test sees it.

#[path = "../support/mod.rs"]
mod support;

// Both ends in the test's hands, as the tests of streaming have them.
#[allow(dead_code, reason = "shared with the tests of streaming, each using its own part")]
#[path = "../streaming/ends.rs"]
mod ends;

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
