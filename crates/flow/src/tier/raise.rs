//! The way up from the disk: a response is read, checked, and put where a lookup finds it.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Counter;
use cache::Select;
use disk::{Answer, Ask, Place};
use tokio::sync::oneshot;

use super::body::OnDisk;
use super::record::Raised;
use super::{Lead, Store};
use crate::core::Core;
use crate::slices;

/// The longest body that comes into memory; a longer one is read from where it lies.
const WHOLE_BYTES: u64 = 4 << 20;
/// The longest part of a body that a core reads itself, where it is in the system's memory.
const NOW_BYTES: u64 = 256 * 1024;

/// The longest body that is copied out of what was read, head and checksums included.
const COPIED_BYTES: u64 = 64 * 1024;

/// A response that was found on the disk.
struct Candidate {
    place: Place,
    kept: Raised,
    answer: Answer,
}

impl Store {
    /// Asks the disk, which answers in time or not at all. Where only bytes of a body are asked for
    /// nobody else could be asked instead, and there is more time.
    pub(super) fn ask(
        &self,
        place: Place,
        hash: u64,
        ask: Ask,
    ) -> oneshot::Receiver<Result<Answer, disk::Error>> {
        let (sender, asked) = oneshot::channel();
        let within_ms = if ask.head { &self.read_ms } else { &self.next_ms };
        let deadline_ms = rt::now().mono_ms.saturating_add(within_ms.load(Ordering::Relaxed));
        // Whoever does not wait any more is told nothing.
        let done = Box::new(move |answer| _ = sender.send(answer));
        self.disk.read(place, hash, ask, deadline_ms, done);
        asked
    }

    /// Reads a record: from the system's memory at once, or from the disk.
    async fn read(&self, place: Place, hash: u64) -> Option<Answer> {
        let whole = |answer: &Answer, most: u64| {
            let come: u64 = answer.body.iter().map(|piece| piece.len() as u64).sum();
            come == answer.length || answer.length > most
        };
        let now = Ask::beginning(NOW_BYTES);
        if let Some(answer) = self.disk.read_now(place, hash, &now)
            && whole(&answer, WHOLE_BYTES)
        {
            return Some(answer);
        }
        let ask = Ask::beginning(WHOLE_BYTES);
        let answer = self.ask(place, hash, ask).await.ok()?.ok()?;
        whole(&answer, WHOLE_BYTES).then_some(answer)
    }
}

/// A lead while the disk is read. Whoever waits looks again if the client leaves meanwhile.
struct LeadInHand(Option<Lead>);

impl Drop for LeadInHand {
    fn drop(&mut self) {
        if let Some(lead) = self.0.take() {
            lead.refuse(None);
        }
    }
}

/// Brings up what the disk has for the request whose signatures `variant` computes. The next lookup
/// finds it then, unless something has happened to it meanwhile.
///
/// # Errors
/// The fetch goes on: the disk has nothing for the request, or cannot be read in time.
pub(crate) async fn raise(
    core: &Rc<Core>,
    mut lead: Lead,
    variant: &mut Select<'_>,
) -> Result<(), Lead> {
    let cache = &core.shared.cache;
    let Some(store) = cache.lower().store.get() else { return Err(lead) };
    let (hash, places) = (lead.hash(), lead.cold().to_vec());
    let mut found = Vec::new();
    let mut reading = LeadInHand(Some(lead));
    for place in places {
        if let Some(answer) = store.read(place, hash).await {
            found.push((place, answer));
        }
    }
    lead = match reading.0.take() {
        Some(lead) => lead,
        None => return Ok(()),
    };
    let mut best: Option<Candidate> = None;
    for (place, answer) in found {
        let Some(kept) = store.decode(&answer, core.now()) else {
            // Of another version of this program.
            if cache.drop_cold(hash, place) {
                store.disk.forget(place);
            }
            continue;
        };
        if kept.record.key() != lead.key() || !kept.record.matches(variant) {
            lead.spare(place);
            continue;
        }
        // After a crash there may be an older one beside it.
        if best.as_ref().is_none_or(|best| best.kept.record.born_ms() < kept.record.born_ms()) {
            best = Some(Candidate { place, kept, answer });
        }
    }
    let Some(best) = best else {
        core.counters.inc(Counter::DiskMisses);
        return Err(lead);
    };
    let raised = put(core, lead, best);
    core.counters.inc(if raised.is_ok() { Counter::DiskHits } else { Counter::DiskMisses });
    raised
}

/// Puts the response into the index.
fn put(core: &Rc<Core>, lead: Lead, found: Candidate) -> Result<(), Lead> {
    let cache = &core.shared.cache;
    let Candidate { place, kept: Raised { record, plain_length, set }, answer } = found;
    if let Some(kept) = set {
        let life = cache.lower().sets.lock().get(&place).cloned();
        let Some(set) = slices::kept_again(core, &kept, lead.hash(), life) else {
            return Err(lead);
        };
        let life = set.life();
        let object = lead.raise_head(place, record, Arc::clone(&set) as _)?;
        set.stands_for(&object);
        if object.is_live() {
            cache.lower().sets.lock().insert(place, life);
        }
        return Ok(());
    }
    if answer.length > WHOLE_BYTES {
        let body = OnDisk::at(cache, (lead.hash(), place), answer.length);
        let object = lead.raise_head(place, record, Arc::clone(&body) as _)?;
        body.stands_for(&object);
        return Ok(());
    }
    let mut filling = lead.refill(place, record, answer.length)?;
    if filling.is_window() {
        // There is no memory for it; an origin's response would pass through.
        filling.abort();
        return Ok(());
    }
    for piece in &answer.body {
        _ = match answer.length > COPIED_BYTES {
            true => filling.push_chunk(piece),
            false => filling.push(piece),
        };
    }
    let object = Arc::clone(filling.object());
    if filling.finish()
        && let Some(length) = plain_length
    {
        object.note_plain_length(length);
    }
    Ok(())
}
