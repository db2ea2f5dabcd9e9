//! Circles of files that use each other (ARCHITECTURE.md). Within a crate no circle has more than
//! three files, and none leaves a folder. No circle of the crate's top-level folders and files has
//! more than three members, so that they form layers.
//!
//! A file uses another if it names an item declared there, by `use` or by a path, also through a
//! re-export. A re-export itself is no use. Tests may use anything.

use std::collections::{BTreeMap, BTreeSet};

use super::files::is_test_file;
use super::functions::test_lines;
use super::lexer::mask;
use super::paths::{Uses, uses};
use super::problem::Problem;

/// Files that may use each other in a circle.
const FILES: usize = 3;
/// Most uses that a message lists for one circle.
const SHOWN: usize = 12;
/// Longest chain of re-exports.
const HANDED_MAX: usize = 16;

/// A module, as its path from the crate's root.
type Module = Vec<String>;

/// The files of every crate.
#[derive(Default)]
pub(super) struct Circles(BTreeMap<String, CrateFiles>);

/// The files of a crate.
#[derive(Default)]
struct CrateFiles(BTreeMap<Module, ModuleSource>);

struct ModuleSource {
    file: String,
    uses: Uses,
}

impl Circles {
    /// Adds the file `name`.
    pub(super) fn add(&mut self, name: &str, source: &str) {
        let mut parts = name.split('/');
        let (Some("crates"), Some(owner), Some("src")) = (parts.next(), parts.next(), parts.next())
        else {
            return;
        };
        let mut module: Module = parts.map(str::to_owned).collect();
        let last = module.pop().unwrap_or_default();
        let stem = last.strip_suffix(".rs").unwrap_or(&last);
        if is_test_file(name) || module.first().is_some_and(|first| first == "bin") {
            return;
        }
        if !matches!(stem, "lib" | "main" | "mod") {
            module.push(stem.to_owned());
        }
        let files = &mut self.0.entry(owner.to_owned()).or_default().0;
        // A program beside a library is a crate of its own.
        if stem == "main" && files.contains_key(&module) {
            return;
        }
        let source = ModuleSource { file: name.to_owned(), uses: uses(&product(source)) };
        files.insert(module, source);
    }

    /// Circles that are too long, or leave a folder.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let mut problems: Vec<_> = self.0.values().flat_map(CrateFiles::problems).collect();
        problems.extend(self.0.values().flat_map(CrateFiles::folder_circles));
        problems
    }
}

/// The code of a source without comments, literals and tests.
fn product(source: &str) -> String {
    let code = mask(source).code;
    let tests = test_lines(&code);
    let is_test = |number: usize| tests.iter().any(|lines| lines.contains(&number));
    let lines = code.lines().zip(1..).filter(|(_, number)| !is_test(*number));
    lines.map(|(line, _)| line).collect::<Vec<_>>().join("\n")
}

impl CrateFiles {
    fn problems(&self) -> Vec<Problem> {
        let uses: BTreeMap<_, _> =
            self.0.keys().map(|module| (module, self.used(module))).collect();
        let is_fault = |circle: &Vec<&Module>| {
            let is_of_one = self
                .folders(circle[0])
                .into_iter()
                .any(|folder| circle.iter().all(|other| self.folders(other).contains(&folder)));
            circle.len() > FILES || !is_of_one
        };
        let faults = circles(&uses).into_iter().filter(is_fault);
        faults.map(|circle| self.problem(&circle, &uses)).collect()
    }

    /// Circles of too many top-level folders and files.
    fn folder_circles(&self) -> Vec<Problem> {
        let first = |module: &Module| module.first().cloned().unwrap_or_default();
        let mut uses: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for module in self.0.keys() {
            let own = uses.entry(first(module)).or_default();
            for (other, name) in self.used(module) {
                if first(other) != first(module) {
                    let arrow = format!("{} -> {} ({name})", self.short(module), self.short(other));
                    own.entry(first(other)).or_insert(arrow);
                }
            }
        }
        let faults = circles(&uses).into_iter().filter(|circle| circle.len() > FILES);
        let problem = |circle: Vec<String>| {
            let arrows = circle.iter().flat_map(|folder| &uses[folder]);
            let arrows = arrows.filter(|(other, _)| circle.contains(other));
            let what = format!("folders {}", message(circle.len(), arrows.map(|(_, a)| a)));
            Problem { file: self.file_of(&circle[0]), line: 1, what }
        };
        faults.map(problem).collect()
    }

