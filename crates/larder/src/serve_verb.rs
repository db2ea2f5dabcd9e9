//! `larder serve`: its flags, the configuration made from them, and the actions without serving
//! (`-C`, `-x`, `-V`).

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use config::CliOptions;
use daemon::{ConfigSource, DaemonOptions, ProgramFlag, RunAs, Sharing};
use tools::{AdminArgs, default_socket};
use vcl::params::Params;
use vcl::params::TABLE;
use vcl::program::ProgramRole;

use crate::varnishd;

/// The default configuration file.
pub(crate) const USUAL_CONFIG: &str = "/etc/larder/larder.toml";

/// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArgs {
    /// Configuration file; /etc/larder/larder.toml if no other flag says what to serve.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Configuration file, without the flag.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,
    /// Without a file: the origin for all hosts, such as 127.0.0.1:8080, unix:/run/app.sock or
    /// fastcgi+unix:/run/php/php-fpm.sock.
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Folder of a FastCGI origin's scripts, such as /var/www/html.
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Preset of the site, such as wordpress; repeatable. `larder preset list` names them.
    #[arg(long, value_name = "NAME")]
    preset: Vec<String>,
    /// Host of the site, such as example.com; repeatable. Without it the site answers for every
    /// host.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Order a certificate for every --host from Let's Encrypt, whose terms of service you agree to
    /// by this; it may write to this address. Plain HTTP is redirected to HTTPS once the
    /// certificate is there.
    #[arg(long, value_name = "EMAIL", requires = "host")]
    acme: Option<String>,
    /// Address to listen on, such as 127.0.0.1:6081 or :80; repeatable.
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Memory for the cache, such as 512MiB or 40%; by default half of the machine's.
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Cache on disk below memory: its directory and size, such as /var/cache/larder,20GiB.
    #[arg(long, value_name = "DIR,SIZE")]
    disk: Option<String>,
    /// Core threads; by default one per core that this process may use.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    /// Profile of the site; `safe` if not given.
    #[arg(long, value_enum)]
    profile: Option<ProfileArg>,
    #[command(flatten)]
    admin: AdminArgs,
    /// Started as root, switch to this user once ports are open; `root` stays. By default `[run]
    /// user`, or `larder`.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// Not started as root: socket of the keeper, which opens files that only root may read, as the
    /// service's unit names it.
    #[arg(long, value_name = "PATH")]
    keeper: Option<PathBuf>,
    /// Folder of the log ring, in memory; by default beside the admin socket.
    #[arg(long, value_name = "DIR")]
    log_ring: Option<PathBuf>,
    /// Share the listening addresses with another daemon of the same user, so that this one can
    /// take its place without a gap. Give it an --admin-socket of its own, and then end the other.
    #[arg(long)]
    share_port: bool,
    /// Replace the daemon at the other end of standard input, which starts this one.
    #[arg(long, hide = true)]
    take_over: bool,
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

/// `larder serve`.
pub(crate) fn serve(mut args: ServeArgs) -> Result<(), String> {
    args.config = args.config.or_else(|| args.file.take());
    let flags = &args.varnishd;
    if flags.version {
        base::show!("larder {}", env!("CARGO_PKG_VERSION"));
        return Ok(());
    }
    if let Some(what) = &flags.document {
        return document(what);
    }
    let compile = flags.compile;
    let source = source_of(args)?;
    if compile {
        return check_all(&source);
    }
    daemon::run(source)
}

/// `-x`: prints a document.
fn document(what: &str) -> Result<(), String> {
    match what {
        "parameter" => {
            let params = Params::default();
            let all: String = TABLE.iter().map(|spec| params.row(spec).long()).collect();
            base::show!("{}", all.trim_end());
        }
        "cli" => base::show!("{}", daemon::document().trim_end()),
        "builtin" => base::show!("{}", vcl::parse::BUILTIN.trim_end()),
        "vsl" => {
            base::show!(
                "larder has no shared memory log: `larder log` shows the records there are."
            );
        }
        "optstring" => base::show!("a:b:f:n:T:M:S:s:p:r:t:i:I:P:Cx:VFdj:l:W:"),
        other => {
            return Err(format!(
                "larder: -x {other}: there are parameter, cli, vsl, builtin and optstring"
            ));
        }
    }
    Ok(())
}

