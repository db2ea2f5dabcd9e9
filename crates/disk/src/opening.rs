//! Opening volumes: what they contain, which of it can be trusted, and the journal to continue
//! with. A volume that may have missed an invalidation must never be trusted.

use std::any::Any;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use base::HashSeed;
use hashbrown::HashMap;

use crate::config::VolumeConfig;
use crate::error::Error;
use crate::health;
use crate::journal::{Chain, Journal, JournalHistory, StoreBaseline};
use crate::layout::{
    Blocks, FRAME_BYTES, SUPER_BYTES, SUPERBLOCK, SegmentHeader, Superblock, SuperblockCopy,
};
use crate::owner::Reason;
use crate::segment::{Segment, Usage};
use crate::sequence::SequenceCounter;
use crate::snapshot::{self, Snapshot};
use crate::stats::{Tallies, add};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex};
use crate::vfs::{File, Vfs, read_all, write_all};
use crate::volume::{Finder, Health, ReadQueue, RecordQueue, StoreContext, Volume, WriterNotes};

/// Approximate bytes of a data file.
const FILE_BYTES: u64 = 16 << 30;

/// The lock of a volume, held until its last owner is dropped.
type VolumeLock = Arc<dyn Any + Send + Sync>;

/// A volume that has been examined, but not changed.
pub(crate) struct Candidate {
    pub(crate) config: VolumeConfig,
    name: String,
    pub(crate) lock: VolumeLock,
    /// The superblock; `None` for a new volume.
    pub(crate) superblock: Option<Superblock>,
    copy: usize,
    pub(crate) past: JournalHistory,
    snapshot: Option<Snapshot>,
    damaged_snapshots: u64,
    /// The reason why it was taken out.
    pub(crate) marker: Option<Reason>,
}

/// The purpose for which a volume is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// As a store, with its records.
    Serve,
    /// As an empty store.
    Empty,
    /// For examination, without a write.
    Look,
}

/// The initial state of a volume in use, except its journal.
struct Basis {
    superblock: Superblock,
    files: Vec<Arc<dyn File>>,
    finder: Finder,
    /// The generation of the newest snapshot; 0 without one.
    snapshot: u64,
}

fn lock(vfs: &dyn Vfs) -> Result<VolumeLock, Error> {
    match vfs.lock() {
        Ok(lock) => Ok(lock.into()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Error::Locked { volume: vfs.name() })
        }
        Err(error) => Err(Error::io(&vfs.name(), "locking the directory")(error)),
    }
}

/// Examines a volume. It is locked already if `known` has its lock.
pub(crate) fn look(config: &VolumeConfig, known: Option<VolumeLock>) -> Result<Candidate, Error> {
    config.check()?;
    let vfs = &*config.vfs;
    let name = vfs.name();
    let lock = match known {
        Some(lock) => lock,
        None => {
            // A foreign directory is not changed, not even by a lock file.
            refuse_foreign(vfs)?;
            lock(vfs)?
        }
    };
    let (superblock, copy) = read_superblock(vfs, &name)?;
    let reading = Error::io(&name, "reading the journal");
    let key = superblock.as_ref().map_or(0, Superblock::key);
    let (snapshot, damaged_snapshots) = snapshot::read(vfs, key).map_err(&reading)?;
    let generation = snapshot.as_ref().map(|snapshot| snapshot.generation);
    let past = JournalHistory::read(vfs, key, generation).map_err(&reading)?;
    let marker = health::marked(vfs).map_err(&reading)?;
    Ok(Candidate {
        config: config.clone(),
        name,
        lock,
        superblock,
        copy,
        past,
        snapshot,
        damaged_snapshots,
        marker,
    })
}

/// Rejects a directory that is neither empty nor a volume.
fn refuse_foreign(vfs: &dyn Vfs) -> Result<(), Error> {
    let names = vfs.list().map_err(Error::io(&vfs.name(), "reading the directory"))?;
    // Files that were being made when the power failed are made again.
    let ours = |name: &String| name.starts_with("data-") || name.starts_with("cluster-");
    let is_new = names.iter().all(ours);
    if is_new || names.iter().any(|name| name == SUPERBLOCK) {
        return Ok(());
    }
    Err(Error::Foreign { volume: vfs.name() })
}

