//! Finish: the last step of each transaction. It writes the record and the counters. Records are
//! collected as bytes and passed in batches to the log ring and the access log.
//!
//! It formats nothing and must never make a request wait: records that cannot be passed on are
//! dropped and counted.

mod batch;
mod heads;
mod record;
mod requested_fields;
mod transaction_facts;

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::tally::{AnswerSample, CoreSums, Outcome};
use base::{Counter, Counters, Limit, Now};
use message::ClientClass;
use observe::FieldSubscriptions;
use observe::ring::{BATCH, Ring, Writer};
use policy::ConnectionPeer;
use tokio::sync::Notify;

use crate::state::evidence::EvidenceRules;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::reply::{CacheOutcome, Reply};

pub(crate) use self::batch::{Name, RecordBatch, TransactionEnd};
pub(crate) use self::record::{RecordValues, tell_program, version, write_with};
pub use self::transaction_facts::{RequestStart, TransactionFacts, UnreadableRequest};

/// The time for which a record waits for others.
const COLLECT: Duration = Duration::from_millis(50);

/// A further receiver of batches, beside the ring.
pub trait RecordTaker: fmt::Debug + Send + Sync {
    /// Takes `records`, one behind the other; false if they are dropped. Must not block.
    fn take(&self, records: Vec<u8>) -> bool;
}

/// The receivers of records.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The ring that other processes read.
    pub ring: Option<Arc<Ring>>,
    /// The writer of the access log.
    pub log: Option<Arc<dyn RecordTaker>>,
    /// Request fields whose values are recorded.
    pub names: Vec<String>,
    /// The evidence that records of fetches keep; `None` without any.
    pub evidence: Option<EvidenceRules>,
}

/// A core's log, and its counts by site and time.
#[derive(Debug)]
pub struct CoreLog {
    /// `None` if no records are written.
    pub(crate) sinks: Option<Sinks>,
    tally: RefCell<CoreSums>,
    counters: Arc<Counters>,
    /// The header fields that readers request; mostly `None`.
    wanted: RefCell<Option<Arc<FieldSubscriptions>>>,
    room: RefCell<heads::HeadRoom>,
}

#[derive(Debug)]
pub(crate) struct Sinks {
    ring: Option<RefCell<Writer>>,
    log: Option<Arc<dyn RecordTaker>>,
    names: Vec<Name>,
    evidence: Option<EvidenceRules>,
    counters: Arc<Counters>,
    /// The number of the next transaction.
    next: Cell<u64>,
    batch: RefCell<RecordBatch>,
    /// Notified when a batch gets its first record.
    begun: Notify,
}

impl CoreLog {
    /// The log of core number `index`, which counts in `counters`.
    pub(crate) fn new(
        records: &Records,
        index: usize,
        tally: CoreSums,
        counters: &Arc<Counters>,
    ) -> Self {
        let tally = RefCell::new(tally);
        let counters = Arc::clone(counters);
        let ring = records.ring.as_ref().and_then(|ring| ring.writer(index).ok());
        if ring.is_none() && records.log.is_none() {
            let (wanted, room) = (RefCell::default(), RefCell::default());
            return Self { sinks: None, tally, counters, wanted, room };
        }
        let core = Sinks {
            ring: ring.map(RefCell::new),
            log: records.log.clone(),
            names: records.names.iter().map(|name| Name::of(name)).collect(),
            evidence: records.evidence.filter(|_| records.ring.is_some()),
            counters: Arc::clone(&counters),
            // 0 is no transaction: it means that there is no cause.
            next: Cell::new(((index as u64) << 48) + 1),
            batch: RefCell::default(),
            begun: Notify::new(),
        };
        let (wanted, room) = (RefCell::default(), RefCell::default());
        Self { sinks: Some(core), tally, counters, wanted, room }
    }

    /// Microseconds of the monotonic clock. Without records it is only as exact as `now`.
    pub fn micros(&self, now: Now) -> u64 {
        match &self.sinks {
            Some(_) => rt::micros(),
            None => now.mono_ms * 1000,
        }
    }

