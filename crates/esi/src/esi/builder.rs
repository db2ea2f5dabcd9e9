//! Builder of the node tree from tags as they come. It never nests deeper than the limit.

use std::ops::Range;

use crate::address::AddressRules;
use crate::expression::Expression;
use crate::fragment::{Fragment, Include, OnError};
use crate::limits::Limits;
use crate::node::{Branch, Node, Test, join_last};
use crate::remark::RemarkKind;
use crate::variable::Template;

use super::tag::Tag;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EsiElement {
    Choose,
    When,
    Otherwise,
    Try,
    Attempt,
    Except,
    Vars,
    Inline,
    Remove,
}

const ELEMENTS: [(&[u8], EsiElement); 9] = [
    (b"choose", EsiElement::Choose),
    (b"when", EsiElement::When),
    (b"otherwise", EsiElement::Otherwise),
    (b"try", EsiElement::Try),
    (b"attempt", EsiElement::Attempt),
    (b"except", EsiElement::Except),
    (b"vars", EsiElement::Vars),
    (b"inline", EsiElement::Inline),
    (b"remove", EsiElement::Remove),
];

/// An open element.
#[derive(Debug)]
struct Frame {
    element: EsiElement,
    nodes: Vec<Node>,
    branches: Vec<Branch>,
    test: Option<Test>,
    attempt: Option<Vec<Node>>,
    except: Option<Vec<Node>>,
    name: Vec<u8>,
}

impl Frame {
    const fn new(element: EsiElement) -> Self {
        Self {
            element,
            nodes: Vec::new(),
            branches: Vec::new(),
            test: None,
            attempt: None,
            except: None,
            name: Vec::new(),
        }
    }
}

/// The open elements, and the finished nodes of the page.
#[derive(Debug)]
pub(super) struct Builder {
    limits: Limits,
    frames: Vec<Frame>,
    done: Vec<Node>,
    count: usize,
    variables: usize,
    /// End of the text that was added last, if text came last.
    text_end: Option<u64>,
    has_added: bool,
    /// The element whose content is dropped, with the number of open elements of its kind.
    discard: Option<(EsiElement, usize)>,
}

