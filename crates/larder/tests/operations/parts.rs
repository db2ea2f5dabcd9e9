//! Parts of the distribution: the programs that `larder` executes for its verbs, and the man pages
//! and completions of all.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use testkit::larder::binary;

use crate::support::folder::Folder;

/// The description that a program gives of itself.
fn described(program: &Path) -> Value {
    let output = Command::new(program).arg("--describe").output().expect("it starts");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Pushes the names of `verb` and of all verbs below it, with their options.
fn collect(verb: &Value, name: &str, found: &mut Vec<(String, Vec<String>)>) {
    let arguments = verb["arguments"].as_array().expect("a list").iter();
    let long = arguments.filter_map(|argument| argument["long"].as_str());
    found.push((name.to_owned(), long.map(|long| format!("--{long}")).collect()));
    for below in verb["verbs"].as_array().expect("a list") {
        let own = below["name"].as_str().expect("a name");
        collect(below, &format!("{name}-{own}"), found);
    }
}

#[test]
fn every_verb_and_option_has_its_page_and_its_completions() {
    let larder = binary().expect("a binary");
    let folder = Folder::new();
    let made = folder.path().join("manual");
    let mut write = Command::new(&larder);
    let output = write.args(["manual", "--date", "2026-01-02"]).arg(&made).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |path: &str| {
        let text = fs::read_to_string(made.join(path));
        text.unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let shells = ["larder", "_larder", "larder.fish"];
    let shells = shells.map(|name| text(&format!("completions/{name}")));
    let mut verbs = Vec::new();
    collect(&described(&larder)["verb"], "larder", &mut verbs);
    let own = ["larder-top", "larder-hist", "larder-bench", "larder-completions"];
    verbs.retain(|(name, _)| !own.contains(&name.as_str()));
    let top = described(&larder.with_file_name("larder-top"));
    collect(&top["verb"], "larder", &mut verbs);
    verbs.retain(|(name, options)| name != "larder" || !options.is_empty());
    let bench = described(&larder.with_file_name("larder-bench"));
    collect(&bench["verb"], "larder-bench", &mut verbs);
    assert!(verbs.len() > 30, "{verbs:?}");
    for (name, options) in &verbs {
        let page = text(&format!("man1/{name}.1")).replace("\\-", "-");
        let verb = name.rsplit('-').next().unwrap_or_default();
        assert!(shells.iter().all(|words| words.contains(verb)), "{name}");
        for option in options {
            assert!(page.contains(option.as_str()), "{name} {option}");
            let [bash, zsh, fish] = &shells;
            assert!(bash.contains(option.as_str()), "{name} {option}");
            assert!(zsh.contains(option.as_str()), "{name} {option}");
            // Below a verb's verb, clap_complete has nothing for fish.
            let deep = name.starts_with("larder-bench-urls-");
            let word = format!("-l {}", &option[2..]);
            assert!(fish.contains(&word) || deep, "{name} {option}");
        }
    }
    let page = text("man5/larder.toml.5").replace("\\-", "-");
    let mut keys = 0;
    for section in config::reference_sections() {
        for key in (section.keys)() {
            assert!(page.contains(&format!("\\fB{}\\fR = ", key.name)), "{}", key.name);
            keys += 1;
        }
    }
    assert!(keys > 200, "{keys}");
}

#[test]
fn a_verb_of_a_program_that_is_not_there_says_which() {
    let folder = Folder::new();
    let alone = folder.path().join("larder");
    fs::copy(binary().expect("a binary"), &alone).expect("a copy");
    for (verb, program) in
        [("top", "larder-top"), ("bench", "larder-bench"), ("completions", "larder-top")]
    {
        let mut command = Command::new(&alone);
        let output = command.args([verb, "--any", "bash"]).env("PATH", "/nowhere").output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(&format!("`{program}`")), "{said}");
        assert!(said.contains("cargo build --release --package larder"), "{said}");
    }
    let help = Command::new(&alone).arg("--help").output().expect("it starts").stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    assert!(["top", "hist", "bench"].iter().all(|verb| help.contains(verb)), "{help}");
}
