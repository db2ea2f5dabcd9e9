//! The failure of a running program.

/// Why a function failed. The program's subroutine ends with it
/// ([`Action::Fail`](crate::sub::Action::Fail)).
///
/// Boxed twice: a result that may be a failure then fits in registers, and nearly none is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFailure(Box<Box<str>>);

impl ProgramFailure {
    /// A failure for this reason.
    pub fn new(reason: impl Into<Box<str>>) -> Self {
        Self(Box::new(reason.into()))
    }

    /// The reason.
    pub fn into_reason(self) -> Box<str> {
        *self.0
    }
}
