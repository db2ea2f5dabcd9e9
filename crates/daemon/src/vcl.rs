//! VCL programs: compiled, started, put in force, and ended with their last request; and Varnish's
//! parameters, which govern them.
//!
//! A program that fails to compile or in `vcl_init` must change nothing: the program in force
//! stays.

mod link;
mod loader;
mod registry;
mod resources;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use flow::vcl::ProgramWorld;
use flow::{SharedState, VclSettings};
use origin::{LookupPace, ReservedAddresses};
use parking_lot::{Mutex, MutexGuard};
use tokio::runtime::Handle;
use varnishcli::{Call, Reply, Status};
use vcl::ctx::Tag;
use vcl::params::{Param, Params};
use vcl::program::{CompilationResult, CompileSettings, Input, Instance, Program, ProgramRole};

use link::LinkSettings;
pub(crate) use loader::ProgramLoader;
pub(crate) use registry::State;
use registry::{LoadedProgram, Registry, refuse};

use crate::varnishd::{self, Storage};

/// Files included within each other.
const INCLUDE_DEPTH: u32 = 32;

/// The source of a program.
#[derive(Clone, Copy, Debug)]
pub enum Code<'a> {
    /// A file by its name, searched in `vcl_path`.
    File(&'a str),
    /// A name, and this text.
    Text(&'a str, &'a [u8]),
}

/// Facts about the daemon that programs see.
#[derive(Clone, Debug)]
pub(crate) struct DaemonIdentity {
    pub(crate) identity: Arc<str>,
    pub(crate) hostname: Arc<str>,
    /// The listeners, by number.
    pub(crate) endpoints: Arc<[flow::Endpoint]>,
    /// Names of storages.
    pub(crate) storages: Vec<Storage>,
    /// Parameters that cannot be changed.
    pub(crate) read_only: Vec<String>,
    /// True with varnishd's flags. Parameters then override limits even at their defaults.
    pub(crate) as_varnishd: bool,
}

/// The programs and the parameters of the daemon.
pub(crate) struct Vcls {
    about: DaemonIdentity,
    params: Mutex<Arc<Params>>,
    registry: Mutex<Registry>,
    /// Discarded programs, which may still have requests.
    going: Mutex<Vec<Arc<Instance>>>,
    /// The lock for changes.
    changing: Mutex<()>,
    place: OnceLock<ProgramHost>,
}

/// The host of programs: what they run on.
struct ProgramHost {
    shared: Weak<SharedState>,
    reserved: Arc<ReservedAddresses>,
    runtime: Handle,
    /// The instance that stands in while no program is in force.
    nothing: Arc<Instance>,
}

/// A program that the configuration names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConfiguredProgram<'a> {
    /// The program's name at its first load.
    pub(crate) name: &'a str,
    pub(crate) from: Code<'a>,
    /// The file that sites name.
    pub(crate) file: Option<&'a std::path::Path>,
    /// The default program of sites.
    pub(crate) active: bool,
    /// Its part in sites.
    pub(crate) role: ProgramRole,
}

/// Programs and parameters that the configuration in force uses.
pub(crate) struct ActivePrograms {
    pub(crate) vcl: VclSettings,
    /// The program in force, or its stand-in.
    pub(crate) active: Option<Arc<Instance>>,
    /// Programs by the file that sites name.
    pub(crate) files: HashMap<PathBuf, Arc<Instance>>,
    /// Programs beside settings, by the file that sites name.
    pub(crate) extras: HashMap<PathBuf, Arc<Instance>>,
    as_varnishd: bool,
}

impl ActivePrograms {
    /// The limits, where parameters override some.
    pub(crate) fn limits(&self, limits: &base::Limits) -> base::Limits {
        let mut limits = limits.clone();
        varnishd::apply_parameters(&self.vcl.params, &mut limits, self.as_varnishd);
        limits
    }
}

impl Vcls {
    /// A registry without programs.
    pub(crate) fn new(about: DaemonIdentity, params: Params) -> Self {
        Self {
            about,
            params: Mutex::new(Arc::new(params)),
            registry: Mutex::default(),
            going: Mutex::default(),
            changing: Mutex::default(),
            place: OnceLock::new(),
        }
    }

