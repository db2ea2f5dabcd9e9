//! Ingredients of packages: programs, man pages, units, documents, component list.

use std::fs;
use std::path::Path;

use time::OffsetDateTime;

use super::tree::Tree;

/// The units of the daemon and of the process that opens files for it.
pub(super) const UNITS: [&str; 3] =
    ["larder.service", "larder-keeper.socket", "larder-keeper@.service"];

/// Documents of every package.
pub(super) const DOCUMENTS: [&str; 3] = ["LICENSE", "README.md", "CHANGELOG.md"];

/// The ingredients of packages.
#[derive(Debug)]
pub(super) struct Ingredients<'a> {
    /// The workspace.
    pub(super) root: &'a Path,
    /// The programs by their names, the daemon first, stripped.
    pub(super) programs: Vec<(&'static str, Vec<u8>)>,
    /// Man pages and completions, as the programs wrote them.
    pub(super) manual: Tree,
    /// The list of components (CycloneDX).
    pub(super) sbom: Vec<u8>,
    pub(super) version: String,
    /// The time of all files: the commit's.
    pub(super) time: OffsetDateTime,
}

impl Ingredients<'_> {
    /// Adds the programs below `folder`.
    pub(super) fn add_programs(&self, folder: &str, tree: &mut Tree) {
        for (name, bytes) in &self.programs {
            tree.file(&format!("{folder}/{name}"), 0o755, bytes.clone());
        }
    }

    pub(super) fn seconds(&self) -> u64 {
        u64::try_from(self.time.unix_timestamp()).unwrap_or(0)
    }

    pub(super) fn source(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.root.join(path)).map_err(|error| format!("{path}: {error}"))
    }
}
