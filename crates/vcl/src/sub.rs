//! Subroutines that Varnish calls, and the actions that each may return. A [`Subs`] is a set of
//! them, one bit each.

use std::fmt;

macro_rules! subs {
    ($($name:ident = $word:literal, $bit:literal, $side:ident, [$($action:ident),*];)*) => {
        /// A subroutine that is called at a step of a request.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Sub { $(#[doc = concat!("`", $word, "`")] $name,)* }

        impl Sub {
            /// All subroutines, in the order of a request's steps.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// Name of the subroutine, such as `vcl_recv`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The set of this subroutine only.
            pub const fn only(self) -> Subs {
                match self { $(Self::$name => Subs(1 << $bit),)* }
            }

            /// The task in which the subroutine runs.
            pub fn side(self) -> TaskSide {
                match self { $(Self::$name => TaskSide::$side,)* }
            }

            /// Actions that the subroutine may return.
            pub fn actions(self) -> &'static [ActionKind] {
                match self { $(Self::$name => &[$(ActionKind::$action),*],)* }
            }
        }
    };
}

/// The side on which a subroutine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskSide {
    /// The client's request.
    Client,
    /// The fetch from a backend.
    Backend,
    /// The program's lifecycle.
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
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Subroutines of the client side.
    pub const CLIENT: Self = Self(0x1ff);
    /// Subroutines of the backend side.
    pub const BACKEND: Self = Self(0x4e00);
    /// Subroutines of both sides.
    pub const BOTH: Self = Self(0x4fff);
    /// Subroutines of the lifecycle.
    pub const HOUSEKEEPING: Self = Self(0x3000);
    /// All subroutines.
    pub const ALL: Self = Self(0x7fff);

    /// The union of both sets.
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

    /// The members.
    pub fn iter(self) -> impl Iterator<Item = Sub> {
        Sub::ALL.iter().copied().filter(move |sub| self.has(*sub))
    }
}

macro_rules! verbs {
    ($($name:ident = $word:literal;)*) => {
        /// Kind of an action: the verb of `return (...)`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ActionKind { $(#[doc = concat!("`", $word, "`")] $name,)* }

        impl ActionKind {
            /// All kinds.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The verb.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The kind whose verb is `word`.
            pub fn of(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.name() == name)
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
        f.write_str(self.name())
    }
}

/// Action that a subroutine returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Abandon the fetch.
    Abandon,
    /// Keep the stored body with the fields of the 304.
    Beresp,
    /// Deliver the response; on the backend side, accept it.
    Deliver,
    /// Continue in `vcl_backend_error`.
    Error(SyntheticStatus),
    /// The program failed (`return (fail)`, a VMOD's failure, the step budget), with the reason for
    /// the log; empty for `return (fail)` without one.
    Fail(Box<str>),
    /// Fetch from the backend.
    Fetch,
    /// Continue with the key.
    Hash,
    /// Look up.
    Lookup,
    /// Merge the fields of the 304 into those of the stored response.
    Merge,
    /// Keep the stored response with its own fields.
    ObjStale,
    /// `vcl_init` or `vcl_fini` has succeeded.
    Ok,
    /// Pass; from `vcl_backend_response` with the seconds for which later requests pass too.
    Pass(Option<f64>),
    /// Pipe.
    Pipe,
    /// Purge.
    Purge,
    /// Restart the request.
    Restart,
    /// Retry the fetch.
    Retry,
    /// Answer with a synthetic response.
    Synth(SyntheticStatus),
    /// Switch to the program of this label.
    Vcl(Box<str>),
}

impl Action {
    /// Kind of the action.
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

/// Status and reason of a synthetic response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntheticStatus {
    /// 100 to 65535; the last three digits are sent.
    pub status: u16,
    /// The reason phrase; `None` for the status's usual one.
    pub reason: Option<Box<[u8]>>,
}
