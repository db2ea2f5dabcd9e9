//! Traffic counters of a server: bytes in both directions, and failed connections. All cores write
//! to them: an exchange with a server costs far more than these additions.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, TimeoutStep};

macro_rules! counters {
    ($($field:ident $about:literal;)*) => {
        /// Counts since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct ServerTraffic { $(#[doc = $about] pub $field: u64,)* }

        #[derive(Debug, Default)]
        pub(crate) struct TrafficCounters { $($field: AtomicU64,)* }

        impl TrafficCounters {
            pub(crate) fn moved(&self) -> ServerTraffic {
                ServerTraffic { $($field: self.$field.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    head_out "Bytes of request heads sent to the server.";
    body_out "Bytes of request bodies sent to the server, with their framing.";
    head_in "Bytes of response heads.";
    body_in "Bytes of response bodies, without their framing.";
    busy "Requests for which no connection was free.";
    held "Requests that failed without a connection attempt, so soon after a failed one.";
    refused "Connections refused by the server.";
    timed_out "Connections that timed out.";
    unreachable "Connections without a route to the server.";
    denied "Connections that this system does not permit.";
    no_address "Connections for which this system had no address left.";
    unconnected_otherwise "Connections that failed for another reason.";
}

impl ServerTraffic {
    /// Failed connections, for all reasons.
    pub fn unconnected(&self) -> u64 {
        let Self { refused, timed_out, unreachable, denied, no_address, .. } = self;
        refused + timed_out + unreachable + denied + no_address + self.unconnected_otherwise
    }
}

impl TrafficCounters {
    /// Counts sent bytes of a request; up to `head` of them are its head's.
    pub(crate) fn sent(&self, bytes: u64, head: u64) {
        add(&self.head_out, bytes.min(head));
        add(&self.body_out, bytes.saturating_sub(head));
    }

    pub(crate) fn head_came(&self, bytes: usize) {
        add(&self.head_in, bytes as u64);
    }

    pub(crate) fn body_came(&self, bytes: u64) {
        add(&self.body_in, bytes);
    }

    /// Counts a request that was not sent because of a holddown.
    pub(crate) fn held(&self) {
        add(&self.held, 1);
    }

    /// Counts a request without a connection.
    pub(crate) fn unconnected(&self, error: &Error) {
        let counter = match error {
            Error::QueueFull { .. } | Error::Timeout { step: TimeoutStep::Queue, .. } => &self.busy,
            Error::Timeout { .. } => &self.timed_out,
            Error::Connect { source, .. } => match source.kind() {
                io::ErrorKind::ConnectionRefused => &self.refused,
                io::ErrorKind::TimedOut => &self.timed_out,
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    &self.unreachable
                }
                io::ErrorKind::PermissionDenied => &self.denied,
                io::ErrorKind::AddrNotAvailable => &self.no_address,
                _ => &self.unconnected_otherwise,
            },
            _ => &self.unconnected_otherwise,
        };
        add(counter, 1);
    }
}

fn add(counter: &AtomicU64, n: u64) {
    if n > 0 {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_has_no_connection_is_told_apart_by_why() {
        let traffic = TrafficCounters::default();
        let server: Arc<str> = "app:80".into();
        for kind in [io::ErrorKind::ConnectionRefused, io::ErrorKind::HostUnreachable] {
            let server = Arc::clone(&server);
            traffic.unconnected(&Error::Connect { server, source: kind.into() });
        }
        let late = |step| Error::Timeout { server: Arc::clone(&server), step, after_ms: 1 };
        traffic.unconnected(&late(TimeoutStep::Connect));
        traffic.unconnected(&late(TimeoutStep::Queue));
        let moved = traffic.moved();
        assert_eq!((moved.refused, moved.unreachable, moved.timed_out), (1, 1, 1));
        assert_eq!((moved.busy, moved.unconnected()), (1, 3));
    }

    #[test]
    fn bytes_that_left_are_the_heads_first() {
        let traffic = TrafficCounters::default();
        traffic.sent(30, 100);
        traffic.sent(130, 100);
        let moved = traffic.moved();
        assert_eq!((moved.head_out, moved.body_out), (130, 30));
    }
}
