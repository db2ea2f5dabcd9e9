//! A scenario: its text format, and what it means.
//!
//! A file is a row of scenarios. `== NAME` begins one, `-- SECTION` a part of it. Sections before
//! the first scenario apply to all scenarios of the file that do not replace them:
//!
//! - `-- vcl`: the program; without a line `vcl 4.x;` it gets one, and a backend for each of `o1`
//!   to `o4` that it names (`o1` in any case). `-- vcl FILE` takes a file of the templates' folder.
//! - `-- o1` to `-- o4`: an origin's replies, see [`ScriptedAnswer`].
//! - `-- params`: a parameter and its value per line.
//! - `-- file NAME`: a file below `${tmp}`. `-- label NAME`: a further program with that label.
//! - `-- steps`: the steps, see [`ScenarioStep`].
//! - `-- differs`: the reason for which Larder differs on purpose; then only expectations count.
//! - `-- allows`: a tolerated difference per line, with the reason behind it, see [`Leeway`].
//!
//! Indented lines belong to the line before them. `#` in the first column begins a comment, except
//! in a program or a file. `${o1}` is an origin's port (its unix socket is `${tmp}/o1.sock`),
//! `${dead}` one that refuses connections, another for each scenario.

use std::collections::BTreeMap;

pub(super) mod scenario_parser;
#[cfg(test)]
mod tests;

pub use scenario_parser::scenarios;

/// One scenario.
#[derive(Clone, Debug, Default)]
pub struct Scenario {
    /// The file's name, without its extension.
    pub file: String,
    /// The line of its name.
    pub line: usize,
    /// The scenario's name, unique in its file.
    pub name: String,
    /// The program's text, with placeholders.
    pub vcl: String,
    /// Further programs, by label.
    pub labels: BTreeMap<String, String>,
    /// Parameters to set.
    pub params: Vec<(String, String)>,
    /// Files by name.
    pub files: BTreeMap<String, String>,
    /// Replies by origin.
    pub origins: BTreeMap<String, Vec<ScriptedAnswer>>,
    /// Steps with their lines.
    pub steps: Vec<(usize, ScenarioStep)>,
    /// The reason for which the servers differ on purpose.
    pub differs: Option<String>,
    /// Tolerated differences.
    pub allows: Leeway,
}

/// Differences of the servers that are tolerated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leeway {
    /// `order`: the order in which requests reach the origins.
    pub order: bool,
    /// `framing`: the framing of replies; Varnish's multipart replies have no length.
    pub framing: bool,
}

impl Scenario {
    /// The `Host` of requests without one, distinct so that no two scenarios share an object.
    pub fn host(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.name.chars().map(plain).collect();
        format!("{name}.{}.test", self.file.to_ascii_lowercase())
    }
}

/// A reply of an origin.
///
/// `[METHOD] TARGET` in the first column (`*` for any target), and indented: the status with its
/// reason, field lines, an empty line, the body. `%n` in a body is the number of the request for
/// the target, `%t` the target. Of the replies that match a request, the first unused one is sent,
/// or else the last. Lines that begin with `!` say how. A request that no reply matches gets a 200
/// with a line that names the origin, the target and the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedAnswer {
    /// The method that it matches; `None` for any.
    pub method: Option<String>,
    /// The target that it matches, or `*`.
    pub target: String,
    /// `!if FIELD` or `!if FIELD: VALUE`: fields that a request must have.
    pub needs: Vec<(String, Option<String>)>,
    /// Status and reason.
    pub status: String,
    /// Field lines.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// The manner of sending.
    pub manner: Manner,
}

/// The manner in which an origin sends a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// `!delay 200ms`: a pause before the head.
    pub delay_ms: u64,
    /// `!stall 200ms`: a pause in the middle of the body.
    pub stall_ms: u64,
    /// `!drop`: closes the connection instead.
    pub drop: bool,
    /// `!chunked`: sends the body in two chunks.
    pub chunked: bool,
    /// `!gzip`: sends the body as gzip, with Content-Encoding, if the request accepts it.
    pub gzip: bool,
    /// `!close`: ends the body by closing the connection.
    pub close: bool,
    /// `!lf`: ends lines of the head without CR.
    pub lf: bool,
    /// `!cut`: closes the connection after half of the body.
    pub cut: bool,
    /// `!quiet`: does not record the request. For probes, which come at any time.
    pub quiet: bool,
    /// `!echo`: sends every byte back after the head.
    pub echo: bool,
}

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioStep {
    /// Requests, simultaneous if there are several (`& GET /` joins one with the next).
    Ask(Vec<ScenarioRequest>),
    /// `wait 200ms`.
    Wait(u64),
    /// `await o1 2`: waits until the origin has received this many requests.
    Await(String, usize),
    /// `cli WORDS`: a command, whose status is compared; with `cli+` its text is, too.
    Cli {
        /// The command.
        line: String,
        /// True if the text is compared.
        text: bool,
    },
    /// `say TEXT`: sends a line over the connection of the last request; it must come back.
    Say(String),
    /// `expect ...`: checks the last reply, or an origin.
    Expect(ScenarioExpectation),
    /// `counts NAME=N ...`: waits until these counters of Varnish's have grown by these numbers
    /// since the scenario began. Those of `MAIN` have no prefix, those of a backend are
    /// `VBE.o1.req`.
    Counts(Vec<(String, i64)>),
}

/// An expectation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioExpectation {
    /// `expect 200`.
    Status(u16),
    /// `expect X-Foo: bar`.
    Field(String, String),
    /// `expect no X-Foo`.
    NoField(String),
    /// `expect body: TEXT`; the newline at the end is ignored.
    Body(String),
    /// `expect o1 2`: number of requests that the origin has received.
    Seen(String, usize),
}

/// A request: `METHOD TARGET`, then `@NAME` for a connection of its own, `from IP` for a client
/// behind a proxy (PROXY protocol), `HTTP/1.0`, `chunked`, `after 200ms` for a pause before it
/// (among simultaneous ones). Indented: field lines (`-Host` removes a default one), an empty line,
/// the body. `RAW METHOD` sends the indented lines as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioRequest {
    /// The connection's name; requests of one name share a connection while it is open.
    pub connection: String,
    /// The method, which decides how the reply is read.
    pub method: String,
    /// The target.
    pub target: String,
    /// True for HTTP/1.0.
    pub old: bool,
    /// True for a chunked body.
    pub chunked: bool,
    /// Milliseconds before the request is sent.
    pub after_ms: u64,
    /// The client's address in the PROXY protocol.
    pub from: Option<String>,
    /// Field lines; the value `None` removes a default one.
    pub fields: Vec<(String, Option<String>)>,
    /// The body.
    pub body: Option<String>,
    /// The whole request as bytes.
    pub raw: Option<String>,
}
