//! The way up from the disk: a response is read, checked, and put where a lookup finds it.

use std::rc::Rc;
use std::sync::Arc;

use base::Counter;
use cache::{ExternalBody as _, LowerTierBody, Object, Record, SignatureFunction};
use disk::{RecordAddress, RecordData, RecordRequest};
use message::store::Permit;

use crate::state::core::CoreState;
use crate::state::slices::{SliceFetcher, persistence};
use crate::state::tier::DiskResponse;
use crate::state::tier::{BodyPrefix, DiskBody, Lead, Store};
use crate::verdict::RevalidationJudge;

/// The longest body that comes into memory; a longer one is read from where it lies.
const WHOLE_BYTES: u64 = 4 << 20;
/// The longest part of a body that a core reads itself, where it is in the system's memory.
const NOW_BYTES: u64 = 256 * 1024;
/// Bytes that are read first. A record that is no longer comes as a whole.
const OPENING_BYTES: u64 = 128 * 1024;

/// The longest body that is copied out of what was read, head and checksums included.
const COPIED_BYTES: u64 = 64 * 1024;

/// A response that was found on the disk.
struct Candidate {
    permit: Permit,
    place: RecordAddress,
    kept: DiskResponse,
    answer: RecordData,
}

impl Store {
    /// Reads the opening of a record: from the system's memory at once, or from the disk.
    async fn open(&self, place: RecordAddress, hash: u64) -> Option<RecordData> {
        let ask = RecordRequest::opening(OPENING_BYTES);
        if let Some(answer) = self.disk.read_now(place, hash, &ask) {
            return Some(answer);
        }
        self.ask(place, hash, ask).await.ok()?.ok()
    }

    /// Reads a record as a whole.
    async fn read(&self, place: RecordAddress, hash: u64, length: u64) -> Option<RecordData> {
        let ask = RecordRequest::beginning(WHOLE_BYTES);
        let now = if length <= NOW_BYTES { self.disk.read_now(place, hash, &ask) } else { None };
        let answer = match now {
            Some(answer) => answer,
            None => self.ask(place, hash, ask).await.ok()?.ok()?,
        };
        is_whole(&answer).then_some(answer)
    }
}

/// Returns true if the whole body has come.
fn is_whole(answer: &RecordData) -> bool {
    answer.size() == answer.length
}

/// A lead while the disk is read. Whoever waits looks again if the client leaves meanwhile.
struct LeadGuard(Option<Lead>);

impl Drop for LeadGuard {
    fn drop(&mut self) {
        if let Some(lead) = self.0.take() {
            lead.refuse(None);
        }
    }
}

/// Brings up what the disk has for the request whose signatures `variant` computes. The next lookup
/// finds it then, unless something has happened to it meanwhile. What is asked for too seldom for
/// memory stays where it is, and is returned.
///
/// # Errors
/// The fetch goes on: the disk has nothing for the request, or cannot be read in time.
pub(crate) async fn raise(
    core: &Rc<CoreState>,
    mut lead: Lead,
    variant: &mut SignatureFunction<'_>,
    again: RevalidationJudge<'_>,
) -> Result<Option<Arc<Object>>, Lead> {
    let cache = &core.shared.cache;
    let Some(store) = cache.lower().store.get() else { return Err(lead) };
    let (hash, places) = (lead.hash(), lead.cold().to_vec());
    let mut found = Vec::new();
    let mut reading = LeadGuard(Some(lead));
    for place in places {
        if let Some(answer) = store.open(place, hash).await {
            found.push((place, answer));
        }
    }
    lead = match reading.0.take() {
        Some(lead) => lead,
        None => return Ok(None),
    };
    let forget = |place| {
        if cache.drop_cold(hash, place) {
            store.disk.forget(place);
        }
    };
    let mut best: Option<Candidate> = None;
    for (place, answer) in found {
        let Some(kept) = store.decode(&answer, core.now()) else {
            // Of another version of this program.
            forget(place);
            continue;
        };
        if kept.record.key() != lead.key() || !kept.record.matches(variant) {
            lead.spare(place);
            continue;
        }
        let Ok(permit) = again.judge(&kept.record, core.now()) else {
            // Stored by rules that have changed since.
            forget(place);
            continue;
        };
        // After a crash there may be an older one beside it.
        if best.as_ref().is_none_or(|best| best.kept.record.born_ms() < kept.record.born_ms()) {
            best = Some(Candidate { permit, place, kept, answer });
        }
    }
    let Some(best) = best else {
        core.counters.inc(Counter::DiskMisses);
        return Err(lead);
    };
    let raised = give(core, store, lead, best).await;
    core.counters.inc(if raised.is_ok() { Counter::DiskHits } else { Counter::DiskMisses });
    raised
}

