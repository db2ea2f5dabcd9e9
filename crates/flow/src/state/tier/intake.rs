//! A body on its way to the disk: the parts that the disk has taken, what has come behind them, and
//! who reads it. Kept, it grows without regard to its readers. If the disk takes no more of it, it
//! passes to those who read it, at the pace of the last of them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use disk::PartRecord;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The state of such a body.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    /// Bytes of a part.
    part_bytes: u64,
    state: Mutex<IntakeState>,
    /// More has come, or nothing more will.
    more: Arc<Notify>,
    /// A reader has gone on, or left.
    pub(crate) moved: Notify,
}

#[derive(Debug, Default)]
struct IntakeState {
    /// All but the last are equally long.
    parts: Vec<PartRecord>,
    part_bytes: u64,
    /// Bytes that have come behind them, and where that begins.
    tail: VecDeque<Bytes>,
    begins: u64,
    len: u64,
    phase: IntakePhase,
    /// The disk takes no more: what all readers have taken is let go.
    passes: bool,
    /// Numbers and places of those who read.
    readers: Vec<(u64, u64)>,
    next: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum IntakePhase {
    #[default]
    Coming,
    /// All has come, and is to be read here.
    Come,
    /// All has come, and the disk has it as one record.
    Kept,
    Broken,
}

/// Where a reader's next bytes are.
#[derive(Debug)]
pub(crate) enum IntakeProgress {
    Bytes(Vec<Bytes>),
    /// In this part, so far behind its beginning.
    Part(PartRecord, u64),
    /// They have not come.
    Wait(OwnedNotified),
    /// They are in the record.
    Kept,
    Broken,
}

impl Intake {
    pub(crate) fn new(part_bytes: u64) -> Self {
        let state = IntakeState { part_bytes, ..IntakeState::default() };
        Self { part_bytes, state: Mutex::new(state), ..Self::default() }
    }

    /// The number of parts of a body of so many bytes.
    pub(crate) fn parts_of(&self, length: u64) -> u64 {
        length.div_ceil(self.part_bytes)
    }

    // Its writer.

    pub(crate) fn push(&self, data: &[u8]) {
        let piece = Bytes::copy_from_slice(data);
        let mut state = self.state.lock();
        state.len += piece.len() as u64;
        state.tail.push_back(piece);
        drop(state);
        self.more.notify_waiters();
    }

    /// Bytes that have come.
    pub(crate) fn len(&self) -> u64 {
        self.state.lock().len
    }

    /// Bytes of it that are here and in no part.
    pub(crate) fn held(&self) -> u64 {
        let state = self.state.lock();
        state.len - state.begins
    }

    /// The pieces of the next part; `None` if it has not come whole. The last one may be short.
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

    /// The disk has taken the next part.
    pub(crate) fn take(&self, part: PartRecord, bytes: u64) {
        let mut state = self.state.lock();
        state.parts.push(part);
        state.let_go(bytes);
    }

    /// The disk takes no more of it.
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock();
        state.passes = true;
        state.advance();
    }

    /// The place of the last reader; `None` without one.
    pub(crate) fn last(&self) -> Option<u64> {
        self.state.lock().last()
    }

    /// All of it has come; `kept` says whether it is one record from now on.
    pub(crate) fn end(&self, kept: bool) {
        let mut state = self.state.lock();
        state.phase = if kept { IntakePhase::Kept } else { IntakePhase::Come };
        if kept {
            (state.parts, state.tail) = Default::default();
        }
        drop(state);
        self.more.notify_waiters();
    }

    /// No more will come.
    pub(crate) fn break_off(&self) {
        self.state.lock().phase = IntakePhase::Broken;
        self.more.notify_waiters();
    }

    // Its readers.

    /// Takes in a reader at the beginning; returns its number.
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

    /// Where the reader of this number, which has come to `at`, goes on.
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

    /// True if it is a record, or broke off: nothing is to be read here any more.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state.lock().phase, IntakePhase::Kept | IntakePhase::Broken)
    }
}

impl IntakeState {
    fn last(&self) -> Option<u64> {
        self.readers.iter().map(|(_, at)| *at).min()
    }

    /// Lets so many bytes go that are held.
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

    /// Lets go what passes, and all have taken.
    fn advance(&mut self) {
        if self.passes
            && let Some(last) = self.last()
            && last > self.begins
        {
            self.let_go(last.min(self.len) - self.begins);
        }
    }

    /// `None` if the reader has to wait.
    fn look(&self, at: u64) -> Option<IntakeProgress> {
        if self.phase == IntakePhase::Kept {
            return Some(IntakeProgress::Kept);
        }
        if at < self.begins {
            // With the body its parts went.
            if self.phase == IntakePhase::Broken {
                return Some(IntakeProgress::Broken);
            }
            // What passed and is gone lies behind the parts.
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

    /// The bytes at `at` for a reader; `None` if it has to wait.
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
