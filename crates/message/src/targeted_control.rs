//! Targeted cache control: fields for one kind of cache (RFC 9213), and their predecessor
//! Surrogate-Control (W3C Edge Architecture, 2001).
//!
//! Either becomes a [`CacheControl`]; `store` decides that it replaces Cache-Control and Expires.

use crate::cache_control::{CacheControl, DirectiveScope, MAX_DELTA_SECS, delta_secs};
use crate::header::{HeaderBlock, HeaderId};
use crate::list::{members, trim, unquote};
use crate::sf::{self, BareItem, Value};

/// The device token by which Surrogate-Capability announces this program, and by which a directive
/// of Surrogate-Control addresses it alone.
pub const SURROGATE_ID: &str = "larder";

/// The directives of the first valid field of `targets` (RFC 9213 2.2).
pub fn effective(headers: &HeaderBlock, targets: &[HeaderId]) -> Option<CacheControl> {
    targets.iter().find_map(|id| read(headers, *id))
}

/// The field that [`effective`] uses.
pub fn field(headers: &HeaderBlock, targets: &[HeaderId]) -> Option<HeaderId> {
    targets.iter().copied().find(|id| read(headers, *id).is_some())
}

fn read(headers: &HeaderBlock, id: HeaderId) -> Option<CacheControl> {
    match id {
        HeaderId::SurrogateControl => surrogate_control(headers.values(id)),
        _ => dictionary(headers.values(id)),
    }
}

/// Parses a targeted field. `None` if it is absent, empty or not a dictionary.
///
/// Arguments of a wrong type are not converted (RFC 9213 2.1): a lifetime that is not an integer is
/// 0, and a directive that forbids applies unless its value is `?0`.
pub fn dictionary<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<CacheControl> {
    let mut control = CacheControl::default();
    let count = sf::parse_dictionary(lines, |member| {
        let on = member.value != Value::Item(BareItem::Boolean(false));
        let seconds = Some(seconds(member.value));
        match member.key {
            b"max-age" => control.max_age = seconds,
            b"s-maxage" => control.s_maxage = seconds,
            b"stale-while-revalidate" => control.stale_while_revalidate = seconds,
            b"stale-if-error" => control.stale_if_error = seconds,
            b"no-cache" => control.no_cache = whole(on),
            b"private" => control.private = whole(on),
            b"public" => control.public = member.value == Value::Item(BareItem::Boolean(true)),
            key => {
                if let Some(flag) = control.flag(key) {
                    *flag = on;
                }
            }
        }
    });
    matches!(count, Ok(1..)).then_some(control)
}

fn seconds(value: Value<'_>) -> u32 {
    match value {
        Value::Item(BareItem::Integer(secs)) => {
            u32::try_from(secs.clamp(0, i64::from(MAX_DELTA_SECS))).unwrap_or(MAX_DELTA_SECS)
        }
        _ => 0,
    }
}

const fn whole(on: bool) -> DirectiveScope {
    if on { DirectiveScope::Whole } else { DirectiveScope::Absent }
}

/// Parses Surrogate-Control. `None` if no directive is for this cache.
///
/// `max-age=N+M` is a lifetime of N seconds and M more for stale use. A directive with a device
/// token (`no-store;abc`) is ignored unless the token is [`SURROGATE_ID`]; `no-store-remote`, for
/// caches far from the origin, has no effect here.
pub fn surrogate_control<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<CacheControl> {
    let mut control = CacheControl::default();
    let mut any = false;
    for (name, argument) in surrogate_directives(lines) {
        if name.eq_ignore_ascii_case(b"no-store") {
            control.no_store = true;
        } else if name.eq_ignore_ascii_case(b"max-age") {
            if control.max_age.is_none() {
                let (lifetime, stale) = lifetime_and_stale(argument);
                control.max_age = Some(lifetime);
                control.stale_while_revalidate = stale;
                control.stale_if_error = stale;
            }
        } else {
            continue;
        }
        any = true;
    }
    any.then_some(control)
}

/// Returns true if Surrogate-Control's `content` requests `processor`, such as `ESI/1.0`.
pub fn surrogate_content<'a>(lines: impl IntoIterator<Item = &'a [u8]>, processor: &[u8]) -> bool {
    surrogate_directives(lines).any(|(name, argument)| {
        name.eq_ignore_ascii_case(b"content")
            && unquote(argument)
                .unwrap_or(argument)
                .split(|b| *b == b' ')
                .any(|p| p.eq_ignore_ascii_case(processor))
    })
}

