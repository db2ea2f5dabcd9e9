//! The writer of log rings. It must never wait for a reader.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{
    BLOCK_HEAD, BLOCK_MAX, BlockHead, CAPACITY_MIN, Cursor, HEAD_BYTES, NAME_MAX, RingHeader,
    core_file,
};
use crate::record::VALUES_MAX;

/// The settings of new rings.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder; created if absent.
    pub folder: PathBuf,
    /// Core threads; each has a ring.
    pub cores: usize,
    /// Total bytes of all rings; a core's ring has at least [`CAPACITY_MIN`].
    pub size: u64,
    /// Names of the request fields that records keep, at most [`VALUES_MAX`].
    pub names: Vec<String>,
    /// The daemon's process id.
    pub pid: u32,
    /// The user who must own the folder.
    pub uid: u32,
    /// Start of the daemon, in milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
}

/// A folder's lock, which the daemon before this one has handed over.
#[derive(Debug)]
pub struct InheritedLock {
    /// The folder.
    pub folder: PathBuf,
    /// The open lock file.
    pub file: File,
}

/// The rings of one daemon, locked against other daemons.
#[derive(Debug)]
pub struct Ring {
    folder: PathBuf,
    files: Vec<(File, RingHeader)>,
    names: Vec<String>,
    /// The lock against other daemons.
    lock: File,
}

impl Ring {
    /// Creates new rings in the folder. Readers find them once they are published. With the lock
    /// `inherited`, the daemon before this one may still write to its own rings.
    ///
    /// # Errors
    /// A folder that cannot be created or belongs to another user, another daemon that writes there
    /// ([`io::ErrorKind::AddrInUse`]), or a full file system.
    pub fn create(options: &Options, inherited: Option<InheritedLock>) -> io::Result<Self> {
        let folder = options.folder.clone();
        own_folder(&folder, options.uid)?;
        let lock = match inherited.filter(|own| own.folder == folder) {
            Some(own) => own.file,
            None => lock(&folder)?,
        };
        let cores = options.cores.max(1);
        let capacity = (options.size / cores as u64).max(CAPACITY_MIN) / 4096 * 4096;
        let mut names = options.names.clone();
        names.truncate(VALUES_MAX);
        names.retain(|name| name.len() <= NAME_MAX);
        let mut files = Vec::with_capacity(cores);
        for core in 0..cores {
            let head = RingHeader {
                capacity,
                core: core as u32,
                cores: cores as u32,
                pid: options.pid,
                started_unix_ms: options.started_unix_ms,
                names: names.clone(),
            };
            files.push((new_file(&folder, core, &head)?, head));
        }
        Ok(Self { folder, files, names, lock })
    }

