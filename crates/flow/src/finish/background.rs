//! Background fetches and their records.

use std::rc::Rc;
use std::sync::Arc;

use base::Now;
use message::{Request, Scheme};
use observe::record::{Kind, Phases};
use observe::{Flags, Record};
use vcl::trace::ProgramTrace;

use crate::state::core::CoreState;
use crate::state::finish::{
    CoreLog, Name, RecordBatch, RecordValues, TransactionEnd, tell_program, version, write_with,
};
use crate::state::site::Site;
use crate::state::trace::Trace;

/// A background fetch. It writes its record on drop, so in every case.
pub(crate) struct BackgroundFetch {
    pub(super) core: Rc<CoreState>,
    pub(super) site: Arc<Site>,
    /// The deciding rule, by the policy's numbering.
    pub(super) rule: u32,
    /// The route, by the policy's numbering.
    pub(super) route: u32,
    /// The client's request after the policy's changes.
    pub(super) request: Request,
    /// Hash of the cache key.
    pub(super) key: u64,
    pub(super) trace: Rc<Trace>,
    pub(super) started: Now,
    pub(super) began_us: u64,
    /// The number of the causing transaction: under VCL that in X-Varnish.
    pub(super) cause: u64,
    /// The program's actions during the fetch.
    pub(crate) program_trace: Option<Box<ProgramTrace>>,
}

/// The cause of a background fetch.
#[derive(Clone, Copy)]
pub(crate) struct BackgroundCause {
    /// The deciding rule, by the policy's numbering.
    pub(crate) rule: u32,
    /// The route, by the policy's numbering.
    pub(crate) route: u32,
    /// Hash of the cache key.
    pub(crate) key: u64,
    /// The number of the causing transaction.
    pub(crate) transaction: u64,
}

impl BackgroundFetch {
    /// Begins the record of the fetch for `request`.
    pub(crate) fn begin(
        core: &Rc<CoreState>,
        site: &Arc<Site>,
        request: &Request,
        cause: BackgroundCause,
        trace: &Rc<Trace>,
    ) -> Self {
        let BackgroundCause { rule, route, key, transaction } = cause;
        Self {
            core: Rc::clone(core),
            site: Arc::clone(site),
            rule,
            route,
            request: request.clone(),
            key,
            trace: Rc::clone(trace),
            started: core.now(),
            began_us: core.micros(),
            cause: transaction,
            program_trace: None,
        }
    }
}

impl CoreLog {
    /// Counts and records a finished background fetch, which is no request.
    fn fetched(&self, fetch: &BackgroundFetch) {
        if let Some(core) = &self.sinks {
            let end = TransactionEnd { id: core.number(), end_us: rt::micros() };
            let at = core.add(|names, batch| fetched(fetch, end, names, batch));
            if self.is_asked() {
                let most = fetch.core.live().limits.log_heads;
                self.add_heads(core, at, most, |writer| writer.fetched(&fetch.trace));
            }
            core.flush_if_full();
        }
    }
}

impl Drop for BackgroundFetch {
    fn drop(&mut self) {
        self.core.log.fetched(self);
    }
}

/// Adds the record of a background fetch.
fn fetched(
    fetch: &BackgroundFetch,
    TransactionEnd { id, end_us }: TransactionEnd,
    names: &[Name],
    RecordBatch { bytes: out, room, .. }: &mut RecordBatch,
) {
    let BackgroundFetch { request, trace, site, began_us, .. } = fetch;
    let after = |us: u64| u32::try_from(us.saturating_sub(*began_us)).unwrap_or(u32::MAX - 1);
    let failure = trace.failure.borrow();
    let mut record = Record {
        id,
        kind: Kind::Background,
        parent: fetch.cause,
        start_unix_ms: fetch.started.unix_ms,
        start_us: *began_us,
        flags: Flags::default()
            .with(Flags::TLS, request.scheme == Scheme::Https)
            .with(Flags::STORED, trace.stored.get()),
        version: version(request),
        status: trace.status(),
        served: observe::Served::Refresh,
        body_out: trace.body_bytes.get(),
        key: fetch.key,
        site: site.name.as_bytes(),
        rule: site.policy.rule_name(fetch.rule).as_bytes(),
        route: match fetch.route {
            0 => b"",
            route => site.policy.route_name(route).as_bytes(),
        },
        method: request.method.token(),
        host: &request.host,
        port: request.port.unwrap_or(0),
        target: &request.target,
        error: failure.as_ref().map_or(&b""[..], |failure| failure.error.as_bytes()),
        phases: Phases {
            fetch: trace.fetch_us.get().map(after),
            head: trace.head_us.get().map(after),
            end: end_us.saturating_sub(*began_us),
            ..Phases::default()
        },
        ..Record::default()
    };
    let program_trace = fetch.program_trace.as_deref();
    let limit = failure.as_ref().and_then(|failure| failure.limit);
    let limit = limit.or_else(|| program_trace?.limit).or_else(|| trace.limit.get());
    record.limit = limit.map_or("", base::Limit::name).as_bytes();
    if let Some(program_trace) = program_trace {
        tell_program(program_trace, Some(site), &mut record, room);
    }
    let values =
        RecordValues { names, headers: Some(&request.headers), replaced: None, user: None };
    write_with(record, trace, Some(site), values, out);
}
