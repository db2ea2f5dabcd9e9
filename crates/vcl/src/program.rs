//! Programs: compiled once, brought to life once for each `vcl.load`, run at each step of every
//! request.

use std::sync::Arc;

use crate::backend::Backend;
use crate::ctx::{Ctx, World};
use crate::source::Loader;
use crate::sub::{Action, Subs};

/// What is to be compiled, and by which rules.
pub struct Input<'a> {
    /// The file's name, as errors and `vcl.show` tell it.
    pub name: &'a str,
    /// Its text.
    pub text: &'a [u8],
    /// How included files are got.
    pub loader: &'a dyn Loader,
    /// The rules.
    pub rules: Rules<'a>,
}

/// The parameters that rule compiling.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Names of the storages there are, for `storage.*`.
    pub storages: &'a [&'a str],
    /// Labels that `return (vcl(...))` may name.
    pub labels: &'a [&'a str],
    /// Included files within each other.
    pub include_depth: u32,
}

/// What compiling came to: the program, and what is to be warned of.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: Arc<Program>,
    /// Warnings, rendered for people; empty when there are none.
    pub warnings: String,
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {}

impl Program {
    /// Compiles a program, the builtin VCL behind it.
    ///
    /// # Errors
    /// Every fault there is, rendered with file, line, column, caret and advice.
    pub fn compile(_input: &Input<'_>) -> Result<Compiled, String> {
        unimplemented!()
    }

    /// What it does.
    pub fn uses(&self) -> Uses {
        unimplemented!()
    }

    /// Brings it to life: makes its backends, runs its `vcl_init`.
    ///
    /// # Errors
    /// Why `vcl_init` failed.
    pub fn start(self: &Arc<Self>, _world: &dyn World) -> Result<Arc<Instance>, String> {
        unimplemented!()
    }
}

/// What a program does that whoever runs it can spare where it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Subroutines that do something beyond what the builtin one of that name does.
    pub own: Subs,
    /// Subroutines that read or write `resp`'s or `obj`'s head: for `vcl_deliver`, whether the
    /// stored head must be taken apart.
    pub head: Subs,
    /// `std.rollback` or a restart of its own: the head as it came must be kept.
    pub rollback: bool,
    /// `std.cache_req_body`: the most bytes it asks for.
    pub body: Option<u64>,
}

/// A program that has been brought to life: its `vcl_init` has run.
#[derive(Debug)]
pub struct Instance {
    program: Arc<Program>,
    backends: Vec<Backend>,
}

impl Instance {
    /// One with these backends and without subroutines, for tests.
    pub fn of_backends(backends: Vec<Backend>) -> Arc<Self> {
        Arc::new(Self { program: Arc::new(Program {}), backends })
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Its backends in the order of the program, then its directors in the order of `vcl_init`.
    pub fn backends(&self) -> Vec<Backend> {
        self.backends.clone()
    }

    /// What `req.backend_hint` begins with.
    pub fn default_backend(&self) -> &Backend {
        &self.backends[0]
    }

    /// Runs the subroutine that `ctx` is for.
    pub fn run(&self, _ctx: &mut Ctx<'_>) -> Action {
        unimplemented!()
    }

    /// Runs its `vcl_fini`.
    pub fn stop(self: &Arc<Self>, _world: &dyn World) {
        unimplemented!()
    }
}
