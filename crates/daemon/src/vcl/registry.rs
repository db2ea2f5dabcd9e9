//! The registry: loaded programs, their labels, and which one is in force, by Varnish's rules and
//! in its words for `vcl.*`. It must never start or end a program itself.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use varnishcli::{Call, Reply, Status, json_begin, json_string};
use vcl::program::{Instance, ProgramRole};

use crate::glob::matches_glob;

/// The state of a program: when it is kept warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// While it is in force or labelled, and for a time afterwards.
    Auto,
    /// Never.
    Cold,
    /// Always.
    Warm,
}

impl State {
    /// Parses a state.
    pub(crate) fn of(word: Option<&[u8]>) -> Result<Self, Reply> {
        match word {
            None | Some(b"auto") => Ok(Self::Auto),
            Some(b"cold") => Ok(Self::Cold),
            Some(b"warm") => Ok(Self::Warm),
            Some(_) => Err(refuse("State must be one of auto, cold or warm.")),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Cold => "cold",
            Self::Warm => "warm",
        }
    }
}

/// A loaded program.
#[derive(Debug)]
pub(crate) struct LoadedProgram {
    pub(crate) instance: Arc<Instance>,
    pub(crate) state: State,
    /// Its backends are probed.
    pub(crate) warm: bool,
    /// The last time that it was in force or labelled.
    pub(crate) used: Instant,
    /// The configuration loaded it, and discards it with its next load.
    pub(crate) configured: bool,
    /// The file that sites name.
    pub(crate) file: Option<std::path::PathBuf>,
}

impl LoadedProgram {
    /// Its part in sites.
    pub(crate) fn role(&self) -> ProgramRole {
        self.instance.program().role()
    }
}

#[derive(Debug)]
enum Kind {
    Program(LoadedProgram),
    /// The name of the labelled program.
    Label(String),
}

#[derive(Debug)]
struct Entry {
    name: String,
    kind: Kind,
}

/// All programs and labels, in the order of loading.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    entries: Vec<Entry>,
    active: Option<String>,
}

/// A refusal of an invalid argument.
pub(crate) fn refuse(text: impl Into<String>) -> Reply {
    Reply::new(Status::Argument, text)
}

/// A refusal of what is not possible now.
fn cannot(text: impl Into<String>) -> Reply {
    Reply::new(Status::Cannot, text)
}

/// Checks a new name.
pub(crate) fn check_name(name: &str) -> Result<(), Reply> {
    let good = |(at, c): &(usize, char)| {
        c.is_ascii_alphabetic() || *at > 0 && (c.is_ascii_digit() || matches!(c, '_' | '-'))
    };
    match name.chars().enumerate().find(|pair| !good(pair)) {
        None if name.is_empty() => Err(refuse("Empty VCL name")),
        None => Ok(()),
        Some((_, c)) if c.is_ascii_graphic() => {
            Err(refuse(format!("Illegal character in VCL name ('{c}')")))
        }
        Some((_, c)) => {
            Err(refuse(format!("Illegal character in VCL name (0x{:02x})", u32::from(c))))
        }
    }
}

impl Registry {
    /// Returns true if no program is loaded.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The number of loaded programs.
    pub(crate) fn programs(&self) -> usize {
        self.loaded().count()
    }

