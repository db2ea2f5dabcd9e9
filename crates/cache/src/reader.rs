//! A body's reader: follows the writer of a filling body, then continues in the complete body. It
//! must never give bytes of an incomplete body as a complete one.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::Bytes;
use message::Trailers;

use crate::borrowed_body::BorrowedBody;
use crate::charged_bytes::{CHUNK_OVERHEAD, ChargedBytes, ChunkReservation};
use crate::content::{
    BodyDerivation, BodyOpenError, BodyOwner, ExternalBody, ExternalBodyReader, Location,
};
use crate::fill::{
    COPY_BYTES, Cursor, Fill, FillItem, HeldTrailers, IncompleteBody, WINDOW_CHUNK_BYTES,
};
use crate::size;

/// A reader of a body, from its beginning or from the offset of [`Reader::seek`]. Several readers
/// of one object are independent.
#[derive(Debug)]
pub struct Reader {
    /// The owner of the body; `None` for a standalone window.
    object: Option<Arc<dyn BodyOwner>>,
    link: ReadSource,
    cursor: Cursor,
    /// The account of the client that copies of a filling body are held for.
    account: Option<Arc<Account>>,
}

/// The source of a reader's bytes.
enum ReadSource {
    /// The object with the whole body, or no source if the body broke off.
    None,
    /// The fill that brings the body, and the reader's number there.
    Fill(Arc<Fill>, u32),
    /// The object's fill, without a number until the reader is unparked.
    Parked,
    /// A window whose beginning was gone before the reader came, or an external body that is lost.
    Lost,
    /// An external body that is not opened before it is read: too many reads are under way.
    Deferred,
    /// A read of an external body.
    Read(Box<ExternalBodyRead>),
}

impl std::fmt::Debug for ReadSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Fill(fill, place) => f.debug_tuple("Fill").field(fill).field(place).finish(),
            Self::Parked => f.write_str("Parked"),
            Self::Lost => f.write_str("Lost"),
            Self::Deferred => f.write_str("Deferred"),
            Self::Read(opened) => f.debug_tuple("Read").field(&opened.reading).finish(),
        }
    }
}

/// A read of an external body of this many bytes, if known.
struct ExternalBodyRead {
    reading: Box<dyn ExternalBodyReader>,
    length: Option<u64>,
    trailers: Option<Trailers>,
}

/// Keeps an object alive for bytes that point into it.
struct BodyPin(Arc<dyn BodyOwner>);

impl AsRef<[u8]> for BodyPin {
    fn as_ref(&self) -> &[u8] {
        match self.0.state() {
            Location::Whole(BorrowedBody::One(bytes)) => bytes,
            _ => &[],
        }
    }
}

impl Reader {
    /// A reader of the body of `object`, which owns its body.
    pub(crate) fn of_object(object: Arc<dyn BodyOwner>) -> Self {
        if let Location::External(body) = object.state() {
            let link = match Arc::clone(body).open_within() {
                Ok(reading) => link(body, reading),
                Err(BodyOpenError::Full) => ReadSource::Deferred,
                Err(BodyOpenError::Gone) => ReadSource::Lost,
            };
            return Self::over(Some(object), link);
        }
        let fill = object.fill();
        Self::following(Some(object), fill)
    }

    /// A reader of a body without an object.
    pub fn of_elsewhere(body: &Arc<dyn ExternalBody>) -> Self {
        Self::over(None, link(body, Arc::clone(body).open()))
    }

    /// A reader of a body of unknown length that has no other reader.
    pub fn of_reading(reading: Box<dyn ExternalBodyReader>) -> Self {
        Self::over(
            None,
            ReadSource::Read(Box::new(ExternalBodyRead { reading, length: None, trailers: None })),
        )
    }

    fn over(object: Option<Arc<dyn BodyOwner>>, link: ReadSource) -> Self {
        Self { object, link, cursor: Cursor::default(), account: None }
    }

    /// The reader of a standalone window.
    pub(crate) fn of_window(fill: Arc<Fill>) -> Self {
        Self::following(None, Some(fill))
    }

    fn following(object: Option<Arc<dyn BodyOwner>>, fill: Option<Arc<Fill>>) -> Self {
        let link = match fill.map(|fill| (fill.attach(), fill)) {
            Some((Some(place), fill)) => ReadSource::Fill(fill, place),
            Some((None, _)) => ReadSource::Lost,
            None => ReadSource::None,
        };
        Self::over(object, link)
    }

    fn fill(&self) -> Option<&Arc<Fill>> {
        if let ReadSource::Fill(fill, _) = &self.link { Some(fill) } else { None }
    }

    /// Counts this reader's copies as held for a client. A client without memory gets little at
    /// once.
    pub fn hold_for(&mut self, account: &Arc<Account>) {
        self.account = Some(Arc::clone(account));
    }

