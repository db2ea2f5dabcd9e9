//! Packages made by `cargo xtask package`: their contents, their consistency, and equal bytes in a
//! second run.
//!
//! All tests share packages made once from the debug binary. Tools of Debian and systemd check them
//! if they are installed; a test without its tool reports that.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The units; for a service also the highest permitted exposure by `systemd-analyze security`, in
/// tenths.
const UNITS: [(&str, Option<&str>); 3] = [
    ("larder.service", Some("17")),
    ("larder-keeper.socket", None),
    ("larder-keeper@.service", Some("11")),
];

/// The folder of the packages.
static PACKAGES: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = scratch("packages");
    make(&folder);
    folder
});

/// The files of the Debian package, by path, with modes.
static INSTALLED: LazyLock<BTreeMap<String, (u32, Vec<u8>)>> =
    LazyLock::new(|| unpack(&gunzip(&members(&package(".deb"))["data.tar.gz"])));

/// The folder with these files.
static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = scratch("root");
    for (path, (mode, bytes)) in INSTALLED.iter() {
        let file = root.join(path);
        fs::create_dir_all(file.parent().expect("below the root")).expect("a folder");
        fs::write(&file, bytes).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(*mode);
        fs::set_permissions(&file, mode).expect("its mode");
    }
    root
});

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// The programs of a package, sorted by name.
const PROGRAMS: [&str; 3] = ["larder", "larder-bench", "larder-top"];

/// The debug binary: `LARDER_BIN`, or the one beside the tests, which is built if absent.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("LARDER_BIN") {
        return named.into();
    }
    let beside = Path::new(env!("CARGO_BIN_EXE_xtask")).with_file_name("larder");
    if !beside.is_file() {
        let mut cargo = Command::new(env!("CARGO"));
        whole(cargo.args(["build", "--quiet", "--package", "larder"]));
    }
    beside
}

fn make(folder: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    whole(command.args(["package", "--binary"]).arg(program()).arg("--out").arg(folder));
}

/// Runs a command that must succeed, and returns its output.
fn whole(command: &mut Command) -> String {
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    said(&output)
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

/// Returns true if a tool is installed; otherwise reports that it is missing.
fn has(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let there = command.status().is_ok();
    if !there {
        // It bypasses libtest, which hides the output of passing tests.
        _ = writeln!(std::io::stderr(), "not looked at: there is no {tool}");
    }
    there
}

fn package(ending: &str) -> Vec<u8> {
    let found = fs::read_dir(&*PACKAGES).expect("a folder").map(|entry| entry.expect("one").path());
    let mut found = found.filter(|path| path.to_string_lossy().ends_with(ending));
    fs::read(found.next().unwrap_or_else(|| panic!("no {ending}"))).expect("a file")
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).expect("gzip");
    plain
}

/// Regular files of a tar archive, without the `./` before them.
fn unpack(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let header = entry.header();
        let mode = header.mode().expect("a mode");
        if header.entry_type().is_file() {
            assert_eq!((header.uid().ok(), header.gid().ok()), (Some(0), Some(0)), "{header:?}");
            let path = entry.path().expect("a path").display().to_string();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("whole");
            files.insert(path.trim_start_matches("./").to_owned(), (mode, content));
        }
    }
    files
}

/// The owner of a folder in a tar archive.
fn owner(bytes: &[u8], folder: &str) -> u64 {
    let mut archive = tar::Archive::new(bytes);
    let entries = archive.entries().expect("an archive").map(|entry| entry.expect("an entry"));
    let mut found =
        entries.filter(|entry| entry.path().is_ok_and(|path| path == Path::new(folder)));
    let entry = found.next().unwrap_or_else(|| panic!("no {folder}"));
    entry.header().uid().expect("a number")
}

/// Members of an ar archive.
fn members(mut bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    bytes = bytes.strip_prefix(b"!<arch>\n").expect("an ar archive");
    let mut found = BTreeMap::new();
    while !bytes.is_empty() {
        let (head, rest) = bytes.split_at(60);
        let text = std::str::from_utf8(head).expect("text");
        let size: usize = text[48..58].trim().parse().expect("a size");
        found.insert(text[..16].trim().to_owned(), rest[..size].to_vec());
        bytes = &rest[size + size % 2..];
    }
    found
}

