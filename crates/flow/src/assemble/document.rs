//! A page's text, read once for its instructions and kept beside the stored page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Counter;
use cache::{Object, Whole};
use esi::{Document, Node, Remarks};
use vcl::counts::Count;

use crate::form;
use crate::state::assemble::{Clip, Composed, Dialect, Instructions, PAGE_BYTES, ReadPage};
use crate::state::core::Core;
use crate::state::live::Live;
use crate::stored::stored_head;

impl Instructions {
    /// Reads a page that has just come for a program. Its faults are counted now, and never again.
    pub(crate) fn of_new(core: &Core, live: &Live, bytes: &[u8], is_folded: bool) -> Arc<Self> {
        let (rules, limits) = reading(Dialect::Varnish, live);
        let document = esi::parse(bytes, rules, limits);
        let remarks = document.remarks();
        core.counters.add(Counter::EsiErrors, remarks.errors());
        core.counts().add(Count::EsiErrors, remarks.errors());
        core.counts().add(Count::EsiWarnings, remarks.warnings());
        let cuts = match is_folded && !document.is_plain() && bytes.len() as u64 <= PAGE_BYTES {
            true => cuts(Whole::One(bytes), &document),
            false => Vec::new(),
        };
        let read = Arc::new(ReadPage { document, cuts });
        let is_told = AtomicBool::new(true);
        let (dialect, negotiated) = (Dialect::Varnish, false);
        Arc::new(Self { dialect, read, is_folded, negotiated, is_told })
    }
}

/// The limits and the rules under which pages are read.
pub(super) fn reading(dialect: Dialect, live: &Live) -> (esi::Dialect, esi::Limits) {
    let has = |name| live.vcl.params.has_feature(name);
    let dialect = match dialect {
        Dialect::Esi => esi::Dialect::Esi,
        Dialect::Ssi => esi::Dialect::Ssi,
        Dialect::Varnish => esi::Dialect::Varnish(esi::VarnishRules {
            disable_xml_check: has("esi_disable_xml_check"),
            ignore_other_elements: has("esi_ignore_other_elements"),
            ignore_https: has("esi_ignore_https"),
            remove_bom: has("esi_remove_bom"),
            include_onerror: has("esi_include_onerror"),
        }),
    };
    let nodes = usize::try_from(live.limits.esi_nodes).unwrap_or(usize::MAX);
    (dialect, esi::Limits { nodes, ..esi::Limits::default() })
}

/// The instructions of the stored page `object`, whose body is whole.
pub(super) fn of_object(core: &Core, page: &Composed, object: &Object) -> Arc<ReadPage> {
    let read = read(object, page.dialect, &page.live);
    if !read.is_told.swap(true, Ordering::Relaxed) {
        note(core, page, read.remarks());
    }
    Arc::clone(&read.read)
}

/// The same for a forecast: nothing is counted.
pub(super) fn foreseen(page: &Composed, object: &Object) -> Arc<ReadPage> {
    Arc::clone(&read(object, page.dialect, &page.live).read)
}

/// The instructions of a page that is stored nowhere.
pub(super) fn of_bytes(core: &Core, page: &Composed, bytes: &[u8]) -> Arc<ReadPage> {
    let (rules, limits) = reading(page.dialect, &page.live);
    let document = esi::parse(bytes, rules, limits);
    note(core, page, document.remarks());
    Arc::new(ReadPage { document, cuts: Vec::new() })
}

/// Takes note of faults in a page, unless that was done when it came.
pub(super) fn note(core: &Core, page: &Composed, remarks: &Remarks) {
    if page.dialect != Dialect::Varnish {
        core.counters.add(Counter::EsiErrors, remarks.errors());
    }
}

/// A stored page without an instruction, which is sent as what it is: a response like others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainPage {
    /// It is sent in further forms, to clients that take those.
    pub(crate) negotiated: bool,
}

/// Returns the stored page if it has no instruction, as far as that is known: all of it is there.
pub(crate) fn plain(object: &Object, dialect: Dialect, live: &Live) -> Option<PlainPage> {
    object.whole()?;
    let read = read(object, dialect, live);
    let negotiated = read.negotiated;
    read.is_plain().then_some(PlainPage { negotiated })
}

/// Returns true if the settings have a page coded that is `object`, and its head says that there
/// may be several forms.
fn is_negotiated(object: &Object, live: &Live) -> bool {
    let Some(head) = stored_head(object) else { return false };
    let is_worth = || live.compression.worth.judge(head.status, &head.headers, object.length());
    object.flags().gzip_page && form::varies_by_coding(&head.headers) && is_worth().is_ok()
}

/// The instructions that are attached to `object`, or else made and attached now.
fn read(object: &Object, dialect: Dialect, live: &Live) -> Arc<Instructions> {
    if let Some(kept) = object.attached::<Instructions>()
        && kept.dialect == dialect
    {
        return kept;
    }
    let (rules, limits) = reading(dialect, live);
    let (mut parser, mut nodes) = (esi::Parser::new(rules, limits), Vec::new());
    for piece in object.whole().iter().flat_map(Whole::pieces) {
        parser.push(piece, &mut nodes);
    }
    let had = parser.has_instructions();
    let remarks = parser.finish(&mut nodes);
    // The end may still bring the first.
    let is_plain = !had && nodes.iter().all(|node| matches!(node, Node::Text(_)));
    let document = Document::new(nodes, remarks, is_plain, limits);
    let cuts = match object.whole() {
        Some(whole) if object.flags().gzip_page && !is_plain && whole.len() <= PAGE_BYTES => {
            cuts(whole, &document)
        }
        _ => Vec::new(),
    };
    let read = Arc::new(ReadPage { document, cuts });
    let is_told = AtomicBool::new(false);
    let is_folded = object.flags().gzip_page;
    let negotiated = is_plain && dialect != Dialect::Varnish && is_negotiated(object, live);
    let made = Arc::new(Instructions { dialect, read, is_folded, negotiated, is_told });
    object.attach(made.clone());
    made
}

/// The texts of a page in gzip, as far as they are the shorter for it.
fn cuts(whole: Whole<'_>, document: &Document) -> Vec<Clip> {
    let cut =
        |node: &Node| if let Node::Text(range) = node { Clip::of(whole, range) } else { None };
    document.nodes().iter().filter_map(cut).collect()
}
