//! The log of changes: who asked for what, and what came of it.
//!
//! Every change is a line on standard error. In a file it is a JSON object that has the hash of the
//! line before it, so that none can be changed or taken out unnoticed but the last ones.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base::clock;
use data_encoding::HEXLOWER;
use message::date::HttpDate;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// What the first line has in place of a hash.
const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A change, done or refused.
#[derive(Clone, Debug)]
pub(crate) struct Change<'a> {
    /// By whom: its role and where it is.
    pub(crate) who: String,
    /// Method and path.
    pub(crate) what: String,
    /// The request's body.
    pub(crate) asked: &'a Value,
    /// The answer's status.
    pub(crate) status: u16,
    /// The answer's body, shortened.
    pub(crate) answer: Value,
}

/// Where changes are written.
#[derive(Debug, Default)]
pub struct Audit {
    file: Option<Mutex<Chain>>,
}

/// A file of chained lines.
#[derive(Debug)]
struct Chain {
    path: PathBuf,
    file: File,
    last: String,
}

impl Audit {
    /// Writes to standard error and, if there is one, to the end of `file`.
    ///
    /// # Errors
    /// A file that cannot be opened, that another process writes to, or whose lines do not follow
    /// from each other; the error names it.
    pub fn open(file: Option<&Path>) -> io::Result<Self> {
        let Some(path) = file else { return Ok(Self::default()) };
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
        let chain = Chain::open(path).map_err(named)?;
        Ok(Self { file: Some(Mutex::new(chain)) })
    }

    /// Writes a change down.
    pub(crate) fn note(&self, change: &Change<'_>) {
        let Change { who, what, asked, status, answer } = change;
        let asked_text = if asked.is_null() { String::new() } else { format!(" {asked}") };
        let answer_text = if answer.is_null() { String::new() } else { format!(" {answer}") };
        eprintln!("larder: admin: {who}: {what}{asked_text}: {status}{answer_text}");
        let Some(file) = &self.file else { return };
        let mut chain = file.lock();
        let now = clock::System.now();
        let entry = json!({
            "time": HttpDate::new(now.unix_secs()).to_string(),
            "unix_ms": now.unix_ms,
            "who": who,
            "what": what,
            "asked": asked,
            "status": status,
            "answer": answer,
        });
        if let Value::Object(entry) = entry
            && let Err(error) = chain.append(entry)
        {
            eprintln!("larder: audit log {}: {error}", chain.path.display());
        }
    }
}

impl Chain {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
        if file.try_lock().is_err() {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "another process writes to it"));
        }
        file.seek(SeekFrom::Start(0))?;
        let last = verify(BufReader::new(&file))
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Self { path: path.to_owned(), file, last })
    }

    fn append(&mut self, mut entry: Map<String, Value>) -> io::Result<()> {
        entry.insert("before".to_owned(), self.last.as_str().into());
        let hash = hash_of(&entry);
        entry.insert("hash".to_owned(), hash.as_str().into());
        self.file.write_all(format!("{}\n", Value::Object(entry)).as_bytes())?;
        self.last = hash;
        self.file.sync_data()
    }
}

/// The hash of a line: of everything else in it, with names in order.
fn hash_of(entry: &Map<String, Value>) -> String {
    let text = Value::Object(entry.clone()).to_string();
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

/// Reads a log to its end: the hash of its last line.
fn verify(lines: impl BufRead) -> Result<String, String> {
    let mut last = FIRST.to_owned();
    for (at, line) in lines.lines().enumerate() {
        let wrong = |what: &str| format!("line {}: {what}", at + 1);
        let line = line.map_err(|error| wrong(&error.to_string()))?;
        let entry = serde_json::from_str(&line);
        let mut entry: Map<String, Value> = entry.map_err(|_| wrong("it is no entry"))?;
        let hash = entry.remove("hash");
        if entry.get("before").and_then(Value::as_str) != Some(&last) {
            return Err(wrong("a line before it is missing or has been changed"));
        }
        let own = hash_of(&entry);
        if hash.as_ref().and_then(Value::as_str) != Some(&own) {
            return Err(wrong("it has been changed"));
        }
        last = own;
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(status: u16) -> Change<'static> {
        Change {
            who: "uid 0".to_owned(),
            what: "POST /reload".to_owned(),
            asked: &Value::Null,
            status,
            answer: Value::Null,
        }
    }

    #[test]
    fn lines_follow_from_each_other_and_a_changed_one_shows() {
        let name = format!("larder-audit-{}.log", std::process::id());
        let path = std::env::temp_dir().join(name);
        _ = std::fs::remove_file(&path);
        for status in [200, 201] {
            // Each time a new process, as it were.
            let audit = Audit::open(Some(&path)).expect("a file");
            audit.note(&change(status));
            assert!(Audit::open(Some(&path)).is_err(), "one writes at a time");
        }
        let text = std::fs::read_to_string(&path).expect("written");
        assert_eq!(text.lines().count(), 2);
        let changed = text.replacen("200", "202", 1);
        let without_first = text.lines().skip(1).map(|line| format!("{line}\n")).collect();
        for (bad, line) in [(changed, "line 1: it has been"), (without_first, "line 1: a line")] {
            std::fs::write(&path, bad).expect("written");
            let error = Audit::open(Some(&path)).expect_err("it shows").to_string();
            assert!(error.contains(line), "{error}");
        }
        std::fs::remove_file(&path).expect("removed");
    }
}
