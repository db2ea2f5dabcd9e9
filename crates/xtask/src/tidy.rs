//! Tidy's rules, which no compiler and no linter checks: dependencies between crates, lengths of
//! files, functions and lines, names, words, and marks of unfinished work. It must never change a
//! file.

use std::fs;
use std::path::{Path, PathBuf};

mod circles;
mod files;
mod functions;
mod layers;
mod lexer;
mod names;
mod paths;
mod problem;
mod targets;
mod tuples;
mod words;

use problem::Problem;

/// Checks the workspace at `root`.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let mut problems = layers::check(root)?;
    let sources = sources(root)?;
    let count = sources.len();
    let mut names = names::TypeNames::default();
    let mut targets = targets::Targets::default();
    let mut circles = circles::Circles::default();
    let mut tuples = tuples::Tuples::default();
    for file in sources {
        let text = read(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        names.add(&name, &text);
        targets.add(&name);
        circles.add(&name, &text);
        tuples.add(&name, &text);
        let found = files::check(&name, &text);
        problems.extend(found.into_iter().map(|(line, what)| Problem {
            file: name.clone(),
            line,
            what,
        }));
    }
    let style = read(&root.join("STYLE.md"))?;
    problems.extend(names.problems(&style));
    problems.extend(targets.problems());
    problems.extend(circles.problems());
    problems.extend(tuples.problems());
    problems.sort();
    if problems.is_empty() {
        return Ok(format!("tidy: {count} files, no problem"));
    }
    let lines: Vec<String> = problems
        .iter()
        .map(|problem| format!("{}:{}: {}", problem.file, problem.line, problem.what))
        .collect();
    Err(format!("{}\ntidy: {} problems", lines.join("\n"), lines.len()))
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Every Rust source below `crates/` and `fuzz/`.
fn sources(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![root.join("crates"), root.join("fuzz")];
    while let Some(folder) = folders.pop().filter(|folder| folder.is_dir()) {
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for entry in entries.flatten() {
            let path = entry.path();
            let made = ["target", "corpus", "artifacts"].iter().any(|name| path.ends_with(name));
            if path.is_dir() && !made {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}
