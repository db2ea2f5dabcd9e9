//! The health of a volume: how many failures it takes until the store goes on without it.

use std::collections::VecDeque;

use crate::owner::{Condition, Reason};
use crate::read::Ask;
use crate::stats::add;
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Mutex, Ordering};
use crate::vfs::{Vfs, replace};
use crate::volume::Volume;

/// The file that remembers why a volume was taken out.
const MARKER: &str = "out";

/// A failure of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The system failed it.
    Error,
    /// There is no room.
    Full,
    /// It came too late.
    Late,
    /// The journal cannot be written.
    Journal,
}

const IN: u8 = 0;
const PAUSING: u8 = 1;
const OUT: u8 = 2;

/// The health of one volume.
#[derive(Debug, Default)]
pub(crate) struct Health {
    state: AtomicU8,
    /// When its marker may be tried again, of the monotonic clock; `u64::MAX` once it is there.
    mark_ms: AtomicU64,
    /// Its marker is there: nothing that it has will ever be found.
    void: AtomicBool,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// When operations failed, of the monotonic clock.
    errors: VecDeque<u64>,
    lates: VecDeque<u64>,
    until_ms: u64,
    reason: Option<Reason>,
}

/// Notes an event at `now_ms`; true if there were `most` within `within_ms`.
fn often(events: &mut VecDeque<u64>, now_ms: u64, within_ms: u64, most: u32) -> bool {
    events.push_back(now_ms);
    while events.front().is_some_and(|first| now_ms.saturating_sub(*first) > within_ms) {
        events.pop_front();
    }
    events.len() >= most as usize
}

impl Health {
    pub(crate) fn is_in(&self) -> bool {
        self.state.load(Ordering::Acquire) == IN
    }

    /// True if the volume is read for this: one that pauses goes on with bodies that have begun.
    pub(crate) fn serves(&self, ask: &Ask) -> bool {
        match self.state.load(Ordering::Acquire) {
            IN => true,
            PAUSING => !ask.head,
            _ => false,
        }
    }

    pub(crate) fn is_out(&self) -> bool {
        self.state.load(Ordering::Acquire) == OUT
    }

    /// True if nothing that the volume has will ever be found.
    pub(crate) fn is_void(&self) -> bool {
        self.is_out() && self.void.load(Ordering::Acquire)
    }

    pub(crate) fn condition(&self) -> Condition {
        let reason = self.notes.lock().reason.unwrap_or(Reason::Errors);
        match self.state.load(Ordering::Acquire) {
            IN => Condition::In,
            PAUSING => Condition::Pausing(reason),
            _ => Condition::Out(reason),
        }
    }

    /// Enters a worse state; false if it is in that, or in a worse one, already.
    fn worsen(&self, state: u8, reason: Reason, until_ms: u64) -> bool {
        let mut notes = self.notes.lock();
        if self.state.load(Ordering::Acquire) >= state {
            return false;
        }
        self.state.store(state, Ordering::Release);
        notes.reason = Some(reason);
        notes.until_ms = until_ms;
        true
    }
}

impl Volume {
    /// An operation has failed.
    pub(crate) fn trouble(&self, trouble: Trouble) {
        let config = &self.shared.config;
        let now_ms = self.shared.now().mono_ms;
        let until_ms = now_ms + config.retry_ms;
        let health = &self.health;
        match trouble {
            Trouble::Error => {
                let errors = &mut health.notes.lock().errors;
                if !often(errors, now_ms, config.errors_ms, config.errors_max) {
                    return;
                }
            }
            Trouble::Late => {
                let lates = &mut health.notes.lock().lates;
                if !often(lates, now_ms, config.late_ms, config.late_max) {
                    return;
                }
            }
            Trouble::Full | Trouble::Journal => {}
        }
        match trouble {
            Trouble::Error => self.fall(Reason::Errors, until_ms),
            Trouble::Journal => self.fall(Reason::Journal, until_ms),
            Trouble::Full => self.pause(Reason::Full, until_ms),
            Trouble::Late => self.pause(Reason::Slow, until_ms),
        }
    }

    /// A thread that writes has panicked: what it was at is not known.
    pub(crate) fn panicked(&self) {
        self.fall(Reason::Errors, self.shared.now().mono_ms + self.shared.config.retry_ms);
    }

    fn pause(&self, reason: Reason, until_ms: u64) {
        if self.health.worsen(PAUSING, reason, until_ms) {
            add(&self.tallies.pauses, 1);
            self.changed();
        }
    }

    /// The volume is used no more. What it would miss from now on is never found on it.
    pub(crate) fn fall(&self, reason: Reason, until_ms: u64) {
        if !self.health.worsen(OUT, reason, until_ms) {
            return;
        }
        add(&self.tallies.outs, 1);
        self.journal.fail("the volume is out of use");
        let number = self.shared.order.now();
        self.shared.fallen.lock().push((self.superblock.id, number));
        self.changed();
    }

    /// Writes down that the volume is out, if it is and nobody has. It may take as long as a disk
    /// does that is out for a reason.
    pub(crate) fn write_marker(&self) {
        let Condition::Out(reason) = self.health.condition() else { return };
        let _writer = self.writer.lock();
        if self.retired.load(Ordering::Acquire) {
            return;
        }
        let now_ms = self.shared.now().mono_ms;
        if now_ms < self.health.mark_ms.load(Ordering::Acquire)
            || self.journal.generation().is_none()
        {
            return;
        }
        // A disk that takes no marker is remembered by the others. If there are none, what it has
        // may be found as it was: so it is tried until the disk has room again.
        let void = mark(&*self.vfs, reason).is_ok();
        let next_ms = if void { u64::MAX } else { now_ms + self.shared.config.commit_ms };
        self.health.mark_ms.store(next_ms, Ordering::Release);
        self.health.void.store(void, Ordering::Release);
    }

    fn changed(&self) {
        self.shared.owner.changed(usize::from(self.number), self.health.condition());
    }

    /// Ends a pause when it is over; true if the volume is out and is to be tried again.
    pub(crate) fn recover(&self) -> bool {
        let now_ms = self.shared.now().mono_ms;
        let mut notes = self.health.notes.lock();
        if now_ms < notes.until_ms {
            return false;
        }
        match self.health.state.load(Ordering::Acquire) {
            PAUSING => {
                notes.errors.clear();
                notes.lates.clear();
                self.health.state.store(IN, Ordering::Release);
                drop(notes);
                self.changed();
                false
            }
            OUT => {
                notes.until_ms = now_ms + self.shared.config.retry_ms;
                true
            }
            _ => false,
        }
    }
}

fn mark(vfs: &dyn Vfs, reason: Reason) -> std::io::Result<()> {
    replace(vfs, MARKER, reason.word().as_bytes())
}

/// The reason for which a volume was taken out and not put back; `None` if it was not.
///
/// # Errors
/// Those of the system.
pub(crate) fn marked(vfs: &dyn Vfs) -> std::io::Result<Option<Reason>> {
    let Some(word) = crate::vfs::read_file(vfs, MARKER, 64)? else { return Ok(None) };
    let reasons = [Reason::Full, Reason::Slow, Reason::Journal];
    let known = reasons.into_iter().find(|reason| reason.word().as_bytes() == word);
    Ok(Some(known.unwrap_or(Reason::Errors)))
}

/// Forgets that a volume was taken out.
///
/// # Errors
/// Those of the system.
pub(crate) fn unmark(vfs: &dyn Vfs) -> std::io::Result<()> {
    if marked(vfs)?.is_some() {
        vfs.remove(MARKER)?;
        vfs.sync_names()?;
    }
    Ok(())
}
