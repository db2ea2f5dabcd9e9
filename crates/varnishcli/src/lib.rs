//! The protocol of Varnish's command line port (varnish-cli(7)), which `varnishadm` and plugins of
//! applications speak: requests, the table of commands, replies, and authentication by a secret.
//!
//! Pure: it never touches a socket or a file, and never executes a command. Random bytes and the
//! time are arguments.
//!
//! Begin with [`Reader`], which cuts bytes into requests; [`read`] makes a [`Call`] of one by the
//! [`TABLE`] of commands, and [`Reply`] is the response in wire format.

mod auth;
mod command;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod json;
mod reader;
mod reply;
#[cfg(test)]
mod tests;
mod words;

pub use auth::Challenge;
pub use command::{Call, CliCommand, Spec, TABLE, help, help_json, read};
pub use json::{begin as json_begin, string as json_string};
pub use reader::{OversizedRequest, Reader, Words};
pub use reply::{Reply, Status};
pub use words::SyntaxError;
