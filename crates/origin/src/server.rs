//! Server of an origin, as all cores share it: its addresses, health, load and limits.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use base::{Counters, Limit};
use message::Status;
use parking_lot::Mutex;
use rt::time::{Instant, timeout_at};
use tokio::sync::Notify;

use crate::config::{
    Address, EjectConfig, HolddownTimes, HttpVersion, Opening, OriginConfig, Protocol, ServerConfig,
};
use crate::deadline::Deadline;
use crate::error::{Error, TimeoutStep};
use crate::exchange_slots::{ExchangeSlots, Holder};
use crate::health::{Ejection, EjectionState, HealthOverride, ProbeVerdict, ProbeWindow};
use crate::reserved_addresses::ReservedAddresses;
use crate::shared_pool::{ConnectionKey, EndpointPool, SharedPool, Terms};
use crate::socket_advice;
use crate::stream::{self, Stream};
use crate::traffic_counters::TrafficCounters;

/// The most addresses of one name; further ones of an answer are ignored.
pub(crate) const ADDRESSES: usize = 64;

/// The addresses of a server's name.
#[derive(Debug)]
pub(crate) struct Addresses {
    addresses: Vec<SocketAddr>,
    /// They are tried in their order, every time.
    in_order: bool,
    /// One bit per address: the last connection attempt failed, so that it is tried after the
    /// others.
    failed: AtomicU64,
}

impl Addresses {
    /// Addresses to connect to: in turn from `start`, recently failed ones last; or in order.
    fn order(&self, start: usize) -> impl Iterator<Item = (usize, SocketAddr)> {
        let (start, failed) = match self.in_order {
            true => (0, 0),
            false => (start, self.failed.load(Ordering::Relaxed)),
        };
        let len = self.addresses.len();
        let turn = move |failing: bool| {
            (0..len)
                .map(move |n| (start % len + n) % len)
                .filter(move |at| ((failed >> at & 1) == 1) == failing)
        };
        turn(false).chain(turn(true)).map(|at| (at, self.addresses[at]))
    }

    fn note(&self, at: usize, connected: bool) {
        let bit = 1 << at;
        let known = self.failed.load(Ordering::Relaxed) & bit != 0;
        if connected && known {
            self.failed.fetch_and(!bit, Ordering::Relaxed);
        } else if !connected && !known {
            self.failed.fetch_or(bit, Ordering::Relaxed);
        }
    }
}

/// Milliseconds for which a connected socket is known not to be reserved.
const ADMITTED_MS: u64 = 1_000;

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    /// The configured address: its name in messages.
    pub(crate) name: Arc<str>,
    pub(crate) config: ServerConfig,
    /// Seed of the server's hash; depends on the name only, so that order and number of servers do
    /// not matter.
    pub(crate) seed: u64,
    pub(crate) ejection: Ejection,
    pub(crate) probes: Option<ProbeWindow>,
    pub(crate) opening: Opening,
    /// The time of its last change of health, in milliseconds since 1970.
    changed_ms: AtomicU64,
    /// Idle connections kept per core.
    pub(crate) idle_max: usize,
    idle_timeout_ms: u64,
    eject: EjectConfig,
    slow_start_ms: u64,
    /// The time of its last recovery, in milliseconds of the monotonic clock; 0 if there was none.
    recovered_ms: AtomicU64,
    /// LF alone ends a line of its response heads.
    pub(crate) lenient: bool,
    /// The use of `lenient` was logged.
    lenience_told: AtomicBool,
    /// TLS for HTTP/1.1, and for the version of `http`.
    secure: Option<tls::UpstreamPeer>,
    secure_http: Option<tls::UpstreamPeer>,
    pub(crate) http: HttpVersion,
    reserved: Arc<ReservedAddresses>,
    /// The time until which its socket is known not to be reserved, in milliseconds of the
    /// monotonic clock.
    admitted_until_ms: AtomicU64,
    /// The operator's [`HealthOverride`].
    order: AtomicU8,
    answer: ArcSwapOption<Addresses>,
    answered: Notify,
    /// The latest lookup of its name failed.
    unresolvable: AtomicBool,
    turn: AtomicU32,
    /// `None` without a limit.
    slots: Option<ExchangeSlots>,
    way: ConnectionKey,
    endpoint: OnceLock<Arc<EndpointPool>>,
    in_flight: AtomicU32,
    waiting: AtomicU32,
    requests: AtomicU64,
    failed: AtomicU64,
    /// The latest failure, with its time in milliseconds since 1970.
    last_error: Mutex<Option<(u64, String)>>,
    /// Responses, and microseconds until their heads.
    answers: AtomicU64,
    waited_us: AtomicU64,
    /// The last failed connection: its time, in milliseconds of the monotonic clock, and its
    /// reason.
    unconnected: Mutex<Option<(u64, io::ErrorKind)>>,
    pub(crate) traffic: TrafficCounters,
}

