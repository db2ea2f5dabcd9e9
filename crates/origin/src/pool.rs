//! Pool of one core: idle connections by server, and the buffers of exchanges. A connection whose
//! state is uncertain must never return to it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Counter, Counters, Limit, Limits};
use h1::{HeadLimits, ResponseReader};
use h2::ClientSettings;
use message::Request;

use crate::config::ScriptsConfig;
use crate::fastcgi_exchange::{FastCgiContext, FastCgiResponse};
use crate::multiplex::{Checkout, MultiplexPool};
use crate::origin::Origin;
use crate::owner::Owner;
use crate::scripts::{ResolvedScript, ScriptPaths};
use crate::server::Server;
use crate::shared_pool::{EndpointPool, IdleConnections, SharedPool};
use crate::spool::SpoolLimits;
use crate::stream::{IdleCheck, Stream};
use crate::upstream_connection::UpstreamConnection;

/// Size of an exchange's read buffer: large bodies arrive in few system calls.
const BUFFER_BYTES: usize = 64 << 10;

/// Buffers kept for later exchanges; 4 MiB per core.
const SPARE_BUFFERS: usize = 64;

/// One core's connections to all origins. Not shared between threads; a clone is another handle to
/// the pool.
#[derive(Clone)]
pub struct CorePool {
    pub(crate) core: Rc<CorePoolState>,
}

pub(crate) struct CorePoolState {
    pub(crate) counters: Arc<Counters>,
    pub(crate) head_limits: HeadLimits,
    pub(crate) trailer_bytes: usize,
    pub(crate) interim_responses: usize,
    pub(crate) spooling: SpoolLimits,
    script_lookups: usize,
    lookups: ScriptPaths,
    stderr_bytes: usize,
    buffer_bytes: usize,
    shared_pool: Arc<SharedPool>,
    kept: Rc<RefCell<HashMap<usize, CoreIdlePool>>>,
    multiplexed: Rc<MultiplexPool>,
    pub(crate) stream_settings: ClientSettings,
    /// The time that a server may be silent while streams wait.
    pub(crate) silence_ms: u64,
    spare: RefCell<Vec<WorkspaceBuffers>>,
    /// Unused buffers.
    buffers: RefCell<Vec<Box<[u8]>>>,
}

/// Connections that pools with other limits share.
#[derive(Default)]
struct KeptConnections {
    idle: Rc<RefCell<HashMap<usize, CoreIdlePool>>>,
    multiplexed: Rc<MultiplexPool>,
}

/// This core's idle connections to one endpoint.
struct CoreIdlePool {
    /// Keeps the address that is its key from being reused.
    _endpoint: Arc<EndpointPool>,
    idle: Arc<IdleConnections>,
}

impl CorePool {
    /// A pool without connections, not shared with other cores. Response heads are limited by
    /// `limits`; everything about an origin is in its own settings.
    pub fn new(counters: Arc<Counters>, limits: &Limits) -> Self {
        Self::with_shared_pool(Arc::default(), counters, limits)
    }

    /// As [`CorePool::new`], with idle connections shared among all pools of `shared_pool`.
    pub fn with_shared_pool(
        shared_pool: Arc<SharedPool>,
        counters: Arc<Counters>,
        limits: &Limits,
    ) -> Self {
        let kept = KeptConnections::default();
        Self { core: Rc::new(CorePoolState::new(shared_pool, counters, limits, kept)) }
    }

    /// A handle to this pool with other limits. Exchanges in progress keep their limits.
    #[must_use]
    pub fn with_limits(&self, limits: &Limits) -> Self {
        let CorePoolState { counters, shared_pool, kept, multiplexed, .. } = &*self.core;
        let (shared_pool, counters) = (Arc::clone(shared_pool), Arc::clone(counters));
        let kept = KeptConnections { idle: Rc::clone(kept), multiplexed: Rc::clone(multiplexed) };
        Self { core: Rc::new(CorePoolState::new(shared_pool, counters, limits, kept)) }
    }

    /// Closes connections that were idle for too long, that their server has closed, or whose
    /// address its name no longer has. Called about once a second; `now_ms` is
    /// [`base::Now::mono_ms`].
    pub fn sweep(&self, now_ms: u64) {
        self.core.lookups.sweep(now_ms);
        self.core.multiplexed.sweep(now_ms, &self.core.counters);
        self.core.kept.borrow_mut().retain(|_, kept| {
            let swept = kept.idle.sweep(now_ms);
            (0..swept.late).for_each(|_| self.core.counters.limit(Limit::OriginIdleTimeout));
            swept.left > 0
        });
    }

