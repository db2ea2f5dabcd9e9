//! The settings of a store, and their defaults.

use std::fmt;
use std::sync::Arc;

use base::{Allowance, Now};

use crate::error::Error;
use crate::layout::UNIT;
use crate::vfs::Vfs;

/// The longest segment: an address has 20 bits for the unit within a segment.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 64 << 20;
/// The segment size of the smallest volumes, in bytes.
const SEGMENT_BYTES_SMALL: u32 = 4 << 20;
/// The segments of a volume that is too small for segments of full size.
const SEGMENTS_WANTED: u64 = 64;

/// The longest block.
pub(crate) const BLOCK_BYTES_MAX: u32 = 64 << 10;

/// The shortest block: a record's header, and some bytes of a sector.
pub(crate) const BLOCK_BYTES_MIN: u32 = 512;

/// The most volumes of a store: an address has six bits for them.
pub(crate) const VOLUMES_MAX: usize = 64;

/// The most segments of a volume: an address has 20 bits for them.
pub(crate) const SEGMENTS_MAX: u32 = 1 << 20;

/// The fewest segments of a volume: one is written, one is free, one is reclaimed, one is read.
pub(crate) const SEGMENTS_MIN: u32 = 4;

/// The longest invalidation in bytes: far more than any list of surrogate keys.
pub(crate) const INVALIDATION_BYTES_MAX: usize = 4 << 20;

/// The caller's clocks.
pub type Clock = Arc<dyn Fn() -> Now + Send + Sync>;

/// A volume: a directory, and the space that it may take.
#[derive(Clone, Debug)]
pub struct VolumeConfig {
    /// The directory.
    pub vfs: Arc<dyn Vfs>,
    /// Bytes for segments. The journal and the snapshots are in addition.
    pub bytes: u64,
    /// The volume's share of the records, relative to the other volumes; 1 if all are equal.
    pub weight: u32,
    /// Bytes of a segment of a new volume. Default 64 MiB: large enough for full disk speed, and a
    /// grain of one 300th of 20 GiB; for a small volume about a 64th part.
    pub segment_bytes: u32,
    /// The most bytes of a block, which has one checksum, in a new volume. Default 64 KiB.
    pub block_bytes: u32,
}

impl VolumeConfig {
    /// A volume of `bytes` bytes, with defaults for the rest.
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

/// The settings of a store: its volumes and their use.
#[derive(Clone)]
pub struct Config {
    /// The volumes, one for each disk.
    pub volumes: Vec<VolumeConfig>,
    /// Bytes of the owner, such as a seed of hashes. A new store keeps them, and an existing one
    /// returns those that it has.
    pub owner: [u8; 32],
    /// True if the store runs threads of its own. Otherwise the owner runs its steps
    /// ([`crate::Disk::step`]), as tests do.
    pub threads: bool,
    /// Bytes of each volume's write queue. Default 64 MiB: a second of a common disk.
    pub queue_bytes: u64,
    /// Milliseconds between two commits. A power failure loses newer records. Default 1000.
    pub commit_ms: u64,
    /// True if an invalidation is durable before [`crate::Disk::append`] returns. Otherwise it is
    /// with the next commit.
    pub append_waits: bool,
    /// The longest wait for this in milliseconds: a slower volume is taken out. Default 5000.
    pub append_ms: u64,
    /// Reader threads of each volume. Default 4.
    pub reader_threads: usize,
    /// Reads in the queue of each volume. Default 1024.
    pub read_queue: usize,
    /// Approximate bytes of a body that one read returns, in whole blocks. Default 4 MiB.
    pub read_bytes: u64,
    /// Bytes of the part records of a longer body. Default 2 MiB, and at most a quarter of a
    /// segment.
    pub part_bytes: u32,
    /// Free segments to keep ready, beside one that only reclamation may use. Default 2.
    pub spare_segments: u32,
    /// The largest percentage of a segment that is moved when it is reclaimed. It bounds the write
    /// amplification: 20 percent give 1.25.
    pub move_percent: u32,
    /// Bytes of a journal after which a new one begins, with a snapshot. Default 16 MiB.
    pub journal_bytes: u64,
    /// Failed operations of a volume within `errors_ms` that take it out. Default 3, as in Traffic
    /// Server 5.
    pub errors_max: u32,
    /// The period in which failed operations are counted, in milliseconds. Default 60,000.
    pub errors_ms: u64,
    /// Missed deadlines of a volume's reads within `late_ms` that pause it. Default 8.
    pub late_max: u32,
    /// The period in which late reads are counted, in milliseconds. Default 10,000.
    pub late_ms: u64,
    /// The time after which a full or slow volume is tried again, in milliseconds. Default 60,000.
    pub retry_ms: u64,
    /// Memory for the rows of records, 32 bytes each, which the owner may share. When it is nearly
    /// used up, segments are reclaimed as in a full volume.
    pub index: Arc<Allowance>,
    /// True if forgotten records are overwritten, and segments before they are reused.
    pub erase: bool,
}

impl Config {
    /// A store over `volumes`, with defaults for the rest.
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
            let why = format!("{volumes} volumes are set; from 1 to {VOLUMES_MAX} are possible");
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