/// `-C`: compiles the programs of the flags, and reports the result.
fn check_all(source: &DaemonOptions) -> Result<(), String> {
    let ConfigSource::Varnishd(flags) = &source.settings else {
        return Err("larder: -C goes with -f or -b".to_owned());
    };
    let storages: Vec<_> = flags.storages.iter().map(|own| own.name.as_str()).collect();
    for (_, program) in &flags.programs {
        let name = match program {
            ProgramFlag::File(file) => file,
            ProgramFlag::Text(_) => "-b",
        };
        let (_, warnings) =
            daemon::compile(program.from(), &flags.params, &storages, &[], ProgramRole::Whole)?;
        eprint!("{warnings}");
        base::show!("{name}: good");
    }
    Ok(())
}

/// The default configuration file, if it exists.
fn usual_config(file: &Path) -> Result<PathBuf, String> {
    // A file that only other users may read exists.
    if file.try_exists().is_ok_and(|there| !there) {
        return Err(format!(
            "larder: nothing to serve: there is no {}; write it, or give --config FILE, or \
             --origin URL, or varnishd's flags: -f FILE or -b HOST:PORT",
            file.display()
        ));
    }
    Ok(file.to_owned())
}

/// A site's flag that cannot be combined with a file, and the setting that replaces it.
fn beside_file(args: &ServeArgs) -> Option<(&'static str, &'static str)> {
    let several = |list: &[String]| !list.is_empty();
    [
        (args.origin.is_some(), "--origin", "servers"),
        (args.root.is_some(), "--root", "root"),
        (several(&args.preset), "--preset", "preset"),
        (several(&args.host), "--host", "host"),
        (args.acme.is_some(), "--acme", "acme"),
        (several(&args.listen), "--listen", "listen"),
        (args.memory.is_some(), "--memory", "[memory] size"),
        (args.disk.is_some(), "--disk", "[disk] path"),
        (args.workers.is_some(), "--workers", "workers"),
        (args.profile.is_some(), "--profile", "profile"),
    ]
    .into_iter()
    .find_map(|(is_given, flag, setting)| is_given.then_some((flag, setting)))
}

/// The message with the line of `file` that has `setting`, or that none has.
fn place_in(file: &Path, setting: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let (table, key) = match setting.split_once(' ') {
        Some((table, key)) => (Some(table), key),
        None => (None, setting),
    };
    let mut within = table.is_none();
    for (at, line) in text.lines().map(str::trim).enumerate() {
        if line.starts_with('[') {
            // `[acme]` is a table.
            if line.strip_prefix('[').is_some_and(|rest| rest.starts_with(&format!("{key}]"))) {
                return format!("{}:{}: `{line}`", file.display(), at + 1);
            }
            within = table.is_none_or(|table| line.starts_with(table));
        } else if within
            && line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
        {
            return format!("{}:{}: `{line}`", file.display(), at + 1);
        }
    }
    format!("{} does not have it yet", file.display())
}

/// Returns true if the arguments describe a site, which needs an origin.
fn needs_origin(args: &ServeArgs) -> bool {
    [&args.preset, &args.host, &args.listen].iter().any(|list| !list.is_empty())
        || [&args.memory, &args.disk, &args.acme].iter().any(|text| text.is_some())
        || args.root.is_some()
        || args.workers.is_some()
        || args.profile.is_some()
}