    /// Sets the host of programs. Call within the helper runtime, once, before any is loaded.
    ///
    /// # Errors
    /// The stand-in program does not compile, which is a bug.
    pub(crate) fn set_program_host(
        &self,
        shared: &Arc<SharedState>,
        reserved: &Arc<ReservedAddresses>,
    ) -> Result<(), String> {
        let (weak, runtime) = (Arc::downgrade(shared), Handle::current());
        shared.vcl.set_host_services(Box::new(resources::ProgramResources {
            shared: Weak::clone(&weak),
            reserved: Arc::clone(reserved),
            runtime: runtime.clone(),
            names: origin::AddressCache::new(runtime.clone()),
            pace: Arc::new(LookupPace::new(1)),
            storages: self.about.storages.iter().map(|storage| storage.name.clone()).collect(),
            files: Mutex::default(),
        }));
        let text = Code::Text("<none>", b"vcl 4.1; backend none_loaded none;");
        let (program, _) = compile(text, &self.params(), &[], &[], ProgramRole::Whole)?;
        let (live, log, now) = (shared.live(), RefCell::default(), rt::now());
        let world = ProgramWorld::without_request(shared, &live, now, &log);
        let nothing = program.start(&world, seconds(now))?;
        let reserved = Arc::clone(reserved);
        _ = self.place.set(ProgramHost { shared: weak, reserved, runtime, nothing });
        Ok(())
    }

    /// The programs and parameters for the configuration.
    pub(crate) fn view(&self) -> ActivePrograms {
        let registry = self.registry.lock();
        let label =
            |(name, loaded): (&str, &LoadedProgram)| (name.into(), Arc::clone(&loaded.instance));
        let by_file = |role| {
            let of_role = registry.loaded().filter(move |(_, loaded)| loaded.role() == role);
            of_role.filter_map(|(_, loaded)| {
                Some((loaded.file.clone()?, Arc::clone(&loaded.instance)))
            })
        };
        ActivePrograms {
            vcl: VclSettings {
                params: self.params(),
                labels: registry.labels().map(label).collect(),
                identity: Arc::clone(&self.about.identity),
                hostname: Arc::clone(&self.about.hostname),
                endpoints: Arc::clone(&self.about.endpoints),
                storages: self.about.storages.iter().map(|own| own.name.as_str().into()).collect(),
                disk_storages: Arc::default(),
            },
            active: match registry.active() {
                Some((_, loaded)) => Some(Arc::clone(&loaded.instance)),
                None => self.place.get().map(|place| Arc::clone(&place.nothing)),
            },
            files: by_file(ProgramRole::Whole).collect(),
            extras: by_file(ProgramRole::Extra).collect(),
            as_varnishd: self.about.as_varnishd,
        }
    }

    /// The parameters in force.
    pub(crate) fn params(&self) -> Arc<Params> {
        Arc::clone(&self.params.lock())
    }

    /// Storages, in the flags' order.
    pub(crate) fn storages(&self) -> &[Storage] {
        &self.about.storages
    }

    /// Returns true with varnishd's flags.
    pub(crate) fn is_varnishd(&self) -> bool {
        self.about.as_varnishd
    }

    /// Returns true if no program is loaded.
    pub(crate) fn is_empty(&self) -> bool {
        self.registry.lock().is_empty()
    }

    /// The loaded programs, each with its name.
    pub(crate) fn loaded(&self) -> Vec<(String, Arc<Instance>)> {
        let registry = self.registry.lock();
        let one = |(name, loaded): (&str, &LoadedProgram)| {
            (name.to_owned(), Arc::clone(&loaded.instance))
        };
        registry.loaded().map(one).collect()
    }

    /// Returns true if the program of this name is warm.
    pub(crate) fn is_warm(&self, name: &str) -> bool {
        let registry = self.registry.lock();
        registry.loaded().any(|(own, loaded)| own == name && loaded.warm)
    }

    /// The number of discarded programs that still have requests.
    pub(crate) fn going(&self) -> usize {
        self.going.lock().len()
    }

    /// The program in force.
    pub(crate) fn active(&self) -> Option<(String, Arc<Instance>)> {
        let registry = self.registry.lock();
        registry.active().map(|(name, loaded)| (name.to_owned(), Arc::clone(&loaded.instance)))
    }

