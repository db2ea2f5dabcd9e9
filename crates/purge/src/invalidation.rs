//! Invalidations as values: what they select and do, without a closure, a clock or a number of this
//! process, so that a file, a log or another node can hold them.

use ban::{Field, Term};
use base::{KeyBuf, Now};
use message::Request;
use policy::ConnectionPeer;
use serde::{Deserialize, Serialize};

use crate::record::{InvalidationDecodeError, WireInvalidation};
use crate::selector::{ResponseSelector, of_host};

/// An invalidation. Its serialised form, and what [`Invalidation::encode`] writes, are stable.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "WireInvalidation", into = "WireInvalidation")]
pub struct Invalidation {
    /// Its identity: one that was applied is not applied again.
    pub id: Id,
    /// Milliseconds since 1970 at which it was made: ages are as they were then, and freshness
    /// ends then.
    pub at_unix_ms: u64,
    /// Sites whose responses it may select.
    pub sites: Sites,
    /// Stored responses remain: they only become stale, with their grace.
    pub soft: bool,
    /// Stored responses that it selects.
    pub what: InvalidationTarget,
    /// Facts about its cause, for caches that are no nodes. Neither written nor sent.
    pub cause: Cause,
}

/// The cause of an invalidation, as far as it matters to neighbours.
#[derive(Clone, Debug, Default)]
pub struct Cause {
    /// The URL of the request behind it, where it is for a key: our keys mean nothing to others.
    pub url: Option<Box<Url>>,
    /// The one who has told of it.
    pub heard: InvalidationSource,
}

/// The one who has told of an invalidation. What came from a neighbour does not go to neighbours:
/// two that tell each other would never end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InvalidationSource {
    /// It began here.
    #[default]
    Here,
    /// A datagram of HTCP, which cannot say so: it goes to no neighbour that is told by datagrams.
    Datagram,
    /// A neighbour that says so ([`TOLD_FIELD`]).
    Neighbour,
}

/// The field by which a neighbour that is told learns that it need not tell others.
pub const TOLD_FIELD: &[u8] = b"larder-told";

impl InvalidationSource {
    /// By a request that purges.
    pub fn of(purge: &Request) -> Self {
        match purge.headers.value_named(TOLD_FIELD) {
            Some(_) => Self::Neighbour,
            None => Self::Here,
        }
    }
}

impl Cause {
    /// A request that purges a key.
    pub fn purge(request: &Request) -> Self {
        Self { heard: InvalidationSource::of(request), ..Self::change(request) }
    }

    /// A request by which an origin has changed.
    pub fn change(request: &Request) -> Self {
        let url = Url::of(request, ConnectionPeer::Unnamed(None));
        Self { url: Some(Box::new(url)), heard: InvalidationSource::Here }
    }
}

/// The identity of an invalidation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// The process that made it, by a number drawn at random.
    pub node: u64,
    /// Its place among those that this process made.
    pub sequence: u64,
}

/// Sites whose responses an invalidation may select.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sites {
    /// Every site.
    Every,
    /// Sites of these names, in the configuration in force where the invalidation is applied.
    Named(Vec<String>),
}

impl Sites {
    /// The site of this name alone.
    pub fn one(name: &str) -> Self {
        Self::Named(vec![name.to_owned()])
    }
}

/// Stored responses that an invalidation selects.
#[derive(Clone, Debug)]
pub enum InvalidationTarget {
    /// Every variant under a key, given by [`KeyBuf::bytes`]; and what is being fetched for it.
    Key(Box<[u8]>),
    /// Every variant of a URL, under the keys that its site makes of it.
    Url(Url),
    /// Every variant under a key, which gets new times. Unless the invalidation is soft it leaves
    /// the store after that: deliveries under way see the times still.
    Retime(Box<[u8]>, NewTimes),
    /// Every response that is described.
    Many(ResponseSelector),
}

impl InvalidationTarget {
    /// Every variant under `key`.
    pub fn key(key: &KeyBuf) -> Self {
        Self::Key(key.bytes().into())
    }
}

/// A URL over either scheme, on its port and on the scheme's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host in canonical form, without the port.
    pub host: Vec<u8>,
    /// Port, unless it is the scheme's own.
    pub port: Option<u16>,
    /// Path and query.
    pub target: Vec<u8>,
    /// The client in whose name the site's rules are asked for the keys.
    pub client: ConnectionPeer,
}

impl Url {
    /// The responses of one target of the host. Without a condition on the host they are those of
    /// every host of the site.
    pub fn described(&self, target: &[u8]) -> ResponseSelector {
        let url = Term::equal(Field::Url, false, &String::from_utf8_lossy(target));
        ResponseSelector::terms(of_host(&self.host).into_iter().chain([url]).collect())
    }
}

/// New times of stored responses, in milliseconds; an absent one stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewTimes {
    /// Freshness left, from when the invalidation was made.
    pub ttl_ms: Option<i64>,
    /// Grace after it.
    pub grace_ms: Option<u64>,
    /// Time after it during which it may stand in for errors of the origin (`keep`).
    pub keep_ms: Option<u64>,
}

impl Url {
    /// That of a request.
    pub fn of(request: &Request, client: ConnectionPeer) -> Self {
        let Request { host, port, target, .. } = request;
        Self { host: host.clone(), port: *port, target: target.clone(), client }
    }
}

impl Invalidation {
    /// The same by this cause.
    #[must_use]
    pub fn by(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    /// The invalidation as bytes. The first is the version of what follows.
    pub fn encode(&self) -> Vec<u8> {
        WireInvalidation::from(self.clone()).encode()
    }

    /// The invalidation that [`Invalidation::encode`] wrote.
    ///
    /// # Errors
    /// The bytes are of a version unknown here, are not an invalidation, or hold an expression that
    /// cannot be read.
    pub fn decode(bytes: &[u8]) -> Result<Self, InvalidationDecodeError> {
        WireInvalidation::decode(bytes)?.try_into()
    }

    /// When it was made, by the monotonic clock: zero if that did not run yet.
    pub fn made_ms(&self, now: Now) -> u64 {
        let made_ms = now.mono_at(i64::try_from(self.at_unix_ms).unwrap_or(i64::MAX));
        u64::try_from(made_ms).unwrap_or(0).min(now.mono_ms)
    }
}
