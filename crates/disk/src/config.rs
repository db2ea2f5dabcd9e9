//! Settings of a store, each with its default.

use std::fmt;
use std::sync::Arc;

use base::{Allowance, Now};

use crate::error::Error;
use crate::layout::UNIT;
use crate::vfs::Vfs;

/// The longest segment: a place has 20 bits for the unit within one.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 64 << 20;
/// Bytes of a segment of the smallest volumes.
const SEGMENT_BYTES_SMALL: u32 = 4 << 20;
/// Segments of a volume that is too small for large ones.
const SEGMENTS_WANTED: u64 = 64;

/// The longest block.
pub(crate) const BLOCK_BYTES_MAX: u32 = 64 << 10;

/// The shortest block: a record's header and a sector's worth of bytes.
pub(crate) const BLOCK_BYTES_MIN: u32 = 512;

/// Volumes of one store: a place has six bits for them.
pub(crate) const VOLUMES_MAX: usize = 64;

/// Segments of one volume: a place has 20 bits for them.
pub(crate) const SEGMENTS_MAX: u32 = 1 << 20;

/// Fewest segments of a volume: one is written, one is free, one is reclaimed, one is read.
pub(crate) const SEGMENTS_MIN: u32 = 4;

/// The longest invalidation in bytes, far beyond any list of surrogate keys.
pub(crate) const INVALIDATION_BYTES_MAX: usize = 4 << 20;

/// The clocks, as whoever makes the store reads them.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// One volume: a directory, and the room that it may take.
#[derive(Clone, Debug)]
pub struct VolumeConfig {
    /// The directory.
    pub vfs: Arc<dyn Vfs>,
    /// Room for segments, in bytes; journal and snapshot come on top.
    pub bytes: u64,
    /// Share of the records in proportion to the other volumes'; 1 if all are alike.
    pub weight: u32,
    /// Bytes of a segment; only a new volume asks. 64 MiB: large enough for a disk to write at its
    /// speed, and for 300 of them to be a fine grain of 20 GiB; of a small volume some 64th part.
    pub segment_bytes: u32,
    /// Most bytes of a block, which has one checksum; only a new volume asks. 64 KiB.
    pub block_bytes: u32,
}

impl VolumeConfig {
    /// A volume of `bytes` bytes with everything else as it should be.
    pub fn new(vfs: Arc<dyn Vfs>, bytes: u64) -> Self {
        let part = (bytes / SEGMENTS_WANTED).max(u64::from(SEGMENT_BYTES_SMALL));
        let segment_bytes = u32::try_from(1_u64 << part.ilog2()).unwrap_or(u32::MAX);
        let segment_bytes = segment_bytes.min(SEGMENT_BYTES_MAX);
        Self { vfs, bytes, weight: 1, segment_bytes, block_bytes: BLOCK_BYTES_MAX }
    }

    pub(crate) fn segments(&self, segment_bytes: u32) -> u32 {
        u32::try_from(self.bytes / u64::from(segment_bytes)).unwrap_or(u32::MAX).min(SEGMENTS_MAX)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| Err(Error::Config { volume: self.vfs.name(), why });
        let Self { segment_bytes, block_bytes, .. } = *self;
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&block_bytes) || block_bytes % UNIT != 0 {
            return wrong(format!(
                "block_bytes is {block_bytes}: it has to be a multiple of {UNIT} \
                 from {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX}"
            ));
        }
        if segment_bytes > SEGMENT_BYTES_MAX
            || !segment_bytes.is_multiple_of(block_bytes)
            || segment_bytes / block_bytes < 4
        {
            return wrong(format!(
                "segment_bytes is {segment_bytes}: it has to be a multiple of block_bytes \
                 ({block_bytes}), at least four times and at most {SEGMENT_BYTES_MAX}"
            ));
        }
        let segments = self.segments(segment_bytes);
        if segments < SEGMENTS_MIN {
            return wrong(format!(
                "{} bytes are {segments} segments of {segment_bytes}: at least {SEGMENTS_MIN} are \
                 needed",
                self.bytes
            ));
        }
        Ok(())
    }
}

