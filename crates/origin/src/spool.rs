//! Spool of request bodies of unknown length, for a server that needs the length first: in memory,
//! then in a file. The file must never keep a name after it was opened, and no core may wait for
//! the disk.

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

/// Size of one piece of memory: few pieces, with little unused space.
const PIECE_BYTES: usize = 16 * 1024;
/// Size of the first piece: most bodies are short.
const FIRST_BYTES: usize = 4 * 1024;
/// Bytes of one read or write of a file.
const BATCH_BYTES: u64 = 128 * 1024;
/// Bytes of one read or write if memory is scarce.
const SMALL_BATCH_BYTES: u64 = 16 * 1024;

/// Bytes of spool files, on all cores.
#[derive(Debug, Default)]
pub(crate) struct Space(AtomicU64);

/// The limits of spooled bodies.
#[derive(Clone, Debug)]
pub(crate) struct SpoolLimits {
    /// Bytes of one body in memory; a longer one goes to a file.
    memory_bytes: u64,
    /// Bytes of all files.
    file_bytes: u64,
    space: Arc<Space>,
    /// Directories for files, in order of preference.
    folders: Vec<PathBuf>,
}

impl SpoolLimits {
    /// Limits from `limits`; files are charged to `space`.
    pub(crate) fn new(limits: &Limits, space: Arc<Space>) -> Self {
        // `/tmp` is often in memory.
        let set = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
        let usual = ["/var/tmp", "/tmp"].map(PathBuf::from);
        let folders = set.map(PathBuf::from).into_iter().chain(usual).collect();
        let (memory_bytes, file_bytes) = (limits.spool_bytes, limits.spool_file_bytes);
        Self { memory_bytes, file_bytes, space, folders }
    }

    /// Spools a whole body.
    ///
    /// # Errors
    /// If its source fails, a limit is exceeded, or there is no space for it.
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

    /// Moves the bytes in memory to the file.
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

/// A reservation in the space of all files, released when dropped.
struct SpaceReservation {
    space: Arc<Space>,
    bytes: u64,
}

impl SpaceReservation {
    /// Reserves `bytes`, unless all files together would exceed `most`.
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

/// The first part of a body, in a file without a name. Fields are dropped in order: the file is
/// closed before its bytes are released.
struct SpillFile {
    file: File,
    len: u64,
    taken: Vec<SpaceReservation>,
}

impl SpillFile {
    /// Creates an empty file in the first of `folders` where that succeeds.
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

/// Creates a file without a name.
fn nameless(folder: &Path) -> io::Result<File> {
    // Other users may write to the directory: the name must be unpredictable and new.
    let random = HashSeed::draw();
    let path = folder.join(format!("larder-upload-{random:016x}"));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    remove_file(&path)?;
    Ok(file)
}

/// A spooled body: first the bytes in its file, then those in memory.
#[derive(Default)]
pub(crate) struct SpooledBody {
    file: Option<SpillFile>,
    /// Bytes of the file that were read.
    read: u64,
    reading: Option<SpillRead>,
    /// Size of one read, with the memory for it.
    batch: u64,
    batch_held: Option<HeldBytes>,
    pieces: VecDeque<SpoolPiece>,
    len: u64,
}

type SpillRead = JoinHandle<io::Result<(SpillFile, Vec<u8>)>>;

/// A part of a body, with the reservation of its memory.
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
    /// The length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    fn in_memory(&self) -> u64 {
        self.len - self.file.as_ref().map_or(0, |file| file.len)
    }

    /// Reserves memory for reading the file: the first of `sizes` that is available.
    fn hold_batch(&mut self, account: Option<&Arc<Account>>, sizes: &[u64]) -> bool {
        sizes.iter().any(|size| {
            let held = account.map(|account| account.hold(*size)).transpose();
            held.map(|held| (self.batch, self.batch_held) = (*size, held)).is_ok()
        })
    }

    /// Moves bytes of `data` into memory, as far as memory can be reserved.
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

    /// The next bytes of the file; `None` at its end.
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
