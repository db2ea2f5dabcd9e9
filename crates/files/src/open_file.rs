//! One open file, and the head of the response it makes.

use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use base::KeyBuf;
use message::date::HttpDate;
use message::{HeaderBlock, HeaderId};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Stat, fstat};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};

/// Dates before this (the second day of 1980) were put there by tools that give every file the
/// same: package managers take 0 or 1, archives their epoch. They say nothing about changes.
const MEANT_S: i64 = 315_619_200;

/// Bytes of [`Opened::state`].
const STATE_BYTES: usize = 7 * 8;
/// Seconds after which a file counts as settled: clocks of file systems go by ticks, some by whole
/// seconds or two (FAT).
const SETTLED_S: i64 = 3;

/// A regular file, open for reading, as it was when it was opened.
#[derive(Debug)]
pub struct OpenFile {
    fd: OwnedFd,
    identity: Identity,
    length: u64,
    modified: Option<u64>,
    etag: Box<[u8]>,
    head: HeaderBlock,
    /// `head` as lines.
    lines: Box<[u8]>,
    /// The number of bytes of `lines` that a 304 has too (RFC 9110 15.4.5).
    lasting: usize,
    /// The number of fields in those bytes.
    lasting_fields: usize,
    /// Until when, in milliseconds, its content is taken to be in memory.
    warm_until_ms: AtomicU64,
    /// The answer to [`Opened::is_worth`].
    worth: OnceLock<bool>,
    /// The answer to [`Opened::key`].
    key: OnceLock<KeyBuf>,
}

/// Values that tell one state of a file from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Identity {
    fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// An entity tag that is strong: it changes with every change of the file.
    fn etag(&self, suffix: &str) -> Vec<u8> {
        let Self { inode, size, modified: (s, ns), changed, .. } = self;
        if *s < MEANT_S {
            let (changed_s, changed_ns) = changed;
            return format!("\"{inode:x}-{changed_s:x}.{changed_ns:x}-{size:x}{suffix}\"").into();
        }
        // Without the inode: on all servers that got the file with its date it is the same tag.
        format!("\"{s:x}.{ns:x}-{size:x}{suffix}\"").into()
    }
}

/// The kind of an opened descriptor.
pub(crate) enum Kind {
    File(Box<Stat>),
    Directory,
    /// A device, a FIFO, a socket.
    Other,
}

pub(crate) fn kind(fd: &OwnedFd) -> Kind {
    match fstat(fd) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File(Box::new(stat)),
            FileType::Directory => Kind::Directory,
            _ => Kind::Other,
        },
        Err(_) => Kind::Other,
    }
}

/// Parts of a file's head that are not in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadParts<'a> {
    pub(crate) kind: &'a str,
    pub(crate) cache_control: Option<&'a str>,
    /// The coding that the file is in: as Content-Encoding names it.
    pub(crate) coding: Option<&'static str>,
    /// Request fields that choose among the file and its neighbours; empty for none.
    pub(crate) vary: &'a str,
}

impl OpenFile {
    pub(crate) fn new(fd: OwnedFd, stat: &Stat, said: HeadParts<'_>) -> Self {
        let identity = Identity::of(stat);
        let suffix = said.coding.map(|coding| format!("-{coding}")).unwrap_or_default();
        let etag = identity.etag(&suffix);
        let modified = u64::try_from(stat.st_mtime).ok().filter(|_| stat.st_mtime >= MEANT_S);
        let mut head = HeaderBlock::new();
        head.push(HeaderId::Etag, &etag);
        if let Some(modified) = modified {
            head.push(HeaderId::LastModified, HttpDate::new(modified).as_bytes());
        }
        if let Some(value) = said.cache_control {
            head.push(HeaderId::CacheControl, value.as_bytes());
        }
        if !said.vary.is_empty() {
            head.push(HeaderId::Vary, said.vary.as_bytes());
        }
        let lasting = head.len();
        head.push(HeaderId::AcceptRanges, b"bytes");
        head.push(HeaderId::ContentType, said.kind.as_bytes());
        if let Some(coding) = said.coding {
            head.push(HeaderId::ContentEncoding, coding.as_bytes());
        }
        let mut lines = Vec::with_capacity(256);
        let mut ends = Vec::new();
        for field in head.iter() {
            for part in [field.name, b": ", field.value, b"\r\n"] {
                lines.extend_from_slice(part);
            }
            ends.push(lines.len());
        }
        Self {
            fd,
            identity,
            length: u64::try_from(stat.st_size).unwrap_or(0),
            modified,
            etag: etag.into(),
            head,
            lines: lines.into(),
            lasting: ends[lasting - 1],
            lasting_fields: lasting,
            warm_until_ms: AtomicU64::new(0),
            worth: OnceLock::new(),
            key: OnceLock::new(),
        }
    }

