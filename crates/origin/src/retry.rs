//! Failures that are tried again on another server, and answers that count against their server.

use message::Status;

use crate::error::{Error, TimeoutStep};

/// Statuses from 400 to 527.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statuses(u128);

impl Statuses {
    /// The lowest and the highest that can be among them.
    pub const RANGE: (u16, u16) = (400, 527);

    /// Adds `code`; false when it is out of range.
    pub fn insert(&mut self, code: u16) -> bool {
        let bit = bit(code);
        self.0 |= bit;
        bit != 0
    }

    /// Returns true if `status` is one of them.
    pub fn has(self, status: Status) -> bool {
        self.0 & bit(status.code()) != 0
    }
}

impl FromIterator<u16> for Statuses {
    /// Those of the codes that are in range.
    fn from_iter<I: IntoIterator<Item = u16>>(codes: I) -> Self {
        Self(codes.into_iter().fold(0, |all, code| all | bit(code)))
    }
}

fn bit(code: u16) -> u128 {
    let (least, most) = Statuses::RANGE;
    if (least..=most).contains(&code) { 1 << (code - least) } else { 0 }
}

/// Why a request is tried again on another server, or the same one; never one that may have been
/// acted on and is not idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// There was no connection.
    pub connect: bool,
    /// The connection ended before an answer.
    pub drop: bool,
    /// The server took too long to connect, to take the request or to answer, and there is another
    /// one.
    pub timeout: bool,
    /// It was answered with one of these, and there is another server.
    pub statuses: Statuses,
}

impl Default for RetryOn {
    /// Whatever gave no answer.
    fn default() -> Self {
        Self { connect: true, drop: true, timeout: true, statuses: Statuses::default() }
    }
}

impl RetryOn {
    /// Nothing at all.
    pub const NOTHING: Self =
        Self { connect: false, drop: false, timeout: false, statuses: Statuses(0) };

    /// Returns true if a request is tried again after `error`; `has_other` tells of a server that
    /// was not asked yet.
    pub(crate) fn helps(&self, error: &Error, has_other: impl Fn() -> bool) -> bool {
        match error {
            Error::Connect { .. } | Error::Resolve { .. } => self.connect,
            error if error.is_drop() => self.drop,
            // It has done nothing, but more of the same would not help it either.
            Error::NoAnswer { protocol: fastcgi::ProtocolStatus::Overloaded, .. } => has_other(),
            // A server that is slow is not helped by more of the same.
            Error::Timeout { step: TimeoutStep::Connect, .. } => {
                (self.connect || self.timeout) && has_other()
            }
            Error::Timeout { step: TimeoutStep::Send | TimeoutStep::FirstByte, .. } => {
                self.timeout && has_other()
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16) -> Status {
        Status::new(code).expect("three digits")
    }

    #[test]
    fn statuses_are_from_400_to_527() {
        let mut all = Statuses::default();
        for code in [400, 503, 527] {
            assert!(!all.has(status(code)) && all.insert(code) && all.has(status(code)));
        }
        for code in [200, 399, 528, 999] {
            assert!(!all.insert(code) && !all.has(status(code)));
        }
        assert_eq!([503, 400, 527, 200].into_iter().collect::<Statuses>(), all);
    }

    #[test]
    fn each_cause_is_a_setting_of_its_own() {
        let server = || "s".into();
        let late = |step| Error::Timeout { server: server(), step, after_ms: 1 };
        let errors = [
            Error::Resolve { server: server() },
            Error::ClosedBeforeHead { server: server() },
            late(TimeoutStep::FirstByte),
            Error::Truncated { server: server() },
        ];
        let helps = |on: RetryOn| errors.each_ref().map(|error| on.helps(error, || true));
        let none = RetryOn::NOTHING;
        assert_eq!(helps(none), [false; 4]);
        assert_eq!(helps(RetryOn { connect: true, ..none }), [true, false, false, false]);
        assert_eq!(helps(RetryOn { drop: true, ..none }), [false, true, false, false]);
        assert_eq!(helps(RetryOn { timeout: true, ..none }), [false, false, true, false]);
        assert!(!RetryOn::default().helps(&late(TimeoutStep::FirstByte), || false));
        assert!(!RetryOn::default().helps(&late(TimeoutStep::Total), || true));
    }
}
