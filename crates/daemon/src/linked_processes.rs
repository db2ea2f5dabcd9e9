//! Linked processes: the one that this process has replaced, and the one that replaces it. While
//! both serve connections, an invalidation in one of them takes effect in the other, too, before
//! it is answered.
//!
//! Each side carries out what the other sends as its own, so that it goes on to its journal, its
//! cluster and further links. Invalidations have identities, so what comes back does nothing.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::os::unix::net::UnixStream as BlockingStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::{Counters, Limit};
use flow::SharedState;
use flow::invalidate::{
    Cause, Invalidation, InvalidationError, InvalidationSource, Level, PeerCaches,
    PreparedPropagation, Propagation,
};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use crate::handover::{HandoverMessage, frame, take_frame};

/// The longest wait for another process's answer: its own cluster may be slow.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason why an invalidation cannot be promised.
const UNRECORDED: &str = "the process that has the disk cache is gone: after the next start, the \
                          disk may have what was purged here";

/// Bytes of one read.
const CHUNK: usize = 16 << 10;

/// The processes that share this one's sockets, or have shared them.
pub(crate) struct LinkedProcesses {
    shared: Arc<SharedState>,
    counters: Arc<Counters>,
    links: Mutex<Vec<Arc<Link>>>,
}

/// Another process.
struct Link {
    shared: Arc<SharedState>,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    next: AtomicU64,
    /// The waiters for each invalidation that was not answered yet.
    unanswered: Mutex<HashMap<u64, Vec<Waiter>>>,
    is_closed: AtomicBool,
}

/// The receiver of an answer, which is empty or a failure. If it is dropped, the process is gone.
type Waiter = oneshot::Sender<String>;

impl LinkedProcesses {
    /// No process yet.
    pub(crate) fn new(shared: &Arc<SharedState>) -> Arc<Self> {
        let (shared, counters) = (Arc::clone(shared), shared.counters.register());
        Arc::new(Self { shared, counters, links: Mutex::default() })
    }

    /// Counts a limit of upgrades that was reached.
    pub(crate) fn count(&self, limit: Limit) {
        self.counters.limit(limit);
    }

    /// Adds the process behind `socket`, from which `received` came already. Messages that are not
    /// about invalidations arrive in the link's queue, which ends with that process. Call within
    /// the helper runtime.
    ///
    /// # Errors
    /// The socket cannot be used.
    pub(crate) fn add(
        self: &Arc<Self>,
        socket: BlockingStream,
        received: Vec<u8>,
    ) -> io::Result<ProcessLink> {
        let (incoming, sink) = UnixStream::from_std(socket)?.into_split();
        let (outgoing, queue) = mpsc::unbounded_channel();
        let (events, messages) = mpsc::unbounded_channel();
        let link = Arc::new(Link {
            shared: Arc::clone(&self.shared),
            outgoing,
            next: AtomicU64::new(0),
            unanswered: Mutex::default(),
            is_closed: AtomicBool::new(false),
        });
        self.links.lock().push(Arc::clone(&link));
        let (all, own) = (Arc::downgrade(self), Arc::clone(&link));
        rt::spawn(write_all(queue, sink));
        rt::spawn(async move {
            // The end of the other process ends the link, however it comes.
            _ = own.read_all(incoming, received, events).await;
            own.close(&all);
        });
        Ok(ProcessLink { link, messages })
    }
}

/// The link to a process, for messages that are not about invalidations.
pub(crate) struct ProcessLink {
    link: Arc<Link>,
    messages: mpsc::UnboundedReceiver<HandoverMessage>,
}

impl ProcessLink {
    pub(crate) fn send(&self, message: &HandoverMessage) {
        self.link.send(message);
    }

    /// The next message; `None` if the process is gone.
    pub(crate) async fn receive(&mut self) -> Option<HandoverMessage> {
        self.messages.recv().await
    }
}

