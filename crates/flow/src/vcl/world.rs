//! Program world: services that a program calls while it runs.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use ban::Expression;
use base::{Counter, Counters, Limit, Now};
use bytes::Bytes;
use message::{HeaderBlock, Request};
use policy::decision_steps::shown;
use vcl::counts::{Count, Counts};
use vcl::ctx::{ProgramEnvironment, PurgeMode, Tag};
use vcl::rules::lifetime::{self, Lifetime};
use vcl::trace::LogLine;

use crate::invalidate::{Cause, InvalidationTarget, NewTimes, ResponseSelector, Sites};
use crate::state::invalidate::{InvalidationMode, Outcome};
use crate::state::live_configuration::LiveConfiguration;
use crate::state::shared::SharedState;
use crate::state::vcl::HostServices;

/// Most log lines of a task.
const LINES_MAX: usize = 256;

/// The world of one run of a subroutine.
pub struct ProgramWorld<'a> {
    shared: &'a Arc<SharedState>,
    live: &'a LiveConfiguration,
    reason: RunReason<'a>,
    now: Now,
    /// The request's body, if it was kept.
    body: Option<&'a Bytes>,
    log: &'a RefCell<Vec<LogLine>>,
    /// The request, which may be a purge; `None` if the program runs for no request.
    asked: Option<&'a Request>,
}

/// The reason for which a subroutine runs.
#[derive(Clone, Copy)]
pub(crate) enum RunReason<'a> {
    /// A request; its core counts.
    Core(&'a Counts, &'a Counters),
    /// A program starts or ends, on no core.
    Nobody,
    /// A forecast: nothing changes.
    Forecast(&'a Forecast),
}

/// The substitute state of a forecast.
pub(crate) struct Forecast {
    /// Empty VMOD memory of its own.
    memory: vcl::vmod::VmodState,
    /// Actions that the program would have caused.
    pub(crate) would: RefCell<Vec<String>>,
}

impl Forecast {
    pub(crate) fn new(live: &LiveConfiguration) -> Self {
        Self { memory: vcl::vmod::VmodState::new(&live.limits), would: RefCell::default() }
    }
}

impl<'a> ProgramWorld<'a> {
    pub(crate) fn new(
        shared: &'a Arc<SharedState>,
        live: &'a LiveConfiguration,
        reason: RunReason<'a>,
        now: Now,
        body: Option<&'a Bytes>,
        log: &'a RefCell<Vec<LogLine>>,
    ) -> Self {
        Self { shared, live, reason, now, body, log, asked: None }
    }

    /// Sets `request`, which may be a purge.
    #[must_use]
    pub(crate) fn asked_by(self, request: &'a Request) -> Self {
        Self { asked: Some(request), ..self }
    }

    /// The world of `vcl_init` and `vcl_fini`, without a request. Log lines go to `log`.
    pub fn without_request(
        shared: &'a Arc<SharedState>,
        live: &'a LiveConfiguration,
        now: Now,
        log: &'a RefCell<Vec<LogLine>>,
    ) -> Self {
        Self::new(shared, live, RunReason::Nobody, now, None, log)
    }

    /// Returns true in a forecast, which notes the action `what`.
    fn is_foreseen(&self, what: impl FnOnce() -> String) -> bool {
        let RunReason::Forecast(forecast) = self.reason else { return false };
        forecast.would.borrow_mut().push(what());
        true
    }

    fn host_services(&self) -> Option<Arc<Box<dyn HostServices>>> {
        self.shared.vcl.host_services()
    }

    /// Invalidates on all sites; returns the number of responses selected, as far as known.
    fn invalidate(
        &self,
        what: InvalidationTarget,
        soft: bool,
        mode: InvalidationMode,
    ) -> Result<Outcome, String> {
        let one = self.shared.invalidator.invalidation(what, soft, Sites::Every, self.now);
        let one = one.by(self.asked.map(Cause::purge).unwrap_or_default());
        let done = self.shared.invalidator.invalidate_at_once(None, [one], self.now, mode);
        if let (Ok(outcome), RunReason::Core(_, counters)) = (&done, self.reason) {
            counters.add(Counter::InvalidationsRecorded, outcome.recorded.into());
        }
        done.map_err(|why| why.to_string())
    }

    fn count(&self, count: Count, n: u64) {
        if let RunReason::Core(counts, _) = self.reason {
            counts.add(count, n);
        }
    }
}

