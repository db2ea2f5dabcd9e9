//! Programs: the VCL of the daemon, as named by its configuration or by varnishd's flags.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, ListenSpec, PlacedPath, Programs};
use vcl::params::Params;
use vcl::program::{Program, ProgramRole};
use vcl::sub::Sub;

use crate::config_bundle::ConfigBundle;
use crate::config_file::render;
use crate::source::{ConfigSource, DaemonOptions};
use crate::varnishd::{self, ProgramFlag, Storage};
use crate::vcl::{Code, ConfiguredProgram, DaemonIdentity, PreparedPrograms, Vcls, compile};

impl DaemonOptions {
    /// Parameters as configured, without a loaded program.
    pub(crate) fn programs(&self, config: &Config) -> Vcls {
        let endpoints: Arc<[_]> =
            (config.listen.iter().enumerate()).map(|(at, spec)| endpoint(at, spec)).collect();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let hostname: Arc<str> = host.into();
        match &self.settings {
            ConfigSource::Varnishd(flags) => {
                let about = DaemonIdentity {
                    identity: flags
                        .identity
                        .as_deref()
                        .map_or_else(|| Arc::clone(&hostname), Arc::from),
                    hostname,
                    endpoints,
                    storages: flags.storages.clone(),
                    read_only: flags.read_only.clone(),
                    as_varnishd: true,
                };
                Vcls::new(about, flags.params.clone())
            }
            ConfigSource::File(_) | ConfigSource::Flags(_) => {
                let storage =
                    |name: &str| Storage { name: name.to_owned(), bytes: None, disk: None };
                let about = DaemonIdentity {
                    identity: Arc::clone(&hostname),
                    hostname,
                    endpoints,
                    storages: vec![storage("s0"), storage("Transient")],
                    // Restrictions on file access are not for clients that may load programs.
                    read_only: ["vcl_path", "vcc_unsafe_path"].map(str::to_owned).to_vec(),
                    as_varnishd: false,
                };
                Vcls::new(about, Params::default())
            }
        }
    }

    /// varnishd's flags, if the daemon was started with them.
    pub(crate) fn flags(&self) -> Option<&varnishd::Flags> {
        match &self.settings {
            ConfigSource::Varnishd(flags) => Some(flags),
            ConfigSource::File(_) | ConfigSource::Flags(_) => None,
        }
    }
}

impl ProgramFlag {
    /// The source of the program.
    pub fn from(&self) -> Code<'_> {
        match self {
            Self::File(file) => Code::File(file),
            Self::Text(text) => Code::Text("<-b>", text.as_bytes()),
        }
    }
}

/// Compiles the programs that the configuration names, without putting them in force.
///
/// # Errors
/// The reason why one of them fails; what is in force stays.
pub(crate) fn prepare<'a>(
    vcls: &'a Vcls,
    source: &DaemonOptions,
    config: &Config,
    shared: Option<&ConfigBundle>,
) -> Result<PreparedPrograms<'a>, String> {
    if let Some(flags) = source.flags() {
        let last = flags.programs.len().saturating_sub(1);
        let mut all = Vec::new();
        for (at, (name, program)) in flags.programs.iter().enumerate() {
            all.push(ConfiguredProgram {
                name,
                from: program.from(),
                file: None,
                active: at == last,
                role: ProgramRole::Whole,
            });
        }
        return vcls.prepare(&all, &BTreeMap::new());
    }
    let named = of_sites(config);
    let texts: Vec<_> = named.iter().map(|own| own.file.to_string_lossy()).collect();
    let mut all = Vec::new();
    for (own, text) in named.iter().zip(&texts) {
        all.push(ConfiguredProgram {
            name: &own.name,
            from: Code::File(text),
            file: Some(own.file),
            active: own.active,
            role: own.role,
        });
    }
    let none = BTreeMap::new();
    vcls.prepare(&all, shared.map_or(&none, |shared| &shared.vcl))
}

