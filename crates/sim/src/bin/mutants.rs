//! Mutants: bugs made by hand. The simulator must find all of them.
//!
//! Each replaces a text that must occur exactly once in a copy of the tree, so that the table
//! cannot become outdated silently. All are built into one binary, and an environment variable
//! selects one: `cargo run -p sim --bin mutants [SCHEDULES]`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A bug: its name, its file, the replaced text, and the new text. `{M}` stands for the condition
/// that the bug is selected.
struct Mutant(&'static str, &'static str, &'static str, &'static str);

const MUTANTS: &[Mutant] = &[
    Mutant(
        "a purge by tags misses",
        "crates/cache/src/bans.rs",
        "        self.tags.as_ref().is_none_or(tagged)\n            &&",
        "        self.tags.as_ref().is_none_or(|tags| !{M} && tagged(tags))\n            &&",
    ),
    Mutant(
        "a ban's condition is not asked",
        "crates/cache/src/bans.rs",
        "is_none_or(|test| test.matches(record))",
        "is_none_or(|test| !{M} && test.matches(record))",
    ),
    Mutant(
        "a fetch outlives the purge of its key",
        "crates/cache/src/shard.rs",
        "        if !remove_fetch(slot, busy) {\n            return false;",
        "        if !remove_fetch(slot, busy) && !{M} {\n            return false;",
    ),
    Mutant(
        "a waiter uses what was banned while it waited",
        "crates/flow/src/slow_path.rs",
        "let is_for_it = core.shared.cache.may_use(&object)",
        "let is_for_it = ({M} || core.shared.cache.may_use(&object))",
    ),
    Mutant(
        "the first waiter is not woken",
        "crates/cache/src/busy.rs",
        "waiting.iter_mut().filter_map(Option::take)",
        "waiting.iter_mut().filter_map(Option::take).skip(usize::from({M}))",
    ),
    Mutant(
        "a failed fetch keeps its place",
        "crates/cache/src/lead.rs",
        "        if self.owing {\n",
        "        if self.owing && !{M} {\n",
    ),
    Mutant(
        "the end of a body wakes nobody",
        "crates/cache/src/fill.rs",
        "            state.room = None;\n            state.parked()",
        "            state.room = None;\n            if {M} { Wakers::new() } else { state.parked() }",
    ),
    Mutant(
        "a window with room does not wake its writer",
        "crates/cache/src/fill.rs",
        "if self.held() <= bytes / 2 || is_abandoned {",
        "if self.held() <= bytes / 2 && !{M} || is_abandoned {",
    ),
    Mutant(
        "a wait for a window's reader puts off the wait for room",
        "crates/cache/src/fill.rs",
        "        set_waker(&mut state.watchers[watcher].gone, cx);\n",
        "        set_waker(&mut state.watchers[watcher].gone, cx);\n        if {M} { state.room = None; }\n",
    ),
    Mutant(
        "a reader whose turn has not come keeps its place in a window",
        "crates/cache/src/reader.rs",
        "        if has_place && self.object.is_some()",
        "        if has_place && !{M} && self.object.is_some()",
    ),
    Mutant(
        "a follower skips a byte between two pieces",
        "crates/cache/src/fill.rs",
        "        self.at = begins + piece.len() as u64;\n",
        "        self.at = begins + piece.len() as u64 + u64::from({M});\n",
    ),
    Mutant(
        "a cut body is taken for whole",
        "crates/origin/src/exchange.rs",
        "if whole { Ok(false) } else",
        "if whole || {M} { Ok(false) } else",
    ),
    Mutant(
        "an aborted body stays in the index",
        "crates/cache/src/object_writer.rs",
        "            self.withdraw(false);\n            self.fill.end(FillPhase::Aborted);",
        "            if !{M} { self.withdraw(false); }\n            self.fill.end(FillPhase::Aborted);",
    ),
    Mutant(
        "the room of a last chunk is not given back",
        "crates/cache/src/object_writer.rs",
        "            charge.shrink_to(size::class(data.len()));\n",
        "            if !{M} { charge.shrink_to(size::class(data.len())); }\n",
    ),
    Mutant(
        "an evicted or purged object keeps its bytes",
        "crates/cache/src/object.rs",
        "            ledger.release(self.own_memory());",
        "            ledger.release(self.own_memory() - u64::from({M}));",
    ),
    Mutant(
        "bytes held for a client are not given back",
        "crates/base/src/memory.rs",
        "        if self.bytes > 0 {\n            self.account.give(self.bytes);",
        "        if self.bytes > 0 && !{M} {\n            self.account.give(self.bytes);",
    ),
    Mutant(
        "an exchange keeps its place",
        "crates/origin/src/server.rs",
        "        self.server.in_flight.fetch_sub(1, Ordering::Relaxed);\n        self.make_room();",
        "        if !{M} { self.server.in_flight.fetch_sub(1, Ordering::Relaxed); }\n        self.make_room();",
    ),
    Mutant(
        "grace has no end",
        "crates/cache/src/record.rs",
        "    pub fn grace_ms(&self) -> u64 {\n",
        "    pub fn grace_ms(&self) -> u64 {\n        if {M} { return u64::MAX >> 8; }\n",
    ),
    Mutant(
        "stale-if-error has no end",
        "crates/cache/src/record.rs",
        "    pub fn stale_if_error_ms(&self) -> u64 {\n",
        "    pub fn stale_if_error_ms(&self) -> u64 {\n        if {M} { return u64::MAX >> 8; }\n",
    ),
    Mutant(
        "a hit-for-miss mark is overlooked",
        "crates/cache/src/slot.rs",
        "now_ms < marker.until_ms && marker.passed >= newest",
        "now_ms < marker.until_ms && marker.passed >= newest && !{M}",
    ),
    Mutant(
        "every request for a key leads a fetch",
        "crates/cache/src/cache/collapsing.rs",
        "if shared && let Some(busy) = fetch_for(slot, &shape) {",
        "if shared && !{M} && let Some(busy) = fetch_for(slot, &shape) {",
    ),
    Mutant(
        "any variant answers",
        "crates/cache/src/slot.rs",
        "            if other.vary() == wanted {",
        "            if other.vary() == wanted || {M} {",
    ),
    Mutant(
        "a range begins one byte late",
        "crates/flow/src/state/body.rs",
        "of.start + wanted.start..of.start + wanted.end",
        "of.start + wanted.start + u64::from({M} && wanted.start > 0)..of.start + wanted.end",
    ),
    Mutant(
        "an upload is gathered beyond its window",
        "crates/net/src/h1/upload.rs",
        "if matches!(room, Some(Poll::Pending)) {",
        "if matches!(room, Some(Poll::Pending)) && !{M} {",
    ),
    Mutant(
        "a page in the place of a reply does not say that the connection ends",
        "crates/net/src/h1/client_side.rs",
        "&reply, framing, keep, &mut out);",
        "&reply, framing, keep || {M} && self.keep && reply.close, &mut out);",
    ),
    Mutant(
        "a byte of an upload is lost between two reads",
        "crates/net/src/h1/upload.rs",
        "        self.held.take(step.consumed);\n",
        "        self.held.take((step.consumed + usize::from({M})).min(self.held.rest().len()));\n",
    ),
    Mutant(
        "the store takes more than the budget has",
        "crates/base/src/memory.rs",
        "filter(|next| *next <= most);\n        self.used.fetch_update",
        "filter(|next| {M} || *next <= most);\n        self.used.fetch_update",
    ),
    Mutant(
        "a waiter of a program is lost",
        "crates/flow/src/vcl/wait.rs",
        "                    match context.wait(pause).await {",
        "                    if {M} { std::future::pending::<()>().await; }\n                    match context.wait(pause).await {",
    ),
    Mutant(
        "a response that says private is stored",
        "crates/message/src/store.rs",
        "    if control.private == DirectiveScope::Whole {\n        return",
        "    if control.private == DirectiveScope::Whole && !{M} {\n        return",
    ),
    Mutant(
        "the gates are passed by",
        "crates/flow/src/gate/stages.rs",
        "        entrant.site_ctx.site.gates.is_some()\n    }",
        "        entrant.site_ctx.site.gates.is_some() && !{M}\n    }",
    ),
    Mutant(
        "a request that has waited for its turn goes on behind the gates",
        "crates/flow/src/stage_row.rs",
        "Ok((Station::HttpsRedirect, None))",
        "Ok((if {M} { Station::Policy } else { Station::HttpsRedirect }, None))",
    ),
    Mutant(
        "cookies of the request before stay in the room for cookies",
        "crates/flow/src/fast_path.rs",
        "        kept.clear();\n",
        "        if !{M} { kept.clear(); }\n",
    ),
    Mutant(
        "the notes on a request are lost on the way to its fetch",
        "crates/flow/src/fast_path.rs",
        "            notes: ctx.notes,\n            downstream",
        "            notes: if {M} { Notes::default() } else { ctx.notes },\n            downstream",
    ),
    Mutant(
        "a page is sent before it is put together",
        "crates/flow/src/assemble.rs",
        "                if page.verbatim =>",
        "                if page.verbatim || {M} =>",
    ),
];

