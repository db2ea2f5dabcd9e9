//! Names of variables that no table can list: headers and storages; and the nearest name to an
//! unknown one. Whether a storage exists is not checked here.

use strsim::levenshtein;

use crate::state::ctx::Ctx;
use crate::state::value::{Value, VclMessage};
use crate::sub::{Sub, Subs};
use crate::types::Type;

/// A header variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderVar<'a> {
    /// The message.
    pub message: VclMessage,
    /// Name of the header as written, which may be invalid
    /// ([`check_name`](crate::headers::check_name)).
    pub name: &'a str,
    /// Subroutines that may read it.
    pub read: Subs,
    /// Subroutines that may set it.
    pub write: Subs,
    /// Subroutines that may unset it.
    pub unset: Subs,
}

/// Messages with headers, the subroutines that may read them, and those that may change them.
pub(super) const MESSAGES: [(&str, VclMessage, Subs, Subs); 7] = [
    ("req", VclMessage::Req, Subs::CLIENT, Subs::CLIENT),
    ("req_top", VclMessage::ReqTop, Subs::CLIENT, Subs::NONE),
    ("bereq", VclMessage::Bereq, super::backend::PIPE_OR_BACKEND, super::backend::PIPE_OR_BACKEND),
    ("beresp", VclMessage::Beresp, super::response::FETCHED, super::response::FETCHED),
    ("obj_stale", VclMessage::Obj, Sub::BackendRefresh.only(), Subs::NONE),
    ("obj", VclMessage::Obj, Sub::Hit.only(), Subs::NONE),
    ("resp", VclMessage::Resp, super::response::DELIVERED, super::response::DELIVERED),
];

/// The header variable `name` (`req.http.Host`), if it is one.
pub fn header(name: &str) -> Option<HeaderVar<'_>> {
    let (message, rest) = name.split_once('.')?;
    let header = rest.strip_prefix("http.")?;
    let (_, message, read, write) = MESSAGES.into_iter().find(|(of, ..)| *of == message)?;
    Some(HeaderVar { message, name: header, read, write, unset: write })
}

/// A variable of a storage. All subroutines may read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StorageVar<'a> {
    /// The storage's name.
    pub storage: &'a str,
    /// The fact.
    pub fact: StorageFact,
}

/// A fact about a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFact {
    /// `.free_space`
    FreeSpace,
    /// `.used_space`
    UsedSpace,
    /// `.happy`: always true, as in Varnish for storages without such a notion.
    Happy,
}

impl StorageFact {
    /// All facts with their names and descriptions.
    pub const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::FreeSpace, "free_space", "Free bytes in the storage."),
        (Self::Happy, "happy", "Whether the storage is healthy. Always true."),
        (Self::UsedSpace, "used_space", "Used bytes in the storage."),
    ];

    /// Type of the fact.
    pub fn kind(self) -> Type {
        match self {
            Self::FreeSpace | Self::UsedSpace => Type::Bytes,
            Self::Happy => Type::Bool,
        }
    }

    /// Reads the fact. An unknown storage has no free and no used bytes.
    pub fn get(self, ctx: &Ctx<'_>, storage: &str) -> Value {
        let (free, used) = ctx.environment.storage(storage).unwrap_or_default();
        let bytes = |n: u64| Value::Bytes(i64::try_from(n).unwrap_or(i64::MAX));
        match self {
            Self::FreeSpace => bytes(free),
            Self::UsedSpace => bytes(used),
            Self::Happy => Value::Bool(true),
        }
    }
}

impl StorageVar<'_> {
    /// Subroutines that may read it.
    pub const READ: Subs = Subs::ALL;
}

/// The storage variable `name` (`storage.s0.free_space`), if it is one. The storage need not exist.
pub fn storage(name: &str) -> Option<StorageVar<'_>> {
    let (storage, fact) = name.strip_prefix("storage.")?.rsplit_once('.')?;
    let (fact, ..) =
        StorageFact::ALL.into_iter().find(|(_, word, _)| word.eq_ignore_ascii_case(fact))?;
    Some(StorageVar { storage, fact })
}

/// The candidate with the least edit distance to `name`; `None` if that exceeds a third of the
/// name.
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

/// The header variable that is meant by a typo in `http` or in the message (`req.htp.Host`).
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
