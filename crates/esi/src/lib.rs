//! Pages with instructions for the cache: Edge Side Includes (ESI 1.0), in full or as in Varnish,
//! and nginx's server-side includes.
//!
//! Pure: no sockets, clock or tasks, and it never fetches. It never copies a page's text, takes
//! time linear in the page, and recurses to a fixed depth at most.
//!
//! A page is parsed once, when it is stored. Begin with [`Parser`] (bytes as they come) or
//! [`Document::parse`] (a whole page): both give [`Node`]s, in which text is a range of offsets.
//! For each request, [`Document::resolve`] or a [`PageResolver`] gives [`ResolvedNode`]s: the bytes
//! to send and the fragments to fetch, in order. Decision 23 in `docs/decisions` has the reasons.

mod address;
mod attribute;
mod document;
mod environment;
mod error;
mod esi;
mod expression;
mod fragment;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod limits;
mod machine;
mod node;
mod parser;
mod remark;
mod remark_collector;
mod run;
mod search;
mod ssi;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod variable;
mod varnish;

pub use address::FragmentTarget;
pub use document::Document;
pub use environment::{Environment, PageText};
pub use error::Error;
pub use fragment::{Fragment, Include, OnError, ResolvedNode};
pub use limits::Limits;
pub use node::{Branch, Node};
pub use parser::{Dialect, Parser};
pub use remark::{Remark, RemarkKind, Remarks};
pub use run::PageResolver;
pub use ssi::Command;
pub use variable::{Template, Variable};
pub use varnish::VarnishRules;
