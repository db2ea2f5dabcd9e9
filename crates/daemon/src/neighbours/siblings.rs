//! Siblings: neighbours that are asked whether they have what is missing here: one socket for each,
//! over which questions (HTCP's TST) and answers pass, and the origin for the fetch.
//!
//! A neighbour is asked only while it has confirmed every invalidation.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use flow::invalidate::htcp::{self, DATAGRAM_BYTES};
use flow::siblings::{Sibling, SiblingPort, SiblingQuestion};
use origin::{Origin, OriginConfig};
use parking_lot::Mutex;
use tokio::net::UdpSocket;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use super::queue::{InvalidationQueue, own_address};
use crate::managed_origin::{ManagedOrigin, keep_running, tend};

/// Unanswered questions in a row after which a neighbour is not asked for a while.
const SILENT: u32 = 5;
/// That while, in milliseconds.
const LEFT_ALONE_MS: u64 = 10_000;
/// The pause before the next attempt to open a socket.
const AGAIN: Duration = Duration::from_secs(1);

/// A neighbour that is asked.
pub(super) struct SiblingNeighbour {
    port: Arc<AskPort>,
    way: ManagedOrigin,
    /// The settings that the origin was made from.
    config: OriginConfig,
    work: JoinHandle<()>,
}

impl Drop for SiblingNeighbour {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl SiblingNeighbour {
    /// The neighbour of `queue`, which answers at `address`; `config` is the origin to fetch from.
    pub(super) fn begin(
        queue: &Arc<InvalidationQueue>,
        address: SocketAddr,
        config: &OriginConfig,
    ) -> Arc<Self> {
        // A failing sibling is left alone for a while; the origin is asked instead.
        let own = OriginConfig {
            name: format!("sibling {}", config.name),
            retries: 0,
            client_share_percent: 100,
            ..config.clone()
        };
        let way = tend(Origin::new(own), &queue.shared);
        let port = Arc::new(AskPort::new(Arc::clone(queue), address));
        let own = Arc::clone(&port);
        let work = keep_running(&queue.shared, move || Arc::clone(&own).serve());
        Arc::new(Self { port, way, config: config.clone(), work })
    }

    /// Returns true if [`SiblingNeighbour::begin`] would begin an equal one.
    pub(super) fn is(&self, queue: &Arc<InvalidationQueue>, config: &OriginConfig) -> bool {
        Arc::ptr_eq(&self.port.queue, queue) && self.config == *config
    }

    /// The sibling, as requests ask it.
    pub(super) fn sibling(&self) -> Sibling {
        Sibling {
            origin: Arc::clone(&self.way.origin),
            sites: self.port.queue.profile.sites.clone(),
            port: Arc::clone(&self.port) as Arc<dyn SiblingPort>,
        }
    }
}

/// The port for questions to one neighbour.
struct AskPort {
    queue: Arc<InvalidationQueue>,
    address: SocketAddr,
    /// The socket, connected to that address; `None` while it cannot be opened.
    socket: ArcSwapOption<UdpSocket>,
    /// The socket has failed.
    is_broken: Notify,
    /// Pending questions, by transaction number.
    pending: Mutex<HashMap<u32, oneshot::Sender<bool>>>,
    silence: AskSilence,
}

impl fmt::Debug for AskPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AskPort({})", self.address)
    }
}

impl AskPort {
    fn new(queue: Arc<InvalidationQueue>, address: SocketAddr) -> Self {
        Self {
            queue,
            address,
            socket: ArcSwapOption::empty(),
            is_broken: Notify::new(),
            pending: Mutex::default(),
            silence: AskSilence::default(),
        }
    }

    /// Receives answers until the neighbour is dropped.
    async fn serve(self: Arc<Self>) {
        let mut is_said = false;
        loop {
            match open(self.address).await {
                Ok(socket) => {
                    is_said = false;
                    let socket = Arc::new(socket);
                    self.socket.store(Some(Arc::clone(&socket)));
                    tokio::select! {
                        () = self.take(&socket) => {}
                        () = self.is_broken.notified() => {}
                    }
                    self.socket.store(None);
                    self.pending.lock().clear();
                }
                Err(error) if !is_said => {
                    is_said = true;
                    base::tell!(
                        Warn,
                        "larder: neighbour {} cannot be queried: {error}",
                        self.queue
                    );
                }
                Err(_) => {}
            }
            rt::time::sleep(AGAIN).await;
        }
    }

