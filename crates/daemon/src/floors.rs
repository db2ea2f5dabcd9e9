//! Floors: a test that holds the modules of this crate to the table in the head comment of
//! `lib.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The floor of every module, read from the table.
fn table(head: &str) -> BTreeMap<&str, u32> {
    let mut floors = BTreeMap::new();
    for row in head.lines().filter_map(|line| line.strip_prefix("//! ")) {
        let mut words = row.split_whitespace().skip(1);
        if let Some(Ok(floor)) = words.next().map(str::parse) {
            floors.extend(words.map(|module| (module, floor)));
        }
    }
    floors
}

/// Every Rust file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry")) {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path if path.extension().is_some_and(|ending| ending == "rs") => found.push(path),
            _ => {}
        }
    }
    found
}

/// The first word of `text`.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &text[..end.unwrap_or(text.len())]
}

/// The modules that a source names behind `crate::`, one or several in braces.
fn named(source: &str) -> Vec<&str> {
    let behind = source.split("crate::").skip(1);
    let each = behind.flat_map(|rest| match rest.strip_prefix('{') {
        Some(list) => {
            let list = list.split('}').next().unwrap_or_default();
            list.split(',').map(|item| word(item.trim())).collect()
        }
        None => vec![word(rest)],
    });
    each.filter(|name| !name.is_empty()).collect()
}

#[test]
fn a_module_uses_only_modules_of_lower_floors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let head = fs::read_to_string(folder.join("lib.rs")).expect("a head");
    let floors = table(&head);
    let declared = head.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let declared: BTreeSet<_> = declared.filter(|name| *name != "floors").collect();
    assert_eq!(floors.keys().copied().collect::<BTreeSet<_>>(), declared);
    let (mut arrows, mut upward) = (BTreeSet::new(), Vec::new());
    for file in files(&folder) {
        let inner = file.strip_prefix(&folder).expect("below it").with_extension("");
        let first = inner.iter().next().expect("a name").to_string_lossy().into_owned();
        let Some(own) = floors.get(first.as_str()) else { continue };
        let source = fs::read_to_string(&file).expect("a source");
        for name in named(&source).into_iter().filter(|name| *name != first) {
            let Some(other) = floors.get(name) else { panic!("{first} uses {name}: no floor") };
            if arrows.insert((first.clone(), name.to_owned())) && other >= own {
                upward.push(format!("{first} ({own}) uses {name} ({other})"));
            }
        }
    }
    assert!(arrows.len() > 30, "{arrows:?}");
    assert!(upward.is_empty(), "{upward:#?}");
    println!("{} arrows", arrows.len());
}

#[test]
fn names_are_read_one_by_one_and_in_braces() {
    let source = "use crate::{a, b::C, d as e};\nuse crate::f::g;\nlet x = crate::h::i();";
    assert_eq!(named(source), ["a", "b", "d", "f", "h"]);
    assert_eq!(
        table("//! ```text\n//! top  1  a b\n//! low  0  c"),
        [("a", 1), ("b", 1), ("c", 0)].into()
    );
}
