//! Open file, with the head of the response made of it.

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

/// Earlier dates (before the second day of 1980) come from tools that give every file the same one:
/// package managers use 0 or 1, archives their epoch. They say nothing about changes.
const MEANT_S: i64 = 315_619_200;

/// Size of [`OpenFile::state`].
const STATE_BYTES: usize = 7 * 8;
/// Seconds after which a file counts as settled: clocks of file systems have ticks of up to two
/// seconds (FAT).
const SETTLED_S: i64 = 3;

/// A regular file, open for reading, in the state at the time of opening.
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
    /// The length of the part of `lines` that a 304 has, too (RFC 9110 15.4.5).
    lasting: usize,
    /// The number of fields in that part.
    lasting_fields: usize,
    /// The time until which, in milliseconds, its content is assumed to be in memory.
    warm_until_ms: AtomicU64,
    /// The result of [`OpenFile::is_worth`].
    worth: OnceLock<bool>,
    /// The result of [`OpenFile::key`].
    key: OnceLock<KeyBuf>,
}

/// Values that identify one state of a file.
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

    /// A strong entity tag: it changes with every change of the file.
    fn etag(&self, suffix: &str) -> Vec<u8> {
        let Self { inode, size, modified: (s, ns), changed, .. } = self;
        if *s < MEANT_S {
            let (changed_s, changed_ns) = changed;
            return format!("\"{inode:x}-{changed_s:x}.{changed_ns:x}-{size:x}{suffix}\"").into();
        }
        // Without the inode, so that all servers with a copy of the file and its date have the same
        // tag.
        format!("\"{s:x}.{ns:x}-{size:x}{suffix}\"").into()
    }
}

/// The kind of an open descriptor.
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

/// The parts of a file's head that are not in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadParts<'a> {
    pub(crate) kind: &'a str,
    pub(crate) cache_control: Option<&'a str>,
    /// The coding of the file, as in Content-Encoding.
    pub(crate) coding: Option<&'static str>,
    /// Request fields that select the file or one of its precompressed forms; empty for none.
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

    /// The length in bytes at the time of opening.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The entity tag, with its quotes.
    pub fn etag(&self) -> &[u8] {
        &self.etag
    }

    /// The time of its last change, in unix seconds, if known.
    pub fn last_modified(&self) -> Option<u64> {
        self.modified
    }

    /// The fields of its head: those of a 304 first, then those of a response with content. Neither
    /// framing nor Date is among them.
    pub fn head(&self) -> &HeaderBlock {
        &self.head
    }

    /// Appends the fields to `out`; for a 304 only those that it has.
    pub fn head_for(&self, not_modified: bool, out: &mut HeaderBlock) {
        let fields = if not_modified { self.lasting_fields } else { self.head.len() };
        for field in self.head.iter().take(fields) {
            out.push(field.id, field.value);
        }
    }

    /// The fields as lines, each with its CRLF; for a 304 only those that it has.
    pub fn lines(&self, not_modified: bool) -> &[u8] {
        if not_modified { &self.lines[..self.lasting] } else { &self.lines }
    }

    /// Returns true if `other` is the same file in the same state, with an equal head.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity == other.identity && self.lines == other.lines
    }

    /// Returns true if the file was changed before `other`, by whole seconds: tools that write both
    /// may finish either first.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        self.identity.modified.0 < other.identity.modified.0
    }

    /// The cache key of the file's state, which `make` computes once; content made of the file is
    /// stored under it.
    pub fn key(&self, make: impl FnOnce(&[u8]) -> KeyBuf) -> &KeyBuf {
        self.key.get_or_init(|| make(&self.state()))
    }

    /// The state of the file as bytes, unique among all files and all states of this one.
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

    /// Returns true if the file was changed long enough before `now_s` that a further change gets
    /// another time, so that content made of it belongs to this state.
    pub fn is_settled(&self, now_s: u64) -> bool {
        let now_s = i64::try_from(now_s).unwrap_or(i64::MAX);
        self.identity.changed.0.saturating_add(SETTLED_S) <= now_s
    }

    /// Returns true if the file is still in the state of its opening.
    pub fn is_unchanged(&self) -> bool {
        fstat(&self.fd).is_ok_and(|stat| Identity::of(&stat) == self.identity)
    }

    /// The result of `judge` for head and length of the file, computed once for this state and the
    /// present settings.
    pub fn is_worth(&self, judge: impl FnOnce(&HeaderBlock, u64) -> bool) -> bool {
        *self.worth.get_or_init(|| judge(&self.head, self.length))
    }

    /// The descriptor, for sendfile.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns true if [`OpenFile::is_at_hand`] need not be called at `now_ms`.
    pub fn is_warm(&self, now_ms: u64) -> bool {
        now_ms < self.warm_until_ms.load(Ordering::Relaxed)
    }

    /// Notes that the whole file was found in memory, or was just read into it.
    pub fn warmed(&self, until_ms: u64) {
        self.warm_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Returns true if the bytes of `range` seem to be in memory. Only some are checked, since the
    /// kernel reads and evicts them in runs.
    pub fn is_at_hand(&self, range: &Range<u64>) -> bool {
        let steps = (range.start..range.end).step_by(RUN_BYTES);
        let last = range.end.checked_sub(1).filter(|last| *last >= range.start);
        steps.chain(last).all(|at| match self.peek(at, &mut [0]) {
            Ok(_) => true,
            // File systems without this information: the read must wait.
            Err(Errno::OPNOTSUPP | Errno::AGAIN) => false,
            // A real read reports the error.
            Err(_) => true,
        })
    }

    fn peek(&self, at: u64, bytes: &mut [u8]) -> Result<usize, Errno> {
        preadv2(&self.fd, &mut [IoSliceMut::new(bytes)], at, ReadWriteFlags::NOWAIT)
    }

    /// Reads from `at` the bytes that are in memory; returns their number, 0 at the end. If the
    /// whole file is `warm`, file systems that cannot report this are read, too.
    ///
    /// # Errors
    /// `WouldBlock` if the disk would have to be accessed; else the disk's error.
    pub fn read_now(&self, at: u64, bytes: &mut [u8], warm: bool) -> io::Result<usize> {
        if warm {
            return Ok(pread(&self.fd, bytes, at)?);
        }
        match self.peek(at, bytes) {
            Err(Errno::OPNOTSUPP) => Err(io::ErrorKind::WouldBlock.into()),
            read => Ok(read?),
        }
    }

    /// Reads `range`, waiting for the disk. Must not be called on a core.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file has become shorter; else the disk's error.
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

/// Bytes between the positions that [`OpenFile::is_at_hand`] checks: half of Linux's default
/// read-ahead.
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
        // Longer than a tick of the coarsest file system clock here.
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
