//! Tests of `larder disk` on real volumes: its reports, the damage that it finds, and what it must
//! not touch.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use base::clock::System;
use bytes::Bytes;
use disk::vfs::RealDirectory;
use disk::{
    Body, Clock, Config, Disk, Entry, Error, FoundRecord, OpenedStore, Owner, RecordAddress,
    VolumeCondition,
};
use disk::{VolumeConfig, vfs};
use serde_json::Value;
use support::folder::Folder;
use testkit::larder::binary;

/// Records of a filled volume.
const RECORDS: u64 = 20;

/// An owner that keeps no index.
struct Nobody;

impl Owner for Nobody {
    fn found(&self, _: &[FoundRecord]) {}
    fn moved(&self, _: u64, _: RecordAddress, _: RecordAddress) -> bool {
        false
    }
    fn dropped(&self, _: u64, _: RecordAddress) {}
    fn changed(&self, _: usize, _: VolumeCondition) {}
}

/// Opens a volume of 8 MiB.
fn open(path: &Path) -> Disk {
    let volume = VolumeConfig {
        segment_bytes: 1 << 20,
        ..VolumeConfig::new(Arc::new(RealDirectory::new(path).expect("a directory")), 8 << 20)
    };
    let clock: Clock = Arc::new(|| System.now());
    let opened = Disk::open(Config::new(vec![volume]), Arc::new(Nobody), clock);
    let OpenedStore { disk, .. } = opened.expect("a store");
    disk.find();
    while !disk.has_found() {
        std::thread::yield_now();
    }
    disk
}

fn body(hash: u64) -> Vec<u8> {
    format!("{hash} ").repeat(1000).into_bytes()
}

/// A filled volume in the folder, which is not open.
fn filled(folder: &Folder, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    let disk = open(&path);
    for hash in 0..RECORDS {
        let entry = || Entry {
            hash,
            passed: 0,
            expires_ms: u64::MAX,
            order: None,
            head: Bytes::from(format!("head of {hash}")),
            body: Body::Bytes(body(hash).into()),
        };
        // A spare segment may not be free yet.
        while disk.put(entry()).is_none() {
            std::thread::yield_now();
        }
    }
    disk.stop();
    until_free(&path);
    path
}

/// Waits until the volume is not open: a process that another test forks inherits open files until
/// it executes its program.
fn until_free(path: &Path) {
    let clock: Clock = Arc::new(|| System.now());
    let volume: Arc<dyn vfs::Vfs> = Arc::new(RealDirectory::new(path).expect("a directory"));
    while matches!(disk::tools::stat(&volume, &clock), Err(Error::Locked { .. })) {
        std::thread::yield_now();
    }
}

/// Flips a bit in the body of the first record.
fn damage(path: &Path) {
    let file = path.join("data-0000");
    let mut bytes = fs::read(&file).expect("data");
    bytes[64 + 200] ^= 1;
    fs::write(file, bytes).expect("written");
}

struct Said {
    good: bool,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> Value {
        let value: Value = serde_json::from_str(&self.out).expect("JSON");
        value["volumes"].clone()
    }
}

fn larder(words: &[&str], path: &Path) -> Said {
    let mut command = Command::new(binary().expect("a binary"));
    let output = command.arg("disk").args(words).arg("--path").arg(path).output();
    let output = output.expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { good: output.status.success(), out: text(&output.stdout), err: text(&output.stderr) }
}

/// Names and contents of all files in a directory.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(path).expect("a directory");
    let mut all: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| (path.clone(), fs::read(path).expect("a file")))
        .collect();
    all.sort();
    all
}

