//! Compiler of VCL: from source files to a [`Program`]. It never runs a subroutine.

use std::sync::Arc;

use crate::input::Input;
use crate::lower;
use crate::parse;
use crate::report::{Report, Severity};
use crate::source::Sources;
use crate::state::program::{CompilationResult, Program};

impl Program {
    /// Compiles a program. The builtin VCL stands behind a whole one, and nothing behind an extra.
    ///
    /// # Errors
    /// All errors, rendered with file, line, column, caret and advice.
    pub fn compile(input: &Input<'_>) -> Result<CompilationResult, String> {
        let mut sources = Sources::default();
        let mut report = Report::default();
        let own = parse::parse(input, &mut sources, &mut report);
        let builtin = parse::parse_builtin(&mut sources, input.rules.role);
        let parts = own.and_then(|own| lower::lower(&own, &builtin, input, &mut report));
        let warnings = report.render(&sources);
        match parts {
            Some(parts) => {
                let program = Arc::new(Self::new(input.name, parts, sources));
                let usual = report.render_those(program.sources(), |one| one == Severity::Warning);
                Ok(CompilationResult { program, warnings, usual })
            }
            None => Err(warnings),
        }
    }
}