impl Server {
    pub(crate) fn new(config: ServerConfig, origin: &OriginConfig) -> Self {
        let name: Arc<str> = config.address.to_string().into();
        let http = http_of(&config, origin);
        let slots = |all| ExchangeSlots::new(all, origin.client_share_percent);
        let server = Self {
            seed: fnv1a(name.as_bytes()),
            name,
            ejection: Ejection::default(),
            probes: origin
                .probe
                .as_ref()
                .map(|probe| ProbeWindow::new(probe.threshold, probe.initial)),
            opening: origin.opening.clone(),
            // A PROXY header is about one client.
            idle_max: match origin.opening.proxy {
                None => origin.idle_max as usize,
                Some(_) => 0,
            },
            idle_timeout_ms: origin.idle_timeout_ms,
            changed_ms: AtomicU64::new(rt::now().unix_ms),
            eject: origin.eject,
            slow_start_ms: origin.slow_start_ms,
            recovered_ms: AtomicU64::new(0),
            lenient: origin.lenient,
            lenience_told: AtomicBool::new(false),
            secure: peer(&config, origin, &[]),
            secure_http: match http {
                HttpVersion::Http11 => None,
                HttpVersion::Http2 => peer(&config, origin, &["h2"]),
                HttpVersion::Auto => peer(&config, origin, &["h2", "http/1.1"]),
            },
            http,
            reserved: Arc::clone(&origin.reserved),
            admitted_until_ms: AtomicU64::new(0),
            order: AtomicU8::new(HealthOverride::Auto as u8),
            answer: ArcSwapOption::empty(),
            answered: Notify::new(),
            unresolvable: AtomicBool::new(false),
            turn: AtomicU32::new(0),
            slots: Some(origin.max_connections).filter(|all| *all != 0).map(slots),
            way: ConnectionKey::new(&config, origin),
            endpoint: OnceLock::new(),
            in_flight: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            requests: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            last_error: Mutex::new(None),
            answers: AtomicU64::new(0),
            waited_us: AtomicU64::new(0),
            unconnected: Mutex::default(),
            traffic: TrafficCounters::default(),
            config,
        };
        match &server.config.address {
            Address::Tcp { host, port } => {
                if let Ok(ip) = host.parse::<IpAddr>() {
                    server.set_addresses(vec![SocketAddr::new(ip, *port)]);
                }
            }
            Address::Fixed { addresses, .. } => {
                let addresses = addresses.iter().copied().take(ADDRESSES).collect();
                let answer = Addresses { addresses, in_order: true, failed: AtomicU64::new(0) };
                server.answer.store(Some(Arc::new(answer)));
            }
            Address::Unix(_) => {}
        }
        server
    }

    /// The name and port to resolve; `None` for IP literals and unix sockets.
    pub(crate) fn name_to_resolve(&self) -> Option<(&str, u16)> {
        match &self.config.address {
            Address::Tcp { host, port } if host.parse::<IpAddr>().is_err() => Some((host, *port)),
            _ => None,
        }
    }

