//! Advice on responses that are not stored: the setting, here or in the application, that would
//! change it. Advice on other steps is written where they are reported.

use cache::StoreRefusal;
use message::store::NotStored;

use crate::unstored_reason::UnstoredReason;

/// An application with known settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// WordPress.
    WordPress,
    /// Drupal.
    Drupal,
    /// MediaWiki.
    MediaWiki,
    /// Magento.
    Magento,
}

/// Advice for all responses that the origin forbids to store or gives no lifetime.
const FOR_THIS_CACHE: &str = "If the page is the same for all, `CDN-Cache-Control: max-age=300` \
    speaks to this cache alone, and goes before `Cache-Control`.";

const FOR_SOME: &str = "`[site.cookies] strip` removes cookies that only scripts read, `key` keeps \
    a page for each value of one; `Cache-Control: public` says that a page is for all. Nothing, if \
    it is not.";

/// Session cookies of frameworks, with the call that starts a session.
const SESSIONS: [(&str, &str); 8] = [
    ("PHPSESSID", "`session_start()`"),
    ("JSESSIONID", "`getSession()`; in a JSP page `session=\"false\"` leaves it out"),
    ("ASP.NET_SessionId", "a value put into `Session`"),
    (".AspNetCore.Session", "a value put into `Session`"),
    ("laravel_session", "the middleware `StartSession` (group `web`)"),
    ("connect.sid", "`express-session`; `saveUninitialized: false` leaves it out"),
    ("sessionid", "a value put into `request.session`"),
    ("ci_session", "the library `session`"),
];

/// The Expires that PHP sends with a session (`session.cache_limiter`).
const PHP_EXPIRES: &str = "Thu, 19 Nov 1981 08:52:00 GMT";

const PHP_SESSION: &str = "A PHP session was begun, and PHP itself sends these fields with it \
    (`session.cache_limiter`). Find the `session_start()` that runs for strangers too, and begin a \
    session only where it is needed. ";

const NEVER: &str = "Nothing: such an answer is never kept.";

/// Advice on a hit-for-miss mark, in addition to that on the response that left it.
pub const OF_MARK: &str = "Once the answer can be stored, the next GET stores it and ends \
    hit-for-miss, and so does a HEAD that says so; `larder purge URL` ends it at once.";

impl Application {
    /// The application that a preset is for.
    pub fn of(preset: &str) -> Option<Self> {
        Some(match preset {
            "wordpress" => Self::WordPress,
            "drupal" => Self::Drupal,
            "mediawiki" => Self::MediaWiki,
            "magento" => Self::Magento,
            _ => return None,
        })
    }

    /// Its settings of page lifetimes.
    fn lifetimes(self) -> &'static str {
        match self {
            Self::WordPress => {
                "In WordPress a plugin calls `nocache_headers()` or defines `DONOTCACHEPAGE`: its \
                 settings may say for which pages."
            }
            Self::Drupal => {
                "In Drupal, Configuration > Performance has \"Browser and proxy cache maximum \
                 age\"; pages with `max-age 0` of their own, such as forms, stay out."
            }
            Self::MediaWiki => {
                "In MediaWiki's LocalSettings.php, `$wgUseCdn = true` and `$wgCdnMaxAge` have \
                 pages kept."
            }
            Self::Magento => {
                "In Magento, Stores > Configuration > System > Full Page Cache is \"Varnish \
                 Caching\"; a block with `cacheable=\"false\"` in a layout keeps its pages out."
            }
        }
    }
}

