//! A recording directory for crash tests: it can show the disk after a power failure at any moment.
//! All synced bytes are there; of the rest, any sectors may have been written, in any order.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;

use super::{File, MemoryDirectory, Vfs};

/// Bytes that a disk writes completely or not at all.
const SECTOR: u64 = 512;

/// An operation on a file (by number, as names change) or on the names.
#[derive(Debug)]
enum RecordedOperation {
    Make { name: String, file: usize },
    Rename { from: String, to: String },
    Remove { name: String },
    SyncNames,
    Write { file: usize, at: u64, bytes: Arc<[u8]> },
    Size { file: usize, size: u64, cuts: bool },
    Sync { file: usize },
}

/// All operations, and the numbers of the files.
#[derive(Debug, Default)]
struct Log {
    operations: Vec<RecordedOperation>,
    numbers: BTreeMap<String, usize>,
    made: usize,
}

/// A directory in memory that records its operations.
#[derive(Clone, Debug, Default)]
pub struct RecordingDirectory {
    under: MemoryDirectory,
    log: Arc<Mutex<Log>>,
}

impl RecordingDirectory {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A directory with these files, all of them durable.
    pub fn over(under: &MemoryDirectory) -> Self {
        let own = Self::new();
        for (name, bytes) in under.contents() {
            // Memory does not fail.
            let Ok(file) = own.open(&name, true) else { continue };
            let written = file.write_at(&bytes, 0).and_then(|_| file.sync());
            debug_assert!(written.is_ok(), "memory takes everything");
        }
        own.log.lock().operations.push(RecordedOperation::SyncNames);
        own
    }

    /// The number of operations so far: a point for a power failure.
    pub fn point(&self) -> usize {
        self.log.lock().operations.len()
    }

    /// The disk after a power failure at `point`, in one of its possible states.
    pub fn cut(&self, point: usize, seed: u64) -> MemoryDirectory {
        let log = self.log.lock();
        let mut disk = SimulatedDisk::default();
        for operation in &log.operations[..point.min(log.operations.len())] {
            disk.play(operation);
        }
        disk.settle(&mut Rng::with_seed(seed))
    }
}

/// A disk with a cache: its durable bytes, and those that may be lost.
#[derive(Default)]
struct SimulatedDisk<'a> {
    names: BTreeMap<&'a str, usize>,
    unsure: Vec<&'a RecordedOperation>,
    files: BTreeMap<usize, Track<'a>>,
}

/// A file with the operations since its last sync.
#[derive(Default)]
struct Track<'a> {
    bytes: Vec<u8>,
    unsure: Vec<&'a RecordedOperation>,
}

impl<'a> SimulatedDisk<'a> {
    fn play(&mut self, operation: &'a RecordedOperation) {
        match operation {
            RecordedOperation::Make { .. }
            | RecordedOperation::Rename { .. }
            | RecordedOperation::Remove { .. } => self.unsure.push(operation),
            RecordedOperation::SyncNames => {
                for operation in std::mem::take(&mut self.unsure) {
                    name(&mut self.names, operation);
                }
            }
            RecordedOperation::Write { file, .. } | RecordedOperation::Size { file, .. } => {
                self.files.entry(*file).or_default().unsure.push(operation);
            }
            RecordedOperation::Sync { file } => {
                let track = self.files.entry(*file).or_default();
                for operation in std::mem::take(&mut track.unsure) {
                    change(&mut track.bytes, operation, |_| true);
                }
            }
        }
    }

    /// Selects the unsynced operations that have reached the disk.
    fn settle(mut self, rng: &mut Rng) -> MemoryDirectory {
        // Some failures lose nothing, and some lose all that was not synced.
        let luck = [0.0, 0.2, 0.5, 0.8, 1.0][rng.usize(..5)];
        for operation in std::mem::take(&mut self.unsure) {
            if rng.f64() < luck {
                name(&mut self.names, operation);
            }
        }
        for track in self.files.values_mut() {
            let mut operations = std::mem::take(&mut track.unsure);
            if rng.bool() {
                rng.shuffle(&mut operations);
            }
            for operation in operations {
                change(&mut track.bytes, operation, |_| rng.f64() < luck);
            }
        }
        let Self { names, mut files, .. } = self;
        MemoryDirectory::with(names.into_iter().map(|(name, file)| {
            (name.to_owned(), std::mem::take(&mut files.entry(file).or_default().bytes))
        }))
    }
}

