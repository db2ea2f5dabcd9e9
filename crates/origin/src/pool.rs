//! One core's connections: idle ones by server, and the buffers that those under way work in.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::{Counter, Counters, Limits};
use h1::{HeadLimits, ResponseReader};

use crate::error::Error;
use crate::journal::Journal;
use crate::scripts::Lookups;
use crate::server::Server;
use crate::stream::Stream;
use crate::talk::{Reading, Talk};

/// Read buffer of a connection under way: large bodies arrive in few system calls.
const BUFFER_BYTES: usize = 64 << 10;

/// Buffers kept for the next exchanges; 4 MiB a core.
const SPARE_BUFFERS: usize = 64;

/// One core's connections to all origins. Not shared between threads; a clone is another handle to
/// the same.
#[derive(Clone)]
pub struct CorePool {
    pub(crate) core: Rc<Core>,
}

pub(crate) struct Core {
    pub(crate) counters: Arc<Counters>,
    pub(crate) head_limits: HeadLimits,
    pub(crate) trailer_bytes: usize,
    pub(crate) interim_responses: usize,
    pub(crate) spool_bytes: u64,
    pub(crate) script_lookups: usize,
    pub(crate) lookups: Lookups,
    stderr_bytes: usize,
    journal: Option<Arc<dyn Journal>>,
    buffer_bytes: usize,
    idle: RefCell<HashMap<usize, Kept>>,
    spare: RefCell<Vec<Parts>>,
    /// Buffers that no exchange has anything in.
    buffers: RefCell<Vec<Box<[u8]>>>,
}

/// Idle connections to one server, the latest used last.
struct Kept {
    server: Arc<Server>,
    connections: VecDeque<Idle>,
}

struct Idle {
    link: Link,
    since_ms: u64,
}

/// A connection, and the address it was made to.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) stream: Stream,
    pub(crate) peer: Option<SocketAddr>,
}

impl CorePool {
    /// A pool without connections. Response heads are held to `limits`; all that concerns one
    /// origin is in its own settings.
    pub fn new(counters: Arc<Counters>, limits: &Limits) -> Self {
        Self::with_journal(counters, limits, None)
    }

    /// As [`CorePool::new`]; what servers say besides responses goes to `journal`.
    pub fn with_journal(
        counters: Arc<Counters>,
        limits: &Limits,
        journal: Option<Arc<dyn Journal>>,
    ) -> Self {
        let head_limits = HeadLimits::of_origins(limits);
        let size = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            core: Rc::new(Core {
                counters,
                head_limits,
                trailer_bytes: size(limits.trailer_bytes),
                interim_responses: size(limits.interim_responses),
                spool_bytes: limits.spool_bytes,
                script_lookups: size(limits.script_lookups),
                lookups: Lookups::default(),
                stderr_bytes: size(limits.stderr_bytes),
                journal,
                // A head is parsed where it was read, so the largest one must fit.
                buffer_bytes: head_limits.head_bytes.max(BUFFER_BYTES),
                idle: RefCell::default(),
                spare: RefCell::default(),
                buffers: RefCell::default(),
            }),
        }
    }

    /// Closes connections idle for too long, closed by their server, or to an address its name no
    /// longer has. Called about once a second; `now_ms` is of the monotonic clock, as
    /// [`base::Now::mono_ms`].
    pub fn sweep(&self, now_ms: u64) {
        self.core.lookups.sweep(now_ms);
        self.core.idle.borrow_mut().retain(|_, kept| {
            let Kept { server, connections } = kept;
            connections.retain(|idle| idle.is_usable(server, now_ms));
            !connections.is_empty()
        });
    }

    /// How many connections are idle.
    pub fn idle_connections(&self) -> usize {
        self.core.idle.borrow().values().map(|kept| kept.connections.len()).sum()
    }
}

impl Core {
    /// The idle connection to `server` used last, if there is a good one.
    pub(crate) fn checkout(&self, server: &Arc<Server>, now_ms: u64) -> Option<Link> {
        let mut idle = self.idle.borrow_mut();
        let kept = idle.get_mut(&key(server))?;
        while let Some(latest) = kept.connections.pop_back() {
            if latest.is_usable(server, now_ms) {
                return Some(latest.link);
            }
        }
        None
    }

