//! Counts of instructions: runs the scenarios of `crates/counts` under valgrind, and compares the
//! cost of a round with the committed baseline.
//!
//! Instructions repeat exactly, also on a busy machine. They are those of the release profile, with
//! one codegen unit, so that unrelated code does not move between units. They depend on compiler, C
//! library and processor (AVX2 or not): a change of these must renew the baseline and nothing else.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const BASELINE: &str = "crates/counts/baseline.json";

/// Two numbers of rounds; their difference excludes start and preparation.
const FEW: u64 = 10_000;
const MANY: u64 = 20_000;

/// Increase over the baseline, in percent, from which a scenario fails.
const WORSE_PERCENT: u64 = 3;
/// Decrease below the baseline, in percent, from which it should be renewed, so that the gain is
/// kept.
const BETTER_PERCENT: u64 = 5;

/// Instructions per round, by scenario.
type Counts = BTreeMap<String, u64>;

/// Counts all scenarios and compares them with the baseline, or writes them as the new one.
pub(crate) fn run(root: &Path, write: bool) -> Result<String, String> {
    let binary = build(root)?;
    let names = output(&mut Command::new(&binary))?.0;
    let counted = names
        .lines()
        .map(|name| Ok((name.to_owned(), per_round(&binary, name)?)))
        .collect::<Result<Vec<_>, String>>()?;
    let file = root.join(BASELINE);
    let old = match fs::read_to_string(&file) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("{BASELINE}: {error}"))?,
        Err(error) if error.kind() == ErrorKind::NotFound => Counts::new(),
        Err(error) => return Err(format!("{BASELINE}: {error}")),
    };
    let (table, verdict) = compare(&counted, &old);
    if !write {
        return verdict.map(|said| format!("{table}{said}")).map_err(|why| format!("{table}{why}"));
    }
    let new: Counts = counted.into_iter().collect();
    let text = serde_json::to_string_pretty(&new).map_err(|error| error.to_string())?;
    fs::write(&file, text + "\n").map_err(|error| format!("{BASELINE}: {error}"))?;
    Ok(format!("{table}wrote {BASELINE}"))
}

/// Builds the scenarios, and returns the path of the binary.
fn build(root: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command
        .args(["build", "--release", "--package", "counts"])
        .args(["--message-format", "json-render-diagnostics"])
        .current_dir(root)
        .stderr(Stdio::inherit());
    let (messages, _) = output(&mut command)?;
    executable(&messages).ok_or_else(|| "cargo built no binary of `counts`".to_owned())
}

/// The binary's path in Cargo's `messages`.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

fn per_round(binary: &Path, name: &str) -> Result<u64, String> {
    let (few, many) = (instructions(binary, name, FEW)?, instructions(binary, name, MANY)?);
    let rounds = MANY - FEW;
    let more = many.checked_sub(few).ok_or_else(|| format!("{name}: more rounds cost less"))?;
    Ok((more + rounds / 2) / rounds)
}

/// Instructions of a run with this many rounds.
fn instructions(binary: &Path, name: &str, rounds: u64) -> Result<u64, String> {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary)
        .args([name, &rounds.to_string()]);
    let (_, said) = output(&mut command)?;
    collected(&said).ok_or_else(|| format!("valgrind counted nothing for {name}:\n{said}"))
}

/// The count in callgrind's last lines: `==1== Collected : 123`.
fn collected(said: &str) -> Option<u64> {
    let (_, count) = said.lines().find_map(|line| line.split_once(" Collected : "))?;
    count.trim().parse().ok()
}

/// Runs a command that must succeed. Returns its standard output and standard error.
fn output(command: &mut Command) -> Result<(String, String), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{name} is missing; on Debian: apt-get install {name}"),
        _ => format!("{name}: {error}"),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() { Ok((out, err)) } else { Err(format!("{name} failed:\n{err}")) }
}

