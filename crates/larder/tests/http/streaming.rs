//! Streaming that must simply work: other protocols, endless streams, bodies larger than memory.

pub(crate) mod ends;
mod events;
mod hints;
mod large;
mod leaving;
mod refusals;
mod tunnels;
mod websocket;
