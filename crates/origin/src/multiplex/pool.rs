//! Pool of one core's multiplexed connections, by endpoint. A request takes a stream of a live
//! connection; another connection is opened when their streams run out.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use base::{Counters, Limit};

use super::connection::{ConnectionOpening, MultiplexedConnection};
use crate::server::Server;
use crate::shared_pool::EndpointPool;

/// The time after which a server that has chosen HTTP/1.1 may choose again.
const CHOICE_MS: u64 = 60_000;

/// The connections of one core to all servers with which it multiplexes.
#[derive(Default)]
pub(crate) struct MultiplexPool {
    endpoints: RefCell<HashMap<usize, Rc<EndpointConnections>>>,
}

/// One core's connections to one endpoint.
pub(super) struct EndpointConnections {
    /// Keeps the address that is its key from being reused.
    _endpoint: Arc<EndpointPool>,
    live: RefCell<Vec<Rc<MultiplexedConnection>>>,
    /// A connection is being opened.
    opening: Cell<bool>,
    /// The end of the time for which the server's choice of HTTP/1.1 counts.
    single_until_ms: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

/// The way in which a request is sent.
pub(crate) enum Checkout {
    /// Over a stream of this connection.
    Shared(Rc<MultiplexedConnection>),
    /// Over a connection that the caller opens; other requests wait for it.
    Open(OpeningGuard),
    /// Over a connection of its own: the server has chosen HTTP/1.1.
    Single,
}

impl MultiplexPool {
    /// A live connection to `endpoint`, which is that of `server`, or the task to open one. Waits
    /// while one is being opened.
    pub(crate) async fn checkout(
        &self,
        endpoint: &Arc<EndpointPool>,
        server: &Arc<Server>,
        counters: &Counters,
    ) -> Checkout {
        let connections = Rc::clone(
            self.endpoints
                .borrow_mut()
                .entry(Arc::as_ptr(endpoint).addr())
                .or_insert_with(|| EndpointConnections::new(endpoint)),
        );
        poll_fn(|cx| EndpointConnections::poll_checkout(&connections, cx, server, counters)).await
    }

    /// Ends connections that were idle for too long, or should not be used any more.
    pub(crate) fn sweep(&self, now_ms: u64, counters: &Counters) {
        self.endpoints.borrow_mut().retain(|_, connections| {
            for connection in connections.live.borrow().iter() {
                if connection.sweep(now_ms) {
                    counters.limit(Limit::OriginIdleTimeout);
                }
            }
            !connections.live.borrow().is_empty()
                || connections.single_until_ms.get() > now_ms
                || Rc::strong_count(connections) > 1
        });
    }

    /// The number of connections without an exchange.
    pub(crate) fn idle_connections(&self) -> usize {
        let idle = |connections: &Rc<EndpointConnections>| {
            connections.live.borrow().iter().filter(|connection| connection.is_idle()).count()
        };
        self.endpoints.borrow().values().map(idle).sum()
    }
}

impl EndpointConnections {
    fn new(endpoint: &Arc<EndpointPool>) -> Rc<Self> {
        Rc::new(Self {
            _endpoint: Arc::clone(endpoint),
            live: RefCell::default(),
            opening: Cell::new(false),
            single_until_ms: Cell::new(0),
            waiting: RefCell::default(),
        })
    }

    fn poll_checkout(
        connections: &Rc<Self>,
        cx: &Context<'_>,
        server: &Arc<Server>,
        counters: &Counters,
    ) -> Poll<Checkout> {
        let live = connections.live.borrow();
        let is_usable = |connection: &&Rc<MultiplexedConnection>| {
            connection.has_room() && !connection.is_new() && connection.is_of(server)
        };
        if let Some(connection) = live.iter().find(is_usable) {
            return Poll::Ready(Checkout::Shared(Rc::clone(connection)));
        }
        if connections.single_until_ms.get() > rt::now().mono_ms {
            return Poll::Ready(Checkout::Single);
        }
        // How many streams a new connection has is known when its server's settings have come.
        if connections.opening.get() || live.iter().any(|connection| connection.is_new()) {
            connections.waiting.borrow_mut().push(cx.waker().clone());
            return Poll::Pending;
        }
        if live.iter().any(|connection| connection.is_full()) {
            counters.limit(Limit::OriginH2Streams);
        }
        connections.opening.set(true);
        Poll::Ready(Checkout::Open(OpeningGuard { connections: Rc::clone(connections) }))
    }

    /// Lets waiting requests look again.
    pub(super) fn changed(&self) {
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Removes a connection that has ended.
    pub(super) fn remove(&self, ended: &MultiplexedConnection) {
        self.live.borrow_mut().retain(|live| !std::ptr::eq(&raw const **live, ended));
        self.changed();
    }
}

/// The task to open a connection. Dropping it lets the next request try.
pub(crate) struct OpeningGuard {
    connections: Rc<EndpointConnections>,
}

impl OpeningGuard {
    /// Adds the opened connection, which the caller drives.
    pub(crate) fn opened(self, opening: ConnectionOpening) -> Rc<MultiplexedConnection> {
        let connection = MultiplexedConnection::new(opening, &self.connections);
        self.connections.live.borrow_mut().push(Rc::clone(&connection));
        connection
    }

    /// Records that the server has chosen HTTP/1.1.
    pub(crate) fn single(self) {
        self.connections.single_until_ms.set(rt::now().mono_ms + CHOICE_MS);
    }
}

impl Drop for OpeningGuard {
    fn drop(&mut self) {
        self.connections.opening.set(false);
        self.connections.changed();
    }
}
