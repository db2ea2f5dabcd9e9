//! The file with the process id (`-P`).

use std::path::{Path, PathBuf};

/// The file, until it is dropped.
#[derive(Debug)]
pub(crate) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the id of this process, in place of that of a former one.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write(path: &Path) -> Result<Self, String> {
        std::fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|error| format!("larder: -P {}: {error}", path.display()))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let named = std::fs::read_to_string(&self.0).unwrap_or_default();
        // It may name the process that has replaced this one.
        if named.trim_end().parse() == Ok(std::process::id()) {
            _ = std::fs::remove_file(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_names_another_process_stays() {
        let path = std::env::temp_dir().join(format!("larder-pid-{}", std::process::id()));
        drop(PidFile::write(&path).expect("written"));
        assert!(!path.exists());
        let own = PidFile::write(&path).expect("written");
        std::fs::write(&path, "1\n").expect("another process");
        drop(own);
        assert!(path.exists());
        std::fs::remove_file(&path).expect("removed");
    }
}