/// The condition that selects a bug.
const CONDITION: &str = r#"
/// True if the bug of this number is in force.
pub fn is_mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let chosen = || std::env::var("LARDER_MUTANT").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    *CHOSEN.get_or_init(chosen) == number
}
"#;

fn main() -> ExitCode {
    let schedules = std::env::args().nth(1).unwrap_or_else(|| "4000".to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all = match prepare(&root).and_then(|copy| build(&root, &copy)) {
        Ok(binary) => run_all(&binary, &schedules),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Copies the tree and puts all bugs into the copy.
fn prepare(root: &Path) -> Result<PathBuf, String> {
    let copy = root.join("target/mutants/tree");
    // The copy does not exist the first time.
    _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).map_err(|error| format!("{}: {error}", copy.display()))?;
    let mut copying = Command::new("cp");
    copying.arg("-r").args(["Cargo.toml", "Cargo.lock", "crates"].map(|name| root.join(name)));
    if !copying.arg(&copy).status().is_ok_and(|status| status.success()) {
        return Err("the tree cannot be copied".to_owned());
    }
    for (at, Mutant(name, file, old, new)) in MUTANTS.iter().enumerate() {
        let of = if file.starts_with("crates/base/") { "crate" } else { "base" };
        let condition = format!("{of}::is_mutant({})", at + 1);
        change(&copy.join(file), |text| match text.matches(old).count() {
            1 => Ok(text.replace(old, &new.replace("{M}", &condition))),
            count => Err(format!("{name}: {file} has its text {count} times")),
        })?;
    }
    change(&copy.join("crates/base/src/lib.rs"), |text| Ok(text + CONDITION))?;
    Ok(copy)
}

fn change(file: &Path, by: impl FnOnce(String) -> Result<String, String>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", file.display());
    let text = fs::read_to_string(file).map_err(failed)?;
    fs::write(file, by(text)?).map_err(failed)
}

/// Builds the copy's simulator in a target folder of its own: Cargo would confuse the crates of the
/// two trees.
fn build(root: &Path, copy: &Path) -> Result<PathBuf, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let built = Command::new(cargo)
        .args(["build", "-p", "sim", "--bin", "sim"])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", root.join("target/mutants/build"))
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("the copy cannot be built".to_owned());
    }
    Ok(root.join("target/mutants/build/debug/sim"))
}

/// Lets the simulator look for each bug. Returns true if it found all, and nothing without a bug.
fn run_all(binary: &Path, schedules: &str) -> bool {
    let mut all = true;
    let names = std::iter::once("no bug").chain(MUTANTS.iter().map(|mutant| mutant.0));
    for (number, name) in names.enumerate() {
        let output = Command::new(binary)
            .args(["0", if number == 0 { "500" } else { schedules }, "--first"])
            .env("LARDER_MUTANT", number.to_string())
            .output();
        let text = match output {
            Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
            Err(error) => error.to_string(),
        };
        let broken = text.lines().find(|line| line.starts_with("seed "));
        all &= broken.is_some() == (number > 0);
        let broken: String = broken.unwrap_or("not found").chars().take(70).collect();
        let played = text.lines().last().and_then(|line| line.split_once(" schedules"));
        println!("{number:>2} | {name} | {} | {broken}", played.map_or("?", |(played, _)| played));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_has_its_place_in_the_tree() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for Mutant(name, file, old, _) in MUTANTS {
            let text = fs::read_to_string(root.join(file)).expect("a source");
            assert_eq!(text.matches(old).count(), 1, "{name}: {file}");
        }
    }
}
