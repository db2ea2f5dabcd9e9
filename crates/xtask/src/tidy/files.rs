//! Rules about one source file: length of the file, its functions and lines, calls that its crate
//! may not make, unfinished work.

use super::functions::{functions, test_lines};
use super::lexer::{Masked, mask};
use super::words::{questions, vague};

/// A file beyond this tells more than one story (STYLE.md).
const FILE_LINES: usize = 800;

/// A function beyond this does not fit a screen (STYLE.md).
const FUNCTION_LINES: usize = 70;

/// As in `rustfmt.toml`, which leaves comments and literals alone.
const LINE_CHARACTERS: usize = 100;

/// Crates that may read a clock: `base` and `rt` do it for all, `origin`, `net` and `admin` have
/// deadlines of sockets, and the rest are programs and tools.
const READS_CLOCKS: &[&str] = &[
    "base", "rt", "origin", "net", "admin", "daemon", "bench", "tools", "larder", "testkit",
    "xtask",
];

/// Crates that use `rt` for time, timers, tasks and blocking work, so that a simulation can run
/// them.
const ASKS_RT: &[&str] = &["cache", "origin", "flow", "net", "acme", "admin", "daemon"];
/// Calls that bypass `rt`.
const PAST_RT: &[&str] = &[
    "tokio::time",
    "tokio::spawn(",
    "task::spawn",
    "task::yield_now",
    "thread::sleep(",
    "System.now(",
    "System.micros(",
];

/// Crates whose lines on standard error are a service's log, or appear beside it.
const PRINTS_LINES: &[&str] = &["admin", "daemon", "larder", "net", "tools"];

/// Crates that run in the daemon, whose lines belong in its log.
const LOGS_LINES: &[&str] = &["admin", "daemon", "flow", "net"];

/// Broken rules in the file `name`, with their lines.
pub(crate) fn check(name: &str, source: &str) -> Vec<(usize, String)> {
    let masked = mask(source);
    let mut problems = Vec::new();
    let lines = source.lines().count();
    if lines > FILE_LINES {
        problems.push((1, format!("{lines} lines; at most {FILE_LINES}: split it by topic")));
    }
    if name.ends_with("/mod.rs") && !is_test_file(name) {
        problems.push((1, "a module's root stands beside its folder, not in it".to_owned()));
    }
    if !has_head_comment(source) {
        problems
            .push((1, "no `//!` comment at the head that says what this file is for".to_owned()));
    }
    problems.extend(long_functions(name, &masked));
    problems.extend(long_lines(source, &masked));
    problems.extend(left_overs(&masked));
    problems.extend(calls(name, &masked));
    problems.extend(questions(source));
    problems.extend(vague(source));
    problems
}

/// Calls that read a clock instead of taking the time as a value (`base::Now`), calls that bypass
/// `rt`, and log lines that are not written as a whole.
fn calls(name: &str, masked: &Masked) -> Vec<(usize, String)> {
    let owner = name.split('/').nth(1).unwrap_or_default();
    let mut rules: Vec<(&[&str], &str)> = Vec::new();
    if !READS_CLOCKS.contains(&owner) {
        let what = "reads a clock; take `base::Now` as a value";
        rules.push((&["Instant::now(", "SystemTime::now("], what));
    }
    if ASKS_RT.contains(&owner) {
        rules.push((PAST_RT, "goes past `rt`, so that no simulation can run it"));
    }
    if PRINTS_LINES.contains(&owner) {
        rules.push((&["eprintln!("], "writes a line in pieces; take `base::say!`"));
    }
    if LOGS_LINES.contains(&owner) {
        rules.push((&["base::say!("], "is not in the daemon's log; take `base::tell!`"));
    }
    if rules.is_empty() || is_test_file(name) {
        return Vec::new();
    }
    let tests = test_lines(&masked.code);
    let mut found = Vec::new();
    for (code, line) in masked.code.lines().zip(1..) {
        for (calls, what) in &rules {
            let is_one = calls.iter().any(|call| code.contains(call));
            if is_one && !tests.iter().any(|region| region.contains(&line)) {
                found.push((line, (*what).to_owned()));
            }
        }
    }
    found
}

fn has_head_comment(source: &str) -> bool {
    let first = source.lines().map(str::trim).find(|line| {
        !line.is_empty() && !line.starts_with("#![") && !line.starts_with("// Copyright")
    });
    first.is_some_and(|line| line.starts_with("//!"))
}

fn long_functions(name: &str, masked: &Masked) -> Vec<(usize, String)> {
    let tests_only = is_test_file(name);
    functions(&masked.code)
        .into_iter()
        .filter(|function| !tests_only && !function.test && function.length > FUNCTION_LINES)
        .map(|function| {
            let length = function.length;
            let what = format!("`{}` has {length} lines; at most {FUNCTION_LINES}", function.name);
            (function.line, what)
        })
        .collect()
}

/// Returns true if the file `name` is compiled for tests only.
pub(super) fn is_test_file(name: &str) -> bool {
    name.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// Long lines, except those with a long literal: a divided text cannot be searched for.
fn long_lines(source: &str, masked: &Masked) -> Vec<(usize, String)> {
    let code = masked.code.lines();
    source
        .lines()
        .zip(code)
        .zip(1..)
        .filter(|((line, code), _)| {
            line.chars().count() > LINE_CHARACTERS && !long_by_literal(line, code)
        })
        .map(|((line, _), number)| {
            let width = line.chars().count();
            (number, format!("{width} characters; at most {LINE_CHARACTERS}"))
        })
        .collect()
}

fn long_by_literal(line: &str, code: &str) -> bool {
    let literal: usize = code
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|inside| inside.chars().count())
        .filter(|width| *width > LINE_CHARACTERS / 5)
        .sum();
    !code.trim().is_empty() && line.chars().count() - literal <= LINE_CHARACTERS
}