    /// The evidence of fetches that records keep.
    pub(crate) fn evidence(&self) -> Option<EvidenceRules> {
        self.sinks.as_ref()?.evidence
    }

    /// A number for a transaction that another one names before its record is written; 0 without
    /// records.
    pub(crate) fn number(&self) -> u64 {
        self.sinks.as_ref().map_or(0, Sinks::number)
    }

    /// Records and counts a finished transaction.
    pub fn answered(&self, reply: &Reply, facts: &TransactionFacts<'_>) {
        // A reply that was sent at once was ready when the policy had decided: no need to read the
        // clock again.
        let end_us = match (facts.reply_us, &self.sinks) {
            (None, _) => facts.started.policy_us,
            (Some(_), Some(_)) => rt::micros(),
            (Some(_), None) => rt::now().mono_ms * 1000,
        };
        self.count(reply, facts, end_us);
        if let Some(core) = &self.sinks {
            let id = reply.about.number().unwrap_or_else(|| core.number());
            let end = TransactionEnd { id, end_us };
            let at = core.add(|names, batch| record::answered(reply, facts, end, names, batch));
            if self.is_asked() {
                let most = facts.live.limits.log_heads;
                self.add_heads(core, at, most, |writer| writer.answered(reply, facts));
            }
            core.flush_if_full();
        }
    }

    /// Records a transaction that is no client's: a fragment of a page, or a fetch that warms the
    /// store. It does not count as a request. Returns its end in microseconds; 0 without records.
    pub(crate) fn beside(&self, reply: &Reply, facts: &TransactionFacts<'_>) -> u64 {
        let Some(core) = &self.sinks else { return 0 };
        let id = reply.about.number().unwrap_or_else(|| core.number());
        let end = TransactionEnd { id, end_us: rt::micros() };
        core.add(|names, batch| record::answered(reply, facts, end, names, batch));
        core.flush_if_full();
        end.end_us
    }

    /// Counts a reply to an unreadable request, which is no transaction; [`CoreLog::answered`]
    /// counts the others.
    pub fn count_refusal(&self, reply: &Reply) {
        self.counters.inc(Counter::Refused);
        self.count_status(reply);
    }

    fn count_status(&self, reply: &Reply) {
        let counters = &self.counters;
        match reply.status.code() / 100 {
            2 => counters.inc(Counter::Status2xx),
            3 => counters.inc(Counter::Status3xx),
            4 => counters.inc(Counter::Status4xx),
            5 => counters.inc(Counter::Status5xx),
            _ => {}
        }
    }

    fn count(&self, reply: &Reply, facts: &TransactionFacts<'_>, end_us: u64) {
        let (counter, outcome) = match facts.request {
            Some(_) => (reply.served.counter(), reply.served.outcome()),
            None => (Counter::Refused, Outcome::Refused),
        };
        self.counters.inc(counter);
        self.count_status(reply);
        if let Some(client) = facts.request.and_then(|request| request.client) {
            self.count_class(client.class, reply.served);
        }
        if reply.too_many_ranges {
            self.counters.limit(Limit::Ranges);
        }
        self.counters.add(Counter::HeadBytesIn, facts.started.head_bytes as u64);
        self.counters.add(Counter::BodyBytesIn, facts.body_in);
        self.counters.add(Counter::HeadBytesOut, facts.head_out);
        self.counters.add(Counter::BodyBytesOut, facts.body_out);
        let us = end_us.saturating_sub(facts.started.began_us);
        let mut tally = self.tally.borrow_mut();
        tally.time(outcome, us);
        if let Some(site) = reply.about.site(facts.live) {
            let (status, bytes) = (reply.status.code(), facts.body_out);
            let answered = AnswerSample { outcome, status, bytes, us };
            tally.site(reply.about.decided.site(), &site.name, answered);
        }
    }