    /// The programs, each with its name.
    pub(crate) fn loaded(&self) -> impl Iterator<Item = (&str, &LoadedProgram)> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::Program(loaded) => Some((entry.name.as_str(), loaded)),
            Kind::Label(_) => None,
        })
    }

    /// The programs, mutable, each with its name.
    pub(crate) fn loaded_mut(&mut self) -> impl Iterator<Item = (&str, &mut LoadedProgram)> {
        self.entries.iter_mut().filter_map(|entry| match &mut entry.kind {
            Kind::Program(loaded) => Some((entry.name.as_str(), loaded)),
            Kind::Label(_) => None,
        })
    }

    /// The labels, each with its program.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &LoadedProgram)> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::Label(target) => Some((entry.name.as_str(), self.program(target)?)),
            Kind::Program(_) => None,
        })
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// The program of this name, which is no label.
    pub(crate) fn program(&self, name: &str) -> Option<&LoadedProgram> {
        match &self.entry(name)?.kind {
            Kind::Program(loaded) => Some(loaded),
            Kind::Label(_) => None,
        }
    }

    /// The program in force.
    pub(crate) fn active(&self) -> Option<(&str, &LoadedProgram)> {
        let name = self.active.as_deref()?;
        let entry = self.entry(name)?;
        match &entry.kind {
            Kind::Program(loaded) => Some((&entry.name, loaded)),
            Kind::Label(target) => Some((target, self.program(target)?)),
        }
    }

    /// Checks that a new program may have this name.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn admit(&self, name: &str) -> Result<(), Reply> {
        check_name(name)?;
        match self.entry(name) {
            None => Ok(()),
            Some(_) => Err(refuse(format!("Already a VCL named {name}"))),
        }
    }

    /// Adds a program.
    pub(crate) fn add(&mut self, name: &str, loaded: LoadedProgram) {
        self.entries.push(Entry { name: name.to_owned(), kind: Kind::Program(loaded) });
    }

    fn known(&self, name: &str) -> Result<&Entry, Reply> {
        self.entry(name).ok_or_else(|| refuse(format!("No VCL named {name} known\n")))
    }

    /// Puts a program, or a label's, in force.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn use_it(&mut self, name: &str) -> Result<Reply, Reply> {
        let entry = self.known(name)?;
        if self.active.as_deref() == Some(name) {
            return Ok(Reply::ok(""));
        }
        self.may_decide(entry)?;
        self.active = Some(name.to_owned());
        Ok(Reply::ok(format!("VCL '{name}' now active")))
    }

    fn may_decide(&self, entry: &Entry) -> Result<(), Reply> {
        match &entry.kind {
            Kind::Program(LoadedProgram { state: State::Cold, .. }) => {
                Err(cannot(format!("VCL '{}' is cold - set to auto or warm first", entry.name)))
            }
            Kind::Program(loaded) if loaded.role() == ProgramRole::Extra => Err(cannot(format!(
                "VCL '{}' stands beside a site's settings and cannot decide alone",
                entry.name
            ))),
            Kind::Program(_) | Kind::Label(_) => Ok(()),
        }
    }

    /// Labels a program, or moves a label to it.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn label(&mut self, label: &str, name: &str) -> Result<Reply, Reply> {
        check_name(label)?;
        let is_program = |entry: &Entry| matches!(entry.kind, Kind::Program(_));
        if self.entry(label).is_some_and(is_program) {
            return Err(refuse(format!("{label} is not a label")));
        }
        let entry = self.known(name)?;
        if !is_program(entry) {
            return Err(cannot("VCL labels cannot point to labels"));
        }
        self.may_decide(entry)?;
        let kind = Kind::Label(name.to_owned());
        match self.entries.iter_mut().find(|entry| entry.name == label) {
            Some(entry) => entry.kind = kind,
            None => self.entries.push(Entry { name: label.to_owned(), kind }),
        }
        Ok(Reply::ok(""))
    }

    /// Sets a program's state.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn set_state(&mut self, name: &str, state: State) -> Result<Reply, Reply> {
        if matches!(self.known(name)?.kind, Kind::Label(_)) {
            return Err(refuse("Labels are always warm"));
        }
        if state == State::Cold {
            if self.active().is_some_and(|(active, _)| active == name) {
                return Err(cannot("Cannot set the active VCL cold."));
            }
            if self.labels_of(name).next().is_some() {
                return Err(cannot("Cannot set labeled VCL cold."));
            }
        }
        for (own, loaded) in self.loaded_mut() {
            if own == name {
                loaded.state = state;
            }
        }
        Ok(Reply::ok(""))
    }

    /// The labels of a program.
    fn labels_of<'a>(&'a self, program: &'a str) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter_map(move |entry| match &entry.kind {
            Kind::Label(target) if target == program => Some(entry.name.as_str()),
            Kind::Label(_) | Kind::Program(_) => None,
        })
    }

    /// The programs that switch to a label's.
    fn users_of<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a str> {
        let uses = move |loaded: &LoadedProgram| {
            loaded.instance.program().uses().labels.iter().any(|own| &**own == label)
        };
        self.loaded().filter(move |(_, loaded)| uses(loaded)).map(|(name, _)| name)
    }

    /// Removes everything that patterns match, or nothing.
    ///
    /// # Errors
    /// The refusal.
    pub(crate) fn discard(&mut self, patterns: &[&str]) -> Result<Vec<LoadedProgram>, Reply> {
        let mut going: Vec<String> = Vec::new();
        for pattern in patterns {
            let like = |entry: &&Entry| matches_glob(pattern.as_bytes(), entry.name.as_bytes());
            let meant: Vec<_> = self.entries.iter().filter(like).map(|e| e.name.clone()).collect();
            if meant.is_empty() {
                return Err(refuse(format!("No VCL name matches {pattern}\n")));
            }
            going.extend(meant);
        }
        self.may_go(&going)?;
        let mut gone = Vec::new();
        for name in &going {
            if let Some(at) = self.entries.iter().position(|entry| entry.name == *name)
                && let Kind::Program(loaded) = self.entries.remove(at).kind
            {
                gone.push(loaded);
            }
        }
        Ok(gone)
    }

    /// Checks that no remaining program needs a removed one.
    fn may_go(&self, going: &[String]) -> Result<(), Reply> {
        let stays = |name: &&str| !going.iter().any(|own| own == name);
        let listed = |names: Vec<&str>| {
            names.iter().fold(String::new(), |mut text, name| {
                // Writing to a String cannot fail.
                _ = writeln!(text, "\t{name}");
                text
            })
        };
        for name in going {
            if self.active.as_ref() == Some(name) {
                return Err(cannot(format!("Cannot discard active VCL program {name}\n")));
            }
            let labels: Vec<_> = self.labels_of(name).filter(stays).collect();
            if !labels.is_empty() {
                let labels = listed(labels);
                return Err(cannot(format!(
                    "Cannot discard labeled VCL program {name}:\n{labels}"
                )));
            }
            let is_label = self.entry(name).is_some_and(|e| matches!(e.kind, Kind::Label(_)));
            let users: Vec<_> = self.users_of(name).filter(stays).collect();
            if is_label && !users.is_empty() {
                let users = listed(users);
                return Err(cannot(format!(
                    "Cannot discard VCL label {name}, other VCLs depend on it:\n{users}"
                )));
            }
        }
        Ok(())
    }

    /// Decides which programs are to be warm. One in state auto cools when it was not used for
    /// `cooldown_s` seconds. The result lists the changed programs, each with true if it is warm
    /// now.
    pub(crate) fn settle(&mut self, now: Instant, cooldown_s: f64) -> Vec<(Arc<Instance>, bool)> {
        let active = self.active().map(|(name, _)| name.to_owned());
        let labelled: Vec<_> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.kind {
                Kind::Label(target) => Some(target.clone()),
                Kind::Program(_) => None,
            })
            .collect();
        let mut changed = Vec::new();
        for (name, loaded) in self.loaded_mut() {
            let needed = active.as_deref() == Some(name) || labelled.iter().any(|own| own == name);
            if needed {
                loaded.used = now;
            }
            let fresh = now.duration_since(loaded.used).as_secs_f64() < cooldown_s;
            let warm = match loaded.state {
                State::Warm => true,
                State::Cold => false,
                State::Auto => needed || fresh,
            };
            if warm != loaded.warm {
                loaded.warm = warm;
                changed.push((Arc::clone(&loaded.instance), warm));
            }
        }
        changed
    }
}