    /// Keeps a connection for the next request. The caller has seen its exchange end cleanly.
    pub(crate) fn checkin(&self, server: &Arc<Server>, link: Link, now_ms: u64) {
        if server.idle_max == 0 {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let kept = idle
            .entry(key(server))
            .or_insert_with(|| Kept { server: Arc::clone(server), connections: VecDeque::new() });
        if kept.connections.len() >= server.idle_max {
            kept.connections.pop_front();
        }
        kept.connections.push_back(Idle { link, since_ms: now_ms });
        self.counters.inc(Counter::OriginKept);
    }

    /// What reading a script's response from `server` needs to know.
    pub(crate) fn reading<'a>(&self, server: &'a Arc<str>) -> Reading<'a> {
        let HeadLimits { head_bytes, field_bytes, field_count, tag_bytes, .. } = self.head_limits;
        Reading {
            server,
            limits: fastcgi::HeadLimits { head_bytes, field_bytes, field_count, tag_bytes },
            stderr_bytes: self.stderr_bytes,
        }
    }

    /// Notes a head of `server` with lines that ended without CR.
    pub(crate) fn note_line_feeds(&self, server: &Server) {
        self.counters.inc(Counter::OriginLineFeeds);
        if server.tell_of_line_feeds()
            && let Some(journal) = &self.journal
        {
            journal.line_feeds(&server.name);
        }
    }

    /// Notes an exchange that gave no usable response. The client's failures are counted where it
    /// is served.
    pub(crate) fn note_failure(&self, error: &Error) {
        if !matches!(error, Error::RequestBody(_)) {
            self.counters.inc(Counter::FetchFailures);
        }
        if let Some(limit) = error.limit() {
            self.counters.limit(limit);
        }
    }
}

/// Identifies a server while it is in the map, whose entry keeps it alive.
fn key(server: &Arc<Server>) -> usize {
    Arc::as_ptr(server).addr()
}

impl Idle {
    fn is_usable(&self, server: &Server, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.since_ms) < server.idle_timeout_ms
            && server.keeps_connections()
            && self.link.peer.is_none_or(|peer| server.is_at(peer))
            && self.link.stream.is_quiet()
    }
}

/// What an exchange works in, lent by its core and given back when it is dropped.
pub(crate) struct Workspace {
    core: Rc<Core>,
    parts: Parts,
}

/// Memory that outlives exchanges.
#[derive(Default)]
pub(crate) struct Parts {
    /// Bytes read; those in use are `start..end`. None as long as there are none: who waits for a
    /// server holds no buffer.
    pub(crate) bytes: Box<[u8]>,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Head and chunk lines to be written.
    pub(crate) out: Vec<u8>,
    pub(crate) reader: ResponseReader,
    /// The same for a response of FastCGI.
    pub(crate) talk: Talk,
}

impl Workspace {
    pub(crate) fn lend(core: &Rc<Core>) -> Self {
        let spare = core.spare.borrow_mut().pop();
        Self { core: Rc::clone(core), parts: spare.unwrap_or_default() }
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.core
    }

    /// Reads once, at most `most` bytes, behind what is unread; 0 at the end.
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

    /// Gives the buffer back when nothing unread is in it.
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

    /// Makes room to read into: by taking a buffer, by moving what is unread to the front, and when
    /// that fills everything, as only a head with many surrogate keys can, by growing.
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

impl Parts {
    /// The bytes read and not yet used.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Moves what is unread to the front, so that all the rest can be read into.
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
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl DerefMut for Workspace {
    fn deref_mut(&mut self) -> &mut Parts {
        &mut self.parts
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Some(journal) = &self.core.journal
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
            pool.core.checkin(&server, Link { stream, peer: Some(here) }, 0);
            let stays = addresses.contains(&here);
            server.set_addresses(addresses);
            assert_eq!(pool.core.checkout(&server, 0).is_some(), stays);
        }
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