    /// Its length in bytes when it was opened.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Its entity tag, quotes included.
    pub fn etag(&self) -> &[u8] {
        &self.etag
    }

    /// When it was changed, in unix seconds, if that is known.
    pub fn last_modified(&self) -> Option<u64> {
        self.modified
    }

    /// The fields of its head: those of a 304 first, then those of a response with content. Framing
    /// and Date are not among them.
    pub fn head(&self) -> &HeaderBlock {
        &self.head
    }

    /// Appends them to `out`; for a 304 only those it has.
    pub fn head_for(&self, not_modified: bool, out: &mut HeaderBlock) {
        let fields = if not_modified { self.lasting_fields } else { self.head.len() };
        for field in self.head.iter().take(fields) {
            out.push(field.id, field.value);
        }
    }

    /// The same as lines, each with its CRLF; for a 304 only those it has.
    pub fn lines(&self, not_modified: bool) -> &[u8] {
        if not_modified { &self.lines[..self.lasting] } else { &self.lines }
    }

    /// Returns true if `other` is the same file in the same state, with the same head.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity && self.lines == other.lines
    }

    /// Returns true if the file was changed before `other`, by whole seconds: tools that write both
    /// at once may finish either first.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.identity.modified.0 < other.identity.modified.0
    }

    /// The key that `make` makes once of the state of the file, under which what is made of the
    /// file is stored.
    pub fn key(&self, make: impl FnOnce(&[u8]) -> KeyBuf) -> &KeyBuf {
        self.key.get_or_init(|| make(&self.state()))
    }

    /// The state of the file as bytes: no other file has the same, nor this one after a change.
    fn state(&self) -> [u8; STATE_BYTES] {
        let Identity { device, inode, size, modified, changed } = self.identity;
        let (size, modified_s, changed_s) = (size as u64, modified.0 as u64, changed.0 as u64);
        let numbers = [device, inode, size, modified_s, modified.1, changed_s, changed.1];
        let mut state = [0; STATE_BYTES];
        for (place, number) in state.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        state
    }

    /// Returns true if the file was changed long enough before `now_s` that a further change has
    /// another time: what is made of it then is of this state alone.
    pub fn is_settled(&self, now_s: u64) -> bool {
        let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
        self.identity.changed.0.saturating_add(SETTLED_S) <= now_s
    }

    /// Returns true if the file is still in the state in which it was opened.
    pub fn is_unchanged(&self) -> bool {
        fstat(&self.fd).is_ok_and(|stat| Identity::of(&stat) == self.identity)
    }

    /// The answer that `judge` gives once, of the head and the length of the file: it is asked no
    /// more as long as the file is in this state, under the settings that it was opened by.
    pub fn is_worth(&self, judge: impl FnOnce(&HeaderBlock, u64) -> bool) -> bool {
        *self.worth.get_or_init(|| judge(&self.head, self.length))
    }

    /// Its descriptor, for sendfile.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns true if [`Opened::is_at_hand`] need not be asked at `now_ms`.
    pub fn is_warm(&self, now_ms: u64) -> bool {
        now_ms < self.warm_until_ms.load(Ordering::Relaxed)
    }

    /// Notes that all of it was found in memory, or was just read into it.
    pub fn warmed(&self, until_ms: u64) {
        self.warm_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Returns true if the bytes of `range` are in memory, as far as looking at some of them tells:
    /// the kernel reads and forgets them in runs.
    pub fn is_at_hand(&self, range: &Range<u64>) -> bool {
        let steps = (range.start..range.end).step_by(RUN_BYTES);
        let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
        steps.chain(last).all(|at| match self.peek(at, &mut [0]) {
            Ok(_) => true,
            // File systems that cannot say it: what is asked of them must wait.
            Err(Errno::OPNOTSUPP | Errno::AGAIN) => false,
            // Reading it for good says what is wrong.
            Err(_) => true,
        })
    }

    fn peek(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        preadv2(&self.fd, &mut [IoSliceMut::new(bytes)], at, ReadWriteFlags::NOWAIT)
    }

    /// Reads from `at` on what is in memory; how many bytes that were, 0 at the end. When all of it
    /// is `warm`, nothing is looked for first: file systems that cannot tell are read all the same.
    ///
    /// # Errors
    /// `WouldBlock` when the disk would have to be asked; else what the disk says.
    pub fn read_now(&self, at: u64, bytes: &mut [u8], warm: bool) -> io::Result<usize> {
        if warm {
            return Ok(pread(&self.fd, bytes, at)?);
        }
        match self.peek(at, bytes) {
            Err(Errno::OPNOTSUPP) => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read?),
        }
    }

    /// Reads `range`, waiting for the disk. Not for a core's thread.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file has become shorter; else what the disk says.
    pub fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let at = range.start + bytes.len() as u64;
            match pread(&self.fd, spare_capacity(&mut bytes), at) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }
}

