//! The virtual file system: the files of one directory, as the store uses them. They are real, or
//! in memory for tests, which can inject faults and power failures.

mod directory_content;
mod fault_injection;
mod memory;
mod real_directory;
mod recording;

use std::any::Any;
use std::fmt::Debug;
use std::io::{self, ErrorKind};
use std::sync::Arc;

pub use directory_content::{DirectoryContent, is_volumes};
pub use fault_injection::{FaultyDirectory, Hook, InjectedFault, Operation};
pub use memory::MemoryDirectory;
pub use real_directory::RealDirectory;
pub use recording::RecordingDirectory;

/// A directory and its files. Created, renamed and removed names are durable after
/// [`Vfs::sync_names`], and bytes of a file after [`File::sync`].
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Its name, for messages.
    fn name(&self) -> String;
    /// Opens the file `name`, or creates it if `make` is true.
    ///
    /// # Errors
    /// Those of the system; `NotFound` for an absent file that is not to be created.
    fn open(&self, name: &str, make: bool) -> io::Result<Arc<dyn File>>;
    /// Names of all files.
    ///
    /// # Errors
    /// Those of the system.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Renames a file, and replaces any other file of the new name.
    ///
    /// # Errors
    /// Those of the system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes all names durable.
    ///
    /// # Errors
    /// Those of the system.
    fn sync_names(&self) -> io::Result<()>;
    /// Locks the directory for this process, until the result is dropped.
    ///
    /// # Errors
    /// `WouldBlock` if another process has locked it; others of the system.
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>>;
}

/// An open file, read and written at offsets by any number of threads.
pub trait File: Debug + Send + Sync {
    /// Reads at `at` and returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
    /// Reads bytes that are in the system's memory; `None` if they are not.
    ///
    /// # Errors
    /// Those of the system.
    fn read_now_at(&self, into: &mut [u8], at: u64) -> io::Result<Option<usize>>;
    /// Writes at `at` and returns the number of bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize>;
    /// Makes the bytes durable.
    ///
    /// # Errors
    /// Those of the system. Bytes written since the last success may then be lost, even if a later
    /// call succeeds.
    fn sync(&self) -> io::Result<()>;
    /// Reserves space for the first `bytes` bytes, and extends a shorter file to that length.
    ///
    /// # Errors
    /// Those of the system, such as a full disk.
    fn preallocate(&self, bytes: u64) -> io::Result<()>;
    /// Truncates the file, or extends it with zeros.
    ///
    /// # Errors
    /// Those of the system.
    fn truncate(&self, bytes: u64) -> io::Result<()>;
    /// Its length.
    ///
    /// # Errors
    /// Those of the system.
    fn size(&self) -> io::Result<u64>;
}

/// Fills `into` from `at` on.
///
/// # Errors
/// Those of the system; `UnexpectedEof` if the file is too short.
pub(crate) fn read_all(file: &dyn File, mut into: &mut [u8], mut at: u64) -> io::Result<()> {
    while !into.is_empty() {
        match file.read_at(into, at) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => {
                into = &mut into[bytes..];
                at += bytes as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `at`.
///
/// # Errors
/// Those of the system; `WriteZero` if nothing is accepted.
pub(crate) fn write_all(file: &dyn File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write_at(bytes, at) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(taken) => {
                bytes = &bytes[taken..];
                at += taken as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The whole file `name`; `None` if it is absent or longer than `most` bytes.
///
/// # Errors
/// Those of the system.
pub(crate) fn read_file(vfs: &dyn Vfs, name: &str, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match vfs.open(name, false) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let size = file.size()?;
    if size > most {
        return Ok(None);
    }
    let mut bytes = vec![0; size as usize];
    read_all(&*file, &mut bytes, 0)?;
    Ok(Some(bytes))
}

/// Replaces the file `name` by `bytes`, durably: a reader finds the old file or the new one.
///
/// # Errors
/// Those of the system.
pub(crate) fn replace(vfs: &dyn Vfs, name: &str, bytes: &[u8]) -> io::Result<()> {
    let beside = format!("{name}.new");
    let file = vfs.open(&beside, true)?;
    file.truncate(0)?;
    write_all(&*file, bytes, 0)?;
    file.sync()?;
    vfs.rename(&beside, name)?;
    vfs.sync_names()
}
