//! Ban expressions of Varnish's `ban` command (varnish-cli(7)): tests that select the stored
//! responses of an invalidation. A condition has a field, an operator and an argument; `&&` joins
//! conditions:
//!
//! ```text
//! req.http.host == example.org && req.url ~ ^/shop/ && obj.age > 1h
//! ```
//!
//! Pure: no sockets, files or clock. Reading never panics, and an [`Error`] has the byte offset of
//! its cause. Begin with [`Expression`], and with [`BanSubject`], the response that it is tested
//! against.

mod duration;
mod error;
mod expression;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod words;

pub use error::{Error, ErrorKind};
pub use expression::{
    BanSubject, ComparisonOperator, Expression, Field, FieldRequirement, REGEX_BYTES, Term, regex,
};
