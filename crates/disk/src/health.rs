//! The health of a volume: counts failures, and pauses a volume or takes it out. A volume that was
//! taken out must never come back with records from before.

use crate::owner::{Reason, VolumeCondition};
use crate::stats::add;
use crate::sync::Ordering;
use crate::vfs::{Vfs, replace};
use crate::volume::{IN, OUT, PAUSING, Volume, often};

/// The file with the reason why a volume was taken out.
const MARKER: &str = "out";

/// The failure of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationFailure {
    /// The system reported an error.
    Error,
    /// The disk is full.
    Full,
    /// The operation was late.
    Late,
    /// The journal cannot be written.
    Journal,
}

impl Volume {
    /// Counts a failed operation.
    pub(crate) fn trouble(&self, trouble: OperationFailure) {
        let config = &self.shared.config;
        let now_ms = self.shared.now().mono_ms;
        let until_ms = now_ms + config.retry_ms;
        let health = &self.health;
        match trouble {
            OperationFailure::Error => {
                let errors = &mut health.notes.lock().errors;
                if !often(errors, now_ms, config.errors_ms, config.errors_max) {
                    return;
                }
            }
            OperationFailure::Late => {
                let lates = &mut health.notes.lock().lates;
                if !often(lates, now_ms, config.late_ms, config.late_max) {
                    return;
                }
            }
            OperationFailure::Full | OperationFailure::Journal => {}
        }
        match trouble {
            OperationFailure::Error => self.take_out(Reason::Errors, until_ms),
            OperationFailure::Journal => self.take_out(Reason::Journal, until_ms),
            OperationFailure::Full => self.pause(Reason::Full, until_ms),
            OperationFailure::Late => self.pause(Reason::Slow, until_ms),
        }
    }

    /// Takes the volume out after a panic of a writing thread, whose state is unknown.
    pub(crate) fn panicked(&self) {
        self.take_out(Reason::Errors, self.shared.now().mono_ms + self.shared.config.retry_ms);
    }

    fn pause(&self, reason: Reason, until_ms: u64) {
        if self.health.worsen(PAUSING, reason, until_ms) {
            add(&self.tallies.pauses, 1);
            self.changed();
        }
    }

    /// Takes the volume out. Its records are never found again, because it misses all invalidations
    /// from now on.
    pub(crate) fn take_out(&self, reason: Reason, until_ms: u64) {
        if !self.health.worsen(OUT, reason, until_ms) {
            return;
        }
        add(&self.tallies.outs, 1);
        self.journal.fail("the volume is out of use");
        let number = self.shared.order.now();
        self.shared.taken_out.lock().push((self.superblock.id, number));
        self.changed();
    }

    /// Writes the marker of a volume that is out, if it is missing. This may take as long as the
    /// failing disk does.
    pub(crate) fn write_marker(&self) {
        let VolumeCondition::Out(reason) = self.health.condition() else { return };
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
        // If the disk rejects the marker, the other volumes remember it. Without others, old
        // records might be found, so the write is repeated until the disk has space.
        let void = mark(&*self.vfs, reason).is_ok();
        let next_ms = if void { u64::MAX } else { now_ms + self.shared.config.commit_ms };
        self.health.mark_ms.store(next_ms, Ordering::Release);
        self.health.void.store(void, Ordering::Release);
    }

    fn changed(&self) {
        self.shared.owner.changed(usize::from(self.number), self.health.condition());
    }

    /// Ends a pause that is over. Returns true if the volume is out and is to be tried again.
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

/// The reason why the volume was taken out; `None` if it is in use.
///
/// # Errors
/// Those of the system.
pub(crate) fn marked(vfs: &dyn Vfs) -> std::io::Result<Option<Reason>> {
    let Some(word) = crate::vfs::read_file(vfs, MARKER, 64)? else { return Ok(None) };
    let reasons = [Reason::Full, Reason::Slow, Reason::Journal];
    let known = reasons.into_iter().find(|reason| reason.word().as_bytes() == word);
    Ok(Some(known.unwrap_or(Reason::Errors)))
}

/// Removes the marker.
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
