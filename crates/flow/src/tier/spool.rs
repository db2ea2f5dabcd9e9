//! Spool: writes a body too large for memory to the disk while it arrives, whatever the pace of its
//! readers, who read the written parts.
//!
//! It is for bodies of known length from origins without ranges. If the disk stops taking a body,
//! only its present readers get it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::{Account, Counter, HeldBytes, Limit};
use cache::{DemotionPolicy, ExternalBody, Object};
use disk::{PartOutcome, Stream};
use message::{Method, Status};
use origin::Exchange;

use crate::body_transfer::{TransferEnd, TransferOutcome};
use crate::fetch::{Fetch, InsertionPlan};
use crate::recode::BodyRecoding;
use crate::state::core::CoreState;
use crate::state::tier::{DiskBody, Intake, Store, Tier};

/// The divisor of memory above which a body is spooled. Nothing is refused there, so it is neither
/// a limit nor a setting: `object_bytes` bounds bodies elsewhere. Above an eighth, a few bodies
/// would evict everything else.
const MEMORY_PARTS: u64 = 8;
/// Bytes of one read.
const READ_BYTES: u64 = 64 * 1024;
/// Time between two tries.
const STEP: Duration = Duration::from_millis(5);

/// A response whose body is written to the disk while it arrives.
pub(crate) struct Spool {
    exchange: Box<Exchange>,
    body: Arc<DiskBody>,
    stream: Stream,
    /// Memory of bytes that the disk has not taken.
    _held: HeldBytes,
}

impl Tier {
    /// The longest body that the disk takes at once, `percent` of it; 0 if it takes none.
    fn spool_bytes_max(&self, percent: u64) -> u64 {
        self.disk().map_or(0, |disk| disk.takes_bytes() / 100 * percent)
    }
}

/// The length of the body of `exchange`, if it is to be spooled.
fn length_of(fetch: &Fetch, exchange: &Exchange, plan: &InsertionPlan) -> Option<u64> {
    let cache = &fetch.core.shared.cache;
    let memory = cache.config();
    let least = memory.object_bytes_max.min(memory.budget_bytes / MEMORY_PARTS);
    let length = exchange.framing.length().filter(|length| *length > least)?;
    let is_fit = plan.new.status == Status::OK
        && fetch.request.method == Method::Get
        && matches!(plan.recode, BodyRecoding::None)
        && !(plan.new.flags.esi || plan.new.flags.ssi)
        && !fetch.upload.is_some()
        && plan.sinks != DemotionPolicy::Never;
    let most = cache.lower().spool_bytes_max(fetch.core.live().limits.disk_body_share);
    if is_fit && most > 0 && length > most {
        fetch.core.counters.limit(Limit::DiskBodyShare);
    }
    (is_fit && length <= most).then_some(length)
}

impl Spool {
    /// Takes the response, or returns the exchange if its body or the disk is unfit.
    pub(crate) fn begin(
        fetch: &Fetch,
        exchange: Box<Exchange>,
        plan: &InsertionPlan,
    ) -> Result<Self, Box<Exchange>> {
        let cache = &fetch.core.shared.cache;
        let begun = length_of(fetch, &exchange, plan).and_then(|length| {
            let stream = cache.lower().disk()?.stream(fetch.key_hash)?;
            let bytes = stream.part_bytes() + READ_BYTES;
            let held = Account::open_large(cache.memory()).hold(bytes).ok()?;
            let body = DiskBody::coming(cache, fetch.key_hash, length, stream.part_bytes());
            Some((body, stream, held))
        });
        match begun {
            Some((body, stream, held)) => Ok(Self { exchange, body, stream, _held: held }),
            None => Err(exchange),
        }
    }

    /// The body that is stored.
    pub(crate) fn body(&self) -> Arc<dyn ExternalBody> {
        Arc::clone(&self.body) as _
    }

    /// Transfers the whole body of `object`, which this holds meanwhile.
    pub(crate) async fn run(self, core: &Rc<CoreState>, object: Arc<Object>) -> TransferOutcome {
        let Self { mut exchange, body, stream, _held } = self;
        body.stands_for(&object);
        // The client sets the pace from here, as long as it proceeds.
        exchange.lift_total();
        exchange.read_at_most(READ_BYTES as usize);
        let mut spooler = Spooler { core, object: &object, body: &body, stream, is_kept: true };
        let end = match body.intake() {
            Some(coming) => spooler.run(coming, &mut exchange).await,
            None => TransferEnd::Left,
        };
        let bytes = body.intake().map_or_else(|| body.length(), Intake::len);
        TransferOutcome { end, bytes, stored: true, plain: None, limit: None }
    }
}

/// A body being spooled.
struct Spooler<'a> {
    core: &'a Rc<CoreState>,
    object: &'a Arc<Object>,
    body: &'a Arc<DiskBody>,
    stream: Stream,
    /// The disk takes the body, and others may read it.
    is_kept: bool,
}

