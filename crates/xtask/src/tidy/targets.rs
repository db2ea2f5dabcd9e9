//! Test targets: they stay few, because each one links the tested crates again.

use std::collections::BTreeMap;

use super::problem::Problem;

/// Most integration test targets. A further test is a module of one of them (CONTRIBUTING.md).
const TARGETS: usize = 10;

/// The number of integration tests by crate.
#[derive(Debug, Default)]
pub(crate) struct Targets(BTreeMap<String, usize>);

impl Targets {
    /// Adds the file `name`, by Cargo's rules for targets.
    pub(crate) fn add(&mut self, name: &str) {
        let parts: Vec<&str> = name.split('/').collect();
        if let ["crates", owner, "tests", _] | ["crates", owner, "tests", _, "main.rs"] = &*parts {
            *self.0.entry((*owner).to_owned()).or_default() += 1;
        }
    }

    /// The crates with too many targets.
    pub(crate) fn problems(self) -> impl Iterator<Item = Problem> {
        self.0.into_iter().filter(|(_, count)| *count > TARGETS).map(|(owner, count)| Problem {
            file: format!("crates/{owner}/tests"),
            line: 1,
            what: format!("{count} test binaries; at most {TARGETS}: make modules of one of them"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_of_one_crate_are_few_and_their_modules_are_not_counted() {
        let count = |names: &mut dyn Iterator<Item = String>| {
            let mut targets = Targets::default();
            names.for_each(|name| targets.add(&name));
            targets.problems().map(|problem| problem.what).collect::<Vec<_>>()
        };
        let ten = || (0..10).map(|n| format!("crates/a/tests/t{n}.rs"));
        let beside = ["crates/a/tests/t1/one.rs", "crates/a/src/tests/x.rs", "crates/b/tests/x.rs"];
        let beside = || beside.map(str::to_owned).into_iter();
        assert_eq!(count(&mut ten().chain(beside())), [""; 0]);
        let more = std::iter::once("crates/a/tests/more/main.rs".to_owned());
        let found = count(&mut ten().chain(beside()).chain(more));
        assert_eq!(found, ["11 test binaries; at most 10: make modules of one of them"]);
    }
}