/// The lists of programs.
impl Registry {
    fn rows(&self, busy: &dyn Fn(&LoadedProgram) -> usize) -> Vec<ProgramRow<'_>> {
        let row = |entry: &'_ Entry| -> Option<(State, bool, usize)> {
            let loaded = match &entry.kind {
                Kind::Program(loaded) => loaded,
                Kind::Label(target) => self.program(target)?,
            };
            Some((loaded.state, loaded.warm, busy(loaded)))
        };
        let make = |entry| {
            let (state, warm, busy) = row(entry)?;
            Some(ProgramRow {
                name: &entry.name,
                active: self.active.as_ref() == Some(&entry.name),
                state: match entry.kind {
                    Kind::Program(_) => state.word(),
                    Kind::Label(_) => "label",
                },
                warm: warm || matches!(entry.kind, Kind::Label(_)),
                busy,
                labels: self.labels_of(&entry.name).count(),
                target: match &entry.kind {
                    Kind::Label(target) => Some(target),
                    Kind::Program(_) => None,
                },
                users: match entry.kind {
                    Kind::Label(_) => self.users_of(&entry.name).count(),
                    Kind::Program(_) => 0,
                },
            })
        };
        self.entries.iter().filter_map(make).collect()
    }

    /// The reply to `vcl.list`; `busy` counts the requests that run in a program.
    pub(crate) fn list(&self, busy: &dyn Fn(&LoadedProgram) -> usize) -> String {
        let rows = self.rows(busy);
        let width =
            |of: fn(&ProgramRow<'_>) -> usize| rows.iter().map(of).max().unwrap_or_default();
        let (status, state) = (width(|r| r.status().len()), width(|r| r.state.len()));
        let (name, last) = (width(|r| r.name.len()), rows.iter().any(|r| r.target.is_some()));
        let line = |row: &ProgramRow<'_>| {
            let ProgramRow { name: own, state: word, busy, .. } = row;
            let temperature = row.temperature();
            let mut text = format!(
                "{:1$}{word:2$}{temperature}{busy:>10}    ",
                row.status(),
                status + 3,
                state + 4
            );
            let more = row.more();
            // Writing to a String cannot fail.
            _ = match more.filter(|_| last) {
                Some(more) => writeln!(text, "{own:0$}{more}", name + 4),
                None => writeln!(text, "{own}"),
            };
            text
        };
        rows.iter().map(line).collect()
    }

    /// The reply as JSON.
    pub(crate) fn list_json(&self, busy: &dyn Fn(&LoadedProgram) -> usize) -> String {
        let rows: Vec<_> = self.rows(busy).iter().map(ProgramRow::json).collect();
        format!("\n{}", rows.join(",\n"))
    }

    /// The name of each entry, with the entries that it needs.
    fn needs(&self) -> Vec<(&str, Vec<&str>)> {
        let mut all = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let needs = match &entry.kind {
                Kind::Label(target) => vec![target.as_str()],
                Kind::Program(loaded) => {
                    let labels = &loaded.instance.program().uses().labels;
                    labels.iter().map(|label| self.own(label)).collect()
                }
            };
            all.push((entry.name.as_str(), needs));
        }
        all
    }

    /// A label, borrowed from this registry.
    fn own(&self, label: &str) -> &str {
        self.entry(label).map_or("", |entry| &entry.name)
    }

    /// The reply to `vcl.deps`.
    pub(crate) fn deps(&self, call: &Call, unix_ms: u64) -> String {
        let all = self.needs();
        if call.json {
            let row = |(name, needs): &(&str, Vec<&str>)| {
                let needs: Vec<_> = needs
                    .iter()
                    .map(|need| format!("      {}", json_string(need.as_bytes())))
                    .collect();
                let needs = match needs.is_empty() {
                    true => "[]".to_owned(),
                    false => format!("[\n{}\n    ]", needs.join(",\n")),
                };
                let name = json_string(name.as_bytes());
                format!("  {{\n    \"name\": {name},\n    \"deps\": {needs}\n  }}")
            };
            let rows: Vec<_> = all.iter().map(row).collect();
            return format!("{}\n{}\n]\n", json_begin(1, &call.words, unix_ms), rows.join(",\n"));
        }
        let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or_default() + 3;
        let lines = all.iter().flat_map(|(name, needs)| match &needs[..] {
            [] => vec![format!("{name}\n")],
            needs => needs.iter().map(|need| format!("{name:width$}{need}\n")).collect(),
        });
        lines.collect()
    }
}

