//! Advice on what is not stored: the setting, here or in the application, that would change it, or
//! that nothing should. Advice on other steps stands where they are told.

use cache::NotKept;
use message::store::NotStored;

use crate::why::Why;

/// An application whose own settings are known.
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

/// Advice that holds for whatever the origin forbids, or gives no time to.
const FOR_THIS_CACHE: &str = "If the page is the same for all, `CDN-Cache-Control: max-age=300` \
    speaks to this cache alone, and goes before `Cache-Control`.";

const FOR_SOME: &str = "`[site.cookies] strip` removes cookies that only scripts read, `key` keeps \
    a page for each value of one; `Cache-Control: public` says that a page is for all. Nothing, if \
    it is not.";

const NEVER: &str = "Nothing: such an answer is never kept.";

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

    /// Its settings of how long pages may be kept.
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

/// Advice by the token of a record that says why its answer was not stored, and by the field that
/// says so; `None` for a token that is not known, and for what a rule has passed, which is told of
/// with the rule.
pub fn not_stored_advice(
    token: &str,
    evidence: &str,
    application: Option<Application>,
) -> Option<String> {
    let why = Why::of(token)?;
    let advice = match why {
        Why::Pass => return None,
        Why::Rule(reason) => return Some(of_rule(reason, evidence, application)),
        Why::Beside => FOR_SOME,
        Why::Framing => {
            "Have the origin say how long its answers are, by `Content-Length` or in chunks. If it \
             never cuts any short: `[[origin]] store_close_delimited = true`."
        }
        Why::Store(NotKept::TooLarge) => "A higher limit: `[limits] object_bytes`.",
        Why::Store(NotKept::NoRoom) => "More memory: `[memory] size`.",
        Why::Store(NotKept::Invalidated) => "Nothing: the next answer is stored.",
        Why::Store(NotKept::Unwanted) => "Mend the script: the application's log has its error.",
        Why::Cut => "Mend the origin: it broke off, and its log may say why.",
        Why::NoGzip => "Mend the origin: what it calls gzip is none.",
        Why::File => "Nothing: files need no cache in front of them.",
        Why::Failed => "Mend the origin: the error is named with the request.",
        Why::Uncacheable => "Change the program: it sets `beresp.uncacheable`, or returns `pass`.",
        Why::NoLifetime => {
            "Have the origin name a lifetime, or the program: `set beresp.ttl = 1m;`."
        }
    };
    Some(advice.to_owned())
}

fn of_rule(reason: NotStored, evidence: &str, application: Option<Application>) -> String {
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
        NotStored::Personal => FOR_SOME.to_owned(),
        NotStored::Authorization => {
            "Nothing, if the answer is for this user. If it is for all, have the application say \
             so: `Cache-Control: public`."
                .to_owned()
        }
        NotStored::VaryAny => {
            "Have the application leave `Vary` out, or name fields that have few values.".to_owned()
        }
        NotStored::RequestNoStore => {
            "Nothing, or let no client's Cache-Control count: `[site.cache] request_directives = \
             \"ignore\"`."
                .to_owned()
        }
        NotStored::ContentType => {
            "Have the application answer 404 to files that are not there; `[site.cache] match_type \
             = false` stores its pages under their names."
                .to_owned()
        }
        NotStored::OtherKey => {
            "Nothing: from its next request on the visitor has the key that the page belongs to."
                .to_owned()
        }
        NotStored::Tags => "Higher limits: `[limits] tags`, `tag_bytes`.".to_owned(),
        _ => NEVER.to_owned(),
    }
}

/// `evidence` is `Set-Cookie: ` and the names.
fn set_cookie(evidence: &str, application: Option<Application>) -> String {
    let names = evidence.strip_prefix("Set-Cookie: ").unwrap_or_default();
    let first = names.split(", ").next().filter(|name| !name.is_empty()).unwrap_or("the cookie");
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
        let all = rules.chain(crate::why::OWN.iter().map(|why| why.as_str()));
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
}
