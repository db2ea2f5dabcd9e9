//! Tests of `larder preset`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

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
    assert!(done && list.lines().count() == 7, "{list}");
    for line in list.lines() {
        let (name, about) = line.split_once(' ').expect("a name and what it is for");
        let (done, file) = larder(&["preset", "show", name]);
        assert!(done && file.starts_with(&format!("# {}\n", about.trim())), "{name}: {file}");
    }
    let (done, said) = larder(&["preset", "show", "wordpres"]);
    assert!(!done && said.contains("did you mean `wordpress`?"), "{said}");
    let (done, said) = larder(&["preset", "show", "joomla"]);
    assert!(!done && said.contains("larder preset list"), "{said}");
}

/// A folder that is removed with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("larder-{name}-{}", std::process::id()));
        fs::create_dir_all(path.join("wp-content")).expect("a folder");
        Self(path)
    }

    fn install(&self, more: &[&str]) -> (bool, String) {
        let root = self.0.to_str().expect("UTF-8");
        larder(&[&["preset", "install", "wordpress", "--root", root], more].concat())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_plugin_is_installed_where_its_application_is_and_in_the_place_of_nothing_else() {
    let folder = Folder::new("install");
    let (done, said) = folder.install(&[]);
    assert!(!done && said.contains("no WordPress in"), "{said}");
    fs::create_dir(folder.0.join("wp-includes")).expect("a folder");
    fs::write(folder.0.join("wp-includes/version.php"), "<?php").expect("a file");

    let place = folder.0.join("wp-content/mu-plugins/larder.php");
    let (done, said) = folder.install(&[]);
    assert!(done && said.contains("larder.php is installed"), "{said}");
    let (done, text) = larder(&["preset", "install", "wordpress", "--print"]);
    assert!(done && text.contains("Plugin Name: Larder"), "{text}");
    assert_eq!(fs::read_to_string(&place).expect("it is there"), text);
    let mode = fs::metadata(&place).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o444, 0o444, "PHP reads it, whoever it works as");
    let (done, said) = folder.install(&[]);
    assert!(done && said.contains("is there already"), "{said}");

    let older = text.replace("Version: 1", "Version: 0");
    fs::write(&place, &older).expect("a file");
    let (done, said) = folder.install(&[]);
    assert!(!done && said.contains("--replace"), "{said}");
    assert_eq!(fs::read_to_string(&place).expect("it is there"), older);
    let (done, said) = folder.install(&["--replace"]);
    assert!(done && said.contains("is replaced"), "{said}");
    assert_eq!(fs::read_to_string(&place).expect("it is there"), text);

    fs::write(&place, "<?php // somebody else's").expect("a file");
    let (done, said) = folder.install(&["--replace"]);
    assert!(!done && said.contains("another file"), "{said}");
    assert_eq!(fs::read_to_string(&place).expect("it is there"), "<?php // somebody else's");
    let beside = fs::read_dir(place.parent().expect("a folder")).expect("it is there").count();
    assert_eq!(beside, 1, "nothing else is left there");
}

#[test]
fn only_presets_with_a_plugin_are_installed() {
    let (done, said) = larder(&["preset", "install", "drupal", "--print"]);
    assert!(!done && said.contains("preset `drupal` has no plugin"), "{said}");
    let (done, said) = larder(&["preset", "install", "wordpres", "--print"]);
    assert!(!done && said.contains("did you mean `wordpress`?"), "{said}");
    let (done, said) = larder(&["preset", "install", "wordpress"]);
    assert!(!done && said.contains("--root"), "{said}");
}

#[test]
fn the_plugin_is_php() {
    let (_, text) = larder(&["preset", "install", "wordpress", "--print"]);
    let lint = Command::new("php").arg("-l").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut php) = lint else {
        eprintln!("no PHP here: the plugin's syntax is not checked");
        return;
    };
    php.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it is taken");
    let output = php.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("No syntax errors"), "{said}");
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
