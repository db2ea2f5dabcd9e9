//! Reasons why a response is not stored, and sources of a lifetime: as tokens for records, as
//! sentences, and with the field that is the evidence.

use std::fmt;

use super::ignored::JudgedHead;
use super::rules::StoreRules;
use crate::cookie;
use crate::header::{HeaderBlock, HeaderId};
use crate::request::Request;
use crate::targeted_control;

/// Longest evidence, in bytes: fields may be kilobytes long.
const EVIDENCE_BYTES: usize = 160;

macro_rules! reasons {
    ($($variant:ident $token:literal $rule:literal $about:literal;)*) => {
        /// The reason why a response is not stored. `Display` is one token, for logs and
        /// Cache-Status's detail.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum NotStored { $(#[doc = $about] $variant,)* }

        impl NotStored {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The reason as a token.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $token,)* }
            }

            /// The reason in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// The section of an RFC with the rule, or the setting that changes it.
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$variant => $rule,)* }
            }
        }
    };
}

reasons! {
    Method "method" "RFC 9111 3" "The request's method is not GET.";
    NotFinal "not-final" "RFC 9111 3" "An interim response.";
    Status "status" "RFC 9111 3"
        "A status that is never stored: 206, 304, 416, or a rejection of one request's form.";
    NotUnderstood "not-understood" "RFC 9111 5.2.2.3"
        "The response says must-understand, and its status is not understood.";
    NoStore "no-store" "RFC 9111 5.2.2.5" "The response says no-store.";
    RequestNoStore "request-no-store" "RFC 9111 5.2.1.5" "The request says no-store.";
    Private "private" "RFC 9111 5.2.2.7" "The response says private.";
    Authorization "authorization" "RFC 9111 3.5"
        "The request has Authorization, and the response is not marked as for all.";
    Personal "personal" "profile `safe`"
        "The request is personal (cookies), and the response is not marked as for all.";
    VaryAny "vary-any" "RFC 9111 4.1"
        "Vary is `*`, or names something by which a cache cannot select a variant.";
    SetCookie "set-cookie" "profile `safe`; `cache.drop_set_cookie`"
        "The response sets a cookie, which every client would get.";
    NoLifetime "no-lifetime" "RFC 9111 3; `cache.ttl`"
        "Neither the response nor a setting names a lifetime, and there is no validator.";
    Endless "endless" "RFC 9111 3"
        "The Content-Type is that of an endless response: an event stream, or a picture that is \
         replaced repeatedly.";
    ContentType "content-type" "`cache.match_type`"
        "The Content-Type does not match the path's suffix.";
    NoValidator "no-validator" "RFC 9111 4.2"
        "The response is stale at once (no-cache, max-age=0, an Expires in the past), and has \
         neither grace nor a validator.";
    OldDate "old-date" "RFC 9111 4.2.3"
        "By its Date, the response was older than its lifetime on arrival: the origin's clock is \
         behind, or a cache in front of the origin kept it.";
    OldAge "old-age" "RFC 9111 4.2.3"
        "By its Age, the response was older than its lifetime on arrival: a cache in front of the \
         origin kept it.";
    OtherKey "other-key" "`cookies.key`, `cache.match_headers`"
        "The response belongs to another key than its request's: it sets a cookie that is part of the key, has \
         another value of a field that must be the same, or its Vary lacks a field by which the \
         request asked for another form (`RSC`, `Next-Router-*`, `X-Inertia`, ...).";
    ResponseRule "response-rule" "`[[site.response]]`, `[[site.route.response]]`"
        "A rule for responses forbids storing it (`store = false`).";
    Differs "differs" "`[site.cache] verify`"
        "A comparison with the origin has shown that the page differs by visitor in a way that the \
         cache cannot see.";
    Program "vcl" "`beresp.uncacheable`, `beresp.ttl`"
        "The VCL beside the site's settings made it uncacheable.";
    Tags "tags" "limits `tags`, `tag_bytes`"
        "The response has more surrogate keys than a limit permits, and a purge by one of the others \
         would not find it.";
}

