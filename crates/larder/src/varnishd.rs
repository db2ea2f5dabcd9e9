//! varnishd's flags, beside larder's: `larder serve -a :6081 -T localhost:6082 -f default.vcl`.
//!
//! A flag without effect here is accepted and reported, so that a service file works unchanged. An
//! unknown flag is an error.

use std::path::{Path, PathBuf};

use clap::Args;
use daemon::{Flags, ProgramFlag, RunAs, Storage, own_secret};
use vcl::params::Params;

use crate::hitch;

/// The storage of short-lived objects (varnishd(1)).
const TRANSIENT: &str = "Transient";

/// varnishd's flags (varnishd(1)).
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "varnishd's flags")]
pub(crate) struct VarnishdArgs {
    /// Address to listen on; repeatable. By default :80.
    #[arg(short = 'a', value_name = "[NAME=]ADDRESS[:PORT[-PORT]][,PROTO]")]
    pub(crate) endpoints: Vec<String>,
    /// Certificates for `-a ...,https`, and such addresses, as in hitch's configuration;
    /// repeatable.
    #[arg(short = 'A', value_name = "FILE")]
    pub(crate) hitch: Vec<PathBuf>,
    /// Backend, in place of a VCL; not together with -f.
    #[arg(short = 'b', value_name = "HOST[:PORT]|PATH|none")]
    pub(crate) backend: Option<String>,
    /// VCL file; repeatable. The last one is in force; an empty name starts without one.
    #[arg(short = 'f', value_name = "FILE")]
    pub(crate) vcl: Vec<String>,
    /// Working directory: it has the admin socket and the CLI's secret.
    #[arg(short = 'n', value_name = "DIR")]
    pub(crate) work_dir: Option<PathBuf>,
    /// Address of Varnish's CLI; repeatable, or `none`.
    #[arg(short = 'T', value_name = "ADDRESS:PORT")]
    pub(crate) cli: Vec<String>,
    /// Connect to this address and serve the CLI there.
    #[arg(short = 'M', value_name = "ADDRESS:PORT")]
    pub(crate) reverse_cli: Option<String>,
    /// File with the secret of CLI clients, or `none`.
    #[arg(short = 'S', value_name = "FILE")]
    pub(crate) secret: Option<String>,
    /// Storage; repeatable. `malloc,SIZE` is memory, `file,DIR,SIZE` a cache on disk below it.
    #[arg(short = 's', value_name = "[NAME=]KIND[,...]")]
    pub(crate) storage: Vec<String>,
    /// Set a parameter; repeatable.
    #[arg(short = 'p', value_name = "PARAM=VALUE")]
    pub(crate) params: Vec<String>,
    /// Parameters that the CLI must not change; repeatable.
    #[arg(short = 'r', value_name = "PARAM[,PARAM]")]
    pub(crate) read_only: Vec<String>,
    /// Short for -p default_ttl=SECONDS.
    #[arg(short = 't', value_name = "SECONDS")]
    pub(crate) ttl: Option<String>,
    /// `server.identity`; by default the host's name.
    #[arg(short = 'i', value_name = "IDENTITY")]
    pub(crate) identity: Option<String>,
    /// File with CLI commands that run at the start.
    #[arg(short = 'I', value_name = "FILE")]
    pub(crate) commands: Option<PathBuf>,
    /// File for the process id.
    #[arg(short = 'P', value_name = "FILE")]
    pub(crate) pid_file: Option<PathBuf>,
    /// Compile the VCL, report what is wrong, and end.
    #[arg(short = 'C')]
    pub(crate) compile: bool,
    /// Print a reference: parameter, cli, vsl, builtin, optstring.
    #[arg(short = 'x', value_name = "WHAT")]
    pub(crate) document: Option<String>,
    /// Print the version.
    #[arg(short = 'V')]
    pub(crate) version: bool,
    /// Accepted: larder stays in the foreground.
    #[arg(short = 'F')]
    pub(crate) foreground: bool,
    /// Accepted: larder stays in the foreground; there is no CLI on standard input.
    #[arg(short = 'd')]
    pub(crate) debug: bool,
    /// User to switch to when root has started larder: `unix[,user=NAME]`, by default `vcache`;
    /// `none` stays root. Other words have no effect.
    #[arg(short = 'j', value_name = "JAIL[,WORD]")]
    pub(crate) jail: Option<String>,
    /// Short for -p vsl_space=SIZE.
    #[arg(short = 'l', value_name = "SIZE")]
    pub(crate) log_space: Option<String>,
    /// Accepted, without effect: there is only one waiter.
    #[arg(short = 'W', value_name = "WAITER")]
    pub(crate) waiter: Option<String>,
}

