//! A core's records: one for each transaction, collected as bytes and handed on in batches, to the
//! log ring and to the access log.
//!
//! Nothing is formatted here and nothing waits: numbers and texts are copied, once. Must never hold
//! a request up: what cannot be handed on is lost and counted.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use base::tally::{Outcome, Tally};
use base::{Counter, Counters, Now, clock};
use flow::{About, Forward, Live, Peer, Reply, Served};
use message::{HeaderBlock, HeaderId, Request, Scheme, Version};
use observe::record::{Phases, SENT};
use observe::ring::{BATCH, Ring, Writer};
use observe::{Flags, Record};
use tokio::sync::Notify;

use crate::log::AccessLog;

/// How long a record waits for others to be written with.
const COLLECT: Duration = Duration::from_millis(50);

/// Where records go.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The ring that other processes look at.
    pub ring: Option<Arc<Ring>>,
    /// The access log.
    pub log: Option<AccessLog>,
    /// Request fields whose values records keep.
    pub names: Vec<String>,
}

/// When a request began, and how far it came before it was answered or had to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Started {
    /// When its head was whole, by the clocks that count.
    pub(crate) at: Now,
    /// When its first bytes came, in microseconds of [`CoreLog::micros`].
    pub(crate) began_us: u64,
    /// When its head was whole.
    pub(crate) read_us: u64,
    /// When policy and store had been asked.
    pub(crate) policy_us: u64,
    /// Bytes of its head.
    pub(crate) head_bytes: usize,
}

/// What is to be told of a transaction, besides what its reply knows.
pub(crate) struct Told<'a> {
    pub(crate) client: Peer,
    pub(crate) live: &'a Live,
    /// None when it could not be read.
    pub(crate) request: Option<&'a Request>,
    pub(crate) started: &'a Started,
    /// When the answer was ready; none where it left at once.
    pub(crate) reply_us: Option<u64>,
    pub(crate) head_out: u64,
    pub(crate) body_in: u64,
    pub(crate) body_out: u64,
    /// The answer did not reach its end.
    pub(crate) cut_off: bool,
}

/// A core's side of the log, and what it counts by site and by time.
#[derive(Debug)]
pub(crate) struct CoreLog {
    /// None when nobody wants records.
    sinks: Option<Core>,
    tally: RefCell<Tally>,
    counters: Arc<Counters>,
}

#[derive(Debug)]
struct Core {
    ring: Option<RefCell<Writer>>,
    log: Option<AccessLog>,
    names: Vec<Name>,
    counters: Arc<Counters>,
    /// Number of the next transaction.
    next: Cell<u64>,
    batch: RefCell<Batch>,
    /// Rung when a batch has got its first record.
    begun: Notify,
}

#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    count: u32,
    /// Where it is put together what a program has done.
    room: Vec<u8>,
}

/// A field by its quickest way.
#[derive(Debug)]
enum Name {
    Known(HeaderId),
    Other(Box<[u8]>),
    /// The `traceparent` that the origin was sent.
    Sent,
}

impl Name {
    fn of(name: &str) -> Self {
        match HeaderId::of(name.as_bytes()) {
            HeaderId::Other if name == SENT => Self::Sent,
            HeaderId::Other => Self::Other(name.as_bytes().into()),
            known => Self::Known(known),
        }
    }

    fn value<'a>(&self, headers: &'a HeaderBlock) -> Option<&'a [u8]> {
        match self {
            Self::Known(id) => headers.value(*id),
            Self::Other(name) => headers.value_named(name),
            Self::Sent => None,
        }
    }
}

impl CoreLog {
    /// The log of core number `index`, which goes its way by `flow`.
    pub(crate) fn new(records: &Records, index: usize, flow: &flow::Core) -> Self {
        let tally = RefCell::new(flow.shared.tallies.register());
        let counters = Arc::clone(&flow.counters);
        let ring = records.ring.as_ref().and_then(|ring| ring.writer(index).ok());
        if ring.is_none() && records.log.is_none() {
            return Self { sinks: None, tally, counters };
        }
        let core = Core {
            ring: ring.map(RefCell::new),
            log: records.log.clone(),
            names: records.names.iter().map(|name| Name::of(name)).collect(),
            counters: Arc::clone(&counters),
            next: Cell::new((index as u64) << 48),
            batch: RefCell::default(),
            begun: Notify::new(),
        };
        Self { sinks: Some(core), tally, counters }
    }

    /// Microseconds of the monotonic clock; with nobody to tell them, as coarse as `now`.
    pub(crate) fn micros(&self, now: Now) -> u64 {
        match &self.sinks {
            Some(_) => clock::System.micros(),
            None => now.mono_ms * 1000,
        }
    }