#[test]
fn a_flipped_bit_is_found_and_nothing_is_changed() {
    let folder = Folder::new();
    let path = filled(&folder, "volume");
    let name = path.display();
    let sound = larder(&["check"], &path);
    assert!(sound.good, "{}", sound.err);
    let told = format!("{name}: sound: {RECORDS} records are whole, 0 not,");
    assert!(sound.out.starts_with(&told), "{}", sound.out);
    damage(&path);
    let before = contents(&path);
    let flawed = larder(&["check"], &path);
    let flaw = format!("{name}: damaged: segment 0, offset 64, hash ");
    assert!(!flawed.good && flawed.out.starts_with(&flaw), "{}", flawed.out);
    assert!(flawed.out.contains("not sound: 19 records are whole, 1 not"), "{}", flawed.out);
    assert_eq!(flawed.err, "larder: not every volume is sound\n");
    let json = larder(&["check", "--json"], &path);
    let volume = &json.json()[0];
    assert_eq!((json.good, &volume["sound"]), (false, &Value::Bool(false)));
    assert_eq!(
        (&volume["damaged"][0]["offset"], &volume["sound_records"]),
        (&64.into(), &19.into())
    );
    assert!(contents(&path) == before);
}

#[test]
fn a_volume_is_described_in_numbers() {
    let folder = Folder::new();
    let path = filled(&folder, "volume");
    let text = larder(&["stat"], &path);
    assert!(text.good, "{}", text.err);
    let line = |name: &str| {
        let mut lines = text.out.lines().map(str::trim);
        let rest = lines.find_map(|line| line.strip_prefix(name)).expect(name);
        rest.trim().to_owned()
    };
    assert_eq!((line("state"), line("records")), ("free".to_owned(), RECORDS.to_string()));
    assert!(line("segments").starts_with("8 of 1 MiB: "), "{}", text.out);
    assert!(line("oldest").ends_with(" ago") && line("newest").ends_with(" ago"));
    let value = larder(&["stat", "--json"], &path).json();
    let volume = &value[0];
    assert_eq!((&volume["in_use"], &volume["records"]), (&false.into(), &RECORDS.into()));
    let live: u64 = (0..RECORDS).map(|hash| body(hash).len() as u64).sum();
    assert!(volume["live_bytes"].as_u64().is_some_and(|bytes| bytes > live));
    assert!(volume["generation"].is_u64() && volume["oldest_ms"].is_u64(), "{volume}");
}

#[test]
fn a_volume_that_is_in_use_is_left_alone() {
    let folder = Folder::new();
    let path = filled(&folder, "volume");
    let disk = open(&path);
    let told = larder(&["stat"], &path);
    assert!(told.good && told.out.contains(": in use by a daemon"), "{}", told.out);
    assert_eq!(larder(&["stat", "--json"], &path).json()[0]["in_use"], true);
    let to = folder.path().join("out");
    let to = to.to_str().expect("a path");
    for words in [&["check"][..], &["empty", "--yes"], &["export", "--to", to]] {
        let refused = larder(words, &path);
        let said = refused.err.contains("a daemon uses it") || refused.err.contains("is using it");
        assert!(!refused.good && said, "{words:?}: {}", refused.err);
    }
    disk.stop();
    until_free(&path);
    assert!(larder(&["check"], &path).out.contains(&format!("sound: {RECORDS} ")));
}

#[test]
fn a_volume_is_emptied_only_if_that_is_meant() {
    let folder = Folder::new();
    let path = filled(&folder, "volume");
    let asked = larder(&["empty"], &path);
    assert!(!asked.good && asked.err.contains("confirm with --yes"), "{}", asked.err);
    assert!(larder(&["check"], &path).good);
    let done = larder(&["empty", "--yes"], &path);
    assert!(done.good, "{}", done.err);
    let left: Vec<_> = contents(&path).into_iter().map(|(path, _)| path).collect();
    assert_eq!(left, [path.join("lock")]);
    assert!(larder(&["stat"], &path).err.contains("there is no volume here"));
}

