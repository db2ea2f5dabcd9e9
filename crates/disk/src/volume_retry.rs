//! Volume retry: volumes that pause, are out or could not be opened are tried again. A volume that
//! was out must begin empty, because it may have missed invalidations.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Error;
use crate::journal::StoreBaseline;
use crate::opening::{Purpose, look, remove_all};
use crate::owner::VolumeCondition;
use crate::store::StoreCore;
use crate::sync::Ordering;
use crate::volume::Volume;

impl StoreCore {
    /// Checks volumes that pause or are out, and late reads.
    pub(crate) fn tick(self: &Arc<Self>) {
        self.note_taken_out();
        for (number, slot) in self.slots.iter().enumerate() {
            let Some(volume) = slot.volume.read().clone() else {
                self.try_again(number);
                continue;
            };
            volume.expire_reads();
            if volume.recover() {
                self.beside(number, move |core| core.revive(number, &volume));
            }
        }
    }

    /// Tries a volume again that was taken out. It begins empty.
    fn revive(&self, number: usize, old: &Arc<Volume>) {
        let settings = &self.shared.config.volumes[number];
        let mut all = StoreBaseline { outs: BTreeMap::new(), ..self.beginning.clone() };
        // A record put before an invalidation may be written after it, so its journal needs the
        // invalidation, even if no other volume has it.
        all.add(&old.journal.keep());
        // A disk that hangs is left alone.
        let Some(_writer) = old.writer.try_lock() else { return };
        old.retired.store(true, Ordering::Release);
        old.end();
        let valid_from = self.shared.order.now();
        let begun = look(settings, old.lock.lock().clone()).and_then(|found| {
            found.start(number as u8, &all, Purpose::Empty, valid_from, &self.shared)
        });
        let Ok(volume) = begun else { return };
        let volume = Arc::new(volume);
        old.tallies.add_to(&mut self.past.lock());
        self.take_in(number, &volume);
    }

    /// Puts an empty volume in use.
    fn take_in(&self, number: usize, volume: &Arc<Volume>) {
        *self.slots[number].volume.write() = Some(Arc::clone(volume));
        self.serve_volume(volume);
        self.find_on(volume);
        self.shared.owner.changed(number, VolumeCondition::In);
    }

    /// Tries a volume again that could not be opened, if it is time.
    fn try_again(self: &Arc<Self>, number: usize) {
        if self.shared.now().mono_ms < self.slots[number].absence.lock().until_ms {
            return;
        }
        self.beside(number, move |core| {
            let opened = core.open_anew(number);
            let mut absence = core.slots[number].absence.lock();
            absence.until_ms = core.shared.now().mono_ms + core.shared.config.retry_ms;
            match opened {
                Ok(volume) if !core.threads.is_ending() => {
                    drop(absence);
                    core.take_in(number, &Arc::new(volume));
                }
                Ok(_) => {}
                Err(why) => absence.why = why.to_string(),
            }
        });
    }

    /// Runs work on a volume on a thread of its own, because its disk may hang, unless such work is
    /// under way.
    fn beside(self: &Arc<Self>, number: usize, work: impl Fn(&Arc<Self>) + Send + 'static) {
        if std::mem::replace(&mut self.slots[number].absence.lock().is_tried, true) {
            return;
        }
        let core = Arc::clone(self);
        let work = move || {
            work(&core);
            core.slots[number].absence.lock().is_tried = false;
        };
        if self.shared.config.threads {
            self.threads.spawn("disk-open", work, || ());
        } else {
            work();
        }
    }

    /// Creates a volume in a directory that could not be used at the start. Its former records may
    /// be of later sessions and have missed invalidations, so they are removed.
    fn open_anew(&self, number: usize) -> Result<Volume, Error> {
        let settings = &self.shared.config.volumes[number];
        let lock = look(settings, None)?.lock;
        remove_all(&*settings.vfs)?;
        let mut all = StoreBaseline { outs: BTreeMap::new(), ..self.beginning.clone() };
        self.volumes().for_each(|volume| all.add(&volume.journal.keep()));
        let valid_from = self.shared.order.now();
        let found = look(settings, Some(Arc::clone(&lock)))?;
        let begun = found.start(number as u8, &all, Purpose::Empty, valid_from, &self.shared);
        begun.inspect_err(|_| _ = remove_all(&*settings.vfs))
    }
}
