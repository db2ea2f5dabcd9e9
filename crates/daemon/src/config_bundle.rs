//! A configuration bundle: the text of a configuration that all nodes share, and the VCL files that
//! it names and includes.
//!
//! A file of the receiving node never replaces one of the bundle.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file of the last bundle, in its folder.
const FILE: &str = "configuration.json";
/// The default folder, below the state directory.
const FOLDER: &str = "cluster";

/// A configuration with its programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigBundle {
    /// The name of the file that it was read from, without the folder.
    pub name: String,
    /// The text of the configuration.
    pub toml: String,
    /// The VCL files, by the paths that they were read from.
    pub vcl: BTreeMap<String, String>,
}

impl ConfigBundle {
    /// Encodes the bundle as JSON.
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Decodes what [`ConfigBundle::encode`] wrote; `None` for anything else.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// The version: a prefix of a hash of everything but the name.
    pub fn version(&self) -> String {
        cluster::version_of(&serde_json::to_vec(&(&self.toml, &self.vcl)).unwrap_or_default())
    }

    /// The name in messages.
    pub(crate) fn title(&self) -> String {
        let name: String = self.name.chars().filter(|c| !c.is_control()).take(100).collect();
        format!("{name}@{}", self.version())
    }

    /// Saves the bundle in a folder of the daemon's own, atomically.
    ///
    /// # Errors
    /// The reason why it cannot be saved.
    pub(crate) fn keep(&self, folder: &Path) -> Result<(), String> {
        let file = folder.join(FILE);
        let kept = || -> io::Result<()> {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            let new = file.with_extension("new");
            let mut written = OpenOptions::new()
                .create(true)
                .write(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            written.write_all(&self.encode())?;
            written.sync_all()?;
            fs::rename(&new, &file)?;
            File::open(folder)?.sync_all()
        };
        kept().map_err(|error| format!("{}: {error}", file.display()))
    }

    /// Loads the bundle saved in a folder, if there is one.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub(crate) fn kept(folder: &Path) -> Result<Option<Self>, String> {
        let file = folder.join(FILE);
        match fs::read(&file) {
            Ok(bytes) => match Self::decode(&bytes) {
                Some(bundle) => Ok(Some(bundle)),
                None => Err(format!("{}: it is damaged", file.display())),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }
}

/// The folder for what a node needs at its next start: the configured one, or else the service
/// manager's state directory.
pub(crate) fn folder(storage: Option<&Path>) -> PathBuf {
    if let Some(storage) = storage {
        return storage.to_owned();
    }
    let state = std::env::var_os("STATE_DIRECTORY");
    let first = state.as_ref().and_then(|all| std::env::split_paths(all).next());
    let first = first.filter(|folder| folder.is_absolute());
    first.unwrap_or_else(|| PathBuf::from("/var/lib/larder")).join(FOLDER)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn bundle(toml: &str) -> ConfigBundle {
        let vcl = BTreeMap::from([("/a.vcl".to_owned(), "vcl 4.1;".to_owned())]);
        ConfigBundle { name: "all.toml".to_owned(), toml: toml.to_owned(), vcl }
    }

    #[test]
    fn a_version_is_that_of_its_text_and_its_programs() {
        let one = bundle("a");
        let mut other = ConfigBundle { name: "b.toml".to_owned(), ..one.clone() };
        assert_eq!(one.version(), other.version());
        assert_ne!(one.version(), bundle("b").version());
        other.vcl.insert("/b.vcl".to_owned(), String::new());
        assert_ne!(one.version(), other.version());
        assert_eq!(ConfigBundle::decode(&one.encode()), Some(one));
        assert_eq!(ConfigBundle::decode(b"{}"), None);
    }

    #[test]
    fn the_last_one_is_kept_for_its_owner_alone() {
        let root = std::env::temp_dir().join(format!("larder-carried-{}", std::process::id()));
        let folder = root.join("cluster");
        assert_eq!(ConfigBundle::kept(&folder), Ok(None));
        for text in ["a", "b"] {
            bundle(text).keep(&folder).expect("kept");
            assert_eq!(ConfigBundle::kept(&folder), Ok(Some(bundle(text))));
        }
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1);
        fs::write(folder.join(FILE), b"{}").expect("written");
        assert!(ConfigBundle::kept(&folder).expect_err("damaged").ends_with("it is damaged"));
        fs::remove_dir_all(root).expect("removed");
    }
}
