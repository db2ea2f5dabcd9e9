//! The subroutines that Varnish calls, and what each may return.

use std::fmt;

macro_rules! subs {
    ($($name:ident = $word:literal, $bit:literal, $side:ident, [$($action:ident),*];)*) => {
        /// A subroutine that is called by name at a step of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Sub { $(#[doc = concat!("`", $word, "`")] $name,)* }

        impl Sub {
            /// All of them, in the order of a request's way.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Its name: `vcl_recv`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// It alone, as a set.
            pub const fn only(self) -> Subs {
                match self { $(Self::$name => Subs(1 << $bit),)* }
            }

            /// The task that it belongs to.
            pub fn side(self) -> TaskSide {
                match self { $(Self::$name => TaskSide::$side,)* }
            }

            /// The verbs that it may return.
            pub fn actions(self) -> &'static [ActionKind] {
                match self { $(Self::$name => &[$(ActionKind::$action),*],)* }
            }
        }
    };
}

/// The task a subroutine belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSide {
    /// The client's request.
    Client,
    /// The fetch from a backend.
    Backend,
    /// The program's own life.
    Housekeeping,
}

subs! {
    Recv = "vcl_recv", 0, Client, [Fail, Hash, Pass, Pipe, Purge, Restart, Synth, Vcl];
    Pipe = "vcl_pipe", 1, Client, [Fail, Pipe, Synth];
    Pass = "vcl_pass", 2, Client, [Fail, Fetch, Restart, Synth];
    Hash = "vcl_hash", 3, Client, [Fail, Lookup];
    Purge = "vcl_purge", 4, Client, [Fail, Restart, Synth];
    Miss = "vcl_miss", 5, Client, [Fail, Fetch, Pass, Restart, Synth];
    Hit = "vcl_hit", 6, Client, [Deliver, Fail, Pass, Restart, Synth];
    Deliver = "vcl_deliver", 7, Client, [Deliver, Fail, Restart, Synth];
    Synth = "vcl_synth", 8, Client, [Deliver, Fail, Restart];
    BackendFetch = "vcl_backend_fetch", 9, Backend, [Abandon, Error, Fail, Fetch];
    BackendRefresh = "vcl_backend_refresh", 14, Backend,
        [Abandon, Beresp, Error, Fail, Merge, ObjStale, Retry];
    BackendResponse =
        "vcl_backend_response", 10, Backend, [Abandon, Deliver, Error, Fail, Pass, Retry];
    BackendError = "vcl_backend_error", 11, Backend, [Abandon, Deliver, Fail, Retry];
    Init = "vcl_init", 12, Housekeeping, [Fail, Ok];
    Fini = "vcl_fini", 13, Housekeeping, [Ok];
}

/// A set of subroutines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subs(pub u16);

impl Subs {
    /// None.
    pub const NONE: Self = Self(0);
    /// Those of the client's task.
    pub const CLIENT: Self = Self(0x1ff);
    /// Those of the backend's task.
    pub const BACKEND: Self = Self(0x4e00);
    /// Both tasks.
    pub const BOTH: Self = Self(0x4fff);
    /// Those of the program's own life.
    pub const HOUSEKEEPING: Self = Self(0x3000);
    /// All.
    pub const ALL: Self = Self(0x7fff);

    /// Those of either.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if `sub` is in the set.
    pub fn has(self, sub: Sub) -> bool {
        self.0 & sub.only().0 != 0
    }

    /// Returns true if all of `others` are in the set.
    pub fn has_all(self, others: Self) -> bool {
        others.0 & !self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Sub> {
        Sub::ALL.iter().copied().filter(move |sub| self.has(*sub))
    }
}

macro_rules! verbs {
    ($($name:ident = $word:literal;)*) => {
        /// The word of a `return (...)`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ActionKind { $(#[doc = concat!("`", $word, "`")] $name,)* }

        impl ActionKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The verb that `word` is.
            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|verb| verb.word() == word)
            }
        }
    };
}

verbs! {
    Abandon = "abandon";
    Beresp = "beresp";
    Deliver = "deliver";
    Error = "error";
    Fail = "fail";
    Fetch = "fetch";
    Hash = "hash";
    Lookup = "lookup";
    Merge = "merge";
    ObjStale = "obj_stale";
    Ok = "ok";
    Pass = "pass";
    Pipe = "pipe";
    Purge = "purge";
    Restart = "restart";
    Retry = "retry";
    Synth = "synth";
    Vcl = "vcl";
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The result of a subroutine.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Give up the fetch.
    Abandon,
    /// Keep the confirmed body under the fields of the confirmation.
    Beresp,
    /// Deliver, or use the answer.
    Deliver,
    /// From the fetch to `vcl_backend_error`.
    Error(SyntheticStatus),
    /// The program has failed (`return (fail)`, a VMOD's failure, the budget of steps). The reason,
    /// for the log; empty for a `return (fail)` without one.
    Fail(Box<str>),
    /// Fetch.
    Fetch,
    /// Go to the lookup.
    Hash,
    /// Look up.
    Lookup,
    /// Merge the fields of a confirmation into those of what it confirms.
    Merge,
    /// Keep what is confirmed under its own fields.
    ObjStale,
    /// `vcl_init` is content.
    Ok,
    /// Pass; from `vcl_backend_response` with the seconds for which others pass, too.
    Pass(Option<f64>),
    /// Pipe.
    Pipe,
    /// Purge.
    Purge,
    /// From the beginning.
    Restart,
    /// Fetch again.
    Retry,
    /// Answer with this.
    Synth(SyntheticStatus),
    /// Go on in the program of this label.
    Vcl(Box<str>),
}

impl Action {
    /// Its word.
    pub fn verb(&self) -> ActionKind {
        match self {
            Self::Abandon => ActionKind::Abandon,
            Self::Beresp => ActionKind::Beresp,
            Self::Deliver => ActionKind::Deliver,
            Self::Error(_) => ActionKind::Error,
            Self::Fail(_) => ActionKind::Fail,
            Self::Fetch => ActionKind::Fetch,
            Self::Hash => ActionKind::Hash,
            Self::Lookup => ActionKind::Lookup,
            Self::Merge => ActionKind::Merge,
            Self::ObjStale => ActionKind::ObjStale,
            Self::Ok => ActionKind::Ok,
            Self::Pass(_) => ActionKind::Pass,
            Self::Pipe => ActionKind::Pipe,
            Self::Purge => ActionKind::Purge,
            Self::Restart => ActionKind::Restart,
            Self::Retry => ActionKind::Retry,
            Self::Synth(_) => ActionKind::Synth,
            Self::Vcl(_) => ActionKind::Vcl,
        }
    }
}

/// Status and reason of a synthetic answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticStatus {
    /// 100 to 65535. What is sent is its last three digits.
    pub status: u16,
    /// None for the usual one.
    pub reason: Option<Box<[u8]>>,
}
