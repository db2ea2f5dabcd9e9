//! Facts about subroutines that are gathered while each is lowered.

use crate::source::SourceSpan;
use crate::sub::Subs;

/// Facts about a subroutine that others must know.
#[derive(Debug)]
pub(super) struct SubFacts {
    pub(super) name: Box<str>,
    /// Where its first part begins.
    pub(super) span: SourceSpan,
    /// Its actions that are not allowed everywhere.
    pub(super) needs: Vec<SubroutineRestriction>,
    /// The subroutines it calls.
    pub(super) calls: Vec<(u32, SourceSpan)>,
    /// There is something in it that the builtin VCL does not have.
    pub(super) own: bool,
    /// It touches `resp`'s or `obj`'s head.
    pub(super) head: bool,
    /// Blocks within each other.
    pub(super) blocks: u32,
    /// Its own part ends in a `return` in any case.
    pub(super) ends: Option<SourceSpan>,
}

/// Something that is allowed in some subroutines only.
#[derive(Debug)]
pub(super) struct SubroutineRestriction {
    /// The complaint: "`obj.hits` cannot be read".
    pub(super) what: Box<str>,
    pub(super) span: SourceSpan,
    pub(super) allowed: Subs,
    pub(super) kind: RestrictionKind,
}

/// The kind of a need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestrictionKind {
    /// A variable or a statement.
    Use,
    /// It is warned of only: it fails when it runs, as Varnish has it for functions of VMODs.
    Lenient,
    /// The verb of a `return`.
    ActionKind,
}

impl SubFacts {
    pub(super) fn of(name: &str, span: SourceSpan) -> Self {
        Self {
            name: name.into(),
            span,
            needs: Vec::new(),
            calls: Vec::new(),
            own: false,
            head: false,
            blocks: 1,
            ends: None,
        }
    }
}
