//! Tests of the whole: every directive is answered, and the results are what was meant.

mod corpus;
mod grammar;
mod others;
mod sites;
mod targets;

use crate::{Source, Translated, parse, translate};

/// The translation of a text.
fn translated(text: &str) -> Translated {
    let directives = parse("nginx.conf", text).expect("well-formed");
    translate(&Source::nginx(directives)).expect("a valid result")
}

/// The result without comments and empty lines.
fn bare(text: &str) -> String {
    let toml = translated(text).toml;
    let lines = toml.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| format!("{line}\n")).collect()
}
