//! From the syntax tree to a program that can run: names, types and places are checked, and what is
//! checked becomes a tree of steps ([`crate::run`]).
//!
//! All faults of a program are reported, not only the first: what cannot be made sense of is
//! reported once and left out. Must never look at the sources again but to say where something
//! stands.

mod acl;
mod advice;
mod arguments;
mod conversion;
mod declarations;
mod expr;
mod facts;
mod hosts;
mod operators;
mod restrictions;
mod statements;
mod symbols;
#[cfg(test)]
mod tests;
mod verdicts;

use std::collections::{HashMap, HashSet};

use crate::ast::{Ast, Declaration};
use crate::input::Input;
use crate::report::Report;
use crate::run::{CompiledStatement, Routine};
use crate::state::program::{Executable, ProgramParts};
use crate::sub::Sub;
use facts::SubFacts;
use symbols::Symbols;

/// Checks `ast` with the builtin VCL behind it and makes a program of them. None when there are
/// errors, which the report has.
pub(crate) fn lower(
    ast: &Ast,
    builtin: &[Declaration],
    input: &Input<'_>,
    report: &mut Report,
) -> Option<ProgramParts> {
    let mut lowering = Lowering {
        input,
        report,
        version: ast.version,
        in_builtin: false,
        symbols: Symbols::default(),
        parts: ProgramParts { version: ast.version, ..ProgramParts::default() },
        patterns: HashMap::new(),
        bodies: Vec::new(),
        facts: Vec::new(),
        current: 0,
        depth: 0,
        default_probe: None,
        steps_of_builtin: subs(builtin),
        calls_sub: false,
        missing: HashSet::new(),
    };
    lowering.declare(&ast.items);
    lowering.builtin(true);
    lowering.declare(builtin);
    lowering.builtin(false);
    lowering.items(&ast.items);
    lowering.builtin(true);
    lowering.items(builtin);
    lowering.builtin(false);
    lowering.finish()
}

/// The work under way.
struct Lowering<'a> {
    input: &'a Input<'a>,
    report: &'a mut Report,
    version: u32,
    /// The builtin VCL is being lowered, which may use what is of every version.
    in_builtin: bool,
    symbols: Symbols,
    parts: ProgramParts,
    /// Numbers of patterns.
    patterns: HashMap<Box<str>, Option<u32>>,
    /// The statements of each subroutine, as far as they have been lowered.
    bodies: Vec<Vec<CompiledStatement>>,
    /// The facts about each subroutine.
    facts: Vec<SubFacts>,
    /// The subroutine that is being lowered.
    current: usize,
    /// The depth of the expression or block that is being lowered.
    depth: u32,
    /// The probe of backends that have none of their own.
    default_probe: Option<u32>,
    /// The subroutines of the builtin VCL, which a program may put something before.
    steps_of_builtin: Vec<Box<str>>,
    /// The statement that is being lowered has a function call a subroutine.
    calls_sub: bool,
    /// Names of modules and objects that could not be had, which is reported: what is done with
    /// them is not.
    missing: HashSet<Box<str>>,
}

impl Lowering<'_> {
    fn builtin(&mut self, is_builtin: bool) {
        self.in_builtin = is_builtin;
    }

    fn items(&mut self, items: &[Declaration]) {
        for item in items {
            match item {
                Declaration::Import { module, alias, .. } => self.import(module, alias.as_ref()),
                Declaration::Acl(acl) => self.acl(acl),
                Declaration::Probe { name, fields } => self.probe(name, fields),
                Declaration::Backend { name, fields } => self.backend(name, fields.as_deref()),
                Declaration::Sub { name, body } => self.sub(name, body),
                Declaration::Unused(name) => self.mark_unused(name),
            }
        }
    }

    fn finish(mut self) -> Option<ProgramParts> {
        self.default_backend();
        if !self.report.has_errors() {
            self.unused();
        }
        self.places();
        if self.report.has_errors() {
            return None;
        }
        self.warn_of_skipped_checks();
        let mut parts = self.parts;
        parts.entries = Sub::ALL
            .iter()
            .map(|sub| self.symbols.sub(sub.name()).expect("the builtin VCL has every one of them"))
            .collect();
        parts.routines = self
            .bodies
            .into_iter()
            .zip(self.facts)
            .map(|(body, facts)| Routine { name: facts.name, body: body.into() })
            .map(|routine| Box::new(routine) as Box<dyn Executable>)
            .collect();
        Some(parts)
    }
}

/// The names of the subroutines in `items`.
fn subs(items: &[Declaration]) -> Vec<Box<str>> {
    let names = items.iter().filter_map(|item| match item {
        Declaration::Sub { name, .. } => Some(name.text.clone()),
        _ => None,
    });
    names.collect()
}
