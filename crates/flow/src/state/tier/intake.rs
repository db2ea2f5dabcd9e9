//! Intake: a body on its way to the disk: the parts on disk, the bytes behind them, and the
//! readers. A kept body arrives regardless of its readers. If the disk stops taking it, it passes
//! to its readers at the pace of the last one.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use disk::PartRecord;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The intake of a body.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// Bytes of a part.
    part_bytes: u64,
    state: Mutex<IntakeState>,
    /// Notified when more has arrived, or nothing more will.
    more: Arc<Notify>,
    /// Notified when a reader has moved or left.
    pub(crate) moved: Notify,
}

#[derive(Debug, Default)]
struct IntakeState {
    /// All but the last have the same length.
    parts: Vec<PartRecord>,
    part_bytes: u64,
    /// Bytes behind the parts, and their offset.
    tail: VecDeque<Bytes>,
    begins: u64,
    len: u64,
    phase: IntakePhase,
    /// The disk takes no more: bytes that all readers have taken are dropped.
    passes: bool,
    /// Numbers and positions of the readers.
    readers: Vec<(u64, u64)>,
    next: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum IntakePhase {
    #[default]
    Coming,
    /// The body is complete, and is read here.
    Come,
    /// The body is complete, as one record on disk.
    Kept,
    Broken,
}

/// The source of a reader's next bytes.
#[derive(Debug)]
pub(crate) enum IntakeProgress {
    Bytes(Vec<Bytes>),
    /// This part, from this offset in it.
    Part(PartRecord, u64),
    /// They have not arrived.
    Wait(OwnedNotified),
    /// The record.
    Kept,
    Broken,
}

impl Intake {
    pub(crate) fn new(part_bytes: u64) -> Self {
        let state = IntakeState { part_bytes, ..IntakeState::default() };
        Self { part_bytes, state: Mutex::new(state), ..Self::default() }
    }

    /// The number of parts of a body of this length.
    pub(crate) fn parts_of(&self, length: u64) -> u64 {
        length.div_ceil(self.part_bytes)
    }

    // Methods for the writer.

    pub(crate) fn push(&self, data: &[u8]) {
        let piece = Bytes::copy_from_slice(data);
        let mut state = self.state.lock();
        state.len += piece.len() as u64;
        state.tail.push_back(piece);
        drop(state);
        self.more.notify_waiters();
    }

    /// Bytes that have arrived.
    pub(crate) fn len(&self) -> u64 {
        self.state.lock().len
    }

    /// Bytes in memory, behind the parts.
    pub(crate) fn held(&self) -> u64 {
        let state = self.state.lock();
        state.len - state.begins
    }

    /// The pieces of the next part; `None` if it is incomplete. The last part may be short.
    pub(crate) fn part(&self, is_last: bool) -> Option<Vec<Bytes>> {
        let state = self.state.lock();
        let held = state.len - state.begins;
        if held == 0 || held < state.part_bytes && !is_last {
            return None;
        }
        let mut left = usize::try_from(held.min(state.part_bytes)).ok()?;
        let mut pieces = Vec::new();
        for piece in &state.tail {
            let piece = piece.slice(..piece.len().min(left));
            left -= piece.len();
            pieces.push(piece);
            if left == 0 {
                break;
            }
        }
        Some(pieces)
    }

    /// Notes that the disk has the next part.
    pub(crate) fn take(&self, part: PartRecord, bytes: u64) {
        let mut state = self.state.lock();
        state.parts.push(part);
        state.let_go(bytes);
    }

    /// Notes that the disk takes no more of the body.
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock();
        state.passes = true;
        state.advance();
    }

    /// The position of the last reader; `None` without readers.
    pub(crate) fn last(&self) -> Option<u64> {
        self.state.lock().last()
    }

    /// Ends the complete body; `kept` if it is one record now.
    pub(crate) fn end(&self, kept: bool) {
        let mut state = self.state.lock();
        state.phase = if kept { IntakePhase::Kept } else { IntakePhase::Come };
        if kept {
            (state.parts, state.tail) = Default::default();
        }
        drop(state);
        self.more.notify_waiters();
    }

    /// Breaks off: no more will arrive.
    pub(crate) fn break_off(&self) {
        self.state.lock().phase = IntakePhase::Broken;
        self.more.notify_waiters();
    }

    // Methods for readers.

    /// Registers a reader at the beginning and returns its number.
    pub(crate) fn enter(&self) -> u64 {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.readers.push((number, 0));
        number
    }

    pub(crate) fn leave(&self, number: u64) {
        let mut state = self.state.lock();
        state.readers.retain(|(other, _)| *other != number);
        state.advance();
        drop(state);
        self.moved.notify_one();
    }

