//! VCL 4.0 and 4.1, the policy language of Varnish: read, checked, and made into a tree that runs.
//!
//! Pure: no sockets, no files, no clock. Sources come through [`source::Loader`], the outside world
//! of a running program through [`ctx::World`].
//!
//! The way of a file: `lex` and `parse` make an [`ast`] of it, `lower` checks types, names and
//! places and makes a tree of steps of it in which every name is resolved: a [`program::Program`].
//! A program that has been brought to life (`vcl_init` has run) is a [`program::Instance`]; `flow`
//! asks it at each step of a request.

pub mod acl;
pub mod ast;
pub mod backend;
mod compile;
pub mod counts;
pub mod ctx;
mod failure;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod headers;
mod input;
pub mod lex;
mod lower;
pub mod params;
pub mod parse;
pub mod program;
pub mod reference;
pub mod regex;
pub mod report;
pub mod rules;
mod run;
mod shared;
pub mod source;
pub mod sub;
mod tag;
#[cfg(any(test, feature = "fuzzing"))]
pub mod testing;
pub mod text;
pub mod told;
pub mod types;
pub mod value;
pub mod vars;
pub mod vmod;
pub mod vmods;
pub mod words;
pub mod workspace;
mod world;
