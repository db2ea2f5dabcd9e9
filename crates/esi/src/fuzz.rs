//! Fuzzing entry points of the crate: each feeds arbitrary bytes to one part, and panics if the
//! result breaks an invariant. Only fuzz targets and tests call them.

use std::borrow::Cow;
use std::ops::Range;

use crate::node::join;
use crate::{
    Dialect, Document, Environment, Fragment, Limits, Node, PageResolver, PageText, Parser,
    ResolvedNode, VarnishRules,
};

const LIMITS: Limits = Limits {
    nodes: 200,
    nesting: 6,
    attribute_bytes: 300,
    value_bytes: 500,
    names: 5,
    patterns: 2,
    remarks: 20,
};

/// A request under the fuzzer's control: each of its fields holds the fuzzer's bytes.
struct HostileRequest<'h> {
    request: &'h [u8],
    /// The page, for runs in which ranges do not stay valid.
    page: Option<&'h [u8]>,
}

impl PageText for HostileRequest<'_> {
    fn take(&self, range: &Range<u64>) -> Vec<u8> {
        self.page.unwrap_or_default()[range.start as usize..range.end as usize].to_vec()
    }
}

impl Environment for HostileRequest<'_> {
    fn host(&self) -> &[u8] {
        self.request
    }

    fn path(&self) -> &[u8] {
        self.request
    }

    fn query(&self) -> &[u8] {
        self.request
    }

    fn header(&self, _: &[u8]) -> Option<Cow<'_, [u8]>> {
        Some(Cow::Borrowed(self.request))
    }

    fn text(&self) -> Option<&dyn PageText> {
        self.page.is_some().then_some(self)
    }

    fn unix_seconds(&self) -> u64 {
        self.request.iter().fold(0, |time, byte| time.wrapping_mul(251) ^ u64::from(*byte))
    }
}

fn dialect(byte: u8) -> Dialect {
    match byte % 4 {
        0 => Dialect::Esi,
        1 => Dialect::Ssi,
        _ => Dialect::Varnish(VarnishRules {
            disable_xml_check: byte & 4 != 0,
            ignore_other_elements: byte & 8 != 0,
            ignore_https: byte & 16 != 0,
            remove_bom: byte & 32 != 0,
            include_onerror: byte & 64 != 0,
        }),
    }
}

/// Nodes and remarks do not depend on how the page is cut, and text nodes are ranges in order. The
/// first byte selects the dialect, the second the cuts.
pub fn parser(data: &[u8]) {
    let [first, cut, page @ ..] = data else { return };
    let dialect = dialect(*first);
    let whole = Document::parse(page, dialect, LIMITS);
    let mut nodes = Vec::new();
    let mut parser = Parser::new(dialect, LIMITS);
    let mut rest = page;
    let mut size = usize::from(*cut % 16) + 1;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(size.min(rest.len()));
        parser.push(piece, &mut nodes);
        rest = after;
        size = 1 + (size + usize::from(*cut / 16)) % 16;
    }
    assert_eq!(parser.has_instructions(), !whole.is_plain());
    let remarks = parser.finish(&mut nodes);
    join(&mut nodes);
    assert_eq!(nodes, whole.nodes());
    assert_eq!(&remarks, whole.remarks());
    let mut last = 0;
    for node in whole.nodes() {
        if let Node::Text(range) = node {
            assert!(last <= range.start && range.start < range.end, "{range:?} after {last}");
            last = range.end;
        }
    }
    assert!(last <= page.len() as u64);
    if whole.is_plain() && remarks.errors() == 0 && !page.is_empty() {
        assert_eq!(whole.nodes(), [Node::Text(0..page.len() as u64)]);
    }
}

/// Resolved ranges lie within the page, and addresses hold no line end. The first byte selects the
/// dialect, the second how many of the next bytes become the request's.
pub fn executor(data: &[u8]) {
    let [first, split, rest @ ..] = data else { return };
    let (request, page) = rest.split_at(usize::from(*split).min(rest.len()));
    let dialect = dialect(*first);
    let document = Document::parse(page, dialect, LIMITS);
    let env = HostileRequest { request, page: None };
    let resolved = document.resolve(&env);
    let mut run = PageResolver::new(LIMITS);
    let mut ops = Vec::new();
    let done = document.nodes().iter().try_for_each(|node| run.resolve(node, &env, &mut ops));
    assert_eq!(resolved.as_ref().err(), done.as_ref().err());
    let Ok(resolved) = resolved else { return };
    assert_eq!(resolved, ops);
    check(&ops, page.len() as u64, dialect);
    // With `page` set, bytes replace ranges.
    let held = document.resolve(&HostileRequest { page: Some(page), ..env }).expect("as many");
    assert_eq!(held, ops.into_iter().map(|op| in_bytes(op, page)).collect::<Vec<_>>());
}

fn in_bytes(op: ResolvedNode, page: &[u8]) -> ResolvedNode {
    let all = |ops: Vec<ResolvedNode>| ops.into_iter().map(|op| in_bytes(op, page)).collect();
    match op {
        ResolvedNode::Text(Range { start, end }) => {
            ResolvedNode::Bytes(page[start as usize..end as usize].to_vec())
        }
        ResolvedNode::Try { attempt, except } => {
            ResolvedNode::Try { attempt: all(attempt), except: all(except) }
        }
        ResolvedNode::Include(mut fragment) => {
            fragment.stub = fragment.stub.take().map(all);
            ResolvedNode::Include(fragment)
        }
        op @ ResolvedNode::Bytes(_) => op,
    }
}

fn check(ops: &[ResolvedNode], length: u64, dialect: Dialect) {
    for op in ops {
        match op {
            ResolvedNode::Text(Range { start, end }) => assert!(start < end && *end <= length),
            ResolvedNode::Bytes(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= 6 * (LIMITS.value_bytes + 1));
            }
            ResolvedNode::Include(fragment) => {
                address(fragment, dialect);
                if let Some(stub) = &fragment.stub {
                    check(stub, length, dialect);
                }
            }
            ResolvedNode::Try { attempt, except } => {
                check(attempt, length, dialect);
                check(except, length, dialect);
            }
        }
    }
}

fn address(fragment: &Fragment, dialect: Dialect) {
    let target = fragment.target(b"/a/b?c");
    let parts = [Some(&target.url), target.host.as_ref(), Some(&fragment.src)];
    for part in parts.into_iter().flatten() {
        let ends = match dialect {
            Dialect::Varnish(_) => |byte: &u8| b" \t\r\n\0".contains(byte),
            _ => |byte: &u8| *byte <= b' ' || *byte == 0x7f,
        };
        assert!(!part.iter().any(ends), "{}", String::from_utf8_lossy(part));
    }
    if let Some(alt) = &fragment.alt {
        assert!(!alt.iter().any(|byte| *byte <= b' '));
    }
}
