//! Trace context towards origins: a trace that a client brings goes on, and one is begun for some
//! of the requests that bring none.
//!
//! Only what is fetched comes here. Nothing is recorded: what was sent stands in the request's
//! [`Trace`](crate::state::trace::Trace), and whoever exports spans finds it in the log ring.

use std::sync::atomic::{AtomicU64, Ordering};

use base::HashSeed;
use message::HeaderBlock;
use message::trace_context::{FIELD, STATE_FIELD, TraceContext};

/// The rule by which traces are continued and begun.
#[derive(Debug)]
pub struct Tracing {
    /// Of numbers of 64 bits, those below begin a trace.
    below: u64,
    seed: HashSeed,
    next: AtomicU64,
}

impl Tracing {
    /// Begins traces for `sample` of the requests that bring none, from 0 to 1.
    pub fn new(sample: f64) -> Self {
        // A float beyond the largest number becomes that.
        let below = (sample * u64::MAX as f64) as u64;
        Self { below, seed: HashSeed::random(), next: AtomicU64::new(0) }
    }

    /// A number that nobody can foretell; not zero.
    pub fn number(&self) -> u64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        self.seed.hash(&count.to_le_bytes()).max(1)
    }

    /// A new trace, if its turn has come.
    pub fn begin(&self) -> Option<TraceContext> {
        let (high, span) = (self.number(), self.number());
        let is_chosen = self.below == u64::MAX || self.number() < self.below;
        let trace = u128::from(high) << 64 | u128::from(self.number());
        is_chosen.then_some(TraceContext { trace, span, sampled: true })
    }

    /// The trace that a request brings. Two of them are none.
    pub fn brought(headers: &HeaderBlock) -> Option<TraceContext> {
        let mut values = headers.values_named(FIELD);
        let (value, None) = (values.next()?, values.next()) else { return None };
        TraceContext::parse(value)
    }

    /// Writes into a request to an origin to which trace and span it belongs.
    pub(crate) fn pass_on(&self, headers: &mut HeaderBlock) -> Option<TraceContext> {
        let sent = match Self::brought(headers) {
            Some(context) => Some(TraceContext { span: self.number(), ..context }),
            None => {
                headers.remove_named(FIELD);
                headers.remove_named(STATE_FIELD);
                self.begin()
            }
        };
        if let Some(context) = sent {
            headers.set_named(FIELD, context.to_string().as_bytes());
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_that_is_brought_goes_on_with_a_span_of_its_own() {
        let (tracing, mut headers) = (Tracing::new(0.0), HeaderBlock::new());
        let text = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        headers.push_named(b"Traceparent", text);
        headers.push_named(STATE_FIELD, b"a=b");
        let brought = Tracing::brought(&headers).expect("well-formed");
        let sent = tracing.pass_on(&mut headers).expect("it goes on");
        assert_eq!((sent.trace, sent.sampled), (brought.trace, false));
        assert_ne!(sent.span, brought.span);
        assert_eq!(Tracing::brought(&headers), Some(sent));
        assert_eq!(headers.value_named(STATE_FIELD), Some(&b"a=b"[..]));
    }

    #[test]
    fn what_is_malformed_or_twice_is_not_passed_on() {
        let text = &b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"[..];
        for values in [&[][..], &[&b"x"[..]], &[text, text]] {
            let (none, all) = (Tracing::new(0.0), Tracing::new(1.0));
            let mut headers = HeaderBlock::new();
            values.iter().for_each(|value| headers.push_named(FIELD, value));
            headers.push_named(STATE_FIELD, b"a=b");
            let mut other = headers.clone();
            assert_eq!(none.pass_on(&mut headers), None);
            assert!(headers.is_empty());
            let begun = all.pass_on(&mut other).expect("always");
            assert!(begun.sampled && Tracing::brought(&other) == Some(begun));
            assert_eq!(other.len(), 1);
        }
    }

    #[test]
    fn some_are_begun() {
        let tracing = Tracing::new(0.25);
        let begun = (0..4000).filter(|_| tracing.begin().is_some()).count();
        assert!((800..1200).contains(&begun), "{begun}");
    }
}