    /// Replaces the known addresses; an empty answer or another order of the addresses changes
    /// nothing.
    pub(crate) fn set_addresses(&self, mut addresses: Vec<SocketAddr>) {
        addresses.sort_unstable();
        addresses.dedup();
        addresses.truncate(ADDRESSES);
        self.unresolvable.store(addresses.is_empty(), Ordering::Relaxed);
        let same = |answer: &Arc<Addresses>| answer.addresses == addresses;
        if addresses.is_empty() || self.answer.load().as_ref().is_some_and(same) {
            return;
        }
        self.answer.store(Some(Arc::new(Addresses {
            addresses,
            in_order: false,
            failed: AtomicU64::new(0),
        })));
        self.answered.notify_waiters();
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.answer.load().as_ref().map_or_else(Vec::new, |answer| answer.addresses.clone())
    }

    /// Returns true if its addresses are known; `None` before the first lookup has ended.
    pub(crate) fn is_found(&self) -> Option<bool> {
        let is_known = self.answer.load().is_some();
        (is_known || self.unresolvable.load(Ordering::Relaxed)).then_some(is_known)
    }

    /// The pool of its idle connections.
    pub(crate) fn endpoint(&self, shared_pool: &SharedPool) -> &Arc<EndpointPool> {
        self.endpoint.get_or_init(|| shared_pool.endpoint(self.way.clone()))
    }

    /// Records that the name could not be resolved. Known addresses stay in use.
    pub(crate) fn resolve_failed(&self, text: String) {
        self.note_error(text);
        self.unresolvable.store(true, Ordering::Relaxed);
        self.answered.notify_waiters();
    }

    /// Returns an error during the holddown after a failed connection.
    pub(crate) fn held(&self, hold: HolddownTimes, now_ms: u64) -> Result<(), Error> {
        let Some((failed_ms, kind)) = *self.unconnected.lock() else { return Ok(()) };
        let ago_ms = now_ms.saturating_sub(failed_ms);
        if ago_ms >= hold.after(kind) {
            return Ok(());
        }
        self.traffic.held();
        let source = io::Error::new(kind, format!("not tried, {ago_ms} ms after: {kind}"));
        Err(Error::Connect { server: Arc::clone(&self.name), source })
    }

    /// Records the reason of a failed connection.
    pub(crate) fn note_unconnected(&self, error: &Error, now_ms: u64) {
        if let Error::Connect { source, .. } = error {
            *self.unconnected.lock() = Some((now_ms, source.kind()));
        }
    }

    /// Opens a connection, trying one address after the other. Over TLS, HTTP/1.1 is offered, or
    /// what the server's version permits if `multiplexed`.
    pub(crate) async fn connect(
        &self,
        deadline: Deadline,
        multiplexed: bool,
    ) -> Result<(Stream, Option<SocketAddr>), Error> {
        if let Address::Unix(path) = &self.config.address {
            return match self.connect_socket(path, rt::now().mono_ms) {
                Ok(stream) => Ok((stream, None)),
                Err(source) => Err(Error::Connect { server: Arc::clone(&self.name), source }),
            };
        }
        let answer = self.first_answer(deadline).await?;
        let start = self.turn.fetch_add(1, Ordering::Relaxed) as usize;
        let mut left = answer.addresses.len() as u32;
        let mut failure = None;
        for (at, address) in answer.order(start) {
            // An address that drops packets must not use up the others' time.
            let now = Instant::now();
            let share = deadline.at.saturating_duration_since(now) / left.max(1);
            left = left.saturating_sub(1);
            let tried = timeout_at(now + share, self.connect_to(address, multiplexed)).await;
            answer.note(at, matches!(tried, Ok(Ok(_))));
            match tried {
                Ok(Ok(stream)) => return Ok((stream, Some(address))),
                Ok(Err(source)) => failure = Some(source),
                Err(_) => {}
            }
        }
        Err(match failure {
            Some(source) => Error::Connect { server: Arc::clone(&self.name), source },
            None => self.deadline_error(deadline),
        })
    }