/// The table, and the result of the comparison with a message.
fn compare(counted: &[(String, u64)], baseline: &Counts) -> (String, Result<String, String>) {
    let mut table = String::new();
    row(&mut table, "scenario", "instructions/op", "baseline", "change");
    let (mut worse, mut better, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for (name, count) in counted {
        let Some(old) = baseline.get(name) else {
            row(&mut table, name, count, "-", "-");
            unknown.push(name.as_str());
            continue;
        };
        let percent = (*count as f64 / *old as f64 - 1.0) * 100.0;
        row(&mut table, name, count, &old.to_string(), &format!("{percent:+.1} %"));
        if count * 100 > old * (100 + WORSE_PERCENT) {
            worse.push(name.as_str());
        } else if count * 100 < old * (100 - BETTER_PERCENT) {
            better.push(name.as_str());
        }
    }
    let gone = baseline.keys().filter(|name| !counted.iter().any(|(own, _)| own == *name));
    unknown.extend(gone.map(String::as_str));
    (table, verdict(&worse, &better, &unknown))
}

fn row(table: &mut String, name: &str, count: impl Display, before: &str, change: &str) {
    // Writing to a string cannot fail.
    _ = writeln!(table, "{name:<16} {count:>16} {before:>10} {change:>9}");
}

fn verdict(worse: &[&str], better: &[&str], unknown: &[&str]) -> Result<String, String> {
    const RENEW: &str = "`cargo xtask counts --write` renews the baseline";
    if !worse.is_empty() {
        let names = worse.join(", ");
        return Err(format!(
            "counts: more than {WORSE_PERCENT} % above the baseline: {names}. If that is the price of \
             something, say so in the commit; {RENEW}"
        ));
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        return Err(format!("counts: scenarios and baseline differ in: {names}; {RENEW}"));
    }
    if !better.is_empty() {
        let names = better.join(", ");
        return Ok(format!(
            "counts: passed; more than {BETTER_PERCENT} % below the baseline: {names}. Keep the gain: \
             {RENEW}"
        ));
    }
    Ok("counts: passed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(counted: &[(&str, u64)], baseline: &[(&str, u64)]) -> Result<String, String> {
        let counted: Vec<_> = counted.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let baseline = baseline.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        compare(&counted, &baseline).1
    }

    #[test]
    fn the_count_is_read_from_what_callgrind_says() {
        let said = "==7== Callgrind, a call-graph generating cache profiler\n==7== \n\
                    ==7== Events    : Ir\n==7== Collected : 38235616\n==7== \n\
                    ==7== I   refs:      38,235,616\n";
        assert_eq!(collected(said), Some(38_235_616));
        assert_eq!(collected("==7== Collected : many"), None);
        assert_eq!(collected(""), None);
    }

    #[test]
    fn the_binary_is_the_one_that_cargo_names() {
        let messages = "not json\n{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/t/counts\"}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/t/counts")));
        assert_eq!(executable("{}"), None);
    }

    #[test]
    fn three_percent_above_the_baseline_is_the_most() {
        assert!(judge(&[("hit", 1030)], &[("hit", 1000)]).is_ok());
        let why = judge(&[("key", 100), ("hit", 1031)], &[("key", 100), ("hit", 1000)]);
        assert!(why.expect_err("3.1 % above").contains("above the baseline: hit."));
    }

    #[test]
    fn a_gain_passes_and_asks_to_be_kept() {
        assert_eq!(judge(&[("hit", 950)], &[("hit", 1000)]).as_deref(), Ok("counts: passed"));
        let said = judge(&[("hit", 949)], &[("hit", 1000)]).expect("a gain");
        assert!(said.contains("below the baseline: hit."));
    }

    #[test]
    fn every_scenario_has_a_baseline_and_the_other_way_round() {
        let why = judge(&[("hit", 1)], &[]).expect_err("no baseline");
        assert!(why.contains("differ in: hit;"));
        let why = judge(&[("hit", 1)], &[("hit", 1), ("old", 1)]).expect_err("no scenario");
        assert!(why.contains("differ in: old;"));
    }

    #[test]
    fn the_table_has_a_row_for_each_scenario() {
        let counted = [("hit".to_owned(), 1100), ("new".to_owned(), 7)];
        let (table, _) = compare(&counted, &Counts::from([("hit".to_owned(), 1000)]));
        let rows: Vec<Vec<&str>> =
            table.lines().map(|row| row.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["hit", "1100", "1000", "+10.0", "%"]);
        assert_eq!(rows[2], ["new", "7", "-", "-"]);
    }
}
