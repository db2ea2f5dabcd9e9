//! The `larder` program: verbs over the libraries.

mod account;
mod allocator;
mod api;
mod build;
mod dashboard;
mod demo;
mod explain;
mod given;
mod holders;
mod htcp;
mod journal;
mod keeper;
mod like;
mod live;
mod material;
mod metrics;
mod notify;
mod opened;
mod ordered;
mod otlp;
mod ports;
mod preset;
mod pressure;
mod programs;
mod ring;
mod serve;
mod stapled;
mod stats;
mod varnish_cli;
mod varnishd;
mod vcl;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use config::{CliOptions, Config, Diagnostic};
use tools::{AdminArgs, default_socket};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// HTTP accelerator: page cache, policy and origin client in one daemon.
#[derive(Debug, Parser)]
#[command(name = "larder", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the daemon, in the foreground.
    Serve(Box<ServeArgs>),
    /// Run it in front of a slow built-in origin, and show what happens.
    Demo(DemoArgs),
    /// Check a configuration file and say what is wrong, and where.
    Check {
        /// The file.
        #[arg(default_value = "/etc/larder/larder.toml")]
        config: PathBuf,
        /// Also print every site in full: presets applied, rules in the order in which they decide.
        #[arg(long)]
        show: bool,
    },
    /// Presets: rules for a kind of site, such as wordpress.
    #[command(subcommand)]
    Preset(preset::PresetVerb),
    /// Have the running daemon read its configuration again; the cache and all connections stay.
    Reload(AdminArgs),
    Explain(tools::ExplainArgs),
    Purge(tools::PurgeArgs),
    /// Look whether a log of changes (`[admin] audit`) is whole.
    CheckAudit {
        /// The file.
        file: PathBuf,
    },
    Log(tools::LogArgs),
    Top(tools::TopArgs),
    Hist(tools::HistArgs),
    Stat(tools::StatArgs),
    Logstat(tools::LogstatArgs),
    /// What a daemon starts beside itself.
    #[command(hide = true)]
    Keeper(keeper::KeeperArgs),
}

/// How `serve` is told what to do.
#[derive(Clone, Debug, Args)]
struct ServeArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE", conflicts_with = "origin")]
    config: Option<PathBuf>,
    /// Without a file: the origin for all hosts, such as http://127.0.0.1:8080, unix:/run/app.sock
    /// or fastcgi+unix:/run/php/php-fpm.sock.
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Where the scripts of a FastCGI origin are, such as /var/www/html.
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    root: Option<PathBuf>,
    /// Preset of the site, such as wordpress; repeatable. `larder preset list` names them.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    preset: Vec<String>,
    /// Host of the site, such as example.com; repeatable. Without it every host is the site's.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    host: Vec<String>,
    /// Have a certificate for every --host from Let's Encrypt, whose terms of service you agree to
    /// by this; it may write to this address.
    #[arg(long, value_name = "EMAIL", conflicts_with = "config", requires = "host")]
    acme: Option<String>,
    /// Address to listen on, such as 127.0.0.1:6081 or :80; repeatable.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "config")]
    listen: Vec<String>,
    /// Memory for the cache, such as 512MiB or 40%; by default half of what there is.
    #[arg(long, value_name = "SIZE", conflicts_with = "config")]
    memory: Option<String>,
    /// Core threads; by default one per core this process may use.
    #[arg(long, value_name = "N", conflicts_with = "config")]
    workers: Option<usize>,
    /// Defaults of the site.
    #[arg(long, value_enum, default_value = "safe", conflicts_with = "config")]
    profile: ProfileArg,
    #[command(flatten)]
    admin: AdminArgs,
    /// Started as root, become this user once ports are open; `root` stays. By default `[run]
    /// user`, or `larder`.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Folder of the log ring, in memory; by default it goes with the admin socket.
    #[arg(long, value_name = "DIR")]
    log_ring: Option<PathBuf>,
    #[command(flatten)]
    varnishd: varnishd::VarnishdArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileArg {
    /// Safe in front of any application.
    Safe,
    /// RFC 9111 to the letter.
    Rfc,
}

