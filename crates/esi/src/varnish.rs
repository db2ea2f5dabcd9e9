//! Varnish's dialect: `<esi:include>`, `<esi:remove>`, `<esi:comment>` and `<!--esi ... -->`, with
//! its rules for XML and for faults. It follows the output of Debian's varnishd 7.1 for
//! `varnish/pages.txt`, with one exception: Varnish takes EB BB BF for the byte order mark, and so
//! never finds a real one; here both count. It must never remove text that Varnish keeps.

mod include;
mod rules;
mod runs;
#[cfg(test)]
mod tests;

use crate::attribute::{begins_name, is_name, is_space};
use crate::limits::Limits;
use crate::machine::Machine;
use crate::node::Node;
use crate::remark::{RemarkKind, Remarks};
use crate::search::{InstructionSearch, MarkupContext};

pub use rules::VarnishRules;

use include::IncludeAttributes;
use runs::Runs;

/// Marks after `<` that begin something other than a foreign tag.
const MARKS: [&[u8]; 5] = [b"!--esi", b"!--", b"esi:", b"/esi:", b"![CDATA["];
/// Names of elements, without `esi:`.
const NAMES: [(&[u8], VarnishElement); 3] = [
    (b"include", VarnishElement::Include),
    (b"remove", VarnishElement::Remove),
    (b"comment", VarnishElement::Comment),
];
/// The byte order mark of UTF-8, and the bytes that Varnish takes for it.
const BYTE_ORDER_MARKS: [[u8; 3]; 2] = [[0xef, 0xbb, 0xbf], [0xeb, 0xbb, 0xbf]];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VarnishElement {
    Include,
    Remove,
    Comment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VarnishState {
    /// Before the first byte other than white space; the number counts matched bytes of a byte
    /// order mark.
    Start(u8),
    /// The rest of the page is not parsed.
    NotXml,
    Text,
    /// After `<`; the bytes since are in `word`.
    Begun,
    /// In a foreign tag, which is skipped.
    Other,
    /// At the first byte behind `<` of a foreign tag whose content is parsed.
    Skipped,
    /// In a comment; the number counts the matched bytes of `-->`.
    Comment(u8),
    /// In a CDATA section; the number counts the matched bytes of `]]>`.
    Section(u8),
    /// In the name of an element; its bytes are in `word`.
    Name,
    /// Between attributes.
    Tag,
    /// After the `/` that ends a tag.
    Slash,
    /// In the name of an attribute.
    Attribute,
    /// After `=`.
    Delimiter,
    /// In a value that ends with this byte.
    Value(u8),
    /// In the rest of a faulty tag.
    Bad,
}

/// State machine of the dialect.
#[derive(Debug)]
pub(crate) struct VarnishMachine {
    rules: VarnishRules,
    limits: Limits,
    state: VarnishState,
    runs: Runs,
    /// Offset of the current byte.
    at: u64,
    /// Offset of the tag that is being read.
    tag_at: u64,
    word: TagWord,
    element: VarnishElement,
    is_end_tag: bool,
    is_empty_tag: bool,
    in_remove: bool,
    /// Set within `<!--esi`; the number counts the matched bytes of its `-->`.
    esi_comment: Option<u8>,
    /// Name of the current attribute; `value` is its value, if the name is known.
    attribute: TagWord,
    value: Vec<u8>,
    src: IncludeAttributes,
    is_too_long: bool,
}

/// A short text that is gathered to be compared with known ones.
#[derive(Clone, Copy, Debug, Default)]
struct TagWord {
    bytes: [u8; 16],
    /// Length of the text, which may exceed `bytes`: then it equals no known text.
    length: usize,
}

impl TagWord {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
        }
        self.length = self.length.saturating_add(1);
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

impl VarnishMachine {
    pub(crate) fn new(rules: VarnishRules, limits: Limits) -> Self {
        Self {
            rules,
            limits,
            state: VarnishState::Start(0),
            runs: Runs::new(limits),
            at: 0,
            tag_at: 0,
            word: TagWord::default(),
            element: VarnishElement::Comment,
            is_end_tag: false,
            is_empty_tag: false,
            in_remove: false,
            esi_comment: None,
            attribute: TagWord::default(),
            value: Vec::new(),
            src: IncludeAttributes::default(),
            is_too_long: false,
        }
    }
}

impl Machine for VarnishMachine {
    fn has_instructions(&self) -> bool {
        self.runs.is_found
    }

    fn push(&mut self, bytes: &[u8], out: &mut Vec<Node>) {
        let begin = self.runs.remarks.offset();
        let mut at = 0;
        let mut seek = InstructionSearch::default();
        while at < bytes.len() {
            let is_plain = self.state == VarnishState::Text && self.esi_comment.is_none();
            if is_plain
                && !self.rules.ignore_other_elements
                && let Some((next, place)) = seek.next(bytes, at)
            {
                at = next;
                self.state = if place == MarkupContext::Text {
                    VarnishState::Text
                } else {
                    VarnishState::Other
                };
            }
            at += self.skippable(&bytes[at..]);
            if let Some(byte) = bytes.get(at) {
                self.at = begin + at as u64;
                self.step(*byte, self.at);
                at += 1;
            }
        }
        let can_mark = match self.state {
            VarnishState::Text => self.esi_comment.is_none_or(|matched| matched == 0),
            VarnishState::NotXml => true,
            _ => false,
        };
        if can_mark && !self.in_remove {
            self.runs.keep(begin + bytes.len() as u64);
        }
        self.runs.remarks.end(bytes);
        self.runs.emit(out);
    }

    fn finish(mut self: Box<Self>, out: &mut Vec<Node>) -> Remarks {
        let end = self.runs.remarks.offset();
        let (is_tag, is_cut) = match self.state {
            VarnishState::Text
            | VarnishState::NotXml
            | VarnishState::Start(0)
            | VarnishState::Skipped => (false, false),
            VarnishState::Start(_) | VarnishState::Begun | VarnishState::Other => (false, true),
            VarnishState::Comment(_) | VarnishState::Section(_) => (false, true),
            _ => (true, true),
        };
        self.at = end;
        if is_cut {
            self.remark(RemarkKind::EndsInTag);
        }
        if is_tag || self.in_remove {
            self.runs.drop(end);
        } else {
            self.runs.keep(end);
        }
        self.runs.finish(out)
    }
}

impl VarnishMachine {
    fn remark(&mut self, kind: RemarkKind) {
        self.runs.remark(kind, self.at);
    }

    /// Length of the prefix of `bytes` that does not change the state.
    fn skippable(&self, bytes: &[u8]) -> usize {
        let found = match self.state {
            VarnishState::NotXml => None,
            VarnishState::Text if self.esi_comment.is_none() => memchr::memchr(b'<', bytes),
            VarnishState::Text if self.esi_comment == Some(0) => memchr::memchr2(b'<', b'-', bytes),
            VarnishState::Other | VarnishState::Bad => memchr::memchr(b'>', bytes),
            VarnishState::Comment(0) => memchr::memchr(b'-', bytes),
            VarnishState::Section(0) => memchr::memchr(b']', bytes),
            _ => Some(0),
        };
        found.unwrap_or(bytes.len())
    }

    fn step(&mut self, byte: u8, at: u64) {
        match self.state {
            VarnishState::Start(matched) => self.start(matched, byte, at),
            VarnishState::NotXml => {}
            VarnishState::Text => self.text(byte, at),
            VarnishState::Begun => self.begun(byte, at),
            VarnishState::Skipped => self.state = VarnishState::Text,
            VarnishState::Other | VarnishState::Bad if byte != b'>' => {}
            VarnishState::Other => self.state = VarnishState::Text,
            VarnishState::Bad => self.end_tag(at),
            VarnishState::Comment(matched) => {
                self.state =
                    until(b"-->", matched, byte).map_or(VarnishState::Text, VarnishState::Comment);
            }
            VarnishState::Section(matched) => {
                self.state =
                    until(b"]]>", matched, byte).map_or(VarnishState::Text, VarnishState::Section);
            }
            VarnishState::Name => self.name(byte, at),
            VarnishState::Tag => self.tag(byte, at),
            VarnishState::Slash if byte == b'>' => self.done(at),
            VarnishState::Slash => self.bad(RemarkKind::Slash, byte, at),
            VarnishState::Attribute => self.attribute(byte, at),
            VarnishState::Delimiter => self.delimiter(byte, at),
            VarnishState::Value(delimiter) => self.value(delimiter, byte, at),
        }
    }

    fn start(&mut self, matched: u8, byte: u8, at: u64) {
        let index = usize::from(matched);
        let is_mark = BYTE_ORDER_MARKS.iter().any(|mark| mark[index] == byte);
        if self.rules.remove_bom && is_mark && at == self.runs.mark() + u64::from(matched) {
            self.state = VarnishState::Start(matched + 1);
            if matched == 2 {
                self.runs.drop(at + 1);
                self.state = VarnishState::Start(0);
            }
            return;
        }
        if self.rules.disable_xml_check || matched == 0 && byte == b'<' {
            self.state = VarnishState::Text;
            return self.step(byte, at);
        }
        let begins_mark = matched > 0 || BYTE_ORDER_MARKS.iter().any(|mark| mark[0] == byte);
        if begins_mark {
            self.remark(RemarkKind::ByteOrderMark);
        } else if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            return;
        } else {
            self.remark(RemarkKind::NotXml);
        }
        self.state = VarnishState::NotXml;
    }

    fn text(&mut self, byte: u8, at: u64) {
        if byte == b'<' {
            self.keep(at);
            self.tag_at = at;
            self.word = TagWord::default();
            self.state = VarnishState::Begun;
            return;
        }
        let Some(matched) = self.esi_comment else { return };
        match until(b"-->", matched, byte) {
            None => {
                self.runs.is_found = true;
                self.esi_comment = None;
                self.drop(at + 1);
                self.go_on();
            }
            Some(0) => {
                self.esi_comment = Some(0);
                self.keep(at + 1);
            }
            Some(now) => {
                if matched == 0 {
                    self.keep(at);
                }
                self.esi_comment = Some(now);
            }
        }
    }

    /// State after `<`. A mark is complete only when another byte follows it.
    fn begun(&mut self, byte: u8, at: u64) {
        let before = self.word;
        self.word.push(byte);
        let word = self.word;
        if MARKS.iter().any(|mark| mark.starts_with(word.get())) {
            return;
        }
        let word = before.get();
        let after = self.tag_at + 1;
        match word {
            b"!--esi" => self.esi(at),
            b"esi:" | b"/esi:" => {
                self.keep(self.tag_at);
                self.runs.found();
                self.is_end_tag = word[0] == b'/';
                self.is_empty_tag = false;
                self.word = TagWord::default();
                self.value.clear();
                self.src = IncludeAttributes::default();
                self.is_too_long = false;
                self.state = VarnishState::Name;
            }
            b"![CDATA[" => self.state = VarnishState::Section(0),
            _ if word.starts_with(b"!--") => {
                self.esi_comment = None;
                self.state = VarnishState::Comment(0);
                return self.replay(&before.get()[3..], byte, after + 3);
            }
            _ => {
                let is_looked_into = self.rules.ignore_other_elements;
                self.state =
                    if is_looked_into { VarnishState::Skipped } else { VarnishState::Other };
                return self.replay(before.get(), byte, after);
            }
        }
        self.step(byte, at);
    }

    /// Steps over earlier bytes, and over the current one.
    fn replay(&mut self, word: &[u8], byte: u8, from: u64) {
        for (byte, at) in word.iter().chain([&byte]).zip(from..) {
            self.step(*byte, at);
        }
    }

    fn esi(&mut self, end: u64) {
        if self.in_remove {
            self.remark(RemarkKind::EsiInRemove);
        }
        self.keep(self.tag_at);
        self.drop(end);
        self.esi_comment = Some(0);
        self.go_on();
    }

    fn name(&mut self, byte: u8, at: u64) {
        self.word.push(byte);
        let word = self.word;
        let Some((name, element)) =
            NAMES.into_iter().find(|(name, _)| name.starts_with(word.get()))
        else {
            return self.bad(RemarkKind::Unknown, byte, at);
        };
        if name.len() > word.length {
            return;
        }
        self.element = element;
        self.state = VarnishState::Tag;
        self.word = TagWord::default();
        let fault = match (element, self.in_remove, self.is_end_tag) {
            (VarnishElement::Include, true, _) => RemarkKind::IncludeInRemove,
            (VarnishElement::Comment, true, _) => RemarkKind::CommentInRemove,
            (VarnishElement::Include, false, true) => RemarkKind::IncludeEnd,
            (VarnishElement::Comment, false, true) => RemarkKind::CommentEnd,
            _ => return,
        };
        self.bad(fault, byte, at);
    }

    /// Gives up a faulty tag, which `byte` may already end.
    fn bad(&mut self, kind: RemarkKind, byte: u8, at: u64) {
        self.remark(kind);
        self.state = VarnishState::Bad;
        if byte == b'>' {
            self.end_tag(at);
        }
    }

    /// After the `>` at `at` that ends an ESI tag.
    fn end_tag(&mut self, at: u64) {
        self.drop(at + 1);
        self.go_on();
    }

    /// Continues after an instruction. Beyond the limit the rest is text.
    fn go_on(&mut self) {
        self.state = VarnishState::Text;
        if self.runs.is_full() {
            self.remark(RemarkKind::TooMany);
            self.state = VarnishState::NotXml;
        }
    }

    fn tag(&mut self, byte: u8, at: u64) {
        match byte {
            b'>' => self.done(at),
            b'/' => {
                self.is_empty_tag = true;
                self.state = VarnishState::Slash;
            }
            // The byte stands directly behind the element's name, but is no part of it.
            _ if self.word.length == 0 && !is_space(byte) => {
                self.bad(RemarkKind::AttributeStart, byte, at);
            }
            _ if is_space(byte) => self.word.length = 1,
            _ if begins_name(byte) => {
                self.attribute = TagWord::default();
                self.attribute.push(byte);
                self.state = VarnishState::Attribute;
            }
            _ => self.bad(RemarkKind::AttributeStart, byte, at),
        }
    }

    fn attribute(&mut self, byte: u8, at: u64) {
        match byte {
            b'=' => self.state = VarnishState::Delimiter,
            b'>' | b'/' => {
                self.state = VarnishState::Tag;
                self.tag(byte, at);
            }
            _ if is_space(byte) => self.state = VarnishState::Tag,
            _ if is_name(byte) => self.attribute.push(byte),
            _ => self.bad(RemarkKind::AttributeName, byte, at),
        }
    }

    fn delimiter(&mut self, byte: u8, at: u64) {
        self.value.clear();
        match byte {
            b'"' | b'\'' => self.state = VarnishState::Value(byte),
            b' ' | b'\t' => self.bad(RemarkKind::AttributeDelimiter, byte, at),
            _ => {
                self.state = VarnishState::Value(b' ');
                self.step(byte, at);
            }
        }
    }

    fn value(&mut self, delimiter: u8, byte: u8, at: u64) {
        if byte == delimiter {
            self.state = VarnishState::Tag;
            if let Err(fault) = self.take_value() {
                self.bad(fault, byte, at);
            }
            return;
        }
        if byte == b'>' {
            return self.bad(RemarkKind::AttributeEnd, byte, at);
        }
        let is_wanted = self.element == VarnishElement::Include;
        if is_wanted && self.value.len() < self.limits.attribute_bytes {
            self.value.push(byte);
        } else if is_wanted {
            self.is_too_long = true;
        }
    }

    fn take_value(&mut self) -> Result<(), RemarkKind> {
        if self.element != VarnishElement::Include {
            return Ok(());
        }
        if std::mem::take(&mut self.is_too_long) {
            return Err(RemarkKind::TooLong);
        }
        self.src.take(self.attribute.get(), &self.value, self.rules)
    }

    /// An ESI tag has ended at `at`.
    fn done(&mut self, at: u64) {
        match self.element {
            VarnishElement::Comment if !self.is_empty_tag => self.remark(RemarkKind::CommentOpen),
            VarnishElement::Comment => {}
            VarnishElement::Remove => return self.remove(at),
            VarnishElement::Include => {
                if !self.is_empty_tag {
                    self.remark(RemarkKind::IncludeOpen);
                }
                let (runs, at) = (&mut self.runs, self.at);
                let found = self.src.include(self.rules, |kind| runs.remark(kind, at));
                if let Some(include) = found {
                    self.runs.node(Node::Include(include));
                }
            }
        }
        self.end_tag(at);
    }

    fn remove(&mut self, at: u64) {
        let fault = match (self.is_empty_tag, self.is_end_tag, self.in_remove) {
            (true, ..) => Some(RemarkKind::EmptyRemove),
            (false, true, false) => Some(RemarkKind::RemoveNotOpen),
            (false, false, true) => Some(RemarkKind::RemoveTwice),
            _ => None,
        };
        match fault {
            Some(kind) => self.remark(kind),
            None => self.in_remove = !self.in_remove,
        }
        self.end_tag(at);
    }

    /// Keeps the text before `at`, unless an instruction removes it.
    fn keep(&mut self, at: u64) {
        if !self.in_remove {
            self.runs.keep(at);
        }
    }

    /// Drops the text before `at` that is not kept yet.
    fn drop(&mut self, at: u64) {
        if !self.in_remove {
            self.runs.drop(at);
        }
    }
}

/// The number of bytes of `end` that are matched after `byte`; `None` if all are. As in Varnish, a
/// byte that does not fit is not matched again.
fn until(end: &[u8; 3], matched: u8, byte: u8) -> Option<u8> {
    if end[usize::from(matched)] != byte {
        return Some(0);
    }
    (matched < 2).then_some(matched + 1)
}