    /// Returns true if this is a window whose client has no memory for more.
    pub fn is_short(&self) -> bool {
        self.fill().is_some_and(|fill| fill.is_short())
    }

    /// Returns true if the body became a window whose beginning was gone before this reader came,
    /// or was external and is lost. The reader gives only [`IncompleteBody`]; the caller should
    /// fetch again.
    pub fn is_behind(&self) -> bool {
        matches!(self.link, ReadSource::Lost)
    }

    /// Returns true if the body is external and too many reads are under way. A caller that can
    /// fetch the body should do so before it reads.
    pub fn is_beyond(&self) -> bool {
        matches!(self.link, ReadSource::Deferred)
    }

    /// Detaches the reader until [`Reader::unpark`]. A body that becomes a window waits for its
    /// slowest reader, so an idle reader would delay all others. To be called before the first
    /// read.
    pub fn park(&mut self) {
        if let ReadSource::Read(opened) = &mut self.link {
            return opened.reading.park();
        }
        let has_place = self.fill().is_some_and(|fill| !fill.is_for_one());
        if has_place && self.object.is_some() && self.cursor.at == 0 {
            self.leave();
            self.link = ReadSource::Parked;
        }
    }

    /// Attaches the reader again. Returns false if the body's beginning has passed meanwhile, or
    /// the fetch was abandoned: the caller should fetch again.
    pub fn unpark(&mut self) -> bool {
        if let ReadSource::Read(opened) = &mut self.link {
            return opened.reading.unpark();
        }
        if matches!(self.link, ReadSource::Parked)
            && let Some(object) = self.object.take()
        {
            let account = self.account.take();
            *self = Self::of_object(object);
            self.account = account;
            let is_lost = self.fill().is_some_and(|fill| fill.has_aborted());
            return !is_lost && !self.is_behind();
        }
        true
    }

    /// The derivation of the bytes. Derived bytes should be requested only when they are needed.
    pub fn making(&self) -> BodyDerivation {
        if let ReadSource::Read(opened) = &self.link {
            opened.reading.making()
        } else {
            BodyDerivation::None
        }
    }

    /// Returns true if the body broke off for lack of memory.
    pub fn is_starved(&self) -> bool {
        matches!(&self.link, ReadSource::Read(opened) if opened.reading.is_starved())
    }

    /// Returns true if the reader can seek back: the body is complete.
    pub fn goes_back(&self) -> bool {
        let state = self.object.as_ref().map(|object| object.state());
        match &self.link {
            ReadSource::Read(opened) => opened.reading.goes_back(),
            _ => matches!(state, Some(Location::Whole(_) | Location::External(_))),
        }
    }

    /// Returns true if a complete body has been read to its end: the next read gives `None`.
    pub fn is_spent(&self) -> bool {
        let at = self.cursor.at;
        if let ReadSource::Read(opened) = &self.link {
            return opened.length.is_some_and(|length| at >= length);
        }
        match self.object.as_ref().map(|object| object.state()) {
            Some(Location::Whole(whole)) => at >= whole.len(),
            Some(Location::External(body)) => at >= body.length(),
            Some(Location::Filling) | None => self.fill().is_some_and(|fill| fill.is_spent()),
        }
    }