/// Marks of unfinished work. Their texts are divided here so that a search for them does not find
/// this file.
fn left_overs(masked: &Masked) -> Vec<(usize, String)> {
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|halves| halves.concat());
    let phrase = ["for", " now"].concat();
    let macros =
        [["to", "do!"], ["unimple", "mented!"], ["db", "g!"]].map(|halves| halves.concat());
    let ignored = ["#[ig", "nore"].concat();
    let vacuous = ["assert!(tr", "ue"].concat();
    let mut problems = Vec::new();
    for ((code, comment), number) in masked.code.lines().zip(masked.comments.lines()).zip(1..) {
        for word in words.iter().filter(|word| has_word(comment, word)) {
            problems.push((number, format!("left-over mark `{word}`")));
        }
        if has_word(&comment.to_lowercase(), &phrase) {
            problems.push((number, format!("`{phrase}`: what is not done is not there")));
        }
        for name in macros
            .iter()
            .filter(|name| has_word(code, name.trim_end_matches('!')) && code.contains(*name))
        {
            problems.push((number, format!("left-over `{name}`")));
        }
        if code.contains(&ignored) {
            problems.push((number, "a test that never runs".to_owned()));
        }
        if code.contains(&vacuous) {
            problems.push((number, "an assertion that cannot fail".to_owned()));
        }
    }
    problems
}

/// Returns true if `text` contains `word` and not only as a part of a longer word.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "//! Why this is here.\n";

    fn problems(source: &str) -> Vec<String> {
        check("crates/a/src/b.rs", source)
            .into_iter()
            .map(|(at, what)| format!("{at}: {what}"))
            .collect()
    }

    #[test]
    fn a_file_needs_its_head_comment() {
        assert_eq!(problems("fn a() {}\n").len(), 1);
        assert_eq!(problems("#![no_main]\n\n//! Why.\n"), [""; 0]);
    }

    #[test]
    fn left_overs_are_found_in_comments_and_code_but_not_in_literals() {
        let mark = ["TO", "DO"].concat();
        let call = ["db", "g!(x)"].concat();
        let phrase = ["for", " now"].concat();
        assert_eq!(
            problems(&format!("{HEAD}// {mark}: later\n")),
            [format!("2: left-over mark `{mark}`")]
        );
        assert_eq!(problems(&format!("{HEAD}// {mark}S are words\n")), [""; 0]);
        assert_eq!(problems(&format!("{HEAD}fn a() {{ {call} }}\n")).len(), 1);
        assert_eq!(problems(&format!("{HEAD}// good enough {phrase}\n")).len(), 1);
        assert_eq!(problems(&format!("{HEAD}// `None` {phrase}here\n")), [""; 0]);
        assert_eq!(
            problems(&format!("{HEAD}const A: &str = \"{mark} {call} {phrase}\";\n")),
            [""; 0]
        );
    }

    #[test]
    fn tests_that_never_run_or_never_fail_are_found() {
        let ignored = ["#[ig", "nore]"].concat();
        let vacuous = ["assert!(tr", "ue);"].concat();
        assert_eq!(problems(&format!("{HEAD}{ignored}\nfn a() {{ {vacuous} }}\n")).len(), 2);
    }

    #[test]
    fn long_functions_are_found_and_long_tests_are_not() {
        let long = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(FUNCTION_LINES));
        assert_eq!(problems(&format!("{HEAD}{long}")), ["2: `a` has 72 lines; at most 70"]);
        assert_eq!(problems(&format!("{HEAD}#[cfg(test)]\nmod tests {{\n{long}}}\n")), [""; 0]);
        assert_eq!(check("crates/a/src/b/tests.rs", &format!("{HEAD}{long}")), []);
    }

    #[test]
    fn long_lines_are_found_unless_a_literal_makes_them_long() {
        let comment = format!("{HEAD}// {}\n", "x".repeat(LINE_CHARACTERS));
        assert_eq!(problems(&comment).len(), 1);
        let literal = format!("{HEAD}const A: &str = \"{}\";\n", "x".repeat(LINE_CHARACTERS));
        assert_eq!(problems(&literal), [""; 0]);
        let code = format!("{HEAD}const A: u8 = {} \"\";\n", "1 + ".repeat(40));
        assert_eq!(problems(&code).len(), 1);
    }

    #[test]
    fn clocks_are_read_in_their_crates_and_in_tests_only() {
        let reads = "fn a() { let _ = std::time::Instant::now(); }\n";
        assert_eq!(problems(&format!("{HEAD}{reads}")).len(), 1);
        let in_test = format!("{HEAD}#[cfg(test)]\nmod tests {{\n{reads}}}\n");
        assert_eq!(problems(&in_test), [""; 0]);
        assert_eq!(check("crates/base/src/clock.rs", &format!("{HEAD}{reads}")), []);
    }

    #[test]
    fn what_a_simulation_runs_asks_rt() {
        for call in PAST_RT {
            let open = if call.ends_with('(') { "" } else { "(" };
            let past = format!("{HEAD}fn a() {{\n    let _ = {call}{open});\n}}\n");
            assert_eq!(check("crates/flow/src/a.rs", &past).len(), 1, "{call}");
            assert_eq!(check("crates/larder/src/a.rs", &past), [], "{call}");
            assert_eq!(check("crates/flow/src/tests/a.rs", &past), [], "{call}");
        }
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(problems(&format!("{HEAD}{}", "// x\n".repeat(FILE_LINES))).len(), 1);
    }
}