#[test]
fn a_directory_of_something_else_is_left_as_it_is() {
    let folder = Folder::new();
    let path = folder.path().join("photos");
    folder.file("photos/holiday.jpg", "a picture");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    let to = folder.path().join("out");
    let to = to.to_str().expect("a path");
    for words in [&["check"][..], &["stat"], &["empty", "--yes"], &["export", "--to", to]] {
        let refused = larder(words, &path);
        let said = refused.err.contains("photos: there is no volume here");
        assert!(!refused.good && said, "{words:?}: {}", refused.err);
    }
    assert_eq!(contents(&path), [(path.join("holiday.jpg"), b"a picture".to_vec())]);
    let mode = fs::metadata(&path).expect("a directory").permissions().mode();
    assert_eq!((mode & 0o777, Path::new(to).exists()), (0o755, false));
}

#[test]
fn records_are_brought_out_with_their_bodies() {
    let folder = Folder::new();
    let path = filled(&folder, "volume");
    let to = folder.path().join("out");
    let words = ["export", "--to", to.to_str().expect("a path")];
    let done = larder(&words, &path);
    assert!(done.good, "{}", done.err);
    let index = fs::read_to_string(to.join("index.jsonl")).expect("an index");
    let lines: Vec<Value> =
        index.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len() as u64, RECORDS);
    for line in &lines {
        let hash = line["hash"].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        let hash = hash.expect("a hash");
        let file = |ending: &str| to.join(format!("{}.{ending}", line["number"]));
        assert!(fs::read(file("body")).expect("a body") == body(hash));
        let head = fs::read_to_string(file("head")).expect("a head");
        assert_eq!((head, &line["whole"]), (format!("head of {hash}"), &true.into()));
        assert_eq!(line["url"], Value::Null, "no head of a response");
        let mode = fs::metadata(file("body")).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let again = larder(&words, &path);
    assert!(!again.good && again.err.contains("it is not empty"));
    damage(&path);
    let other = folder.path().join("flawed");
    let flawed = larder(&["export", "--to", other.to_str().expect("a path")], &path);
    assert!(!flawed.good && flawed.err.contains("damaged"), "{}", flawed.err);
    assert!(flawed.out.contains(&format!("{} records", RECORDS - 1)), "{}", flawed.out);
}

#[test]
fn the_volumes_of_a_configuration_are_looked_after() {
    let folder = Folder::new();
    let (a, b) = (filled(&folder, "a"), filled(&folder, "b"));
    let site = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:9\"\n";
    let volume =
        |path: &Path| format!("[[disk.volume]]\npath = \"{}\"\nsize = \"1GiB\"\n", path.display());
    folder.file("larder.toml", format!("{}{}{site}", volume(&a), volume(&b)));
    folder.file("memory.toml", site);
    let run = |verb: &str, file: &str| {
        let mut command = Command::new(binary().expect("a binary"));
        let output = command.args(["disk", verb, "-c"]).arg(folder.path().join(file)).output();
        let output = output.expect("it starts");
        let all = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&all).into_owned())
    };
    let (good, told) = run("check", "larder.toml");
    assert!(good && told.matches(": sound: ").count() == 2, "{told}");
    damage(&b);
    let (good, told) = run("check", "larder.toml");
    assert!(!good && told.matches(": sound: ").count() == 1, "{told}");
    let (good, told) = run("stat", "memory.toml");
    assert!(!good && told.contains("memory.toml: there is no [disk]"), "{told}");
}

#[test]
fn the_least_that_a_configuration_may_say_is_enough_for_the_store() {
    let least = config::DiskVolume::BYTES_MIN;
    let open = |vfs: Arc<dyn vfs::Vfs>, bytes| {
        let config = Config::new(vec![VolumeConfig::new(vfs, bytes)]);
        Disk::open(config, Arc::new(Nobody), Arc::new(|| System.now()))
    };
    let refused = open(Arc::new(vfs::MemoryDirectory::new()), least / 64);
    assert!(matches!(refused, Err(Error::Config { .. })), "{refused:?}");
    let folder = Folder::new();
    let path = folder.path().join("volume");
    let taken =
        open(Arc::new(RealDirectory::new(&path).expect("a directory")), least).expect("a store");
    taken.disk.stop();
}
