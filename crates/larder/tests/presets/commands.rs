//! Questions of an operator about presets.

use std::process::Command;

use testkit::larder::binary;

/// Runs `larder` with these arguments. Returns true if it succeeds, and its output.
fn larder(arguments: &[&str]) -> (bool, String) {
    let binary = binary().expect("a binary");
    let output = Command::new(binary).args(arguments).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).expect("UTF-8"))
}

#[test]
fn presets_are_listed_and_shown() {
    let (done, list) = larder(&["preset", "list"]);
    assert!(done && list.lines().count() == 6, "{list}");
    for line in list.lines() {
        let (name, about) = line.split_once(' ').expect("a name and what it is for");
        let (done, file) = larder(&["preset", "show", name]);
        assert!(done && file.starts_with(&format!("# {}\n", about.trim())), "{name}: {file}");
    }
    let (done, said) = larder(&["preset", "show", "wordpres"]);
    assert!(!done && said.contains("larder preset list"), "{said}");
}

#[test]
fn check_shows_the_resulting_site() {
    let file = std::env::temp_dir().join(format!("larder-preset-{}.toml", std::process::id()));
    let text = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\npreset = \"wordpress\"\n\
                [[site.route]]\npath = \"/shop/*\"\nbypass = { query = false }\n";
    std::fs::write(&file, text).expect("a file");
    let (done, said) = larder(&["check", "--show", file.to_str().expect("UTF-8")]);
    std::fs::remove_file(&file).expect("it is there");
    assert!(done, "{said}");
    let place = |text: &str| said.find(text).unwrap_or_else(|| panic!("no {text} in {said}"));
    assert!(place("route 1            /shop/*") < place("route 2            wordpress: php"));
    assert!(place("wordpress: feeds") < place("other requests"));
    assert!(said.contains("wordpress_*") && said.contains("200 for 30s"), "{said}");
}