    /// Connects to a unix socket, unless it is reserved, which is checked from time to time only:
    /// the check takes two system calls.
    fn connect_socket(&self, path: &Path, now_ms: u64) -> io::Result<Stream> {
        let is_known = now_ms < self.admitted_until_ms.load(Ordering::Relaxed);
        if !is_known {
            self.reserved.admit_socket(path)?;
        }
        let stream =
            Stream::connect_unix(path).map_err(|error| socket_advice::explained(path, error))?;
        if !is_known {
            self.admitted_until_ms.store(now_ms.saturating_add(ADMITTED_MS), Ordering::Relaxed);
        }
        Ok(stream)
    }

    async fn connect_to(&self, address: SocketAddr, multiplexed: bool) -> io::Result<Stream> {
        self.reserved.admit(address)?;
        match if multiplexed { &self.secure_http } else { &self.secure } {
            // Boxed: handshakes are rare, and other futures should not be as large.
            Some(secure) => Box::pin(Stream::connect_tls(address, secure)).await,
            // Never in plain text if TLS is configured.
            None if self.config.tls => Err(io::Error::other("TLS: no name to verify")),
            None => Stream::connect_tcp(address).await,
        }
    }

    /// The addresses; waits for the end of the first lookup, so that requests right after the start
    /// do not fail.
    async fn first_answer(&self, deadline: Deadline) -> Result<Arc<Addresses>, Error> {
        loop {
            let answered = self.answered.notified();
            if let Some(answer) = self.answer.load_full() {
                return Ok(answer);
            }
            let unresolvable = self.unresolvable.load(Ordering::Relaxed);
            if unresolvable || timeout_at(deadline.at, answered).await.is_err() {
                return Err(Error::Resolve { server: Arc::clone(&self.name) });
            }
        }
    }

    /// The error for a `deadline` that has passed.
    pub(crate) fn deadline_error(&self, deadline: Deadline) -> Error {
        Error::Timeout {
            server: Arc::clone(&self.name),
            step: deadline.step,
            after_ms: deadline.after_ms,
        }
    }

    /// The operator's override.
    pub(crate) fn order(&self) -> HealthOverride {
        HealthOverride::of(self.order.load(Ordering::Relaxed))
    }

    pub(crate) fn set_order(&self, order: HealthOverride) {
        self.order.store(order as u8, Ordering::Relaxed);
        self.note_change();
    }

    /// Records the time of a change of health.
    pub(crate) fn note_change(&self) {
        self.changed_ms.store(rt::now().unix_ms, Ordering::Relaxed);
    }

    /// The time of the last change of health, in milliseconds since 1970.
    pub(crate) fn changed_ms(&self) -> u64 {
        self.changed_ms.load(Ordering::Relaxed)
    }

    /// Returns true if the server must not get requests, by the operator's override or, without
    /// one, by its probes.
    pub(crate) fn is_sick(&self) -> bool {
        match self.order() {
            HealthOverride::Auto => self.probed() == ProbeVerdict::Sick,
            HealthOverride::Up => false,
            HealthOverride::Drain | HealthOverride::Down => true,
        }
    }

    /// Returns true if it gets requests: neither sick by its probes nor ejected for failed
    /// requests.
    pub(crate) fn is_healthy(&self, now_ms: u64) -> bool {
        !self.is_sick() && self.standing(now_ms) != EjectionState::Ejected
    }

    pub(crate) fn probed(&self) -> ProbeVerdict {
        self.probes.as_ref().map_or(ProbeVerdict::Unknown, ProbeWindow::state)
    }

    pub(crate) fn standing(&self, now_ms: u64) -> EjectionState {
        match self.order() {
            HealthOverride::Up => EjectionState::Open,
            _ => self.ejection.standing(now_ms),
        }
    }

    /// Milliseconds since 1970 at which it went out of service, by an override, by probes, or by
    /// failures after which no trial has succeeded yet; `None` while it is in service.
    pub(crate) fn down_since_ms(&self, now: base::Now) -> Option<u64> {
        if self.is_sick() {
            return Some(self.changed_ms());
        }
        let since_ms = self.ejection.since_ms().filter(|_| self.order() != HealthOverride::Up)?;
        Some(now.unix_ms.saturating_sub(now.mono_ms.saturating_sub(since_ms)))
    }

