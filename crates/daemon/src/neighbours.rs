//! Neighbours: other caches to which invalidations are sent (`[[neighbour]]`), and which may be
//! asked for missing responses. Each server has its own queue, and workers that empty it.
//!
//! No neighbour may delay another one, nor a purge that does not wait for it. Only the node on
//! which an invalidation began sends it.

mod notifier;
mod queue;
mod siblings;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use base::{Counter, Counters, Limit};
use config::{Config, NeighbourTransport};
use flow::SharedState;
use flow::invalidate::neighbour::{Message, NeighbourProfile, hosts_of};
use flow::invalidate::{
    Invalidation, InvalidationSource, Level, PeerCaches, PreparedPropagation, Propagation,
};
use flow::siblings::Siblings;
use origin::{Address, Origin, OriginConfig};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use self::queue::{InvalidationQueue, NeighbourChannel, QueuedInvalidation};
use self::siblings::SiblingNeighbour;
use crate::managed_origin::tend;

/// The longest time that the daemon's end waits for queued invalidations.
const END: Duration = Duration::from_secs(3);
/// The interval at which it checks the queues then.
const LOOK: Duration = Duration::from_millis(10);

/// The neighbours in force, and the thread that serves them.
pub(crate) struct Neighbours {
    shared: Arc<SharedState>,
    counters: Arc<Counters>,
    set: ArcSwap<Set>,
    /// The channel for new queues to the thread that serves them.
    begun: mpsc::UnboundedSender<Arc<InvalidationQueue>>,
}

/// The neighbours of a configuration.
#[derive(Default)]
struct Set {
    queues: Vec<Arc<InvalidationQueue>>,
    /// The neighbours that are asked as siblings, too.
    siblings: Vec<Arc<SiblingNeighbour>>,
    /// The hosts of sites, by the sites' names.
    hosts: BTreeMap<String, Vec<String>>,
}