    /// Compiles, starts and loads a program.
    ///
    /// # Errors
    /// The refusal, in varnishd's form; nothing has changed then.
    pub(crate) fn load(&self, name: &str, from: Code<'_>, state: State) -> Result<Reply, Reply> {
        let _one = self.changing.lock();
        let role = ProgramRole::Whole;
        let (instance, said) = self.make(&self.files_of_cli(), name, from, role, 0)?;
        let used = Instant::now();
        let (warm, configured, file) = (false, false, None);
        let loaded = LoadedProgram { instance, state, warm, used, configured, file };
        self.registry.lock().add(name, loaded);
        self.settle();
        Ok(Reply::ok(said))
    }

    /// The files that the CLI may load programs from. With varnishd's flags those are all, as with
    /// varnishd; otherwise those beside the configured ones.
    fn files_of_cli(&self) -> ProgramLoader {
        let files = ProgramLoader::new(&self.params());
        if self.about.as_varnishd {
            return files;
        }
        let registry = self.registry.lock();
        let configured = registry.loaded().filter(|(_, loaded)| loaded.configured);
        let named = configured.flat_map(|(_, loaded)| {
            let sources = loaded.instance.program().sources().files();
            sources.first().map(|main| PathBuf::from(&*main.name))
        });
        files.within(named.filter_map(|file| Some(file.parent()?.to_owned())).collect())
    }

    /// Compiles and starts a program, beside `made` others that are not loaded yet. The second
    /// value is its warnings.
    fn make(
        &self,
        files: &ProgramLoader,
        name: &str,
        from: Code<'_>,
        role: ProgramRole,
        made: usize,
    ) -> Result<(Arc<Instance>, String), Reply> {
        self.registry.lock().admit(name)?;
        let warning = self.check_limit(made)?;
        let CompilationResult { program, warnings, usual } = self.compile(from, files, role)?;
        let instance = self.start(name, &program)?;
        // Scripts take any text for a fault. What varnishd does not print goes to the log.
        if warnings != usual {
            base::tell!(Notice, "larder: VCL {name}:\n{warnings}");
        }
        let said = match usual.is_empty() {
            true => String::new(),
            false => format!("Message from VCC-compiler:\n{usual}"),
        };
        Ok((instance, format!("{said}{}", warning.unwrap_or_default())))
    }

    /// Checks one more program against `max_vcl`, beside `made` programs that are not loaded yet.
    /// The result is a warning, if there is one.
    fn check_limit(&self, made: usize) -> Result<Option<String>, Reply> {
        let params = self.params();
        let loaded = (self.registry.lock().programs() + made) as u64;
        let most = params.number(Param::MaxVcl);
        const SEE: &str = "(See max_vcl and max_vcl_handling parameters)";
        if most == 0 || loaded < most {
            return Ok(None);
        }
        match params.number(Param::MaxVclHandling) {
            0 => Ok(None),
            1 => Ok(Some(format!(
                "{} VCLs loaded\nRemember to vcl.discard the old/unused VCLs.\n{SEE}",
                loaded + 1
            ))),
            _ => {
                let text = format!("Too many ({loaded}) VCLs already loaded\n{SEE}");
                Err(Reply::new(Status::Cannot, text))
            }
        }
    }

    /// Compiles a program.
    ///
    /// # Errors
    /// The faults, in varnishd's form.
    fn compile(
        &self,
        from: Code<'_>,
        files: &ProgramLoader,
        role: ProgramRole,
    ) -> Result<CompilationResult, Reply> {
        let params = self.params();
        let registry = self.registry.lock();
        let labels: Vec<String> = registry.labels().map(|(name, _)| name.to_owned()).collect();
        drop(registry);
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let storages: Vec<&str> = self.about.storages.iter().map(|own| own.name.as_str()).collect();
        let names = CompileNames { storages: &storages, labels: &labels };
        compile_with(files, from, &params, names, role).map_err(|faults| {
            let faults = faults.trim_end();
            refuse(format!(
                "Message from VCC-compiler:\n{faults}\nRunning VCC-compiler failed, exited with \
                 2\nVCL compilation failed"
            ))
        })
    }

