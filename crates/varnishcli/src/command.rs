//! The table of commands: names, arguments and help as Varnish 7's, commands that only older
//! versions had, and those of Varnish 9 about certificates. Every other command is unknown.

use std::fmt::Write as _;

use crate::json;
use crate::reply::{Reply, Status};

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The command.
    pub verb: CliCommand,
    /// Its name.
    pub name: &'static str,
    /// Name and arguments, as `help` shows them.
    pub syntax: &'static str,
    /// Description of the command.
    pub help: &'static str,
    /// The least number of arguments.
    pub min: usize,
    /// The largest number of arguments; `None` for any number.
    pub max: Option<usize>,
    /// True if `-j` makes JSON of its answer.
    pub json: bool,
}

macro_rules! commands {
    ($($verb:ident $name:literal $syntax:literal $min:literal $max:expr, $json:literal,
       $help:literal;)*) => {
        /// A command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum CliCommand { $(#[doc = $help] $verb,)* }

        /// The table itself, in the order of the names.
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
    BackendSetHealth "backend.set_health" " <backend_pattern> [auto|healthy|sick]" 2 Some(2), false, "Take servers out, put them back, or have their probes decide.";
    Ban "ban" " <field> <operator> <arg> [&& <field> <oper> <arg> ...]" 1 None, false, "Invalidate every stored response for which all conditions hold.";
    BanList "ban.list" " [-j]" 0 Some(0), true, "The bans that may still matter, the newest first.";
    BanUrl "ban.url" " <regex>" 1 Some(1), false, "As `ban req.url ~ <regex>`, as in Varnish 3.";
    Banner "banner" "" 0 Some(0), false, "The greeting, once more.";
    DebugSrandom "debug.srandom" " [<seed>]" 0 Some(1), false, "Accepted, and without effect: chance here has no seed.";
    DebugXid "debug.xid" " [<xid> [<cachesize>]]" 0 Some(2), false, "The number of the next transaction; with one, it is set.";
    Help "help" " [-j|<command>]" 0 Some(1), true, "What can be asked; of one command, how.";
    PanicClear "panic.clear" " [-z]" 0 Some(1), false, "Forget the last panic.";
    PanicShow "panic.show" " [-j]" 0 Some(0), true, "The last panic.";
    ParamReset "param.reset" " <param>" 1 Some(1), false, "Set a parameter back to its default.";
    ParamSet "param.set" " [-j] <param> <value>" 2 Some(2), true, "Set a parameter.";
    ParamShow "param.show" " [-l|-j] [<param>|changed]" 0 Some(2), true, "Settings and limits by their names.";
    Pid "pid" " [-j]" 0 Some(0), true, "The daemon's process id.";
    Ping "ping" " [-j] [<timestamp>]" 0 Some(1), true, "Be answered, and keep the connection.";
    Purge "purge" " <field> <operator> <arg> [&& <field> <oper> <arg> ...]" 1 None, false, "As `ban`, as in Varnish 2.";
    PurgeUrl "purge.url" " <regex>" 1 Some(1), false, "As `ban req.url ~ <regex>`, as in Varnish 2.1.";
    Quit "quit" "" 0 Some(0), false, "End the connection.";
    Start "start" "" 0 Some(0), false, "Begin to serve.";
    Stats "stats.json" "" 0 Some(0), false, "Counters under Varnish's names, as `varnishstat -j` prints them.";
    Status "status" " [-j]" 0 Some(0), true, "Whether requests are served.";
    Stop "stop" "" 0 Some(0), false, "Cease to serve.";
    StorageList "storage.list" " [-j]" 0 Some(0), true, "Where responses are stored.";
    TlsCertCommit "tls.cert.commit" "" 0 Some(0), false, "Show new clients the certificates that were staged, and no longer those that were discarded.";
    TlsCertDiscard "tls.cert.discard" " <cert-id>" 1 Some(1), false, "Have the next commit take a certificate away.";
    TlsCertList "tls.cert.list" " [-j] [-s]" 0 Some(1), true, "The certificates by frontend, id, status and subject; with -s those that a commit changes.";
    TlsCertLoad "tls.cert.load" " [<cert-id>] <cert-file> [-k <key-file>] [-d] [-f <frontend>] [-p <protocols>] [-c <ciphers>] [-s <ciphersuites>] [-o]" 1 Some(14), false, "Stage a certificate from a PEM file, which has its key, too, without -k; -d makes it the default.";
    TlsCertReload "tls.cert.reload" "" 0 Some(0), false, "Read all certificates again from their files; of a bad file nothing changes.";
    TlsCertRollback "tls.cert.rollback" "" 0 Some(0), false, "Forget what was staged and discarded since the last commit.";
    UrlPurge "url.purge" " <regex>" 1 Some(1), false, "As `ban req.url ~ <regex>`, as in Varnish 2.0.";
    VclDeps "vcl.deps" " [-j]" 0 Some(0), true, "The VCLs that are loaded, and which of them need which.";
    VclDiscard "vcl.discard" " <name_pattern>..." 1 None, false, "Unload VCLs and labels; a VCL ends with its last request.";
    VclInline "vcl.inline" " <configname> <quoted_VCLstring> [auto|cold|warm]" 2 Some(3), false, "Compile and load a VCL that is given here.";
    VclLabel "vcl.label" " <label> <configname>" 2 Some(2), false, "Give a VCL another name, or the name to another VCL.";
    VclList "vcl.list" " [-j]" 0 Some(0), true, "The VCLs that are loaded, and which one is in force.";
    VclLoad "vcl.load" " <configname> <filename> [auto|cold|warm]" 2 Some(3), false, "Compile and load a VCL from a file.";
    VclShow "vcl.show" " [-v] [<configname>]" 0 Some(2), false, "The source of a VCL; with -v also what it includes, and the builtin VCL.";
    VclState "vcl.state" " <configname> [auto|cold|warm]" 2 Some(2), false, "Whether a VCL that is not in force probes its backends.";
    VclUse "vcl.use" " <configname|label>" 1 Some(1), false, "Put a VCL in force for every request that begins from now on.";
}

impl CliCommand {
    /// Tells whether a client may call the command before it has shown that it knows the secret.
    fn is_open(self) -> bool {
        matches!(self, Self::Auth | Self::Help | Self::Ping | Self::Quit)
    }
}

/// A command with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The command.
    pub verb: CliCommand,
    /// True if the answer is to be JSON.
    pub json: bool,
    /// Its arguments, without the `-j` that may stand before them.
    pub arguments: Vec<Vec<u8>>,
    /// All words of the request.
    pub words: Vec<Vec<u8>>,
}

const UNKNOWN: &str = "Unknown request.\nType 'help' for more info.\n";

impl Reply {
    /// The reply to a line that has no words.
    pub fn syntax(error: crate::SyntaxError) -> Self {
        Self::new(Status::Syntax, format!("{UNKNOWN}Syntax Error: {error}\n"))
    }
}

/// The command that `words` are.
///
/// # Errors
/// The reply when they are none: of an unknown name, or with too few or too many arguments.
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

/// The answer to `help`: all commands, or one of them.
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

/// The same as JSON; the time is in milliseconds since 1970.
pub fn help_json(call: &Call, unix_ms: u64) -> Reply {
    let mut text = json::begin(2, &call.words, unix_ms) + "\n";
    for (at, spec) in TABLE.iter().enumerate() {
        let string = |text: &str| json::string(text.as_bytes());
        let max = spec.max.map_or_else(|| "-1".to_owned(), |max| max.to_string());
        // Writing to a String cannot fail.
        _ = write!(
            text,
            "{}  {{\n    \"request\": {},\n    \"syntax\": {},\n    \"help\": {},\n    \
             \"minarg\": {},\n    \"maxarg\": {max},\n    \"flags\": \"\",\n    \"json\": {}\n  }}",
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
