//! Lists of addresses and of paths.

use policy::acl::{Net, parse_net};
use policy::pattern::PathPattern;

use crate::reader::{Item, Reader};

/// Addresses and networks.
pub(super) fn nets(r: &mut Reader, item: &Item<'_>) -> Vec<Net> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, parse_net(text))).collect()
}

/// Path patterns.
pub(super) fn patterns(r: &mut Reader, item: &Item<'_>) -> Vec<PathPattern> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, PathPattern::parse(text))).collect()
}