/// Returns the options of the daemon that the arguments describe.
fn source_of(args: ServeArgs) -> Result<DaemonOptions, String> {
    if let (Some(file), Some((flag, setting))) = (&args.config, beside_file(&args)) {
        return Err(format!(
            "larder: {flag} does not go with --config: the file decides, also at each reload\n  \
             = help: use `{setting}` there: {}",
            place_in(file, setting)
        ));
    }
    let needs_origin = needs_origin(&args);
    let (mut admin_socket, log_ring) = (args.admin.admin_socket, args.log_ring);
    let pid_file = args.varnishd.pid_file.clone();
    let user = match (args.user, args.varnishd.user()?) {
        (Some(name), _) => RunAs::Named(name),
        (None, jail) => jail,
    };
    let sharing = if args.share_port { Sharing::Wanted } else { Sharing::Refused };
    let settings = match (args.config, args.origin) {
        (Some(file), _) if !args.varnishd.is_given() => ConfigSource::File(file),
        (None, Some(origin)) if !args.varnishd.is_given() => ConfigSource::Flags(CliOptions {
            origin,
            root: args.root,
            presets: args.preset,
            hosts: args.host,
            acme: args.acme,
            listen: args.listen,
            memory: args.memory,
            disk: args.disk,
            workers: args.workers,
            profile: match args.profile {
                None | Some(ProfileArg::Safe) => policy::Profile::Safe,
                Some(ProfileArg::Rfc) => policy::Profile::Rfc,
            },
        }),
        (None, None) if args.varnishd.is_given() => {
            let folder = args.varnishd.work_dir.as_ref().filter(|_| {
                // An explicit socket must be usable.
                admin_socket == default_socket()
            });
            if let Some(folder) = folder {
                admin_socket = folder.join("admin.sock");
            }
            let flags = args.varnishd.read(&admin_socket)?;
            ConfigSource::Varnishd(Box::new(flags))
        }
        (None, None) if needs_origin => {
            return Err("larder: flags for a site need --origin URL; without them \
                        --config FILE says what to serve"
                .to_owned());
        }
        (None, None) => ConfigSource::File(usual_config(Path::new(USUAL_CONFIG))?),
        (Some(_), _) | (None, Some(_)) => {
            return Err("larder: varnishd's flags go neither with --config nor with --origin: \
                        larder.toml names VCL files with `vcl`"
                .to_owned());
        }
    };
    let (keeper, takes_over) = (args.keeper, args.take_over);
    Ok(DaemonOptions {
        settings,
        admin_socket,
        log_ring,
        user,
        keeper,
        pid_file,
        sharing,
        takes_over,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    fn source(flags: &[&str]) -> Result<DaemonOptions, String> {
        let words = ["serve"].iter().chain(flags);
        source_of(Line::try_parse_from(words).expect("known flags").args)
    }

    #[test]
    fn a_flag_beside_a_file_is_refused_with_the_line_that_says_the_same() {
        let path = std::env::temp_dir().join(format!("larder-beside-{}", std::process::id()));
        let text = "workers = 2\n[disk]\nsize = \"1GiB\"\n[memory]\nsize = \"1GiB\"\n[[site]]\nhost = \"a\"\n";
        std::fs::write(&path, text).expect("written");
        let file = path.display().to_string();
        for (flags, told) in [
            (&["--memory", "512MiB"][..], format!("use `[memory] size` there: {file}:5: `size")),
            (&["--workers", "3"], format!("{file}:1: `workers = 2`")),
            (&["--host", "b"], format!("{file}:7: `host = \"a\"`")),
            (&["--listen", ":81"], format!("use `listen` there: {file} does not have it yet")),
            (&["--origin", "app"], "--origin does not go with --config".to_owned()),
        ] {
            let all = [&["--config", file.as_str()], flags].concat();
            let said = source(&all).map(|_| ()).expect_err("refused");
            assert!(said.contains(&told), "{said}");
        }
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn nothing_named_is_the_usual_file_and_a_site_s_flags_are_not_nothing() {
        for flags in [&["--listen", ":81"][..], &["--profile", "rfc"], &["--workers", "2"]] {
            let said = source(flags).map(|_| ()).expect_err("no origin");
            assert!(said.contains("need --origin URL"), "{said}");
        }
        match source(&["--user", "root"]) {
            Ok(source) => {
                let ConfigSource::File(file) = source.settings else {
                    panic!("{:?}", source.settings)
                };
                assert_eq!(file, Path::new(USUAL_CONFIG));
            }
            Err(said) => assert!(said.contains(&format!("there is no {USUAL_CONFIG}")), "{said}"),
        }
        let there = std::env::current_exe().expect("a file");
        assert_eq!(usual_config(&there), Ok(there.clone()));
        assert!(usual_config(Path::new("/nonexistent/larder.toml")).is_err());
    }
}
