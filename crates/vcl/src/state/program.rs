//! Programs, compiled once, and their instances: one for each `vcl.load`.

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

pub use crate::input::{CompileSettings, Input};

/// The result of compiling: the program, and its warnings.
#[derive(Debug)]
pub struct CompilationResult {
    /// The program.
    pub program: Arc<Program>,
    /// Warnings, rendered for people; empty when there are none.
    pub warnings: String,
    /// Those that Varnish has, too.
    pub usual: String,
}

/// A subroutine as it runs: all that bear its name, one after the other.
pub(crate) trait Executable: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> &str;

    /// Runs it. True if it has returned an action, which is then
    /// [`Task::action`](crate::state::ctx::Task::action).
    ///
    /// # Errors
    /// The program failed; [`Task::at`](crate::state::ctx::Task::at) says where.
    fn run(&self, ctx: &mut Ctx<'_>) -> Result<bool, ProgramFailure>;
}

/// A backend as declared; `backend x none;` has nothing to connect to.
pub(crate) type BackendDeclaration = (Box<str>, Option<BackendSpec>);

/// The parts of a program.
#[derive(Debug, Default)]
pub(crate) struct ProgramParts {
    /// Subroutines by number.
    pub(crate) routines: Vec<Box<dyn Executable>>,
    /// The routine of each of [`Sub::ALL`].
    pub(crate) entries: Vec<u32>,
    /// Backends by number.
    pub(crate) backends: Vec<BackendDeclaration>,
    /// The number of the one that a program begins with.
    pub(crate) default_backend: u32,
    /// Named probes by number.
    pub(crate) probes: Vec<ProbeSpec>,
    /// Access lists by number.
    pub(crate) acls: Vec<Acl>,
    /// Where the statements stand, by [`At`].
    pub(crate) spans: Vec<SourceSpan>,
    /// Patterns by number.
    pub(crate) regexes: Vec<Arc<Regex>>,
    /// Names of the objects by number.
    pub(crate) objects: Vec<Box<str>>,
    /// Features that the program uses.
    pub(crate) uses: ProgramFeatures,
    /// 40 or 41.
    pub(crate) version: u32,
}

/// Features that a program uses. The runner can spare the work for a feature that is not used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFeatures {
    /// Subroutines that do something beyond what the builtin one of that name does.
    pub own: Subs,
    /// Subroutines that read or write `resp`'s or `obj`'s head: for `vcl_deliver`, whether the
    /// stored head must be taken apart.
    pub head: Subs,
    /// `std.rollback`: the head as it came must be kept.
    pub rollback: bool,
    /// `return (restart)`
    pub restart: bool,
    /// `import xkey`: what is stored is known by the keys in its headers.
    pub xkey: bool,
    /// `std.set_ip_tos` and all of `tcp`: it works on the client's socket.
    pub socket: bool,
    /// The labels that `return (vcl(label))` names.
    pub labels: Vec<Box<str>>,
    /// `std.cache_req_body`: the most bytes it asks for.
    pub body: Option<u64>,
}

/// A compiled program.
#[derive(Debug)]
pub struct Program {
    name: Box<str>,
    parts: ProgramParts,
    sources: Sources,
    places: StatementLocations,
}

impl Program {
    /// Puts together what was compiled. `name` is that of its file.
    pub(crate) fn new(name: &str, parts: ProgramParts, sources: Sources) -> Self {
        let places = StatementLocations::of(&sources, &parts.spans);
        Self { name: name.into(), parts, sources, places }
    }

    /// The name of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Features that it uses.
    pub fn uses(&self) -> &ProgramFeatures {
        &self.parts.uses
    }

    /// Its files, the builtin VCL last: `vcl.show -v`.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Where a statement stands: its file, as it was named (`<builtin>` for the builtin VCL), and
    /// the line in it, from 1.
    pub fn place(&self, at: StatementNumber) -> Option<(&SourceFile, u32)> {
        let (file, line) = self.places.spot(at)?;
        Some((self.sources.file(file), line))
    }

    /// Appends where a statement stands as logs have it: the line behind the file's name, which is
    /// without the folder of the program's first file where it lies there (`default.vcl:14`).
    pub fn write_place(&self, at: StatementNumber, out: &mut Vec<u8>) {
        self.places.write(at, out);
    }