/// A store: its volumes, and how they are used.
#[derive(Clone)]
pub struct Config {
    /// The volumes, one on each disk.
    pub volumes: Vec<VolumeConfig>,
    /// Bytes that belong to whoever uses the store, as a seed of hashes: a new store keeps them,
    /// and one that is there tells those that it has.
    pub owner: [u8; 32],
    /// True if the store has threads of its own; else whoever has it takes its steps
    /// ([`crate::Disk::step`]), as tests do.
    pub threads: bool,
    /// Bytes that may wait to be written, for each volume. 64 MiB: a second of a common disk.
    pub queue_bytes: u64,
    /// Time between two commits in milliseconds: what is newer is lost with the power. 1000.
    pub commit_ms: u64,
    /// True if an invalidation is durable before [`crate::Disk::append`] returns; else it is with
    /// the next commit.
    pub append_waits: bool,
    /// Longest wait for that, in milliseconds: a volume that takes longer is taken out. 5000.
    pub append_ms: u64,
    /// Threads of each volume that read. 4.
    pub reader_threads: usize,
    /// Reads that may wait, for each volume. 1024.
    pub read_queue: usize,
    /// Bytes of a body that one read answers with, about: whole blocks are. 4 MiB.
    pub read_bytes: u64,
    /// Bytes of the records that a longer body is kept as. 2 MiB, and at most a quarter of a
    /// segment.
    pub part_bytes: u32,
    /// Free segments to have in advance, beside one that only the store's own moving may take. 2.
    pub spare_segments: u32,
    /// Percentage of a segment that moves on at most when it is reclaimed, which bounds the write
    /// amplification: 20 percent come to 1.25.
    pub move_percent: u32,
    /// Bytes of a journal that are the time for a new one, with a snapshot. 16 MiB.
    pub journal_bytes: u64,
    /// Failed operations of a volume within `errors_ms` that take it out. 3, as with Traffic Server
    /// 5.
    pub errors_max: u32,
    /// The time in which failed operations are counted, in milliseconds. 60,000.
    pub errors_ms: u64,
    /// Reads of a volume that miss their deadlines within `late_ms` and make it pause. 8.
    pub late_max: u32,
    /// The time in which late reads are counted, in milliseconds. 10,000.
    pub late_ms: u64,
    /// The time after which a volume that was full or slow is tried again, in milliseconds. 60,000.
    pub retry_ms: u64,
    /// Bytes of memory for knowing what is where, which whoever uses the store may share: 32 for
    /// each record. Where little is left, segments are reclaimed as if the volume were full.
    pub index: Arc<Allowance>,
    /// True if what is forgotten is overwritten, and segments are before they are used again.
    pub erase: bool,
}

impl Config {
    /// A store over `volumes` with everything else as it should be.
    pub fn new(volumes: Vec<VolumeConfig>) -> Self {
        Self {
            volumes,
            owner: [0; 32],
            threads: true,
            queue_bytes: 64 << 20,
            commit_ms: 1000,
            append_waits: true,
            append_ms: 5000,
            reader_threads: 4,
            read_queue: 1024,
            read_bytes: 4 << 20,
            part_bytes: 2 << 20,
            spare_segments: 2,
            move_percent: 20,
            journal_bytes: 16 << 20,
            errors_max: 3,
            errors_ms: 60_000,
            late_max: 8,
            late_ms: 10_000,
            retry_ms: 60_000,
            index: Allowance::new(u64::MAX),
            erase: false,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let volumes = self.volumes.len();
        if !(1..=VOLUMES_MAX).contains(&volumes) {
            let why = format!("there are {volumes} volumes: from 1 to {VOLUMES_MAX} can be used");
            return Err(Error::Config { volume: "the store".to_owned(), why });
        }
        self.volumes.iter().try_for_each(VolumeConfig::check)
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("volumes", &self.volumes)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