/// The newer intact superblock, and the number of its copy.
fn read_superblock(vfs: &dyn Vfs, name: &str) -> Result<(Option<Superblock>, usize), Error> {
    let reading = Error::io(name, "reading the superblock");
    let file = match vfs.open(SUPERBLOCK, false) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            refuse_foreign(vfs)?;
            return Ok((None, 1));
        }
        Err(error) => return Err(reading(error)),
    };
    let mut bytes = vec![0; 2 * SUPER_BYTES];
    match read_all(&*file, &mut bytes, 0) {
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(reading(error)),
        // A truncated copy reads as zeros.
        Ok(()) | Err(_) => {}
    }
    let copies = bytes.chunks(SUPER_BYTES).map(Superblock::decode).collect::<Vec<_>>();
    for copy in &copies {
        match copy {
            SuperblockCopy::Format(found) => {
                let (volume, known) = (name.to_owned(), crate::layout::FORMAT);
                return Err(Error::Format { volume, found: *found, known });
            }
            SuperblockCopy::Foreign
                if !copies.iter().any(|copy| matches!(copy, SuperblockCopy::Sound(_))) =>
            {
                return Err(Error::Foreign { volume: name.to_owned() });
            }
            SuperblockCopy::Foreign
            | SuperblockCopy::Sound(_)
            | SuperblockCopy::Damaged
            | SuperblockCopy::Empty => {}
        }
    }
    let sound = copies.into_iter().enumerate().filter_map(|(copy, found)| match found {
        SuperblockCopy::Sound(superblock) if shape_is_sound(&superblock) => {
            Some((superblock, copy))
        }
        _ => None,
    });
    let newest = sound.max_by_key(|(superblock, _)| superblock.session);
    Ok(newest.map_or((None, 1), |(superblock, copy)| (Some(superblock), copy)))
}

/// Returns true if the sizes are such as this program makes.
fn shape_is_sound(superblock: &Superblock) -> bool {
    let Superblock { segment_bytes, block_bytes, segments, segments_per_file, .. } = *superblock;
    (crate::config::BLOCK_BYTES_MIN..=crate::config::BLOCK_BYTES_MAX).contains(&block_bytes)
        && segment_bytes <= crate::config::SEGMENT_BYTES_MAX
        && segment_bytes / block_bytes >= 4
        && segments <= crate::config::SEGMENTS_MAX
        && segments_per_file > 0
}

