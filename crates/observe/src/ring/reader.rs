//! The reader of one core's ring. It must never write to the file, or trust its bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use super::{BLOCK_MAX, BlockHead, Cursor, HEAD_BYTES, RingHeader};
use crate::record::Record;

/// Most attempts to read a cursor that is being renewed.
const RETRIES: u32 = 100;
/// Bytes read at once: several of the largest blocks.
const CHUNK: u64 = 1 << 20;
const _: () = assert!(CHUNK > 2 * BLOCK_MAX);

/// The reader of one ring. The writer does not notice it.
#[derive(Debug)]
pub(super) struct Reader {
    file: File,
    pub(super) head: RingHeader,
    /// Device and inode, which change when the file is replaced.
    identity: (u64, u64),
    position: u64,
    /// Number of records before `position`; `None` before the first block.
    expected: Option<u64>,
    pub(super) lost: u64,
    pub(super) ended: bool,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens the ring at `path`, at its oldest record.
    ///
    /// # Errors
    /// No such file, or a file that is no ring ([`io::ErrorKind::InvalidData`]).
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let mut head = vec![0; HEAD_BYTES];
        file.read_exact_at(&mut head, 0)?;
        let head =
            RingHeader::of(&head).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        let found = file.metadata()?;
        let mut reader = Self {
            file,
            head,
            identity: (found.dev(), found.ino()),
            position: 0,
            expected: None,
            lost: 0,
            ended: false,
            buffer: Vec::new(),
        };
        let cursor = reader.cursor()?;
        reader.position = cursor.tail;
        reader.expected = (cursor.tail == cursor.head).then_some(cursor.records);
        Ok(reader)
    }

    /// Counts the records that were overwritten before the ring was opened as lost.
    pub(super) fn count_all(&mut self) {
        self.expected = Some(0);
    }

    /// Skips the records that the ring has now.
    pub(super) fn skip_to_now(&mut self) -> io::Result<()> {
        let cursor = self.cursor()?;
        (self.position, self.expected) = (cursor.head, Some(cursor.records));
        Ok(())
    }

    /// Returns true if `path` is another file now.
    pub(super) fn is_replaced(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) != self.identity)
    }

    fn cursor(&self) -> io::Result<Cursor> {
        for _ in 0..RETRIES {
            if let Some(cursor) = Cursor::read(&self.file)? {
                return Ok(cursor);
            }
            std::hint::spin_loop();
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "a damaged log ring"))
    }

    /// Appends the records of the next blocks to `out`, as many as are read at once. Returns true
    /// if there may be more.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let cursor = self.cursor()?;
        self.ended = cursor.ended;
        if self.position > cursor.head {
            self.position = cursor.tail;
        }
        self.position = self.position.max(cursor.tail);
        if self.position == cursor.head {
            // Records that could not be written have no block.
            self.count_lost(cursor.records);
            return Ok(false);
        }
        let length = (cursor.head - self.position).min(CHUNK);
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(length as usize, 0);
        let read = self.fetch(&mut buffer);
        // Blocks before the present tail may have been overwritten while they were read.
        let tail = self.cursor()?.tail;
        if read.is_ok() && tail <= self.position {
            self.blocks(&buffer, cursor, out);
        } else {
            self.position = tail.max(self.position);
        }
        self.buffer = buffer;
        read.map(|()| true)
    }

    /// Reads at the position, wrapping at the end of the file.
    fn fetch(&self, into: &mut [u8]) -> io::Result<()> {
        let at = self.position % self.head.capacity;
        let until_end = (self.head.capacity - at) as usize;
        let (first, rest) = into.split_at_mut(until_end.min(into.len()));
        self.file.read_exact_at(first, HEAD_BYTES as u64 + at)?;
        if rest.is_empty() {
            return Ok(());
        }
        self.file.read_exact_at(rest, HEAD_BYTES as u64)
    }

    /// Takes the whole blocks at the beginning of `bytes`. After an invalid block, it skips all
    /// blocks up to the cursor.
    fn blocks(&mut self, bytes: &[u8], cursor: Cursor, out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some(head) = BlockHead::of(&mut rest) {
            let Some((records, after)) = rest.split_at_checked(head.length as usize) else {
                if head.position == self.position && u64::from(head.length) <= BLOCK_MAX {
                    // The next call continues after the taken blocks.
                    return;
                }
                break;
            };
            if head.position != self.position || !is_sound(records, head.count) {
                break;
            }
            self.count_lost(head.before);
            self.expected = Some(head.before.saturating_add(u64::from(head.count)));
            out.extend_from_slice(records);
            self.position += (super::BLOCK_HEAD + records.len()) as u64;
            rest = after;
            if rest.len() < super::BLOCK_HEAD {
                return;
            }
        }
        self.position = cursor.head;
    }

    fn count_lost(&mut self, before: u64) {
        if let Some(expected) = self.expected {
            self.lost += before.saturating_sub(expected);
        }
        self.expected = Some(self.expected.map_or(before, |expected| expected.max(before)));
    }
}

/// Returns true if `bytes` are exactly `count` whole records.
fn is_sound(bytes: &[u8], count: u32) -> bool {
    let (mut rest, mut found) = (bytes, 0);
    while let Some((_, after)) = Record::read(rest) {
        rest = after;
        found += 1;
    }
    rest.is_empty() && found == count
}
