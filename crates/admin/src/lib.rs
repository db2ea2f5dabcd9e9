//! The admin listener: the HTTP interface to the daemon, for operators.
//!
//! Begin reading at [`routes::TABLE`], which lists every path with its [`Role`], request and
//! response; the OpenAPI description is made from it. The daemon implements [`Api`], and must only
//! get requests that the table permits. [`Console`] serves them.
//!
//! A unix socket serves every process that may open it. An address serves clients with a token, and
//! must be one of the machine itself. No response may reach another web site's page: hosts, origins
//! and types are checked before the token. Kubelets, balancers and Prometheus have listeners of
//! their own on any address, for a few rows of the table (`monitoring`).

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
