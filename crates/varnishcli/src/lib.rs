//! The protocol of Varnish's command line port (varnish-cli(7)), which `varnishadm` and plugins of
//! applications speak: requests read from bytes, the table of commands, replies written, and the
//! proof that a client knows the secret.
//!
//! Pure: it never touches a socket or a file, and does nothing of what is asked for. Randomness and
//! the time come in as values.

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
