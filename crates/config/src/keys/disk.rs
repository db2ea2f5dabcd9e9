//! `[disk]`.

use super::section::{BOOLEAN, COUNT, Key, Section, keys};

/// The keys of a volume.
fn volume() -> Vec<Key> {
    keys! {
        "path", "an absolute path", "\"/var/cache/larder\"", "Its directory, the daemon's alone: it is made if the one above it is there, and has nothing in it that is not the cache's.";
        "size", "a size such as \"20GiB\"", "required", "Bytes that it may take, all of them reserved at the first start: at least 256MiB, and what stands beside it (journal, snapshots) is some MiB more.";
    }
}

pub(crate) const DISK: Section = Section {
    title: "[disk]",
    about: "A cache on disk, below the one in memory: it holds what memory has no room for, and \
            survives restarts and crashes. Read when the daemon starts; a reload does not change \
            it. The limits `disk_read_timeout`, `disk_queue_bytes` and \
            `disk_index_bytes` are its, too.",
    keys: || {
        let mut keys = volume();
        keys.append(&mut keys! {
            "volume", "a list of tables", "none", "Several disks, instead of `path` and `size`: see `[[disk.volume]]`.";
            "admission", "\"hit\" or \"all\"", "\"hit\"", "What goes to disk of all that leaves memory: what was asked for more than once, or everything. A site's `store` comes first.";
            "purge", "\"durable\" or \"fast\"", "\"durable\"", "When a purge is answered: when it is on the disk, so that no crash forgets it, or at once, so that one within the next second may.";
            "erase", BOOLEAN, "false", "Whether what is purged is overwritten, and segments are before they are used again, for who must. It costs as many writes again.";
        });
        keys
    },
    later: &[],
};

pub(crate) const DISK_VOLUME: Section = Section {
    title: "[[disk.volume]]",
    about: "One of several disks. A disk that fails is taken out, and the cache goes on without it.",
    keys: || {
        let mut keys = volume();
        let path = keys.iter_mut().find(|key| key.name == "path");
        path.into_iter().for_each(|key| key.default = "required".into());
        keys.append(&mut keys! {
            "weight", COUNT, "1", "What it gets for each byte of its size, relative to the others: from 1 to 100.";
        });
        keys
    },
    later: &[],
};
