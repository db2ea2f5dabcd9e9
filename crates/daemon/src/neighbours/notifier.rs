//! The notifier: workers that send invalidations to neighbours, as requests over pooled connections
//! or as datagrams.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Counter, Limit};
use bytes::Bytes;
use flow::SharedState;
use flow::invalidate::htcp;
use flow::invalidate::neighbour::{Message, NeighbourDialect};
use message::Request;
use origin::{CorePool, Origin, OriginRequestContext, RequestBody};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::UnboundedReceiver;

use super::queue::{InvalidationQueue, NeighbourChannel, QueuedInvalidation, own_address};

/// Concurrent exchanges with one neighbour.
const WORKERS: usize = 4;
/// The pause after the first failure; it doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(15);
/// Transmissions of a datagram within the time of an exchange.
const DATAGRAMS: u32 = 5;

/// The reason why a delivery failed.
enum DeliveryFailure {
    /// The neighbour may accept it later.
    Temporary(String),
    /// The neighbour never accepts it.
    Refused(String),
}

/// Starts the thread of the workers.
pub(super) fn start(
    mut queues: UnboundedReceiver<Arc<InvalidationQueue>>,
    shared: Arc<SharedState>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = move || {
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async move {
            let pool = CorePool::new(shared.counters.register(), &shared.live().limits);
            let pool = Rc::new(pool);
            let mut sweep = rt::time::interval(Duration::from_secs(1));
            loop {
                tokio::select! {
                    queue = queues.recv() => match queue {
                        Some(queue) => serve(&queue, &pool),
                        None => return,
                    },
                    _ = sweep.tick() => pool.sweep(rt::now().mono_ms),
                }
            }
        });
    };
    std::thread::Builder::new().name("neighbours".to_owned()).spawn(work).map(drop)
}

fn serve(queue: &Arc<InvalidationQueue>, pool: &Rc<CorePool>) {
    for _ in 0..WORKERS {
        let (queue, pool) = (Arc::clone(queue), Rc::clone(pool));
        rt::spawn_local(async move {
            let counters = Arc::clone(&queue.counters);
            let work = || work(Arc::clone(&queue), Rc::clone(&pool));
            net::run_with_restarts(work, || counters.inc(Counter::Panics)).await;
        });
    }
}

async fn work(queue: Arc<InvalidationQueue>, pool: Rc<CorePool>) {
    while let Some(queued) = queue.next().await {
        let outcome = deliver(&queue, &pool, &queued).await;
        queue.done(queued, outcome);
    }
}

/// Sends an invalidation until the neighbour accepts it, rejects it, or the deadline passes.
async fn deliver(
    queue: &InvalidationQueue,
    pool: &CorePool,
    queued: &QueuedInvalidation,
) -> Counter {
    let (mut accepted, mut pause) = (0, PAUSE);
    loop {
        let Some(message) = queued.messages.get(accepted) else {
            queue.mark_working();
            return Counter::NeighboursTold;
        };
        let limits = &queue.shared.live().limits;
        let (patience, retry_ms) = (limits.neighbour_timeout, limits.neighbour_retry);
        let sent = send(queue, pool, message, Duration::from_millis(patience));
        match sent.await {
            Ok(()) => accepted += 1,
            Err(DeliveryFailure::Refused(why)) => {
                queue.mark_failing(&format!("it rejects the purge: {why}"));
                return Counter::NeighboursLost;
            }
            Err(DeliveryFailure::Temporary(why)) => {
                queue.counters.inc(Counter::NeighboursFailed);
                queue.mark_failing(&why);
                let age = rt::now().mono_ms.saturating_sub(queued.made_ms);
                if age >= retry_ms || queue.is_removed.load(Ordering::Acquire) {
                    queue.counters.limit(Limit::NeighbourRetry);
                    return Counter::NeighboursLost;
                }
                rt::time::sleep(pause).await;
                pause = (2 * pause).min(PAUSE_MAX);
            }
        }
    }
}