impl NotStored {
    /// The reason with this token.
    pub fn of(token: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == token)
    }
}

impl fmt::Display for NotStored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The source of a lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeSource {
    /// No lifetime.
    None,
    /// Cache-Control: s-maxage.
    SMaxAge,
    /// Cache-Control: max-age.
    MaxAge,
    /// Expires.
    Expires,
    /// Heuristic from Last-Modified.
    Heuristic,
    /// A targeted field.
    Targeted,
    /// The setting for the status.
    Setting,
    /// A rule for responses.
    Rule,
}

/// The fields that are the evidence for `why`, as received, shortened if long; of cookies only the
/// names. Empty if no field is. Fields that were ignored are named first.
pub fn evidence(
    why: NotStored,
    request: &Request,
    response: &JudgedHead<'_>,
    rules: &StoreRules,
) -> String {
    let headers = &*response.headers;
    let control =
        targeted_control::field(headers, &rules.targets).unwrap_or(HeaderId::CacheControl);
    let text = match why {
        NotStored::Method => format!("method {}", request.method),
        NotStored::Status | NotStored::NotFinal => format!("status {}", response.status),
        NotStored::NotUnderstood => {
            format!("{}, status {}", line(headers, control), response.status)
        }
        NotStored::NoStore | NotStored::Private => {
            // A neighbouring field often shows which software sent it.
            let beside = [HeaderId::Expires, HeaderId::SetCookie];
            let beside = beside.into_iter().filter(|id| headers.contains(*id)).map(|id| match id {
                HeaderId::SetCookie => cookies_set(headers),
                id => line(headers, id),
            });
            std::iter::once(line(headers, control)).chain(beside).collect::<Vec<_>>().join(", ")
        }
        NotStored::OldDate | NotStored::OldAge => {
            let aged = if why == NotStored::OldDate { HeaderId::Date } else { HeaderId::Age };
            let ids = [control, HeaderId::Expires, aged];
            let lines = ids.iter().filter(|id| headers.contains(**id)).map(|id| line(headers, *id));
            lines.collect::<Vec<_>>().join(", ")
        }
        NotStored::RequestNoStore => {
            format!("request's {}", line(&request.headers, HeaderId::CacheControl))
        }
        NotStored::Authorization => "request's Authorization".to_owned(),
        NotStored::Personal => {
            let pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
            let names: Vec<_> = pairs.map(|pair| pair.name.escape_ascii().to_string()).collect();
            match names.is_empty() {
                true => "request's Authorization or certificate".to_owned(),
                false => format!("request's Cookie: {}", names.join(", ")),
            }
        }
        NotStored::VaryAny => line(headers, HeaderId::Vary),
        NotStored::SetCookie => cookies_set(headers),
        NotStored::NoLifetime | NotStored::NoValidator => {
            let ids = [control, HeaderId::Expires, HeaderId::Age];
            let lines = ids.iter().filter(|id| headers.contains(**id)).map(|id| line(headers, *id));
            let lines: Vec<_> = lines.collect();
            match lines.is_empty() {
                true => format!("status {}", response.status),
                false => lines.join(", "),
            }
        }
        NotStored::Endless | NotStored::ContentType => line(headers, HeaderId::ContentType),
        NotStored::OtherKey if headers.contains(HeaderId::SetCookie) => cookies_set(headers),
        NotStored::ResponseRule => match response.refused_by {
            Some(told) => format!("rule for {told}"),
            None => String::new(),
        },
        NotStored::OtherKey | NotStored::Differs | NotStored::Program | NotStored::Tags => {
            String::new()
        }
    };
    let left_out = match response.left_out_words() {
        words if words.is_empty() => words,
        words if text.is_empty() => format!("{words} ignored"),
        words => format!("{words} ignored; "),
    };
    cut(left_out + &text)
}