/// Advice by the token of a record's reason for not storing, and by the field that is its evidence.
/// `None` for an unknown token, and for a rule that passed the request, which is explained with the
/// rule.
pub fn not_stored_advice(
    token: &str,
    evidence: &str,
    application: Option<Application>,
) -> Option<String> {
    let why = UnstoredReason::of(token)?;
    let advice = match why {
        UnstoredReason::Pass => return None,
        UnstoredReason::Rule(reason) => return Some(of_rule(reason, evidence, application)),
        UnstoredReason::Beside => FOR_SOME,
        UnstoredReason::Framing => {
            "Have the origin say how long its answers are, by `Content-Length` or in chunks. If it \
             never cuts any short: `[[origin]] store_close_delimited = true`."
        }
        UnstoredReason::Store(StoreRefusal::TooLarge) => "A higher limit: `[limits] object_bytes`.",
        UnstoredReason::Store(StoreRefusal::NoRoom) => "More memory: `[memory] size`.",
        UnstoredReason::Store(StoreRefusal::Invalidated) => "Nothing: the next answer is stored.",
        UnstoredReason::Store(StoreRefusal::Unwanted) => {
            "Mend the script: the application's log has its error."
        }
        UnstoredReason::Cut => "Mend the origin: it broke off, and its log may say why.",
        UnstoredReason::NoGzip => "Mend the origin: what it calls gzip is none.",
        UnstoredReason::File => "Nothing: files need no cache in front of them.",
        UnstoredReason::Failed => "Mend the origin: the error is named with the request.",
        UnstoredReason::Uncacheable => {
            "Change the program: it sets `beresp.uncacheable`, or returns `pass`."
        }
        UnstoredReason::NoLifetime => {
            "Have the origin name a lifetime, or the program: `set beresp.ttl = 1m;`."
        }
    };
    Some(advice.to_owned())
}

fn of_rule(reason: NotStored, evidence: &str, application: Option<Application>) -> String {
    let is_php = evidence.contains(PHP_EXPIRES);
    let forbidden = matches!(reason, NotStored::NoStore | NotStored::Private);
    if is_php && (forbidden || reason == NotStored::NoValidator) {
        let cookie = names_of(evidence).contains(&"PHPSESSID");
        let how = match cookie {
            true => {
                "If the page is the same for all: `header(\"CDN-Cache-Control: max-age=300\")` and \
                 `[site.cache] drop_set_cookie = true` together; one alone is not enough."
            }
            false => FOR_THIS_CACHE,
        };
        return format!("{PHP_SESSION}{how}");
    }
    let settings = application.map(Application::lifetimes);
    match reason {
        NotStored::NoStore | NotStored::Private | NotStored::NoValidator => match settings {
            Some(settings) => format!("{settings} {FOR_THIS_CACHE}"),
            None => format!("The application decides. {FOR_THIS_CACHE}"),
        },
        NotStored::NoLifetime => {
            let here =
                "A lifetime for answers that name none: `[site.cache] ttl = { 200 = \"1m\" }`.";
            match settings.filter(|_| application != Some(Application::WordPress)) {
                Some(settings) => format!("{settings} {here}"),
                None => here.to_owned(),
            }
        }
        NotStored::SetCookie => set_cookie(evidence, application),
        NotStored::OldDate => {
            "Set the origin's clock (NTP): compare `date -u` there and here. Where it cannot be set, \
             have the origin, or a proxy before it, send no `Date`, or a longer `max-age`."
                .to_owned()
        }
        NotStored::OldAge => {
            "Ask the origin itself and not the cache before it, or give that cache a shorter time \
             than `s-maxage` gives this one."
                .to_owned()
        }
        NotStored::Method => {
            "Measure with a GET, whose answer can be stored: `curl -so /dev/null -D - URL`.".to_owned()
        }
        NotStored::Personal => FOR_SOME.to_owned(),
        NotStored::Authorization => {
            "Nothing, if the answer is for this user. If it is for all, have the application say \
             so: `Cache-Control: public`."
                .to_owned()
        }
        NotStored::VaryAny => {
            "Have the application leave `Vary` out, or name fields that have few values.".to_owned()
        }
        reason => of_setting(reason).to_owned(),
    }
}

/// Advice on a reason that a setting or one request is about.
fn of_setting(reason: NotStored) -> &'static str {
    match reason {
        NotStored::RequestNoStore => {
            "Nothing, or let no client's Cache-Control count: `[site.cache] request_directives = \
             \"ignore\"`."
        }
        NotStored::ContentType => {
            "Have the application answer 404 to files that are not there; `[site.cache] match_type \
             = false` stores its pages under their names."
        }
        NotStored::OtherKey => {
            "Nothing, where a cookie of the key is set: the visitor's next request has the page's \
             key. A field that asks for another form (`RSC`) belongs into `Vary` or `key_headers`."
        }
        NotStored::ResponseRule => {
            "Nothing, if that is meant. Otherwise narrow the rule, or add one behind it with `store \
             = true`."
        }
        NotStored::Differs => {
            "See `larder status`: it names what makes the difference. Bypass the cache by that \
             cookie (`bypass.cookies`), put it into the key (`cookies.key`), or have the origin \
             say `Vary`."
        }
        NotStored::Program => "Nothing, if its `vcl` is meant so: vcl_backend_response decides.",
        NotStored::Tags => "Higher limits: `[limits] tags`, `tag_bytes`.",
        _ => NEVER,
    }
}

