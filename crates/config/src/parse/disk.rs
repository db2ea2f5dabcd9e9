//! `[disk]`: the volumes of the disk cache.

use std::path::{Path, PathBuf};

use crate::keys::Section;
use crate::model::{Admission, DiskConfig, DiskVolume};
use crate::reader::{Reader, SettingValue, TomlTable};
use crate::rows::{self, Row, put, rows};

/// The default directory, as with systemd's `CacheDirectory=larder`.
const PATH: &str = "/var/cache/larder";

/// Most volumes: a place in the store has six bits for its volume.
pub(crate) const VOLUMES_MAX: usize = 64;

pub(crate) const DISK: Section = Section {
    title: "[disk]",
    about: "Disk cache below the memory cache. It holds responses for which memory has no room, \
            and survives restarts and crashes. Larder reads this table at the start; a reload \
            does not change it. The limits `disk_read_timeout`, `disk_queue_bytes` and \
            `disk_index_bytes` also apply to it.",
    keys: || [rows::keys(VOLUME_ROWS), rows::keys(DISK_ROWS)].concat(),
    ..Section::EMPTY
};

const DISK_ROWS: &[Row<DiskConfig>] = rows! {
    @table(DISK_VOLUME) "volume", "a list of tables", "none", "Several disks, instead of `path` and `size`: see `[[disk.volume]]`.",
        |r, item, to| to.volumes = several(r, item);
    "admission", "\"hit\" or \"all\"", "\"hit\"", "Which responses go to disk when they leave memory: those requested more than once (`hit`), or all. A site's `store` takes precedence.",
        |r, item, to| {
            let words = [("hit", Admission::Hit), ("all", Admission::All)];
            put(&mut to.admission, r.word(item, &words));
        };
    "purge", "\"durable\" or \"fast\"", "\"durable\"", "When Larder confirms a purge. `durable`: once it is on disk, so that it survives a crash. `fast`: at once; a crash within the next second may undo it.",
        |r, item, to| {
            put(&mut to.durable_purges, r.word(item, &[("durable", true), ("fast", false)]));
        };
    "erase", boolean erase, "false", "Whether Larder overwrites purged responses, and segments before it reuses them. For sites with a duty to erase data. Doubles the writes.";
};

pub(crate) const DISK_VOLUME: Section = Section {
    title: "[[disk.volume]]",
    about: "One of several disks. If a disk fails, the cache continues without it.",
    keys: || {
        let mut keys = [rows::keys(VOLUME_ROWS), rows::keys(WEIGHT_ROWS)].concat();
        let path = keys.iter_mut().find(|key| key.name == "path");
        path.into_iter().for_each(|key| key.default = "required".into());
        keys
    },
    ..Section::EMPTY
};

/// The keys of a volume.
const VOLUME_ROWS: &[Row<DiskVolume>] = rows! {
    "path", "an absolute path", "\"/var/cache/larder\"", "Directory of the disk cache, for the daemon alone. It may contain nothing but the cache. Larder creates the directory if its parent exists.",
        |r, item, to| {
            to.place = r.location(&item.span);
            to.path = path(r, item).unwrap_or_default();
        };
    @needed("a disk cache without `size`", "such as `size = \"20GiB\"`: all of it is reserved at the first start")
    "size", "a size such as \"20GiB\"", "required", "Maximum size of the disk cache, at least 256MiB. Larder reserves all of it at the first start. Journal and snapshots take some MiB more.",
        |r, item, to| put(&mut to.bytes, size(r, item));
};

/// Additional keys of one of several volumes.
const WEIGHT_ROWS: &[Row<DiskVolume>] = rows! {
    "weight", count32(1, DiskVolume::WEIGHT_MAX) weight, "1", "Share of the disk cache per byte of the volume's size, relative to other volumes: 1 to 100.";
};

/// Reads the disk cache.
pub(super) fn disk(r: &mut Reader, item: &SettingValue<'_>) -> Option<DiskConfig> {
    let table = r.table(item, &DISK)?;
    let (admission, volumes) = (Admission::default(), Vec::new());
    let mut disk = DiskConfig { volumes, admission, durable_purges: true, erase: false };
    rows::read(r, &table, DISK_ROWS, &mut disk);
    if table.item("volume").is_none() {
        let mut volume = DiskVolume { path: PATH.into(), ..volume(r, &table) };
        if rows::read(r, &table, VOLUME_ROWS, &mut volume) {
            disk.volumes.push(volume);
        }
    }
    (!disk.volumes.is_empty()).then_some(disk)
}

