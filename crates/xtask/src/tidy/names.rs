//! Names of types (STYLE.md): within a crate, a name means one thing, and at most three crates have
//! a type of one name, unless the glossary lists it. Tests may name their own types freely.

use std::collections::{BTreeMap, BTreeSet};

use super::files::is_test_file;
use super::functions::test_lines;
use super::lexer::mask;
use super::problem::Problem;

/// Most crates that may have a type of one name.
const CRATES: usize = 3;

/// Keywords that declare a type.
const DECLARATIONS: [&str; 4] = ["struct", "enum", "trait", "union"];

/// Declarations of each type: by crate and name, the files and lines.
#[derive(Default)]
pub(super) struct TypeNames(BTreeMap<(String, String), Vec<(String, usize)>>);

impl TypeNames {
    /// Adds the types that the file `name` declares.
    pub(super) fn add(&mut self, name: &str, source: &str) {
        let Some(owner) = owner(name).filter(|_| !is_test_file(name)) else { return };
        let code = mask(source).code;
        let tests = test_lines(&code);
        for (line, number) in code.lines().zip(1..) {
            if let Some(declared) = declared(line)
                && !tests.iter().any(|region| region.contains(&number))
            {
                let key = (owner.to_owned(), declared.to_owned());
                self.0.entry(key).or_default().push((name.to_owned(), number));
            }
        }
    }

    /// Repeated declarations of a name within a crate, and names that too many crates have. `style`
    /// is the text of STYLE.md, whose glossary lists the general names.
    pub(super) fn problems(self, style: &str) -> Vec<Problem> {
        let mut problems = self.common(&general(style));
        for ((owner, name), places) in self.0 {
            let Some(((file, line), rest)) = places.split_first() else { continue };
            problems.extend(rest.iter().map(|(again, number)| Problem {
                file: again.clone(),
                line: *number,
                what: format!("`{owner}` has a type `{name}` already: {file}:{line}"),
            }));
        }
        problems
    }
}

impl TypeNames {
    /// The names of types in more than three crates, except `general` ones, at the first place.
    fn common(&self, general: &BTreeSet<&str>) -> Vec<Problem> {
        let mut crates: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (owner, name) in self.0.keys() {
            crates.entry(name).or_default().push(owner);
        }
        crates.retain(|name, owners| owners.len() > CRATES && !general.contains(name));
        let problem = |(name, owners): (&str, Vec<&str>)| {
            let key = (owners[0].to_owned(), name.to_owned());
            let (file, line) = self.0.get(&key)?.first()?.clone();
            let owners = owners.join(", ");
            let what =
                format!("`{name}` is a type of {owners}; at most {CRATES} crates may have it");
            Some(Problem { file, line, what })
        };
        crates.into_iter().filter_map(problem).collect()
    }
}

/// The names of the glossary's rows for types, such as ``| `Error` | ... |``.
fn general(style: &str) -> BTreeSet<&str> {
    let names =
        |line| -> Option<&str> { Some(str::strip_prefix(line, "| `")?.split_once("` |")?.0) };
    style.lines().filter_map(names).collect()
}

/// The crate of the file, unless it is a test's.
fn owner(name: &str) -> Option<&str> {
    let mut parts = name.split('/');
    let [folder, owner, source] = [parts.next()?, parts.next()?, parts.next()?];
    (folder == "crates" && source == "src").then_some(owner)
}

/// The type that a line declares. An alias counts only without indent, because an indented one
/// belongs to its `impl` or trait.
fn declared(line: &str) -> Option<&str> {
    let alias = line.strip_prefix("pub ").unwrap_or(line).strip_prefix("type ");
    let text = alias.or_else(|| {
        let text = line.trim_start();
        let text = text.strip_prefix("pub").map_or(text, |rest| {
            rest.strip_prefix('(')
                .and_then(|rest| rest.split_once(')'))
                .map_or(rest, |(_, rest)| rest)
        });
        let (word, rest) = text.trim_start().split_once(' ')?;
        DECLARATIONS.contains(&word).then_some(rest)
    })?;
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    Some(&text[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut names = TypeNames::default();
        for (name, source) in files {
            names.add(name, source);
        }
        let problems = names.problems("| `Error` | a reason for failure |\n");
        problems.iter().map(|p| format!("{}:{}: {}", p.file, p.line, p.what)).collect()
    }

    #[test]
    fn a_second_type_of_a_name_is_found_in_a_crate_and_its_first_is_named() {
        let a = ("crates/a/src/one.rs", "\npub(crate) struct Step<'a>(&'a str);\n");
        let b = ("crates/a/src/two/three.rs", "enum Step {\n    One,\n}\n");
        assert_eq!(
            found(&[a, b]),
            ["crates/a/src/two/three.rs:1: `a` has a type `Step` already: crates/a/src/one.rs:2"]
        );
        let alias = ("crates/a/src/four.rs", "pub type Step = u32;\n");
        assert_eq!(found(&[a, alias]).len(), 1);
    }

    #[test]
    fn other_crates_tests_and_types_of_an_impl_have_names_of_their_own() {
        let step = "struct Step;\n";
        let tests = "#[cfg(test)]\nmod tests {\n    struct Step;\n}\n";
        let alias = "impl Iterator for All {\n    type Step = u8;\n}\n// struct Step;\n";
        assert_eq!(
            found(&[
                ("crates/a/src/one.rs", step),
                ("crates/b/src/one.rs", step),
                ("crates/a/src/tests.rs", step),
                ("crates/a/tests/all.rs", step),
                ("crates/a/src/two.rs", tests),
                ("crates/a/src/three.rs", alias),
                ("crates/a/src/four.rs", "const TEXT: &str = \"struct Step;\";\n"),
            ]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_name_that_four_crates_have_is_found_unless_the_glossary_has_it() {
        let step: Vec<(String, &str)> = ["a", "b", "c", "d"]
            .map(|own| (format!("crates/{own}/src/one.rs"), "struct Step;\nenum Error {}\n"))
            .into();
        let files: Vec<(&str, &str)> = step.iter().map(|(name, text)| (&**name, *text)).collect();
        assert_eq!(
            found(&files),
            ["crates/a/src/one.rs:1: `Step` is a type of a, b, c, d; at most 3 crates may have it"]
        );
        assert_eq!(found(&files[..3]), Vec::<String>::new());
    }
}
