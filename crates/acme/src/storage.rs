//! The storage: the account and one file for each certificate, below a folder for each authority,
//! so that a staging authority never overwrites files in use. Folders and files must be readable by
//! their owner only, and a file is replaced as a whole: written beside, synced, renamed.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tls::CertificateKeyPair;

/// More than a certificate with its chain and its key takes.
const PROBE_BYTES: usize = 16 * 1024;

/// The folder of one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    folder: PathBuf,
}

/// The proof that only this process writes, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// The outcome of reading a file.
pub(crate) enum FileContent<T> {
    Nothing,
    Whole(T),
    /// The file exists, but cannot be used.
    Broken(String),
}

impl Storage {
    /// The folder below `root` for the authority with this directory URL. The disk is not touched
    /// yet.
    pub fn new(root: &Path, directory: &str) -> Self {
        let bare = directory.strip_prefix("https://").unwrap_or(directory);
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = bare.chars().map(plain).collect();
        Self { folder: root.join(name.trim_matches(['-', '.'])) }
    }

    /// The file for `name`, a host in canonical form: the key and the certificate chain, both PEM.
    /// It may not exist yet.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.folder.join("certificates").join(format!("{name}.pem"))
    }

    /// The name of the authority's folder.
    pub(crate) fn authority(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// The bytes of the file for `name`, if it exists.
    pub(crate) fn read_pem(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        read(&self.certificate(name))
    }

    fn account(&self) -> PathBuf {
        self.folder.join("account.json")
    }

    /// Creates missing folders, and removes the permissions of other users.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        let certificates = self.folder.join("certificates");
        let named = |error| at(&certificates, error);
        DirBuilder::new().recursive(true).mode(0o700).create(&certificates).map_err(named)?;
        for folder in [&self.folder, &certificates] {
            if fs::metadata(folder).map_err(|e| at(folder, e))?.permissions().mode() & 0o077 != 0 {
                fs::set_permissions(folder, Permissions::from_mode(0o700))
                    .map_err(|e| at(folder, e))?;
            }
        }
        Ok(())
    }

    /// Checks that a certificate could be stored: one that is ordered and then lost counts at the
    /// authority too. To be called with the lock.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let probe = self.folder.join("probe");
        write(&probe, &[b'x'; PROBE_BYTES])?;
        fs::remove_file(&probe).map_err(|error| at(&probe, error))
    }

    /// Takes the lock for ordering and writing; `None` if another process holds it.
    pub(crate) fn lock(&self) -> io::Result<Option<Lock>> {
        let path = self.folder.join("lock");
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
        let file = opened.map_err(|error| at(&path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(at(&path, error)),
        }
    }

    /// The certificate stored for `name`.
    pub(crate) fn read_certificate(
        &self,
        name: &str,
    ) -> io::Result<FileContent<Arc<CertificateKeyPair>>> {
        let path = self.certificate(name);
        Ok(match read(&path)? {
            None => FileContent::Nothing,
            Some(pem) => match CertificateKeyPair::parse(&pem, &pem) {
                Ok(pair) if pair.covers(name) => FileContent::Whole(Arc::new(pair)),
                Ok(_) => FileContent::Broken(format!("{}: it is for another name", path.display())),
                Err(error) => FileContent::Broken(format!("{}: {error}", path.display())),
            },
        })
    }

    /// Stores a certificate for `name`.
    pub(crate) fn write_certificate(&self, name: &str, pem: &[u8]) -> io::Result<()> {
        write(&self.certificate(name), pem)
    }

    /// Sets the file for `name` aside and returns its new path.
    pub(crate) fn put_certificate_aside(&self, name: &str) -> io::Result<PathBuf> {
        aside(&self.certificate(name))
    }

    /// The account, JSON.
    pub(crate) fn read_account(&self) -> io::Result<Option<Vec<u8>>> {
        read(&self.account())
    }

    pub(crate) fn write_account(&self, json: &[u8]) -> io::Result<()> {
        write(&self.account(), json)
    }

    pub(crate) fn put_account_aside(&self) -> io::Result<PathBuf> {
        aside(&self.account())
    }
}

/// An error with the path of its file.
fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path, error)),
    }
}