    fn file_of(&self, room: &str) -> String {
        let found = self.0.iter().find(|(module, _)| module.first().is_some_and(|m| m == room));
        found.map(|(_, source)| source.file.clone()).unwrap_or_default()
    }

    fn problem(
        &self,
        circle: &[&Module],
        uses: &BTreeMap<&Module, BTreeMap<&Module, String>>,
    ) -> Problem {
        let mut arrows = Vec::new();
        for module in circle {
            for (other, name) in uses[module].iter().filter(|(other, _)| circle.contains(other)) {
                arrows.push(format!("{} -> {} ({name})", self.short(module), self.short(other)));
            }
        }
        let what = format!("files {}, of one folder", message(circle.len(), arrows.iter()));
        Problem { file: self.0[circle[0]].file.clone(), line: 1, what }
    }

    /// The folders of a module's file: the one that contains it, and the one whose root it is.
    fn folders<'a>(&self, module: &'a [String]) -> Vec<&'a [String]> {
        let is_root = |other: &Module| other.len() > module.len() && other.starts_with(module);
        let own = self.0.keys().any(is_root).then_some(module);
        own.into_iter().chain(module.split_last().map(|(_, above)| above)).collect()
    }

    fn short(&self, module: &Module) -> &str {
        self.0[module].file.split("/src/").nth(1).unwrap_or_default()
    }

    /// The modules that `module` uses, each with one of the used names.
    fn used(&self, module: &Module) -> BTreeMap<&Module, String> {
        let mut used = BTreeMap::new();
        for path in self.0[module].uses.used() {
            if let Some(other) =
                self.declares(module, path, HANDED_MAX).filter(|other| *other != module)
            {
                used.entry(other).or_insert_with(|| path.join("::"));
            }
        }
        used
    }

    /// The module that declares the item at `path` in `module`; `None` if `path` is a module, or
    /// outside of the crate.
    fn declares(&self, module: &[String], path: &[String], left: usize) -> Option<&Module> {
        let left = left.checked_sub(1)?;
        let (mut at, mut rest) = (module.to_vec(), path);
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while let Some(("super", deeper)) =
                    rest.split_first().map(|(first, deeper)| (first.as_str(), deeper))
                {
                    at.pop();
                    rest = deeper;
                }
            }
            first => {
                if !self.0.contains_key(&[module, &path[..1]].concat()) {
                    let full = self.0.get(module)?.uses.brought(first)?;
                    let is_itself = full.len() == 1 && full[0] == first;
                    let full = [full, &path[1..]].concat();
                    return if is_itself { None } else { self.declares(module, &full, left) };
                }
            }
        }
        while let Some((next, deeper)) = rest.split_first() {
            // A function may have the name of the module that it is re-exported from.
            let is_item = deeper.is_empty()
                && self.0.get(&at).is_some_and(|source| source.uses.brought(next).is_some());
            at.push(next.clone());
            if is_item || !self.0.contains_key(&at) {
                at.pop();
                let (here, source) = self.0.get_key_value(&at)?;
                return match source.uses.brought(next).filter(|_| next != "*") {
                    Some(full) => self.declares(here, &[full, deeper].concat(), left),
                    None => Some(here),
                };
            }
            rest = deeper;
        }
        None
    }
}

/// The message about a circle.
fn message<'a>(many: usize, arrows: impl Iterator<Item = &'a String>) -> String {
    let arrows: Vec<&str> = arrows.map(String::as_str).collect();
    let more = match arrows.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let shown = arrows[..arrows.len().min(SHOWN)].join(", ");
    format!("use each other in a circle of {many}: {shown}{more}; at most {FILES}")
}

