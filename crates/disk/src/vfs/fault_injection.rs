//! Fault injection: files that fail on request, as on a full, broken, read-only or slow disk. For
//! tests.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::{File, Vfs};

/// An operation on a file, or on the names of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read, blocking or not.
    Read,
    /// A write of this many bytes.
    Write(usize),
    /// A sync of bytes.
    Sync,
    /// Creating, preallocating, truncating, renaming or removing a file, or a sync of names.
    Names,
}

/// A fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// A full disk: ENOSPC.
    Full,
    /// A bad sector: EIO.
    Broken,
    /// A file system that was remounted: EROFS.
    ReadOnly,
    /// A write of only this many bytes.
    Short(usize),
}

impl InjectedFault {
    fn error(self) -> io::Error {
        let errno = match self {
            Self::Full => rustix::io::Errno::NOSPC,
            Self::Broken | Self::Short(_) => rustix::io::Errno::IO,
            Self::ReadOnly => rustix::io::Errno::ROFS,
        };
        errno.into()
    }
}

/// A hook before each operation, called with the file's name. It may wait, as a slow disk does.
pub type Hook = dyn Fn(&str, Operation) -> Option<InjectedFault> + Send + Sync;

/// A directory over another one, whose operations fail as a hook says.
#[derive(Clone)]
pub struct FaultyDirectory {
    under: Arc<dyn Vfs>,
    hook: Arc<Hook>,
}

impl FaultyDirectory {
    /// `under`, with `hook` called before each operation.
    pub fn new(
        under: impl Vfs,
        hook: impl Fn(&str, Operation) -> Option<InjectedFault> + Send + Sync + 'static,
    ) -> Self {
        Self { under: Arc::new(under), hook: Arc::new(hook) }
    }

    fn ask(&self, name: &str, operation: Operation) -> io::Result<()> {
        (self.hook)(name, operation).map_or(Ok(()), |fault| Err(fault.error()))
    }
}

impl fmt::Debug for FaultyDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("under", &self.under).finish_non_exhaustive()
    }
}

impl Vfs for FaultyDirectory {
    fn name(&self) -> String {
        self.under.name()
    }

    fn open(&self, name: &str, make: bool) -> io::Result<Arc<dyn File>> {
        if make {
            self.ask(name, Operation::Names)?;
        }
        let under = self.under.open(name, make)?;
        Ok(Arc::new(FaultyFile { under, name: name.to_owned(), directory: self.clone() }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.under.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.ask(to, Operation::Names)?;
        self.under.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.ask(name, Operation::Names)?;
        self.under.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.ask("", Operation::Names)?;
        self.under.sync_names()
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.under.lock()
    }
}

/// A file of a [`FaultyDirectory`].
#[derive(Debug)]
struct FaultyFile {
    under: Arc<dyn File>,
    name: String,
    directory: FaultyDirectory,
}

impl FaultyFile {
    fn ask(&self, operation: Operation) -> io::Result<()> {
        self.directory.ask(&self.name, operation)
    }
}

impl File for FaultyFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.ask(Operation::Read)?;
        self.under.read_at(into, at)
    }

    fn read_now_at(&self, into: &mut [u8], at: u64) -> io::Result<Option<usize>> {
        self.ask(Operation::Read)?;
        self.under.read_now_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        match (self.directory.hook)(&self.name, Operation::Write(bytes.len())) {
            Some(InjectedFault::Short(most)) => {
                self.under.write_at(&bytes[..most.min(bytes.len())], at)
            }
            Some(fault) => Err(fault.error()),
            None => self.under.write_at(bytes, at),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.ask(Operation::Sync)?;
        self.under.sync()
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.ask(Operation::Names)?;
        self.under.preallocate(bytes)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.ask(Operation::Names)?;
        self.under.truncate(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        self.under.size()
    }
}