/// A volume with defaults.
fn volume(r: &Reader, table: &TomlTable<'_>) -> DiskVolume {
    let place = r.location(&table.span);
    DiskVolume { path: PathBuf::new(), bytes: 0, weight: 1, name: None, place }
}

/// Reports settings that need a disk if there is no `[disk]`.
pub(super) fn check_uses(r: &mut Reader) {
    for span in std::mem::take(&mut r.disk_uses) {
        r.error(span, "`store` names a disk, and there is no [disk]").help =
            Some("add [disk] with `size = \"20GiB\"`, or leave `store` out".to_owned());
    }
}

/// The volumes of `[[disk.volume]]`.
fn several(r: &mut Reader, list: &SettingValue<'_>) -> Vec<DiskVolume> {
    for name in ["path", "size"] {
        if let Some(item) = list.table.item(name) {
            let related = Some((list.each().first().unwrap_or(list).span.clone(), "here".into()));
            let error =
                r.error(item.span, format!("`{name}` in [disk] beside `[[disk.volume]]` tables"));
            error.related = related;
            error.help = Some("each volume has its own; for one disk leave the tables out".into());
        }
    }
    let tables = r.tables(list, &DISK_VOLUME);
    if list.value.as_array().is_some_and(|all| all.is_empty()) {
        r.error(list.span.clone(), "`volume` is an empty list");
    }
    if tables.len() > VOLUMES_MAX {
        let message = format!("{} volumes: at most {VOLUMES_MAX} can be used", tables.len());
        r.error(tables[VOLUMES_MAX].span.clone(), message);
    }
    let mut volumes: Vec<DiskVolume> = Vec::new();
    for table in &tables {
        let mut volume = volume(r, table);
        rows::read(r, table, VOLUME_ROWS, &mut volume);
        rows::read(r, table, WEIGHT_ROWS, &mut volume);
        let Some(item) = table.item("path") else {
            r.error(table.span.clone(), "a [[disk.volume]] without `path`").help =
                Some("such as `path = \"/srv/cache\"`, a directory of its own".to_owned());
            continue;
        };
        let path = &volume.path;
        if path.as_os_str().is_empty() {
            continue;
        }
        if let Some(other) = volumes.iter().find(|own| directories_overlap(&own.path, path)) {
            let (shown, first) = (path.display(), other.path.display());
            let message = match other.path == *path {
                true => format!("`{shown}` is a volume's already"),
                false => format!("`{shown}` and `{first}`: one is inside the other"),
            };
            let related = Some((r.span_of(&other.place), "the other volume".to_owned()));
            r.error(item.span, message).related = related;
            continue;
        }
        // An incomplete volume is kept, so that its path is not taken twice.
        volumes.push(volume);
    }
    volumes
}

/// Returns true if the directories are equal, or one contains the other.
pub(crate) fn directories_overlap(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

fn path(r: &mut Reader, item: &SettingValue<'_>) -> Option<PathBuf> {
    let text = r.text(item)?;
    let path = volume_path(text);
    r.check(item, path)
}

/// Parses the directory of a volume.
///
/// # Errors
/// The reason why it cannot be one.
pub(crate) fn volume_path(text: &str) -> Result<PathBuf, &'static str> {
    // A relative path would depend on the daemon's working directory.
    if !text.starts_with('/') || text.contains('\0') {
        return Err("takes an absolute path");
    }
    if text.trim_matches('/').is_empty() {
        return Err("takes a directory of its own, not the root of all");
    }
    Ok(PathBuf::from(text))
}

fn size(r: &mut Reader, item: &SettingValue<'_>) -> Option<u64> {
    let bytes = r.size(item)?;
    r.check(item, volume_size(bytes))
}

/// Checks the size of a volume.
///
/// # Errors
/// The reason why it is too large or too small.
pub(crate) fn volume_size(bytes: u64) -> Result<u64, &'static str> {
    match bytes {
        DiskVolume::BYTES_MIN..=DiskVolume::BYTES_MAX => Ok(bytes),
        0..DiskVolume::BYTES_MIN => Err("a disk cache needs at least 256MiB"),
        _ => Err("a disk cache takes at most 64TiB"),
    }
}