    /// Notes a transaction that is over.
    pub(crate) fn answered(&self, reply: &Reply, told: &Told<'_>) {
        // What left at once was ready when policy had decided, and there is no need for another
        // look at the clock.
        let end_us = match (told.reply_us, &self.sinks) {
            (None, _) => told.started.policy_us,
            (Some(_), Some(_)) => clock::System.micros(),
            (Some(_), None) => clock::System.now().mono_ms * 1000,
        };
        self.count(reply, told, end_us);
        if let Some(core) = &self.sinks {
            core.add(reply, told, end_us);
        }
    }

    fn count(&self, reply: &Reply, told: &Told<'_>, end_us: u64) {
        self.counters.add(Counter::HeadBytesIn, told.started.head_bytes as u64);
        self.counters.add(Counter::BodyBytesIn, told.body_in);
        self.counters.add(Counter::HeadBytesOut, told.head_out);
        self.counters.add(Counter::BodyBytesOut, told.body_out);
        let mut tally = self.tally.borrow_mut();
        let outcome = outcome(reply.served);
        tally.time(outcome, end_us.saturating_sub(told.started.began_us));
        if let Some(site) = reply.about.site(told.live) {
            let is_error = reply.status.code() >= 500;
            let number = reply.about.decided.site();
            tally.site(number, &site.name, outcome, is_error, told.body_out);
        }
    }

    /// Notes a request that could not be read, `head_out` being the bytes of the refusal's head.
    pub(crate) fn refused(
        &self,
        live: &Live,
        client: Peer,
        reply: &Reply,
        started: &Started,
        head_out: u64,
    ) {
        let body_out = reply.length().unwrap_or(0);
        let (request, reply_us, body_in, cut_off) = (None, None, 0, false);
        let told =
            Told { client, live, request, started, reply_us, head_out, body_in, body_out, cut_off };
        self.answered(reply, &told);
    }

    /// Hands over what was collected and counted.
    pub(crate) fn flush(&self) {
        self.tally.borrow_mut().hand_over();
        if let Some(core) = &self.sinks {
            core.flush();
        }
    }

    /// Hands over what is collected soon after it begins to be, for as long as it is awaited. A
    /// core without requests is not woken.
    pub(crate) async fn keep_flushing(&self) {
        let Some(core) = &self.sinks else { return std::future::pending().await };
        loop {
            core.begun.notified().await;
            tokio::time::sleep(COLLECT).await;
            core.flush();
        }
    }
}

impl Core {
    fn add(&self, reply: &Reply, told: &Told<'_>, end_us: u64) {
        let id = self.next.get();
        self.next.set(id + 1);
        let mut batch = self.batch.borrow_mut();
        if batch.count == 0 {
            self.begun.notify_one();
        }
        batch.count += 1;
        write(reply, told, (id, end_us), &self.names, &mut batch);
        if batch.bytes.len() >= BATCH {
            drop(batch);
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
                if !log.write(std::mem::take(&mut batch.bytes)) {
                    self.counters.add(Counter::LogLost, u64::from(count));
                }
            }
            None => batch.bytes.clear(),
        }
    }
}

/// Adds the record of transaction number `id`, which ended at `end_us`, to the batch.
fn write(
    reply: &Reply,
    told: &Told<'_>,
    (id, end_us): (u64, u64),
    names: &[Name],
    Batch { bytes: out, room, .. }: &mut Batch,
) {
    let Told { started, request, live, .. } = told;
    let about = &reply.about;
    let site = about.site(live);
    let mut record = Record {
        id,
        // The wall clock was looked at when the head was whole.
        start_unix_ms: started
            .at
            .unix_ms
            .saturating_sub((started.read_us - started.began_us) / 1000),
        start_us: started.began_us,
        flags: flags(reply, told),
        client: told.client.address(),
        version: request.map_or(11, version),
        status: reply.status.code(),
        served: served(reply.served),
        head_in: short(started.head_bytes as u64),
        head_out: short(told.head_out),
        body_in: told.body_in,
        body_out: told.body_out,
        key: about.key,
        age_s: reply.age_s,
        ttl_s: reply.ttl_s,
        error: about.trouble.as_ref().map_or(&b""[..], |trouble| trouble.error.as_bytes()),
        limit: limit(about).map_or("", base::Limit::name).as_bytes(),
        ..Record::default()
    };
    if let Some(site) = site {
        record.site = site.name.as_bytes();
        record.rule = about.rule_name(live).unwrap_or_default().as_bytes();
    }
    if let Some(request) = request {
        record.method = request.method.token();
        record.host = &request.host;
        record.target = &request.target;
    }
    record.phases = phases(reply, told, end_us);
    let headers = request.map(|request| &request.headers);
    let values = names.iter().map(|name| headers.and_then(|headers| name.value(headers)));
    if let Some(told) = &about.told {
        tell_program(told, about.site(live), &mut record, room);
    }
    let Some(trace) = &about.trace else { return record.flagged().write(values, out) };
    let sent = trace.sent().map(|context| context.to_string());
    let values = names.iter().zip(values).map(|(name, value)| match name {
        Name::Sent => sent.as_ref().map(String::as_bytes),
        _ => value,
    });
    let server = trace.server();
    record.server = server.as_deref().unwrap_or_default().as_bytes();
    record.tries = u16::try_from(trace.tries()).unwrap_or(u16::MAX);
    record.flags = record.flags.with(Flags::REUSED, trace.reused());
    record.not_stored = trace.not_stored().as_bytes();
    let evidence = trace.evidence();
    record.evidence = evidence.as_deref().unwrap_or_default().as_bytes();
    let origin = site.zip(trace.origin()).and_then(|(site, at)| site.origins.get(at as usize));
    let backend = trace.backend();
    record.origin = match (origin, &backend) {
        (Some(origin), _) => origin.name().as_bytes(),
        (None, Some(backend)) => backend.name.as_bytes(),
        (None, None) => b"",
    };
    record.flagged().write(values, out);
}

