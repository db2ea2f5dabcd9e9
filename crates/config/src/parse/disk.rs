//! `[disk]`.

use std::path::{Path, PathBuf};

use crate::keys;
use crate::model::{Admission, DiskConfig, DiskVolume, Place};
use crate::reader::{Item, Reader, Table};

/// Where the cache is if nothing says so, as with systemd's `CacheDirectory=larder`.
const PATH: &str = "/var/cache/larder";

/// Volumes of one store: the places in it have six bits for them.
pub(crate) const VOLUMES_MAX: usize = 64;

/// The cache on disk; `None` without `[disk]`.
pub(super) fn disk(r: &mut Reader, top: &Table<'_>) -> Option<DiskConfig> {
    let Some(item) = top.item("disk") else {
        check_uses(r);
        return None;
    };
    let table = r.table(&item, &keys::DISK)?;
    let volumes = match table.item("volume") {
        Some(list) => several(r, &table, &list),
        None => {
            let path = table.item("path").map_or_else(|| Some(PATH.into()), |item| path(r, &item));
            let size = size(r, &table);
            let place = place(r, &table);
            path.zip(size)
                .map(|(path, bytes)| DiskVolume { path, bytes, weight: 1, name: None, place })
                .into_iter()
                .collect()
        }
    };
    let admissions = [("hit", Admission::Hit), ("all", Admission::All)];
    let admission = table.item("admission").and_then(|item| r.word(&item, &admissions));
    let purges = [("durable", true), ("fast", false)];
    let durable_purges = table.item("purge").and_then(|item| r.word(&item, &purges));
    let erase = table.item("erase").and_then(|item| r.boolean(&item));
    (!volumes.is_empty()).then(|| DiskConfig {
        volumes,
        admission: admission.unwrap_or_default(),
        durable_purges: durable_purges.unwrap_or(true),
        erase: erase.unwrap_or(false),
    })
}

/// Says which settings ask for a disk where there is no `[disk]`.
fn check_uses(r: &mut Reader) {
    for span in std::mem::take(&mut r.disk_uses) {
        r.error(span, "`store` names a disk, and there is no [disk]").help =
            Some("add [disk] with `size = \"20GiB\"`, or leave `store` out".to_owned());
    }
}

/// The volumes of `[[disk.volume]]`.
fn several(r: &mut Reader, table: &Table<'_>, list: &Item<'_>) -> Vec<DiskVolume> {
    for name in ["path", "size"] {
        if let Some(item) = table.item(name) {
            let related = Some((list.each().first().unwrap_or(list).span.clone(), "here".into()));
            let error =
                r.error(item.span, format!("`{name}` in [disk] beside `[[disk.volume]]` tables"));
            error.related = related;
            error.help = Some("each volume has its own; for one disk leave the tables out".into());
        }
    }
    let tables = r.tables(list, &keys::DISK_VOLUME);
    if list.value.as_array().is_some_and(|all| all.is_empty()) {
        r.error(list.span.clone(), "`volume` is an empty list");
    }
    if tables.len() > VOLUMES_MAX {
        let message = format!("{} volumes: at most {VOLUMES_MAX} can be used", tables.len());
        r.error(tables[VOLUMES_MAX].span.clone(), message);
    }
    let mut volumes: Vec<DiskVolume> = Vec::new();
    for table in &tables {
        let item = table.item("path");
        if item.is_none() {
            r.error(table.span.clone(), "a [[disk.volume]] without `path`").help =
                Some("such as `path = \"/srv/cache\"`, a directory of its own".to_owned());
        }
        let path = item.and_then(|item| path(r, &item).map(|path| (path, item)));
        let bytes = size(r, table);
        let weight = table
            .item("weight")
            .map_or(Some(1), |item| r.count32(&item, 1, DiskVolume::WEIGHT_MAX));
        let Some((path, item)) = path else { continue };
        let place = Place { file: r.source.clone(), span: item.span.clone() };
        if let Some(other) = volumes.iter().find(|own| meet(&own.path, &path)) {
            let (shown, first) = (path.display(), other.path.display());
            let message = match other.path == path {
                true => format!("`{shown}` is a volume's already"),
                false => format!("`{shown}` and `{first}`: one is inside the other"),
            };
            let related = Some((other.place.span.clone(), "the other volume".to_owned()));
            r.error(item.span, message).related = related;
            continue;
        }
        // One that lacks something is known, so that its path is not taken twice.
        let (bytes, weight) = (bytes.unwrap_or_default(), weight.unwrap_or(1));
        volumes.push(DiskVolume { path, bytes, weight, name: None, place });
    }
    volumes
}

/// Returns true if one of the directories is the other, or in it.
pub(crate) fn meet(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

fn place(r: &Reader, table: &Table<'_>) -> Place {
    let span = table.item("path").map_or_else(|| table.span.clone(), |item| item.span);
    Place { file: r.source.clone(), span }
}

fn path(r: &mut Reader, item: &Item<'_>) -> Option<PathBuf> {
    let text = r.text(item)?;
    let path = volume_path(text);
    r.check(item, path)
}

/// The directory of a volume.
///
/// # Errors
/// Why it cannot be one.
pub(crate) fn volume_path(text: &str) -> Result<PathBuf, &'static str> {
    // A relative path would depend on where the daemon was started from.
    if !text.starts_with('/') || text.contains('\0') {
        return Err("takes an absolute path");
    }
    if text.trim_matches('/').is_empty() {
        return Err("takes a directory of its own, not the root of all");
    }
    Ok(PathBuf::from(text))
}

fn size(r: &mut Reader, table: &Table<'_>) -> Option<u64> {
    let Some(item) = table.item("size") else {
        r.error(table.span.clone(), "a disk cache without `size`").help =
            Some("such as `size = \"20GiB\"`: all of it is reserved at the first start".to_owned());
        return None;
    };
    let bytes = r.size(&item)?;
    r.check(&item, volume_size(bytes))
}

/// Bytes of a volume.
///
/// # Errors
/// Why there cannot be so many or so few.
pub(crate) fn volume_size(bytes: u64) -> Result<u64, &'static str> {
    match bytes {
        DiskVolume::BYTES_MIN..=DiskVolume::BYTES_MAX => Ok(bytes),
        0..DiskVolume::BYTES_MIN => Err("a disk cache needs at least 256MiB"),
        _ => Err("a disk cache takes at most 64TiB"),
    }
}
