//! How the daemon comes by its programs in VCL: from its configuration, or from varnishd's flags;
//! and what `larder serve` does instead of serving (`-C`, `-x`, `-V`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::{Config, ListenSpec, Programs};
use vcl::params::Params;
use vcl::params::TABLE;

use crate::serve::{self, Daemon, Settings, Source};
use crate::varnish_cli;
use crate::varnishd::{Program, Storage};
use crate::vcl::{About, Code, Prepared, Vcls, Wanted};
use crate::{ServeArgs, varnishd};

/// `larder serve`.
pub(crate) fn serve(args: ServeArgs) -> Result<(), String> {
    let flags = &args.varnishd;
    if flags.version {
        println!("larder {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    if let Some(what) = &flags.document {
        return document(what);
    }
    let (compile, pid_file) = (flags.compile, flags.pid_file.clone());
    let source = Source::of(args)?;
    if compile {
        return check_all(&source);
    }
    let _pid = pid_file.map(PidFile::write).transpose()?;
    serve::run(source)
}

/// The file with the process id, until it is dropped.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: PathBuf) -> Result<Self, String> {
        std::fs::write(&path, format!("{}\n", std::process::id()))
            .map_err(|error| format!("larder: -P {}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // It may have been taken away.
        _ = std::fs::remove_file(&self.0);
    }
}

/// `-x`: prints what there is.
fn document(what: &str) -> Result<(), String> {
    match what {
        "parameter" => {
            let params = Params::default();
            for spec in TABLE {
                print!("{}", params.row(spec).long());
            }
        }
        "cli" => print!("{}", varnish_cli::document()),
        "builtin" => print!("{}", vcl::parse::BUILTIN),
        "vsl" => {
            println!("larder has no shared memory log: `larder log` shows the records there are.");
        }
        "optstring" => println!("a:b:f:n:T:M:S:s:p:r:t:i:I:P:Cx:VFdj:l:W:"),
        other => {
            return Err(format!(
                "larder: -x {other}: there are parameter, cli, vsl, builtin and optstring"
            ));
        }
    }
    Ok(())
}

/// `-C`: compiles what the flags name, and says so.
fn check_all(source: &Source) -> Result<(), String> {
    let Settings::Varnishd(flags) = &source.settings else {
        return Err("larder: -C goes with -f or -b".to_owned());
    };
    let storages: Vec<_> = flags.storages.iter().map(|own| own.name.as_str()).collect();
    for (_, program) in &flags.programs {
        let name = match program {
            Program::File(file) => file,
            Program::Text(_) => "-b",
        };
        let (_, warnings) = crate::vcl::compile(program.from(), &flags.params, &storages, &[])?;
        eprint!("{warnings}");
        println!("{name}: good");
    }
    Ok(())
}

/// Checks a program by itself, as `larder check FILE.vcl` does: the labels it names are taken for
/// there.
///
/// # Errors
/// The faults, rendered.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    // As seen from here, not from `vcl_path`.
    let full = std::path::absolute(path).map_err(|error| format!("larder: {error}"))?;
    let name = full.to_string_lossy();
    let params = Params::default();
    let (_, warnings) = crate::vcl::compile(Code::File(&name), &params, &["s0", "Transient"], &[])?;
    eprint!("{warnings}");
    println!("{}: good", path.display());
    Ok(())
}

