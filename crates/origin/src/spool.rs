//! Request bodies of unknown length, kept whole for a server that must be told it: in memory
//! first, then in a file. Such a file never has a name for longer than it takes to open it, and no
//! core waits for the disk.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, remove_file};
use std::future::{Future as _, poll_fn};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use base::memory::HoldError;
use base::{Account, Counter, Counters, HashSeed, HeldBytes, Limit, Limits};
use bytes::Bytes;
use tokio::task::JoinHandle;

use crate::error::{RequestBodyError, SourceError};
use crate::upload::{BodySource, RequestBody};

/// Bytes in one piece of memory: few pieces, and little of them empty.
const PIECE_BYTES: usize = 16 * 1024;
/// The first one's: most are short.
const FIRST_BYTES: usize = 4 * 1024;
/// Bytes that go to a file, or come from it, at once.
const BATCH_BYTES: u64 = 128 * 1024;
/// The same where memory is short.
const SMALL_BATCH_BYTES: u64 = 16 * 1024;

/// Bytes that bodies have in files, those of all cores together.
#[derive(Debug, Default)]
pub(crate) struct Space(AtomicU64);

/// The room that bodies have.
#[derive(Clone, Debug)]
pub(crate) struct SpoolLimits {
    /// Bytes of one body in memory, until it goes to a file.
    memory_bytes: u64,
    /// Bytes of all files.
    file_bytes: u64,
    space: Arc<Space>,
    /// Where files are made: the first of these where one can be.
    folders: Vec<PathBuf>,
}

impl SpoolLimits {
    /// Room within `limits`; files count in `space`.
    pub(crate) fn new(limits: &Limits, space: Arc<Space>) -> Self {
        // On many systems `/tmp` is memory.
        let set = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
        let usual = ["/var/tmp", "/tmp"].map(PathBuf::from);
        let folders = set.map(PathBuf::from).into_iter().chain(usual).collect();
        let (memory_bytes, file_bytes) = (limits.spool_bytes, limits.spool_file_bytes);
        Self { memory_bytes, file_bytes, space, folders }
    }

    /// Takes a body whole.
    ///
    /// # Errors
    /// When its source fails, it is longer than the limits allow, or there is no room for it.
    pub(crate) async fn take(
        &self,
        body: RequestBody<'_>,
        account: Option<&Arc<Account>>,
        counters: &Counters,
    ) -> Result<SpooledBody, RequestBodyError> {
        let mut whole = SpooledBody::default();
        let RequestBody::Stream(mut source) = body else { return Ok(whole) };
        while let Some(data) =
            poll_fn(|cx| source.poll_data(cx)).await.map_err(RequestBodyError::Source)?
        {
            let most = if whole.file.is_some() { BATCH_BYTES } else { self.memory_bytes };
            if whole.in_memory() + data.len() as u64 > most {
                self.spill(&mut whole, counters).await?;
            }
            if whole.file.is_some() && whole.len + data.len() as u64 > self.file_bytes {
                return Err(RequestBodyError::TooLarge(Limit::SpoolFileBytes));
            }
            let mut rest = &data[..];
            while whole.append(&mut rest, account).is_err() {
                if whole.in_memory() == 0 || self.file_bytes == 0 {
                    return Err(RequestBodyError::NoMemory);
                }
                counters.limit(Limit::ClientMemory);
                self.spill(&mut whole, counters).await?;
            }
        }
        if whole.file.is_some() && !whole.hold_batch(account, &[BATCH_BYTES]) {
            self.spill(&mut whole, counters).await?;
            if !whole.hold_batch(account, &[BATCH_BYTES, SMALL_BATCH_BYTES]) {
                return Err(RequestBodyError::NoMemory);
            }
        }
        Ok(whole)
    }

    /// Moves what `whole` has in memory to its file.
    async fn spill(
        &self,
        whole: &mut SpooledBody,
        counters: &Counters,
    ) -> Result<(), RequestBodyError> {
        if self.file_bytes == 0 {
            return Err(RequestBodyError::TooLarge(Limit::SpoolBytes));
        }
        if whole.file.is_none() {
            counters.inc(Counter::SpooledToFiles);
        }
        let taken = SpaceReservation::new(&self.space, whole.in_memory(), self.file_bytes);
        let taken = taken.ok_or(RequestBodyError::NoFileSpace)?;
        let (file, pieces) = (whole.file.take(), std::mem::take(&mut whole.pieces));
        let folders = self.folders.clone();
        let write = move || {
            let mut file = file.map_or_else(|| SpillFile::create(&folders), Ok)?;
            for piece in pieces {
                file.file.write_all_at(&piece.data, file.len)?;
                file.len += piece.data.len() as u64;
            }
            file.taken.push(taken);
            Ok(file)
        };
        let written = rt::blocking(write).await.unwrap_or_else(|_| Err(broke()));
        whole.file = Some(written.map_err(RequestBodyError::File)?);
        Ok(())
    }
}

