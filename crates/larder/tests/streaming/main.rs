//! What must simply work when it passes through: other protocols, streams that do not end, bodies
//! larger than memory.

#[path = "../support/mod.rs"]
mod support;

mod ends;
mod events;
mod hints;
mod large;
mod leaving;
mod refusals;
mod tunnels;
mod websocket;
