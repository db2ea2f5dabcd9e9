//! Lists of addresses, of paths, of methods and of field names.

use message::Method;
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

/// Reads methods.
pub(super) fn methods(r: &mut Reader, item: &SettingValue<'_>) -> Vec<Method> {
    let texts = r.texts(item);
    texts.iter().filter_map(|(text, item)| method(r, text, item)).collect()
}

fn method(r: &mut Reader, text: &str, item: &SettingValue<'_>) -> Option<Method> {
    if !message::header::is_token(text.as_bytes()) {
        r.error(item.span.clone(), format!("`{text}` is not a method"));
        return None;
    }
    match Method::from_token(text.as_bytes()) {
        Method::Purge | Method::Ban | Method::Connect | Method::Trace => {
            r.error(
                item.span.clone(),
                format!("{text} requests are refused before routes are looked at"),
            );
            None
        }
        Method::Other(_) if text.bytes().any(|b| b.is_ascii_lowercase()) => {
            let capitals = text.to_ascii_uppercase();
            r.error(item.span.clone(), format!("methods are case-sensitive: `{text}`")).help =
                Some(format!("did you mean `{capitals}`?"));
            None
        }
        method => Some(method),
    }
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
