//! Tests of the protocols towards clients, HTTP/1.1 and HTTP/2: framing, bodies, streams and
//! tunnels, limits, and forwarding.

#[path = "../support/mod.rs"]
mod support;

mod error_pages;
mod forwarding;
mod framing;
mod h2;
mod h2_downgrade;
mod intercepted_errors;
mod limits;
mod proxy_protocol;
mod streaming;
mod transport;
mod unix_sockets;
mod urls;
