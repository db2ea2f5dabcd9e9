//! Purges as data: requests in the dialects of a site, HTCP datagrams, and their meaning as
//! [`PurgeOrder`]s and [`Invalidation`]s, which can be stored, sent and applied once.
//!
//! Nothing here may touch the store. A client's permission is checked before its request is read as
//! a purge, so that a client without it learns nothing.
//!
//! Begin with [`PurgeCandidate`] for requests, [`Invalidation`] for their effect, and
//! [`PeerCaches`] for its way to other caches.

mod applied_invalidations;
mod dialects;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod htcp;
mod invalidation;
mod journal;
pub mod neighbour;
mod peer_caches;
mod record;
mod selector;

use std::borrow::Cow;

use message::{HeaderId, Method, Request};
use policy::{Asker, Dialect, Purge};

pub use crate::applied_invalidations::AppliedInvalidations;
use crate::dialects::DialectReader;
pub use crate::dialects::{PurgeOrder, Share};
pub use crate::invalidation::{
    Cause, Id, Invalidation, InvalidationSource, InvalidationTarget, NewTimes, Sites, TOLD_FIELD,
    Url,
};
pub use crate::journal::{InvalidationError, Journal, JournalWrite};
pub use crate::peer_caches::{
    AllPeerCaches, Level, PeerCaches, PreparedPropagation, Propagation, PropagationBatch,
    WAIT_FIELD,
};
pub use crate::record::InvalidationDecodeError;
pub use crate::selector::{ResponseSelector, of_host};

/// The convention for the response to a purge request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// 200 in any case, as in Varnish.
    Always,
    /// 200, or 404 if nothing was stored, as in nginx and Squid.
    OrMissing,
    /// 204, as in Souin.
    Empty,
}

/// The reason why a purge is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client's address or token is not permitted.
    Access,
    /// The method belongs to no dialect of this site.
    Method,
    /// The request is in this dialect, which the site does not accept.
    Foreign(Dialect),
    /// It is for one URL, and its Host names no site.
    Host,
    /// A required field or part is missing.
    Missing(&'static str),
    /// An invalid regular expression.
    Pattern,
    /// A pattern of tags that cannot be evaluated, because stored tags are hashes.
    TagPattern,
}

/// A purge request that was understood.
#[derive(Debug)]
pub enum PurgeRequest {
    /// An order for the store.
    Store(PurgeOrder, Answers),
    /// Fetch the request's target again, and answer with it.
    Refresh,
}

/// A request that may be a purge.
#[derive(Clone, Copy, Debug)]
pub struct PurgeCandidate<'a> {
    /// The request.
    pub request: &'a Request,
    /// True if its Host names the site that reads it.
    pub named: bool,
}

/// Reads a request as a purge by the rules of `purge`; `None` for an ordinary request. `asker`
/// returns the client's permission, and is called only for a request that may be a purge.
///
/// # Errors
/// The client may not purge, or the purge cannot be carried out.
pub fn read(
    purge: &Purge,
    said: PurgeCandidate<'_>,
    asker: impl FnOnce() -> Asker,
) -> Option<Result<PurgeRequest, Refusal>> {
    let reading = DialectReader { of: purge.dialects, named: said.named };
    let calls = reading.calls(said.request)?;
    let admitted = purge.admits(asker(), |token| brings(token, said.request));
    if !admitted && calls.may_be_readers(said.request) {
        return None;
    }
    Some(if admitted { reading.read(said.request, calls) } else { Err(Refusal::Access) })
}

/// Fields in which plugins send a token. In Authorization it follows `Bearer`.
const TOKEN_FIELDS: [&[u8]; 3] = [b"x-purge-token", b"x-purge-key", b"fastly-key"];

fn brings(token: &[u8], request: &Request) -> bool {
    let headers = &request.headers;
    let bearer = headers.values(HeaderId::Authorization).filter_map(|value| {
        let (scheme, rest) = value.split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
    });
    let fields = TOKEN_FIELDS.iter().flat_map(|name| headers.values_named(name));
    bearer.chain(fields).any(|value| same(value, token))
}

/// Compares two texts in a time that depends only on their lengths.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Refusal {
    /// Status and text of the response.
    pub fn answer(self) -> (u16, Cow<'static, str>) {
        let (status, text) = match self {
            Self::Access => (403, "You may not purge here."),
            Self::Method => (405, "This site does not accept this purge method."),
            Self::Foreign(dialect) => {
                let name = dialect.name();
                return (
                    405,
                    format!("This site does not accept purges of the dialect {name}.").into(),
                );
            }
            Self::Host => {
                (421, "A purge of one URL needs its site's Host, and no site here has this one.")
            }
            Self::Missing(what) => (400, what),
            Self::Pattern => (400, "The regular expression is malformed or too large."),
            Self::TagPattern => {
                (400, "Tags are stored as hashes: name them completely, as in (^|,)(a|b)(,|$).")
            }
        };
        (status, text.into())
    }

    /// Ranks refusals by their help to the client, if several sites reject a request.
    pub fn rank(self) -> u8 {
        match self {
            Self::Method | Self::Foreign(_) => 0,
            Self::Access => 1,
            Self::Missing(_) => 2,
            Self::Host => 3,
            Self::Pattern | Self::TagPattern => 4,
        }
    }
}

/// Returns true if a method may be a purge's. Such a method has no other meaning here.
pub fn is_purge_method(method: &Method) -> bool {
    matches!(method, Method::Purge | Method::Ban)
        || matches!(method.token(), b"PURGEKEYS" | b"URIBAN" | b"REFRESH")
}

#[cfg(test)]
mod tests;
