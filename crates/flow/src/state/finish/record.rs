//! Records of transactions, as they are written.

use std::borrow::Cow;
use std::sync::Arc;

use message::{ClassifiedClient, ClientClass, HeaderBlock, Request, Scheme, Version};
use observe::record::Phases;
use observe::{CipherSuite, Flags, Record};
use vcl::trace;

use super::batch::{Name, RecordBatch, TransactionEnd};
use super::transaction_facts::TransactionFacts;
use crate::state::reply::{CacheOutcome, ForwardReason, Reply};
use crate::state::site::Site;
use crate::state::trace::{ReplyNotes, Trace};

/// Appends the record of a client's finished transaction to the batch.
pub(crate) fn answered(
    reply: &Reply,
    facts: &TransactionFacts<'_>,
    TransactionEnd { id, end_us }: TransactionEnd,
    names: &[Name],
    RecordBatch { bytes: out, room, .. }: &mut RecordBatch,
) {
    let TransactionFacts { started, request, live, .. } = facts;
    let about = &reply.about;
    let site = about.site(live);
    let mut record = Record {
        id,
        kind: facts.kind,
        parent: facts.parent.unwrap_or(0),
        // The wall clock was read when the head was complete.
        start_unix_ms: started
            .at
            .unix_ms
            .saturating_sub((started.read_us - started.began_us) / 1000),
        start_us: started.began_us,
        flags: flags(reply, facts),
        client: facts.client.address(),
        suite: started.suite,
        version: request.map_or(11, version),
        status: reply.status.code(),
        served: served(reply.served),
        head_in: short(started.head_bytes as u64),
        head_out: short(facts.head_out),
        body_in: facts.body_in,
        body_out: facts.body_out,
        key: about.key,
        age_s: reply.age_s,
        ttl_s: reply.ttl_s,
        dictionary: reply.dictionary,
        error: about.failure.as_ref().map_or(&b""[..], |failure| failure.error.as_bytes()),
        limit: limit(about).map_or("", base::Limit::name).as_bytes(),
        ..Record::default()
    };
    if let Some(site) = site {
        record.site = site.name.as_bytes();
        record.rule = about.rule_name(live).unwrap_or_default().as_bytes();
        let route = about.decided.route;
        if route != 0 {
            record.route = site.policy.route_name(route).as_bytes();
        }
        record.flags = record.flags.with(Flags::UNLOGGED, site.unlogged.has(route));
    }
    if let Some(client) = request.and_then(|request| request.client) {
        record.class = client.class.word().as_bytes();
        record.crawler = crawler(site, client).as_bytes();
        record.proof = Some(client.proof).filter(|_| !record.crawler.is_empty());
    }
    record.target = facts.received;
    if let Some(request) = request {
        record.method = request.method.token();
        record.host = &request.host;
        record.port = request.port.unwrap_or(0);
        record.target = &request.target;
    }
    record.phases = phases(reply, facts, end_us);
    let headers = request.map(|request| &request.headers);
    let replaced = request.and_then(|request| request.replaced.as_deref());
    let values = RecordValues { names, headers, replaced, user: about.guarded.user() };
    if let Some(program) = &about.program_trace {
        tell_program(program, about.site(live), &mut record, room);
    }
    match &about.trace {
        Some(trace) => write_with(record, trace, site, values, out),
        None => record.with_derived_flags().write(values.all(), out),
    }
}

/// The crawler that a client's User-Agent names. Browsers have none.
fn crawler(site: Option<&Arc<Site>>, client: ClassifiedClient) -> &str {
    let crawlers = site.and_then(|site| site.crawlers.as_deref());
    let is_crawler = client.class != ClientClass::Human;
    crawlers.filter(|_| is_crawler).and_then(|own| own.name(client)).unwrap_or_default()
}

