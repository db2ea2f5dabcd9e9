//! Commands of the CLI in one table: names, arguments and help as in Varnish 7, older commands, and
//! the certificate commands of Varnish 9. Other commands are rejected as unknown. No command is
//! executed here.

use std::fmt::Write as _;

use crate::json;
use crate::reply::{Reply, Status};

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The command.
    pub verb: CliCommand,
    /// Name of the command.
    pub name: &'static str,
    /// Name and arguments, as `help` shows them.
    pub syntax: &'static str,
    /// Description that `help -v` and `help NAME` show.
    pub help: &'static str,
    /// Least number of arguments.
    pub min: usize,
    /// Largest number of arguments; `None` if there is no limit.
    pub max: Option<usize>,
    /// True if the command accepts `-j` for a reply in JSON.
    pub json: bool,
}

macro_rules! commands {
    ($($verb:ident $name:literal $syntax:literal $min:literal $max:expr, $json:literal,
       $help:literal;)*) => {
        /// A command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CliCommand { $(#[doc = $help] $verb,)* }

        /// All commands, sorted by name.
        pub const TABLE: &[Spec] = &[$(Spec {
            verb: CliCommand::$verb,
            name: $name,
            syntax: concat!($name, $syntax),
            help: $help,
            min: $min,
            max: $max,
            json: $json,
        },)*];
    };
}

commands! {
    Auth "auth" " <response>" 1 Some(1), false, "Answer the challenge.";
    BackendList "backend.list" " [-j] [-p] [<backend_pattern>]" 0 Some(2), true, "The origins' servers and their health.";
    BackendSetHealth "backend.set_health" " <backend_pattern> [auto|healthy|sick]" 2 Some(2), false, "Take servers out, put them back, or let their probes decide.";
    Ban "ban" " <field> <operator> <arg> [&& <field> <oper> <arg> ...]" 1 None, false, "Invalidate every stored response for which all conditions hold.";
    BanList "ban.list" " [-j]" 0 Some(0), true, "The bans that may still match objects, the newest first.";
    BanUrl "ban.url" " <regex>" 1 Some(1), false, "As `ban req.url ~ <regex>`, as in Varnish 3.";
    Banner "banner" "" 0 Some(0), false, "Show the greeting again.";
    DebugSrandom "debug.srandom" " [<seed>]" 0 Some(1), false, "Accepted, and without effect: random numbers here have no seed.";
    DebugXid "debug.xid" " [<xid> [<cachesize>]]" 0 Some(2), false, "Show the number of the next transaction, or set it.";
    Help "help" " [-j|<command>]" 0 Some(1), true, "List all commands, or describe one.";
    PanicClear "panic.clear" " [-z]" 0 Some(1), false, "Forget the last panic.";
    PanicShow "panic.show" " [-j]" 0 Some(0), true, "The last panic.";
    ParamReset "param.reset" " <param>" 1 Some(1), false, "Set a parameter back to its default.";
    ParamSet "param.set" " [-j] <param> <value>" 2 Some(2), true, "Set a parameter.";
    ParamShow "param.show" " [-l|-j] [<param>|changed]" 0 Some(2), true, "Settings and limits by their names.";
    Pid "pid" " [-j]" 0 Some(0), true, "The daemon's process id.";
    Ping "ping" " [-j] [<timestamp>]" 0 Some(1), true, "Get a reply, and keep the connection.";
    Purge "purge" " <field> <operator> <arg> [&& <field> <oper> <arg> ...]" 1 None, false, "As `ban`, as in Varnish 2.";
    PurgeUrl "purge.url" " <regex>" 1 Some(1), false, "As `ban req.url ~ <regex>`, as in Varnish 2.1.";
    Quit "quit" "" 0 Some(0), false, "Close the connection.";
    Start "start" "" 0 Some(0), false, "Begin to serve requests.";
    Stats "stats.json" "" 0 Some(0), false, "Counters under Varnish's names, as `varnishstat -j` prints them.";
    Status "status" " [-j]" 0 Some(0), true, "Whether requests are served.";
    Stop "stop" "" 0 Some(0), false, "Stop serving requests.";
    StorageList "storage.list" " [-j]" 0 Some(0), true, "Where responses are stored.";
    TlsCertCommit "tls.cert.commit" "" 0 Some(0), false, "Put staged certificates in force for new connections, and remove discarded ones.";
    TlsCertDiscard "tls.cert.discard" " <cert-id>" 1 Some(1), false, "Remove a certificate at the next commit.";
    TlsCertList "tls.cert.list" " [-j] [-s]" 0 Some(1), true, "The certificates by frontend, id, status and subject; with -s those that a commit changes.";
    TlsCertLoad "tls.cert.load" " [<cert-id>] <cert-file> [-k <key-file>] [-d] [-f <frontend>] [-p <protocols>] [-c <ciphers>] [-s <ciphersuites>] [-o]" 1 Some(14), false, "Stage a certificate from a PEM file, which also holds the key unless -k names another; -d makes it the default.";
    TlsCertReload "tls.cert.reload" "" 0 Some(0), false, "Read all certificates from their files again; a bad file changes nothing.";
    TlsCertRollback "tls.cert.rollback" "" 0 Some(0), false, "Drop all that was staged or discarded since the last commit.";
    UrlPurge "url.purge" " <regex>" 1 Some(1), false, "As `ban req.url ~ <regex>`, as in Varnish 2.0.";
    VclDeps "vcl.deps" " [-j]" 0 Some(0), true, "The loaded VCLs and their dependencies.";
    VclDiscard "vcl.discard" " <name_pattern>..." 1 None, false, "Unload VCLs and labels; a VCL in use ends with its last request.";
    VclInline "vcl.inline" " <configname> <quoted_VCLstring> [auto|cold|warm]" 2 Some(3), false, "Compile and load the VCL in the argument.";
    VclLabel "vcl.label" " <label> <configname>" 2 Some(2), false, "Give a VCL a label, or move a label to another VCL.";
    VclList "vcl.list" " [-j]" 0 Some(0), true, "The loaded VCLs, and the one in force.";
    VclLoad "vcl.load" " <configname> <filename> [auto|cold|warm]" 2 Some(3), false, "Compile and load a VCL from a file.";
    VclShow "vcl.show" " [-v] [<configname>]" 0 Some(2), false, "The source of a VCL; with -v also its includes and the builtin VCL.";
    VclState "vcl.state" " <configname> [auto|cold|warm]" 2 Some(2), false, "Set a VCL's state; a warm one probes its backends, a cold one does not.";
    VclUse "vcl.use" " <configname|label>" 1 Some(1), false, "Put a VCL in force for all requests from now on.";
}

