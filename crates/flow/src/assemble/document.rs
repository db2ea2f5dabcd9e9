//! What a page's text says, read once and kept beside the stored page.

use std::any::Any;
use std::sync::Arc;

use cache::{Attached, Object};

use super::page::{Dialect, Page};
use crate::live::Live;

/// The instructions of a page in one of the dialects.
#[derive(Debug)]
pub(super) struct Instructions {
    dialect: Dialect,
    pub(super) document: esi::Document,
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
pub(super) fn of_object(page: &Page, object: &Object) -> Arc<Instructions> {
    read(object, page.dialect, &page.live)
}

fn read(object: &Object, dialect: Dialect, live: &Live) -> Arc<Instructions> {
    if let Some(kept) = object.attached()
        && let Ok(kept) = (kept as Arc<dyn Any + Send + Sync>).downcast::<Instructions>()
        && kept.dialect == dialect
    {
        return kept;
    }
    let (rules, limits) = reading(dialect, live);
    let mut parser = esi::Parser::new(rules, limits);
    let mut nodes = Vec::new();
    for piece in object.whole().iter().flat_map(cache::Whole::pieces) {
        parser.push(piece, &mut nodes);
    }
    let remarks = parser.finish(&mut nodes);
    let document = esi::Document::new(nodes, remarks);
    let made = Arc::new(Instructions { dialect, document });
    object.attach(made.clone());
    made
}

/// The instructions of a page that is stored nowhere.
pub(super) fn of_bytes(page: &Page, bytes: &[u8]) -> Instructions {
    let (rules, limits) = reading(page.dialect, &page.live);
    Instructions { dialect: page.dialect, document: esi::parse(bytes, rules, limits) }
}

/// Returns true if the stored page has no instruction, as far as a program is concerned.
pub(crate) fn is_plain(object: &Object, live: &Live) -> bool {
    object.whole().is_some() && read(object, Dialect::Varnish, live).document.is_plain()
}
