//! VCL 4.0 and 4.1, the policy language of Varnish: read, checked, and made into a tree that runs.
//!
//! Pure: no sockets, no files, no clock. Sources come through [`source::Loader`], the outside world
//! of a running program through [`ctx::World`].
//!
//! The way of a file: `lex` and `parse` make an [`ast`] of it, `lower` checks types, names and
//! places and makes a tree of steps of it in which every name is resolved: a [`program::Program`].
//! A program that has been brought to life (`vcl_init` has run) is a [`program::Instance`]; `flow`
//! asks it at each step of a request.
//!
//! The floors: each knows those below it alone.
//!
//! - on top, `compile` joins `parse` and `lower`, and [`mod@reference`] writes the tables down;
//! - `run`, the compiled form and its course, and beside it the [`vmods`];
//! - [`vars`], then [`headers`] and [`vmod`], the form of a VMOD; `life`, the start and end of a
//!   program;
//! - `state`, which a running subroutine sees and works on: [`ctx`], [`program`], [`backend`],
//!   [`value`];
//! - rules of Varnish that know no program ([`rules`], [`params`], [`mod@regex`], [`acl`]), and
//!   what VMODs keep for as long as the daemon runs (`shared`);
//! - the words of the language: [`types`], [`sub`], [`text`].
//!
//! Reading ([`source`], [`report`], [`lex`], [`ast`], [`parse`]) knows nothing of running.

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
