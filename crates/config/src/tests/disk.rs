//! Tests of `[disk]` and `store`: values and messages.

use std::path::Path;

use insta::assert_snapshot;
use policy::StorageChoice;

use super::{load, said};
use crate::{Admission, Config, DiskConfig};

const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n";

fn with(disk: &str) -> Config {
    load(&format!("{disk}\n{SITE}"))
}

fn disk(text: &str) -> DiskConfig {
    with(text).disk.expect("a disk cache")
}

/// All diagnostics of a file with this `[disk]`.
fn wrong(disk: &str) -> String {
    said(&format!("{disk}\n{SITE}"))
}

#[test]
fn a_size_is_a_disk_cache() {
    let disk = disk("[disk]\nsize = \"20GiB\"");
    let [volume] = &disk.volumes[..] else { panic!("{disk:?}") };
    assert_eq!(volume.path, Path::new("/var/cache/larder"));
    assert_eq!((volume.bytes, volume.weight, &volume.name), (20 << 30, 1, &None));
    assert_eq!((disk.admission, disk.durable_purges, disk.erase), (Admission::Hit, true, false));
    assert_eq!(with("").disk, None);
}

#[test]
fn all_that_can_be_said_of_one_is_read() {
    let text = "[disk]\npath = \"/srv/cache\"\nsize = \"256MiB\"\nadmission = \"all\"\n\
                purge = \"fast\"\nerase = true\n[limits]\ndisk_read_timeout = \"1s\"\n\
                disk_queue_bytes = \"128MiB\"";
    let config = with(text);
    let disk = config.disk.expect("a disk cache");
    assert_eq!(disk.volumes[0].path, Path::new("/srv/cache"));
    assert_eq!(disk.volumes[0].bytes, 256 << 20);
    assert_eq!((disk.admission, disk.durable_purges, disk.erase), (Admission::All, false, true));
    let limits = (config.limits.disk_read_timeout, config.limits.disk_queue_bytes);
    assert_eq!(limits, (1000, 128 << 20));
}

#[test]
fn several_disks_get_their_shares_by_size_and_weight() {
    let disk = disk(
        "[[disk.volume]]\npath = \"/a\"\nsize = \"100GiB\"\n\
         [[disk.volume]]\npath = \"/b\"\nsize = \"50GiB\"\n\
         [[disk.volume]]\npath = \"/c\"\nsize = \"50GiB\"\nweight = 3\n",
    );
    let shares: Vec<u32> = disk.volumes.iter().map(|volume| volume.share()).collect();
    assert_eq!((shares[0], shares[2]), (shares[1] * 2, shares[1] * 3));
}

