//! Faults of a page, as its author should hear of them.

use std::fmt;

/// A fault in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemarkKind {
    /// Varnish: the page does not begin like XML, so nothing was looked for.
    NotXml,
    /// Varnish: it begins with the mark of UTF-8, so nothing was looked for.
    ByteOrderMark,
    /// It ends within a tag, comment or section.
    EndsInTag,
    /// An element that ESI does not know.
    Unknown,
    /// An element inside `<esi:remove>`, where none may be.
    IncludeInRemove,
    /// Beside it.
    CommentInRemove,
    /// `<!--esi` inside `<esi:remove>`.
    EsiInRemove,
    /// An end tag of an element that has none.
    IncludeEnd,
    /// Beside it.
    CommentEnd,
    /// A comment that does not end with its tag.
    CommentOpen,
    /// An include without an address.
    NoSrc,
    /// An include with two.
    TwoSrc,
    /// White space in an address.
    SpaceInSrc,
    /// An address without a path.
    BadSrc,
    /// An include that does not end with its tag: it counts all the same.
    IncludeOpen,
    /// Varnish: an address with `https:`, left out.
    HttpsIgnored,
    /// Varnish: an address with `https:`, fetched without TLS.
    HttpsAsHttp,
    /// `<esi:remove/>`.
    EmptyRemove,
    /// `<esi:remove>` within another.
    RemoveTwice,
    /// An end of `<esi:remove>` without its beginning.
    RemoveNotOpen,
    /// Text between an attribute's value and the next name.
    AttributeStart,
    /// A byte that no name of an attribute has.
    AttributeName,
    /// White space where an attribute's value should begin.
    AttributeDelimiter,
    /// A value that does not end before its tag.
    AttributeEnd,
    /// A `/` that does not end its tag.
    Slash,
    /// An element or a block that is not closed.
    NotClosed,
    /// An end tag without its beginning.
    NotOpen,
    /// A branch outside of its choice or attempt.
    Misplaced,
    /// More open elements than [`crate::Limits::nesting`]: the content goes.
    TooDeep,
    /// A condition that is no expression: it never holds.
    BadTest,
    /// An inline fragment or an assignment without its name or value.
    NoName,
    /// A command of SSI that cannot be carried out.
    BadCommand,
    /// More instructions than [`crate::Limits::nodes`].
    TooMany,
    /// A tag longer than [`crate::Limits::attribute_bytes`].
    TooLong,
}

impl RemarkKind {
    /// The text of it. Those that Varnish knows have Varnish's words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NotXml => {
                "No ESI processing, first char not '<'. (See feature esi_disable_xml_check)"
            }
            Self::ByteOrderMark => {
                "No ESI processing, first char not '<' but BOM. (See feature esi_remove_bom)"
            }
            Self::EndsInTag => "VEP ended inside a tag",
            Self::Unknown => "ESI 1.0 <esi:bogus> element",
            Self::IncludeInRemove => "ESI 1.0 <esi:include> element nested in <esi:remove>",
            Self::CommentInRemove => "ESI 1.0 <esi:comment> element nested in <esi:remove>",
            Self::EsiInRemove => "ESI 1.0 Nested <!--esi element in <esi:remove>",
            Self::IncludeEnd => "ESI 1.0 </esi:include> illegal end-tag",
            Self::CommentEnd => "ESI 1.0 </esi:comment> illegal end-tag",
            Self::CommentOpen => "ESI 1.0 <esi:comment> needs final '/'",
            Self::NoSrc => "ESI 1.0 <esi:include> lacks src attr",
            Self::TwoSrc => "ESI 1.0 <esi:include> has multiple src= attributes",
            Self::SpaceInSrc => "ESI 1.0 <esi:include> has whitespace in src= attribute",
            Self::BadSrc => "ESI 1.0 <esi:include> invalid src= URL",
            Self::IncludeOpen => "ESI 1.0 <esi:include> lacks final '/'",
            Self::HttpsIgnored => "ESI 1.0 <esi:include> with https:// ignored",
            Self::HttpsAsHttp => "ESI 1.0 <esi:include> https:// treated as http://",
            Self::EmptyRemove => "ESI 1.0 <esi:remove/> not legal",
            Self::RemoveTwice => "ESI 1.0 <esi:remove> already open",
            Self::RemoveNotOpen => "ESI 1.0 <esi:remove> not open",
            Self::AttributeStart => "XML 1.0 Illegal attribute start char",
            Self::AttributeName => "XML 1.0 Illegal attr char",
            Self::AttributeDelimiter => "XML 1.0 Illegal attribute delimiter",
            Self::AttributeEnd => "XML 1.0 Missing end attribute delimiter",
            Self::Slash => "XML 1.0 '>' does not follow '/' in tag",
            Self::NotClosed => "an element is not closed",
            Self::NotOpen => "an end tag without its element",
            Self::Misplaced => "a branch outside of <esi:choose> or <esi:try>",
            Self::TooDeep => "more open elements than the limit",
            Self::BadTest => "a test that is no expression",
            Self::NoName => "an element without its name or value",
            Self::BadCommand => "a command that cannot be carried out",
            Self::TooMany => "more instructions than the limit",
            Self::TooLong => "a tag longer than the limit",
        }
    }

    /// Its weight: those that Varnish warns of, and those that it does not count.
    const fn weight(self) -> RemarkSeverity {
        match self {
            Self::NotXml | Self::ByteOrderMark => RemarkSeverity::Said,
            Self::IncludeOpen | Self::HttpsIgnored | Self::HttpsAsHttp => RemarkSeverity::Warning,
            _ => RemarkSeverity::Error,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RemarkSeverity {
    Said,
    Warning,
    Error,
}

/// One remark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The offset in the page. In Varnish's dialect, what was left of the page is from here on: the
    /// beginning of the tag, or of the `<esi:remove>` around it.
    pub offset: u64,
    /// The line, from 1, at which it was noticed.
    pub line: u64,
    /// The fault.
    pub what: RemarkKind,
}

impl fmt::Display for Remark {
    /// As varnishd logs it under `ESI_xmlerror`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, what, .. } = self;
        match what.weight() {
            RemarkSeverity::Said => f.write_str(what.text()),
            RemarkSeverity::Warning => write!(f, "WARN after {offset} {}", what.text()),
            RemarkSeverity::Error => write!(f, "ERR after {offset} {}", what.text()),
        }
    }
}

/// Remarks on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    list: Vec<Remark>,
    errors: u64,
    warnings: u64,
}

impl Remarks {
    /// Those that are kept in words, in the order of the page.
    pub fn list(&self) -> &[Remark] {
        &self.list
    }

    /// The number of errors: Varnish's counter `esi_errors`.
    pub const fn errors(&self) -> u64 {
        self.errors
    }

    /// The number of warnings: Varnish's counter `esi_warnings`.
    pub const fn warnings(&self) -> u64 {
        self.warnings
    }

    pub(crate) fn list_mut(&mut self) -> &mut [Remark] {
        &mut self.list
    }

    pub(crate) fn add(&mut self, remark: Remark, most: usize) {
        match remark.what.weight() {
            RemarkSeverity::Said => {}
            RemarkSeverity::Warning => self.warnings += 1,
            RemarkSeverity::Error => self.errors += 1,
        }
        if self.list.len() < most {
            self.list.push(remark);
        }
    }

    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        self.list.capacity() * size_of::<Remark>()
    }
}