/// The names of the cookies in the evidence.
fn names_of(evidence: &str) -> Vec<&str> {
    let names = evidence.rsplit_once("Set-Cookie: ").map_or("", |(_, names)| names);
    names.split(", ").filter(|name| !name.is_empty()).collect()
}

fn set_cookie(evidence: &str, application: Option<Application>) -> String {
    let names = names_of(evidence);
    let sessions = || SESSIONS.iter().find(|(name, _)| names.contains(name));
    if let Some((name, begins)) = sessions() {
        return format!(
            "`{name}` is a session, begun by {begins}: begin it only where it is needed, not for \
             every visitor. If the page is the same for all, have it say so \
             (`CDN-Cache-Control: max-age=300`), with `[site.cache] drop_set_cookie = true`."
        );
    }
    let first = names.first().copied().unwrap_or("the cookie");
    let place = match application {
        Some(Application::WordPress) => format!(" (`grep -r {first} wp-content/plugins`)"),
        _ => String::new(),
    };
    format!(
        "Find what sets `{first}`{place}, and have it set by script, or only where it is needed. \
         `[site.cache] drop_set_cookie = true` removes it from what the application marks as for \
         all."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_stored_has_advice_but_for_what_a_rule_passes() {
        let rules = NotStored::ALL.iter().map(|rule| rule.as_str());
        let all = rules.chain(crate::unstored_reason::OWN.iter().map(|why| why.as_str()));
        for token in all {
            for application in [None, Application::of("wordpress"), Application::of("drupal")] {
                let advice = not_stored_advice(token, "", application);
                assert_eq!(advice.is_none(), token == "pass", "{token}: {advice:?}");
                assert!(advice.is_none_or(|text| text.ends_with('.')), "{token}");
            }
        }
        assert_eq!(not_stored_advice("whatever", "", None), None);
    }

    #[test]
    fn applications_settings_are_named_where_they_are_known() {
        let of = |token, preset| {
            not_stored_advice(token, "Set-Cookie: sid, b", Application::of(preset)).expect("advice")
        };
        assert!(of("set-cookie", "wordpress").contains("`sid` (`grep -r sid wp-content/plugins`)"));
        assert!(!of("set-cookie", "drupal").contains("grep"));
        assert!(of("no-store", "mediawiki").contains("`$wgCdnMaxAge`"));
        assert!(of("private", "magento").contains("Full Page Cache"));
        assert!(of("no-lifetime", "drupal").contains("maximum age"));
        assert!(of("no-lifetime", "wordpress").starts_with("A lifetime for answers"));
        assert!(of("no-validator", "microcache").starts_with("The application decides. If the"));
        assert!(!of("too-large", "drupal").contains("Drupal"));
    }

    #[test]
    fn a_session_of_php_is_no_plugins_doing() {
        let fields = "Cache-Control: no-store, no-cache, must-revalidate, \
                      Expires: Thu, 19 Nov 1981 08:52:00 GMT";
        let wordpress = Application::of("wordpress");
        let of =
            |token, evidence: &str| not_stored_advice(token, evidence, wordpress).expect("advice");
        let advice = of("no-store", &format!("{fields}, Set-Cookie: PHPSESSID"));
        assert!(advice.starts_with("A PHP session was begun"), "{advice}");
        assert!(!advice.contains("nocache_headers") && advice.contains("together"), "{advice}");
        let advice = of("private", fields);
        assert!(advice.contains("`session_start()`") && !advice.contains("together"), "{advice}");
        let advice = of("set-cookie", "Set-Cookie: PHPSESSID, b");
        assert!(advice.starts_with("`PHPSESSID` is a session"), "{advice}");
        let own = "Cache-Control: no-cache, no-store, Expires: Wed, 11 Jan 1984 05:00:00 GMT";
        assert!(of("no-store", own).contains("`nocache_headers()`"));
    }
}