    /// Appends a statement as `VCL_trace` has it: the program, the statement's number, and its
    /// file's number, line and column.
    pub(crate) fn write_trace(&self, at: StatementNumber, out: &mut Vec<u8>) {
        let Some(span) = self.parts.spans.get(at.index()) else { return };
        let (line, column) = self.sources.position(*span);
        let number = at.index() + 1;
        let text = format!("{} {number} {}.{line}.{column}", self.name, span.file);
        out.extend_from_slice(text.as_bytes());
    }

    /// The version of VCL it is written in: 40 or 41.
    pub fn version(&self) -> u32 {
        self.parts.version
    }

    /// The routine of a subroutine that Varnish calls; `None` for a program without any.
    pub(crate) fn entry(&self, sub: Sub) -> Option<&dyn Executable> {
        self.parts.entries.get(sub as usize).map(|number| self.routine(*number))
    }

    pub(crate) fn routine(&self, number: u32) -> &dyn Executable {
        &*self.parts.routines[number as usize]
    }
}

/// An object of a VMOD's class.
pub trait Object: Any + Send + Sync {
    /// Itself, for its own methods.
    fn as_any(&self) -> &dyn Any;

    /// The backend or director that it is, for who lists all of them; most are none.
    fn backend(&self) -> Option<Backend> {
        None
    }

    /// Completes itself at the end of `vcl_init`.
    ///
    /// # Errors
    /// Why it cannot be used as `vcl_init` has left it: the program is not loaded.
    fn complete(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A program that has been brought to life: its `vcl_init` has run.
pub struct Instance {
    program: Arc<Program>,
    /// Those declared, by number.
    backends: Vec<Backend>,
    /// Those that `vcl_init` has made, by number.
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

    /// One with the program's backends, whose `vcl_init` has yet to run.
    pub(crate) fn of(program: &Arc<Program>) -> Arc<Self> {
        let backends = program.parts.backends.iter().map(|(name, spec)| match spec {
            Some(spec) => Backend::Leaf(Leaf::new(name.clone(), spec.clone())),
            None => Backend::None,
        });
        Self::new(Arc::clone(program), backends.collect())
    }

    /// One with these backends and without subroutines, for tests.
    pub fn of_backends(backends: Vec<Backend>) -> Arc<Self> {
        let program = Program::new("none", ProgramParts::default(), Sources::default());
        Self::new(Arc::new(program), backends)
    }

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Its backends in the order of the program, then its directors in the order of `vcl_init`.
    pub fn backends(&self) -> Vec<Backend> {
        let declared = self.backends.iter().filter(|one| !matches!(one, Backend::None)).cloned();
        let made = self.objects.iter().filter_map(|object| object.get()?.backend());
        declared.chain(made).collect()
    }

    /// The value that `req.backend_hint` begins with.
    pub fn default_backend(&self) -> &Backend {
        self.declared(self.program.parts.default_backend)
    }

    /// The objects that `vcl_init` has made so far.
    pub fn objects(&self) -> Vec<Arc<dyn Object>> {
        self.objects.iter().filter_map(|object| object.get().cloned()).collect()
    }

    /// An object by its number ([`Naming`](crate::vmod::Naming)), once it has been made.
    pub fn object(&self, number: u32) -> Option<Arc<dyn Object>> {
        self.objects.get(number as usize)?.get().cloned()
    }

    /// A pattern by the number in [`Value::Regex`](crate::state::value::Value::Regex).
    pub fn regex(&self, number: u32) -> &Regex {
        &self.program.parts.regexes[number as usize]
    }

    /// A probe by the number in [`Value::Probe`](crate::state::value::Value::Probe).
    pub fn probe(&self, number: u32) -> &ProbeSpec {
        &self.program.parts.probes[number as usize]
    }

    /// An access list by the number in [`Value::Acl`](crate::state::value::Value::Acl).
    pub fn acl(&self, number: u32) -> &Acl {
        &self.program.parts.acls[number as usize]
    }

    /// A backend that the program declares, by number.
    pub(crate) fn declared(&self, number: u32) -> &Backend {
        // Instances of tests may have none.
        self.backends.get(number as usize).unwrap_or(&Backend::None)
    }

    /// An object that must have been made.
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