/// The circles of `uses`, each once.
fn circles<K: Ord + Clone, V>(uses: &BTreeMap<K, BTreeMap<K, V>>) -> Vec<Vec<K>> {
    let reach: BTreeMap<_, _> = uses.keys().map(|from| (from, reached(from, uses))).collect();
    let (mut seen, mut circles) = (BTreeSet::new(), Vec::new());
    for (from, below) in reach.iter().filter(|(from, below)| below.contains(*from)) {
        if !seen.contains(*from) {
            let is_in = |other: &&K| reach.get(*other).is_some_and(|below| below.contains(*from));
            let circle: Vec<K> = below.iter().filter(is_in).cloned().collect();
            seen.extend(circle.iter().cloned());
            circles.push(circle);
        }
    }
    circles
}

/// All that `from` uses, directly or indirectly.
fn reached<K: Ord + Clone, V>(from: &K, uses: &BTreeMap<K, BTreeMap<K, V>>) -> BTreeSet<K> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(from) = next.pop() {
        let used = uses.get(from).into_iter().flat_map(BTreeMap::keys);
        next.extend(used.filter(|other| reached.insert((*other).clone())));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut circles = Circles::default();
        for (name, source) in files {
            circles.add(&format!("crates/a/src/{name}"), source);
        }
        circles.problems().into_iter().map(|problem| problem.what).collect()
    }

    #[test]
    fn a_circle_that_leaves_its_folder_is_found_with_its_arrows() {
        let what = found(&[
            ("lib.rs", "mod one;\nmod two;\n"),
            ("one.rs", "use crate::two::three::Three;\n"),
            ("two.rs", "pub(crate) mod three;\n"),
            ("two/three.rs", "pub(crate) struct Three(super::super::one::One);\n"),
        ]);
        assert_eq!(what.len(), 1, "{what:?}");
        let arrows = "one.rs -> two/three.rs (crate::two::three::Three), \
                      two/three.rs -> one.rs (super::super::one::One)";
        assert!(what[0].contains(arrows), "{what:?}");
    }

    #[test]
    fn names_are_followed_to_where_they_are_declared_and_handing_on_is_no_use() {
        // `low` uses only `room::low`, whatever its root re-exports.
        let files = [
            ("lib.rs", "mod room;\nmod top;\nmod low;\npub use room::Low;\n"),
            ("room.rs", "mod high;\nmod low;\npub use high::High;\npub use low::Low;\n"),
            ("room/high.rs", "use crate::top::Top;\n"),
            ("room/low.rs", "pub struct Low;\n"),
            ("top.rs", "use crate::low::Deep;\n"),
            ("low.rs", "use crate::room::Low;\n"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
        let mut files = files;
        files[5].1 = "use crate::room;\nfn f() { room::High::new(); }\n";
        assert_eq!(found(&files).len(), 1);
    }

    #[test]
    fn three_of_a_folder_may_and_four_may_not() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "use crate::b::B;\n"),
            ("b.rs", "use super::c::C;\n"),
            ("c.rs", "use crate::{a::A, d::D};\n"),
            ("d.rs", "// use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
        let mut files = files;
        files[4].1 = "use crate::a::A as B;\n";
        let what = found(&files);
        assert!(what[0].starts_with("files use each other in a circle of 4"), "{what:?}");
    }

    #[test]
    fn folders_stand_in_floors() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod d;\n"),
            ("a.rs", "pub(crate) mod low;\nuse crate::b::high::B;\n"),
            ("a/low.rs", "pub(crate) struct Low;\n"),
            ("b.rs", "pub(crate) mod high;\n"),
            ("b/high.rs", "use crate::c::C;\n"),
            ("c.rs", "use crate::d::D;\n"),
            ("d.rs", "use crate::a::low::Low;\n"),
        ];
        let what = found(&files);
        assert_eq!(what.len(), 1, "{what:?}");
        assert!(what[0].starts_with("folders use each other in a circle of 4"), "{what:?}");
        let mut files = files;
        files[6].1 = "pub(crate) struct D;\n";
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