    /// The next bytes, never empty; `None` at the end of a complete body. Chunks are shared, not
    /// copied, except the one being filled.
    ///
    /// # Errors
    /// [`IncompleteBody`] after the last byte, if the writer did not finish, or if an external body
    /// is lost.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
        let mut copied = if self.account.is_some() { 0 } else { COPY_BYTES };
        let mut held = None;
        loop {
            if let Some(object) = &self.object {
                match object.state() {
                    Location::Whole(whole) => {
                        let next = next_of(&mut self.cursor, whole, object);
                        self.leave();
                        return Poll::Ready(Ok(next));
                    }
                    Location::External(body) if !matches!(self.link, ReadSource::Read(_)) => {
                        let mut reading = Arc::clone(body).open();
                        reading.seek(self.cursor.at);
                        self.link = link(body, reading);
                    }
                    Location::External(_) | Location::Filling => {}
                }
            }
            if let ReadSource::Read(opened) = &mut self.link {
                return go_on(&mut self.cursor, opened, self.account.as_ref(), cx);
            }
            let ReadSource::Fill(fill, place) = &self.link else {
                return Poll::Ready(Err(IncompleteBody));
            };
            match ready!(fill.poll_read(*place, &mut self.cursor, copied, cx))? {
                FillItem::Data(data) => return Poll::Ready(Ok(Some(data))),
                FillItem::Copy(data) => {
                    return Poll::Ready(Ok(Some(match held.take() {
                        Some(held) => ChargedBytes::into_bytes(data, ChunkReservation::Held(held)),
                        None => data.into(),
                    })));
                }
                FillItem::Tail(bytes) => {
                    let Some(account) = &self.account else {
                        return Poll::Ready(Err(IncompleteBody));
                    };
                    let cost = |bytes| size::class(bytes) + CHUNK_OVERHEAD;
                    copied = bytes.min(COPY_BYTES);
                    held = account.hold(cost(copied)).ok();
                    if held.is_none() {
                        // This much is counted with the request.
                        copied = copied.min(WINDOW_CHUNK_BYTES);
                    }
                }
                FillItem::End => return Poll::Ready(Ok(None)),
                FillItem::Whole if self.object.is_none() => return Poll::Ready(Ok(None)),
                FillItem::Whole => {}
            }
        }
    }

    /// [`Reader::poll_next`] as a future; dropping it loses nothing.
    ///
    /// # Errors
    /// As [`Reader::poll_next`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, IncompleteBody> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The trailers behind the body: `None` before its end. Those of a window are given once.
    pub fn take_trailers(&mut self) -> Option<Box<HeldTrailers>> {
        let kept = self.object.as_ref().and_then(|object| object.trailers()).cloned();
        let kept = match &mut self.link {
            ReadSource::Read(opened) => kept.or_else(|| opened.trailers.take()),
            _ => kept,
        };
        match kept {
            Some(kept) => Some(Box::new(HeldTrailers::held_by(kept, self.account.as_ref()))),
            None => match &mut self.link {
                ReadSource::Read(opened) => opened.reading.take_trailers(),
                _ => self.fill().and_then(|fill| fill.take_trailed()),
            },
        }
    }

    /// Continues at `offset`, which may not have arrived yet or may lie behind the end. Skipped
    /// bytes are not read.
    ///
    /// Only a reader of a stored body can seek back. A window has freed earlier bytes, so its
    /// reader then gets [`IncompleteBody`].
    pub fn seek(&mut self, offset: u64) {
        if let ReadSource::Read(opened) = &mut self.link {
            opened.reading.seek(offset);
        }
        self.cursor.seek(offset);
    }

    /// Declares that no byte from `offset` on will be requested, which limits readahead.
    pub fn until(&mut self, offset: u64) {
        if let ReadSource::Read(opened) = &mut self.link {
            opened.reading.until(offset);
        }
    }

    /// The body's length: as declared while it arrives, as counted once it is complete.
    pub fn length(&self) -> Option<u64> {
        match &self.object {
            Some(object) => object.length(),
            None if let ReadSource::Read(opened) = &self.link => opened.length,
            None => self.fill().and_then(|fill| fill.declared),
        }
    }

    fn leave(&mut self) {
        if let ReadSource::Fill(fill, place) = std::mem::replace(&mut self.link, ReadSource::None) {
            fill.detach(place);
        }
    }
}

fn next_of(
    cursor: &mut Cursor,
    whole: BorrowedBody<'_>,
    object: &Arc<dyn BodyOwner>,
) -> Option<Bytes> {
    match whole {
        BorrowedBody::One(bytes) if cursor.at < bytes.len() as u64 => {
            cursor.take(&Bytes::from_owner(BodyPin(Arc::clone(object))), 0)
        }
        BorrowedBody::One(_) => None,
        BorrowedBody::Many(pieces) => {
            let (pieces, begins) = pieces.from(cursor.at);
            cursor.take(pieces.first()?, begins)
        }
    }
}

fn link(body: &Arc<dyn ExternalBody>, reading: Box<dyn ExternalBodyReader>) -> ReadSource {
    let (length, trailers) = (Some(body.length()), body.trailers());
    ReadSource::Read(Box::new(ExternalBodyRead { reading, length, trailers }))
}

/// Continues a read of an external body at the cursor.
fn go_on(
    cursor: &mut Cursor,
    opened: &mut ExternalBodyRead,
    account: Option<&Arc<Account>>,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, IncompleteBody>> {
    let left = match opened.length {
        Some(length) => length.saturating_sub(cursor.at),
        None => u64::MAX,
    };
    if left == 0 {
        return Poll::Ready(Ok(None));
    }
    // An early end would truncate the body, and an empty read might repeat forever.
    let Some(mut data) = ready!(opened.reading.poll_next(account, cx))? else {
        return Poll::Ready(if opened.length.is_none() { Ok(None) } else { Err(IncompleteBody) });
    };
    data.truncate(usize::try_from(left).unwrap_or(usize::MAX));
    cursor.at += data.len() as u64;
    Poll::Ready(if data.is_empty() { Err(IncompleteBody) } else { Ok(Some(data)) })
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}
