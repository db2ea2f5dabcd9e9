//! What a page's text says, read once and kept beside the stored page.

use std::sync::Arc;

use base::Counter;
use cache::{Attached, Object, Whole};
use esi::{Document, Node, Remarks};
use vcl::counts::Count;

use super::page::{Dialect, Page};
use crate::core::Core;
use crate::live::Live;

/// The instructions of a page in one of the dialects.
#[derive(Debug)]
pub(crate) struct Instructions {
    dialect: Dialect,
    document: Arc<Document>,
    /// Varnish would put it together in gzip, and so ask for fragments in gzip.
    pub(super) is_folded: bool,
}

impl Instructions {
    /// Reads a page that has just come for a program. Its faults are counted now, and never again.
    pub(crate) fn of_new(core: &Core, live: &Live, bytes: &[u8], is_folded: bool) -> Arc<Self> {
        let (rules, limits) = reading(Dialect::Varnish, live);
        let document = Arc::new(esi::parse(bytes, rules, limits));
        let remarks = document.remarks();
        core.counters.add(Counter::EsiErrors, remarks.errors());
        core.counts().add(Count::EsiErrors, remarks.errors());
        core.counts().add(Count::EsiWarnings, remarks.warnings());
        Arc::new(Self { dialect: Dialect::Varnish, document, is_folded })
    }

    /// Returns true if the page is sent as it came.
    pub(crate) fn is_plain(&self) -> bool {
        self.document.is_plain()
    }

    /// Faults of the page.
    pub(crate) fn remarks(&self) -> &Remarks {
        self.document.remarks()
    }

    pub(super) fn document(&self) -> &Arc<Document> {
        &self.document
    }
}

impl Attached for Instructions {
    fn memory(&self) -> u64 {
        (size_of::<Self>() + self.document.memory()) as u64
    }
}

/// The limits and the rules under which pages are read.
pub(super) fn reading(dialect: Dialect, live: &Live) -> (esi::Dialect, esi::Limits) {
    let has = |name| live.params.has_feature(name);
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
pub(super) fn of_object(core: &Core, page: &Page, object: &Object) -> Arc<Document> {
    let read = read(object, page.dialect, &page.live, |remarks| note(core, page, remarks));
    Arc::clone(&read.document)
}

/// The instructions of a page that is stored nowhere.
pub(super) fn of_bytes(core: &Core, page: &Page, bytes: &[u8]) -> Arc<Document> {
    let (rules, limits) = reading(page.dialect, &page.live);
    let document = esi::parse(bytes, rules, limits);
    note(core, page, document.remarks());
    Arc::new(document)
}

/// Takes note of faults in a page, unless that was done when it came.
pub(super) fn note(core: &Core, page: &Page, remarks: &Remarks) {
    if page.dialect != Dialect::Varnish {
        core.counters.add(Counter::EsiErrors, remarks.errors());
    }
}

/// What is attached to `object`, or else made and attached now; `first` hears of the faults then.
fn read(
    object: &Object,
    dialect: Dialect,
    live: &Live,
    first: impl FnOnce(&Remarks),
) -> Arc<Instructions> {
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
    first(&remarks);
    let document = Arc::new(Document::new(nodes, remarks, is_plain, limits));
    let made = Arc::new(Instructions { dialect, document, is_folded: false });
    object.attach(made.clone());
    made
}
