//! Purges: requests in the dialects of a site and datagrams of HTCP, as applications, their plugins
//! and other caches send them, and their meaning as data: an [`Order`], and in the end
//! [`Invalidation`]s, which can be written, sent and applied once.
//!
//! Pure: nothing here reaches the store. A client is looked at before its request is read as a
//! purge, so that whoever may not learns nothing.

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

/// Conventions for the answer to a purge request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// 200, whatever was there: Varnish's custom.
    Always,
    /// 200, or 404 when nothing was: nginx's and Squid's.
    OrMissing,
    /// 204: Souin's.
    Empty,
}

/// Reasons to refuse a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// From there, or without the token, nobody purges.
    Access,
    /// The method belongs to no dialect of this site.
    Method,
    /// It is said in this dialect, which the site does not have.
    Foreign(Dialect),
    /// It is for one URL, and its Host names no site.
    Host,
    /// The dialect wants something that is not there.
    Missing(&'static str),
    /// A regular expression that cannot be used.
    Pattern,
    /// A pattern of tags that cannot be told apart: stored tags are hashes.
    TagPattern,
}

/// A purge request that was understood.
#[derive(Debug)]
pub enum PurgeRequest {
    /// Something is to be done with the store.
    Store(PurgeOrder, Answers),
    /// The request's target is to be fetched anew, and the answer is that.
    Refresh,
}

/// A request that may be a purge.
#[derive(Clone, Copy, Debug)]
pub struct PurgeCandidate<'a> {
    /// The request.
    pub request: &'a Request,
    /// Its Host names the site that reads it.
    pub named: bool,
}

/// Reads a request as a purge by the rules of `purge`; `None` for an ordinary one of a reader.
/// `asker` tells who asks, and is called only for what may be a purge.
///
/// # Errors
/// The client may not purge, or the request is a purge that cannot be carried out.
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

/// Fields in which plugins send a token; of Authorization it is what follows `Bearer`.
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

/// Equality in a time that does not tell where two texts of one length differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

impl Refusal {
    /// Status and text of the answer.
    pub fn answer(self) -> (u16, Cow<'static, str>) {
        let (status, text) = match self {
            Self::Access => (403, "You may not purge here."),
            Self::Method => (405, "This site has no such purge."),
            Self::Foreign(dialect) => {
                let name = dialect.name();
                return (
                    405,
                    format!("This site does not take purges of the dialect {name}.").into(),
                );
            }
            Self::Host => {
                (421, "A purge of one URL needs its site's Host, and no site here has this one.")
            }
            Self::Missing(what) => (400, what),
            Self::Pattern => (400, "The regular expression is malformed or too large."),
            Self::TagPattern => {
                (400, "Tags are kept as hashes: name them whole, as in (^|,)(a|b)(,|$).")
            }
        };
        (status, text.into())
    }

    /// Ranks a refusal by how much it helps the client, where several sites refuse.
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

/// Returns true if a method may be a purge's; nothing else is answered here for such a method.
pub fn is_purge_method(method: &Method) -> bool {
    matches!(method, Method::Purge | Method::Ban)
        || matches!(method.token(), b"PURGEKEYS" | b"URIBAN" | b"REFRESH")
}

#[cfg(test)]
mod tests;