impl ProgramEnvironment for ProgramWorld<'_> {
    fn shared(&self) -> &vcl::vmod::VmodState {
        match self.reason {
            RunReason::Forecast(forecast) => &forecast.memory,
            _ => &self.shared.vcl.memory,
        }
    }

    fn log(&self, tag: Tag, text: &[u8]) {
        let mut log = self.log.borrow_mut();
        if log.len() < LINES_MAX {
            log.push((tag, text.into()));
        }
    }

    fn syslog(&self, priority: i64, text: &[u8]) {
        if !self.is_foreseen(|| format!("write to syslog: {}", shown(text)))
            && let Some(host_services) = self.host_services()
        {
            host_services.syslog(priority, text);
        }
    }

    fn ban(&self, text: &str) -> Result<(), String> {
        let expression = Expression::of_program(text).map_err(|error| error.to_string())?;
        if self.is_foreseen(|| format!("ban {text}")) {
            return Ok(());
        }
        self.invalidate(
            InvalidationTarget::Many(ResponseSelector::by_fields(expression)),
            false,
            InvalidationMode::Beside,
        )?;
        Ok(())
    }

    fn purge(&self, key: &[u8], how: PurgeMode) -> Result<u64, String> {
        let foreseen = || match how {
            PurgeMode::Hard => "purge what is stored under its key".to_owned(),
            PurgeMode::Soft { .. } => {
                "shorten the times of what is stored under its key".to_owned()
            }
        };
        if self.is_foreseen(foreseen) {
            return Ok(0);
        }
        let ms = |seconds: f64| (seconds.max(0.0) * 1000.0) as u64;
        let (ttl, grace, keep) = how.times();
        // Programs that deliver one of the objects still see its former times.
        let times = NewTimes {
            ttl_ms: ttl.map(|ttl| (ttl * 1000.0) as i64),
            grace_ms: grace.map(ms),
            keep_ms: keep.map(ms),
        };
        let what = InvalidationTarget::Retime(key.into(), times);
        let objects =
            self.invalidate(what, how != PurgeMode::Hard, InvalidationMode::Beside)?.objects;
        self.count(Count::NPurges, 1);
        self.count(Count::NObjPurged, objects);
        Ok(objects)
    }

    fn purge_keys(&self, keys: &[&[u8]], soft: bool) -> Result<u64, String> {
        let foreseen = || {
            let keys: Vec<String> = keys.iter().map(|key| shown(key)).collect();
            format!("purge what has one of the keys {}", keys.join(", "))
        };
        if self.is_foreseen(foreseen) {
            return Ok(0);
        }
        let what = ResponseSelector::Tags(keys.iter().map(|key| key.to_vec()).collect());
        Ok(self.invalidate(InvalidationTarget::Many(what), soft, InvalidationMode::Counted)?.finds)
    }

    fn clock(&self) -> f64 {
        // The request's own time is past.
        super::call::seconds(rt::now())
    }

    fn lifetime(&self, status: u16, headers: &HeaderBlock, now: f64) -> Lifetime {
        lifetime::of(status, headers, now, &self.live.vcl.params)
    }

    fn random(&self) -> f64 {
        self.shared.vcl.random.next()
    }

    fn env(&self, name: &str) -> Option<Bytes> {
        self.host_services()?.env(name)
    }

    fn file(&self, path: &str) -> Option<Bytes> {
        self.host_services()?.file(path)
    }

    fn read(&self, path: &str, bytes_max: u64) -> io::Result<Bytes> {
        self.host_services().ok_or(io::ErrorKind::NotFound)?.read(path, bytes_max)
    }

    fn exists(&self, path: &str) -> bool {
        self.host_services().is_some_and(|host_services| host_services.exists(path))
    }

    fn resolve(&self, host: &str, port: &str) -> Vec<SocketAddr> {
        let Some(host_services) = self.host_services() else { return Vec::new() };
        host_services.resolve(host, port, matches!(self.reason, RunReason::Nobody)).unwrap_or_else(
            |limit| {
                self.limit(limit);
                Vec::new()
            },
        )
    }

    fn body(&self) -> Option<&[u8]> {
        self.body.map(|body| &body[..])
    }

    fn keep_body(&self, bytes_max: u64) -> bool {
        self.body.is_some_and(|body| body.len() as u64 <= bytes_max)
    }

    fn param(&self, name: &str) -> Option<f64> {
        self.live.vcl.params.by_name(name)
    }

    fn has_feature(&self, word: &str) -> bool {
        self.live.vcl.params.has_feature(word)
    }

    fn storage(&self, name: &str) -> Option<(u64, u64)> {
        self.host_services()?.storage(name)
    }

    fn limit(&self, limit: Limit) {
        match self.reason {
            RunReason::Core(_, counters) => counters.limit(limit),
            RunReason::Nobody => self.shared.vcl.limit(&self.shared.counters, limit),
            RunReason::Forecast(_) => {}
        }
    }

    fn hostname(&self) -> &str {
        &self.live.vcl.hostname
    }

    fn identity(&self) -> &str {
        &self.live.vcl.identity
    }
}