/// What the program of `site` has done, put together in `room`.
fn tell_program<'a>(
    told: &'a flow::vcl::Told,
    site: Option<&Arc<flow::Site>>,
    record: &mut Record<'a>,
    room: &'a mut Vec<u8>,
) {
    let first = site.and_then(|site| site.vcl.as_ref()).map(|vcl| &**vcl.program());
    room.clear();
    told.write(first, room);
    // Rules are of declared policies.
    record.rule = b"";
    (record.vcl, record.xid, record.session) = (room, told.xid, told.session);
    if let (b"", Some(error)) = (record.error, told.error()) {
        record.error = error;
    }
}

fn limit(about: &About) -> Option<base::Limit> {
    let trouble = about.trouble.as_ref().and_then(|trouble| trouble.limit);
    let told = || about.told.as_ref()?.limit;
    trouble.or_else(told).or_else(|| about.trace.as_ref()?.limit())
}

fn phases(reply: &Reply, told: &Told<'_>, end_us: u64) -> Phases {
    let started = told.started;
    let after = |us: u64| us.saturating_sub(started.began_us);
    let after32 = |us: u64| u32::try_from(after(us)).unwrap_or(u32::MAX - 1);
    let trace = reply.about.trace.as_deref();
    Phases {
        read: Some(after32(started.read_us)),
        policy: Some(after32(started.policy_us)),
        wait: trace.and_then(flow::Trace::wait_us).map(after32),
        fetch: trace.and_then(flow::Trace::fetch_us).map(after32),
        head: trace.and_then(flow::Trace::head_us).map(after32),
        reply: Some(after32(told.reply_us.unwrap_or(started.policy_us))),
        end: after(end_us),
    }
}

fn flags(reply: &Reply, told: &Told<'_>) -> Flags {
    // What grew too large, or broke off, was stored when its head was sent.
    let kept = reply.about.trace.as_ref().is_none_or(|trace| trace.not_stored().is_empty());
    let stored = kept && matches!(reply.served, Served::Fetched { stored: true, .. });
    let tls = told.request.is_some_and(|request| request.scheme == Scheme::Https);
    Flags::default()
        .with(Flags::TLS, tls)
        .with(Flags::REFUSED, told.request.is_none())
        .with(Flags::CUT_OFF, told.cut_off)
        .with(Flags::STORED, stored)
        .with(Flags::TUNNEL, reply.status.code() == 101)
}

fn version(request: &Request) -> u8 {
    match request.version {
        Version::Http10 => 10,
        Version::Http11 => 11,
        Version::Http2 => 20,
    }
}

fn served(served: Served) -> observe::Served {
    match served {
        Served::Hit => observe::Served::Hit,
        Served::Stale => observe::Served::Stale,
        Served::StaleOnError => observe::Served::StaleOnError,
        Served::Revalidated => observe::Served::Revalidated,
        Served::Fetched { reason: Forward::Bypass | Forward::Method, .. } => observe::Served::Pass,
        Served::Fetched { collapsed: true, .. } => observe::Served::Collapsed,
        Served::Fetched { reason: Forward::HitForMiss, .. } => observe::Served::HitForMiss,
        Served::Fetched { .. } => observe::Served::Miss,
        Served::File => observe::Served::File,
        Served::Synthetic | Served::Purge => observe::Served::Synth,
    }
}

/// How a reply counts. Waiting for a confirmation is waiting.
fn outcome(served: Served) -> Outcome {
    match served {
        Served::Hit | Served::Stale | Served::StaleOnError | Served::File => Outcome::Hit,
        Served::Fetched { reason: Forward::Bypass | Forward::Method, .. } => Outcome::Pass,
        Served::Revalidated | Served::Fetched { .. } => Outcome::Miss,
        Served::Synthetic | Served::Purge => Outcome::Synth,
    }
}

fn short(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
