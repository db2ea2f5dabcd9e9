//! Stretches of an arriving body with bytes between them: multipart/byteranges (RFC 9110 14.6) of a
//! body that is not in memory.

use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::Bytes;
use cache::{ExternalBody, ExternalBodyReader, IncompleteBody, Reader};
use parking_lot::Mutex;

/// A piece of the output.
#[derive(Clone, Debug)]
pub(crate) enum StretchPiece {
    Bytes(Bytes),
    /// Bytes of the body.
    Of(Range<u64>),
}

impl StretchPiece {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Of(range) => range.end - range.start,
        }
    }
}

/// Pieces in order, as a body. It is read once, from its beginning.
#[derive(Debug)]
pub(crate) struct MultipartRanges {
    length: u64,
    state: Mutex<Option<MultipartReading>>,
}

impl MultipartRanges {
    /// A reader of `pieces`; `reader` reads the body that they are cut from.
    pub(crate) fn read(reader: Reader, pieces: Vec<StretchPiece>) -> Reader {
        let length = pieces.iter().map(StretchPiece::len).sum();
        let stretching =
            MultipartReading { reader: Some(reader), pieces, at: 0, done: 0, spare: None };
        let stretches = Self { length, state: Mutex::new(Some(stretching)) };
        Reader::of_elsewhere(&(Arc::new(stretches) as Arc<dyn ExternalBody>))
    }
}

impl ExternalBody for MultipartRanges {
    fn length(&self) -> u64 {
        self.length
    }

    fn open(self: Arc<Self>) -> Box<dyn ExternalBodyReader> {
        let nothing =
            MultipartReading { reader: None, pieces: Vec::new(), at: 0, done: 0, spare: None };
        Box::new(self.state.lock().take().unwrap_or(nothing))
    }
}

/// A read of stretches.
#[derive(Debug)]
struct MultipartReading {
    reader: Option<Reader>,
    pieces: Vec<StretchPiece>,
    /// The index of the current piece.
    at: usize,
    /// Bytes of the piece that were output.
    done: u64,
    /// Bytes that the reader has brought beyond a piece, and the offset behind them: a window
    /// delivers bytes once.
    spare: Option<(Bytes, u64)>,
}

impl ExternalBodyReader for MultipartReading {
    fn seek(&mut self, offset: u64) {
        let mut begins = 0;
        for (at, piece) in self.pieces.iter().enumerate() {
            if offset < begins + piece.len() {
                (self.at, self.done) = (at, offset - begins);
                return self.go_to_piece();
            }
            begins += piece.len();
        }
        self.at = self.pieces.len();
    }

    fn poll_next(
        &mut self,
        account: Option<&Arc<Account>>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        loop {
            let Some(piece) = self.pieces.get(self.at) else { return Poll::Ready(Ok(None)) };
            let left = piece.len() - self.done;
            if left == 0 {
                (self.at, self.done) = (self.at + 1, 0);
                self.go_to_piece();
                continue;
            }
            let mut data = match piece {
                StretchPiece::Bytes(bytes) => bytes.slice(bytes.len() - left as usize..),
                StretchPiece::Of(_) => {
                    if let Some((data, end)) = self.spare.take() {
                        return Poll::Ready(Ok(Some(self.take(data, end))));
                    }
                    let Some(reader) = &mut self.reader else {
                        return Poll::Ready(Err(IncompleteBody));
                    };
                    if let Some(account) = account {
                        reader.hold_for(account);
                    }
                    match ready!(reader.poll_next(cx))? {
                        Some(data) => {
                            let StretchPiece::Of(range) = piece else { continue };
                            let end = range.start + self.done + data.len() as u64;
                            return Poll::Ready(Ok(Some(self.take(data, end))));
                        }
                        None => return Poll::Ready(Err(IncompleteBody)),
                    }
                }
            };
            data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            self.done += data.len() as u64;
            return Poll::Ready(Ok(Some(data)));
        }
    }
}

impl MultipartReading {
    /// Takes the bytes for the piece out of `data`, which ends before the offset `end`.
    fn take(&mut self, mut data: Bytes, end: u64) -> Bytes {
        let left = self.pieces.get(self.at).map_or(0, StretchPiece::len) - self.done;
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(data.len());
        let rest = data.split_off(most);
        if !rest.is_empty() {
            self.spare = Some((rest, end));
        }
        self.done += data.len() as u64;
        data
    }

    /// Moves the reader to the beginning of the current piece.
    fn go_to_piece(&mut self) {
        if let Some(StretchPiece::Of(range)) = self.pieces.get(self.at)
            && let Some((mut rest, end)) = self.spare.take()
        {
            let (from, begins) = (range.start + self.done, end - rest.len() as u64);
            if (begins..end).contains(&from) {
                self.spare = Some((rest.split_off((from - begins) as usize), end));
                return;
            }
        }
        if let (Some(StretchPiece::Of(range)), Some(reader)) =
            (self.pieces.get(self.at), &mut self.reader)
        {
            reader.seek(range.start + self.done);
            reader.until(range.end);
        }
    }
}
