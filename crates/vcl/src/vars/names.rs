//! Variables that are not in the table because there are as many as there are names: headers and
//! storages. And the nearest name to one that is not known.

use strsim::levenshtein;

use crate::state::ctx::Ctx;
use crate::state::value::{Value, VclMessage};
use crate::sub::{Sub, Subs};
use crate::types::Type;

/// A header of a message as a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderVar<'a> {
    /// Of which message.
    pub place: VclMessage,
    /// The header's name as written, which may break the rules for such names
    /// ([`check_name`](crate::headers::check_name)).
    pub name: &'a str,
    /// Where it may be read.
    pub read: Subs,
    /// Where it may be set.
    pub write: Subs,
    /// Where it may be unset.
    pub unset: Subs,
}

/// Of which messages headers can be used, and where: reading, and setting and unsetting.
pub(super) const MESSAGES: [(&str, VclMessage, Subs, Subs); 7] = [
    ("req", VclMessage::Req, Subs::CLIENT, Subs::CLIENT),
    ("req_top", VclMessage::ReqTop, Subs::CLIENT, Subs::NONE),
    ("bereq", VclMessage::Bereq, super::backend::PIPE_OR_BACKEND, super::backend::PIPE_OR_BACKEND),
    ("beresp", VclMessage::Beresp, super::response::FETCHED, super::response::FETCHED),
    ("obj_stale", VclMessage::Obj, Sub::BackendRefresh.only(), Subs::NONE),
    ("obj", VclMessage::Obj, Sub::Hit.only(), Subs::NONE),
    ("resp", VclMessage::Resp, super::response::DELIVERED, super::response::DELIVERED),
];

/// The header that `name` (`req.http.Host`) is, if it is one.
pub fn header(name: &str) -> Option<HeaderVar<'_>> {
    let (message, rest) = name.split_once('.')?;
    let header = rest.strip_prefix("http.")?;
    let (_, place, read, write) = MESSAGES.into_iter().find(|(of, ..)| *of == message)?;
    Some(HeaderVar { place, name: header, read, write, unset: write })
}

/// A fact about a storage as a variable. All can be read everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageVar<'a> {
    /// The storage's name.
    pub storage: &'a str,
    /// The fact.
    pub fact: StorageFact,
}

/// A fact that can be asked of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFact {
    /// `.free_space`
    FreeSpace,
    /// `.used_space`
    UsedSpace,
    /// `.happy`: always true, as in Varnish for storages that know nothing of that.
    Happy,
}

impl StorageFact {
    /// All of them with their names and what they are.
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::FreeSpace, "free_space", "Free bytes in the storage."),
        (Self::Happy, "happy", "Whether the storage is healthy. Always true."),
        (Self::UsedSpace, "used_space", "Used bytes in the storage."),
    ];

    /// Its type.
    pub fn kind(self) -> Type {
        match self {
            Self::FreeSpace | Self::UsedSpace => Type::Bytes,
            Self::Happy => Type::Bool,
        }
    }

    /// Reads it. Of a storage that is not there, nothing is free or used.
    pub fn get(self, ctx: &Ctx<'_>, storage: &str) -> Value {
        let (free, used) = ctx.world.storage(storage).unwrap_or_default();
        let bytes = |n: u64| Value::Bytes(i64::try_from(n).unwrap_or(i64::MAX));
        match self {
            Self::FreeSpace => bytes(free),
            Self::UsedSpace => bytes(used),
            Self::Happy => Value::Bool(true),
        }
    }
}

impl StorageVar<'_> {
    /// Where it may be read.
    pub const READ: Subs = Subs::ALL;
}

/// The fact that `name` (`storage.s0.free_space`) is, if it is one. Whether there is such a storage
/// is not checked.
pub fn storage(name: &str) -> Option<StorageVar<'_>> {
    let (storage, fact) = name.strip_prefix("storage.")?.rsplit_once('.')?;
    let (fact, ..) =
        StorageFact::ALL.into_iter().find(|(_, word, _)| word.eq_ignore_ascii_case(fact))?;
    Some(StorageVar { storage, fact })
}

/// The candidate that fewest changes of single letters make of `name`; `None` if it takes more than
/// a third of the name's letters.
pub(super) fn nearest(
    name: &str,
    candidates: impl Iterator<Item = &'static str>,
) -> Option<&'static str> {
    let most = name.len().div_ceil(3);
    candidates
        .map(|candidate| (levenshtein(name, candidate), candidate))
        .min_by_key(|(changes, _)| *changes)
        .filter(|(changes, _)| *changes <= most)
        .map(|(_, candidate)| candidate)
}

/// The header that is meant by a name with a slip in `http` or in the message (`req.htp.Host`).
pub fn nearest_header(name: &str) -> Option<String> {
    let (message, rest) = name.split_once('.')?;
    let (http, header) = rest.split_once('.')?;
    if header.is_empty() || levenshtein(http, "http") > 2 {
        return None;
    }
    let near = |known: &str| levenshtein(message, known);
    let (known, ..) = MESSAGES.into_iter().min_by_key(|(known, ..)| near(known))?;
    (near(known) <= 1).then(|| format!("{known}.http.{header}"))
}
