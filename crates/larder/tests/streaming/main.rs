//! Streams that must simply work when they pass through: other protocols, streams that do not end,
//! bodies larger than memory.

#[path = "../support/mod.rs"]
mod support;

#[allow(dead_code, reason = "shared with the tests of HTTP/2, each using its own part")]
mod ends;
mod events;
mod hints;
mod large;
mod leaving;
mod refusals;
mod tunnels;
mod websocket;