async fn send(
    queue: &InvalidationQueue,
    pool: &CorePool,
    message: &Message,
    patience: Duration,
) -> Result<(), DeliveryFailure> {
    let late =
        || DeliveryFailure::Temporary(format!("no answer within {} ms", patience.as_millis()));
    match (&queue.channel, message) {
        (NeighbourChannel::Http(managed), Message::Request(request, body)) => {
            let exchange = ask(queue, pool, &managed.origin, request, body);
            rt::time::timeout(patience, exchange).await.unwrap_or_else(|_| Err(late()))
        }
        (NeighbourChannel::Htcp(address), Message::Clear(url)) => {
            let cleared = clear(*address, url, patience / DATAGRAMS);
            match cleared.await.map_err(|error| DeliveryFailure::Temporary(error.to_string()))? {
                Some(true) => Ok(()),
                Some(false) => {
                    Err(DeliveryFailure::Refused("it answers that it has not purged".to_owned()))
                }
                None => Err(late()),
            }
        }
        _ => Err(DeliveryFailure::Refused("its dialect has no such message".to_owned())),
    }
}

async fn ask(
    queue: &InvalidationQueue,
    pool: &CorePool,
    origin: &Arc<Origin>,
    request: &Request,
    body: &[u8],
) -> Result<(), DeliveryFailure> {
    let (body, caller) =
        (RequestBody::whole(Bytes::copy_from_slice(body)), OriginRequestContext::default());
    let sent = pool.send(origin, request, body, 0, &caller, &mut ()).await;
    let mut exchange = sent.map_err(|error| DeliveryFailure::Temporary(error.to_string()))?;
    let status = exchange.response.status.code();
    // Read to its end, the connection can be used again.
    while let Ok(true) = exchange.next(&mut |_| {}).await {}
    let was_not_there = matches!(
        queue.profile.dialect,
        NeighbourDialect::Purge
            | NeighbourDialect::NginxHelper
            | NeighbourDialect::FosHttpCache
            | NeighbourDialect::Xkey
    ) && matches!(status, 404 | 410 | 412);
    match status {
        200..=299 => Ok(()),
        _ if was_not_there => Ok(()),
        408 | 425 | 429 | 500..=599 => {
            Err(DeliveryFailure::Temporary(format!("it answers {status}")))
        }
        _ => Err(DeliveryFailure::Refused(format!("it answers {status}"))),
    }
}

/// Sends a datagram until it is answered. Returns true if the neighbour has purged; `None` without
/// an answer.
async fn clear(address: SocketAddr, url: &[u8], pause: Duration) -> io::Result<Option<bool>> {
    let socket = UdpSocket::bind(own_address(address)).await?;
    let transaction = fastrand::u32(..);
    // A URL too long for a datagram is stored nowhere by HTCP.
    let Some(datagram) = htcp::clear(url, transaction) else { return Ok(Some(true)) };
    if address.ip().is_multicast() {
        socket.send_to(&datagram, address).await?;
        return Ok(Some(true));
    }
    socket.connect(address).await?;
    let mut buffer = [0; 1024];
    for _ in 0..DATAGRAMS {
        socket.send(&datagram).await?;
        let answered = async {
            loop {
                let len = socket.recv(&mut buffer).await?;
                if let Some((of, is_done)) = htcp::cleared(&buffer[..len])
                    && of == transaction
                {
                    return io::Result::Ok(is_done);
                }
            }
        };
        if let Ok(answered) = rt::time::timeout(pause, answered).await {
            return answered.map(Some);
        }
    }
    Ok(None)
}

impl InvalidationQueue {
    fn mark_failing(&self, why: &str) {
        if !self.is_failing.swap(true, Ordering::AcqRel) {
            base::tell!(Warn, "larder: neighbour {self} does not accept invalidations: {why}");
        }
    }

    fn mark_working(&self) {
        if self.is_failing.swap(false, Ordering::AcqRel) {
            base::tell!(Notice, "larder: neighbour {self} accepts invalidations again");
        }
    }
}
