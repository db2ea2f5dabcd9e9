//! Trace context (W3C): `traceparent`, which joins the spans of several servers for one request to
//! one trace.

use std::fmt;

/// The field's name.
pub const FIELD: &[u8] = b"traceparent";

/// The field with vendors' additions, which accompanies [`FIELD`].
pub const STATE_FIELD: &[u8] = b"tracestate";

/// A `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace id; not zero.
    pub trace: u128,
    /// The caller's span id; not zero.
    pub span: u64,
    /// True if the caller may have recorded the trace.
    pub sampled: bool,
}

impl TraceContext {
    /// Parses a field's value. Of later versions, only the parts known here are parsed (2.2.1
    /// "Versioning of traceparent").
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (fixed, rest) = value.split_first_chunk::<55>()?;
        let lower_hex = |digits: &[u8]| {
            let all = digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
            let text = std::str::from_utf8(digits).ok()?;
            u128::from_str_radix(text, 16).ok().filter(|_| all)
        };
        let signs = [fixed[2], fixed[35], fixed[52]];
        let version = lower_hex(&fixed[..2])?;
        let ends = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        if signs != *b"---" || !ends {
            return None;
        }
        let (trace, span) = (lower_hex(&fixed[3..35])?, lower_hex(&fixed[36..52])?);
        let flags = lower_hex(&fixed[53..])?;
        let span = u64::try_from(span).ok()?;
        (trace != 0 && span != 0).then_some(Self { trace, span, sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, span, sampled } = self;
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(*sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_and_written() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(text.as_bytes()).expect("well-formed");
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.span, context.sampled), (0x00f0_67aa_0ba9_02b7, true));
        assert_eq!(context.to_string(), text);
        for (text, sampled) in [
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-fe", false),
            ("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03", true),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true),
            ("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what", true),
        ] {
            let context = TraceContext::parse(text.as_bytes());
            assert_eq!(context.map(|context| context.sampled), Some(sampled), "{text}");
        }
    }

    #[test]
    fn what_is_malformed_is_none() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.what",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
    }
}