/// Bytes between the places where [`Opened::is_at_hand`] looks: half of what Linux reads ahead by
/// default.
const RUN_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;
    use crate::path_open::{self, Depth};

    const SAID: HeadParts<'_> = HeadParts {
        kind: "text/css",
        cache_control: Some("no-cache"),
        coding: None,
        vary: "Cookie",
    };

    fn opened(folder: &Folder, said: HeadParts<'_>) -> OpenFile {
        let root = path_open::directory(&folder.path(""), Depth::Full).expect("a directory");
        let fd = path_open::below(&root, b"a", Depth::Full).expect("a file");
        let Kind::File(stat) = kind(&fd) else { panic!("a regular file") };
        OpenFile::new(fd, &stat, said)
    }

    #[test]
    fn a_304_has_what_lasts_and_not_what_describes_the_content() {
        let folder = Folder::new("head");
        folder.file("a", "abc");
        let file = opened(&folder, SAID);
        let names = |bytes: &[u8]| {
            let text = String::from_utf8(bytes.to_vec()).expect("text");
            let names = text.lines().map(|line| line.split(':').next().unwrap_or("").to_owned());
            names.collect::<Vec<_>>()
        };
        let lasting = ["ETag", "Last-Modified", "Cache-Control", "Vary"];
        assert_eq!(names(file.lines(true)), lasting);
        let all = [&lasting[..], &["Accept-Ranges", "Content-Type"]].concat();
        assert_eq!(names(file.lines(false)), all);
        assert_eq!(file.length(), 3);
    }

    #[test]
    fn the_tag_changes_with_the_file_and_with_its_coding() {
        let folder = Folder::new("tag");
        folder.file("a", "abc");
        let (one, coded) = (opened(&folder, SAID), HeadParts { coding: Some("br"), ..SAID });
        assert!(one.is_same(&opened(&folder, SAID)));
        let other = opened(&folder, coded);
        assert_ne!(one.etag(), other.etag());
        assert!(other.etag().ends_with(b"-br\""));
        folder.file("a", "abcd");
        let longer = opened(&folder, SAID);
        assert_ne!(one.etag(), longer.etag());
        assert!(!one.is_same(&longer));
    }

    #[test]
    fn dates_that_say_nothing_are_not_told_and_not_relied_on() {
        let folder = Folder::new("epoch");
        folder.file("a", "abc");
        let date = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1);
        let at = || {
            let file = std::fs::File::options().write(true).open(folder.path("a")).expect("a file");
            file.set_modified(date).expect("a date is set");
            opened(&folder, SAID)
        };
        let first = at();
        assert_eq!(first.last_modified(), None);
        // Longer than the coarsest clock of a file system that runs here takes for a step.
        std::thread::sleep(std::time::Duration::from_millis(20));
        folder.file("a", "xyz");
        assert_ne!(first.etag(), at().etag(), "same date, same size, other content");
    }

    #[test]
    fn reading_a_file_that_became_shorter_fails() {
        let folder = Folder::new("short");
        folder.file("a", "abcdef");
        let file = opened(&folder, SAID);
        assert_eq!(file.read(1..4).expect("three bytes"), b"bcd");
        let mut now = [0; 4];
        assert_eq!(file.read_now(2, &mut now, false).expect("in memory"), 4);
        assert_eq!(&now, b"cdef");
        assert!(file.is_at_hand(&(0..6)));
        folder.file("a", "ab");
        let error = file.read(0..6).expect_err("it is shorter now");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(file.read_now(2, &mut now, true).expect("its end"), 0);
    }
}