/// The names of the cookies in Set-Cookie.
fn cookies_set(headers: &HeaderBlock) -> String {
    let name = |value: &[u8]| {
        let name = value.split(|b| *b == b'=').next().unwrap_or_default();
        name.trim_ascii().escape_ascii().to_string()
    };
    let names: Vec<_> = headers.values(HeaderId::SetCookie).map(name).collect();
    format!("Set-Cookie: {}", names.join(", "))
}

/// The source of a lifetime of `response` as the end of a sentence; `source` is the result of
/// [`plan`](super::plan).
pub fn lifetime_words(
    source: LifetimeSource,
    response: &JudgedHead<'_>,
    rules: &StoreRules,
) -> String {
    let headers = &*response.headers;
    let quoted = |id| format!("`{}`", cut(line(headers, id)));
    let text = match source {
        LifetimeSource::None => return "no lifetime is set".to_owned(),
        LifetimeSource::SMaxAge => {
            format!("{} (RFC 9111 5.2.2.10)", quoted(HeaderId::CacheControl))
        }
        LifetimeSource::MaxAge => format!("{} (RFC 9111 5.2.2.1)", quoted(HeaderId::CacheControl)),
        LifetimeSource::Expires => {
            let (expires, date) = (quoted(HeaderId::Expires), quoted(HeaderId::Date));
            format!("{expires} less {date} (RFC 9111 5.3)")
        }
        LifetimeSource::Heuristic => {
            let modified = quoted(HeaderId::LastModified);
            format!("a tenth of the time since {modified} (heuristic, RFC 9111 4.2.2)")
        }
        LifetimeSource::Setting => "the setting `cache.ttl`".to_owned(),
        LifetimeSource::Rule => {
            let told = response.ruled_ttl.map_or("", |(_, told)| told);
            format!("`ttl` of the rule for {told}")
        }
        LifetimeSource::Targeted => {
            let id = targeted_control::field(headers, &rules.targets)
                .unwrap_or(HeaderId::CdnCacheControl);
            let rfc = match id {
                HeaderId::SurrogateControl => "Edge Architecture",
                _ => "RFC 9213",
            };
            format!("{} ({rfc})", quoted(id))
        }
    };
    // The field that would have counted otherwise.
    let over = match source {
        LifetimeSource::Targeted if headers.contains(HeaderId::CacheControl) => {
            Some(HeaderId::CacheControl)
        }
        LifetimeSource::SMaxAge | LifetimeSource::MaxAge | LifetimeSource::Targeted => {
            Some(HeaderId::Expires).filter(|id| headers.contains(*id))
        }
        _ => None,
    };
    match over {
        Some(id) => format!("{text} over {}", quoted(id)),
        None => text,
    }
}

/// A field as a line, with its values joined; only its name if it is absent.
fn line(headers: &HeaderBlock, id: HeaderId) -> String {
    let values: Vec<_> = headers.values(id).map(|v| v.escape_ascii().to_string()).collect();
    match values.is_empty() {
        true => format!("no {}", id.name()),
        false => format!("{}: {}", id.name(), values.join(", ").replace("\\\"", "\"")),
    }
}