    /// Receives answers until the socket fails.
    async fn take(&self, socket: &UdpSocket) {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        loop {
            match socket.recv(&mut buffer).await {
                Ok(len) => {
                    let Some((of, has)) = htcp::tested(&buffer[..len]) else { continue };
                    let Some(answer) = self.pending.lock().remove(&of) else { continue };
                    self.silence.was_heard();
                    // The receiver may be gone.
                    _ = answer.send(has);
                }
                // No process listens there: waiting would be in vain.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.pending.lock().clear();
                    self.was_silent();
                }
                Err(_) => return,
            }
        }
    }
}

impl SiblingPort for AskPort {
    fn trusted_since(&self) -> Option<u64> {
        let is_told = self.queue.left.load(Ordering::Acquire) == 0;
        let is_open = is_told && self.silence.is_open(rt::now().mono_ms);
        is_open.then(|| self.queue.missed_ms.load(Ordering::Acquire))
    }

    fn ask(&self, question: &SiblingQuestion<'_>, answer: oneshot::Sender<bool>) -> Option<u32> {
        let socket = self.socket.load_full()?;
        // An attacker that does not see the number cannot guess it.
        let number = fastrand::u32(..);
        let datagram = htcp::test(b"GET", question.url, question.fields, number)?;
        self.pending.lock().insert(number, answer);
        let mut sent = socket.try_send(&datagram);
        if matches!(&sent, Err(error) if error.kind() == ErrorKind::ConnectionRefused) {
            // The error belongs to an earlier datagram.
            sent = socket.try_send(&datagram);
        }
        let Err(error) = sent else { return Some(number) };
        self.forget(number);
        if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) {
            self.is_broken.notify_one();
        }
        None
    }

    fn forget(&self, number: u32) {
        self.pending.lock().remove(&number);
    }

    fn was_silent(&self) {
        self.silence.was_missed(rt::now().mono_ms);
    }
}

/// Opens a socket for datagrams to and from `address`.
async fn open(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(own_address(address)).await?;
    socket.connect(address).await?;
    socket.writable().await?;
    Ok(socket)
}

/// Unanswered questions in a row.
#[derive(Debug, Default)]
struct AskSilence {
    missed: AtomicU32,
    /// Monotonic milliseconds until which the neighbour is not asked.
    until_ms: AtomicU64,
}

impl AskSilence {
    fn is_open(&self, now_ms: u64) -> bool {
        now_ms >= self.until_ms.load(Ordering::Relaxed)
    }

    fn was_heard(&self) {
        self.missed.store(0, Ordering::Relaxed);
        self.until_ms.store(0, Ordering::Relaxed);
    }

    fn was_missed(&self, now_ms: u64) {
        if self.missed.fetch_add(1, Ordering::Relaxed).saturating_add(1) >= SILENT {
            self.until_ms.store(now_ms + LEFT_ALONE_MS, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_is_left_alone_and_one_answer_ends_that() {
        let silence = AskSilence::default();
        for _ in 1..SILENT {
            silence.was_missed(100);
            assert!(silence.is_open(100));
        }
        silence.was_missed(100);
        assert!(!silence.is_open(100) && !silence.is_open(99 + LEFT_ALONE_MS));
        assert!(silence.is_open(100 + LEFT_ALONE_MS), "it is tried again");
        silence.was_missed(100 + LEFT_ALONE_MS);
        assert!(!silence.is_open(100 + LEFT_ALONE_MS), "once");
        silence.was_heard();
        assert!(silence.is_open(100 + LEFT_ALONE_MS));
        silence.was_missed(100);
        assert!(silence.is_open(100), "it counts anew");
    }
}
