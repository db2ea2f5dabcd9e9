//! The verdict on a request's body before its first byte.

use base::{Counters, Limits};
use flow::Slow;
use message::{Framing, Request, Upgrade};

use super::fault::BodyFault;

/// The way in which the body of a request that waits is taken.
#[derive(Debug)]
pub(crate) enum Intake {
    /// The request has none.
    None,
    /// It is not taken at all.
    Refused(BodyFault),
    Taken {
        /// The client waits for a 100 (RFC 9110 10.1.1), and its connection sends it.
        continues: bool,
        /// It is received as far as `body_buffer_bytes` says before the request goes on.
        gathers: bool,
    },
}

impl Intake {
    /// For a request that `ends` with its head or does not.
    pub(crate) fn of(
        request: &Request,
        ends: bool,
        slow: &Slow,
        limits: &Limits,
        counters: &Counters,
    ) -> Self {
        if let Framing::Length(length) = request.framing
            && let Some(fault) = BodyFault::of_declared(length, limits, counters)
        {
            return Self::Refused(fault);
        }
        if ends {
            return Self::None;
        }
        // Then the body is first asked for, and the 100 sent, by what the request waits for.
        let late = request.expect_continue && slow.continues_late();
        Self::Taken {
            continues: request.expect_continue && !late,
            gathers: limits.body_buffer_bytes > 0 && request.upgrade == Upgrade::None && !late,
        }
    }
}