    /// The source of the next bytes for the reader `number` at `at`.
    pub(crate) fn next(&self, number: u64, at: u64) -> IntakeProgress {
        let mut state = self.state.lock();
        if let Some(reader) = state.readers.iter_mut().find(|(other, _)| *other == number) {
            reader.1 = at;
        }
        state.advance();
        let next = state.look(at);
        let next =
            next.unwrap_or_else(|| IntakeProgress::Wait(Arc::clone(&self.more).notified_owned()));
        drop(state);
        self.moved.notify_one();
        next
    }

    /// Returns true if the body is one record or has broken off: nothing is read here any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state.lock().phase, IntakePhase::Kept | IntakePhase::Broken)
    }
}

impl IntakeState {
    fn last(&self) -> Option<u64> {
        self.readers.iter().map(|(_, at)| *at).min()
    }

    /// Drops bytes from memory.
    fn let_go(&mut self, mut bytes: u64) {
        self.begins += bytes;
        while bytes > 0
            && let Some(piece) = self.tail.front_mut()
        {
            let len = piece.len() as u64;
            if len > bytes {
                _ = piece.split_to(bytes as usize);
                return;
            }
            bytes -= len;
            self.tail.pop_front();
        }
    }

    /// Drops the bytes of a passing body that all readers have taken.
    fn advance(&mut self) {
        if self.passes
            && let Some(last) = self.last()
            && last > self.begins
        {
            self.let_go(last.min(self.len) - self.begins);
        }
    }

    /// `None` if the reader must wait.
    fn look(&self, at: u64) -> Option<IntakeProgress> {
        if self.phase == IntakePhase::Kept {
            return Some(IntakeProgress::Kept);
        }
        if at < self.begins {
            // The parts went with the body.
            if self.phase == IntakePhase::Broken {
                return Some(IntakeProgress::Broken);
            }
            // Bytes that passed and were dropped are behind the parts.
            let index = usize::try_from(at / self.part_bytes).ok()?;
            let part = self.parts.get(index).copied();
            return Some(part.map_or(IntakeProgress::Broken, |it| {
                IntakeProgress::Part(it, at % self.part_bytes)
            }));
        }
        if at < self.len {
            let mut skipped = at - self.begins;
            let mut pieces = Vec::new();
            for piece in &self.tail {
                let len = piece.len() as u64;
                if skipped < len {
                    pieces.push(piece.slice(skipped as usize..));
                }
                skipped = skipped.saturating_sub(len);
            }
            return Some(IntakeProgress::Bytes(pieces));
        }
        match self.phase {
            IntakePhase::Coming => None,
            _ => Some(IntakeProgress::Broken),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes at `at` for a reader; `None` if it must wait.
    fn read(coming: &Intake, number: u64, at: u64) -> Option<Vec<u8>> {
        match coming.next(number, at) {
            IntakeProgress::Bytes(pieces) => Some(pieces.concat()),
            IntakeProgress::Wait(_) => None,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_comes_is_cut_into_parts_and_read_from_anywhere() {
        let coming = Intake::new(4);
        let number = coming.enter();
        assert_eq!(read(&coming, number, 0), None);
        coming.push(b"abc");
        assert!(coming.part(false).is_none());
        coming.push(b"defghi");
        assert_eq!(coming.part(false).expect("four bytes").concat(), b"abcd");
        assert_eq!(read(&coming, number, 2).expect("bytes"), b"cdefghi");
        assert_eq!((coming.held(), coming.len()), (9, 9));
        assert_eq!(read(&coming, number, 9), None);
        coming.push(b"j");
        assert_eq!(coming.part(true).expect("four bytes").concat(), b"abcd", "not the last yet");
        coming.end(true);
        assert!(matches!(coming.next(number, 0), IntakeProgress::Kept) && coming.is_over());
    }

    #[test]
    fn what_passes_goes_when_the_last_reader_has_it() {
        let coming = Intake::new(4);
        let (first, last) = (coming.enter(), coming.enter());
        coming.push(b"abcdef");
        assert_eq!(read(&coming, first, 6), None);
        coming.pass();
        assert_eq!(coming.held(), 6, "one is at the beginning");
        assert_eq!(read(&coming, last, 4).expect("bytes"), b"ef");
        assert_eq!((coming.held(), coming.last()), (2, Some(4)));
        assert!(matches!(coming.next(last, 3), IntakeProgress::Broken), "it is gone");
        coming.leave(last);
        assert_eq!((coming.held(), coming.last()), (0, Some(6)));
        coming.break_off();
        assert!(matches!(coming.next(first, 6), IntakeProgress::Broken), "there is no more");
        assert!(matches!(coming.next(first, 1), IntakeProgress::Broken), "nor what there was");
    }
}
