//! Program, compiled once, and its instances, one for each `vcl.load`. A program never changes
//! after compiling.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::acl::Acl;
use crate::failure::ProgramFailure;
use crate::regex::Regex;
use crate::source::{SourceFile, SourceSpan, Sources, StatementLocations, StatementNumber};
use crate::state::backend::{Backend, BackendSpec, Leaf, ProbeSpec};
use crate::state::ctx::Ctx;
use crate::sub::{Sub, Subs};

pub use crate::input::{CompileSettings, Input, ProgramRole};

/// Result of compiling: the program and its warnings.
#[derive(Debug)]
pub struct CompilationResult {
    /// The program.
    pub program: Arc<Program>,
    /// Rendered warnings; empty if there are none.
    pub warnings: String,
    /// The warnings that Varnish gives too.
    pub usual: String,
}

/// An executable subroutine: all declarations of its name, concatenated.
pub(crate) trait Executable: fmt::Debug + Send + Sync {
    /// The name.
    fn name(&self) -> &str;

    /// Runs the subroutine. Returns true if it returned an action, which is in
    /// [`Task::action`](crate::state::ctx::Task::action).
    ///
    /// # Errors
    /// The program's failure; [`Task::at`](crate::state::ctx::Task::at) has the statement.
    fn run(&self, ctx: &mut Ctx<'_>) -> Result<bool, ProgramFailure>;
}

/// A declared backend; `None` for `backend x none;`.
pub(crate) type BackendDeclaration = (Box<str>, Option<BackendSpec>);

/// The parts of a program.
#[derive(Debug, Default)]
pub(crate) struct ProgramParts {
    /// Subroutines by number.
    pub(crate) routines: Vec<Box<dyn Executable>>,
    /// Number of the routine of each of [`Sub::ALL`].
    pub(crate) entries: Vec<u32>,
    /// Backends by number.
    pub(crate) backends: Vec<BackendDeclaration>,
    /// Number of the default backend.
    pub(crate) default_backend: u32,
    /// Named probes by number.
    pub(crate) probes: Vec<ProbeSpec>,
    /// Access lists by number.
    pub(crate) acls: Vec<Acl>,
    /// Positions of statements, by `StatementNumber`.
    pub(crate) spans: Vec<SourceSpan>,
    /// Patterns by number.
    pub(crate) regexes: Vec<Arc<Regex>>,
    /// Names of objects, by number.
    pub(crate) objects: Vec<Box<str>>,
    /// Features that the program uses.
    pub(crate) uses: ProgramFeatures,
    /// 40 or 41.
    pub(crate) version: u32,
    /// The part that the program was compiled for.
    pub(crate) role: ProgramRole,
}

/// Features that a program uses. The runner saves the work for unused ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFeatures {
    /// Subroutines with statements beyond the builtin VCL's.
    pub own: Subs,
    /// Subroutines that use the head of `resp` or `obj`. For `vcl_deliver` it decides whether the
    /// stored head is parsed.
    pub head: Subs,
    /// `std.rollback`: the received head has to be kept.
    pub rollback: bool,
    /// `return (restart)`
    pub restart: bool,
    /// `import xkey`: stored responses are indexed by the keys in their headers.
    pub xkey: bool,
    /// `std.set_ip_tos` and VMOD `tcp`: the client's socket is needed.
    pub socket: bool,
    /// Labels that `return (vcl(label))` names.
    pub labels: Vec<Box<str>>,
    /// `std.cache_req_body`: the most bytes that it asks for.
    pub body: Option<u64>,
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    name: Box<str>,
    parts: ProgramParts,
    sources: Sources,
    locations: StatementLocations,
}

impl Program {
    /// A program of compiled parts. `name` is the name of its file.
    pub(crate) fn new(name: &str, parts: ProgramParts, sources: Sources) -> Self {
        let locations = StatementLocations::of(&sources, &parts.spans);
        Self { name: name.into(), parts, sources, locations }
    }

    /// Name of the program's file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Features that the program uses.
    pub fn uses(&self) -> &ProgramFeatures {
        &self.parts.uses
    }

    /// Source files, the builtin VCL last, for `vcl.show -v`.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// File and line (from 1) of a statement; `<builtin>` is the builtin VCL.
    pub fn place(&self, at: StatementNumber) -> Option<(&SourceFile, u32)> {
        let (file, line) = self.locations.location(at)?;
        Some((self.sources.file(file), line))
    }

    /// Appends file and line of a statement in the form of logs (`default.vcl:14`). The directory
    /// of the program's first file is left out.
    pub fn write_place(&self, at: StatementNumber, out: &mut Vec<u8>) {
        self.locations.write(at, out);
    }

    /// Appends a statement in the form of `VCL_trace`: program, statement number, and number of the
    /// file, line and column.
    pub(crate) fn write_trace(&self, at: StatementNumber, out: &mut Vec<u8>) {
        let Some(span) = self.parts.spans.get(at.index()) else { return };
        let (line, column) = self.sources.position(*span);
        let number = at.index() + 1;
        let text = format!("{} {number} {}.{line}.{column}", self.name, span.file);
        out.extend_from_slice(text.as_bytes());
    }