    /// The number of idle connections.
    pub fn idle_connections(&self) -> usize {
        let idle: usize = self.core.kept.borrow().values().map(|kept| kept.idle.len()).sum();
        idle + self.core.multiplexed.idle_connections()
    }
}

impl CorePoolState {
    fn new(
        shared_pool: Arc<SharedPool>,
        counters: Arc<Counters>,
        limits: &Limits,
        kept: KeptConnections,
    ) -> Self {
        let KeptConnections { idle: kept, multiplexed } = kept;
        let head_limits = HeadLimits::of_origins(limits);
        let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            counters,
            head_limits,
            trailer_bytes: size(limits.trailer_bytes),
            interim_responses: size(limits.interim_responses),
            spooling: SpoolLimits::new(limits, Arc::clone(shared_pool.space())),
            script_lookups: size(limits.script_lookups),
            lookups: ScriptPaths::default(),
            stderr_bytes: size(limits.stderr_bytes),
            // A head is parsed in the buffer, so the largest one must fit.
            buffer_bytes: head_limits.head_bytes.max(BUFFER_BYTES),
            shared_pool,
            kept,
            multiplexed,
            stream_settings: ClientSettings::from(limits),
            silence_ms: limits.origin_h2_silence,
            spare: RefCell::default(),
            buffers: RefCell::default(),
        }
    }

    /// The most recently used idle connection to `server`: one of `owner`, or else one without an
    /// owner, of this core or else of another.
    pub(crate) fn checkout(
        &self,
        server: &Arc<Server>,
        now_ms: u64,
        look: IdleCheck,
        owner: Option<&Owner>,
    ) -> Option<UpstreamConnection> {
        if server.idle_max == 0 {
            return None;
        }
        let endpoint = server.endpoint(&self.shared_pool);
        let kept = self.kept.borrow();
        let own = kept.get(&key(endpoint)).and_then(|kept| {
            let owned = owner.and_then(|owner| kept.idle.take_owned(&**server, now_ms, owner));
            owned.or_else(|| kept.idle.take(&**server, now_ms, look, |_| true))
        });
        own.or_else(|| endpoint.take_over(&**server, now_ms))
    }

    /// A multiplexed connection to `server`, or the task to open one.
    pub(crate) async fn checkout_multiplexed(&self, server: &Arc<Server>) -> Checkout {
        self.multiplexed.checkout(server.endpoint(&self.shared_pool), server, &self.counters).await
    }

    /// Returns true if `owner` has an idle connection to `server`.
    pub(crate) fn has_owned(&self, server: &Arc<Server>, owner: &Owner) -> bool {
        let endpoint = server.endpoint(&self.shared_pool);
        self.kept.borrow().get(&key(endpoint)).is_some_and(|kept| kept.idle.has_owned(owner))
    }

    /// Returns a connection to the pool. Its exchange must have ended cleanly.
    pub(crate) fn checkin(&self, server: &Arc<Server>, link: UpstreamConnection, now_ms: u64) {
        if server.idle_max == 0 {
            return;
        }
        let endpoint = server.endpoint(&self.shared_pool);
        let mut kept = self.kept.borrow_mut();
        let kept = kept.entry(key(endpoint)).or_insert_with(|| CoreIdlePool {
            idle: endpoint.new_list(),
            _endpoint: Arc::clone(endpoint),
        });
        if kept.idle.put(Arc::<Server>::clone(server), link, now_ms) {
            self.counters.limit(Limit::OriginIdle);
        }
        self.counters.inc(Counter::OriginKept);
    }

    /// Resolves the script or file of `origin` that `request` addresses.
    pub(crate) async fn look_up(
        &self,
        origin: &Arc<Origin>,
        scripts: &ScriptsConfig,
        request: &Request,
    ) -> Rc<ResolvedScript> {
        let (now_ms, most) = (rt::now().mono_ms, self.script_lookups);
        self.lookups.find(origin, scripts, request, now_ms, most, &self.counters).await
    }

    /// The context for reading a script's response from `server`.
    pub(crate) fn reading<'a>(&self, server: &'a Arc<str>) -> FastCgiContext<'a> {
        let HeadLimits { head_bytes, field_bytes, field_count, tag_bytes, .. } = self.head_limits;
        FastCgiContext {
            server,
            limits: fastcgi::HeadLimits { head_bytes, field_bytes, field_count, tag_bytes },
            stderr_bytes: self.stderr_bytes,
        }
    }

    /// Records that `server` sent a head with line ends without CR.
    pub(crate) fn note_line_feeds(&self, server: &Server) {
        self.counters.inc(Counter::OriginLineFeeds);
        if server.tell_of_line_feeds()
            && let Some(journal) = self.shared_pool.journal()
        {
            journal.line_feeds(&server.name);
        }
    }
}