impl VarnishdArgs {
    /// Returns true if any of these flags was given.
    pub(crate) fn is_given(&self) -> bool {
        let lists = [&self.endpoints, &self.vcl, &self.cli, &self.storage, &self.params];
        let lists = lists.iter().any(|list| !list.is_empty());
        let lists = lists || !self.read_only.is_empty() || !self.hitch.is_empty();
        let texts = [&self.backend, &self.reverse_cli, &self.secret, &self.ttl, &self.identity];
        let more = [&self.document, &self.jail, &self.log_space, &self.waiter];
        let paths = [&self.work_dir, &self.commands, &self.pid_file];
        let switches = [self.compile, self.version, self.foreground, self.debug];
        lists
            || texts.iter().any(|text| text.is_some())
            || more.iter().any(|text| text.is_some())
            || paths.iter().any(|path| path.is_some())
            || switches.iter().any(|switch| *switch)
    }

    /// Evaluates the flags. Those without effect are reported on standard error.
    ///
    /// # Errors
    /// A message that says what is wrong with a flag.
    pub(crate) fn read(&self, admin_socket: &Path) -> Result<Flags, String> {
        self.report_unused();
        let params = self.parameters()?;
        let read_only: Vec<_> =
            self.read_only.iter().flat_map(|list| list.split(',')).map(str::to_owned).collect();
        let unknown = |name: &&String| vcl::params::Spec::find(name).is_none();
        if let Some(name) = read_only.iter().find(unknown) {
            return Err(format!("larder: -r {name}: there is no parameter of this name"));
        }
        let programs = self.programs()?;
        if programs.is_empty() && self.vcl.is_empty() && self.commands.is_none() {
            return Err(
                "larder: one of -b and -f is required (use -f '' to load a VCL by the CLI \
                 later)"
                    .to_owned(),
            );
        }
        let cli: Vec<_> = self.cli.iter().filter(|at| *at != "none").cloned().collect();
        let secret = match self.secret.as_deref() {
            Some("none") => None,
            Some(file) => Some(PathBuf::from(file)),
            None if cli.is_empty() && self.reverse_cli.is_none() => None,
            None => Some(own_secret(admin_socket)?),
        };
        let (mut endpoints, mut certificates) = (self.endpoints.clone(), Vec::new());
        for file in &self.hitch {
            let read = hitch::read_file(file)?;
            for setting in &read.idle {
                base::say!("larder: note: -A {}: `{setting}` is without effect", file.display());
            }
            certificates.extend(read.pairs);
            endpoints.extend(read.endpoints);
        }
        Ok(Flags {
            certificates,
            programs,
            storages: self.storages()?,
            params,
            read_only,
            identity: self.identity.clone(),
            commands: self.commands.clone(),
            reverse_cli: self.reverse_cli.clone(),
            endpoints,
            cli,
            secret,
        })
    }

