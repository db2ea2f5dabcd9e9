//! Tuples as parameters of functions are forbidden, plain or behind references: they evade the lint
//! on the number of parameters, and their parts have no names.
//!
//! Tests, closures, and lists and iterators of pairs may have them.

use std::collections::BTreeMap;

use super::files::is_test_file;
use super::functions::{line_of, test_lines};
use super::lexer::mask;
use super::problem::Problem;

/// The tuple parameters by crate.
#[derive(Default)]
pub(super) struct Tuples(BTreeMap<String, Vec<Problem>>);

impl Tuples {
    /// Adds the file `name`.
    pub(super) fn add(&mut self, name: &str, source: &str) {
        let mut parts = name.split('/');
        let (Some("crates"), Some(owner), Some("src")) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        if is_test_file(name) {
            return;
        }
        let code = mask(source).code;
        let tests = test_lines(&code);
        let found = tuples(&code).into_iter();
        let found = found.filter(|(line, _)| !tests.iter().any(|region| region.contains(line)));
        let found = found.map(|(line, function)| Problem {
            file: name.to_owned(),
            line,
            what: format!("`{function}` takes a tuple; take a type with a name, or its parts"),
        });
        self.0.entry(owner.to_owned()).or_default().extend(found);
    }

    /// All problems.
    pub(super) fn problems(self) -> Vec<Problem> {
        self.0.into_values().flatten().collect()
    }
}

/// The tuple parameters in `code`, a masked source: their lines, and the names of their functions.
fn tuples(code: &str) -> Vec<(usize, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ").filter(|(at, _)| !code[..*at].ends_with(is_part)) {
        let signature = code[at + 3..].trim_start();
        let name = &signature[..signature.find(|c| !is_part(c)).unwrap_or(signature.len())];
        let rest = signature[name.len()..].trim_start();
        let rest = if rest.starts_with('<') { &rest[closed(rest)..] } else { rest };
        // Function pointers have no name, and a macro's function may have none yet.
        let Some(parameters) = rest.strip_prefix('(').filter(|_| !name.is_empty()) else {
            continue;
        };
        let parameters = &parameters[..closed(rest).saturating_sub(2)];
        for parameter in split(parameters, ',').into_iter().filter(|own| is_tuple(own)) {
            let parameter = parameter.trim_start();
            // A subslice has its own address.
            let begin = parameter.as_ptr().addr() - code.as_ptr().addr();
            found.push((line_of(code, begin), name));
        }
    }
    found
}

/// Returns true if a parameter's type is a tuple, plain or behind references.
fn is_tuple(parameter: &str) -> bool {
    let parts = split(parameter, ':');
    let Some(mut kind) = parts.get(1..).and_then(<[_]>::last).map(|kind| kind.trim()) else {
        return false;
    };
    while let Some(behind) = kind.strip_prefix('&') {
        let behind = behind.trim_start();
        let behind = match behind.strip_prefix('\'') {
            Some(lifetime) => lifetime.split_once(' ').map_or("", |(_, behind)| behind),
            None => behind,
        };
        kind = behind.strip_prefix("mut ").unwrap_or(behind).trim_start();
    }
    let inside = kind.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
    inside.is_some_and(|inside| split(inside, ',').len() > 1)
}

/// Splits `code` at `by` outside of all brackets.
fn split(code: &str, by: char) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    let mut before = ' ';
    for (at, character) in code.char_indices() {
        depth = depth_behind(depth, before, character);
        if character == by && depth == 0 {
            parts.push(&code[begin..at]);
            begin = at + by.len_utf8();
        }
        before = character;
    }
    parts.push(&code[begin..]);
    parts
}

/// Length of the bracket at the start, with its content.
fn closed(code: &str) -> usize {
    let (mut depth, mut before) = (0, ' ');
    for (at, character) in code.char_indices() {
        depth = depth_behind(depth, before, character);
        if depth == 0 {
            return at + character.len_utf8();
        }
        before = character;
    }
    code.len()
}

/// The number of open brackets behind `character`. The end of an arrow closes none.
fn depth_behind(depth: usize, before: char, character: char) -> usize {
    match character {
        '(' | '[' | '{' | '<' => depth + 1,
        '>' if before == '-' => depth,
        ')' | ']' | '}' | '>' => depth.saturating_sub(1),
        _ => depth,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, source: &str) -> Vec<(usize, String)> {
        let mut tuples = Tuples::default();
        tuples.add(name, source);
        tuples.problems().into_iter().map(|problem| (problem.line, problem.what)).collect()
    }

    fn lines(source: &str) -> Vec<usize> {
        found("crates/a/src/b.rs", source).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn tuples_are_found_in_patterns_by_name_and_behind_references() {
        assert_eq!(lines("fn f((a, b): (&A, B)) {}\n"), [1]);
        assert_eq!(lines("fn f(\n    a: u8,\n    b: (A, B),\n    c: &mut (A, B),\n) {}\n"), [3, 4]);
        assert_eq!(lines("fn f<'a, F: Fn(A) -> B>(f: F, (c, d): &'a (C, D)) {}\n"), [1]);
        assert_eq!(lines("trait T {\n    fn f(&self, a: (A, Vec<(B, C)>));\n}\n"), [2]);
        assert_eq!(lines("async fn f(b::C { d }: b::C, (e, g): (E, G),) {}\n"), [1]);
        let said = "`f` takes a tuple; take a type with a name, or its parts".to_owned();
        assert_eq!(found("crates/a/src/b.rs", "fn f(a: (A, B)) {}\n"), [(1, said)]);
    }

    #[test]
    fn closures_lists_of_pairs_units_and_results_are_no_tuples() {
        for code in [
            "fn f(a: &[(A, B)], b: Vec<(A, B)>, c: impl Iterator<Item = (A, B)>) {}",
            "fn f(a: impl Fn((A, B)) -> (C, D), b: fn(A, B)) {}",
            "fn f(a: (), b: &mut (impl A + B), c: [A; 2]) -> (A, B) {}",
            "fn f(a: A) -> B { g(|(a, b): (A, B)| a) }",
            "fn f<A: B<(C, D)>>(a: A) where A: E<(C, D)> {}",
        ] {
            assert_eq!(lines(code), [0; 0], "{code}");
        }
    }

    #[test]
    fn tests_may_take_them() {
        let code = "fn f(a: (A, B)) {}\n";
        assert_eq!(lines(&format!("#[cfg(test)]\nmod tests {{\n{code}}}\n")), [0; 0]);
        assert_eq!(found("crates/a/src/b/tests.rs", code), []);
        assert_eq!(found("crates/a/tests/b.rs", code), []);
    }
}