impl Neighbours {
    /// Starts the thread, without neighbours.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(shared: &Arc<SharedState>) -> std::io::Result<Arc<Self>> {
        let (begun, queues) = mpsc::unbounded_channel();
        let counters = shared.counters.register();
        notifier::start(queues, Arc::clone(shared))?;
        Ok(Arc::new(Self { shared: Arc::clone(shared), counters, set: ArcSwap::default(), begun }))
    }

    /// Applies the neighbours of `config`, with its `origins`. A queue whose server and profile are
    /// unchanged keeps its content.
    pub(crate) fn set(&self, config: &Config, origins: &[Arc<Origin>]) {
        let before = self.set.load_full();
        let mut known = before.queues.clone();
        let mut next = Set::default();
        for site in &config.sites {
            let name = site.hosts.first().cloned().unwrap_or_default();
            next.hosts.insert(name, site.hosts.clone());
        }
        for neighbour in &config.neighbours {
            let targets: Vec<NeighbourTarget> = match &neighbour.transport {
                NeighbourTransport::Origin(at) => {
                    each(origins[*at].config()).map(NeighbourTarget::Http).collect()
                }
                NeighbourTransport::Htcp(addresses) => {
                    addresses.iter().copied().map(NeighbourTarget::Htcp).collect()
                }
            };
            for wanted in targets {
                let is_it = |queue: &Arc<InvalidationQueue>| {
                    queue.profile == neighbour.profile && wanted.matches(&queue.channel)
                };
                let queue = match known.iter().position(is_it) {
                    Some(at) => known.swap_remove(at),
                    None => self.begin(wanted, neighbour.profile.clone()),
                };
                if let (NeighbourChannel::Htcp(address), Some(at)) = (&queue.channel, neighbour.ask)
                {
                    let config = origins[at].config();
                    let same = before.siblings.iter().find(|sibling| sibling.is(&queue, config));
                    let sibling = same.map_or_else(
                        || SiblingNeighbour::begin(&queue, *address, config),
                        Arc::clone,
                    );
                    next.siblings.push(sibling);
                }
                next.queues.push(queue);
            }
        }
        let siblings: Vec<_> = next.siblings.iter().map(|sibling| sibling.sibling()).collect();
        let siblings = (!siblings.is_empty()).then(|| Arc::new(Siblings(siblings)));
        self.shared.siblings.store(siblings);
        self.set.store(Arc::new(next));
        for queue in known {
            queue.is_removed.store(true, Ordering::Release);
            queue.wakeup.notify_waiters();
        }
    }

    fn begin(&self, wanted: NeighbourTarget, profile: NeighbourProfile) -> Arc<InvalidationQueue> {
        let channel = match wanted {
            NeighbourTarget::Http(config) => {
                NeighbourChannel::Http(tend(Origin::new(*config), &self.shared))
            }
            NeighbourTarget::Htcp(address) => NeighbourChannel::Htcp(address),
        };
        let queue = Arc::new(InvalidationQueue {
            channel,
            profile,
            counters: Arc::clone(&self.counters),
            shared: Arc::clone(&self.shared),
            queue: Mutex::default(),
            left: Default::default(),
            missed_ms: AtomicU64::new(0),
            wakeup: Notify::new(),
            is_removed: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
            unsupported: Mutex::default(),
        });
        // The thread lives as long as the process.
        _ = self.begun.send(Arc::clone(&queue));
        queue
    }

    /// Every neighbour's name, the length of its queue, and whether it accepts invalidations.
    pub(crate) fn figures(&self) -> Vec<(String, u64, bool)> {
        let set = self.set.load();
        let of = |queue: &Arc<InvalidationQueue>| {
            let left = queue.left.load(Ordering::Relaxed) as u64;
            (queue.to_string(), left, !queue.is_failing.load(Ordering::Relaxed))
        };
        set.queues.iter().map(of).collect()
    }

    /// Waits for a while until all queues are empty.
    pub(crate) async fn finish(&self) {
        let is_left = |queue: &Arc<InvalidationQueue>| queue.left.load(Ordering::Acquire) > 0;
        let is_empty = || !self.set.load().queues.iter().any(is_left);
        let confirmed = async {
            while !is_empty() {
                rt::time::sleep(LOOK).await;
            }
        };
        _ = rt::time::timeout(END, confirmed).await;
    }
}

/// The server of a neighbour, as configured.
enum NeighbourTarget {
    Http(Box<OriginConfig>),
    Htcp(SocketAddr),
}

impl NeighbourTarget {
    fn matches(&self, channel: &NeighbourChannel) -> bool {
        match (self, channel) {
            (Self::Http(config), NeighbourChannel::Http(managed)) => {
                *managed.origin.config() == **config
            }
            (Self::Htcp(own), NeighbourChannel::Htcp(address)) => own == address,
            _ => false,
        }
    }
}

/// The servers of an origin, each as an origin of its own without ejection: only a further request
/// shows whether it is back.
fn each(config: &OriginConfig) -> impl Iterator<Item = Box<OriginConfig>> {
    config.servers.iter().map(|server| {
        let mut own = config.clone();
        own.name = match &server.address {
            _ if config.servers.len() == 1 => config.name.clone(),
            address => format!("{} {address}", config.name),
        };
        own.host_default = own.host_header.take().or_else(|| match &server.address {
            Address::Tcp { host, .. } => Some(host.clone()),
            Address::Fixed { name, .. } => Some(name.clone()),
            Address::Unix(_) => Some("localhost".to_owned()),
        });
        (own.probe, own.retries) = (None, 0);
        own.eject.failures = 0;
        own.servers = vec![server.clone()];
        Box::new(own)
    })
}