    /// The user of `-j`.
    ///
    /// # Errors
    /// An unknown jail.
    pub(crate) fn user(&self) -> Result<RunAs, String> {
        let Some(jail) = &self.jail else { return Ok(RunAs::Configured) };
        let mut words = jail.split(',');
        match words.next().unwrap_or_default() {
            "none" => return Ok(RunAs::Same),
            "unix" | "linux" => {}
            other => return Err(format!("larder: -j {jail}: there is no jail `{other}` here")),
        }
        // varnishd(1).
        let mut user = "vcache";
        for word in words {
            match word.split_once('=') {
                Some(("user", name)) => user = name,
                // There is no compiler, and no process for programs.
                Some(("ccgroup" | "workuser", _)) => {}
                _ => return Err(format!("larder: -j {jail}: `{word}` is unknown")),
            }
        }
        Ok(RunAs::Named(user.to_owned()))
    }

    /// Reports flags without effect.
    fn report_unused(&self) {
        let note = |text: String| base::say!("larder: note: {text}");
        if self.debug {
            note("-d: the CLI is spoken on -T only".to_owned());
        }
        if let Some(waiter) = &self.waiter {
            note(format!("-W {waiter}: without effect"));
        }
    }

    fn parameters(&self) -> Result<Params, String> {
        let mut params = Params::default();
        let ttl = self.ttl.iter().map(|ttl| ("-t", "default_ttl", ttl.as_str()));
        let space = self.log_space.iter().map(|size| ("-l", "vsl_space", size.as_str()));
        let mut all: Vec<_> = ttl.chain(space).collect();
        for text in &self.params {
            let pair = text.split_once('=').ok_or_else(|| {
                format!("larder: -p {text}: expected a parameter, = and its value")
            })?;
            all.push(("-p", pair.0.trim(), pair.1.trim()));
        }
        for (flag, name, value) in all {
            let why = |error| format!("larder: {flag} {name}={value}: {error}");
            params.set(name, value).map_err(why)?;
        }
        Ok(params)
    }

    fn programs(&self) -> Result<Vec<(String, ProgramFlag)>, String> {
        if let Some(backend) = &self.backend {
            if !self.vcl.is_empty() {
                return Err("larder: only one of -b and -f can be given".to_owned());
            }
            return Ok(vec![("boot".to_owned(), ProgramFlag::Text(backend_vcl(backend)))]);
        }
        let files: Vec<_> = self.vcl.iter().filter(|file| !file.is_empty()).collect();
        let last = files.len().saturating_sub(1);
        let name = |at: usize| match at == last {
            true => "boot".to_owned(),
            false => format!("boot{at}"),
        };
        let named = |(at, file): (usize, &&String)| (name(at), ProgramFlag::File((*file).clone()));
        Ok(files.iter().enumerate().map(named).collect())
    }

    /// The storages, `Transient` last, as in varnishd.
    fn storages(&self) -> Result<Vec<Storage>, String> {
        let mut storages = Vec::<Storage>::new();
        let mut nameless = 0..;
        for text in &self.storage {
            let (name, spec) = match text.split_once('=') {
                Some((name, spec)) if !name.contains(',') => (name.to_owned(), spec),
                // Only those without a name are numbered.
                _ => (format!("s{}", nameless.next().unwrap_or(0)), text.as_str()),
            };
            if storages.iter().any(|storage| storage.name == name) {
                return Err(format!("larder: -s {text}: there is a storage `{name}` already"));
            }
            let (bytes, disk) = storage(spec).map_err(|why| format!("larder: -s {text}: {why}"))?;
            if disk.is_some() && name == TRANSIENT {
                return Err(format!("larder: -s {text}: what is short-lived stays in memory"));
            }
            storages.push(Storage { name, bytes, disk });
        }
        let in_memory = |name: &str| Storage { name: name.to_owned(), bytes: None, disk: None };
        if storages.iter().all(|storage| storage.name == TRANSIENT) {
            storages.insert(0, in_memory("s0"));
        }
        if !storages.iter().any(|storage| storage.name == TRANSIENT) {
            storages.push(in_memory(TRANSIENT));
        }
        Ok(storages)
    }
}

