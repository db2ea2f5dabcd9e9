//! The audit log: which caller asked for which change, and the outcome.
//!
//! Every change is a line on standard error. In the file it is a JSON object with the hash of the
//! line before it, so that only the last lines can be changed or removed unnoticed.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use message::date::HttpDate;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The hash field of a first line.
const FIRST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The text before a line's hash, and behind it.
const HASH: &str = ",\"hash\":\"";
const END: &str = "\"}";

/// The tail of the file that is searched for the last line; lines are shorter.
const TAIL_BYTES: u64 = 64 << 10;

/// A change, made or refused.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The caller: role and peer.
    pub(crate) who: String,
    /// Method and path.
    pub(crate) what: String,
    /// The request's body.
    pub(crate) asked: Value,
    /// The response's status.
    pub(crate) status: u16,
    /// The response's body, shortened.
    pub(crate) answer: Value,
}

/// The destination of changes: standard error, and a file if configured.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    file: Option<PathBuf>,
}

impl Audit {
    /// Appends to `file`, too. It is opened for every line, so that it may be renamed, and several
    /// daemons may write to it.
    ///
    /// # Errors
    /// A file that cannot be opened.
    pub fn new(file: Option<&Path>) -> io::Result<Self> {
        if let Some(path) = file {
            open(path)?;
        }
        Ok(Self { file: file.map(Path::to_owned) })
    }

    /// Logs a change.
    pub(crate) async fn note(&self, change: Change) {
        base::tell!(Notice, "larder: admin: {}", line(&change));
        let Some(path) = self.file.clone() else { return };
        // Disks are slow.
        let written = rt::blocking(move || {
            append(&path, &change).map_err(|error| format!("audit log {}: {error}", path.display()))
        });
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => base::tell!(Error, "larder: {problem}"),
            Err(error) => base::tell!(Error, "larder: audit log: {error}"),
        }
    }

    /// Checks that the lines of a log follow from each other, and returns their number.
    ///
    /// # Errors
    /// The first line that does not follow, or a file that cannot be read.
    pub fn verify(lines: impl BufRead) -> Result<usize, String> {
        let mut last = FIRST.to_owned();
        let mut count = 0;
        for line in lines.lines() {
            count += 1;
            let wrong = |what: &str| format!("line {count}: {what}");
            let line = line.map_err(|error| wrong(&error.to_string()))?;
            let (text, hash) = split(&line).ok_or_else(|| wrong("it is no entry"))?;
            let entry = serde_json::from_str(&text);
            let entry: Map<String, Value> = entry.map_err(|_| wrong("it is no entry"))?;
            if entry.get("before").and_then(Value::as_str) != Some(&last) {
                return Err(wrong("a line before it is missing or has been changed"));
            }
            let own = hash_of(&text);
            if hash != own {
                return Err(wrong("it has been changed"));
            }
            last = own;
        }
        Ok(count)
    }
}

/// A change as one line of plain ASCII: it contains text from clients.
fn line(change: &Change) -> String {
    let Change { who, what, asked, status, answer } = change;
    let shown = |value: &Value| if value.is_null() { String::new() } else { format!(" {value}") };
    let text = format!("{who}: {what}{}: {status}{}", shown(asked), shown(answer));
    let plain = |c: char| match c {
        ' '..='~' => c.to_string(),
        other => other.escape_unicode().to_string(),
    };
    text.chars().map(plain).collect()
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)
}

fn append(path: &Path, change: &Change) -> io::Result<()> {
    let Change { who, what, asked, status, answer } = change;
    let mut file = open(path)?;
    // The lock is held until the file is closed.
    file.lock()?;
    let now = rt::now();
    let (before, is_torn) = last_hash(&mut file)?;
    let mut entry = Map::new();
    for (name, value) in [
        ("time", json!(HttpDate::new(now.unix_secs()).to_string())),
        ("unix_ms", json!(now.unix_ms)),
        ("who", json!(who)),
        ("what", json!(what)),
        ("asked", asked.clone()),
        ("status", json!(status)),
        ("answer", answer.clone()),
        ("before", json!(before)),
    ] {
        entry.insert(name.to_owned(), value);
    }
    let text = Value::Object(entry).to_string();
    let hash = hash_of(&text);
    // A line torn by a crash stays, and shows.
    let start = if is_torn { "\n" } else { "" };
    let open = text.strip_suffix('}').unwrap_or(&text);
    file.write_all(format!("{start}{open}{HASH}{hash}{END}\n").as_bytes())?;
    file.sync_data()
}

/// The hash of the last line, and true if that line is torn.
fn last_hash(file: &mut File) -> io::Result<(String, bool)> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    let text = String::from_utf8_lossy(&tail);
    let is_torn = !text.is_empty() && !text.ends_with('\n');
    let hash = text.lines().next_back().and_then(|line| Some(split(line)?.1.to_owned()));
    Ok((hash.unwrap_or_else(|| FIRST.to_owned()), is_torn))
}

/// A line without its hash, and the hash.
fn split(line: &str) -> Option<(String, &str)> {
    let (open, rest) = line.rsplit_once(HASH)?;
    Some((format!("{open}}}"), rest.strip_suffix(END)?))
}

/// The hash of a line's bytes, since not every number is written as it was read.
fn hash_of(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(status: u16) -> Change {
        Change {
            who: "uid 0".to_owned(),
            what: "POST /reload".to_owned(),
            // A number whose text changes when it is read and written.
            asked: json!({ "hash": 1.7976931348623157e308, "x": 5e-324, "y": 0.1 + 0.2 }),
            status,
            answer: Value::Null,
        }
    }

    fn verify(text: &str) -> Result<usize, String> {
        Audit::verify(text.as_bytes())
    }

    #[tokio::test]
    async fn lines_follow_from_each_other_and_a_changed_one_shows() {
        let name = format!("larder-audit-{}.log", std::process::id());
        let path = std::env::temp_dir().join(name);
        _ = std::fs::remove_file(&path);
        for status in [200, 201, 203] {
            // As if by a new process each time.
            Audit::new(Some(&path)).expect("a file").note(change(status)).await;
        }
        let text = std::fs::read_to_string(&path).expect("written");
        assert_eq!(verify(&text), Ok(3));
        let line = |n: usize| format!("{}\n", text.lines().nth(n).expect("a line"));
        for (bad, why) in [
            (text.replacen("200", "202", 1), "line 1: it has been changed"),
            (line(1), "line 1: a line before it is missing"),
            (line(0) + &line(2), "line 2: a line before it is missing"),
            (line(0) + &line(2) + &line(1), "line 2: a line before it is missing"),
            (line(0) + "{}\n", "line 2: it is no entry"),
            (line(0) + "x\n", "line 2: it is no entry"),
        ] {
            let said = verify(&bad).expect_err("it shows");
            assert!(said.starts_with(why), "{said}");
        }
        std::fs::write(&path, &text[..text.len() - 9]).expect("torn");
        Audit::new(Some(&path)).expect("a file").note(change(200)).await;
        let torn = std::fs::read_to_string(&path).expect("written");
        assert_eq!(torn.lines().count(), 4, "what is torn stays, and the next is whole");
        assert!(verify(&torn).is_err_and(|said| said.starts_with("line 3: it is no entry")));
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn what_others_sent_is_one_line_of_ascii() {
        let asked = json!({ "url": "a\r\nlarder: b\u{9b}31m\u{202e}" });
        let text = line(&Change { asked, ..change(200) });
        assert!(text.bytes().all(|b| matches!(b, b' '..=b'~')), "{text}");
    }
}
