//! Remark on a fault in a page, for its author. A remark never fails the page.

use std::fmt;

/// Kind of fault in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RemarkKind {
    /// Varnish: the page does not begin like XML, so it was not parsed.
    NotXml,
    /// Varnish: the page begins with a byte order mark, so it was not parsed.
    ByteOrderMark,
    /// The page ends within a tag, comment or section.
    EndsInTag,
    /// An unknown ESI element.
    Unknown,
    /// `<esi:include>` inside `<esi:remove>`, where no element may be.
    IncludeInRemove,
    /// `<esi:comment>` inside `<esi:remove>`.
    CommentInRemove,
    /// `<!--esi` inside `<esi:remove>`.
    EsiInRemove,
    /// `</esi:include>`, which does not exist.
    IncludeEnd,
    /// `</esi:comment>`, which does not exist.
    CommentEnd,
    /// `<esi:comment>` without its final `/`.
    CommentOpen,
    /// An include without an address.
    NoSrc,
    /// An include with two addresses.
    TwoSrc,
    /// White space in an address.
    SpaceInSrc,
    /// An address without a path.
    BadSrc,
    /// An include without its final `/`; it is still executed.
    IncludeOpen,
    /// Varnish: an include of an `https:` address, which is left out.
    HttpsIgnored,
    /// Varnish: an include of an `https:` address, which is fetched without TLS.
    HttpsAsHttp,
    /// `<esi:remove/>`.
    EmptyRemove,
    /// `<esi:remove>` within another.
    RemoveTwice,
    /// `</esi:remove>` without `<esi:remove>`.
    RemoveNotOpen,
    /// Text between an attribute's value and the next name.
    AttributeStart,
    /// A byte that is not allowed in an attribute's name.
    AttributeName,
    /// White space where an attribute's value should begin.
    AttributeDelimiter,
    /// A value that does not end before its tag.
    AttributeEnd,
    /// A `/` that does not end its tag.
    Slash,
    /// An element or block that is not closed.
    NotClosed,
    /// An end tag without its element.
    NotOpen,
    /// A branch outside of its choice or attempt.
    Misplaced,
    /// More open elements than [`crate::Limits::nesting`]; the content is dropped.
    TooDeep,
    /// A malformed condition, which never holds.
    BadTest,
    /// An inline fragment or assignment without name or value.
    NoName,
    /// An SSI command that cannot be executed.
    BadCommand,
    /// More instructions than [`crate::Limits::nodes`].
    TooMany,
    /// A tag longer than [`crate::Limits::attribute_bytes`].
    TooLong,
}

impl RemarkKind {
    /// Text of the remark; in Varnish's wording where Varnish has such a remark.
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
            Self::BadCommand => "a command that cannot be executed",
            Self::TooMany => "more instructions than the limit",
            Self::TooLong => "a tag longer than the limit",
        }
    }

    /// Severity of the remark, as in Varnish.
    const fn severity(self) -> RemarkSeverity {
        match self {
            Self::NotXml | Self::ByteOrderMark => RemarkSeverity::Note,
            Self::IncludeOpen | Self::HttpsIgnored | Self::HttpsAsHttp => RemarkSeverity::Warning,
            _ => RemarkSeverity::Error,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RemarkSeverity {
    Note,
    Warning,
    Error,
}

/// A remark on one place of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Offset in the page. In Varnish's dialect it is the beginning of the dropped text: of the
    /// tag, or of the `<esi:remove>` around it.
    pub offset: u64,
    /// Line in which the fault was found, from 1.
    pub line: u64,
    /// Kind of fault.
    pub kind: RemarkKind,
}

impl fmt::Display for Remark {
    /// The line that varnishd logs with the tag `ESI_xmlerror`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, kind, .. } = self;
        match kind.severity() {
            RemarkSeverity::Note => f.write_str(kind.text()),
            RemarkSeverity::Warning => write!(f, "WARN after {offset} {}", kind.text()),
            RemarkSeverity::Error => write!(f, "ERR after {offset} {}", kind.text()),
        }
    }
}

/// All remarks on a page, and their counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    list: Vec<Remark>,
    errors: u64,
    warnings: u64,
}

impl Remarks {
    /// The stored remarks, in the order of the page.
    pub fn list(&self) -> &[Remark] {
        &self.list
    }

    /// Number of errors, for Varnish's counter `esi_errors`.
    pub const fn errors(&self) -> u64 {
        self.errors
    }

    /// Number of warnings, for Varnish's counter `esi_warnings`.
    pub const fn warnings(&self) -> u64 {
        self.warnings
    }

    pub(crate) fn list_mut(&mut self) -> &mut [Remark] {
        &mut self.list
    }

    pub(crate) fn add(&mut self, remark: Remark, most: usize) {
        match remark.kind.severity() {
            RemarkSeverity::Note => {}
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