/// The recorded values of a request.
#[derive(Clone, Copy)]
pub(crate) struct RecordValues<'a> {
    pub(crate) names: &'a [Name],
    pub(crate) headers: Option<&'a HeaderBlock>,
    /// Fields as they were sent, where `headers` has another form: see [`Request::replaced`].
    pub(crate) replaced: Option<&'a HeaderBlock>,
    /// The authenticated user.
    pub(crate) user: Option<&'a str>,
}

impl<'a> RecordValues<'a> {
    /// The value of each name.
    fn all(self) -> impl Iterator<Item = Option<Cow<'a, [u8]>>> {
        let Self { names, headers, replaced, user } = self;
        names.iter().map(move |name| match (name, user) {
            (Name::User, Some(user)) => Some(Cow::Borrowed(user.as_bytes())),
            _ => match replaced.and_then(|replaced| name.value(replaced)) {
                Some(sent) => Some(sent).filter(|sent| !sent.is_empty()),
                None => headers.and_then(|headers| name.value(headers)),
            },
        })
    }
}

/// Writes a record with the facts of the fetch in `trace`.
pub(crate) fn write_with(
    record: Record<'_>,
    trace: &Trace,
    site: Option<&Arc<Site>>,
    values: RecordValues<'_>,
    out: &mut Vec<u8>,
) {
    let sent = trace.sent.get().map(|context| context.to_string());
    let values = values.names.iter().zip(values.all()).map(|(name, value)| match name {
        Name::Sent => sent.as_ref().map(|sent| Cow::Borrowed(sent.as_bytes())),
        _ => value,
    });
    let (server, evidence, backend) =
        (trace.server.borrow(), trace.evidence.borrow(), trace.backend.borrow());
    let origin = site.zip(trace.origin.get()).and_then(|(site, at)| site.origins.get(at as usize));
    let record = Record {
        origin: match (origin, &*backend) {
            (Some(own), _) => own.origin.name().as_bytes(),
            (None, Some(backend)) => backend.name.as_bytes(),
            (None, None) => b"",
        },
        server: server.as_deref().unwrap_or_default().as_bytes(),
        origin_status: trace.origin_status.get(),
        tries: u16::try_from(trace.tries.get()).unwrap_or(u16::MAX),
        flags: record.flags.with(Flags::REUSED, trace.reused.get()),
        not_stored: trace.not_stored.get().as_bytes(),
        evidence: evidence.as_deref().unwrap_or_default().as_bytes(),
        ..record
    };
    let at = out.len();
    record.with_derived_flags().write(values, out);
    if let Some(evidence) = &*trace.fetched.borrow() {
        evidence.append(out, at);
    }
}

/// Adds the actions of the program of `site` to the record; the text is assembled in `room`.
pub(crate) fn tell_program<'a>(
    program_trace: &'a trace::ProgramTrace,
    site: Option<&Arc<Site>>,
    record: &mut Record<'a>,
    room: &'a mut Vec<u8>,
) {
    let own = site.and_then(|site| site.vcl.as_ref());
    let beside = site.and_then(|site| site.extra.as_ref()).filter(|_| own.is_none());
    room.clear();
    program_trace.write(own.or(beside).map(|vcl| &**vcl.program()), room);
    if beside.is_none() {
        // Rules belong to declared policies.
        record.rule = b"";
    }
    (record.vcl, record.xid, record.session) = (room, program_trace.xid, program_trace.session);
    if let (b"", Some(error)) = (record.error, program_trace.error()) {
        record.error = error;
    }
}

fn limit(about: &ReplyNotes) -> Option<base::Limit> {
    let failure = about.failure.as_ref().and_then(|failure| failure.limit);
    let of_program = || about.program_trace.as_ref()?.limit;
    failure.or_else(of_program).or_else(|| about.trace.as_ref()?.limit.get())
}

