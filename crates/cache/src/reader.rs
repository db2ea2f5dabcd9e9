//! A body's reader: follows the writer, then goes on in the complete body.

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

/// Reads a body, from its beginning or where [`Reader::seek`] says. Several readers of one object
/// do not know of each other.
#[derive(Debug)]
pub struct Reader {
    /// Whose own body this is; `None` for a standalone window.
    object: Option<Arc<dyn BodyOwner>>,
    link: ReadSource,
    cursor: Cursor,
    /// For whom copies of what is still being filled are held.
    account: Option<Arc<Account>>,
}

/// The source of a reader's bytes.
enum ReadSource {
    /// The object, which has the whole body; or nothing, if the body broke off.
    None,
    /// The fill that brings the body, and the reader's place there.
    Fill(Arc<Fill>, u32),
    /// The object's fill, but no place there until the reader's turn comes.
    Parked,
    /// A window whose beginning was gone before the reader came, or a body elsewhere that was.
    Behind,
    /// A body elsewhere that is not opened before it is read: as much is read as may be.
    Beyond,
    /// A read of a body that is elsewhere.
    Read(Box<ExternalBodyRead>),
}

impl std::fmt::Debug for ReadSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Fill(fill, place) => f.debug_tuple("Fill").field(fill).field(place).finish(),
            Self::Parked => f.write_str("Parked"),
            Self::Behind => f.write_str("Behind"),
            Self::Beyond => f.write_str("Beyond"),
            Self::Read(opened) => f.debug_tuple("Read").field(&opened.reading).finish(),
        }
    }
}

/// A read of a body of so many bytes, if that is known, that is elsewhere.
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
    /// A reader of `object`'s body; `object` has a body of its own, not another's.
    pub(crate) fn of_object(object: Arc<dyn BodyOwner>) -> Self {
        if let Location::Elsewhere(body) = object.state() {
            let link = match Arc::clone(body).open_within() {
                Ok(reading) => link(body, reading),
                Err(BodyOpenError::Full) => ReadSource::Beyond,
                Err(BodyOpenError::Gone) => ReadSource::Behind,
            };
            return Self::over(Some(object), link);
        }
        let fill = object.fill();
        Self::following(Some(object), fill)
    }

    /// A reader of a body that is no object's.
    pub fn of_elsewhere(body: &Arc<dyn ExternalBody>) -> Self {
        Self::over(None, link(body, Arc::clone(body).open()))
    }

    /// A reader of a body that is read only here, and whose length nobody knows.
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
            Some((None, _)) => ReadSource::Behind,
            None => ReadSource::None,
        };
        Self::over(object, link)
    }

    fn fill(&self) -> Option<&Arc<Fill>> {
        if let ReadSource::Fill(fill, _) = &self.link { Some(fill) } else { None }
    }

    /// Has what this reader copies count as held for a client; one that has no more memory gets
    /// little at once.
    pub fn hold_for(&mut self, account: &Arc<Account>) {
        self.account = Some(Arc::clone(account));
    }

    /// Returns true if this is a window whose client has no memory for more.
    pub fn is_short(&self) -> bool {
        self.fill().is_some_and(|fill| fill.is_short())
    }

    /// Returns true if the body became a window whose beginning was gone before this reader came,
    /// or was elsewhere and is no more. The reader gives nothing but [`Aborted`]; fetch anew.
    pub fn is_behind(&self) -> bool {
        matches!(self.link, ReadSource::Behind)
    }

    /// Returns true if the body is elsewhere, and as much is read there as may be: whoever can
    /// fetch it anew should, before the reader is asked for any of it.
    pub fn is_beyond(&self) -> bool {
        matches!(self.link, ReadSource::Beyond)
    }

    /// Gives the reader's place up until its turn comes, [`Reader::unpark`]. A body that becomes a
    /// window while it comes waits for the slowest of its readers: one that does not read yet, and
    /// perhaps waits for another, would hold all of them up. Nothing may have been read.
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

    /// Takes a place again. False if the body's beginning has passed by meanwhile, or nobody was
    /// left to take it: fetch it anew.
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

    /// The way in which its bytes come. Those that are made are to be asked for no earlier than
    /// somebody takes them.
    pub fn making(&self) -> BodyDerivation {
        if let ReadSource::Read(opened) = &self.link {
            opened.reading.making()
        } else {
            BodyDerivation::None
        }
    }

    /// Returns true if the body broke off for want of memory.
    pub fn is_starved(&self) -> bool {
        matches!(&self.link, ReadSource::Read(opened) if opened.reading.is_starved())
    }

    /// Returns true if the reader can go back: the body is complete.
    pub fn goes_back(&self) -> bool {
        let state = self.object.as_ref().map(|object| object.state());
        match &self.link {
            ReadSource::Read(opened) => opened.reading.goes_back(),
            _ => matches!(state, Some(Location::Whole(_) | Location::Elsewhere(_))),
        }
    }

    /// Returns true if all of a complete body was taken: the next read gives its end.
    pub fn is_spent(&self) -> bool {
        let at = self.cursor.at;
        if let ReadSource::Read(opened) = &self.link {
            return opened.length.is_some_and(|length| at >= length);
        }
        match self.object.as_ref().map(|object| object.state()) {
            Some(Location::Whole(whole)) => at >= whole.len(),
            Some(Location::Elsewhere(body)) => at >= body.length(),
            Some(Location::Filling) | None => self.fill().is_some_and(|fill| fill.is_spent()),
        }
    }

    /// The next bytes, never empty; `None` at the end of a complete body. The chunks are shared,
    /// not copied, except those still being filled.
    ///
    /// # Errors
    /// [`Aborted`] after the last byte that came, when the writer did not finish; or where the body
    /// is elsewhere and cannot be had.
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
                    Location::Elsewhere(body) if !matches!(self.link, ReadSource::Read(_)) => {
                        let mut reading = Arc::clone(body).open();
                        reading.seek(self.cursor.at);
                        self.link = link(body, reading);
                    }
                    Location::Elsewhere(_) | Location::Filling => {}
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
                        // So much is counted with the request.
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

    /// The trailers that have come behind the body: none before its end, and those of a window
    /// once.
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

    /// Has the next bytes be those from `offset` of the body on: they may not have come yet, and
    /// the body may end before. What is passed over is not read.
    ///
    /// Back goes only a reader of a stored body. What a window has let go is gone: its reader reads
    /// nothing but [`Aborted`] then.
    pub fn seek(&mut self, offset: u64) {
        if let ReadSource::Read(opened) = &mut self.link {
            opened.reading.seek(offset);
        }
        self.cursor.seek(offset);
    }

    /// Says that no byte from `offset` on will be asked for: none need be brought ahead.
    pub fn until(&mut self, offset: u64) {
        if let ReadSource::Read(opened) = &mut self.link {
            opened.reading.until(offset);
        }
    }

    /// The body's length: as declared while it comes, as counted when it is complete.
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

/// Goes on with a read of a body at the cursor.
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
    // An end before the end, and a read that brings nothing, would be no end or none ever.
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
