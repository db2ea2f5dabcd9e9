//! Facts of a response's head that a result counts, or that the next request needs: cache result,
//! coding, validator.

use std::rc::Rc;

use message::list::members;

/// The field that reported a cache result (RFC 9211, RFC 9111 5.1, and two older ones).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    CacheStatus,
    XCache,
    XVarnish,
    Age,
}

impl Field {
    pub(crate) const ALL: [Self; 4] = [Self::CacheStatus, Self::XCache, Self::XVarnish, Self::Age];

    /// The field's name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CacheStatus => "cache-status",
            Self::XCache => "x-cache",
            Self::XVarnish => "x-varnish",
            Self::Age => "age",
        }
    }
}

/// A precondition field, such as `If-None-Match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Precondition {
    pub(crate) name: &'static str,
    pub(crate) value: Rc<str>,
}

/// Facts of a response's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseFacts {
    /// The field that reported a cache result, and true for a hit.
    pub(crate) source: Option<(Field, bool)>,
    /// The reason in Cache-Status for a response that was no hit.
    pub(crate) reason: Option<Box<str>>,
    /// Content-Encoding, if present.
    pub(crate) encoding: Option<Box<str>>,
    /// The precondition for the next request, if requests are conditional.
    pub(crate) condition: Option<Precondition>,
}

impl ResponseFacts {
    /// Reads the facts from a head's fields; the precondition only if `conditional`. Of several
    /// fields of a name the last one counts.
    pub(crate) fn of<'a>(
        fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
        conditional: bool,
    ) -> Self {
        let (mut cache_status, mut x_cache, mut x_varnish, mut age, mut coding) =
            Default::default();
        let (mut etag, mut modified) = Default::default();
        for (name, value) in fields {
            let kept: &mut Option<&[u8]> = match name.len() {
                3 if name.eq_ignore_ascii_case(b"age") => &mut age,
                4 if conditional && name.eq_ignore_ascii_case(b"etag") => &mut etag,
                13 if conditional && name.eq_ignore_ascii_case(b"last-modified") => &mut modified,
                7 if name.eq_ignore_ascii_case(b"x-cache") => &mut x_cache,
                9 if name.eq_ignore_ascii_case(b"x-varnish") => &mut x_varnish,
                12 if name.eq_ignore_ascii_case(b"cache-status") => &mut cache_status,
                16 if name.eq_ignore_ascii_case(b"content-encoding") => &mut coding,
                _ => continue,
            };
            *kept = Some(value);
        }
        let text = |value: Option<&'a [u8]>| value.map(String::from_utf8_lossy);
        let mut facts = Self::default();
        if let Some(value) = cache_status {
            // The last member belongs to the cache that is nearest to the client.
            let nearest = members([value]).last().unwrap_or_default();
            let (hit, reason) = status(&String::from_utf8_lossy(nearest));
            facts.source = Some((Field::CacheStatus, hit));
            facts.reason = reason.map(Into::into);
        } else if let Some(value) = text(x_cache) {
            let nearest = value.rsplit(',').next().unwrap_or_default();
            facts.source = Some((Field::XCache, is_hit(nearest)));
        } else if let Some(value) = text(x_varnish) {
            facts.source = Some((Field::XVarnish, value.split_whitespace().count() > 1));
        } else if let Some(Ok(age)) = text(age).map(|value| value.trim().parse::<u64>()) {
            facts.source = Some((Field::Age, age > 0));
        }
        let condition = |name, value: &[u8]| {
            std::str::from_utf8(value).ok().map(|value| Precondition { name, value: value.into() })
        };
        facts.condition = etag
            .and_then(|value| condition("If-None-Match", value))
            .or_else(|| modified.and_then(|value| condition("If-Modified-Since", value)));
        facts.encoding = text(coding).map(|value| value.trim().to_lowercase().into());
        facts
    }
}

/// Reads a member of Cache-Status: true for a hit, and the reason for a miss.
fn status(member: &str) -> (bool, Option<String>) {
    let parameters = || member.split(';').skip(1).map(str::trim);
    let hit = parameters().any(|one| matches!(one, "hit" | "hit=?1"));
    let of = |name: &str| {
        parameters()
            .find_map(|one| one.split_once('=').filter(|(own, _)| *own == name))
            .map(|(_, value)| value)
    };
    if hit {
        return (true, None);
    }
    let reason = match (of("fwd"), of("detail")) {
        (Some(fwd), Some(detail)) => Some(format!("fwd={fwd}; detail={detail}")),
        (Some(fwd), None) => Some(format!("fwd={fwd}")),
        (None, detail) => detail.map(|detail| format!("detail={detail}")),
    };
    (false, reason)
}

/// Returns true if the value of X-Cache is a hit, as nginx, Varnish, Squid and Fastly write it.
fn is_hit(value: &str) -> bool {
    let first = value.split_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    first.starts_with("HIT")
        || first.ends_with("_HIT")
        || matches!(first.as_str(), "STALE" | "UPDATING" | "REVALIDATED")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, value: &str) -> Option<(Field, bool)> {
        ResponseFacts::of([(name.as_bytes(), value.as_bytes())].into_iter(), false).source
    }

    #[test]
    fn each_field_distinguishes_hits_from_misses() {
        for (name, hit, miss) in [
            (
                "cache-status",
                "Origin; fwd=miss, \"a, b\"; hit; ttl=3",
                "A;hit, larder; fwd=uri-miss",
            ),
            ("x-cache", "MISS from a, HIT from b", "HIT, MISS"),
            ("x-cache", "UPDATING", "EXPIRED"),
            ("x-cache", "TCP_MEM_HIT", "TCP_MISS"),
            ("x-varnish", "32770 3", "32770"),
            ("age", "3", "0"),
        ] {
            assert_eq!(source(name, hit).map(|(_, hit)| hit), Some(true), "{name}: {hit}");
            assert_eq!(source(name, miss).map(|(_, hit)| hit), Some(false), "{name}: {miss}");
        }
        assert_eq!(source("age", "soon"), None);
        assert_eq!(source("server", "x"), None);
    }

    #[test]
    fn a_miss_has_its_reason() {
        let reason = |value: &str| {
            ResponseFacts::of([(&b"Cache-Status"[..], value.as_bytes())].into_iter(), false).reason
        };
        assert_eq!(
            reason("larder; fwd=miss; detail=private").as_deref(),
            Some("fwd=miss; detail=private")
        );
        assert_eq!(reason("larder; fwd=stale; stored").as_deref(), Some("fwd=stale"));
        assert_eq!(reason("larder; hit"), None);
        // Empty members do not count (RFC 9110 5.6.1.2).
        assert_eq!(reason("larder; fwd=miss, ,").as_deref(), Some("fwd=miss"));
    }

    #[test]
    fn a_validator_is_the_next_condition() {
        let of = |fields: &[(&str, &str)], conditional| {
            let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            let condition = ResponseFacts::of(fields, conditional).condition?;
            Some(format!("{}: {}", condition.name, condition.value))
        };
        let both = [("Last-Modified", "Thu, 01 Jan 1970 00:00:00 GMT"), ("ETag", "W/\"a\"")];
        assert_eq!(of(&both, true).as_deref(), Some("If-None-Match: W/\"a\""));
        assert_eq!(of(&both, false), None);
        assert_eq!(
            of(&both[..1], true).as_deref(),
            Some("If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT")
        );
        assert_eq!(of(&[("Age", "1")], true), None);
    }
}
