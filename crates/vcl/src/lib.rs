//! VCL 4.0 and 4.1, the policy language of Varnish: parsed, checked, compiled to a tree, and
//! executed one subroutine at a time.
//!
//! Pure: no sockets, files or clock. Sources come through [`source::Loader`], and the services of a
//! running program through [`ctx::ProgramEnvironment`]. A program never runs without a step budget.
//!
//! Begin with [`program::Program::compile`], which parses ([`parse`]), checks and lowers sources;
//! [`program::Instance`] is a program whose `vcl_init` has run, and [`ctx::Ctx`] is all that a
//! running subroutine sees. [`vars`] and [`vmods`] are the tables of variables and modules.
//!
//! Layers, the upper ones first, which use only lower ones: `compiler` and [`mod@reference`];
//! `run`, [`vmods`]; [`vars`], [`headers`], [`vmod`], `lifecycle`; `state`; [`rules`], [`params`],
//! [`mod@regex`], [`acl`], `shared`; [`types`], [`sub`], [`text`]. Parsing ([`source`], [`report`],
//! [`lex`], [`ast`], [`parse`]) never depends on execution.

pub mod acl;
pub mod ast;
mod compiler;
pub mod counts;
pub mod explanation;
mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod headers;
mod input;
pub mod lex;
mod lifecycle;
mod lower;
pub mod params;
pub mod parse;
pub mod reference;
pub mod regex;
pub mod report;
pub mod rules;
mod run;
mod shared;
pub mod source;
mod state;
pub mod sub;
mod tag;
#[cfg(any(test, feature = "fuzzing"))]
pub mod testing;
pub mod text;
pub mod trace;
pub mod types;
pub mod vars;
pub mod vmod;
pub mod vmods;
pub mod workspace;

pub use state::{backend, ctx, program, value};