/// One row of `vcl.list`.
struct ProgramRow<'a> {
    name: &'a str,
    active: bool,
    state: &'static str,
    warm: bool,
    busy: usize,
    /// The number of its labels.
    labels: usize,
    /// The program of a label.
    target: Option<&'a str>,
    /// Programs that name it in `return (vcl(...))`.
    users: usize,
}

impl ProgramRow<'_> {
    fn status(&self) -> &'static str {
        if self.active { "active" } else { "available" }
    }

    fn temperature(&self) -> &'static str {
        if self.warm { "warm" } else { "cold" }
    }

    fn more(&self) -> Option<String> {
        match (self.target, self.labels) {
            (Some(target), _) if self.users > 0 => {
                Some(format!("->    {target} ({} return(vcl))", self.users))
            }
            (Some(target), _) => Some(format!("->    {target}")),
            (None, 0) => None,
            (None, 1) => Some("<-    (1 label)".to_owned()),
            (None, labels) => Some(format!("<-    ({labels} labels)")),
        }
    }

    fn json(&self) -> String {
        let mut text = format!(
            "  {{\n    \"status\": \"{}\",\n    \"state\": \"{}\",\n    \"temperature\": \"{}\",\n    \
             \"busy\": {},\n    \"name\": {}",
            self.status(),
            self.state,
            self.temperature(),
            self.busy,
            json_string(self.name.as_bytes())
        );
        // Writing to a String cannot fail.
        if let Some(target) = self.target {
            let target = json_string(target.as_bytes());
            _ = write!(text, ",\n    \"label\": {{\n      \"name\": {target}");
            if self.users > 0 {
                _ = write!(text, ",\n\"refs\": {}", self.users);
            }
            text.push_str("\n      }");
        }
        if self.labels > 0 {
            _ = write!(text, ",\n    \"labels\": {}", self.labels);
        }
        text + "\n}"
    }
}

#[cfg(test)]
mod tests;