/// The key of an endpoint's pool, valid while its map entry keeps it alive.
fn key(endpoint: &Arc<EndpointPool>) -> usize {
    Arc::as_ptr(endpoint).addr()
}

/// An exchange's working memory, lent by its core and returned when dropped.
pub(crate) struct Workspace {
    core: Rc<CorePoolState>,
    parts: WorkspaceBuffers,
}

/// Memory that outlives exchanges.
#[derive(Default)]
pub(crate) struct WorkspaceBuffers {
    /// Read bytes; those in use are `start..end`. Empty while there are none: a waiting request
    /// holds no buffer.
    pub(crate) bytes: Box<[u8]>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Head and chunk lines to be written.
    pub(crate) out: Vec<u8>,
    pub(crate) reader: ResponseReader,
    /// State of a FastCGI response.
    pub(crate) talk: FastCgiResponse,
}

impl Workspace {
    pub(crate) fn lend(core: &Rc<CorePoolState>) -> Self {
        let spare = core.spare.borrow_mut().pop();
        Self { core: Rc::clone(core), parts: spare.unwrap_or_default() }
    }

    pub(crate) fn core(&self) -> &Rc<CorePoolState> {
        &self.core
    }

    /// Reads once, at most `most` bytes, behind the unread bytes; 0 at the end.
    pub(crate) fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        let Self { core, parts } = self;
        let to = parts.bytes.len().min(parts.end.saturating_add(most));
        let read = stream.poll_read(cx, &mut parts.bytes[parts.end..to]);
        if let Poll::Ready(Ok(read)) = &read {
            parts.end += read;
            core.counters.add(Counter::OriginBytesIn, *read as u64);
        }
        self.rest();
        read
    }

    /// Returns the buffer if it has no unread bytes.
    pub(crate) fn rest(&mut self) {
        let Self { core, parts } = self;
        if parts.unread().is_empty() && !parts.bytes.is_empty() {
            (parts.start, parts.end) = (0, 0);
            let mut buffers = core.buffers.borrow_mut();
            let buffer = std::mem::take(&mut parts.bytes);
            if buffers.len() < SPARE_BUFFERS && buffer.len() <= core.buffer_bytes {
                buffers.push(buffer);
            }
        }
    }

    /// Makes space to read into: takes a buffer, moves the unread bytes to the front, or grows the
    /// buffer if they fill it, which only a head with many surrogate keys can do.
    fn make_room(&mut self) {
        let Self { core, parts } = self;
        if parts.bytes.is_empty() {
            let spare = core.buffers.borrow_mut().pop();
            parts.bytes = spare.unwrap_or_else(|| vec![0; core.buffer_bytes].into_boxed_slice());
        }
        parts.compact();
        let HeadLimits { head_bytes, tag_bytes, .. } = core.head_limits;
        let (full, most) = (parts.bytes.len(), head_bytes.saturating_add(tag_bytes));
        if parts.end == full && full < most {
            let mut bytes = std::mem::take(&mut parts.bytes).into_vec();
            bytes.resize(most.min(2 * full), 0);
            parts.bytes = bytes.into_boxed_slice();
        }
    }
}

impl WorkspaceBuffers {
    /// The bytes read and not yet used.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Moves the unread bytes to the front.
    fn compact(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
    }

    fn reset(&mut self) {
        self.start = 0;
        self.end = 0;
        self.out.clear();
        self.reader.reset();
        self.talk.reset();
    }
}

impl Deref for Workspace {
    type Target = WorkspaceBuffers;

    fn deref(&self) -> &WorkspaceBuffers {
        &self.parts
    }
}