    /// Starts a program: runs its `vcl_init`.
    fn start(&self, name: &str, program: &Arc<Program>) -> Result<Arc<Instance>, Reply> {
        let failed = |why: &str| {
            let text = format!("VCL \"{name}\" Failed initialization\nMessage:\n\t{why}\n");
            Reply::new(Status::Cannot, text)
        };
        let (place, shared) = self.place().ok_or_else(|| failed("the daemon ends"))?;
        let (live, log) = (shared.live(), RefCell::default());
        let now = rt::now();
        let world = ProgramWorld::without_request(&shared, &live, now, &log);
        let started = program.start(&world, seconds(now));
        log_lines(name, &log.borrow());
        let instance = started.map_err(|why| {
            let why = why.strip_prefix("vcl_init failed").unwrap_or(&why);
            match why.trim_start_matches(": ") {
                "" => failed("Failed from VCL"),
                why => failed(why),
            }
        })?;
        let params = self.params();
        let settings = LinkSettings {
            params: &params,
            limits: &live.limits,
            reserved: &place.reserved,
            pace: None,
        };
        link::connect_all(&instance.backends(), &settings).map_err(|why| failed(&why))?;
        Ok(instance)
    }

    fn place(&self) -> Option<(&ProgramHost, Arc<SharedState>)> {
        let place = self.place.get()?;
        Some((place, place.shared.upgrade()?))
    }