fn phases(reply: &Reply, facts: &TransactionFacts<'_>, end_us: u64) -> Phases {
    let started = facts.started;
    let after = |us: u64| us.saturating_sub(started.began_us);
    let after32 = |us: u64| u32::try_from(after(us)).unwrap_or(u32::MAX - 1);
    let trace = reply.about.trace.as_deref();
    Phases {
        read: Some(after32(started.read_us)),
        policy: Some(after32(started.policy_us)),
        wait: trace.and_then(|trace| trace.wait_us.get()).map(after32),
        fetch: trace.and_then(|trace| trace.fetch_us.get()).map(after32),
        head: trace.and_then(|trace| trace.head_us.get()).map(after32),
        reply: Some(after32(facts.reply_us.unwrap_or(started.policy_us))),
        end: after(end_us),
    }
}

fn flags(reply: &Reply, facts: &TransactionFacts<'_>) -> Flags {
    // A body that grew too large or broke off was stored when its head was sent.
    let kept = reply.about.trace.as_ref().is_none_or(|trace| trace.not_stored.get().is_empty());
    let stored = kept && matches!(reply.served, CacheOutcome::Fetched { stored: true, .. });
    let tls = match facts.request {
        Some(request) => request.scheme == Scheme::Https,
        None => facts.started.suite != CipherSuite::default(),
    };
    Flags::default()
        .with(Flags::TLS, tls)
        .with(Flags::REFUSED, facts.request.is_none())
        .with(Flags::CUT_OFF, facts.cut_off)
        .with(Flags::STORED, stored)
        .with(Flags::TUNNEL, reply.status.code() == 101)
}

pub(crate) fn version(request: &Request) -> u8 {
    match request.version {
        Version::Http10 => 10,
        Version::Http11 => 11,
        Version::Http2 => 20,
    }
}

fn served(served: CacheOutcome) -> observe::Served {
    match served {
        CacheOutcome::Hit => observe::Served::Hit,
        CacheOutcome::Stale => observe::Served::Stale,
        CacheOutcome::StaleOnError => observe::Served::StaleOnError,
        CacheOutcome::Revalidated => observe::Served::Revalidated,
        CacheOutcome::Fetched { reason: ForwardReason::Bypass | ForwardReason::Method, .. } => {
            observe::Served::Pass
        }
        CacheOutcome::Fetched { collapsed: true, .. } => observe::Served::Collapsed,
        CacheOutcome::Fetched { reason: ForwardReason::HitForMiss, .. } => {
            observe::Served::HitForMiss
        }
        CacheOutcome::Fetched { .. } => observe::Served::Miss,
        CacheOutcome::File => observe::Served::File,
        CacheOutcome::Synthetic | CacheOutcome::Purge => observe::Served::Synth,
        CacheOutcome::Peer(_) => observe::Served::Peer,
    }
}

fn short(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::reply::PeerAnswer;

    #[test]
    fn every_figure_counts_a_reply_in_the_same_class() {
        let mut all = vec![
            CacheOutcome::Hit,
            CacheOutcome::Stale,
            CacheOutcome::StaleOnError,
            CacheOutcome::Revalidated,
        ];
        all.extend([CacheOutcome::File, CacheOutcome::Synthetic, CacheOutcome::Purge]);
        all.extend(
            [PeerAnswer::Stored, PeerAnswer::Fetched, PeerAnswer::Nothing].map(CacheOutcome::Peer),
        );
        let reasons = [
            ForwardReason::Bypass,
            ForwardReason::Method,
            ForwardReason::UriMiss,
            ForwardReason::Stale,
        ];
        for reason in reasons.into_iter().chain([ForwardReason::HitForMiss]) {
            let fetched = |collapsed| CacheOutcome::Fetched { reason, stored: true, collapsed };
            all.extend([fetched(false), fetched(true)]);
        }
        for way in all {
            let outcome = way.outcome();
            assert!(outcome.counters().contains(&way.counter()), "{way:?}");
            assert_eq!(served(way).outcome(), outcome, "{way:?}");
        }
    }
}