impl CliCommand {
    /// Returns true if a client may call the command before it is authenticated.
    fn is_open(self) -> bool {
        matches!(self, Self::Auth | Self::Help | Self::Ping | Self::Quit)
    }
}

/// A parsed command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The command.
    pub verb: CliCommand,
    /// True if the reply has to be JSON.
    pub json: bool,
    /// Arguments, without a leading `-j`.
    pub arguments: Vec<Vec<u8>>,
    /// All words of the request, for replies in JSON.
    pub words: Vec<Vec<u8>>,
}

const UNKNOWN: &str = "Unknown request.\nType 'help' for more info.\n";

impl Reply {
    /// The reply to a line that cannot be split into words.
    pub fn syntax(error: crate::SyntaxError) -> Self {
        Self::new(Status::Syntax, format!("{UNKNOWN}Syntax Error: {error}\n"))
    }
}

/// Parses `words` as a command.
///
/// # Errors
/// The reply if the command is unknown, has too few or too many arguments, or needs authentication.
pub fn read(words: Vec<Vec<u8>>, authenticated: bool) -> Result<Call, Reply> {
    let name = words.first().map_or(&b""[..], Vec::as_slice);
    let Some(spec) = find(name).filter(|spec| authenticated || spec.verb.is_open()) else {
        let upper = name.first().is_some_and(u8::is_ascii_uppercase);
        let hint = if upper { "all commands are in lower-case.\n" } else { "" };
        return Err(Reply::new(Status::Unknown, format!("{UNKNOWN}{hint}")));
    };
    let json = words.get(1).is_some_and(|word| word == b"-j");
    if json && !spec.json {
        return Err(Reply::new(Status::Unimplemented, "JSON unimplemented\n"));
    }
    let arguments = words[1 + usize::from(json)..].to_vec();
    if arguments.len() < spec.min {
        return Err(Reply::new(Status::TooFew, "Too few parameters\n"));
    }
    if spec.max.is_some_and(|max| arguments.len() > max) {
        return Err(Reply::new(Status::TooMany, "Too many parameters\n"));
    }
    Ok(Call { verb: spec.verb, json, arguments, words })
}

fn find(name: &[u8]) -> Option<&'static Spec> {
    TABLE.iter().find(|spec| spec.name.as_bytes() == name)
}

/// The reply to `help`: all commands, or the one that is named.
pub fn help(call: &Call) -> Reply {
    let Some(name) = call.arguments.first() else {
        return Reply::ok(
            TABLE.iter().map(|spec| format!("{}\n", spec.syntax)).collect::<String>(),
        );
    };
    match find(name) {
        Some(spec) => Reply::ok(format!("{}\n{}\n", spec.syntax, spec.help)),
        None if name.starts_with(b"-") => Reply::new(Status::Unknown, "Unknown flag\n"),
        None => Reply::new(Status::Unknown, UNKNOWN),
    }
}

/// The reply to `help -j`; `unix_ms` is the time in milliseconds since 1970.
pub fn help_json(call: &Call, unix_ms: u64) -> Reply {
    let mut text = json::begin(2, &call.words, unix_ms) + "\n";
    for (at, spec) in TABLE.iter().enumerate() {
        let string = |text: &str| json::string(text.as_bytes());
        let max = spec.max.map_or_else(|| "-1".to_owned(), |max| max.to_string());
        // Writing to a String cannot fail.
        _ = write!(
            text,
            "{}  {{\n    \"request\": {},\n    \"syntax\": {},\n    \"help\": {},\n    \"minarg\": {},\n    \"maxarg\": {max},\n    \"flags\": \"\",\n    \"json\": {}\n  }}",
            if at > 0 { ",\n" } else { "" },
            string(spec.name),
            string(spec.syntax),
            string(spec.help),
            spec.min,
            spec.json,
        );
    }
    text.push_str("\n]\n");
    Reply::ok(text)
}
