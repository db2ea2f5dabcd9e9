//! Messages of HTTP: header block, method, status, target, and the values of RFC 9110 and RFC 9111.
//!
//! One canonical form of a request, from which key, route and forwarded request are made, and the
//! rules for storing a response. The crate must never touch a socket, a file or a clock. It does
//! not parse messages, which is the task of the engines (`h1`, `h2`), but has the rules for hosts,
//! targets and framing fields that all engines share.
//!
//! Begin with [`Request`], [`Response`] and [`HeaderBlock`], then [`store::plan`], which decides
//! about storing.

pub mod authority;
pub mod cache_control;
pub mod cache_status;
pub mod calendar;
pub mod class;
pub mod client;
pub mod conditional;
pub mod cookie;
pub mod date;
pub mod digest;
pub mod forwarded;
pub mod forwarding;
pub mod framing;
pub mod freshness;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod grpc;
pub mod header;
pub mod https_origin;
mod https_url;
pub mod list;
pub mod path;
pub mod percent;
pub mod pseudonym;
pub mod query;
pub mod range;
pub mod reference;
pub mod request;
pub mod response;
pub mod sf;
pub mod store;
pub mod tags;
pub mod target;
pub mod targeted_control;
mod token;
pub mod trace_context;
pub mod trailers;
pub mod upgrade;
pub mod vary;

pub use client::{ClassifiedClient, ClientClass, ClientProof};
pub use header::{HeaderBlock, HeaderId};
pub use https_origin::HttpsOrigin;
pub use https_url::HttpsUrl;
pub use request::{Framing, Method, Request, Scheme, Upgrade, Version};
pub use response::{Response, Status};
pub use trailers::Trailers;
