//! Streams that must simply work when they pass through: other protocols, streams that do not end,
//! bodies larger than memory.

pub(crate) mod ends;
mod events;
mod hints;
mod large;
mod leaving;
mod refusals;
mod tunnels;
mod websocket;
