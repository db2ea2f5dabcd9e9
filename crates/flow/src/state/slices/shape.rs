//! Shape of slices: their length and alignment.

use base::Limits;

/// The alignment of slices.
const GRAIN_BYTES: u64 = 64 * 1024;

/// The shape of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The length from which bodies are sliced.
    pub(crate) from: u64,
    /// The length of a slice.
    pub(crate) slice_bytes: u64,
    /// Slices fetched ahead of a reader.
    pub(crate) ahead: u64,
}

impl Shape {
    /// The shape in `limits`; `None` if bodies are not sliced.
    pub(crate) fn of(limits: &Limits) -> Option<Self> {
        let most = limits.slice_bytes.min(limits.object_bytes);
        let slice_bytes = most / GRAIN_BYTES * GRAIN_BYTES;
        let is_on = limits.slices_from > 0 && slice_bytes > 0;
        is_on.then_some(Self { from: limits.slices_from, slice_bytes, ahead: limits.slice_ahead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_slices_that_can_be_stored() {
        let limits = |slice_bytes, object_bytes, slices_from| {
            let limits = Limits { slice_bytes, object_bytes, slices_from, ..Limits::default() };
            Some(Shape::of(&limits)?.slice_bytes)
        };
        assert_eq!(limits(1 << 20, 1 << 26, 1), Some(1 << 20));
        assert_eq!(limits((1 << 20) + 5, 1 << 26, 1), Some(1 << 20));
        assert_eq!(limits(1 << 20, 100_000, 1), Some(65_536));
        assert_eq!(limits(1000, 1 << 26, 1), None);
        assert_eq!(limits(1 << 20, 1 << 26, 0), None, "off");
    }
}