impl Candidate {
    /// Returns true if the volume must be emptied, given the baseline of all volumes.
    pub(crate) fn is_void(&self, all: &StoreBaseline) -> bool {
        let Some(superblock) = &self.superblock else { return true };
        let last = self.past.newest().max(SequenceCounter::first(superblock.session));
        let sealed = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.sealed);
        let was_out = all.outs.get(&superblock.id).is_some_and(|at| *at > superblock.valid_from);
        superblock.owner != all.owner
            || self.is_broken()
            || self.marker.is_some()
            || was_out
            || all.released.max(all.obsolete) > last
            || sealed > self.past.newest()
    }

    /// Returns true if its journals have lost a durable item.
    pub(crate) fn is_broken(&self) -> bool {
        self.past.chain == Chain::Broken || self.has_lost_journals()
    }

    /// Returns true if there is no journal, or if the newest is older than a crash can leave it:
    /// each session begins a new one right after it has written the superblock.
    fn has_lost_journals(&self) -> bool {
        let Some(superblock) = &self.superblock else { return false };
        match self.past.generation {
            Some(newest) => newest.saturating_add(1) < superblock.generation,
            // A crash at the first start leaves none, and no items.
            None => superblock.generation > 0 || self.was_used(superblock),
        }
    }

    /// Returns true if a segment was ever begun, as far as it can be read.
    fn was_used(&self, superblock: &Superblock) -> bool {
        let Superblock { segments, segments_per_file, segment_bytes, .. } = *superblock;
        let begun = |number: u32| -> io::Result<bool> {
            let name = data_name((number / segments_per_file) as usize);
            let at = u64::from(number % segments_per_file) * u64::from(segment_bytes);
            let mut bytes = [0; FRAME_BYTES as usize];
            read_all(&*self.config.vfs.open(&name, false)?, &mut bytes, at)?;
            Ok(SegmentHeader::decode(superblock.key(), number, &bytes).is_some())
        };
        let is_missing = |error: &io::Error| {
            matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof)
        };
        (0..segments).any(|number| begun(number).unwrap_or_else(|error| !is_missing(&error)))
    }

    /// Puts the volume in use.
    pub(crate) fn start(
        mut self,
        number: u8,
        all: &StoreBaseline,
        purpose: Purpose,
        valid_from: u64,
        shared: &Arc<StoreContext>,
    ) -> Result<Volume, Error> {
        let name = self.name.clone();
        let making = Error::io(&name, "making the volume");
        let mut superblock = self.next_superblock(all, purpose, valid_from);
        let mut generation = 0;
        if purpose == Purpose::Serve {
            generation = self.past.generation.map_or(0, |generation| generation + 1);
        }
        if purpose != Purpose::Look {
            superblock.generation = generation;
        }
        let files = self.data_files(&superblock, purpose).map_err(&making)?;
        if purpose != Purpose::Look {
            self.write_superblock(&superblock).map_err(&making)?;
        }
        let vfs = Arc::clone(&self.config.vfs);
        let key = superblock.key();
        if purpose == Purpose::Serve {
            self.past.repair(&*vfs, key).map_err(&making)?;
        } else if purpose == Purpose::Empty {
            snapshot::remove_before(&*vfs, u64::MAX).map_err(&making)?;
            vfs.sync_names().map_err(&making)?;
        }
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.generation);
        let snapshot = if purpose == Purpose::Empty { 0 } else { snapshot };
        let finder = match purpose {
            Purpose::Serve | Purpose::Look => {
                Finder::new(&mut self.past, self.snapshot.take(), all.discarded)
            }
            Purpose::Empty => Finder::of_nothing(),
        };
        let basis = Basis { superblock, files, finder, snapshot };
        let volume = self.volume(number, basis, shared);
        volume.journal.carry(all);
        if purpose != Purpose::Look {
            volume.rotate(generation).map_err(&making)?;
            health::unmark(&*vfs).map_err(&making)?;
            if let Some(finder) = &mut *volume.finder.lock() {
                // The clock may have gone back while the store was closed.
                finder.know(volume.journal.carryover_without_invalidations());
            }
        }
        Ok(volume)
    }

    fn next_superblock(
        &self,
        all: &StoreBaseline,
        purpose: Purpose,
        valid_from: u64,
    ) -> Superblock {
        let VolumeConfig { segment_bytes, block_bytes, .. } = self.config;
        let mut next = self.superblock.clone().unwrap_or_else(|| Superblock {
            id: new_id(),
            owner: all.owner,
            segment_bytes,
            block_bytes,
            segments: 0,
            segments_per_file: (FILE_BYTES / u64::from(segment_bytes)).max(1) as u32,
            session: 0,
            valid_from: 0,
            generation: 0,
        });
        if purpose != Purpose::Look {
            next.segments = self.config.segments(next.segment_bytes);
            next.session = all.session;
        }
        if purpose == Purpose::Empty {
            next.valid_from = valid_from;
            next.owner = all.owner;
        }
        next
    }

    /// Writes the superblock over the older copy, or over both in turn in a new volume.
    fn write_superblock(&self, superblock: &Superblock) -> io::Result<()> {
        let file = self.config.vfs.open(SUPERBLOCK, true)?;
        let bytes = superblock.encode();
        let other = 1 - self.copy;
        let copies = if self.superblock.is_some() { vec![other] } else { vec![other, self.copy] };
        for copy in copies {
            write_all(&*file, &bytes, (copy * SUPER_BYTES) as u64)?;
            file.sync()?;
        }
        self.config.vfs.sync_names()
    }

    /// The files of the segments, at their full length.
    fn data_files(
        &self,
        superblock: &Superblock,
        purpose: Purpose,
    ) -> io::Result<Vec<Arc<dyn File>>> {
        let Superblock { segments, segments_per_file, segment_bytes, .. } = *superblock;
        let mut files = Vec::new();
        let mut left = segments;
        while left > 0 {
            let here = left.min(segments_per_file);
            let name = data_name(files.len());
            let file = self.config.vfs.open(&name, purpose != Purpose::Look)?;
            let bytes = u64::from(here) * u64::from(segment_bytes);
            if purpose != Purpose::Look && file.size()? != bytes {
                file.preallocate(bytes)?;
                file.truncate(bytes)?;
                file.sync()?;
            }
            files.push(file);
            left -= here;
        }
        if purpose != Purpose::Look {
            for name in self.config.vfs.list()? {
                let beyond = name.starts_with("data-") && name >= data_name(files.len());
                if beyond {
                    self.config.vfs.remove(&name)?;
                }
            }
        }
        Ok(files)
    }

    fn volume(mut self, number: u8, basis: Basis, shared: &Arc<StoreContext>) -> Volume {
        let Basis { superblock, files, finder, snapshot } = basis;
        let key = superblock.key();
        let segments = 0..superblock.segments;
        let room = &shared.config.index;
        let tallies = Tallies::default();
        add(&tallies.damaged_snapshot, self.damaged_snapshots);
        add(&tallies.damaged_journal, u64::from(self.is_broken()));
        Volume {
            number,
            name: self.name,
            journal: Journal::new(Arc::clone(&self.config.vfs), key, &mut self.past),
            vfs: self.config.vfs,
            key,
            blocks: Blocks { bytes: superblock.block_bytes },
            files,
            segments: segments.map(|_| Mutex::new(Segment::new(Usage::Unknown, room))).collect(),
            superblock,
            front: Mutex::new(RecordQueue::default()),
            wake: Condvar::new(),
            writer: Mutex::new(WriterNotes::default()),
            lists: Mutex::new(HashMap::new()),
            held: AtomicU64::new(0),
            reads: ReadQueue::default(),
            health: Health::default(),
            tallies,
            finder: Mutex::new(Some(finder)),
            obsolete: Mutex::default(),
            ready: AtomicBool::new(false),
            found: AtomicBool::new(false),
            settled: AtomicBool::new(false),
            carried: AtomicU64::new(0),
            snapshot_before: AtomicU64::new(snapshot),
            looked: AtomicU64::new(0),
            to_look: AtomicU64::new(0),
            stopping: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            retired: AtomicBool::new(false),
            urgent: Mutex::new(false),
            ring: Condvar::new(),
            shared: Arc::clone(shared),
            lock: Mutex::new(Some(self.lock)),
        }
    }
}

