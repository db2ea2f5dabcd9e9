//! Pages that carry instructions to the cache in front of them: Edge Side Includes (ESI 1.0), as
//! its note has them and as Varnish has them, and server-side includes as nginx has them.
//!
//! Pure: no sockets, no clock, no tasks, and nothing is fetched. It never copies the text of a
//! page, never takes time that grows faster than the page, and never recurses deeper than a limit.
//!
//! A page is parsed once, when it is stored: [`Parser`] takes its bytes as they come, or
//! [`Document::parse`] all of them, and the result is a list of [`Node`]s in which text is a range
//! of offsets. For each request, [`Document::resolve`] (or a [`Run`], node by node) makes [`Op`]s
//! of them: what to send, in order, and which fragments to fetch.
//!
//! Decision 23 in `docs/decisions` says why it is so.

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