    pub(crate) fn claim_trial(&self, now_ms: u64) -> bool {
        self.ejection.claim_trial(self.eject, now_ms)
    }

    /// Records a response that is not a failure.
    pub(crate) fn succeeded(&self, now_ms: u64) {
        if self.ejection.succeeded() {
            self.recovered(now_ms);
        }
    }

    /// Records a response of `status`, which may count as a failure.
    pub(crate) fn answered(&self, status: Status, now_ms: u64) {
        if !self.eject.statuses.has(status) {
            return self.succeeded(now_ms);
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.ejection.failed(self.eject, now_ms);
        self.note_error(format!("answered {status}"));
    }

    /// Begins its slow start.
    pub(crate) fn recovered(&self, now_ms: u64) {
        self.recovered_ms.store(now_ms.max(1), Ordering::Relaxed);
    }

    /// Its share of the requests relative to other servers', in thousandths of a weight.
    pub(crate) fn weight(&self, now_ms: u64) -> u64 {
        const WHOLE: u64 = 1_000;
        // The least share, so that it gets some requests.
        const LEAST: u64 = 10;
        let weight = u64::from(self.config.weight.max(1));
        let recovered_ms = self.recovered_ms.load(Ordering::Relaxed);
        let since_ms = now_ms.saturating_sub(recovered_ms);
        if recovered_ms == 0 || since_ms >= self.slow_start_ms {
            return weight * WHOLE;
        }
        weight * (since_ms.saturating_mul(WHOLE) / self.slow_start_ms).max(LEAST)
    }

    /// Records a failed request; one that shows that the server is unreachable counts towards
    /// ejection.
    pub(crate) fn failed(&self, error: &Error, now_ms: u64) {
        if !error.is_servers_fault() {
            return;
        }
        self.failed.fetch_add(1, Ordering::Relaxed);
        if error.is_unreachable() {
            self.ejection.failed(self.eject, now_ms);
        }
        self.note_error(error.to_string());
    }

    /// Records a timeout of a request's caller, which counts towards ejection.
    pub(crate) fn was_late(&self, now_ms: u64) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.ejection.failed(self.eject, now_ms);
        self.note_error("a request timed out while it waited for the response".to_owned());
    }

    /// Returns true once, for the caller that must log that its lines end without CR.
    pub(crate) fn tell_of_line_feeds(&self) -> bool {
        let told = &self.lenience_told;
        !told.load(Ordering::Relaxed) && !told.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn note_error(&self, text: String) {
        *self.last_error.lock() = Some((rt::now().unix_ms, text));
    }

    pub(crate) fn last_error(&self) -> Option<(u64, String)> {
        self.last_error.lock().clone()
    }

    /// Records the microseconds until the head of a response.
    pub(crate) fn waited(&self, us: u64) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.waited_us.fetch_add(us, Ordering::Relaxed);
    }

