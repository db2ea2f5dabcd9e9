//! Lists of addresses, of paths and of field names.

use policy::acl::{Net, parse_net};
use policy::headers::FieldName;
use policy::pattern::PathPattern;

use crate::reader::{Reader, SettingValue, TextRange};

/// Reads addresses and networks.
pub(super) fn nets(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Net> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, parse_net(text))).collect()
}

/// Reads path patterns.
pub(super) fn patterns(r: &mut Reader, item: &SettingValue<'_>) -> Vec<PathPattern> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, PathPattern::parse(text))).collect()
}

/// Reads names of fields.
pub(super) fn field_names(r: &mut Reader, item: &SettingValue<'_>) -> Vec<FieldName> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| r.check(item, FieldName::parse(text))).collect()
}

/// Reads the name of a field that is a key at `span`.
pub(super) fn field_name(r: &mut Reader, name: &str, span: TextRange) -> Option<FieldName> {
    FieldName::parse(name)
        .map_err(|why| r.error(span, format!("`{}`: {why}", name.escape_debug())))
        .ok()
}