/// The VCL for `-b`.
fn backend_vcl(backend: &str) -> String {
    if backend == "none" {
        return "vcl 4.1;\n\nbackend default none;\n".to_owned();
    }
    if backend.starts_with('/') {
        return format!("vcl 4.1;\n\nbackend default {{\n    .path = \"{backend}\";\n}}\n");
    }
    let bare = backend.rsplit_once(']').map_or(backend, |(_, rest)| rest);
    let (host, port) = match bare.contains(':') {
        true => backend.rsplit_once(':').unwrap_or((backend, "8080")),
        // varnishd(1).
        false => (backend, "8080"),
    };
    format!(
        "vcl 4.1;\n\nbackend default {{\n    .host = \"{host}\";\n    .port = \"{port}\";\n}}\n"
    )
}

/// The bytes of a storage, `None` without a bound; and its directory if it is on disk.
fn storage(spec: &str) -> Result<(Option<u64>, Option<PathBuf>), String> {
    let words: Vec<&str> = spec.split(',').collect();
    let (kind, options) = (words[0], &words[1..]);
    match kind {
        "malloc" | "default" | "umem" | "debug" => match options {
            [] | [""] => Ok((None, None)),
            [size] => Ok((Some(bytes(size)?), None)),
            _ => Err("too many arguments".to_owned()),
        },
        "file" => file_storage(spec, options),
        // The size is required.
        "persistent" | "deprecated_persistent" => match options {
            [path, size] => volume(path, size),
            _ => Err("takes a path and a size".to_owned()),
        },
        other => Err(format!("`{other}` is no storage: there are malloc and file")),
    }
}

/// The options of `file`: path, size, granularity and advice.
fn file_storage(spec: &str, options: &[&str]) -> Result<(Option<u64>, Option<PathBuf>), String> {
    let [path, rest @ ..] = options else { return Err("path is mandatory".to_owned()) };
    let [size, rest @ ..] = rest else { return Err("no size specified".to_owned()) };
    if let Some(granularity) = rest.first().filter(|text| !text.is_empty()) {
        vcl::params::bytes(granularity)?;
    }
    if let Some(advice) = rest.get(1)
        && !["", "normal", "random", "sequential"].contains(advice)
    {
        return Err(format!("`{advice}` is no advice: there are normal, random and sequential"));
    }
    if rest.len() > 2 {
        return Err("too many arguments".to_owned());
    }
    if !rest.is_empty() {
        base::say!("larder: note: -s {spec}: granularity and advice are without effect");
    }
    volume(path, size)
}

/// A volume of the disk cache.
fn volume(path: &str, size: &str) -> Result<(Option<u64>, Option<PathBuf>), String> {
    if path.is_empty() {
        return Err("path is mandatory".to_owned());
    }
    if size.is_empty() {
        return Err("no size specified".to_owned());
    }
    let path = PathBuf::from(path);
    if path.is_file() {
        return Err(format!(
            "{} is a file, as varnishd makes one, and here it is a directory: remove the file or \
             name another path",
            path.display()
        ));
    }
    Ok((Some(bytes(size)?), Some(path)))
}

