//! A tree of files for an archive: paths, modes and bytes, always in order.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tar::{Builder, EntryType, Header};

/// Files by path, and folders that may be empty, each with its mode; folders also with their owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, (u32, Vec<u8>)>,
    folders: BTreeMap<String, (u32, u64)>,
}

impl Tree {
    /// Reads the folders `names` below `above` recursively.
    pub(crate) fn read(above: &Path, names: &[&str]) -> Result<Self, String> {
        let mut tree = Self::default();
        for name in names {
            tree.collect(above, name)?;
        }
        Ok(tree)
    }

    fn collect(&mut self, above: &Path, name: &str) -> Result<(), String> {
        let folder = above.join(name);
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.file_type().map_err(failed)?.is_dir() {
                self.collect(above, &path)?;
            } else {
                self.file(&path, 0o644, fs::read(entry.path()).map_err(failed)?);
            }
        }
        Ok(())
    }

    /// Adds a file; its path is relative.
    pub(crate) fn file(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        self.files.insert(path.to_owned(), (mode, bytes));
    }

    /// Adds a folder, which may stay empty, with the user and group `owner`.
    pub(crate) fn folder(&mut self, path: &str, mode: u32, owner: u64) {
        self.folders.insert(path.to_owned(), (mode, owner));
    }

    /// Adds all files of another tree below `place`.
    pub(crate) fn graft(&mut self, place: &str, other: &Self) {
        for (path, (mode, bytes)) in &other.files {
            self.file(&format!("{place}/{path}"), *mode, bytes.clone());
        }
    }

    /// Returns the files whose paths `wanted` selects.
    pub(crate) fn kept(&self, wanted: impl Fn(&str) -> bool) -> Self {
        let mut kept = self.clone();
        kept.files.retain(|path, _| wanted(path));
        kept
    }

    /// Returns the files with their paths mapped by `place`.
    pub(crate) fn places(&self, place: impl Fn(&str) -> String) -> Self {
        let files = self.files.iter().map(|(path, file)| (place(path), file.clone()));
        Self { files: files.collect(), folders: BTreeMap::new() }
    }

    /// Returns the files with their bytes mapped.
    pub(crate) fn mapped(&self, bytes: impl Fn(&[u8]) -> Vec<u8>) -> Self {
        let files = self.files.iter();
        let files = files.map(|(path, (mode, old))| (path.clone(), (*mode, bytes(old))));
        Self { files: files.collect(), folders: BTreeMap::new() }
    }

    /// Every file's path and bytes, in order.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, (_, bytes))| (path.as_str(), bytes.as_slice()))
    }

    /// Makes a tar archive: folders before their files, files owned by root, all with the time
    /// `seconds`.
    pub(crate) fn to_tar(&self, seconds: u64) -> Result<Vec<u8>, String> {
        let mut folders = self.folders.clone();
        for path in self.files.keys().chain(self.folders.keys()) {
            for (at, _) in path.match_indices('/') {
                folders.entry(path[..at].to_owned()).or_insert((0o755, 0));
            }
        }
        let mut archive = Builder::new(Vec::new());
        let failed = |error: std::io::Error| format!("cannot write an archive: {error}");
        for (path, (mode, owner)) in &folders {
            let mut header = header(EntryType::Directory, *mode, 0, seconds);
            header.set_uid(*owner);
            header.set_gid(*owner);
            if *owner != 0 {
                // Without names, the numbers count.
                header.set_username("").and_then(|()| header.set_groupname("")).map_err(failed)?;
            }
            let path = format!("{path}/");
            archive.append_data(&mut header, path, &[][..]).map_err(failed)?;
        }
        for (path, (mode, bytes)) in &self.files {
            let mut header = header(EntryType::Regular, *mode, bytes.len(), seconds);
            archive.append_data(&mut header, path, bytes.as_slice()).map_err(failed)?;
        }
        archive.into_inner().map_err(failed)
    }
}

fn header(kind: EntryType, mode: u32, size: usize, seconds: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size as u64);
    header.set_mtime(seconds);
    header.set_uid(0);
    header.set_gid(0);
    header.set_username("root").expect("it is short");
    header.set_groupname("root").expect("it is short");
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_adding_does_not_show() {
        let names = ["b/two", "a/one", "b/a/three"];
        let mut trees = [Tree::default(), Tree::default()];
        for (tree, reversed) in trees.iter_mut().zip([false, true]) {
            let mut order = names;
            if reversed {
                order.reverse();
            }
            for name in order {
                tree.file(name, 0o644, name.as_bytes().to_vec());
            }
        }
        let [first, second] = trees.map(|tree| tree.to_tar(5).expect("memory"));
        assert_eq!(first, second);
        let mut archive = tar::Archive::new(first.as_slice());
        let entries = archive.entries().expect("an archive").map(|entry| {
            let entry = entry.expect("an entry");
            assert_eq!(entry.header().mtime().ok(), Some(5));
            entry.path().expect("a path").display().to_string()
        });
        let found: Vec<_> = entries.collect();
        assert_eq!(found, ["a/", "b/", "b/a/", "a/one", "b/a/three", "b/two"]);
    }
}
