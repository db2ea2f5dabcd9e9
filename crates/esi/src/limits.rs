//! Bounds of what a page may hold and come to.

/// Bounds of a page and of what it comes to. What is beyond them is left out, and remarked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most instructions and pieces of text between them, in a page; most operations it comes to.
    pub nodes: usize,
    /// Most elements open at once.
    pub nesting: usize,
    /// Most bytes of one tag with all its attributes.
    pub attribute_bytes: usize,
    /// Most bytes of what variables come to, in one attribute or one variable that is set.
    pub value_bytes: usize,
    /// Most variables that a page sets, blocks and inline fragments that it names.
    pub names: usize,
    /// Most regular expressions in a page.
    pub patterns: usize,
    /// Most remarks that are kept in words. All are counted.
    pub remarks: usize,
}

impl Default for Limits {
    /// Room for any page that people write.
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
