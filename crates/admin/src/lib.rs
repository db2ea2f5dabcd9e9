//! The admin listener: who may ask what of the daemon, over HTTP.
//!
//! [`routes::TABLE`] says what there is: every path with the [`Role`] that it takes, what may be
//! asked and what is answered. The OpenAPI description is made from the same table. What an answer
//! says is the daemon's business, which implements [`Api`]; it is asked only what the table lets
//! the caller ask.
//!
//! A unix socket is for who may open it. An address is for who has a token, and only ever one of
//! this machine's own. No answer is for another web site's page: names, origins and types are
//! checked before a token is. Kubelets, balancers and Prometheus are elsewhere: for them there are
//! listeners on any address that answer a few rows of the table and nothing else (`apart`).

mod api;
mod audit;
mod body;
mod connection;
pub mod connection_limiter;
mod cross_site_checks;
mod explanation;
mod http1;
mod listen;
mod monitoring;
mod openapi;
mod role;
pub mod routes;
mod shapes;
mod tokens;
mod write_timeout;

pub use api::{AdminPeer, AdminRequest, AdminResponse, Api, Caller};
pub use audit::Audit;
pub use body::Body;
pub use listen::{Console, Listeners, Settings, Socket};
pub use monitoring::{MetricsAuthentication, serve_health, serve_metrics};
pub use openapi::document;
pub use role::Role;
pub use routes::{Operation, Route};
pub use tokens::{TokenError, Tokens};