    /// Puts a program, or a label's, in force. The caller refreshes the configuration.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn use_it(&self, name: &str) -> Result<Reply, Reply> {
        let _one = self.changing.lock();
        let used = self.registry.lock().use_it(name);
        self.settle();
        used
    }

    /// Labels a program. The caller refreshes the configuration.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn label(&self, label: &str, name: &str) -> Result<Reply, Reply> {
        let _one = self.changing.lock();
        let labelled = self.registry.lock().label(label, name);
        self.settle();
        labelled
    }

    /// Sets a program's state.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn set_state(&self, name: &str, state: State) -> Result<Reply, Reply> {
        let _one = self.changing.lock();
        let set = self.registry.lock().set_state(name, state);
        self.settle();
        set
    }

    /// Discards the programs that patterns match. Each ends with its last request.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn discard(&self, patterns: &[&str]) -> Result<Reply, Reply> {
        let _one = self.changing.lock();
        let gone = self.registry.lock().discard(patterns)?;
        self.let_go(gone.into_iter().map(|loaded| loaded.instance));
        Ok(Reply::ok(""))
    }

    /// Ends programs with their last requests.
    fn let_go(&self, gone: impl Iterator<Item = Arc<Instance>>) {
        let mut going = self.going.lock();
        for instance in gone {
            link::cool(&instance.backends());
            going.push(instance);
        }
    }

    /// The reply to `vcl.list`.
    pub(crate) fn list(&self, json: bool) -> String {
        let registry = self.registry.lock();
        let active = registry.active().map(|(_, loaded)| Arc::clone(&loaded.instance));
        let labels: Vec<_> = registry.labels().map(|(_, own)| Arc::clone(&own.instance)).collect();
        // References other than requests: this list's, the registry's, and the configuration's, one
        // for a site and one for each label.
        let busy = |loaded: &LoadedProgram| {
            let is_it = |own: &&Arc<Instance>| Arc::ptr_eq(own, &loaded.instance);
            let named = active.iter().chain(&labels).filter(is_it).count();
            Arc::strong_count(&loaded.instance).saturating_sub(1 + 2 * named)
        };
        match json {
            true => registry.list_json(&busy),
            false => registry.list(&busy),
        }
    }

    /// The reply to `vcl.deps`.
    pub(crate) fn deps(&self, call: &Call) -> String {
        self.registry.lock().deps(call, rt::now().unix_ms)
    }

    /// The source of a program, or of the one in force: its own file, or `all` of its files.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn show(&self, name: Option<&str>, all: bool) -> Result<Reply, Reply> {
        let registry = self.registry.lock();
        let found = match name {
            Some(name) => registry.program(name),
            None => registry.active().map(|(_, loaded)| loaded),
        };
        let Some(loaded) = found else {
            return Err(match name {
                Some(name) => refuse(format!("No VCL named '{name}'")),
                None => refuse("No active VCL"),
            });
        };
        let program = Arc::clone(loaded.instance.program());
        drop(registry);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let files = program.sources().files();
        let shown = match all {
            false => files.first().map(|file| text(&file.text)).unwrap_or_default(),
            true => {
                let show = |(at, file): (usize, &vcl::source::SourceFile)| {
                    let (len, name) = (file.text.len(), &file.name);
                    format!("// VCL.SHOW {at} {len} {name}\n{}\n", text(&file.text))
                };
                files.iter().enumerate().map(show).collect()
            }
        };
        Ok(Reply::ok(shown))
    }

    /// Returns true if a parameter cannot be changed (`-r`).
    pub(crate) fn is_protected(&self, name: &str) -> bool {
        self.about.read_only.iter().any(|own| own == name)
    }

    /// Sets a parameter, or resets it without a `value`. The caller refreshes the configuration.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn set_param(&self, name: &str, value: Option<&str>) -> Result<(), Reply> {
        if self.is_protected(name) {
            return Err(Reply::new(Status::Auth, format!("parameter \"{name}\" is protected.")));
        }
        let mut params = self.params.lock();
        let mut next = Params::clone(&params);
        let set = match value {
            Some(value) => next.set(name, value),
            None => next.reset(name),
        };
        set.map_err(|error| match error {
            vcl::params::Error::Absent(_) => Reply::new(Status::Cannot, error.to_string()),
            _ => refuse(error.to_string()),
        })?;
        *params = Arc::new(next);
        Ok(())
    }

    /// Warms and cools programs by their states.
    fn settle(&self) {
        let cooldown_s = self.params().seconds(Param::VclCooldown);
        let changed = self.registry.lock().settle(Instant::now(), cooldown_s);
        let Some(place) = self.place.get() else { return };
        let shared = place.shared.upgrade();
        let journal = shared.as_ref().and_then(|shared| shared.shared_pool.journal());
        for (instance, warm) in changed {
            match warm {
                true => link::warm(&instance.backends(), &place.runtime, journal),
                false => link::cool(&instance.backends()),
            }
        }
    }

    /// Periodic work: cools unused programs, ends those without requests.
    pub(crate) fn sweep(&self) {
        self.settle();
        let mut going = self.going.lock();
        let (over, still): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *going).into_iter().partition(|own| Arc::strong_count(own) == 1);
        *going = still;
        drop(going);
        for instance in over {
            self.stop(&instance);
        }
    }

    /// Ends every program, with the daemon.
    pub(crate) fn end(&self) {
        let registry = std::mem::take(&mut *self.registry.lock());
        for (_, loaded) in registry.loaded() {
            link::cool(&loaded.instance.backends());
            self.stop(&loaded.instance);
        }
        for instance in std::mem::take(&mut *self.going.lock()) {
            self.stop(&instance);
        }
    }

    /// Runs a program's `vcl_fini`.
    fn stop(&self, instance: &Arc<Instance>) {
        let Some((_, shared)) = self.place() else { return };
        let (live, log, now) = (shared.live(), RefCell::default(), rt::now());
        let world = ProgramWorld::without_request(&shared, &live, now, &log);
        instance.stop(&world, seconds(now));
        log_lines(instance.program().name(), &log.borrow());
    }

    /// Compiles and starts the configured programs, without loading them.
    ///
    /// # Errors
    /// The reason why one fails; nothing has changed then. A program whose file is among `bundled`
    /// is made from these alone.
    pub(crate) fn prepare(
        &self,
        wanted: &[ConfiguredProgram<'_>],
        bundled: &BTreeMap<String, String>,
    ) -> Result<PreparedPrograms<'_>, String> {
        let mut prepared =
            PreparedPrograms { vcls: self, made: Vec::new(), _one: self.changing.lock() };
        for one in wanted {
            let name = self.free_name(one.name, &prepared.made);
            let mut files = ProgramLoader::new(&self.params());
            if let Code::File(name) = one.from
                && bundled.contains_key(name)
            {
                files = files.bundled(bundled);
            }
            let made = self.make(&files, &name, one.from, one.role, prepared.made.len());
            let (instance, said) = made.map_err(|refused| refused.text)?;
            if !said.is_empty() {
                base::tell!(Warn, "larder: VCL {name}: {}", said.trim_end());
            }
            let file = one.file.map(std::path::Path::to_owned);
            prepared.made.push(PreparedProgram { name, instance, file, active: one.active });
        }
        Ok(prepared)
    }

    /// `name` the first time; then one with the time in it, as Debian's `varnishreload` makes.
    fn free_name(&self, name: &str, made: &[PreparedProgram]) -> String {
        let registry = self.registry.lock();
        let secs = rt::now().unix_secs();
        let numbered = (1_u64..).map(|n| match n {
            1 => format!("reload_{secs}"),
            n => format!("reload_{secs}_{n}"),
        });
        let mut all = std::iter::once(name.to_owned()).chain(numbered);
        let is_free = |name: &String| {
            registry.admit(name).is_ok() && made.iter().all(|own| own.name != *name)
        };
        all.find(is_free).unwrap_or_default()
    }
}