impl Builder {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            frames: Vec::new(),
            done: Vec::new(),
            count: 0,
            variables: 0,
            text_end: None,
            has_added: false,
            discard: None,
        }
    }

    /// Returns true if text may hold variables here.
    pub(super) const fn has_variables(&self) -> bool {
        self.variables > 0 && self.discard.is_none()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.count >= self.limits.nodes
    }

    pub(super) fn emit(&mut self, out: &mut Vec<Node>) {
        out.append(&mut self.done);
    }

    pub(super) fn finish(&mut self, mut remark: impl FnMut(RemarkKind), out: &mut Vec<Node>) {
        if self.discard.is_some() {
            remark(RemarkKind::NotClosed);
        }
        while !self.frames.is_empty() {
            remark(RemarkKind::NotClosed);
            self.close();
        }
        self.emit(out);
    }

    /// Adds text. It continues the text before it if both were only cut apart.
    pub(super) fn text(&mut self, range: Range<u64>) {
        let is_cut = self.text_end == Some(range.start);
        let end = range.end;
        self.add(Node::Text(range));
        if is_cut {
            self.count -= usize::from(self.has_added);
            self.join();
        }
        self.text_end = Some(end);
    }

    fn join(&mut self) {
        let frame = self.frames.iter_mut().rfind(|frame| frame.element != EsiElement::Vars);
        join_last(frame.map_or(&mut self.done, |frame| &mut frame.nodes));
    }

    /// Adds a node to the innermost open element that takes nodes. Nodes between the branches of a
    /// choice are dropped.
    pub(super) fn add(&mut self, node: Node) {
        (self.text_end, self.has_added) = (None, false);
        if self.discard.is_some() {
            return;
        }
        let frame = self.frames.iter_mut().rfind(|frame| frame.element != EsiElement::Vars);
        let nodes = match frame {
            None => &mut self.done,
            Some(Frame { element: EsiElement::Choose | EsiElement::Try, .. }) => return,
            Some(frame) => &mut frame.nodes,
        };
        nodes.push(node);
        self.count += 1;
        self.has_added = true;
    }

    pub(super) fn tag(&mut self, tag: &Tag<'_>, mut remark: impl FnMut(RemarkKind)) {
        self.text_end = None;
        let element = ELEMENTS.iter().find(|(name, _)| *name == tag.name).map(|(_, own)| *own);
        if let Some((open, depth)) = self.discard {
            if element == Some(open) && !tag.is_empty {
                let depth = if tag.is_end { depth - 1 } else { depth + 1 };
                self.discard = (depth > 0).then_some((open, depth));
            }
            return;
        }
        match (element, tag.is_end) {
            (Some(element), true) => self.end(element, remark),
            (Some(element), false) => self.begin(element, tag, remark),
            (None, false) => match tag.name {
                b"include" => self.include(tag, remark),
                b"assign" => self.assign(tag, remark),
                b"comment" if tag.is_empty => {}
                b"comment" => remark(RemarkKind::CommentOpen),
                _ => remark(RemarkKind::Unknown),
            },
            (None, true) if matches!(tag.name, b"include" | b"comment" | b"assign") => {}
            (None, true) => remark(RemarkKind::Unknown),
        }
    }

    fn begin(&mut self, element: EsiElement, tag: &Tag<'_>, mut remark: impl FnMut(RemarkKind)) {
        let parent = self.frames.last().map(|frame| frame.element);
        let needs = match element {
            EsiElement::When | EsiElement::Otherwise => Some(EsiElement::Choose),
            EsiElement::Attempt | EsiElement::Except => Some(EsiElement::Try),
            _ => None,
        };
        if needs.is_some() && needs != parent {
            return remark(RemarkKind::Misplaced);
        }
        if element == EsiElement::Vars && tag.is_empty {
            return self.vars(tag);
        }
        if element == EsiElement::Remove || self.frames.len() >= self.limits.nesting {
            if element != EsiElement::Remove {
                remark(RemarkKind::TooDeep);
            } else if tag.is_empty {
                remark(RemarkKind::EmptyRemove);
            }
            self.discard = (!tag.is_empty).then_some((element, 1));
            return;
        }
        let mut frame = Frame::new(element);
        match element {
            EsiElement::When => {
                let text = tag.attribute(b"test").unwrap_or_default();
                let test = Expression::read(&text, self.limits.nesting);
                if test.is_none() {
                    remark(RemarkKind::BadTest);
                }
                frame.test = Some(test.map_or(Test::Never, Test::Esi));
            }
            EsiElement::Inline => {
                frame.name = tag.attribute(b"name").unwrap_or_default();
                if frame.name.is_empty() {
                    remark(RemarkKind::NoName);
                }
            }
            EsiElement::Vars => self.variables += 1,
            _ => {}
        }
        self.frames.push(frame);
        if tag.is_empty {
            self.close();
        }
    }

    /// `<esi:vars name="$(X)"/>`.
    fn vars(&mut self, tag: &Tag<'_>) {
        let text = tag.attribute(b"name").unwrap_or_default();
        if !text.is_empty() {
            self.add(Node::Template(Box::new(Template::read(&text))));
        }
    }

    fn end(&mut self, element: EsiElement, mut remark: impl FnMut(RemarkKind)) {
        let Some(index) = self.frames.iter().rposition(|frame| frame.element == element) else {
            return remark(RemarkKind::NotOpen);
        };
        while self.frames.len() > index + 1 {
            remark(RemarkKind::NotClosed);
            self.close();
        }
        self.close();
    }

    fn close(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let Frame { element, nodes, branches, test, attempt, except, name } = frame;
        let parent = self.frames.last_mut();
        match (element, parent) {
            (EsiElement::Vars, _) => self.variables -= 1,
            (EsiElement::Choose, _) => self.add(Node::Choose(branches.into())),
            (EsiElement::When | EsiElement::Otherwise, Some(parent)) => {
                parent.branches.push(Branch { test, nodes });
                self.count += 1;
            }
            (EsiElement::Attempt, Some(parent)) => {
                parent.attempt = parent.attempt.take().or(Some(nodes));
            }
            (EsiElement::Except, Some(parent)) => {
                parent.except = parent.except.take().or(Some(nodes));
            }
            (EsiElement::Try, _) => {
                let (attempt, except) = (attempt.unwrap_or_default(), except.unwrap_or_default());
                self.add(Node::Try { attempt: attempt.into(), except: except.into() });
            }
            (EsiElement::Inline, _) => {
                self.add(Node::Inline { name: name.into(), nodes: nodes.into() });
            }
            _ => {}
        }
    }

    fn include(&mut self, tag: &Tag<'_>, mut remark: impl FnMut(RemarkKind)) {
        if !tag.is_empty {
            remark(RemarkKind::IncludeOpen);
        }
        let Some(src) = tag.attribute(b"src") else { return remark(RemarkKind::NoSrc) };
        let fragment = Fragment {
            onerror: match tag.attribute(b"onerror").as_deref() {
                None => OnError::Unsaid,
                Some(b"continue") => OnError::Continue,
                Some(_) => OnError::Fail,
            },
            maxwait_ms: tag.attribute(b"maxwait").and_then(|text| number(&text)),
            rules: AddressRules::Uri,
            ..Fragment::default()
        };
        let alt = tag.attribute(b"alt").map(|alt| Template::read(alt.trim_ascii()));
        let src = Template::read(src.trim_ascii());
        self.add(Node::Include(Include::new(fragment, src, alt)));
    }

    fn assign(&mut self, tag: &Tag<'_>, mut remark: impl FnMut(RemarkKind)) {
        let Some((name, value)) = tag.attribute(b"name").zip(tag.attribute(b"value")) else {
            return remark(RemarkKind::NoName);
        };
        // The value is the text between the quotes.
        let inner = value.strip_prefix(b"'").and_then(|value| value.strip_suffix(b"'"));
        let value = Template::read(inner.unwrap_or(&value));
        self.add(Node::Assign { name: name.into(), value: Box::new(value) });
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