fn installed(path: &str) -> String {
    let (_, bytes) = INSTALLED.get(path).unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_configuration_that_is_installed_is_good_and_its_page_is_there() {
    let config = ROOT.join("etc/larder/larder.toml");
    let text = fs::read_to_string(&config).expect("a file");
    let root = format!("{}/usr/share", ROOT.display());
    let moved = ROOT.join("moved.toml");
    assert!(text.contains("\"/usr/share/larder/welcome\""), "{text}");
    fs::write(&moved, text.replace("/usr/share", &root)).expect("a file");
    let said = whole(Command::new(ROOT.join("usr/bin/larder")).arg("check").arg(&moved));
    assert!(said.contains("good: 1 site") && !said.contains("warning"), "{said}");
    assert!(installed("usr/share/larder/welcome/index.html").contains("Larder runs"));
}

#[test]
fn every_example_in_that_configuration_is_good_too() {
    let text = installed("etc/larder/larder.toml");
    // Examples are indented by three columns and more.
    let examples: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("#   "))
        .map(str::trim)
        .filter(|line| line.starts_with('[') || line.contains(" = ") && !line.contains('`'))
        .filter(|line| !line.starts_with("listen"))
        .collect();
    assert!(examples.len() >= 8, "{examples:?}");
    let file = scratch("examples").join("larder.toml");
    fs::write(&file, format!("listen = \":80\"\n{}\n", examples.join("\n"))).expect("a file");
    let said = whole(Command::new(ROOT.join("usr/bin/larder")).arg("check").arg(&file));
    assert!(said.contains("good: 1 site, 1 origin"), "{said}");
}

#[test]
fn the_package_says_what_it_needs_and_what_an_administrator_may_change() {
    let control = unpack(&gunzip(&members(&package(".deb"))["control.tar.gz"]));
    let text = |name: &str| String::from_utf8_lossy(&control[name].1).into_owned();
    assert!(text("control").contains("\nDepends: libc6 (>= 2."), "{}", text("control"));
    for line in text("conffiles").lines() {
        assert!(INSTALLED.contains_key(line.trim_start_matches('/')), "{line}");
    }
    for script in ["postinst", "prerm", "postrm"] {
        assert_eq!(control[script].0, 0o755, "{script}");
        whole(Command::new("sh").arg("-n").arg("-c").arg(text(script)));
    }
    assert!(INSTALLED.keys().all(|path| path.is_ascii()));
    let (programs, others): (Vec<_>, Vec<_>) =
        INSTALLED.iter().partition(|(path, _)| path.starts_with("usr/bin/"));
    assert!(programs.iter().map(|(path, _)| &path[8..]).eq(PROGRAMS), "{:?}", programs.len());
    assert!(programs.iter().all(|(_, (mode, _))| *mode == 0o755));
    assert!(others.iter().all(|(_, (mode, _))| *mode == 0o644));
}

#[test]
fn dpkg_reads_the_package() {
    if !has("dpkg-deb") {
        return;
    }
    let file = scratch("dpkg").join("larder.deb");
    fs::write(&file, package(".deb")).expect("a file");
    let listed = whole(Command::new("dpkg-deb").arg("-c").arg(&file));
    for path in INSTALLED.keys() {
        assert!(listed.contains(path), "{path}");
    }
    let told = whole(Command::new("dpkg-deb").arg("-I").arg(&file));
    assert!(told.contains("Package: larder"), "{told}");
}

#[test]
fn lintian_finds_nothing_to_warn_of() {
    if !has("lintian") {
        return;
    }
    let file = scratch("lintian").join("larder.deb");
    fs::write(&file, package(".deb")).expect("a file");
    let mut lintian = Command::new("lintian");
    whole(lintian.args(["--allow-root", "--fail-on", "error,warning"]).arg(&file));
}

