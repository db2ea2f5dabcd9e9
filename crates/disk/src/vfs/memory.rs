//! A directory in memory: fast, and easily damaged. For tests.

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::{File, Vfs};

/// A directory in memory. Clones share it, as processes share a disk.
#[derive(Clone, Debug, Default)]
pub struct MemoryDirectory {
    files: Arc<Mutex<BTreeMap<String, Arc<MemoryFile>>>>,
    locked: Arc<AtomicBool>,
}

impl MemoryDirectory {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory with these files.
    pub fn with(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let files = files.into_iter().map(|(name, bytes)| (name, Arc::new(MemoryFile::of(bytes))));
        Self { files: Arc::new(Mutex::new(files.collect())), locked: Arc::default() }
    }

    /// Another directory with equal bytes.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self::with(self.contents())
    }

    /// All files with their bytes.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let files = self.files.lock();
        files.iter().map(|(name, file)| (name.clone(), file.bytes.lock().clone())).collect()
    }

    /// Changes bytes of a file as a bad disk does. Returns false if the file is absent.
    pub fn damage(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let file = self.files.lock().get(name).cloned();
        file.is_some_and(|file| {
            change(&mut file.bytes.lock());
            true
        })
    }

    /// Sets whether non-blocking reads succeed: true at first.
    pub fn set_cached(&self, cached: bool) {
        for file in self.files.lock().values() {
            file.cached.store(cached, Ordering::Relaxed);
        }
    }
}

/// Releases the lock of a [`MemoryDirectory`].
struct Lock(Arc<AtomicBool>);

impl Drop for Lock {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Vfs for MemoryDirectory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn open(&self, name: &str, make: bool) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        if make {
            let file = files.entry(name.to_owned());
            return Ok(
                Arc::clone(file.or_insert_with(|| Arc::new(MemoryFile::of(Vec::new())))) as _
            );
        }
        let file = files.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::clone(file) as _)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.files.lock().keys().cloned().collect())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.files.lock();
        let file = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.lock().remove(name).map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn sync_names(&self) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        if self.locked.swap(true, Ordering::Acquire) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Lock(Arc::clone(&self.locked))))
    }
}

/// A file of a [`MemoryDirectory`].
#[derive(Debug)]
struct MemoryFile {
    bytes: Mutex<Vec<u8>>,
    cached: AtomicBool,
}

impl MemoryFile {
    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes: Mutex::new(bytes), cached: AtomicBool::new(true) }
    }
}

impl File for MemoryFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock();
        let there = bytes.get(usize::try_from(at).unwrap_or(usize::MAX)..).unwrap_or_default();
        let taken = there.len().min(into.len());
        into[..taken].copy_from_slice(&there[..taken]);
        Ok(taken)
    }

    fn read_now_at(&self, into: &mut [u8], at: u64) -> io::Result<Option<usize>> {
        if self.cached.load(Ordering::Relaxed) {
            self.read_at(into, at).map(Some)
        } else {
            Ok(None)
        }
    }

    fn write_at(&self, new: &[u8], at: u64) -> io::Result<usize> {
        let mut bytes = self.bytes.lock();
        let at = at as usize;
        if bytes.len() < at + new.len() {
            bytes.resize(at + new.len(), 0);
        }
        bytes[at..at + new.len()].copy_from_slice(new);
        Ok(new.len())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn preallocate(&self, len: u64) -> io::Result<()> {
        let mut bytes = self.bytes.lock();
        let len = bytes.len().max(len as usize);
        bytes.resize(len, 0);
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.bytes.lock().resize(len as usize, 0);
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes.lock().len() as u64)
    }
}
