//! Document: the text of a page, parsed once for its instructions, which are kept beside the stored
//! page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Counter;
use cache::{BorrowedBody, Object};
use esi::{Document, Node, Remarks};
use vcl::counts::Count;

use crate::form;
use crate::state::assemble::{Clip, ComposedPage, Dialect, Instructions, PAGE_BYTES, ReadPage};
use crate::state::core::CoreState;
use crate::state::live_configuration::LiveConfiguration;
use crate::stored_heads::stored_head;

impl Instructions {
    /// Parses a page that has just arrived for a program, and counts its faults, once.
    pub(crate) fn of_new(
        core: &CoreState,
        live: &LiveConfiguration,
        bytes: &[u8],
        is_gzipped: bool,
    ) -> Arc<Self> {
        let (dialect, negotiated) = (Dialect::Varnish, false);
        let read =
            Arc::new(ReadPage::of(Some(BorrowedBody::One(bytes)), dialect, live, is_gzipped));
        let remarks = read.document.remarks();
        core.counters.add(Counter::EsiErrors, remarks.errors());
        core.counts().add(Count::EsiErrors, remarks.errors());
        core.counts().add(Count::EsiWarnings, remarks.warnings());
        let is_told = AtomicBool::new(true);
        Arc::new(Self { dialect, read, is_gzipped, negotiated, is_told })
    }
}

impl ReadPage {
    /// Parses a complete page. With `is_gzipped`, texts are compressed where that makes them
    /// shorter.
    fn of(
        whole: Option<BorrowedBody<'_>>,
        dialect: Dialect,
        live: &LiveConfiguration,
        is_gzipped: bool,
    ) -> Self {
        let (rules, limits) = reading(dialect, live);
        let document = Document::read(whole.iter().flat_map(BorrowedBody::pieces), rules, limits);
        let clips = match whole {
            Some(whole) if is_gzipped && !document.is_plain() && whole.len() <= PAGE_BYTES => {
                let cut = |node: &Node| match node {
                    Node::Text(range) => Clip::of(whole, range),
                    _ => None,
                };
                document.nodes().iter().filter_map(cut).collect()
            }
            _ => Vec::new(),
        };
        Self { document, clips }
    }
}

/// The dialect and the limits by which pages are parsed.
pub(super) fn reading(dialect: Dialect, live: &LiveConfiguration) -> (esi::Dialect, esi::Limits) {
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

/// The instructions of the stored page `object`, whose body is complete.
pub(super) fn of_object(core: &CoreState, page: &ComposedPage, object: &Object) -> Arc<ReadPage> {
    let read = read(object, page.dialect, &page.live);
    if !read.is_told.swap(true, Ordering::Relaxed) {
        note(core, page, read.remarks());
    }
    Arc::clone(&read.read)
}

/// The instructions of a stored page for a forecast, which counts nothing.
pub(super) fn foreseen(page: &ComposedPage, object: &Object) -> Arc<ReadPage> {
    Arc::clone(&read(object, page.dialect, &page.live).read)
}

/// The instructions of a page that is not stored.
pub(super) fn of_bytes(core: &CoreState, page: &ComposedPage, bytes: &[u8]) -> Arc<ReadPage> {
    let read = ReadPage::of(Some(BorrowedBody::One(bytes)), page.dialect, &page.live, false);
    note(core, page, read.document.remarks());
    Arc::new(read)
}

/// Logs and counts the faults of a page, unless that was done on its arrival.
pub(super) fn note(core: &CoreState, page: &ComposedPage, remarks: &Remarks) {
    if page.dialect != Dialect::Varnish {
        core.counters.add(Counter::EsiErrors, remarks.errors());
    }
}

/// A stored page without instructions, which is sent like other responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlainPage {
    /// The page is sent in further forms to clients that accept them.
    pub(crate) negotiated: bool,
}

/// Returns the stored page if it is complete and has no instructions.
pub(crate) fn plain(
    object: &Object,
    dialect: Dialect,
    live: &LiveConfiguration,
) -> Option<PlainPage> {
    object.whole()?;
    let read = read(object, dialect, live);
    let negotiated = read.negotiated;
    read.is_plain().then_some(PlainPage { negotiated })
}

/// Returns true if the settings permit codings for the page `object`, and its head announces
/// several forms.
fn is_negotiated(object: &Object, live: &LiveConfiguration) -> bool {
    let Some(head) = stored_head(object) else { return false };
    let is_worth = || live.compression.worth.judge(head.status, &head.headers, object.length());
    object.flags().gzip_page && form::varies_by_coding(&head.headers) && is_worth().is_ok()
}

/// The instructions attached to `object`; parses and attaches them if there are none.
fn read(object: &Object, dialect: Dialect, live: &LiveConfiguration) -> Arc<Instructions> {
    if let Some(kept) = object.attached::<Instructions>()
        && kept.dialect == dialect
    {
        return kept;
    }
    let is_gzipped = object.flags().gzip_page;
    let read = Arc::new(ReadPage::of(object.whole(), dialect, live, is_gzipped));
    let is_plain = read.document.is_plain();
    let is_told = AtomicBool::new(false);
    let negotiated = is_plain && dialect != Dialect::Varnish && is_negotiated(object, live);
    let made = Arc::new(Instructions { dialect, read, is_gzipped, negotiated, is_told });
    object.attach(made.clone());
    made
}
