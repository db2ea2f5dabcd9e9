//! Fields to store and to forward, and updates of stored fields by a 304.

use smallvec::SmallVec;

use crate::cache_control::named_fields;
use crate::digest::digest_of;
use crate::header::{Field, HeaderBlock, HeaderId};

/// Names from field values, in one buffer that is rarely on the heap, each ended by a comma, which
/// no name contains.
#[derive(Default)]
struct FieldNameList(SmallVec<[u8; 128]>);

impl FieldNameList {
    fn add<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) {
        for name in names {
            self.0.extend_from_slice(name);
            self.0.push(b',');
        }
    }

    fn contain(&self, name: &[u8]) -> bool {
        !self.0.is_empty() && self.0.split(|b| *b == b',').any(|n| n.eq_ignore_ascii_case(name))
    }
}

/// Fields without which a stored response would be misinterpreted; no directive removes them.
const fn is_essential(id: HeaderId) -> bool {
    use HeaderId as Id;
    matches!(
        id,
        Id::Age | Id::CacheControl | Id::ContentEncoding | Id::ContentLength | Id::Date | Id::Vary
    )
}

/// Fields that the response names in `no-cache="..."` or `private="..."`: they are not stored (RFC
/// 9111 3.1).
pub fn forbidden_field_names(headers: &HeaderBlock) -> impl Iterator<Item = &[u8]> {
    named_fields(headers.values(HeaderId::CacheControl))
}

/// Removes the known hop-by-hop fields (RFC 9110 7.6.1).
///
/// Fields named by Connection are not considered: the engine (`h1`) has removed them, and fields
/// added since must not be affected by the peer's Connection.
pub fn strip_hop_by_hop(headers: &mut HeaderBlock) {
    headers.retain(|field| !field.id.is_hop_by_hop());
}

/// Removes fields that are not stored (RFC 9111 3.1): hop-by-hop fields, fields for this proxy
/// only, and those of [`forbidden_field_names`].
pub fn strip_for_storage(headers: &mut HeaderBlock) {
    use HeaderId as Id;
    strip_hop_by_hop(headers);
    let mut forbidden = FieldNameList::default();
    forbidden.add(forbidden_field_names(headers));
    headers.retain(|field| {
        let for_proxy = matches!(
            field.id,
            Id::ProxyAuthenticate | Id::ProxyAuthenticationInfo | Id::ProxyAuthorization
        );
        !for_proxy && (!forbidden.contain(field.name) || is_essential(field.id))
    });
}

/// Updates stored fields from a 304 (RFC 9111 3.2): each of its fields replaces all stored ones of
/// its name, except those that describe the stored body or were never stored.
pub fn update_fields(stored: &mut HeaderBlock, confirmation: &HeaderBlock) {
    let mut update = confirmation.clone();
    strip_for_storage(&mut update);
    update.retain(|field| !describes_body(&field));
    stored.retain(|old| {
        !update.iter().any(|new| new.id == old.id && new.name.eq_ignore_ascii_case(old.name))
    });
    for field in update.iter() {
        stored.push_named(field.name, field.value);
    }
}

/// Returns true for fields that describe a body. A 304 has no body, so these are not about the
/// stored one; and the stored entity tag is the validated one.
fn describes_body(field: &Field<'_>) -> bool {
    use HeaderId as Id;
    matches!(field.id, Id::ContentEncoding | Id::ContentLength | Id::ContentRange | Id::Etag)
        || digest_of(field.name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(fields: &[(&str, &str)]) -> HeaderBlock {
        let mut block = HeaderBlock::new();
        for (name, value) in fields {
            block.push_named(name.as_bytes(), value.as_bytes());
        }
        block
    }

    fn names(block: &HeaderBlock) -> Vec<String> {
        block.iter().map(|f| String::from_utf8_lossy(f.name).into_owned()).collect()
    }

    #[test]
    fn fields_of_one_connection_go_and_what_connection_names_stays() {
        let mut headers = block(&[
            ("Connection", "a, B, keep-alive"),
            ("A", "1"),
            ("b", "2"),
            ("Keep-Alive", "timeout=1"),
            ("Transfer-Encoding", "chunked"),
            ("TE", "trailers"),
            ("Upgrade", "x"),
            ("Proxy-Connection", "close"),
        ]);
        strip_hop_by_hop(&mut headers);
        assert_eq!(names(&headers), ["A", "b"]);
    }

    #[test]
    fn named_and_proxy_fields_are_not_stored() {
        let mut headers = block(&[
            ("Cache-Control", r#"no-cache="a, set-cookie, cache-control, date""#),
            ("Cache-Control", "private=b, max-age=5"),
            ("A", "1"),
            ("B", "2"),
            ("C", "3"),
            ("Set-Cookie", "a=b"),
            ("Date", "x"),
            ("Proxy-Authenticate", "Basic"),
            ("WWW-Authenticate", "Basic"),
        ]);
        strip_for_storage(&mut headers);
        let kept = ["Cache-Control", "Cache-Control", "C", "Date", "WWW-Authenticate"];
        assert_eq!(names(&headers), kept);
    }

    #[test]
    fn a_304_replaces_what_it_brings_and_leaves_the_body_described() {
        let mut stored = block(&[
            ("Content-Type", "text/plain"),
            ("Content-Length", "5"),
            ("ETag", "\"a\""),
            ("X-One", "1"),
            ("X-Two", "1"),
            ("Set-Cookie", "a=b"),
            ("Set-Cookie", "c=d"),
        ]);
        let confirmation = block(&[
            ("Connection", "close"),
            ("x-one", "2"),
            ("Content-Type", "text/html"),
            ("Content-Length", "10"),
            ("Content-MD5", "x"),
            ("ETag", "\"b\""),
            ("Set-Cookie", "a=c"),
        ]);
        update_fields(&mut stored, &confirmation);
        let value = |name: &str| stored.value_named(name.as_bytes()).map(String::from_utf8_lossy);
        assert_eq!(value("Content-Type").as_deref(), Some("text/html"));
        assert_eq!(value("Content-Length").as_deref(), Some("5"));
        assert_eq!(value("ETag").as_deref(), Some("\"a\""));
        assert_eq!(value("X-One").as_deref(), Some("2"));
        assert_eq!(value("X-Two").as_deref(), Some("1"));
        assert_eq!(value("Content-MD5"), None);
        assert_eq!(stored.values(HeaderId::SetCookie).collect::<Vec<_>>(), [b"a=c"]);
    }
}