/// Writes messages until the link is closed.
async fn write_all(mut queue: mpsc::UnboundedReceiver<Vec<u8>>, mut sink: OwnedWriteHalf) {
    while let Some(bytes) = queue.recv().await {
        if sink.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

impl Link {
    fn send(&self, message: &HandoverMessage) {
        // A writer that has ended is followed by the reader, which closes the link.
        _ = self.outgoing.send(frame(message));
    }

    async fn read_all(
        self: &Arc<Self>,
        mut incoming: OwnedReadHalf,
        mut received: Vec<u8>,
        events: mpsc::UnboundedSender<HandoverMessage>,
    ) -> io::Result<()> {
        let mut chunk = [0; CHUNK];
        loop {
            while let Some(message) = take_frame(&mut received)? {
                match message {
                    HandoverMessage::Purge { number, record } => {
                        // In a task of its own: it may wait for an answer over this very link.
                        let link = Arc::clone(self);
                        rt::spawn(async move {
                            let failure = link.carry_out(&record).await.err().unwrap_or_default();
                            link.send(&HandoverMessage::Purged { number, failure });
                        });
                    }
                    HandoverMessage::Purged { number, failure } => {
                        let waiters = self.unanswered.lock().remove(&number);
                        for waiter in waiters.into_iter().flatten() {
                            _ = waiter.send(failure.clone());
                        }
                    }
                    other => _ = events.send(other),
                }
            }
            let length = incoming.read(&mut chunk).await?;
            if length == 0 {
                return Ok(());
            }
            received.extend_from_slice(&chunk[..length]);
        }
    }

    /// Carries out an invalidation of the other process, which has told neighbours itself.
    async fn carry_out(&self, record: &[u8]) -> Result<(), String> {
        let told = Invalidation::decode(record).map_err(|why| why.to_string())?;
        let cause = Cause { heard: InvalidationSource::Neighbour, ..Cause::default() };
        let told = told.by(cause);
        match self.shared.invalidator.invalidate(None, [told], rt::now(), 0).await {
            // Nothing is stored of a site that is not configured here.
            Ok(_) | Err(InvalidationError::NoSite(_)) => Ok(()),
            Err(why) => Err(why.to_string()),
        }
    }

    fn close(&self, all: &Weak<LinkedProcesses>) {
        self.is_closed.store(true, Ordering::Release);
        if let Some(all) = all.upgrade() {
            all.links.lock().retain(|link| !std::ptr::eq(&**link, self));
        }
        self.unanswered.lock().clear();
    }

    /// Sends an invalidation; returns the receiver of its answer.
    fn tell(&self, record: Vec<u8>) -> oneshot::Receiver<String> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (waiter, answer) = oneshot::channel();
        self.unanswered.lock().insert(number, vec![waiter]);
        self.send(&HandoverMessage::Purge { number, record });
        if self.is_closed.load(Ordering::Acquire) {
            self.unanswered.lock().clear();
        }
        answer
    }
}

impl PeerCaches for LinkedProcesses {
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String> {
        let links = self.links.lock().clone();
        if links.is_empty() {
            return match self.shared.cache.lower().is_recorded_elsewhere() {
                true => Err(UNRECORDED.to_owned()),
                false => Ok(None),
            };
        }
        let most = self.shared.live().limits.upgrade_queue;
        if links.iter().any(|link| link.unanswered.lock().len() as u64 >= most) {
            self.counters.limit(Limit::UpgradeQueue);
            let limit = Limit::UpgradeQueue.name();
            return Err(format!(
                "the other process of an upgrade does not answer (limit: {limit})"
            ));
        }
        let records = batch.iter().map(|invalidation| invalidation.encode()).collect();
        let shared = Arc::clone(&self.shared);
        Ok(Some(Box::new(PreparedRecords { shared, links, records })))
    }

    fn outstanding(&self) -> Option<Box<dyn Propagation>> {
        let mut answers = Vec::new();
        for link in self.links.lock().iter() {
            for waiters in link.unanswered.lock().values_mut() {
                let (waiter, answer) = oneshot::channel();
                waiters.push(waiter);
                answers.push(answer);
            }
        }
        let shared = Arc::clone(&self.shared);
        let awaited = AwaitedAnswers { shared, answers };
        (!awaited.answers.is_empty()).then(|| Box::new(awaited) as Box<dyn Propagation>)
    }
}

/// Encoded invalidations, for each of the processes.
struct PreparedRecords {
    shared: Arc<SharedState>,
    links: Vec<Arc<Link>>,
    records: Vec<Vec<u8>>,
}

impl PreparedPropagation for PreparedRecords {
    fn tell(self: Box<Self>, _: Option<Level>) -> Box<dyn Propagation> {
        let Self { shared, links, records } = *self;
        let answers =
            links.iter().flat_map(|link| records.iter().map(|record| link.tell(record.clone())));
        Box::new(AwaitedAnswers { shared, answers: answers.collect() })
    }
}

/// Answers of other processes. Each is awaited, whatever level of confirmation is asked for: the
/// processes are one node.
struct AwaitedAnswers {
    shared: Arc<SharedState>,
    answers: Vec<oneshot::Receiver<String>>,
}

impl Propagation for AwaitedAnswers {
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(async move {
            let mut failures = Vec::new();
            let all = async {
                for answer in self.answers {
                    match answer.await {
                        Ok(failure) if failure.is_empty() => {}
                        Ok(failure) => failures.push(failure),
                        // The process is gone, and serves nothing; but it may have the disk.
                        Err(_) if self.shared.cache.lower().is_recorded_elsewhere() => {
                            failures.push(UNRECORDED.to_owned());
                        }
                        Err(_) => {}
                    }
                }
            };
            if rt::time::timeout(PATIENCE, all).await.is_err() {
                failures.push("the other process of an upgrade has not answered yet.".to_owned());
            }
            if failures.is_empty() { Ok(()) } else { Err(failures.join(" ")) }
        })
    }
}
