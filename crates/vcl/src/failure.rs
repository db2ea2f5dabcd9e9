//! Failure of a running program. It always ends the current subroutine.

/// Failure of a function, with its reason. The subroutine ends with
/// [`Action::Fail`](crate::sub::Action::Fail).
///
/// Boxed twice, so that a result fits in registers: failures are rare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFailure(Box<Box<str>>);

impl ProgramFailure {
    /// A failure with this reason.
    pub fn new(reason: impl Into<Box<str>>) -> Self {
        Self(Box::new(reason.into()))
    }

    /// The reason.
    pub fn into_reason(self) -> Box<str> {
        *self.0
    }
}
