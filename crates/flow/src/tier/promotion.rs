//! Promotion from the disk: a record is read, judged, and stored where a lookup finds it.

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

/// The longest body that is promoted to memory; a longer one is read from the disk.
const WHOLE_BYTES: u64 = 4 << 20;
/// The longest read that a core does itself, if the page cache has the bytes.
const NOW_BYTES: u64 = 256 * 1024;
/// Bytes of the first read. A shorter record is read whole.
const OPENING_BYTES: u64 = 128 * 1024;

/// The longest body that is copied out of the read, head and checksums included.
const COPIED_BYTES: u64 = 64 * 1024;

/// A response found on the disk.
struct Candidate {
    permit: Permit,
    place: RecordAddress,
    kept: DiskResponse,
    answer: RecordData,
}

impl Store {
    /// Reads the beginning of a record, from the page cache at once or from the disk.
    async fn open(&self, place: RecordAddress, hash: u64) -> Option<RecordData> {
        let ask = RecordRequest::opening(OPENING_BYTES);
        if let Some(answer) = self.disk.read_now(place, hash, &ask) {
            return Some(answer);
        }
        self.ask(place, hash, ask).await.ok()?.ok()
    }

    /// Reads a whole record.
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

/// Returns true if the body is complete.
fn is_whole(answer: &RecordData) -> bool {
    answer.size() == answer.length
}

/// A lead during a read of the disk. On drop, its waiters look up again.
struct LeadGuard(Option<Lead>);

impl Drop for LeadGuard {
    fn drop(&mut self) {
        if let Some(lead) = self.0.take() {
            lead.refuse(None);
        }
    }
}

/// Promotes the disk's response for the request whose signatures `variant` computes, so that the
/// next lookup finds it unless it is invalidated meanwhile. A response that is requested too seldom
/// for memory stays on the disk and is returned.
///
/// # Errors
/// The lead, to fetch: the disk has no response, or not in time.
pub(crate) async fn raise(
    core: &Rc<CoreState>,
    mut lead: Lead,
    variant: &mut SignatureFunction<'_>,
    judge: RevalidationJudge<'_>,
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
            // Written by another version of this program.
            forget(place);
            continue;
        };
        if kept.record.key() != lead.key() || !kept.record.matches(variant) {
            lead.spare(place);
            continue;
        }
        let Ok(permit) = judge.judge(&kept.record, core.now()) else {
            // Stored by rules that have changed.
            forget(place);
            continue;
        };
        // After a crash an older record may lie beside it.
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

/// Lends the response or stores it in memory.
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
    // Without trust it must be revalidated.
    let is_trusted =
        !core.shared.invalidator.trust.wants_validation(record.fresh_until_ms(), now_ms);
    if is_trusted
        && !is_large
        && may_lend(record, is_whole(&found.answer), now_ms)
        && !lead.should_promote()
    {
        return lend(core, lead, found);
    }
    if lead.is_detached() {
        // The present rules forbid storing it.
        return Err(lead);
    }
    if !is_whole(&found.answer) {
        let (hash, length) = (lead.hash(), found.answer.length);
        let mut reading = LeadGuard(Some(lead));
        let answer = store.read(found.place, hash, length).await;
        let Some(lead) = reading.0.take() else { return Ok(None) };
        // If the record has moved, this address belongs to another.
        return match answer.filter(|answer| answer.head == found.answer.head) {
            Some(answer) => put(lead, Candidate { answer, ..found }).map(|()| None),
            None => Err(lead),
        };
    }
    put(lead, found).map(|()| None)
}

/// Returns true if the response may answer as read from the disk. One to be revalidated must be in
/// the index; so must one with further forms, unless its body `is_whole`.
pub(super) fn may_lend(record: &Record, is_whole: bool, now_ms: u64) -> bool {
    let flags = record.flags();
    record.is_fresh(now_ms) && !flags.must_validate && (is_whole || !flags.may_have_forms())
}

/// Lends the response without storing it in memory.
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

/// Stores the head of the response in the index, over a body that stays on the disk.
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

/// Stores the response with its whole body in the index.
fn put(lead: Lead, found: Candidate) -> Result<(), Lead> {
    let Candidate { permit, place, kept, answer } = found;
    let DiskResponse { record, plain_length, trailers, .. } = kept;
    let mut filling = lead.refill(permit, place, record, answer.length)?;
    if filling.is_window() {
        // Without memory for it, an origin's response would be passed.
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