/// Started programs of a configuration. They end again unless they are taken up.
pub(crate) struct PreparedPrograms<'a> {
    vcls: &'a Vcls,
    made: Vec<PreparedProgram>,
    /// The lock for changes.
    _one: MutexGuard<'a, ()>,
}

/// One of the prepared programs.
struct PreparedProgram {
    name: String,
    instance: Arc<Instance>,
    /// The file that sites name.
    file: Option<PathBuf>,
    active: bool,
}

impl PreparedPrograms<'_> {
    /// Loads them, puts the configured one in force, and discards the previous configuration's. The
    /// caller refreshes the configuration.
    pub(crate) fn take_up(mut self) {
        let mut registry = self.vcls.registry.lock();
        let old: Vec<_> = registry.loaded().filter(|(_, loaded)| loaded.configured).collect();
        let old: Vec<_> = old.into_iter().map(|(name, _)| name.to_owned()).collect();
        for PreparedProgram { name, instance, file, active } in std::mem::take(&mut self.made) {
            let (state, warm, used, configured) = (State::Auto, false, Instant::now(), true);
            registry.add(&name, LoadedProgram { instance, state, warm, used, configured, file });
            if active {
                let used = registry.use_it(&name);
                debug_assert!(used.is_ok(), "a new program is refused: {name}");
            }
        }
        // A program with a label, or put in force by hand, stays.
        let gone: Vec<_> = old.iter().filter_map(|name| registry.discard(&[name]).ok()).collect();
        drop(registry);
        self.vcls.settle();
        self.vcls.let_go(gone.into_iter().flatten().map(|loaded| loaded.instance));
    }
}

impl Drop for PreparedPrograms<'_> {
    fn drop(&mut self) {
        self.vcls.let_go(std::mem::take(&mut self.made).into_iter().map(|made| made.instance));
    }
}

/// Compiles a program for this part in a site; the second value is its warnings.
///
/// # Errors
/// The faults, rendered.
pub fn compile(
    from: Code<'_>,
    params: &Params,
    storages: &[&str],
    labels: &[&str],
    role: ProgramRole,
) -> Result<(Arc<Program>, String), String> {
    let names = CompileNames { storages, labels };
    let compiled = compile_with(&ProgramLoader::new(params), from, params, names, role)?;
    Ok((compiled.program, compiled.warnings))
}

/// Names that programs may use.
#[derive(Clone, Copy)]
struct CompileNames<'a> {
    storages: &'a [&'a str],
    labels: &'a [&'a str],
}

/// Compiles a program with these files.
fn compile_with(
    files: &ProgramLoader,
    from: Code<'_>,
    params: &Params,
    CompileNames { storages, labels }: CompileNames<'_>,
    role: ProgramRole,
) -> Result<CompilationResult, String> {
    let read;
    let (name, text) = match from {
        Code::Text(name, text) => (name, text),
        Code::File(name) => {
            read = files.read(name)?;
            (read.0.as_str(), &read.1[..])
        }
    };
    let rules = CompileSettings {
        storages,
        labels,
        include_depth: INCLUDE_DEPTH,
        unused_is_error: params.is_on(Param::VccErrUnref),
        role,
    };
    Program::compile(&Input { name, text, loader: files, rules })
}

/// A time in the form of programs.
fn seconds(now: base::Now) -> f64 {
    now.unix_ms as f64 / 1000.0
}

/// Logs what a program has logged without a request.
fn log_lines(name: &str, lines: &[(Tag, Box<[u8]>)]) {
    for (_, text) in lines {
        base::tell!(Info, "larder: VCL {name}: {}", String::from_utf8_lossy(text).escape_debug());
    }
}