    /// The number of responses, and the sum of microseconds until their heads.
    pub(crate) fn answers(&self) -> (u64, u64) {
        (self.answers.load(Ordering::Relaxed), self.waited_us.load(Ordering::Relaxed))
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn failures_in_all(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns true if an exchange could begin without waiting.
    pub(crate) fn has_room(&self) -> bool {
        self.slots.as_ref().is_none_or(ExchangeSlots::has_room)
    }

    /// Waits for the permit of an exchange, for `holder`, over all cores, client by client in turn.
    pub(crate) async fn permit(
        self: &Arc<Self>,
        origin: &OriginConfig,
        holder: Option<Holder>,
        total: Deadline,
        counters: &Counters,
    ) -> Result<Permit, Error> {
        let Some(slots) = &self.slots else { return Ok(Permit::new(self, None)) };
        let Err(wait) = slots.take(holder) else { return Ok(Permit::new(self, Some(holder))) };
        counters.limit(if wait.by_share { Limit::OriginShare } else { Limit::OriginConnections });
        let _place = QueuedRequest::take(self, origin.queue)
            .ok_or_else(|| Error::QueueFull { server: Arc::clone(&self.name) })?;
        let patience = Deadline::new(TimeoutStep::Queue, Instant::now(), origin.queue_timeout_ms);
        let deadline = patience.or(total);
        timeout_at(deadline.at, wait.granted()).await.map_err(|_| self.deadline_error(deadline))?;
        Ok(Permit::new(self, Some(holder)))
    }
}

/// The version of HTTP for a server. A PROXY header is about one client, so its connections carry
/// the requests of one.
fn http_of(config: &ServerConfig, origin: &OriginConfig) -> HttpVersion {
    match origin.http {
        _ if config.protocol != Protocol::Http || origin.opening.proxy.is_some() => {
            HttpVersion::Http11
        }
        HttpVersion::Auto if !config.tls => HttpVersion::Http11,
        version => version,
    }
}

/// The TLS settings for a server.
fn peer(
    config: &ServerConfig,
    origin: &OriginConfig,
    offered: &[&str],
) -> Option<tls::UpstreamPeer> {
    let tls = origin.tls.as_ref().filter(|_| config.tls)?;
    match &config.address {
        Address::Tcp { host, .. } => stream::peer(tls, host, offered),
        // Only a server that the settings name.
        Address::Fixed { .. } => stream::peer(tls, "", offered),
        Address::Unix(_) => None,
    }
}

impl Terms for Server {
    fn idle_max(&self) -> usize {
        self.idle_max
    }

    fn idle_timeout_ms(&self) -> u64 {
        self.idle_timeout_ms
    }

    fn keeps_connections(&self) -> bool {
        !matches!(self.order(), HealthOverride::Drain | HealthOverride::Down)
    }

    fn is_at(&self, peer: SocketAddr) -> bool {
        self.answer.load().as_ref().is_none_or(|answer| answer.addresses.contains(&peer))
    }
}

/// A permit for one exchange with a server; dropping it admits the next request.
#[derive(Debug)]
pub(crate) struct Permit {
    server: Arc<Server>,
    /// The holder of its exchange slot; `None` without a slot.
    slot: Option<Option<Holder>>,
}

impl Permit {
    fn new(server: &Arc<Server>, slot: Option<Option<Holder>>) -> Self {
        server.in_flight.fetch_add(1, Ordering::Relaxed);
        server.requests.fetch_add(1, Ordering::Relaxed);
        Self { server: Arc::clone(server), slot }
    }

    /// Releases the slot for the next request; the exchange continues, and still counts as in
    /// progress.
    pub(crate) fn make_room(&mut self) {
        if let (Some(holder), Some(slots)) = (self.slot.take(), &self.server.slots) {
            slots.give_back(holder);
        }
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.server.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.make_room();
    }
}

/// The count of a request that waits.
struct QueuedRequest<'a>(&'a Server);

impl<'a> QueuedRequest<'a> {
    fn take(server: &'a Server, slots: u32) -> Option<Self> {
        let slot = Self(server);
        let before = server.waiting.fetch_add(1, Ordering::Relaxed);
        (before < slots).then_some(slot)
    }
}

impl Drop for QueuedRequest<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// FNV-1a: equal on every machine and in every version, as the spread over servers should be.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, b| {
        (hash ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use base::Limits;

    use super::*;

    fn answer(ports: &[u16]) -> Addresses {
        let addresses = ports.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port)));
        Addresses { addresses: addresses.collect(), in_order: false, failed: AtomicU64::new(0) }
    }

    fn ports(answer: &Addresses, start: usize) -> Vec<u16> {
        answer.order(start).map(|(_, address)| address.port()).collect()
    }

    #[test]
    fn a_socket_that_is_not_reserved_is_looked_at_again_after_a_while() {
        let folder = std::env::temp_dir().join(format!("larder-admitted-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let (admin, script) = (folder.join("admin.sock"), folder.join("script.sock"));
        let bind = |path| std::os::unix::net::UnixListener::bind(path).expect("a socket");
        let _listeners = [bind(&admin), bind(&script)];
        let url = format!("fastcgi+unix:{}", script.display());
        let config = crate::parse_server(&url).expect("a good URL");
        let mut origin = OriginConfig::with_limits("o", vec![config.clone()], &Limits::default());
        origin.reserved = Arc::new(ReservedAddresses::new([], vec![admin.clone()]));
        let server = Server::new(config, &origin);
        assert!(server.connect_socket(&script, 5).is_ok());
        std::fs::remove_file(&script).expect("removed");
        assert!(server.connect_socket(&script, 5 + ADMITTED_MS).is_err(), "nothing is there");
        std::os::unix::fs::symlink(&admin, &script).expect("a link");
        let refused = server.connect_socket(&script, 6 + ADMITTED_MS).expect_err("reserved");
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn addresses_take_turns() {
        let answer = answer(&[1, 2, 3]);
        assert_eq!(ports(&answer, 0), [1, 2, 3]);
        assert_eq!(ports(&answer, 4), [2, 3, 1]);
        assert_eq!(ports(&answer, usize::MAX).len(), 3);
    }

    #[test]
    fn an_address_that_failed_is_tried_last_until_it_connects() {
        let answer = answer(&[1, 2, 3]);
        answer.note(0, false);
        assert_eq!(ports(&answer, 0), [2, 3, 1]);
        answer.note(1, false);
        assert_eq!(ports(&answer, 0), [3, 1, 2]);
        answer.note(0, true);
        assert_eq!(ports(&answer, 0), [1, 3, 2]);
    }

    #[test]
    fn addresses_fixed_in_order_stay_in_it() {
        let answer = Addresses { in_order: true, ..answer(&[2, 1]) };
        answer.note(0, false);
        assert_eq!(ports(&answer, 1), [2, 1]);
    }

    fn server() -> Server {
        let config = crate::parse_server("http://127.0.0.1:80").expect("a good URL");
        let limits = base::Limits::default();
        let origin = OriginConfig::with_limits("o", vec![config.clone()], &limits);
        Server::new(config, &origin)
    }

    #[test]
    fn a_server_is_held_for_as_long_as_what_failed_says() {
        let server = server();
        let hold = HolddownTimes { local_ms: 100, remote_ms: 10 };
        assert!(server.held(hold, 1000).is_ok());
        let fails = |kind: io::ErrorKind| {
            let error = Error::Connect { server: server.name.clone(), source: kind.into() };
            server.note_unconnected(&error, 1000);
        };
        let held_at = |now_ms| server.held(hold, now_ms).is_err();
        for (kind, held_ms) in [
            (io::ErrorKind::PermissionDenied, 100),
            (io::ErrorKind::AddrNotAvailable, 100),
            (io::ErrorKind::ConnectionRefused, 10),
            (io::ErrorKind::NetworkUnreachable, 10),
        ] {
            fails(kind);
            assert!(held_at(1000) && held_at(1000 + held_ms - 1), "{kind}");
            assert!(!held_at(1000 + held_ms), "{kind}");
            assert!(server.held(HolddownTimes::default(), 1000).is_ok(), "{kind}");
        }
        assert_eq!(server.traffic.moved().held, 8);
        for kind in [io::ErrorKind::HostUnreachable, io::ErrorKind::TimedOut] {
            fails(kind);
            assert!(!held_at(1000), "{kind}");
        }
    }

    #[test]
    fn an_empty_answer_keeps_the_last_good_one() {
        let server = server();
        let known = server.addresses();
        assert_eq!(known.len(), 1);
        server.set_addresses(Vec::new());
        assert_eq!(server.addresses(), known);
        server.set_addresses((1..=1000).map(|port| SocketAddr::new(known[0].ip(), port)).collect());
        assert_eq!(server.addresses().len(), ADDRESSES);
    }
}