/// Bundles the configuration in a file with the files of its programs.
///
/// # Errors
/// What keeps it from being shared, rendered.
pub fn gather(path: &Path) -> Result<ConfigBundle, String> {
    let failed = |why: String| format!("larder: {}: {why}", path.display());
    let toml = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let shown = path.display().to_string();
    let named = config::NamedText { name: &shown, text: &toml };
    let files = config::check_shared(named).map_err(|found| render(&found))?;
    let mut vcl = BTreeMap::new();
    for file in files {
        let name = file.to_string_lossy();
        let of_role = |role| compile_file(&name, role);
        // The site that names it knows its part, and checks it.
        let program = of_role(ProgramRole::Extra).or_else(|_| of_role(ProgramRole::Whole))?.0;
        // The last one is the builtin VCL.
        let sources = program.sources().files();
        for source in sources.iter().filter(|source| !source.name.starts_with('<')) {
            let text = std::str::from_utf8(&source.text);
            let text = text.map_err(|_| failed(format!("{}: it is not UTF-8", source.name)))?;
            vcl.insert(source.name.to_string(), text.to_owned());
        }
    }
    let name = path.file_name().map_or_else(|| shown.clone(), |n| n.to_string_lossy().into_owned());
    Ok(ConfigBundle { name, toml, vcl })
}

/// Compiles a file for this part in a site.
fn compile_file(name: &str, role: ProgramRole) -> Result<(Arc<Program>, String), String> {
    compile(Code::File(name), &Params::default(), &["s0", "Transient"], &[], role)
}

/// Compiles the programs that sites of a configuration name. Returns a line about each: which part
/// it has in its site.
///
/// # Errors
/// The faults, rendered.
pub fn check_programs(config: &Config) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for own in of_sites(config) {
        let (program, warnings) = compile_file(&own.file.to_string_lossy(), own.role)?;
        if !warnings.is_empty() {
            base::tell!(Warn, "{}", warnings.trim_end());
        }
        let subs: Vec<_> = program.uses().own.iter().map(Sub::name).collect();
        lines.push(match own.role {
            ProgramRole::Whole => format!("{}: decides alone", own.file.display()),
            ProgramRole::Extra => {
                let subs = subs.join(", ");
                format!("{}: stands beside settings: {subs}", own.file.display())
            }
        });
    }
    Ok(lines)
}

/// The listener with this number, as programs see it.
fn endpoint(at: usize, spec: &ListenSpec) -> flow::Endpoint {
    // Without the name, and the options behind the address.
    let text = spec.text.split([',', ' ']).next().unwrap_or_default();
    let address = match text.split_once('=') {
        Some((name, address)) if spec.name.as_deref() == Some(name) => address,
        _ => text,
    };
    let socket = spec.name.clone().unwrap_or_else(|| format!("a{at}"));
    flow::Endpoint { socket: socket.into(), endpoint: address.into() }
}

/// The VCL files of a configuration, each once for each part that it has.
fn of_sites(config: &Config) -> Vec<ProgramFile<'_>> {
    let mut all: Vec<ProgramFile<'_>> = Vec::new();
    if let Programs::File(PlacedPath { path: file, .. }) = &config.vcl {
        let (name, role) = ("boot".to_owned(), ProgramRole::Whole);
        all.push(ProgramFile { name, file, active: true, role });
    }
    for site in &config.sites {
        let Some(PlacedPath { path: file, .. }) = &site.vcl else { continue };
        let role = if site.is_beside { ProgramRole::Extra } else { ProgramRole::Whole };
        if all.iter().all(|own| own.file != file || own.role != role) {
            let host = site.hosts.first().map_or("", String::as_str);
            let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let name = format!("site_{}", host.chars().map(word).collect::<String>());
            all.push(ProgramFile { name, file, active: false, role });
        }
    }
    all
}

/// A VCL file that a configuration names.
struct ProgramFile<'a> {
    /// Its program's name.
    name: String,
    file: &'a PathBuf,
    /// It is the default of sites.
    active: bool,
    role: ProgramRole,
}
