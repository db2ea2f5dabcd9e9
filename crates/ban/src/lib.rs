//! Ban expressions: which stored responses an invalidation is for, in the language of Varnish's
//! `ban` command (varnish-cli(7)).
//!
//! An expression is a list of conditions joined by `&&`, each of a field, an operator and an
//! argument:
//!
//! ```text
//! req.http.host == example.org && req.url ~ ^/shop/ && obj.age > 1h
//! ```
//!
//! Pure: what is known of a response comes as [`Facts`]. Reading never panics, and an error says
//! at which byte it is.

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