fn cut(mut text: String) -> String {
    if text.len() > EVIDENCE_BYTES {
        // Every byte is ASCII.
        text.truncate(EVIDENCE_BYTES - 3);
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::{Response, Status};

    fn response(fields: &[(HeaderId, &str)]) -> Response {
        let mut response = Response::new(Status::OK);
        for (id, value) in fields {
            response.headers.push(*id, value.as_bytes());
        }
        response
    }

    #[test]
    fn every_token_leads_back_to_its_reason() {
        for reason in NotStored::ALL {
            assert_eq!(NotStored::of(reason.as_str()), Some(*reason));
            assert!(reason.about().ends_with('.') && !reason.rule().is_empty());
        }
        assert_eq!(NotStored::of("nothing"), None);
    }

    #[test]
    fn evidence_is_the_field_that_counts_and_never_a_cookies_value() {
        use HeaderId as Id;
        let mut request = Request::new();
        request.headers.push(Id::Cookie, b"sid=secret; theme=dark");
        request.headers.push(Id::CacheControl, b"no-store");
        let rules = StoreRules::rfc();
        for (why, fields, expected) in [
            (NotStored::Private, &[(Id::CacheControl, "private")][..], "Cache-Control: private"),
            (
                NotStored::NoStore,
                &[(Id::CacheControl, "max-age=9"), (Id::CdnCacheControl, "no-store")],
                "CDN-Cache-Control: no-store",
            ),
            (
                NotStored::SetCookie,
                &[(Id::SetCookie, "a=secret; Path=/"), (Id::SetCookie, "b=secret")],
                "Set-Cookie: a, b",
            ),
            (NotStored::Personal, &[], "request's Cookie: sid, theme"),
            (NotStored::RequestNoStore, &[], "request's Cache-Control: no-store"),
            (NotStored::VaryAny, &[(Id::Vary, "*")], "Vary: *"),
            (
                NotStored::NoStore,
                &[(Id::CacheControl, "no-store"), (Id::Expires, "0"), (Id::SetCookie, "a=secret")],
                "Cache-Control: no-store, Expires: 0, Set-Cookie: a",
            ),
            (
                NotStored::OldDate,
                &[(Id::CacheControl, "max-age=60"), (Id::Date, "then"), (Id::Age, "9")],
                "Cache-Control: max-age=60, Date: then",
            ),
            (
                NotStored::OldAge,
                &[(Id::CacheControl, "max-age=60"), (Id::Date, "then"), (Id::Age, "99")],
                "Cache-Control: max-age=60, Age: 99",
            ),
            (NotStored::NoLifetime, &[], "status 200"),
            (
                NotStored::NoValidator,
                &[(Id::CacheControl, "max-age=0")],
                "Cache-Control: max-age=0",
            ),
            (NotStored::Tags, &[], ""),
        ] {
            let response = response(fields);
            let judged = JudgedHead::of(&response, &rules);
            assert_eq!(evidence(why, &request, &judged, &rules), expected);
        }
        let long = response(&[(Id::CacheControl, &"x".repeat(1000))]);
        let judged = JudgedHead::of(&long, &rules);
        assert_eq!(evidence(NotStored::Private, &request, &judged, &rules).len(), EVIDENCE_BYTES);
    }

    #[test]
    fn evidence_names_what_was_ignored_and_never_a_cookies_value() {
        let mut rules = StoreRules::safe();
        rules.ignored.add("Cache-Control").expect("a field");
        let response =
            response(&[(HeaderId::CacheControl, "private"), (HeaderId::SetCookie, "sid=secret")]);
        let judged = JudgedHead::of(&response, &rules);
        let told = |why| evidence(why, &Request::new(), &judged, &rules);
        assert_eq!(told(NotStored::SetCookie), "Cache-Control ignored; Set-Cookie: sid");
        assert_eq!(told(NotStored::Tags), "Cache-Control ignored");
    }

    #[test]
    fn a_lifetime_is_told_with_what_it_goes_before() {
        use HeaderId as Id;
        let words = |source, fields: &[(Id, &str)]| {
            let (response, rules) = (response(fields), StoreRules::rfc());
            lifetime_words(source, &JudgedHead::of(&response, &rules), &rules)
        };
        let both = [(Id::CdnCacheControl, "max-age=300"), (Id::CacheControl, "max-age=60")];
        assert_eq!(
            words(LifetimeSource::Targeted, &both),
            "`CDN-Cache-Control: max-age=300` (RFC 9213) over `Cache-Control: max-age=60`"
        );
        assert_eq!(
            words(LifetimeSource::MaxAge, &[(Id::CacheControl, "max-age=60"), (Id::Expires, "0")]),
            "`Cache-Control: max-age=60` (RFC 9111 5.2.2.1) over `Expires: 0`"
        );
        assert_eq!(words(LifetimeSource::None, &[]), "no lifetime is set");
    }
}
