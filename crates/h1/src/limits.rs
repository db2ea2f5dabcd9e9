//! Limits of a head.

/// Limits of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadLimits {
    /// Bytes of the whole head, including start line and final blank line.
    pub head_bytes: usize,
    /// Bytes of one field line without its CRLF.
    pub field_bytes: usize,
    /// Fields of one head.
    pub field_count: usize,
    /// Bytes of a request target.
    pub target_bytes: usize,
    /// True if a target may have raw UTF-8, which is then escaped.
    pub raw_utf8: bool,
    /// Additional bytes for a response's fields with surrogate keys; if 0, such a field is limited
    /// by `field_bytes`.
    pub tag_bytes: usize,
}

impl HeadLimits {
    /// The limits for origins' responses.
    pub fn of_origins(limits: &base::Limits) -> Self {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        let or = |own: u64, common: usize| if own == 0 { common } else { bytes(own) };
        let common = Self::from(limits);
        Self {
            head_bytes: or(limits.response_header_bytes, common.head_bytes),
            field_bytes: or(limits.response_field_bytes, common.field_bytes),
            tag_bytes: bytes(limits.tag_bytes).saturating_mul(2),
            ..common
        }
    }
}

impl From<&base::Limits> for HeadLimits {
    fn from(limits: &base::Limits) -> Self {
        let bytes = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
        Self {
            head_bytes: bytes(limits.header_bytes),
            field_bytes: bytes(limits.header_field_bytes),
            field_count: bytes(limits.header_count),
            target_bytes: bytes(limits.target_bytes),
            raw_utf8: true,
            tag_bytes: 0,
        }
    }
}
