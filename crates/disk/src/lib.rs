//! A persistent store of opaque records: the disk tier below the cache's memory.
//!
//! A record is a hash, a head, a body, a ban number and a time of expiry. The store has no index:
//! its [`Owner`] keeps each record's [`RecordAddress`], and gets all of them again at the start.
//! The store must never return a byte that it has not verified, bring an invalidated record back,
//! or make a caller of [`Disk::put`], [`Disk::forget`] or [`Disk::read_now`] wait for a disk.
//!
//! Begin with [`Disk`], [`Entry`] and [`Owner`]. The modules form layers from the bottom: `layout`,
//! `checksum`, `record_address`; `journal`, `segment`, `snapshot`; `volume` and `store`; what works
//! on these (`writer`, `record_reading`, `discovery`, `reclamation`, `health`, `opening`); `disk`.
//!
//! # A volume
//! A volume is a directory of one disk, mode 0700, with files of mode 0600:
//!
//! | file | holds |
//! |---|---|
//! | `superblock` | two copies of 4096 bytes; each start overwrites the older one |
//! | `data-0000`, ... | segments in order, preallocated, of about 16 GiB |
//! | `journal-` and 16 hexadecimal digits | the journal of this generation |
//! | `snapshot-` and 16 hexadecimal digits | marks of all records when this journal began |
//! | `out` | the reason why the volume was taken out; only then |
//! | `lock` | nothing; locked by the process that uses the volume |
//!
//! All numbers are little endian. A checksum is rapidhash V3 with a seed; *of* numbers means that
//! the seed is the checksum of these numbers, eight bytes each, under the volume's key. The key is
//! the checksum of the volume's identity under the seed 0. A checksum covers the bytes that follow
//! it.
//!
//! | superblock | bytes | |
//! |---|---|---|
//! | 0 | 8 | `LARDERVS` |
//! | 8 | 4 | the format: 1 |
//! | 12 | 4 | 0 |
//! | 16 | 16 | identity, drawn when the volume was made |
//! | 32 | 32 | the owner's bytes |
//! | 64 | 4 × 4 | bytes of a segment, of a block; segments, and segments of a file |
//! | 80 | 8 | session: higher at every start |
//! | 88 | 8 | epochs below this are void |
//! | 96 | 8 | generation of the session's first journal; 0 if unknown |
//! | 104 | 8 | checksum of bytes 0 to 103, seed 0 |
//!
//! ## Segments
//! A segment begins with a header of 64 bytes. Records follow, each at a multiple of 64. A segment
//! that is full ends with a table of its records and a footer of 64 bytes, which are written when
//! the records are durable.
//!
//! | segment's header | bytes | |
//! |---|---|---|
//! | 0 | 8 | checksum of 1, segment |
//! | 8 | 4 | `LSEG` |
//! | 12 | 4 | number of the segment |
//! | 16 | 8 | epoch: the number in the sequence at which this use of the segment began |
//!
//! | footer | bytes | |
//! |---|---|---|
//! | 0 | 8 | checksum of 2, segment, epoch |
//! | 8 | 4 | `LEND` |
//! | 12 | 4 | rows of the table |
//! | 16 | 8 | newest durable invalidation then |
//! | 24 | 8 | checksum of the table, of 3, segment, epoch |
//!
//! | row of the table | bytes | |
//! |---|---|---|
//! | 0 | 8 | hash |
//! | 8 | 8 | order |
//! | 16 | 4 | 20 bits: its offset in units of 64; then flags: live, read, part, in parts |
//! | 20 | 4 | bytes of the record |
//! | 24 | 4 | expiry in seconds since 1970; all ones for never |
//! | 28 | 4 | ban |
//!
//! ## Records
//! Header, head and body are cut into blocks of at most 64 KiB. The first has the header, the
//! others begin with their checksums. The checksum of a block has as its seed the one of segment
//! and offset (`segment << 32 | offset`), epoch, number and hash, exclusive-or the block's number
//! times `0x9e3779b97f4a7c15`. So a block is sound in its own place in its own record, and nowhere
//! else.
//!
//! | record's header | bytes | |
//! |---|---|---|
//! | 0 | 8 | checksum of the first block |
//! | 8 | 4 | `LREC` |
//! | 12 | 2 | 1: a part of a body; 2: the body is a list of parts |
//! | 14 | 2 | 0 |
//! | 16 | 8 | number in the sequence |
//! | 24 | 8 | hash |
//! | 32 | 8 | order: invalidations of higher numbers have not been tested against it |
//! | 40 | 8 | expiry in milliseconds since 1970; all ones for never |
//! | 48 | 8 | time of writing |
//! | 56 | 4 | ban |
//! | 60 | 4 | bytes of the head |
//! | 64 | 4 | bytes of the body, or of the list |
//! | 68 | 4 | 0 |
//! | 72 | 8 | newest durable invalidation then |
//! | 80 | 8 | bytes of the whole body |
//!
//! A list has 24 bytes for each part: place (its volume is 0), number, bytes. A place has, from its
//! lowest bit on: 20 bits for the unit, 18 for a tag of the epoch, 20 for the segment, 6 for the
//! volume.
//!
//! ## Journal and snapshot
//! A journal is a sequence of frames at multiples of eight bytes. A frame is written when the one
//! before it is durable. The first frame repeats the valid items of older journals.
//!
//! | frame | bytes | |
//! |---|---|---|
//! | 0 | 8 | checksum of 4, generation, where the frame begins |
//! | 8 | 4 | `LJRN` |
//! | 12 | 4 | bytes of the items |
//! | 16 | 8 | the wall clock, milliseconds since 1970 |
//! | 24 | | items: a byte for the kind, then numbers of eight bytes |
//!
//! | item | numbers |
//! |---|---|
//! | 1 | a record is forgotten: its place |
//! | 2 | an invalidation: its number and length; then its bytes |
//! | 3 | invalidations up to a number are released |
//! | 4 | the wall clock went back: the next number then, milliseconds |
//! | 5 | a segment that failed, and is not written again |
//! | 6 | another volume was taken out: the next number then; 16 bytes of its identity |
//! | 7 | a segment is free: its number and epoch |
//! | 8 | the journal ends |
//! | 9 | an invalidation is obsolete: its number |
//! | 10 | records of a lower order are discarded; invalidations up to this number are released |
//!
//! A snapshot has a checksum of 5 and its generation, `LSNP`, and the newest invalidation (8
//! bytes); then for each segment its number, 1 if it is free, and the number of marks (4 bytes
//! each), its epoch (8), and the marks: units of records, with bit 20 for dead ones and 21 for
//! those that were read. The newest two snapshots are kept, with all journals since the older.

mod blocking_reads;
mod body;
mod buffers;
mod checkpoint;
mod checksum;
mod config;
mod discovery;
mod disk;
mod entry;
mod error;
mod health;
mod hold;
mod journal;
mod layout;
mod opening;
mod owner;
mod part_record;
mod reclamation;
mod record_address;
mod record_reading;
mod record_request;
mod rows;
mod segment;
mod sequence;
mod snapshot;
mod stats;
mod store;
mod stream;
mod sync;
mod threads;
pub mod tools;
pub mod vfs;
mod volume;
mod volume_retry;
mod writer;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
#[cfg(test)]
mod tests;

pub use body::{Body, BorrowedBytes};
pub use config::{Clock, Config, VolumeConfig};
pub use disk::{Disk, Invalidation, InvalidationGuard, InvalidationWrite, OpenedStore};
pub use entry::Entry;
pub use error::{Damage, Error};
pub use hold::SegmentPin;
pub use owner::{FoundRecord, Owner, Reason, VolumeCondition};
pub use part_record::PartRecord;
pub use record_address::RecordAddress;
pub use record_request::{ReadCallback, ReadContinuation, RecordData, RecordRequest};
pub use stats::Stats;
pub use stream::{PartOutcome, Stream};
