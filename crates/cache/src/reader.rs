//! A body's reader: follows the writer, then goes on in the complete body.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use base::Account;
use bytes::Bytes;

use crate::chunks::{Keeper, Whole};
use crate::fill::{Aborted, COPY_BYTES, Cursor, Fill, Step, Trailed, WINDOW_CHUNK_BYTES};
use crate::piece::{CHUNK_OVERHEAD, Cost, Owned};
use crate::size;

/// Reads a body from its beginning. Several readers of one object do not know of each other.
#[derive(Debug)]
pub struct Reader {
    /// Whose own body this is; `None` for a standalone window.
    object: Option<Arc<dyn Keeper>>,
    fill: Option<Arc<Fill>>,
    /// This reader's place in `fill`.
    place: u32,
    cursor: Cursor,
    behind: bool,
    /// For whom copies of what is still being filled are held.
    account: Option<Arc<Account>>,
}

/// Keeps an object alive for bytes that point into it.
struct Borrowed(Arc<dyn Keeper>);

impl AsRef<[u8]> for Borrowed {
    fn as_ref(&self) -> &[u8] {
        match self.0.whole() {
            Some(Whole::One(bytes)) => bytes,
            _ => &[],
        }
    }
}

impl Reader {
    /// A reader of `object`'s body; `object` has a body of its own, not another's.
    pub(crate) fn of_object(object: Arc<dyn Keeper>) -> Self {
        let fill = object.fill();
        Self::following(Some(object), fill)
    }

    /// The reader of a standalone window.
    pub(crate) fn of_window(fill: Arc<Fill>) -> Self {
        Self::following(None, Some(fill))
    }

    fn following(object: Option<Arc<dyn Keeper>>, fill: Option<Arc<Fill>>) -> Self {
        let place = fill.as_ref().map(|fill| fill.attach());
        Self {
            object,
            behind: place == Some(None),
            fill: fill.filter(|_| place != Some(None)),
            place: place.flatten().unwrap_or(0),
            cursor: Cursor::default(),
            account: None,
        }
    }

    /// Has what this reader copies count as held for a client; one that has no more memory gets
    /// little at once.
    pub fn hold_for(&mut self, account: &Arc<Account>) {
        self.account = Some(Arc::clone(account));
    }

    /// Whether this is a window whose client has no memory for more.
    pub fn is_short(&self) -> bool {
        self.fill.as_ref().is_some_and(|fill| fill.is_short())
    }

    /// Whether the body became a window whose beginning was gone before this reader came: it reads
    /// nothing but [`Aborted`]; fetch anew.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// The next bytes, never empty; `None` at the end of a complete body. The chunks are shared,
    /// not copied, except those still being filled.
    ///
    /// # Errors
    /// [`Aborted`] after the last byte that came, when the writer did not finish.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Aborted>> {
        let mut copied = if self.account.is_some() { 0 } else { COPY_BYTES };
        let mut held = None;
        loop {
            if let Some(whole) = self.object.as_ref().and_then(|object| object.whole()) {
                let next = next_of(&mut self.cursor, whole, self.object.as_ref());
                self.leave();
                return Poll::Ready(Ok(next));
            }
            let Some(fill) = &self.fill else {
                return Poll::Ready(Err(Aborted));
            };
            match ready!(fill.poll_read(self.place, &mut self.cursor, copied, cx))? {
                Step::Data(data) => return Poll::Ready(Ok(Some(data))),
                Step::Copy(data) => {
                    return Poll::Ready(Ok(Some(match held.take() {
                        Some(held) => Owned::into_bytes(data, Cost::Held(held)),
                        None => data.into(),
                    })));
                }
                Step::Tail(bytes) => {
                    let Some(account) = &self.account else { return Poll::Ready(Err(Aborted)) };
                    let cost = |bytes| size::class(bytes) + CHUNK_OVERHEAD;
                    copied = bytes.min(COPY_BYTES);
                    held = account.hold(cost(copied)).ok();
                    if held.is_none() {
                        // So much is counted with the request.
                        copied = copied.min(WINDOW_CHUNK_BYTES);
                    }
                }
                Step::End => return Poll::Ready(Ok(None)),
                Step::Whole if self.object.is_none() => return Poll::Ready(Ok(None)),
                Step::Whole => {}
            }
        }
    }

    /// [`Reader::poll_next`] as a future; dropping it loses nothing.
    ///
    /// # Errors
    /// As [`Reader::poll_next`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, Aborted> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The trailers that have come behind the body of a window, once; none before its end.
    pub fn take_trailers(&mut self) -> Option<Box<Trailed>> {
        self.fill.as_ref().and_then(|fill| fill.take_trailed())
    }

    /// Passes over the next `bytes` bytes, those that have not come yet included; fewer when the
    /// body ends before.
    pub fn skip(&mut self, bytes: u64) {
        self.cursor.skip = self.cursor.skip.saturating_add(bytes);
    }

    /// The body's length: as declared while it comes, as counted when it is complete.
    pub fn length(&self) -> Option<u64> {
        match &self.object {
            Some(object) => object.length(),
            None => self.fill.as_ref().and_then(|fill| fill.declared),
        }
    }

    /// The complete body, if it is complete, as `Object::whole` gives it: from its beginning,
    /// whatever this reader has taken.
    pub fn try_whole(&self) -> Option<Whole<'_>> {
        self.object.as_ref().and_then(|object| object.whole())
    }

    fn leave(&mut self) {
        if let Some(fill) = self.fill.take() {
            fill.detach(self.place);
        }
    }
}

fn next_of(
    cursor: &mut Cursor,
    whole: Whole<'_>,
    object: Option<&Arc<dyn Keeper>>,
) -> Option<Bytes> {
    match whole {
        Whole::One(bytes) => {
            let object = object.filter(|_| cursor.chunk == 0 && cursor.at < bytes.len())?;
            cursor.take(&Bytes::from_owner(Borrowed(Arc::clone(object))))
        }
        Whole::Many(chunks) => loop {
            let chunk = chunks.get(usize::try_from(cursor.chunk).ok()?)?;
            if let Some(data) = cursor.take(chunk) {
                return Some(data);
            }
        },
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}