fn data_name(number: usize) -> String {
    format!("data-{number:04}")
}

/// A secret identity, because checksums depend on it.
fn new_id() -> [u8; 16] {
    let seed = HashSeed::random();
    let mut id = [0; 16];
    id[..8].copy_from_slice(&seed.hash(b"first").to_le_bytes());
    id[8..].copy_from_slice(&seed.hash(b"second").to_le_bytes());
    id
}

/// Removes all files of a volume.
pub(crate) fn empty(vfs: &dyn Vfs) -> Result<(), Error> {
    refuse_foreign(vfs)?;
    let _lock = lock(vfs)?;
    let names = vfs.list().map_err(Error::io(&vfs.name(), "emptying the volume"))?;
    if !names.is_empty() && !names.iter().any(|name| name == SUPERBLOCK) {
        return Err(Error::Foreign { volume: vfs.name() });
    }
    remove_all(vfs)
}

/// Removes all files of a volume that the caller has locked.
pub(crate) fn remove_all(vfs: &dyn Vfs) -> Result<(), Error> {
    let name = vfs.name();
    let removing = Error::io(&name, "emptying the volume");
    // Without its superblock no other file is trusted.
    let names = vfs.list().map_err(&removing)?;
    let ours = |name: &&String| {
        *name == SUPERBLOCK
            || ["data-", "journal-", "snapshot-", "out", "cluster-"]
                .iter()
                .any(|start| name.starts_with(start))
    };
    for name in names.iter().filter(ours) {
        vfs.remove(name).map_err(&removing)?;
    }
    vfs.sync_names().map_err(&removing)
}