fn name<'a>(names: &mut BTreeMap<&'a str, usize>, operation: &'a RecordedOperation) {
    match operation {
        RecordedOperation::Make { name, file } => drop(names.insert(name, *file)),
        RecordedOperation::Remove { name } => drop(names.remove(name.as_str())),
        RecordedOperation::Rename { from, to } => {
            if let Some(file) = names.remove(from.as_str()) {
                names.insert(to, file);
            }
        }
        _ => {}
    }
}

/// Applies the operation to `bytes`, for the sectors for which `reaches` returns true.
fn change(
    bytes: &mut Vec<u8>,
    operation: &RecordedOperation,
    mut reaches: impl FnMut(u64) -> bool,
) {
    match operation {
        RecordedOperation::Write { at, bytes: new, .. } => {
            let end = at + new.len() as u64;
            let mut from = *at;
            while from < end {
                let to = (from / SECTOR + 1) * SECTOR;
                let to = to.min(end);
                if reaches(from / SECTOR) {
                    if (bytes.len() as u64) < to {
                        bytes.resize(to as usize, 0);
                    }
                    let part = &new[(from - at) as usize..(to - at) as usize];
                    bytes[from as usize..to as usize].copy_from_slice(part);
                }
                from = to;
            }
        }
        RecordedOperation::Size { size, cuts, .. }
            if reaches(0) && (*cuts || bytes.len() < *size as usize) =>
        {
            bytes.resize(*size as usize, 0);
        }
        _ => {}
    }
}

impl Vfs for RecordingDirectory {
    fn name(&self) -> String {
        "recording".to_owned()
    }

    fn open(&self, name: &str, make: bool) -> io::Result<Arc<dyn File>> {
        let under = self.under.open(name, make)?;
        let mut log = self.log.lock();
        let number = match log.numbers.get(name) {
            Some(number) => *number,
            None => {
                let number = log.made;
                log.made += 1;
                log.numbers.insert(name.to_owned(), number);
                log.operations
                    .push(RecordedOperation::Make { name: name.to_owned(), file: number });
                number
            }
        };
        Ok(Arc::new(RecordingFile { under, number, log: Arc::clone(&self.log) }))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.under.list()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.under.rename(from, to)?;
        let mut log = self.log.lock();
        if let Some(number) = log.numbers.remove(from) {
            log.numbers.insert(to.to_owned(), number);
        }
        log.operations.push(RecordedOperation::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.under.remove(name)?;
        let mut log = self.log.lock();
        log.numbers.remove(name);
        log.operations.push(RecordedOperation::Remove { name: name.to_owned() });
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        self.log.lock().operations.push(RecordedOperation::SyncNames);
        Ok(())
    }

    fn lock(&self) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.under.lock()
    }
}

/// A file of a [`RecordingDirectory`].
#[derive(Debug)]
struct RecordingFile {
    under: Arc<dyn File>,
    number: usize,
    log: Arc<Mutex<Log>>,
}

impl RecordingFile {
    fn note(&self, operation: RecordedOperation) {
        self.log.lock().operations.push(operation);
    }
}

impl File for RecordingFile {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        self.under.read_at(into, at)
    }

    fn read_now_at(&self, into: &mut [u8], at: u64) -> io::Result<Option<usize>> {
        self.under.read_now_at(into, at)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<usize> {
        self.note(RecordedOperation::Write { file: self.number, at, bytes: bytes.into() });
        self.under.write_at(bytes, at)
    }

    fn sync(&self) -> io::Result<()> {
        self.note(RecordedOperation::Sync { file: self.number });
        self.under.sync()
    }

    fn preallocate(&self, bytes: u64) -> io::Result<()> {
        self.note(RecordedOperation::Size { file: self.number, size: bytes, cuts: false });
        self.under.preallocate(bytes)
    }

    fn truncate(&self, bytes: u64) -> io::Result<()> {
        self.note(RecordedOperation::Size { file: self.number, size: bytes, cuts: true });
        self.under.truncate(bytes)
    }

    fn size(&self) -> io::Result<u64> {
        self.under.size()
    }
}
