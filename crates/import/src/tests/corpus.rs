//! Configurations in the style of public ones, each with what must come of it.

use std::path::{Path, PathBuf};

use crate::{Translated, read_path, translate};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn of(name: &str) -> Translated {
    let source = read_path(&folder().join(name), None).expect("well-formed");
    let translated = translate(&source).expect("a valid result");
    assert_eq!(translated.report.counts().total(), source.count, "{name}");
    translated
}

fn names() -> Vec<String> {
    let entries = std::fs::read_dir(folder()).expect("a folder");
    let names = entries.map(|entry| entry.expect("a file").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".conf")).collect();
    names.sort();
    names
}

#[test]
fn nine_of_ten_directives_of_each_configuration_are_carried_or_default() {
    let names = names();
    assert_eq!(names.len(), 7, "{names:?}");
    for name in names {
        let translated = of(&name);
        let counts = translated.report.counts();
        assert!(counts.percent() >= 90, "{name}: {counts:?}\n{}", translated.report.text());
    }
}
