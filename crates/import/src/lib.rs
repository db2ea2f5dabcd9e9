//! Configurations of other servers, translated into `larder.toml`: nginx's, and the usual ones of
//! Caddy, Squid and varnishd.
//!
//! Every directive is answered: a setting carries it over, or it is the default here, or nothing
//! here needs it, or it is listed as not carried over. None disappears. Nothing here opens a socket
//! or changes a file; files are read by [`read_path`] alone.

mod caddyfile;
mod document;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod glob;
mod lexer;
mod lines;
mod parser;
mod report;
mod source;
mod syntax;
mod translate;

#[cfg(test)]
mod tests;

pub use error::Error;
pub use parser::parse;
pub use report::{AnswerCounts, Entry, Fate, Report};
pub use source::{Source, SourceKind, read_path, read_text};
pub use syntax::{Directive, Place, print, say_same};
pub use translate::{Translated, translate};
