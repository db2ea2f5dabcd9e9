//! Facts about subroutines, collected while each one is lowered and checked when all are.

use crate::source::SourceSpan;
use crate::sub::Subs;

/// Facts about one subroutine.
#[derive(Debug)]
pub(super) struct SubFacts {
    pub(super) name: Box<str>,
    /// Position of its first part.
    pub(super) span: SourceSpan,
    /// Restrictions that its statements impose.
    pub(super) restrictions: Vec<SubroutineRestriction>,
    /// Subroutines that it calls.
    pub(super) calls: Vec<(u32, SourceSpan)>,
    /// True if it has statements beyond the builtin VCL's.
    pub(super) own: bool,
    /// True if it reads or writes the head of `resp` or `obj`.
    pub(super) head: bool,
    /// Depth of its nested blocks.
    pub(super) blocks: u32,
    /// Position of the `return` in which its own part always ends.
    pub(super) ends: Option<SourceSpan>,
}

/// A restriction to some subroutines.
#[derive(Debug)]
pub(super) struct SubroutineRestriction {
    /// The beginning of the message: "`obj.hits` cannot be read".
    pub(super) what: Box<str>,
    pub(super) span: SourceSpan,
    pub(super) allowed: Subs,
    pub(super) kind: RestrictionKind,
}

/// Kind of a restriction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestrictionKind {
    /// A variable or a statement.
    Use,
    /// A function of a VMOD: only a warning, since the call fails at run time, as in Varnish.
    Lenient,
    /// The verb of a `return`.
    ActionKind,
}

impl SubFacts {
    pub(super) fn of(name: &str, span: SourceSpan) -> Self {
        Self {
            name: name.into(),
            span,
            restrictions: Vec::new(),
            calls: Vec::new(),
            own: false,
            head: false,
            blocks: 1,
            ends: None,
        }
    }
}