/// Lends the response, or puts it into memory.
async fn give(
    core: &Rc<CoreState>,
    store: &Store,
    lead: Lead,
    found: Candidate,
) -> Result<Option<Arc<Object>>, Lead> {
    let is_large = found.kept.set.is_some() || found.answer.length > WHOLE_BYTES;
    if is_large && !lead.is_detached() {
        return put_head(core, lead, found).map(|()| None);
    }
    let (record, now_ms) = (&found.kept.record, core.now().mono_ms);
    // Without trust it is to be confirmed.
    let is_trusted = !core.shared.door.trust.wants_validation(record.fresh_until_ms(), now_ms);
    if is_trusted
        && !is_large
        && may_lend(record, is_whole(&found.answer), now_ms)
        && !lead.should_promote()
    {
        return lend(core, lead, found);
    }
    if lead.is_detached() {
        // It would not be stored.
        return Err(lead);
    }
    if !is_whole(&found.answer) {
        let (hash, length) = (lead.hash(), found.answer.length);
        let mut reading = LeadGuard(Some(lead));
        let answer = store.read(found.place, hash, length).await;
        let Some(lead) = reading.0.take() else { return Ok(None) };
        // It may have moved meanwhile, and then it is another record's place.
        return match answer.filter(|answer| answer.head == found.answer.head) {
            Some(answer) => put(lead, Candidate { answer, ..found }).map(|()| None),
            None => Err(lead),
        };
    }
    put(lead, found).map(|()| None)
}

/// Returns true if the response answers as it is, from where it lies. One that is to be confirmed
/// must be in the index for that; so must one that has other forms, unless its body `is_whole`.
pub(super) fn may_lend(record: &Record, is_whole: bool, now_ms: u64) -> bool {
    let flags = record.flags();
    record.is_fresh(now_ms) && !flags.must_validate && (is_whole || !flags.may_have_forms())
}

/// Lends the response.
fn lend(core: &CoreState, lead: Lead, found: Candidate) -> Result<Option<Arc<Object>>, Lead> {
    let Candidate { permit, place, kept, answer } = found;
    let DiskResponse { record, plain_length, trailers, .. } = kept;
    let body = match is_whole(&answer) {
        true => LowerTierBody::Whole(answer.body),
        false => {
            let (length, opening) = (answer.length, BodyPrefix::of(answer));
            LowerTierBody::External(DiskBody::at(
                &core.shared.cache,
                lead.hash(),
                place,
                length,
                opening,
            ))
        }
    };
    let lent = lead.serve_from_lower(permit, place, record, body, trailers)?;
    core.counters.add(Counter::DiskLent, u64::from(lent.is_some()));
    if let Some((object, length)) = lent.as_ref().zip(plain_length) {
        object.note_plain_length(length);
    }
    Ok(lent)
}

/// Puts the head of the response into the index, over a body that stays where it is.
fn put_head(core: &Rc<CoreState>, lead: Lead, found: Candidate) -> Result<(), Lead> {
    let cache = &core.shared.cache;
    let Candidate { permit, place, kept, answer } = found;
    let DiskResponse { record, trailers, set, .. } = kept;
    if let Some(kept) = set {
        let life = cache.lower().sets.lock().get(&place).cloned();
        let orders = SliceFetcher::orders(core);
        let Some(set) = persistence::restore_set(core, &permit, &kept, lead.hash(), life, orders)
        else {
            return Err(lead);
        };
        let life = set.life();
        let object = lead.raise_head(permit, place, record, Arc::clone(&set) as _, None)?;
        set.stands_for(&object);
        if object.is_live()
            && let Some(life) = life
        {
            cache.lower().sets.lock().insert(place, life);
        }
        return Ok(());
    }
    let opening = BodyPrefix::without_bytes(&answer);
    let body = DiskBody::at(cache, lead.hash(), place, answer.length, opening);
    let object = lead.raise_head(permit, place, record, Arc::clone(&body) as _, trailers)?;
    body.stands_for(&object);
    Ok(())
}

/// Puts the response, whose whole body has been read, into the index.
fn put(lead: Lead, found: Candidate) -> Result<(), Lead> {
    let Candidate { permit, place, kept, answer } = found;
    let DiskResponse { record, plain_length, trailers, .. } = kept;
    let mut filling = lead.refill(permit, place, record, answer.length)?;
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
    if filling.finish_with(trailers)
        && let Some(length) = plain_length
    {
        object.note_plain_length(length);
    }
    Ok(())
}