/// Replaces the file at `path` by `bytes`, so that a power failure leaves the old or the new one.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let named = |error| at(path, error);
    let draft = with_suffix(path, &format!("new-{}", std::process::id()));
    let written = (|| {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&draft)?;
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    })();
    if written.is_err() {
        // The draft has no further use, and failing to remove it has no effect.
        _ = fs::remove_file(&draft);
    }
    written.map_err(named)
}

fn aside(path: &Path) -> io::Result<PathBuf> {
    // The first free name, so that former files are kept.
    let free = (1..=100).map(|n| with_suffix(path, &format!("bad-{n}"))).find(|p| !p.exists());
    let target = free.unwrap_or_else(|| with_suffix(path, "bad"));
    fs::rename(path, &target).map_err(|error| at(path, error))?;
    Ok(target)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is gone with the test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> (Self, Storage) {
            let root =
                std::env::temp_dir().join(format!("larder-acme-{name}-{}", std::process::id()));
            let storage = Storage::new(&root, "https://ca.test:14000/dir");
            (Self(root), storage)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn every_authority_has_a_folder_of_its_own_below_the_root() {
        let folder = |url: &str| Storage::new(Path::new("/s"), url).folder;
        assert_eq!(folder("https://ca.test:14000/dir"), Path::new("/s/ca.test-14000-dir"));
        assert_ne!(folder("https://ca.test/a"), folder("https://ca.test/b"));
        assert_eq!(folder("https://../../etc"), Path::new("/s/etc"));
    }

    #[test]
    fn what_is_stored_is_its_owners_alone() {
        let (scratch, storage) = Scratch::new("modes");
        DirBuilder::new().recursive(true).mode(0o755).create(&storage.folder).expect("a folder");
        storage.prepare().expect("folders");
        storage.write_account(b"{}").expect("written");
        storage.write_certificate("a.test", b"x").expect("written");
        let lock = storage.lock().expect("a lock file").expect("no other process has it");
        assert_eq!(mode(&storage.folder), 0o700);
        assert_eq!(mode(&storage.folder.join("certificates")), 0o700);
        for file in ["account.json", "lock", "certificates/a.test.pem"] {
            assert_eq!(mode(&storage.folder.join(file)), 0o600, "{file}");
        }
        storage.probe().expect("room for a certificate");
        assert!(!storage.folder.join("probe").exists());
        drop((lock, scratch));
    }

    #[test]
    fn one_at_a_time_has_the_lock() {
        let (_scratch, storage) = Scratch::new("lock");
        storage.prepare().expect("folders");
        let first = storage.lock().expect("a lock file").expect("free");
        assert!(storage.lock().expect("a lock file").is_none());
        drop(first);
        assert!(storage.lock().expect("a lock file").is_some());
    }

    #[test]
    fn what_cannot_be_read_is_named_and_put_aside_without_loss() {
        let (_scratch, storage) = Scratch::new("aside");
        storage.prepare().expect("folders");
        assert!(matches!(storage.read_certificate("a.test"), Ok(FileContent::Nothing)));
        let mut places = Vec::new();
        for text in ["one", "two"] {
            storage.write_certificate("a.test", text.as_bytes()).expect("written");
            let Ok(FileContent::Broken(why)) = storage.read_certificate("a.test") else {
                panic!("it is no certificate")
            };
            assert!(why.contains("a.test.pem: there is no certificate in it"), "{why}");
            let place = storage.put_certificate_aside("a.test").expect("put aside");
            assert_eq!(fs::read_to_string(&place).expect("kept"), text);
            places.push(place);
        }
        assert_ne!(places[0], places[1]);
        assert!(matches!(storage.read_certificate("a.test"), Ok(FileContent::Nothing)));
    }

    #[test]
    fn a_certificate_for_another_name_is_broken() {
        let (_scratch, storage) = Scratch::new("name");
        storage.prepare().expect("folders");
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a pair");
        let pem = made.signing_key.serialize_pem() + &made.cert.pem();
        for (name, whole) in [("a.test", true), ("b.test", false)] {
            storage.write_certificate(name, pem.as_bytes()).expect("written");
            let read = storage.read_certificate(name).expect("read");
            assert_eq!(matches!(read, FileContent::Whole(_)), whole, "{name}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let (scratch, storage) = Scratch::new("file");
        fs::write(&scratch.0, "no folder").expect("written");
        let error = storage.prepare().expect_err("a file is in the way").to_string();
        assert!(error.contains("certificates"), "{error}");
        fs::remove_file(&scratch.0).expect("removed");
    }
}
