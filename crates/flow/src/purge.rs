//! Purges: invalidations that are said by a request of a client that may (`dialects`) or by an
//! operator, and go through the door (`carry_out`).
//!
//! A client is looked at before its request is read as a purge: whoever may not learns nothing, and
//! what is refused reaches neither the store nor an origin.

mod carry_out;
mod dialects;
pub mod htcp;
mod listing;
mod reach;

use base::Counter;
use message::{HeaderId, Method, Request, Status};
use policy::{Asker, Dialect, Purge};

pub use carry_out::Page;
pub(crate) use dialects::Order;
use dialects::Reading;
pub use listing::{Listing, Seen};
pub(crate) use reach::{Share, find};

use crate::core::Core;
use crate::invalidate::{NotDone, Outcome};
use crate::pages;
use crate::reply::Reply;

/// Conventions for the answer to a purge request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// 200, whatever was there: Varnish's custom.
    Always,
    /// 200, or 404 when nothing was: nginx's and Squid's.
    OrMissing,
    /// 204: Souin's.
    Empty,
}

/// Reasons to refuse a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// From there, or without the token, nobody purges.
    Access,
    /// The method belongs to no dialect of this site.
    Method,
    /// It is said in this dialect, which is none of this site's.
    Foreign(Dialect),
    /// It is for one URL, and its Host names no site.
    Host,
    /// The dialect wants something that is not there.
    Missing(&'static str),
    /// A regular expression that cannot be used.
    Pattern,
    /// A pattern of tags of which it is not known which tags it means.
    TagPattern,
}

/// A purge request that was understood.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Something is to be done with the store.
    Store(Order, Answers),
    /// The request's target is to be fetched anew, and the answer is that.
    Refresh,
}

/// A request that may be a purge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Said<'a> {
    pub(crate) request: &'a Request,
    /// Its Host names the site that reads it.
    pub(crate) named: bool,
}

/// Reads a request as a purge. `None` when it is an ordinary one of a reader.
fn read(
    purge: &Purge,
    said: Said<'_>,
    asker: impl FnOnce() -> Asker,
) -> Option<Result<Asked, Refusal>> {
    let reading = Reading { of: purge.dialects, named: said.named };
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

impl Core {
    /// The answer to a purge that is refused.
    pub(crate) fn refuse_purge(&self, request: &Request, refusal: Refusal) -> Reply {
        self.counters.inc(match refusal {
            Refusal::Host => Counter::PurgesLost,
            _ => Counter::PurgesRefused,
        });
        let foreign;
        let (code, reason) = match refusal {
            Refusal::Access => (403, "You may not purge here."),
            Refusal::Method => (405, "This site has no such purge."),
            Refusal::Foreign(dialect) => {
                foreign =
                    format!("This site does not take purges of the dialect {}.", dialect.name());
                (405, foreign.as_str())
            }
            Refusal::Host => {
                (421, "A purge of one URL needs its site's Host, and no site here has this one.")
            }
            Refusal::Missing(what) => (400, what),
            Refusal::Pattern => (400, "The regular expression is malformed or too large."),
            Refusal::TagPattern => {
                (400, "Tags are kept as hashes: name them whole, as in (^|,)(a|b)(,|$).")
            }
        };
        let status = Status::new(code).unwrap_or(Status::OK);
        pages::purge_refused(request, status, reason)
    }

    /// The answer to a purge that did not take effect.
    pub(crate) fn purge_not_done(&self, request: &Request, why: &NotDone) -> Reply {
        let status = Status::new(503).unwrap_or(Status::OK);
        pages::purge_refused(request, status, &why.to_string())
    }

    /// The answer to a purge that hit so many responses.
    pub(crate) fn purged(&self, request: &Request, outcome: Outcome, answers: Answers) -> Reply {
        self.counters.inc(Counter::Purges);
        self.counters.add(Counter::Invalidations, outcome.objects);
        let status = match answers {
            Answers::Empty => Status::NO_CONTENT,
            Answers::OrMissing if outcome.objects == 0 => Status::new(404).unwrap_or(Status::OK),
            Answers::Always | Answers::OrMissing => Status::OK,
        };
        pages::purged(request, status, outcome)
    }
}

/// Returns true if a method may be a purge's; nothing else is answered here for such a method.
pub(crate) fn is_purge_method(method: &Method) -> bool {
    matches!(method, Method::Purge | Method::Ban)
        || matches!(method.token(), b"PURGEKEYS" | b"URIBAN" | b"REFRESH")
}

#[cfg(test)]
#[path = "purge/tests.rs"]
mod tests;