#[derive(Clone, Debug, Args)]
struct DemoArgs {
    /// Address of the site.
    #[arg(long, default_value = "127.0.0.1:6081")]
    listen: String,
    /// End after this many seconds; by default it runs until interrupted.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Serve(args) => programs::serve(*args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Check { config, show } => check(&config, show),
        Verb::Preset(verb) => preset::run(&verb),
        Verb::Reload(args) => tools::reload(&args.admin_socket),
        Verb::Explain(args) => tools::explain(&args),
        Verb::Purge(args) => tools::purge(&args),
        Verb::CheckAudit { file } => check_audit(&file),
        Verb::Log(args) => tools::log(&args),
        Verb::Top(args) => tools::top(&args),
        Verb::Hist(args) => tools::hist(&args),
        Verb::Stat(args) => tools::stat(&args),
        Verb::Logstat(args) => tools::logstat(&args),
        Verb::Keeper(args) => keeper::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn check(path: &std::path::Path, show: bool) -> Result<(), String> {
    if is_program(path) {
        return programs::check(path);
    }
    let (config, warnings) = load(path)?;
    eprint!("{warnings}");
    read_material(&config)?;
    println!(
        "{}: good: {} site{}, {} origin{}",
        path.display(),
        config.sites.len(),
        plural(config.sites.len()),
        config.origins.len(),
        plural(config.origins.len()),
    );
    if show {
        preset::print(&config::show(&config))?;
    }
    Ok(())
}

/// Whether the file is a program, as its first word says; its ending only where that says nothing.
fn is_program(path: &std::path::Path) -> bool {
    let text = keeper::read(path).unwrap_or_default();
    config::is_program(&String::from_utf8_lossy(&text))
        .unwrap_or_else(|| path.extension().is_some_and(|ending| ending == "vcl"))
}

fn check_audit(path: &std::path::Path) -> Result<(), String> {
    let failed = |why: String| format!("larder: {}: {why}", path.display());
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let count = admin::Audit::verify(std::io::BufReader::new(file)).map_err(failed)?;
    println!("{}: whole: {count} line{}", path.display(), plural(count));
    Ok(())
}

fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// Reads a file; the second value is its rendered warnings.
fn load(path: &std::path::Path) -> Result<(Config, String), String> {
    // What cannot be opened is told as what cannot be read is.
    let text = keeper::read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let loaded = match text {
        Some(text) => config::load_str(&text, &path.display().to_string()),
        None => config::load_file(path),
    };
    match loaded {
        Ok((config, warnings)) => Ok((config, render(&warnings))),
        Err(problems) => Err(render(&problems)),
    }
}

/// Reads the files that a configuration names; warnings go to standard error.
fn read_material(config: &Config) -> Result<material::Material, String> {
    let (material, found) = material::Material::read(config);
    if found.iter().any(|problem| problem.severity == config::Severity::Error) {
        return Err(render(&found));
    }
    eprint!("{}", render(&found));
    Ok(material)
}

fn render(diagnostics: &[Diagnostic]) -> String {
    config::render(diagnostics, std::io::IsTerminal::is_terminal(&std::io::stderr()))
}

impl serve::Source {
    /// What `serve` was told to do.
    fn of(args: ServeArgs) -> Result<Self, String> {
        let (mut admin_socket, log_ring) = (args.admin.admin_socket, args.log_ring);
        let pid_file = args.varnishd.pid_file.clone();
        let user = match (args.user, args.varnishd.user()?) {
            (Some(name), _) => account::Wanted::Named(name),
            (None, jail) => jail,
        };
        let settings = match (args.config, args.origin) {
            (Some(file), _) if !args.varnishd.is_given() => serve::Settings::File(file),
            (None, Some(origin)) if !args.varnishd.is_given() => {
                serve::Settings::Flags(CliOptions {
                    origin,
                    root: args.root,
                    presets: args.preset,
                    hosts: args.host,
                    acme: args.acme,
                    listen: args.listen,
                    memory: args.memory,
                    workers: args.workers,
                    profile: match args.profile {
                        ProfileArg::Safe => policy::Profile::Safe,
                        ProfileArg::Rfc => policy::Profile::Rfc,
                    },
                })
            }
            (None, None) if args.varnishd.is_given() => {
                let folder = args.varnishd.work_dir.as_ref().filter(|_| {
                    // One that was named is named for a reason.
                    admin_socket == default_socket()
                });
                if let Some(folder) = folder {
                    admin_socket = folder.join("admin.sock");
                }
                let flags = args.varnishd.read(&admin_socket)?;
                serve::Settings::Varnishd(Box::new(flags))
            }
            (None, None) => {
                return Err("larder: nothing to serve: give --config FILE, or --origin URL, or \
                            varnishd's flags: -f FILE or -b HOST:PORT"
                    .to_owned());
            }
            (Some(_), _) | (None, Some(_)) => {
                return Err(
                    "larder: varnishd's flags go neither with --config nor with --origin: \
                            larder.toml names VCL files with `vcl`"
                        .to_owned(),
                );
            }
        };
        Ok(Self { settings, admin_socket, log_ring, user, pid_file })
    }
}