/// A size of a storage, as varnishd reads it.
fn bytes(size: &str) -> Result<u64, String> {
    let bytes = vcl::params::bytes(size)? as u64;
    if bytes < 1 << 20 {
        return Err(format!("size `{size}` is too small: did you forget to specify M or G?"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use base::Limits;
    use clap::Parser;
    use vcl::params::Param;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: VarnishdArgs,
    }

    fn flags(words: &[&str]) -> Result<Flags, String> {
        let line =
            Line::try_parse_from(["serve"].iter().chain(words)).map_err(|e| e.to_string())?;
        line.args.read(Path::new("/nowhere/admin.sock"))
    }

    #[test]
    fn the_line_of_debians_defaults_is_understood() {
        let flags = flags(&[
            "-a",
            ":6081",
            "-T",
            "localhost:6082",
            "-f",
            "/etc/varnish/default.vcl",
            "-S",
            "/etc/varnish/secret",
            "-s",
            "malloc,256m",
        ])
        .expect("flags");
        let config = flags.config().expect("a configuration");
        assert_eq!(config.listen[0].addresses.len(), 2);
        assert_eq!(config.memory.size, config::MemorySize::Bytes(256 << 20));
        assert!(config.varnish_cli.is_some_and(|cli| cli.secret != config::CliSecret::None));
        assert!(matches!(&flags.programs[..], [(name, ProgramFlag::File(file))]
                if name == "boot" && file == "/etc/varnish/default.vcl"));
        let storages: Vec<_> = flags.storages.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(storages, ["s0", "Transient"]);
    }

    #[test]
    fn several_programs_are_named_as_varnishd_names_them() {
        let flags = flags(&["-f", "a.vcl", "-f", "b.vcl", "-f", "c.vcl"]).expect("flags");
        let names: Vec<_> = flags.programs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["boot0", "boot1", "boot"]);
    }

    #[test]
    fn parameters_and_their_short_forms_are_set() {
        let flags = flags(&["-b", "none", "-t", "30", "-p", "default_grace=5", "-l", "20M"])
            .expect("flags");
        assert_eq!(flags.params.seconds(Param::DefaultTtl), 30.0);
        assert_eq!(flags.params.seconds(Param::DefaultGrace), 5.0);
        assert_eq!(flags.params.number(Param::VslSpace), 20 << 20);
        let config = flags.config().expect("a configuration");
        assert_eq!((config.limits.idle_timeout, config.limits.header_timeout), (5_000, 5_000));
        assert_eq!(config.limits.header_count, 59);
        assert_eq!(config.limits.response_time, 600_000);
    }

    #[test]
    fn parameters_rule_limits_of_the_same_meaning() {
        let usual = Limits::default().tunnels;
        for (param, tunnels, stall_ms) in [
            ("pipe_sess_max=0", usual, 60_000),
            ("pipe_sess_max=7", 7, 60_000),
            ("idle_send_timeout=2.5", usual, 2_500),
            // Unlimited, as for a socket.
            ("idle_send_timeout=0", usual, u64::MAX >> 1),
        ] {
            let limits = flags(&["-b", "none", "-p", param]).expect(param).config();
            let limits = limits.expect("a configuration").limits;
            assert_eq!((limits.tunnels, limits.send_timeout), (tunnels, stall_ms), "{param}");
        }
    }

    #[test]
    fn storages_without_a_name_are_counted_by_themselves() {
        let names = |words: &[&str]| -> Vec<String> {
            let flags = flags(&[&["-b", "none"], words].concat()).expect("flags");
            flags.storages.into_iter().map(|storage| storage.name).collect()
        };
        let several = ["-s", "malloc,1m", "-s", "big=malloc,5m", "-s", "malloc,1m"];
        assert_eq!(names(&several), ["s0", "big", "s1", "Transient"]);
        assert_eq!(names(&["-s", "Transient=malloc,1m"]), ["s0", "Transient"]);
    }

    #[test]
    fn storages_on_disk_are_directories_below_memory() {
        for text in [
            "big=file,/srv/larder-cache,20G",
            "big=file,/srv/larder-cache,20G,4k,random",
            "big=deprecated_persistent,/srv/larder-cache,20G",
        ] {
            let words = ["-b", "none", "-s", "malloc,1G", "-s", text];
            let flags = flags(&words).expect(text);
            let config = flags.config().expect(text);
            assert_eq!(config.memory.size, config::MemorySize::Bytes(1 << 30));
            let disk = config.disk.expect("a disk cache");
            let [volume] = &disk.volumes[..] else { panic!("{disk:?}") };
            assert_eq!(volume.path, Path::new("/srv/larder-cache"));
            assert_eq!((volume.bytes, volume.name.as_deref()), (20 << 30, Some("big")));
            let on_disk = flags.storages.iter().map(|own| (own.name.as_str(), own.disk.is_some()));
            assert!(on_disk.eq([("s0", false), ("big", true), ("Transient", false)]));
        }
        let alone = flags(&["-b", "none", "-s", "file,/srv/larder-cache,20G"]).expect("flags");
        let config = alone.config().expect("a configuration");
        assert_eq!(config.memory.size, config::MemorySize::Auto);
        assert!(alone.storages[0].name == "s0" && config.disk.is_some());
    }

    #[test]
    fn a_backend_is_a_program() {
        assert!(backend_vcl("127.0.0.1").contains(".port = \"8080\""));
        let six = backend_vcl("[::1]:81");
        assert!(six.contains(".host = \"[::1]\"") && six.contains(".port = \"81\""), "{six}");
        assert!(backend_vcl("/run/x.sock").contains(".path = \"/run/x.sock\""));
    }

    #[test]
    fn a_jail_says_who_to_become() {
        let user = |jail: &str| {
            VarnishdArgs { jail: Some(jail.to_owned()), ..VarnishdArgs::default() }.user()
        };
        let named = |name: &str| Ok(RunAs::Named(name.to_owned()));
        assert_eq!(user("unix,user=varnish,ccgroup=varnish"), named("varnish"));
        assert_eq!([user("unix"), user("linux")], [named("vcache"), named("vcache")]);
        assert_eq!(user("none"), Ok(RunAs::Same));
        assert_eq!(VarnishdArgs::default().user(), Ok(RunAs::Configured));
        for wrong in ["solaris", "unix,colour=red"] {
            assert!(user(wrong).is_err_and(|why| why.contains(wrong)), "{wrong}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_reported() {
        for (words, why) in [
            (&["-a", ":80"][..], "larder: one of -b and -f is required"),
            (&["-b", "x", "-f", "y"], "larder: only one of -b and -f"),
            (&["-b", "x", "-p", "nothing=1"], "larder: -p nothing=1: Unknown parameter"),
            (&["-b", "x", "-p", "default_ttl"], "larder: -p default_ttl: expected"),
            (&["-b", "x", "-s", "malloc,1"], "larder: -s malloc,1: size `1` is too small"),
            (&["-b", "x", "-s", "malloc,1g,2"], "larder: -s malloc,1g,2: too many arguments"),
            (&["-b", "x", "-s", "file"], "larder: -s file: path is mandatory"),
            (&["-b", "x", "-s", "file,/x"], "larder: -s file,/x: no size specified"),
            (&["-b", "x", "-s", "file,/x,1%"], "larder: -s file,/x,1%: Could not convert"),
            (&["-b", "x", "-s", "file,/x,1g,4k,odd"], "larder: -s file,/x,1g,4k,odd: `odd` is no"),
            (&["-b", "x", "-s", "file,/x,1g,,,z"], "larder: -s file,/x,1g,,,z: too many"),
            (&["-b", "x", "-s", "persistent,/x"], "larder: -s persistent,/x: takes a path and"),
            (&["-b", "x", "-s", "Transient=file,/x,1g"], "larder: -s Transient=file,/x,1g: what"),
            (&["-b", "x", "-s", "file,/etc/passwd,1g"], "larder: -s file,/etc/passwd,1g: /etc/p"),
            (&["-b", "x", "-s", "tape"], "larder: -s tape: `tape` is no storage"),
            (&["-b", "x", "-s", "a=malloc", "-s", "a=malloc"], "larder: -s a=malloc: there is a"),
            (&["-b", "x", "-r", "nothing"], "larder: -r nothing: there is no parameter"),
        ] {
            let error = flags(words).expect_err(why);
            assert!(error.starts_with(why), "{words:?}: {error}");
        }
    }
}
