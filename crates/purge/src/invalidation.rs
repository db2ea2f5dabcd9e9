//! Invalidations as values: what they select and do. They must not contain a closure, a clock or a
//! number of this process, so that a file, a log or another node can keep them.

use ban::{Field, Term};
use base::{KeyBuf, Now};
use message::Request;
use policy::ConnectionPeer;
use serde::{Deserialize, Serialize};

use crate::record::{InvalidationDecodeError, WireInvalidation};
use crate::selector::{ResponseSelector, of_host};

/// An invalidation. Its serialised form and that of [`Invalidation::encode`] are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "WireInvalidation", into = "WireInvalidation")]
pub struct Invalidation {
    /// Its identity: an invalidation is applied once.
    pub id: Id,
    /// The time at which it was made, in milliseconds since 1970. Ages are computed for this time,
    /// and freshness ends at it.
    pub at_unix_ms: u64,
    /// The sites whose responses it may select.
    pub sites: Sites,
    /// True if stored responses only become stale, and keep their grace.
    pub soft: bool,
    /// The stored responses that it selects.
    pub what: InvalidationTarget,
    /// Its cause, for caches that are not nodes. It is neither stored nor sent.
    pub cause: Cause,
}

/// The cause of an invalidation, as far as neighbours need it.
#[derive(Clone, Debug, Default)]
pub struct Cause {
    /// The URL of the request behind an invalidation of a key, because other caches have other
    /// keys.
    pub url: Option<Box<Url>>,
    /// The source of the invalidation.
    pub heard: InvalidationSource,
}

/// The source of an invalidation. An invalidation from a neighbour is not propagated to neighbours,
/// because two could exchange it forever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidationSource {
    /// This node.
    #[default]
    Here,
    /// An HTCP datagram, which has no field for a neighbour's mark: it is not propagated by
    /// datagrams.
    Datagram,
    /// A neighbour that marks it ([`TOLD_FIELD`]).
    Neighbour,
}

/// The field that marks a propagated purge: its receiver does not propagate it.
pub const TOLD_FIELD: &[u8] = b"larder-told";

impl InvalidationSource {
    /// The source of a purge request.
    pub fn of(purge: &Request) -> Self {
        match purge.headers.value_named(TOLD_FIELD) {
            Some(_) => Self::Neighbour,
            None => Self::Here,
        }
    }
}

impl Cause {
    /// The cause of a request that purges a key.
    pub fn purge(request: &Request) -> Self {
        Self { heard: InvalidationSource::of(request), ..Self::change(request) }
    }

    /// The cause of a request that changed a resource at the origin.
    pub fn change(request: &Request) -> Self {
        let url = Url::of(request, ConnectionPeer::Unnamed(None));
        Self { url: Some(Box::new(url)), heard: InvalidationSource::Here }
    }
}

/// The identity of an invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// The process that made it, by a random number.
    pub node: u64,
    /// Its number among the invalidations of this process.
    pub sequence: u64,
}

/// The sites whose responses an invalidation may select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sites {
    /// Every site.
    Every,
    /// The sites with these names, in the configuration of the node that applies it.
    Named(Vec<String>),
}

impl Sites {
    /// The site with this name.
    pub fn one(name: &str) -> Self {
        Self::Named(vec![name.to_owned()])
    }
}

/// The stored responses that an invalidation selects.
#[derive(Clone, Debug)]
pub enum InvalidationTarget {
    /// All variants of a key, given by [`KeyBuf::bytes`], and its fetches under way.
    Key(Box<[u8]>),
    /// All variants of a URL, under the keys that its site makes of it.
    Url(Url),
    /// All variants of a key, which get new times. Unless the invalidation is soft they are then
    /// removed, and deliveries under way see the new times.
    Retime(Box<[u8]>, NewTimes),
    /// All responses of a selector.
    Many(ResponseSelector),
}

impl InvalidationTarget {
    /// All variants of `key`.
    pub fn key(key: &KeyBuf) -> Self {
        Self::Key(key.bytes().into())
    }
}

/// A URL with either scheme, on its port and on the scheme's default port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host in canonical form, without the port.
    pub host: Vec<u8>,
    /// The port, unless it is the default.
    pub port: Option<u16>,
    /// Path and query.
    pub target: Vec<u8>,
    /// The client as which the site's rules compute the keys.
    pub client: ConnectionPeer,
}

impl Url {
    /// The responses of one target of the host, or of all hosts of the site without a condition on
    /// the host.
    pub fn described(&self, target: &[u8]) -> ResponseSelector {
        let url = Term::equal(Field::Url, false, &String::from_utf8_lossy(target));
        ResponseSelector::terms(of_host(&self.host).into_iter().chain([url]).collect())
    }
}

/// New times of stored responses, in milliseconds. `None` leaves a time as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewTimes {
    /// The remaining freshness, from the time of the invalidation.
    pub ttl_ms: Option<i64>,
    /// The grace after it.
    pub grace_ms: Option<u64>,
    /// The time after it in which the response may be served for errors of the origin (`keep`).
    pub keep_ms: Option<u64>,
}

impl Url {
    /// The URL of a request.
    pub fn of(request: &Request, client: ConnectionPeer) -> Self {
        let Request { host, port, target, .. } = request;
        Self { host: host.clone(), port: *port, target: target.clone(), client }
    }
}

impl Invalidation {
    /// This invalidation with a cause.
    #[must_use]
    pub fn by(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// The encoded invalidation. The first byte is the version.
    pub fn encode(&self) -> Vec<u8> {
        WireInvalidation::from(self.clone()).encode()
    }

    /// Decodes what [`Invalidation::encode`] wrote.
    ///
    /// # Errors
    /// An unknown version, malformed bytes, or an expression that cannot be parsed.
    pub fn decode(bytes: &[u8]) -> Result<Self, InvalidationDecodeError> {
        WireInvalidation::decode(bytes)?.try_into()
    }

    /// The time at which it was made, on the monotonic clock; zero if before its start.
    pub fn made_ms(&self, now: Now) -> u64 {
        let made_ms = now.mono_at(i64::try_from(self.at_unix_ms).unwrap_or(i64::MAX));
        u64::try_from(made_ms).unwrap_or(0).min(now.mono_ms)
    }
}
