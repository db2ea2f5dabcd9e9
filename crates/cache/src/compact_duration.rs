//! A compact duration: a duration in four bytes, for stored records.

const SECONDS: u32 = 1 << 31;

/// A duration in exact milliseconds up to 24 days, in whole seconds (rounded down) up to 68 years,
/// and not beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactDuration(u32);

impl CompactDuration {
    pub(crate) fn from_ms(ms: u64) -> Self {
        match u32::try_from(ms) {
            Ok(ms) if ms < SECONDS => Self(ms),
            _ => {
                Self(SECONDS | u32::try_from(ms / 1000).map_or(SECONDS - 1, |s| s.min(SECONDS - 1)))
            }
        }
    }

    /// The form that [`CompactDuration::of_bits`] takes.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    pub(crate) fn of_bits(bits: u32) -> Self {
        Self(bits)
    }

    pub(crate) fn as_ms(self) -> u64 {
        if self.0 < SECONDS { u64::from(self.0) } else { u64::from(self.0 & !SECONDS) * 1000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_keep_milliseconds_as_long_as_they_can() {
        for ms in [0, 1, 999, 86_400_000, (1 << 31) - 1] {
            assert_eq!(CompactDuration::from_ms(ms).as_ms(), ms);
        }
        assert_eq!(CompactDuration::from_ms(1 << 31).as_ms(), (1 << 31) / 1000 * 1000);
        assert_eq!(CompactDuration::from_ms(31_536_000_999).as_ms(), 31_536_000_000);
        assert_eq!(CompactDuration::from_ms(u64::MAX).as_ms(), ((1 << 31) - 1) * 1000);
    }
}