fn broke() -> io::Error {
    io::Error::other("the work was ended")
}

/// Bytes of the space of all files, given back when dropped.
struct SpaceReservation {
    space: Arc<Space>,
    bytes: u64,
}

impl SpaceReservation {
    /// `bytes` more, if all files have no more than `most` with them.
    fn new(space: &Arc<Space>, bytes: u64, most: u64) -> Option<Self> {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= most);
        space.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(Self { space: Arc::clone(space), bytes })
    }
}

impl Drop for SpaceReservation {
    fn drop(&mut self) {
        self.space.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The beginning of a body, in a file without a name. Its fields are dropped in order: the file is
/// gone before its bytes count as free.
struct SpillFile {
    file: File,
    len: u64,
    taken: Vec<SpaceReservation>,
}

impl SpillFile {
    /// An empty file in the first of `folders` where one can be made.
    fn create(folders: &[PathBuf]) -> io::Result<Self> {
        let mut last = None;
        for folder in folders {
            match nameless(folder) {
                Ok(file) => return Ok(Self { file, len: 0, taken: Vec::new() }),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(broke))
    }
}

/// A file that only its descriptor leads to.
fn nameless(folder: &Path) -> io::Result<File> {
    // Others may write to the folder: the name cannot be guessed, and must be new.
    let random = HashSeed::draw();
    let path = folder.join(format!("larder-upload-{random:016x}"));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

/// A body that is there already: first what is in its file, then what is in memory.
#[derive(Default)]
pub(crate) struct SpooledBody {
    file: Option<SpillFile>,
    /// Bytes of the file that were read.
    read: u64,
    reading: Option<SpillRead>,
    /// Bytes of it that are read at once, and the memory for them.
    batch: u64,
    batch_held: Option<HeldBytes>,
    pieces: VecDeque<SpoolPiece>,
    len: u64,
}

type SpillRead = JoinHandle<io::Result<(SpillFile, Vec<u8>)>>;

/// Part of it, as long as its memory is held.
struct SpoolPiece {
    data: Vec<u8>,
    _held: Option<HeldBytes>,
}

impl AsRef<[u8]> for SpoolPiece {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl SpooledBody {
    /// Bytes of it.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn in_memory(&self) -> u64 {
        self.len - self.file.as_ref().map_or(0, |file| file.len)
    }

    /// Holds memory to read the file with: as much as the first of `sizes` for which there is some.
    fn hold_batch(&mut self, account: Option<&Arc<Account>>, sizes: &[u64]) -> bool {
        sizes.iter().any(|size| {
            let held = account.map(|account| account.hold(*size)).transpose();
            held.map(|held| (self.batch, self.batch_held) = (*size, held)).is_ok()
        })
    }

    /// Moves bytes of `data` into memory, as many as there is memory for.
    fn append(
        &mut self,
        data: &mut &[u8],
        account: Option<&Arc<Account>>,
    ) -> Result<(), HoldError> {
        while !data.is_empty() {
            let spare = |piece: &SpoolPiece| piece.data.capacity() - piece.data.len();
            match self.pieces.back_mut() {
                Some(piece) if spare(piece) > 0 => {
                    let (now, later) = data.split_at(data.len().min(spare(piece)));
                    piece.data.extend_from_slice(now);
                    self.len += now.len() as u64;
                    *data = later;
                }
                last => {
                    let room = if last.is_none() { FIRST_BYTES } else { PIECE_BYTES };
                    let held = account.map(|account| account.hold(room as u64)).transpose();
                    let held = held?;
                    self.pieces
                        .push_back(SpoolPiece { data: Vec::with_capacity(room), _held: held });
                }
            }
        }
        Ok(())
    }

    /// The next bytes of the file; `None` if there are no more.
    fn poll_file(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if self.reading.is_none() {
            let Some(file) = self.file.take_if(|file| self.read < file.len) else {
                (self.file, self.batch_held) = (None, None);
                return Poll::Ready(Ok(None));
            };
            let (at, most) = (self.read, self.batch);
            self.reading = Some(rt::blocking(move || {
                let mut data = vec![0; (file.len - at).min(most) as usize];
                file.file.read_exact_at(&mut data, at)?;
                Ok((file, data))
            }));
        }
        let Some(reading) = &mut self.reading else { return Poll::Ready(Ok(None)) };
        let read = ready!(Pin::new(reading).poll(cx)).unwrap_or_else(|_| Err(broke()));
        self.reading = None;
        let (file, data) = read?;
        self.file = Some(file);
        self.read += data.len() as u64;
        Poll::Ready(Ok(Some(data.into())))
    }
}

impl BodySource for SpooledBody {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        let read = ready!(self.poll_file(cx));
        let read = read.map_err(|_| SourceError("the file in which it was kept cannot be read"))?;
        let in_memory = || self.pieces.pop_front().map(Bytes::from_owner);
        Poll::Ready(Ok(read.or_else(in_memory)))
    }
}

#[cfg(test)]
mod tests;