/// Directives for every surrogate or for this one, with their arguments.
fn surrogate_directives<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    members(lines).filter_map(|member| {
        let (directive, device) = match member.iter().rposition(|b| *b == b';') {
            Some(at) if !member[at..].contains(&b'"') => (&member[..at], trim(&member[at + 1..])),
            _ => (member, &b""[..]),
        };
        if !device.is_empty() && !device.eq_ignore_ascii_case(SURROGATE_ID.as_bytes()) {
            return None;
        }
        let directive = trim(directive);
        let split = directive.iter().position(|b| *b == b'=');
        Some(split.map_or((directive, &b""[..]), |at| (&directive[..at], &directive[at + 1..])))
    })
}

fn lifetime_and_stale(argument: &[u8]) -> (u32, Option<u32>) {
    let argument = unquote(argument).unwrap_or(argument);
    let (lifetime, stale) = match argument.iter().position(|b| *b == b'+') {
        Some(at) => (&argument[..at], Some(&argument[at + 1..])),
        None => (argument, None),
    };
    (delta_secs(lifetime).unwrap_or(0), stale.map(|s| delta_secs(s).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdn(text: &str) -> Option<CacheControl> {
        dictionary([text.as_bytes()])
    }

    fn surrogate(text: &str) -> Option<CacheControl> {
        surrogate_control([text.as_bytes()])
    }

    #[test]
    fn a_targeted_field_is_a_dictionary_of_directives() {
        let control = cdn("max-age=60;ignored, must-revalidate, no-cache, foo=bar").expect("valid");
        assert_eq!(control.max_age, Some(60));
        assert!(control.must_revalidate && control.forbids_stale());
        assert_eq!(control.no_cache, DirectiveScope::Whole);
        assert_eq!(cdn("max-age=99999999999").and_then(|c| c.max_age), Some(MAX_DELTA_SECS));
        assert_eq!(cdn("max-age=-1").and_then(|c| c.max_age), Some(0));
        assert_eq!(cdn("max-age=1, max-age=2").and_then(|c| c.max_age), Some(2));
        assert_eq!(cdn("private=?0, no-store=?0"), Some(CacheControl::default()));
    }

    #[test]
    fn a_field_that_does_not_parse_is_absent() {
        for text in ["", " ", "max-age=10000, &&&&&", "MaX-aGe=3600", "max-age =1", "max-age= 1"] {
            assert_eq!(cdn(text), None, "{text}");
        }
    }

    #[test]
    fn arguments_of_the_wrong_type_are_not_bent() {
        assert_eq!(cdn(r#"max-age="60""#).and_then(|c| c.max_age), Some(0));
        assert_eq!(cdn("max-age=60.0").and_then(|c| c.max_age), Some(0));
        assert_eq!(cdn("private=(a)").map(|c| c.private), Some(DirectiveScope::Whole));
        assert_eq!(cdn("public=1").map(|c| c.public), Some(false));
    }

    #[test]
    fn the_first_valid_target_counts() {
        let mut headers = HeaderBlock::new();
        headers.push(HeaderId::CdnCacheControl, b"max-age=1, &");
        headers.push(HeaderId::SurrogateControl, b"max-age=2");
        let targets = [HeaderId::CdnCacheControl, HeaderId::SurrogateControl];
        assert_eq!(effective(&headers, &targets).and_then(|c| c.max_age), Some(2));
        headers.set(HeaderId::CdnCacheControl, b"max-age=1");
        assert_eq!(effective(&headers, &targets).and_then(|c| c.max_age), Some(1));
        assert_eq!(effective(&headers, &[]), None);
    }

    #[test]
    fn surrogate_control_has_its_own_grammar() {
        let control = surrogate(r#"foobar, MaX-aGe=60+30, content="ESI/1.0""#).expect("valid");
        assert_eq!((control.max_age, control.stale_while_revalidate), (Some(60), Some(30)));
        assert_eq!(control.stale_if_error, Some(30));
        assert_eq!(surrogate("max-age=x").and_then(|c| c.max_age), Some(0));
        assert_eq!(surrogate("no-store").map(|c| c.no_store), Some(true));
        assert_eq!(surrogate("no-store-remote"), None);
        assert_eq!(surrogate("foo"), None);
    }

    #[test]
    fn directives_for_other_devices_are_skipped() {
        assert_eq!(surrogate("max-age=5;abc"), None);
        let control = surrogate("no-store;abc, max-age=5;larder").expect("one is for us");
        assert_eq!((control.no_store, control.max_age), (false, Some(5)));
    }

    #[test]
    fn content_names_processors() {
        let wants = |text: &str| surrogate_content([text.as_bytes()], b"ESI/1.0");
        assert!(wants(r#"max-age=5, content="ESI/1.0""#));
        assert!(wants(r#"content="ESI-Inline/1.0 ESI/1.0""#));
        assert!(!wants(r#"content="ESI/1.1""#));
        assert!(!wants(r#"extension="content=ESI/1.0""#));
    }
}