impl PeerCaches for Neighbours {
    fn prepare(
        &self,
        batch: &[&Invalidation],
    ) -> Result<Option<Box<dyn PreparedPropagation>>, String> {
        let set = self.set.load();
        let hosts = |names: &[String]| {
            hosts_of(names.iter().filter_map(|name| set.hosts.get(name)).flatten())
        };
        let mut reserved = Vec::new();
        for queue in &set.queues {
            for invalidation in batch {
                match queue.profile.messages(invalidation, &hosts) {
                    // The invalidation selects none of its pages; or it came from a peer, which may
                    // have sent it to others.
                    Ok(messages) if messages.is_empty() => {
                        if invalidation.cause.heard != InvalidationSource::Here {
                            queue.mark_incomplete();
                        }
                    }
                    Ok(messages) => reserved.push((QueueReservation::of(queue), messages)),
                    Err(unsupported) => {
                        self.counters.inc(Counter::NeighboursUnsaid);
                        queue.mark_incomplete();
                        queue.log_unsupported(unsupported);
                    }
                }
            }
        }
        Ok((!reserved.is_empty())
            .then(|| Box::new(InvalidationBatch(reserved)) as Box<dyn PreparedPropagation>))
    }

    fn outstanding(&self) -> Option<Box<dyn Propagation>> {
        None
    }

    fn note_local_effect(&self) {
        self.set.load().queues.iter().for_each(|queue| queue.mark_incomplete());
    }
}

/// A reserved place in a queue. It counts as queued before the invalidation takes effect, so that a
/// sibling never seems up to date too early.
struct QueueReservation(Option<Arc<InvalidationQueue>>);

impl QueueReservation {
    fn of(queue: &Arc<InvalidationQueue>) -> Self {
        queue.left.fetch_add(1, Ordering::AcqRel);
        Self(Some(Arc::clone(queue)))
    }

    /// The queue; its place now counts for an invalidation.
    fn redeem(mut self) -> Option<Arc<InvalidationQueue>> {
        self.0.take()
    }
}

impl Drop for QueueReservation {
    fn drop(&mut self) {
        if let Some(queue) = self.0.take() {
            queue.left.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// A batch of invalidations, made into messages for all neighbours.
struct InvalidationBatch(Vec<(QueueReservation, Vec<Message>)>);

impl PreparedPropagation for InvalidationBatch {
    fn tell(self: Box<Self>, level: Option<Level>) -> Box<dyn Propagation> {
        let mut pending = Vec::new();
        for (reservation, messages) in self.0 {
            let Some(queue) = reservation.redeem() else { continue };
            let (delivered, confirmed) = oneshot::channel();
            let waits = level == Some(Level::All);
            let delivered = waits.then(|| {
                pending.push((Arc::clone(&queue), confirmed));
                delivered
            });
            queue.add(QueuedInvalidation { messages, made_ms: rt::now().mono_ms, delivered });
        }
        Box::new(PendingDeliveries(pending))
    }
}

/// Deliveries that a purge waits for.
struct PendingDeliveries(Vec<(Arc<InvalidationQueue>, oneshot::Receiver<()>)>);

impl Propagation for PendingDeliveries {
    fn wait(self: Box<Self>) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> {
        Box::pin(async move {
            let Some((queue, _)) = self.0.first() else { return Ok(()) };
            let (shared, counters) = (Arc::clone(&queue.shared), Arc::clone(&queue.counters));
            let until = Duration::from_millis(shared.live().limits.neighbour_timeout);
            let end = rt::time::sleep(until);
            let mut end = std::pin::pin!(end);
            let (mut missing, mut is_late) = (Vec::new(), false);
            for (queue, mut confirmed) in self.0 {
                let done = match is_late {
                    true => confirmed.try_recv().is_ok(),
                    false => tokio::select! {
                        done = &mut confirmed => done.is_ok(),
                        () = &mut end => {
                            is_late = true;
                            false
                        }
                    },
                };
                if !done {
                    missing.push(queue.to_string());
                }
            }
            if is_late {
                counters.limit(Limit::NeighbourTimeout);
            }
            match missing.is_empty() {
                true => Ok(()),
                false => Err(format!("not confirmed yet by neighbours: {}", missing.join(", "))),
            }
        })
    }
}