impl Spooler<'_> {
    async fn run(&mut self, coming: &Intake, exchange: &mut Exchange) -> TransferEnd {
        let length = self.body.length();
        loop {
            if !self.may_go_on(coming).await {
                return TransferEnd::Left;
            }
            let mut is_too_long = false;
            let take = &mut |data: &[u8]| {
                is_too_long |= coming.len() + data.len() as u64 > length;
                if !is_too_long && !data.is_empty() {
                    coming.push(data);
                }
            };
            match exchange.next(take).await {
                _ if is_too_long => return TransferEnd::Cut(None),
                Ok(true) => {}
                Ok(false) if coming.len() == length => break,
                Ok(false) => return TransferEnd::Cut(None),
                Err(error) => return TransferEnd::Cut(Some(error)),
            }
        }
        self.hand_over(coming, true).await;
        if self.is_kept && !self.keep().await {
            self.let_pass(coming);
        }
        coming.end(self.is_kept);
        // The parts remain while there are readers.
        while !self.is_kept && coming.last().is_some_and(|at| at < length) {
            coming.moved.notified().await;
        }
        TransferEnd::Whole
    }

    /// Waits for the disk or for readers; false if the body has no use.
    async fn may_go_on(&mut self, coming: &Intake) -> bool {
        self.hand_over(coming, false).await;
        if self.is_kept {
            return true;
        }
        let most = self.core.live().limits.window_bytes;
        loop {
            if coming.last().is_none() {
                return false;
            }
            if coming.held() <= most {
                return true;
            }
            coming.moved.notified().await;
        }
    }

    /// Passes complete parts to the disk; with `is_last` the rest too.
    async fn hand_over(&mut self, coming: &Intake, is_last: bool) {
        while self.is_kept
            && let Some(pieces) = coming.part(is_last)
        {
            let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
            let mut part = None;
            let stream = &mut self.stream;
            attempt(self.core, self.object, |store| {
                // Other bodies need the rest of the queue.
                if store.disk.is_behind() {
                    return SpoolAttempt::Later;
                }
                match stream.push(pieces.clone()) {
                    PartOutcome::Taken(taken) => {
                        part = Some(taken);
                        SpoolAttempt::Done
                    }
                    PartOutcome::Full => SpoolAttempt::Later,
                    PartOutcome::Refused => SpoolAttempt::Never,
                }
            })
            .await;
            match part {
                Some(part) => coming.take(part, bytes),
                None => self.let_pass(coming),
            }
        }
    }

    /// Makes the parts one record and enters it in the index; false if that fails.
    async fn keep(&mut self) -> bool {
        let (core, object, body) = (self.core, self.object, self.body);
        let stream = &mut self.stream;
        let cache = &core.shared.cache;
        let is_kept = attempt(core, object, |store| {
            match stream.finish(store.entry_of_received(object, core.now())) {
                Some(place) => {
                    body.finish_at(cache, place);
                    SpoolAttempt::Done
                }
                None => SpoolAttempt::Later,
            }
        });
        if !is_kept.await {
            return false;
        }
        // If the index is full, the record remains while the object is in memory.
        let enter = |_: &Store| match cache.copy(body.hash(), object) {
            true => SpoolAttempt::Done,
            false => SpoolAttempt::Later,
        };
        _ = attempt(core, object, enter).await;
        true
    }

    /// Makes the body pass to its present readers only.
    fn let_pass(&mut self, coming: &Intake) {
        self.is_kept = false;
        if self.object.is_live() {
            self.core.counters.inc(Counter::DiskSpoolsRefused);
        }
        self.body.lose();
        coming.pass();
    }
}

impl Drop for Spooler<'_> {
    /// Ends the body: no more arrives, and its parts are released.
    fn drop(&mut self) {
        if let Some(coming) = self.body.intake() {
            self.body.lose();
            coming.break_off();
        }
    }
}

/// The result of a try.
enum SpoolAttempt {
    Done,
    Later,
    Never,
}

/// Repeats an operation of the disk until it succeeds; false if it takes too long, or if `object`
/// is no longer stored.
async fn attempt(
    core: &CoreState,
    object: &Object,
    mut call: impl FnMut(&Store) -> SpoolAttempt,
) -> bool {
    let until_ms = core.now().mono_ms + core.live().limits.disk_body_wait;
    let Some(store) = core.shared.cache.lower().store.get() else { return false };
    loop {
        if !object.is_live() {
            return false;
        }
        match call(store) {
            SpoolAttempt::Done => return true,
            SpoolAttempt::Later if core.now().mono_ms < until_ms => {}
            SpoolAttempt::Later => {
                core.counters.limit(Limit::DiskBodyWait);
                return false;
            }
            SpoolAttempt::Never => return false,
        }
        rt::time::sleep(STEP).await;
    }
}
