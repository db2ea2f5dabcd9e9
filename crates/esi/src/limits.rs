//! Limits of parsing and resolving a page. Nothing that a page can enlarge is without one.

/// Limits of one page. Parts beyond a limit are left out, with a remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most nodes of a page, and most nodes that it resolves to.
    pub nodes: usize,
    /// Most open elements.
    pub nesting: usize,
    /// Most bytes of one tag with its attributes.
    pub attribute_bytes: usize,
    /// Most bytes of one attribute or variable after expansion.
    pub value_bytes: usize,
    /// Most variables that a page sets, and most blocks and inline fragments that it names.
    pub names: usize,
    /// Most regular expressions in a page.
    pub patterns: usize,
    /// Most remarks that are stored. Beyond them remarks are only counted.
    pub remarks: usize,
}

impl Default for Limits {
    /// Enough for pages that people write.
    fn default() -> Self {
        Self {
            nodes: 10_000,
            nesting: 32,
            attribute_bytes: 8 << 10,
            value_bytes: 8 << 10,
            names: 256,
            patterns: 32,
            remarks: 64,
        }
    }
}