impl Source {
    /// Programs and parameters as they begin: none loaded yet.
    pub(crate) fn programs(&self, config: &Config) -> Vcls {
        let endpoints: Arc<[_]> = config.listen.iter().enumerate().map(endpoint).collect();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let hostname: Arc<str> = host.into();
        match &self.settings {
            Settings::Varnishd(flags) => {
                let about = About {
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
            Settings::File(_) | Settings::Flags(_) => {
                let storage = |name: &str| Storage { name: name.to_owned(), bytes: None };
                let about = About {
                    identity: Arc::clone(&hostname),
                    hostname,
                    endpoints,
                    storages: vec![storage("s0"), storage("Transient")],
                    // What says where files may be read is not for who may load programs.
                    read_only: ["vcl_path", "vcc_unsafe_path"].map(str::to_owned).to_vec(),
                    as_varnishd: false,
                };
                Vcls::new(about, Params::default())
            }
        }
    }

    /// varnishd's flags, if they rule.
    fn flags(&self) -> Option<&varnishd::Flags> {
        match &self.settings {
            Settings::Varnishd(flags) => Some(flags),
            Settings::File(_) | Settings::Flags(_) => None,
        }
    }
}

impl Program {
    fn from(&self) -> Code<'_> {
        match self {
            Self::File(file) => Code::File(file),
            Self::Text(text) => Code::Text("<-b>", text.as_bytes()),
        }
    }
}

impl Daemon {
    /// Whether a site takes the program in force.
    pub(crate) fn takes_programs(&self) -> bool {
        self.with_config(|config| config.vcl != Programs::None)
    }

    /// Loads the programs of the start, and carries out the commands of `-I`.
    ///
    /// # Errors
    /// Why there is nothing to serve.
    pub(crate) async fn load_programs(self: &Arc<Self>, config: &Config) -> Result<(), String> {
        self.vcls.settle_in(&self.shared, self.reserved())?;
        self.prepare_programs(config)?.take_up();
        self.refresh();
        let commands = self.source().flags().and_then(|flags| flags.commands.as_ref());
        match commands {
            Some(file) => varnish_cli::carry_out(self, file).await,
            None => Ok(()),
        }
    }

    /// Makes the programs that the configuration names, and takes none of them up yet.
    ///
    /// # Errors
    /// Why one of them cannot be had; what is in force stays.
    pub(crate) fn prepare_programs(&self, config: &Config) -> Result<Prepared<'_>, String> {
        if let Some(flags) = self.source().flags() {
            let last = flags.programs.len().saturating_sub(1);
            let mut all = Vec::new();
            for (at, (name, program)) in flags.programs.iter().enumerate() {
                all.push(Wanted { name, from: program.from(), file: None, active: at == last });
            }
            return self.vcls.prepare(&all);
        }
        let named = of_sites(config);
        let texts: Vec<_> = named.iter().map(|own| own.file.to_string_lossy()).collect();
        let mut all = Vec::new();
        for (own, text) in named.iter().zip(&texts) {
            all.push(Wanted {
                name: &own.name,
                from: Code::File(text),
                file: Some(own.file),
                active: own.active,
            });
        }
        self.vcls.prepare(&all)
    }
}

/// A listener as programs see it.
fn endpoint((at, spec): (usize, &ListenSpec)) -> flow::Endpoint {
    // Without its name and what follows the address.
    let text = spec.text.split([',', ' ']).next().unwrap_or_default();
    let address = match text.split_once('=') {
        Some((name, address)) if spec.name.as_deref() == Some(name) => address,
        _ => text,
    };
    let socket = spec.name.clone().unwrap_or_else(|| format!("a{at}"));
    flow::Endpoint { socket: socket.into(), endpoint: address.into() }
}

/// The files that a configuration names, each once: what the program is called, the file, and
/// whether it is for all sites that name no other.
fn of_sites(config: &Config) -> Vec<Named<'_>> {
    let mut all: Vec<Named<'_>> = Vec::new();
    if let Programs::File(file, _) = &config.vcl {
        all.push(Named { name: "boot".to_owned(), file, active: true });
    }
    for site in &config.sites {
        let Some((file, _)) = &site.vcl else { continue };
        if all.iter().all(|own| own.file != file) {
            let host = site.hosts.first().map_or("", String::as_str);
            let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
            let name = format!("site_{}", host.chars().map(word).collect::<String>());
            all.push(Named { name, file, active: false });
        }
    }
    all
}

/// A file that a configuration names.
struct Named<'a> {
    name: String,
    file: &'a PathBuf,
    active: bool,
}
