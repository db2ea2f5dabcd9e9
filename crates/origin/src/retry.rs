//! Retry rules: failures after which another server is tried, and statuses that count against their
//! server.

use message::Status;

use crate::error::{Error, TimeoutStep};

/// Statuses from 400 to 527.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statuses(u128);

impl Statuses {
    /// The lowest and the highest possible status.
    pub const RANGE: (u16, u16) = (400, 527);

    /// Adds `code`; false if it is out of range.
    pub fn insert(&mut self, code: u16) -> bool {
        let bit = bit(code);
        self.0 |= bit;
        bit != 0
    }

    /// Returns true if `status` is in the set.
    pub fn has(self, status: Status) -> bool {
        self.0 & bit(status.code()) != 0
    }
}

impl FromIterator<u16> for Statuses {
    /// The set of those codes that are in range.
    fn from_iter<I: IntoIterator<Item = u16>>(codes: I) -> Self {
        Self(codes.into_iter().fold(0, |all, code| all | bit(code)))
    }
}

fn bit(code: u16) -> u128 {
    let (least, most) = Statuses::RANGE;
    if (least..=most).contains(&code) { 1 << (code - least) } else { 0 }
}

/// The failures after which a request is retried on another server, or the same one; never a
/// request that may have been acted on and is not idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryOn {
    /// There was no connection.
    pub connect: bool,
    /// The connection ended before a response.
    pub drop: bool,
    /// The server took too long to connect, to receive the request or to answer, and there is
    /// another one.
    pub timeout: bool,
    /// The response has one of these statuses, and there is another server.
    pub statuses: Statuses,
}

impl Default for RetryOn {
    /// All failures without a response.
    fn default() -> Self {
        Self { connect: true, drop: true, timeout: true, statuses: Statuses::default() }
    }
}

impl RetryOn {
    /// No retries.
    pub const NOTHING: Self =
        Self { connect: false, drop: false, timeout: false, statuses: Statuses(0) };

    /// Returns true if a request is retried after `error`; `has_other` returns true if a server is
    /// left to try.
    pub(crate) fn helps(&self, error: &Error, has_other: impl Fn() -> bool) -> bool {
        match error {
            Error::Connect { .. } | Error::Resolve { .. } => self.connect,
            error if error.is_drop() => self.drop,
            Error::Refused { .. } | Error::Reset { in_body: false, .. } => self.drop,
            Error::NotHttp2 { .. } => self.connect,
            // It has done nothing, but more requests would not help it.
            Error::NoAnswer { protocol: fastcgi::ProtocolStatus::Overloaded, .. } => has_other(),
            // A slow server is not helped by more requests.
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
