//! The scenarios' text format, read into what is to be done.
//!
//! A file is a row of scenarios. `== NAME` begins one, `-- SECTION` a part of it; what stands
//! before the first scenario holds for all of the file that do not say otherwise. Sections:
//!
//! - `-- vcl`: the program; without a line `vcl 4.x;` it gets one, and a backend for each of `o1`
//!   to `o4` it names (`o1` in any case). `-- vcl FILE` takes a file of the templates' folder.
//! - `-- o1` to `-- o4`: what an origin answers, see [`Answer`].
//! - `-- params`: a parameter and its value on each line.
//! - `-- file NAME`: a file below `${tmp}`. `-- label NAME`: a further program with that label.
//! - `-- steps`: what is done, see [`Step`].
//! - `-- differs`: why Larder is meant to do otherwise; then only expectations count.
//! - `-- allows`: what need not be the same, a word on each line and the reason after it, see
//!   [`Leeway`].
//!
//! Indented lines belong to the line before them. `#` in the first column begins a comment, except
//! in a program or a file. `${o1}` is an origin's port (its UNIX socket is `${tmp}/o1.sock`),
//! `${dead}` one that refuses connections,
//! another for each scenario.

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
    /// The line its name stands on.
    pub line: usize,
    /// The scenario's name, unique in its file.
    pub name: String,
    /// The program's text, placeholders not yet filled in.
    pub vcl: String,
    /// Further programs, by label.
    pub labels: BTreeMap<String, String>,
    /// Parameters to set.
    pub params: Vec<(String, String)>,
    /// Files by name.
    pub files: BTreeMap<String, String>,
    /// Answers by origin.
    pub origins: BTreeMap<String, Vec<ScriptedAnswer>>,
    /// Steps, each with the line it stands on.
    pub steps: Vec<(usize, ScenarioStep)>,
    /// Why the two are meant to differ.
    pub differs: Option<String>,
    /// Parts that need not be the same.
    pub allows: Leeway,
}

/// Parts that need not be the same on both servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leeway {
    /// `order`: that in which requests reach the origins.
    pub order: bool,
    /// `framing`: the framing of answers; Varnish's pages of several parts have no length.
    pub framing: bool,
}

impl Scenario {
    /// The `Host` of requests that name none: no two scenarios share an object by accident.
    pub fn host(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = self.name.chars().map(plain).collect();
        format!("{name}.{}.test", self.file.to_ascii_lowercase())
    }
}

/// One answer of an origin.
///
/// `[METHOD] TARGET` in the first column (`*` for any target), and indented: the status with its
/// reason, field lines, an empty line, the body. `%n` in a body is how many requests for the target
/// there were, `%t` the target. Of the answers that fit a request the first not yet given is taken,
/// or else the last. Lines that begin with `!` say how it is given. What no answer fits gets a 200
/// with a line that names the origin, the target and the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedAnswer {
    /// The only method that it fits.
    pub method: Option<String>,
    /// The only target that it fits, or `*`.
    pub target: String,
    /// `!if FIELD` or `!if FIELD: VALUE`: fields that a request must have.
    pub needs: Vec<(String, Option<String>)>,
    /// Status and reason.
    pub status: String,
    /// Field lines.
    pub fields: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// The manner in which the answer is given.
    pub manner: Manner,
}

/// The manner in which an origin gives an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manner {
    /// `!delay 200ms`: before the head.
    pub delay_ms: u64,
    /// `!stall 200ms`: in the middle of the body.
    pub stall_ms: u64,
    /// `!drop`: the connection is closed instead.
    pub drop: bool,
    /// `!chunked`: the body comes in two chunks.
    pub chunked: bool,
    /// `!gzip`: the body comes in gzip where the request takes it, with a Content-Encoding.
    pub gzip: bool,
    /// `!close`: the connection's end is the body's.
    pub close: bool,
    /// `!lf`: lines of the head end without CR.
    pub lf: bool,
    /// `!cut`: half of the body, and the connection's end.
    pub cut: bool,
    /// `!quiet`: the request is not remembered. For probes, which come when they come.
    pub quiet: bool,
    /// `!echo`: after the head every byte is sent back.
    pub echo: bool,
}

/// Something that is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioStep {
    /// Requests, all at the same time if there are several (`& GET /` joins one with those after).
    Ask(Vec<ScenarioRequest>),
    /// `wait 200ms`.
    Wait(u64),
    /// `await o1 2`: until the origin has seen so many requests.
    Await(String, usize),
    /// `cli WORDS`: a command; its status is compared, with `cli+` its text, too.
    Cli {
        /// The command.
        line: String,
        /// The text counts.
        text: bool,
    },
    /// `say TEXT`: a line over the connection of the last request, which must come back.
    Say(String),
    /// `expect ...`: about the last answer, or an origin.
    Expect(ScenarioExpectation),
    /// `counts NAME=N ...`: what these counters of Varnish's have grown by since the scenario
    /// began, soon at least. Those of `MAIN` go without it, those of a backend as `VBE.o1.req`.
    Counts(Vec<(String, i64)>),
}

/// An expectation that a scenario pins down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioExpectation {
    /// `expect 200`.
    Status(u16),
    /// `expect X-Foo: bar`.
    Field(String, String),
    /// `expect no X-Foo`.
    NoField(String),
    /// `expect body: TEXT`; the end of the last line does not count.
    Body(String),
    /// `expect o1 2`: requests that the origin has seen.
    Seen(String, usize),
}

/// One request: `METHOD TARGET`, and after it `@NAME` for a connection of its own, `from IP` for a
/// client behind a proxy (PROXY protocol), `HTTP/1.0`, `chunked`, `after 200ms` to wait first (for
/// one of several at the same time). Indented: field lines (`-Host`
/// leaves out what is there by default), an empty line, the body. `RAW METHOD` sends the indented
/// lines as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScenarioRequest {
    /// The connection; requests of one name share one while it lasts.
    pub connection: String,
    /// The method, by which the answer is read.
    pub method: String,
    /// The target.
    pub target: String,
    /// HTTP/1.0.
    pub old: bool,
    /// The body goes in chunks.
    pub chunked: bool,
    /// Milliseconds that the request waits before it is sent.
    pub after_ms: u64,
    /// The client's address as a proxy tells it.
    pub from: Option<String>,
    /// Field lines; `None` as value takes a default one out.
    pub fields: Vec<(String, Option<String>)>,
    /// The body.
    pub body: Option<String>,
    /// The whole request, as it is sent.
    pub raw: Option<String>,
}
