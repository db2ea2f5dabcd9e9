//! Lowering of the syntax tree to a runnable [tree of statements](crate::run): names, types and
//! places are checked. All errors are reported; a faulty part is reported once and left out. It
//! never reads the sources again except for positions.

mod acl;
mod advice;
mod arguments;
mod backends;
mod conversion;
mod declarations;
mod expr;
mod extra;
mod facts;
mod operators;
mod restrictions;
mod statements;
mod symbols;
#[cfg(test)]
mod tests;
mod verdicts;

use std::collections::{HashMap, HashSet};

use crate::ast::{Ast, Declaration};
use crate::input::{Input, ProgramRole};
use crate::report::Report;
use crate::run::{CompiledStatement, Routine};
use crate::state::program::{Executable, ProgramParts};
use crate::sub::Sub;
use facts::SubFacts;
use symbols::Symbols;

/// Checks `ast` with the builtin VCL appended, and makes a program of both. `None` after errors,
/// which are in the report.
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
        parts: ProgramParts {
            version: ast.version,
            role: input.rules.role,
            ..ProgramParts::default()
        },
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

/// State of the lowering.
struct Lowering<'a> {
    input: &'a Input<'a>,
    report: &'a mut Report,
    version: u32,
    /// True while the builtin VCL is lowered, which may use features of all versions.
    in_builtin: bool,
    symbols: Symbols,
    parts: ProgramParts,
    /// Numbers of the patterns.
    patterns: HashMap<Box<str>, Option<u32>>,
    /// Lowered statements of each subroutine so far.
    bodies: Vec<Vec<CompiledStatement>>,
    /// Facts about each subroutine.
    facts: Vec<SubFacts>,
    /// Number of the current subroutine.
    current: usize,
    /// Depth of the current expression or block.
    depth: u32,
    /// Probe of backends without a probe.
    default_probe: Option<u32>,
    /// Subroutines of the builtin VCL, which a program may extend.
    steps_of_builtin: Vec<Box<str>>,
    /// True if a function in the current statement calls a subroutine.
    calls_sub: bool,
    /// Names of modules and objects that failed to be declared: their uses are not reported again.
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
                Declaration::Probe { name, fields } => {
                    self.check_backend(name, "probe");
                    self.probe(name, fields);
                }
                Declaration::Backend { name, fields } => {
                    self.check_backend(name, "backend");
                    self.backend(name, fields.as_deref());
                }
                Declaration::Sub { name, body } => self.sub(name, body),
                Declaration::Unused(name) => self.mark_unused(name),
            }
        }
    }

    fn finish(mut self) -> Option<ProgramParts> {
        if self.input.rules.role == ProgramRole::Whole {
            self.default_backend();
        }
        if !self.report.has_errors() {
            self.unused();
        }
        self.check_restrictions();
        if self.report.has_errors() {
            return None;
        }
        if self.input.rules.role == ProgramRole::Whole {
            self.warn_of_skipped_checks();
        }
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

/// Names of the subroutines in `items`.
fn subs(items: &[Declaration]) -> Vec<Box<str>> {
    let names = items.iter().filter_map(|item| match item {
        Declaration::Sub { name, .. } => Some(name.text.clone()),
        _ => None,
    });
    names.collect()
}
