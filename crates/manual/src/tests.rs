//! Pages and completions of a small program, and of all settings.

use clap::{Arg, Command};

use tools::{Key, ProgramDescription, Section, SettingsReference, VerbDescription};

use super::{Document, documents};

fn sample() -> Command {
    Command::new("larder")
        .version("9.8.7")
        .about("Sample.")
        .subcommand(Command::new("disk").about("Volumes.").subcommand(
            Command::new("empty").about("Empty them.").arg(Arg::new("yes").long("yes")),
        ))
        .subcommand(
            Command::new("stat")
                .about("Figures.")
                .after_help("Examples:\n  larder stat -1\n\n.leading dot"),
        )
        .subcommand(Command::new("inner").hide(true))
}

fn program() -> ProgramDescription {
    let key = |name: &str, default: &str| Key {
        name: name.to_owned(),
        takes: "a size".to_owned(),
        default: default.to_owned(),
        about: "How `large`.".to_owned(),
    };
    let section = Section {
        title: "[memory]".to_owned(),
        about: "The account of `size`.".to_owned(),
        keys: vec![key("size", "`auto`")],
    };
    let settings = SettingsReference { introduction: "Units.".to_owned(), sections: vec![section] };
    ProgramDescription { verb: VerbDescription::of(&sample()), settings }
}

fn page(all: &[Document], path: &str) -> String {
    let found = all.iter().find(|document| document.path == path);
    let found = found.unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8(found.bytes.clone()).expect("text")
}

#[test]
fn hidden_verbs_have_neither_page_nor_completions() {
    let all = documents(&program(), "2026-01-02").expect("memory");
    let paths: Vec<_> = all.iter().map(|document| document.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "man1/larder.1",
            "man1/larder-disk.1",
            "man1/larder-disk-empty.1",
            "man1/larder-stat.1",
            "man5/larder.toml.5",
            "completions/larder",
            "completions/_larder",
            "completions/larder.fish",
        ]
    );
    assert!(all.iter().all(|document| !String::from_utf8_lossy(&document.bytes).contains("inner")));
    assert!(page(&all, "completions/larder").contains("--yes"));
}

#[test]
fn a_page_names_those_above_and_below_and_has_the_date_that_was_given() {
    let all = documents(&program(), "2026-01-02").expect("memory");
    let empty = page(&all, "man1/larder-disk-empty.1");
    assert!(empty.contains(r".TH larder-disk-empty 1 2026-01-02"), "{empty}");
    assert!(empty.contains("larder 9.8.7"), "{empty}");
    let also = page(&all, "man1/larder-disk.1");
    let also = also.rsplit("SEE ALSO").next().unwrap_or_default();
    assert!(also.contains(r"\fBlarder\fR(1)"), "{also}");
    assert!(also.contains(r"\fBlarder\-disk\-empty\fR(1)"), "{also}");
}

#[test]
fn examples_keep_their_lines_and_no_text_is_taken_for_a_request() {
    let all = documents(&program(), "2026-01-02").expect("memory");
    let stat = page(&all, "man1/larder-stat.1");
    assert!(stat.contains(".nf\n  larder stat \\-1\n.fi\n"), "{stat}");
    assert!(!stat.contains("\n.leading"), "{stat}");
}

#[test]
fn every_key_of_the_file_is_on_its_page_and_code_is_bold() {
    let all = documents(&program(), "2026-01-02").expect("memory");
    let text = page(&all, "man5/larder.toml.5");
    assert!(text.contains(".SH [memory]\nThe account of \\fBsize\\fR."), "{text}");
    assert!(text.contains("\\fBsize\\fR = \\fIa size\\fR"), "{text}");
    assert!(text.contains("Default: \\fBauto\\fR."), "{text}");
    assert!(!text.contains('`'), "{text}");
}