#[test]
fn one_volume_and_several_are_not_for_the_same_file() {
    let text = "[disk]\npath = \"/a\"\nsize = \"1GiB\"\n[[disk.volume]]\npath = \"/b\"\n\
                size = \"1GiB\"";
    assert_snapshot!(wrong(text), @r#"
    error: `path` in [disk] beside `[[disk.volume]]` tables
     --> larder.toml:2:8
      |
    2 | path = "/a"
      |        ^^^^
    3 | size = "1GiB"
    4 | [[disk.volume]]
      | --------------- here
      |
      = help: each volume has its own; for one disk leave the tables out

    error: `size` in [disk] beside `[[disk.volume]]` tables
     --> larder.toml:3:8
      |
    3 | size = "1GiB"
      |        ^^^^^^
    4 | [[disk.volume]]
      | --------------- here
      |
      = help: each volume has its own; for one disk leave the tables out
    "#);
}

#[test]
fn directories_are_absolute_and_apart() {
    let text = "[[disk.volume]]\npath = \"cache\"\nsize = \"1GiB\"\n\
                [[disk.volume]]\npath = \"/a\"\nsize = \"1GiB\"\n\
                [[disk.volume]]\npath = \"/a/\"\nsize = \"1GiB\"\n\
                [[disk.volume]]\npath = \"/a/b\"\nsize = \"1GiB\"\n\
                [[disk.volume]]\npath = \"/\"\nsize = \"1GiB\"\n\
                [[disk.volume]]\nsize = \"1GiB\"";
    assert_snapshot!(wrong(text), @r#"
    error: `path`: takes an absolute path
     --> larder.toml:2:8
      |
    2 | path = "cache"
      |        ^^^^^^^

    error: `/a/` is a volume's already
     --> larder.toml:8:8
      |
    5 | path = "/a"
      |        ---- the other volume
    ...
    8 | path = "/a/"
      |        ^^^^^

    error: `/a/b` and `/a`: one is inside the other
      --> larder.toml:11:8
       |
     5 | path = "/a"
       |        ---- the other volume
    ...
    11 | path = "/a/b"
       |        ^^^^^^

    error: `path`: takes a directory of its own, not the root of all
      --> larder.toml:14:8
       |
    14 | path = "/"
       |        ^^^

    error: a [[disk.volume]] without `path`
      --> larder.toml:16:1
       |
    16 | [[disk.volume]]
       | ^^^^^^^^^^^^^^^
       |
       = help: such as `path = "/srv/cache"`, a directory of its own
    "#);
}

#[test]
fn sizes_are_such_as_the_store_takes() {
    let text = "[[disk.volume]]\npath = \"/a\"\nsize = \"255MiB\"\n\
                [[disk.volume]]\npath = \"/b\"\nsize = \"65TiB\"\nweight = 0\n\
                [[disk.volume]]\npath = \"/c\"";
    assert_snapshot!(wrong(text), @r#"
    error: `size`: a disk cache needs at least 256MiB
     --> larder.toml:3:8
      |
    3 | size = "255MiB"
      |        ^^^^^^^^

    error: `size`: a disk cache takes at most 64TiB
     --> larder.toml:6:8
      |
    6 | size = "65TiB"
      |        ^^^^^^^

    error: `weight` must be from 1 to 100
     --> larder.toml:7:10
      |
    7 | weight = 0
      |          ^

    error: a disk cache without `size`
     --> larder.toml:8:1
      |
    8 | [[disk.volume]]
      | ^^^^^^^^^^^^^^^
      |
      = help: such as `size = "20GiB"`: all of it is reserved at the first start
    "#);
    assert_snapshot!(wrong("[disk]\n"), @r#"
    error: a disk cache without `size`
     --> larder.toml:1:1
      |
    1 | [disk]
      | ^^^^^^
      |
      = help: such as `size = "20GiB"`: all of it is reserved at the first start
    "#);
}

#[test]
fn other_words_are_reported_with_those_there_are() {
    let text = "[disk]\nsize = \"1GiB\"\nadmission = \"hits\"\npurge = \"durabel\"\nerase = 1\n\
                read_timeout = \"1s\"\nvolume = []";
    assert_snapshot!(wrong(text), @r#"
    error: `size` in [disk] beside `[[disk.volume]]` tables
     --> larder.toml:2:8
      |
    2 | size = "1GiB"
      |        ^^^^^^
    ...
    7 | volume = []
      |          -- here
      |
      = help: each volume has its own; for one disk leave the tables out

    error: `admission` takes "hit" or "all", not this string
     --> larder.toml:3:13
      |
    3 | admission = "hits"
      |             ^^^^^^
      |
      = help: did you mean "hit"?

    error: `purge` takes "durable" or "fast", not this string
     --> larder.toml:4:9
      |
    4 | purge = "durabel"
      |         ^^^^^^^^^
      |
      = help: did you mean "durable"?

    error: `erase` takes true or false, not an integer
     --> larder.toml:5:9
      |
    5 | erase = 1
      |         ^

    error: unknown key `read_timeout` in [disk]
     --> larder.toml:6:1
      |
    6 | read_timeout = "1s"
      | ^^^^^^^^^^^^
      |
      = help: keys in [disk] are path, size, volume, admission, purge, erase

    error: `volume` is an empty list
     --> larder.toml:7:10
      |
    7 | volume = []
      |          ^^
    "#);
}

#[test]
fn a_route_says_where_its_responses_are_kept() {
    let config = load(&format!(
        "[disk]\nsize = \"1GiB\"\n{SITE}cache = {{ store = \"memory\" }}\n\
         [[site.route]]\npath = \"/video/*\"\ncache = {{ store = \"disk\" }}\n\
         [[site.route]]\npath = \"/pages/*\"\ncache = {{ store = \"both\" }}\n\
         [[site.route]]\npath = \"/other/*\"\ncache = {{ key_headers = \"X-A\" }}\n"
    ));
    let rules = &config.sites[0].rules;
    let routes: Vec<StorageChoice> =
        rules.routes.iter().map(|route| route.settings.store).collect();
    assert_eq!(rules.settings.store, StorageChoice::Memory);
    assert_eq!(routes, [StorageChoice::Disk, StorageChoice::Both, StorageChoice::Memory]);
    let site = with("").sites.remove(0);
    assert_eq!(site.rules.settings.store, StorageChoice::Both);
}

#[test]
fn a_store_on_disk_needs_a_disk() {
    let site = |store: &str| said(&format!("{SITE}cache = {{ store = \"{store}\" }}\n"));
    assert_snapshot!(site("disk"), @r#"
    error: `store` names a disk, and there is no [disk]
     --> larder.toml:4:19
      |
    4 | cache = { store = "disk" }
      |                   ^^^^^^
      |
      = help: add [disk] with `size = "20GiB"`, or leave `store` out
    "#);
    assert!(site("both").contains("there is no [disk]"));
    assert_eq!(site("memory"), "");
    // The parse failure is reported once.
    let text = format!("[disk]\nsize = \"1MiB\"\n{SITE}cache = {{ store = \"disk\" }}\n");
    assert!(!said(&text).contains("there is no [disk]"));
}

#[test]
fn where_responses_are_kept_is_shown() {
    let kept = |disk: &str, cache: &str| {
        let text = crate::show(&load(&format!("{disk}{SITE}{cache}")));
        let line = text.lines().find_map(|line| line.trim().strip_prefix("kept "));
        line.map(|line| line.trim().to_owned())
    };
    let disk = "[disk]\nsize = \"1GiB\"\n";
    let hit = "in memory, then on disk if asked for more than once";
    assert_eq!(kept("", ""), None);
    assert_eq!(kept(disk, "").as_deref(), Some(hit));
    let all = format!("{disk}admission = \"all\"\n");
    assert_eq!(kept(&all, "").as_deref(), Some("in memory, then on disk"));
    let forced = kept(disk, "cache = { store = \"disk\" }\n");
    assert_eq!(forced.as_deref(), Some("in memory, then on disk"));
    assert_eq!(kept(disk, "cache = { store = \"memory\" }\n").as_deref(), Some("in memory"));
}