    /// The part in a site that the program was compiled for.
    pub fn role(&self) -> ProgramRole {
        self.parts.role
    }

    /// Version of VCL: 40 or 41.
    pub fn version(&self) -> u32 {
        self.parts.version
    }

    /// The routine of one of Varnish's subroutines; `None` for a program without routines.
    pub(crate) fn entry(&self, sub: Sub) -> Option<&dyn Executable> {
        self.parts.entries.get(sub as usize).map(|number| self.routine(*number))
    }

    pub(crate) fn routine(&self, number: u32) -> &dyn Executable {
        &*self.parts.routines[number as usize]
    }
}

/// An object of a VMOD's class.
pub trait Object: Any + Send + Sync {
    /// The object itself, for its methods.
    fn as_any(&self) -> &dyn Any;

    /// The backend or director that the object is, if any, for listings.
    fn backend(&self) -> Option<Backend> {
        None
    }

    /// Completes the object at the end of `vcl_init`.
    ///
    /// # Errors
    /// The reason why the object is unusable: the program is not loaded.
    fn complete(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A started program, whose `vcl_init` has run.
pub struct Instance {
    program: Arc<Program>,
    /// Declared backends, by number.
    backends: Vec<Backend>,
    /// Objects made by `vcl_init`, by number.
    objects: Vec<OnceLock<Arc<dyn Object>>>,
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Instance").field("program", &self.program.name).finish_non_exhaustive()
    }
}

impl Instance {
    fn new(program: Arc<Program>, backends: Vec<Backend>) -> Arc<Self> {
        let objects = program.parts.objects.iter().map(|_| OnceLock::new()).collect();
        Arc::new(Self { program, backends, objects })
    }

    /// An instance with the program's backends, before its `vcl_init` runs.
    pub(crate) fn of(program: &Arc<Program>) -> Arc<Self> {
        let backends = program.parts.backends.iter().map(|(name, spec)| match spec {
            Some(spec) => Backend::Leaf(Leaf::new(name.clone(), spec.clone())),
            None => Backend::None,
        });
        Self::new(Arc::clone(program), backends.collect())
    }

    /// An instance with these backends and no subroutines, for tests.
    pub fn of_backends(backends: Vec<Backend>) -> Arc<Self> {
        let program = Program::new("none", ProgramParts::default(), Sources::default());
        Self::new(Arc::new(program), backends)
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Declared backends in order, then directors in the order of `vcl_init`.
    pub fn backends(&self) -> Vec<Backend> {
        let declared = self.backends.iter().filter(|one| !matches!(one, Backend::None)).cloned();
        let made = self.objects.iter().filter_map(|object| object.get()?.backend());
        declared.chain(made).collect()
    }

    /// The default backend, with which `req.backend_hint` begins.
    pub fn default_backend(&self) -> &Backend {
        self.declared(self.program.parts.default_backend)
    }

    /// Objects made by `vcl_init` so far.
    pub fn objects(&self) -> Vec<Arc<dyn Object>> {
        self.objects.iter().filter_map(|object| object.get().cloned()).collect()
    }

    /// The object with this number ([`ObjectIdentity`](crate::vmod::ObjectIdentity)), once made.
    pub fn object(&self, number: u32) -> Option<Arc<dyn Object>> {
        self.objects.get(number as usize)?.get().cloned()
    }

    /// The pattern of [`Value::Regex`](crate::state::value::Value::Regex), by number.
    pub fn regex(&self, number: u32) -> &Regex {
        &self.program.parts.regexes[number as usize]
    }

    /// The probe of [`Value::Probe`](crate::state::value::Value::Probe), by number.
    pub fn probe(&self, number: u32) -> &ProbeSpec {
        &self.program.parts.probes[number as usize]
    }

    /// The access list of [`Value::Acl`](crate::state::value::Value::Acl), by number.
    pub fn acl(&self, number: u32) -> &Acl {
        &self.program.parts.acls[number as usize]
    }

    /// A declared backend, by number.
    pub(crate) fn declared(&self, number: u32) -> &Backend {
        // Instances of tests may have no backends.
        self.backends.get(number as usize).unwrap_or(&Backend::None)
    }

    /// An object, which must have been made.
    pub(crate) fn made(&self, number: u32) -> Result<&Arc<dyn Object>, ProgramFailure> {
        let object = self.objects.get(number as usize).and_then(OnceLock::get);
        object.ok_or_else(|| {
            let name = &self.program.parts.objects[number as usize];
            ProgramFailure::new(format!(
                "the object `{name}` has not been made: its `new` has not run"
            ))
        })
    }

    pub(crate) fn put(&self, number: u32, object: Arc<dyn Object>) -> Result<(), ProgramFailure> {
        let name = &self.program.parts.objects[number as usize];
        self.objects[number as usize]
            .set(object)
            .map_err(|_| ProgramFailure::new(format!("the object `{name}` is made twice")))
    }
}
