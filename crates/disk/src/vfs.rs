//! Files of one directory, as the store asks for them: the real ones, or some in memory that fail,
//! or are cut off, where a test wants it.

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

/// A directory and its files. What is made, renamed and removed is durable after
/// [`Vfs::sync_names`], and bytes of a file after [`File::sync`].
pub trait Vfs: Debug + Send + Sync + 'static {
    /// Its name, for messages.
    fn name(&self) -> String;
    /// Opens the file `name`; if `make` says so, one that is not there is made.
    ///
    /// # Errors
    /// Those of the system; `NotFound` where there is no file and none is to be made.
    fn open(&self, name: &str, make: bool) -> io::Result<Arc<dyn File>>;
    /// Names of all files.
    ///
    /// # Errors
    /// Those of the system.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Gives a file another name, which another file may have had.
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
    /// Takes the directory for this process, until what it returns is dropped.
    ///
    /// # Errors
    /// `WouldBlock` where another has it; others of the system.
    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>>;
}

/// An open file, read and written at offsets by any number of threads.
pub trait File: Debug + Send + Sync {
    /// Reads at `at`; returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize>;
    /// Reads what needs no waiting for the disk; `None` if it is not in memory.
    ///
    /// # Errors
    /// Those of the system.
    fn read_now_at(&self, into: &mut [u8], at: u64) -> io::Result<Option<usize>>;
    /// Writes at `at`; returns the number of bytes.
    ///
    /// # Errors
    /// Those of the system.
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize>;
    /// Makes the bytes durable.
    ///
    /// # Errors
    /// Those of the system. What was written since the last success may be lost then, whatever a
    /// later call says.
    fn sync(&self) -> io::Result<()>;
    /// Reserves room for the first `bytes` bytes, and makes the file so long if it is shorter.
    ///
    /// # Errors
    /// Those of the system, as when there is not so much room.
    fn preallocate(&self, bytes: u64) -> io::Result<()>;
    /// Cuts the file, or makes it longer with zeros.
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
/// Those of the system; `UnexpectedEof` where the file ends before.
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
/// Those of the system; `WriteZero` where nothing is taken.
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

/// The whole file `name`; `None` if it is not there, or longer than `most` bytes.
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

/// Puts `bytes` in place of the file `name`, durably: whoever opens it finds the old file or the
/// new one.
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
