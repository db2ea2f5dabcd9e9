//! Tracing: trace context for origins. A client's trace continues, and new traces begin for a
//! sample of the other requests.
//!
//! Only requests to origins are traced. Nothing is recorded here: the context that was sent is in
//! the request's [`Trace`](crate::state::trace::Trace), and an exporter reads it from the log ring.

use std::sync::atomic::{AtomicU64, Ordering};

use base::HashSeed;
use message::HeaderBlock;
use message::trace_context::{FIELD, STATE_FIELD, TraceContext};

/// The settings by which traces continue and begin.
#[derive(Debug)]
pub struct Tracing {
    /// A random number of 64 bits below this begins a trace.
    below: u64,
    seed: HashSeed,
    next: AtomicU64,
}

impl Tracing {
    /// Begins traces for the share `sample` of requests without one, from 0 to 1.
    pub fn new(sample: f64) -> Self {
        // The cast saturates at the largest number.
        let below = (sample * u64::MAX as f64) as u64;
        Self { below, seed: HashSeed::random(), next: AtomicU64::new(0) }
    }

    /// An unpredictable number other than 0.
    pub fn number(&self) -> u64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        self.seed.hash(&count.to_le_bytes()).max(1)
    }

    /// A new trace, if the sample selects this request.
    pub fn begin(&self) -> Option<TraceContext> {
        let (high, span) = (self.number(), self.number());
        let is_chosen = self.below == u64::MAX || self.number() < self.below;
        let trace = u128::from(high) << 64 | u128::from(self.number());
        is_chosen.then_some(TraceContext { trace, span, sampled: true })
    }

    /// The trace context of a request; two such fields count as none.
    pub fn brought(headers: &HeaderBlock) -> Option<TraceContext> {
        let mut values = headers.values_named(FIELD);
        let (value, None) = (values.next()?, values.next()) else { return None };
        TraceContext::parse(value)
    }

    /// Writes the trace and span into a request to an origin.
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
