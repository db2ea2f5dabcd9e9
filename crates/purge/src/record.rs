//! The record of an invalidation: its encoding for files and messages. A change of these types is a
//! new version. Old versions must stay readable, because journals outlive the programs that wrote
//! them.

use std::fmt;
use std::net::IpAddr;

use ban::Expression;
use policy::ConnectionPeer;
use serde::{Deserialize, Serialize};

use crate::invalidation::{Cause, Id, Invalidation, InvalidationTarget, NewTimes, Sites, Url};
use crate::selector::ResponseSelector;

/// The version that is written: postcard's wire format 1 of [`WireInvalidation`].
const VERSION: u8 = 1;

/// The encoded form of an invalidation. The order of fields and variants is part of the format.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WireInvalidation {
    node: u64,
    sequence: u64,
    at_unix_ms: u64,
    soft: bool,
    sites: Option<Vec<String>>,
    what: WireTarget,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum WireTarget {
    Key(Vec<u8>),
    Url { host: Vec<u8>, port: Option<u16>, target: Vec<u8>, client: WireClient },
    Tags(Vec<Vec<u8>>),
    Expression { text: String, tags: Option<Vec<Vec<u8>>> },
    Retime { key: Vec<u8>, ttl_ms: Option<i64>, grace_ms: Option<u64>, keep_ms: Option<u64> },
    Listed(String),
    All,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum WireClient {
    Local,
    Host(IpAddr),
    Unnamed(Option<IpAddr>),
}

/// The error of decoding an invalidation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidationDecodeError {
    /// There are no bytes.
    Empty,
    /// A version that this program does not know.
    Version(u8),
    /// The bytes end early, or have an invalid value.
    Malformed,
    /// This many bytes follow the invalidation.
    Trailing(usize),
    /// The ban expression cannot be parsed.
    Expression(ban::Error),
    /// The regular expression for names in Souin's list is invalid.
    Pattern(String),
}

impl fmt::Display for InvalidationDecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an invalidation without bytes"),
            Self::Version(version) => write!(f, "an invalidation of the unknown version {version}"),
            Self::Malformed => f.write_str("a malformed invalidation"),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes too many after an invalidation"),
            Self::Expression(error) => write!(f, "an invalidation's ban expression: {error}"),
            Self::Pattern(why) => write!(f, "an invalidation's regular expression: {why}"),
        }
    }
}

impl std::error::Error for InvalidationDecodeError {}

impl WireInvalidation {
    pub(crate) fn encode(&self) -> Vec<u8> {
        postcard::to_extend(self, vec![VERSION])
            .expect("every length is known beforehand, and a Vec takes any number of bytes")
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, InvalidationDecodeError> {
        match bytes.split_first() {
            None => Err(InvalidationDecodeError::Empty),
            Some((&VERSION, rest)) => {
                let read = postcard::take_from_bytes(rest)
                    .map_err(|_| InvalidationDecodeError::Malformed)?;
                match read {
                    (wire, []) => Ok(wire),
                    (_, left) => Err(InvalidationDecodeError::Trailing(left.len())),
                }
            }
            Some((version, _)) => Err(InvalidationDecodeError::Version(*version)),
        }
    }
}

impl From<Invalidation> for WireInvalidation {
    fn from(from: Invalidation) -> Self {
        let sites = match from.sites {
            Sites::Every => None,
            Sites::Named(names) => Some(names),
        };
        let what = match from.what {
            InvalidationTarget::Key(key) => WireTarget::Key(key.into()),
            InvalidationTarget::Url(Url { host, port, target, client }) => {
                WireTarget::Url { host, port, target, client: client.into() }
            }
            InvalidationTarget::Retime(key, NewTimes { ttl_ms, grace_ms, keep_ms }) => {
                WireTarget::Retime { key: key.into(), ttl_ms, grace_ms, keep_ms }
            }
            InvalidationTarget::Many(ResponseSelector::Everything) => WireTarget::All,
            InvalidationTarget::Many(ResponseSelector::Tags(tags)) => WireTarget::Tags(tags),
            InvalidationTarget::Many(ResponseSelector::Ban { expression, tags }) => {
                WireTarget::Expression { text: expression.to_string(), tags }
            }
            InvalidationTarget::Many(ResponseSelector::Listed(regex)) => {
                WireTarget::Listed(regex.as_str().to_owned())
            }
        };
        let Id { node, sequence } = from.id;
        Self { node, sequence, at_unix_ms: from.at_unix_ms, soft: from.soft, sites, what }
    }
}

impl TryFrom<WireInvalidation> for Invalidation {
    type Error = InvalidationDecodeError;

    fn try_from(wire: WireInvalidation) -> Result<Self, InvalidationDecodeError> {
        let what = match wire.what {
            WireTarget::Key(key) => InvalidationTarget::Key(key.into()),
            WireTarget::Url { host, port, target, client } => {
                InvalidationTarget::Url(Url { host, port, target, client: client.into() })
            }
            WireTarget::Retime { key, ttl_ms, grace_ms, keep_ms } => {
                InvalidationTarget::Retime(key.into(), NewTimes { ttl_ms, grace_ms, keep_ms })
            }
            WireTarget::All => InvalidationTarget::Many(ResponseSelector::Everything),
            WireTarget::Tags(tags) => InvalidationTarget::Many(ResponseSelector::Tags(tags)),
            WireTarget::Expression { text, tags } => {
                let expression =
                    Expression::of_text(&text).map_err(InvalidationDecodeError::Expression)?;
                InvalidationTarget::Many(ResponseSelector::Ban { expression, tags })
            }
            WireTarget::Listed(regex) => {
                let regex = ban::regex(&regex).map_err(InvalidationDecodeError::Pattern)?;
                InvalidationTarget::Many(ResponseSelector::Listed(regex))
            }
        };
        Ok(Self {
            id: Id { node: wire.node, sequence: wire.sequence },
            at_unix_ms: wire.at_unix_ms,
            soft: wire.soft,
            sites: wire.sites.map_or(Sites::Every, Sites::Named),
            what,
            cause: Cause::default(),
        })
    }
}

impl From<ConnectionPeer> for WireClient {
    fn from(peer: ConnectionPeer) -> Self {
        match peer {
            ConnectionPeer::Local => Self::Local,
            ConnectionPeer::Host(address) => Self::Host(address),
            ConnectionPeer::Unnamed(address) => Self::Unnamed(address),
        }
    }
}

impl From<WireClient> for ConnectionPeer {
    fn from(client: WireClient) -> Self {
        match client {
            WireClient::Local => Self::Local,
            WireClient::Host(address) => Self::Host(address),
            WireClient::Unnamed(address) => Self::Unnamed(address),
        }
    }
}