    #[cold]
    fn count_class(&self, class: ClientClass, served: CacheOutcome) {
        let [requests, hits, fetches] = match class {
            ClientClass::Human => {
                [Counter::HumanRequests, Counter::HumanHits, Counter::HumanFetches]
            }
            ClientClass::Search => {
                [Counter::SearchRequests, Counter::SearchHits, Counter::SearchFetches]
            }
            ClientClass::Ai => [Counter::AiRequests, Counter::AiHits, Counter::AiFetches],
            ClientClass::Tool => [Counter::ToolRequests, Counter::ToolHits, Counter::ToolFetches],
            ClientClass::Unknown => {
                [Counter::UnknownRequests, Counter::UnknownHits, Counter::UnknownFetches]
            }
        };
        self.counters.inc(requests);
        match served {
            CacheOutcome::Hit | CacheOutcome::Stale | CacheOutcome::StaleOnError => {
                self.counters.inc(hits);
            }
            CacheOutcome::Fetched { collapsed: false, .. } | CacheOutcome::Revalidated => {
                self.counters.inc(fetches);
            }
            _ => {}
        }
    }

    /// Records an unreadable request and its refusal.
    pub fn refused(
        &self,
        live: &LiveConfiguration,
        client: ConnectionPeer,
        reply: &Reply,
        started: &RequestStart,
        unread: UnreadableRequest<'_>,
    ) {
        let facts = TransactionFacts {
            received: first_line(unread.received),
            head_out: unread.head_out,
            body_out: reply.length().unwrap_or(0),
            ..TransactionFacts::new(client, live, started)
        };
        self.answered(reply, &facts);
    }

    /// Passes the counts on.
    pub fn hand_over(&self) {
        self.tally.borrow_mut().hand_over();
    }

    /// Passes records and counts on.
    pub fn flush(&self) {
        self.hand_over();
        if let Some(core) = &self.sinks {
            core.flush();
        }
    }

    /// Passes each batch on soon after its first record, until it is cancelled. An idle core is not
    /// woken.
    pub async fn keep_flushing(&self) {
        let Some(core) = &self.sinks else { return std::future::pending().await };
        loop {
            core.begun.notified().await;
            rt::time::sleep(COLLECT).await;
            core.flush();
        }
    }
}

/// The first line in `received`, as logged.
fn first_line(received: &[u8]) -> &[u8] {
    // Longer than the longest line that Apache logs by default, shorter than a record's text.
    const MOST: usize = 1024;
    let empty = received.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
    let line = &received[empty..received.len().min(empty + MOST)];
    let end = line.iter().position(|b| matches!(b, b'\r' | b'\n'));
    &line[..end.unwrap_or(line.len())]
}

impl Sinks {
    pub(crate) fn number(&self) -> u64 {
        let id = self.next.get();
        self.next.set(id + 1);
        id
    }

    /// Appends a record to the batch and returns its position there.
    pub(crate) fn add(&self, write: impl FnOnce(&[Name], &mut RecordBatch)) -> usize {
        let mut batch = self.batch.borrow_mut();
        if batch.count == 0 {
            self.begun.notify_one();
        }
        batch.count += 1;
        let at = batch.bytes.len();
        write(&self.names, &mut batch);
        at
    }

    pub(crate) fn flush_if_full(&self) {
        if self.batch.borrow().bytes.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&self) {
        let mut batch = self.batch.borrow_mut();
        let count = std::mem::take(&mut batch.count);
        if count == 0 {
            return;
        }
        if let Some(ring) = &self.ring
            && ring.borrow_mut().append(&batch.bytes, count).is_err()
        {
            self.counters.add(Counter::RingLost, u64::from(count));
        }
        match &self.log {
            Some(log) => {
                if !log.take(std::mem::take(&mut batch.bytes)) {
                    self.counters.add(Counter::LogLost, u64::from(count));
                }
            }
            None => batch.bytes.clear(),
        }
    }
}