#[test]
fn every_page_is_without_a_fault() {
    let checkers: [(&str, &[&str]); 2] = [
        ("man", &["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]),
        ("mandoc", &["-Tlint", "-Werror"]),
    ];
    let pages: Vec<_> = INSTALLED.keys().filter(|path| path.contains("/man/man")).collect();
    assert!(pages.len() > 20, "{pages:?}");
    let (_, plain) = &INSTALLED[pages[0]];
    assert!(gunzip(plain).starts_with(b".ie"), "a page");
    for (tool, words) in checkers.iter().filter(|(tool, _)| has(tool)) {
        for page in &pages {
            let mut command = Command::new(tool);
            let output = command.args(*words).arg(ROOT.join(page)).output().expect("it starts");
            let complaint = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && complaint.is_empty(), "{page}: {complaint}");
        }
    }
}

/// Completions that bash offers for the last word of a line.
fn offered(words: &[&str]) -> Vec<String> {
    let script = ROOT.join("usr/share/bash-completion/completions/larder");
    let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let (at, before) = (words.len() - 1, words[words.len() - 2]);
    let ask = format!(
        "source '{}'; COMP_WORDS=({line}); COMP_CWORD={at}; COMPREPLY=(); \
         _larder larder '{}' '{before}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display(),
        words[at],
    );
    let said = whole(Command::new("bash").args(["--norc", "-c", &ask]));
    said.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_verbs_and_options() {
    if !has("bash") {
        return;
    }
    assert_eq!(offered(&["larder", "expl"]), ["explain"]);
    assert_eq!(offered(&["larder", "serve", "--orig"]), ["--origin"]);
    assert_eq!(offered(&["larder", "disk", "emp"]), ["empty"]);
    assert!(offered(&["larder", "keep"]).iter().all(|word| word != "keeper"));
}

#[test]
fn zsh_and_fish_read_their_completions() {
    for (shell, file) in [
        ("zsh", "usr/share/zsh/vendor-completions/_larder"),
        ("fish", "usr/share/fish/vendor_completions.d/larder.fish"),
    ] {
        if has(shell) {
            whole(Command::new(shell).arg("-n").arg(ROOT.join(file)));
        }
    }
}

#[test]
fn systemd_takes_the_units_and_finds_them_closed() {
    if !has("systemd-analyze") {
        return;
    }
    let folder = scratch("unit");
    for (name, _) in UNITS {
        let text = installed(&format!("usr/lib/systemd/system/{name}"));
        let moved =
            text.replace("=/usr/bin/larder", &format!("={}/usr/bin/larder", ROOT.display()));
        assert_eq!(moved != text, name.ends_with(".service"), "{name}");
        fs::write(folder.join(name), moved).expect("a file");
    }
    for (name, exposure) in UNITS {
        let unit = folder.join(name);
        let mut verify = Command::new("systemd-analyze");
        let complaint = whole(verify.args(["verify", "--man=no"]).arg(&unit));
        let ours: Vec<_> = complaint.lines().filter(|line| line.contains("larder")).collect();
        assert!(ours.is_empty(), "{ours:?}");
        if let Some(exposure) = exposure {
            let mut security = Command::new("systemd-analyze");
            security.args(["security", "--no-pager", "--offline=yes", "--threshold", exposure]);
            whole(security.arg(&unit));
        }
    }
    let service = installed("usr/lib/systemd/system/larder.service");
    let socket = installed("usr/lib/systemd/system/larder-keeper.socket");
    let at = socket.lines().find_map(|line| line.strip_prefix("ListenSequentialPacket="));
    let at = at.expect("where it listens");
    assert!(service.contains(&format!("--keeper {at}\n")) && service.contains("Type=notify\n"));
}

#[test]
fn the_image_s_digests_and_sizes_are_those_of_its_blobs() {
    let layout = unpack(&package(".oci.tar"));
    let blob = |named: &Value| -> Vec<u8> {
        let digest = named["digest"].as_str().expect("a digest").replace("sha256:", "");
        let (_, bytes) = &layout[&format!("blobs/sha256/{digest}")];
        assert_eq!(hex(bytes), digest);
        assert_eq!(named["size"], bytes.len());
        bytes.clone()
    };
    let json = |bytes: &[u8]| -> Value { serde_json::from_slice(bytes).expect("JSON") };
    assert_eq!(json(&layout["oci-layout"].1)["imageLayoutVersion"], "1.0.0");
    let manifest = json(&blob(&json(&layout["index.json"].1)["manifests"][0]));
    let config = json(&blob(&manifest["config"]));
    let layer = gunzip(&blob(&manifest["layers"][0]));
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", hex(&layer)));
    assert_eq!(layout.len(), 5, "nothing else is in it");

    let files = unpack(&layer);
    assert_eq!(config["config"]["Entrypoint"][1], "serve");
    for program in PROGRAMS.map(|name| format!("usr/bin/{name}")) {
        assert_eq!(files[&program].1, INSTALLED[&program].1, "{program}");
    }
    let user = config["config"]["User"].as_str().expect("a user");
    assert!(!user.starts_with('0') && user.contains(':'), "{user}");
    for folder in ["run/larder", "var/cache/larder", "var/lib/larder"] {
        assert!(user.starts_with(&owner(&layer, folder).to_string()), "{folder}");
    }
    assert!(files.keys().any(|path| path.contains("libc.so")), "the C library");
}

#[test]
fn the_image_s_program_runs_on_the_libraries_beside_it() {
    let layout = unpack(&package(".oci.tar"));
    let layer = layout.values().map(|(_, bytes)| bytes).max_by_key(|bytes| bytes.len());
    let root = scratch("image");
    for (path, (mode, bytes)) in unpack(&gunzip(layer.expect("a layer"))) {
        let file = root.join(path);
        fs::create_dir_all(file.parent().expect("below the root")).expect("a folder");
        fs::write(&file, bytes).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(&file, mode).expect("its mode");
    }
    let find = |name: &str| {
        let said = whole(Command::new("find").arg(&root).arg("-name").arg(name));
        PathBuf::from(said.lines().next().unwrap_or_else(|| panic!("no {name}")))
    };
    let libraries = find("libc.so*");
    // The image's loader, with only the image's libraries.
    let mut command = Command::new(find("ld-linux*"));
    command.arg("--inhibit-cache").arg("--library-path").arg(libraries.parent().expect("one"));
    let said = whole(command.arg(root.join("usr/bin/larder")).arg("--version"));
    assert!(said.starts_with("larder "), "{said}");
}

#[test]
fn the_list_of_components_names_what_is_linked_and_nothing_of_the_tests() {
    let list: Value = serde_json::from_slice(&package(".cdx.json")).expect("JSON");
    assert_eq!((&list["bomFormat"], &list["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let components = list["components"].as_array().expect("a list");
    let named = |name: &str| components.iter().find(|component| component["name"] == name);
    let rustls = named("rustls").expect("it is linked");
    assert!(rustls["purl"].as_str().is_some_and(|purl| purl.starts_with("pkg:cargo/rustls@")));
    assert_eq!(rustls["hashes"][0]["content"].as_str().map(str::len), Some(64));
    assert!(named("proptest").is_none() && named("testkit").is_none(), "of tests");
    let outside = components.iter().filter(|component| component["purl"].is_string());
    let unlicensed: Vec<_> = outside.filter(|part| part["licenses"].is_null()).collect();
    assert!(unlicensed.is_empty(), "{unlicensed:?}");
    let references: Vec<_> = components.iter().map(|component| &component["bom-ref"]).collect();
    for on in list["dependencies"].as_array().into_iter().flatten() {
        let below = on["dependsOn"].as_array().into_iter().flatten();
        assert!(below.into_iter().all(|name| references.contains(&name)), "{on}");
    }
}

#[test]
fn the_tarball_has_the_same_program_and_configuration() {
    let files = unpack(&gunzip(&package(".tar.gz")));
    let (top, _) = files.keys().next().and_then(|path| path.split_once('/')).expect("one folder");
    assert!(files.keys().all(|path| path.starts_with(&format!("{top}/"))));
    let file = |path: &str| &files[&format!("{top}/{path}")];
    for name in PROGRAMS {
        assert_eq!(file(&format!("bin/{name}")), &INSTALLED[&format!("usr/bin/{name}")], "{name}");
    }
    assert_eq!(file("etc/larder.toml"), &INSTALLED["etc/larder/larder.toml"]);
    assert!(file("share/man/man1/larder-serve.1").1.starts_with(b".ie"));
}

#[test]
fn sha256sum_finds_all_packages_whole() {
    let sums = fs::read_to_string(PACKAGES.join("SHA256SUMS")).expect("a file");
    assert_eq!(sums.lines().count() + 1, fs::read_dir(&*PACKAGES).expect("a folder").count());
    whole(Command::new("sha256sum").args(["-c", "SHA256SUMS"]).current_dir(&*PACKAGES));
}

#[test]
fn a_second_run_gives_the_same_bytes() {
    let again = scratch("again");
    make(&again);
    let read = |folder: &Path| fs::read_to_string(folder.join("SHA256SUMS")).expect("a file");
    assert_eq!(read(&again), read(&PACKAGES));
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