    /// Puts the rings in place of older ones in the folder, whose readers switch to them.
    ///
    /// # Errors
    /// A file that cannot be renamed.
    pub fn publish(&self) -> io::Result<()> {
        for core in 0..self.files.len() {
            fs::rename(file_beside(&self.folder, core), core_file(&self.folder, core))?;
        }
        // Rings of an earlier daemon with more cores.
        for core in self.files.len().. {
            if fs::remove_file(core_file(&self.folder, core)).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// The lock of the folder, for the daemon after this one.
    pub fn lock(&self) -> &File {
        &self.lock
    }

    /// The folder of the rings.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The request fields that records keep.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Total bytes of all rings.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|(_, head)| head.capacity).sum()
    }

    /// Returns the writer of `core`. Call it once per core.
    ///
    /// # Errors
    /// No such core, or no file descriptor left.
    pub fn writer(&self, core: usize) -> io::Result<Writer> {
        let (file, head) = self.files.get(core).ok_or(io::ErrorKind::NotFound)?;
        Ok(Writer {
            file: file.try_clone()?,
            capacity: head.capacity,
            cursor: Cursor::default(),
            starts: VecDeque::new(),
        })
    }

    /// Marks the rings as ended and removes files and folder, unless another daemon has put its
    /// rings there. Readers that have the files open read them to their end. Call it after all
    /// writers are dropped.
    pub fn end(&self) {
        let mut is_own = true;
        for (core, (file, _)) in self.files.iter().enumerate() {
            // The file is removed even if its cursor cannot be written.
            if let Ok(Some(cursor)) = Cursor::read(file) {
                _ = file.write_all_at(&Cursor { ended: true, ..cursor }.bytes(), 0);
            }
            let path = core_file(&self.folder, core);
            match is_file(file, &path) {
                true => _ = fs::remove_file(path),
                false => is_own = false,
            }
        }
        if !is_own {
            return;
        }
        // A folder with other files in it stays.
        _ = fs::remove_file(self.folder.join("lock"));
        _ = fs::remove_dir(&self.folder);
    }
}

/// Creates the folder for its owner alone. An existing folder must already be that.
fn own_folder(folder: &Path, uid: u32) -> io::Result<()> {
    match DirBuilder::new().recursive(true).mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(folder)?;
    // In a folder like /tmp another user may have created it.
    if !found.is_dir() || found.uid() != uid {
        let why = "it belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))
}

fn lock(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon writes there"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns true if `path` is the open `file`.
fn is_file(file: &File, path: &Path) -> bool {
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let own = file.metadata().map(identity);
    own.is_ok_and(|own| fs::symlink_metadata(path).map(identity).is_ok_and(|it| it == own))
}

/// The path of a core's ring until it is published.
fn file_beside(folder: &Path, core: usize) -> PathBuf {
    folder.join(format!("new-{core}"))
}

/// Creates a ring's file beside an old one. The file is sparse: it takes memory only where it is
/// written.
fn new_file(folder: &Path, core: usize, head: &RingHeader) -> io::Result<File> {
    let beside = file_beside(folder, core);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let file = options.create_new(true).read(true).write(true).mode(0o600).open(&beside)?;
    file.set_len(HEAD_BYTES as u64 + head.capacity)?;
    file.write_all_at(&head.bytes(), 0)?;
    file.write_all_at(&Cursor::default().bytes(), 0)?;
    Ok(file)
}

/// The writer of one core's ring.
#[derive(Debug)]
pub struct Writer {
    file: File,
    capacity: u64,
    cursor: Cursor,
    /// Positions of the blocks, from the tail on.
    starts: VecDeque<u64>,
}

impl Writer {
    /// Writes a block of `count` whole records: at most a batch and one record more
    /// ([`super::BATCH`]).
    ///
    /// # Errors
    /// A full file system. The records are lost, and readers count them.
    /// know how many.
    pub fn append(&mut self, records: &[u8], count: u32) -> io::Result<()> {
        let Cursor { head, records: before, .. } = self.cursor;
        self.cursor.records += u64::from(count);
        let length = (BLOCK_HEAD + records.len()) as u64;
        if length > BLOCK_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let of = BlockHead { length: records.len() as u32, count, position: head, before };
        // The last cursor's tail is behind the bytes that this block overwrites.
        self.put(head, &of.bytes())?;
        self.put(head + BLOCK_HEAD as u64, records)?;
        self.starts.push_back(head);
        let cursor = Cursor { head: head + length, ..self.cursor };
        self.cursor = Cursor { tail: self.tail_for(cursor.head), ..cursor };
        self.file.write_all_at(&self.cursor.bytes(), 0)
    }

    /// The oldest position that stays whole while the block at `head` is written.
    fn tail_for(&mut self, head: u64) -> u64 {
        let least = (head + BLOCK_MAX).saturating_sub(self.capacity);
        while self.starts.front().is_some_and(|start| *start < least) {
            self.starts.pop_front();
        }
        self.starts.front().copied().unwrap_or(head)
    }

    /// Writes `bytes` at `position`, wrapping at the end of the file.
    fn put(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let at = position % self.capacity;
        let (first, rest) = bytes.split_at(bytes.len().min((self.capacity - at) as usize));
        self.file.write_all_at(first, HEAD_BYTES as u64 + at)?;
        if rest.is_empty() {
            return Ok(());
        }
        self.file.write_all_at(rest, HEAD_BYTES as u64)
    }
}
