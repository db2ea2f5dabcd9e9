//! A folder of files that is gone with its test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("larder-folder-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        // The system's folder for temporary files may itself be a link.
        Self(fs::canonicalize(folder).expect("a folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file, in place if it is there.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, content).expect("a file");
    }

    /// Replaces a file atomically.
    pub(crate) fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        let draft = format!("{name}.draft");
        self.file(&draft, content);
        fs::rename(self.0.join(draft), self.0.join(name)).expect("put in place");
    }

    pub(crate) fn link(&self, to: &str, name: &str) {
        symlink(to, self.0.join(name)).expect("a link");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