impl DerefMut for Workspace {
    fn deref_mut(&mut self) -> &mut WorkspaceBuffers {
        &mut self.parts
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if self.parts.talk.has_dropped() {
            self.core.counters.limit(Limit::StderrBytes);
        }
        if let Some(journal) = self.core.shared_pool.journal()
            && let Some(said) = self.parts.talk.said()
        {
            journal.said(&said);
        }
        self.parts.start = self.parts.end;
        self.rest();
        let mut spare = self.core.spare.borrow_mut();
        if spare.len() < SPARE_BUFFERS {
            let mut parts = std::mem::take(&mut self.parts);
            parts.reset();
            spare.push(parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::SocketAddr;

    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::config::OriginConfig;

    fn server(url: &str) -> Arc<Server> {
        let config = crate::parse_server(url).expect("a good URL");
        let origin = OriginConfig::with_limits("o", vec![config.clone()], &Limits::default());
        Arc::new(Server::new(config, &origin))
    }

    #[tokio::test]
    async fn a_connection_to_an_address_the_name_no_longer_has_is_not_used() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let here = listener.local_addr().expect("an address");
        let elsewhere = SocketAddr::from(([10, 0, 0, 1], here.port()));
        let pool = CorePool::new(Arc::default(), &Limits::default());
        let server = server("http://app.example");
        for addresses in [vec![elsewhere, here], vec![elsewhere]] {
            server.set_addresses(vec![here]);
            let stream = Stream::connect_tcp(here).await.expect("a connection");
            pool.core.checkin(&server, UpstreamConnection::new(stream, Some(here)), 0);
            let stays = addresses.contains(&here);
            server.set_addresses(addresses);
            assert_eq!(pool.core.checkout(&server, 0, IdleCheck::Sure, None).is_some(), stays);
        }
    }

    #[tokio::test]
    async fn what_is_idle_is_kept_by_address_for_whoever_asks_on_any_core() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let here = listener.local_addr().expect("an address");
        let shared_pool = Arc::<SharedPool>::default();
        let limits = Limits::default();
        let pool = || CorePool::with_shared_pool(Arc::clone(&shared_pool), Arc::default(), &limits);
        let (pools, url) = ([pool(), pool()], format!("http://{here}"));
        let stream = Stream::connect_tcp(here).await.expect("a connection");
        pools[0].core.checkin(&server(&url), UpstreamConnection::new(stream, Some(here)), 0);
        // Another origin on another core, after a change of the limits.
        let later = pools[0].with_limits(&Limits { header_bytes: 4096, ..Limits::default() });
        let link =
            later.core.checkout(&server(&url), 0, IdleCheck::Sure, None).expect("it is kept");
        later.core.checkin(&server(&url), link, 0);
        let fastcgi = server(&url.replace("http", "fastcgi"));
        assert!(
            pools[1].core.checkout(&fastcgi, 0, IdleCheck::Sure, None).is_none(),
            "that is another language"
        );
        let taken = pools[1]
            .core
            .checkout(&server(&url), 0, IdleCheck::Sure, None)
            .expect("the other core's");
        assert!(pools[0].core.checkout(&server(&url), 0, IdleCheck::Sure, None).is_none());
        pools[1].core.checkin(&server(&url), taken, 0);
        assert_eq!([&pools[0], &pools[1]].map(|pool| pool.idle_connections()), [0, 1]);
    }

    #[tokio::test]
    async fn buffers_are_lent_again_and_come_back_empty() {
        let pool = CorePool::new(Arc::default(), &Limits::default());
        let mut work = Workspace::lend(&pool.core);
        let (near, mut far) = tokio::net::UnixStream::pair().expect("sockets");
        let mut stream = Stream::Unix(near);
        let mut read = async |work: &mut Workspace| {
            poll_fn(|cx| work.poll_fill(cx, &mut stream, 5)).await.expect("bytes")
        };
        far.write_all(b"too many").await.expect("sent");
        assert_eq!(read(&mut work).await, 5);
        assert_eq!(work.unread(), b"too m");
        work.rest();
        assert_eq!(work.unread(), b"too m", "in use");
        work.out.extend_from_slice(b"GET");
        let at = work.bytes.as_ptr();
        drop(work);
        let mut work = Workspace::lend(&pool.core);
        assert!(work.bytes.is_empty() && work.out.is_empty());
        assert_eq!(read(&mut work).await, 3);
        assert_eq!((work.unread(), work.bytes.as_ptr()), (&b"any"[..], at));
    }
}
