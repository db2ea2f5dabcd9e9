//! The API of the store: listing stored objects and invalidating them.

use std::sync::Arc;

use admin::{AdminRequest, AdminResponse};
use ban::Expression;
use base::Counter;
use flow::invalidate::{
    InvalidationError, InvalidationWait, Level, PurgeableSites, ResponseSelector,
};
use flow::purge::PurgeContext;
use flow::{ConnectionPeer, LiveConfiguration, Site};
use http::StatusCode;
use message::Request;
use serde::Deserialize;
use serde_json::{Value, json};

use super::said;
use crate::state::Daemon;
use crate::url_request;

/// Milliseconds that a response waits for the count of hit objects, by default and at most.
const COUNT_MS: u64 = 5_000;
const COUNT_MS_MAX: u64 = 60_000;
/// Objects listed by default.
const OBJECTS: usize = 100;
/// URLs of one request.
const URLS_MAX: usize = 1_000;

/// Status and reason of a refused request.
pub(super) type ApiRefusal = (StatusCode, String);

fn unprocessable(why: impl Into<String>) -> ApiRefusal {
    (StatusCode::UNPROCESSABLE_ENTITY, why.into())
}

/// The refusal for an invalidation that the journal rejected.
fn refused(why: InvalidationError) -> ApiRefusal {
    (StatusCode::SERVICE_UNAVAILABLE, why.to_string())
}

/// One value, or a list.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    Many(Vec<String>),
}

impl OneOrMore {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::Many(many) => many,
        }
    }
}

/// The body of a purge request.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PurgeBody {
    #[serde(deserialize_with = "said")]
    url: Option<OneOrMore>,
    #[serde(deserialize_with = "said")]
    prefix: Option<String>,
    #[serde(deserialize_with = "said")]
    host: Option<String>,
    #[serde(deserialize_with = "said")]
    tags: Option<OneOrMore>,
    #[serde(deserialize_with = "said")]
    ban: Option<String>,
    all: bool,
    soft: bool,
    #[serde(deserialize_with = "said")]
    wait_ms: Option<u64>,
    #[serde(deserialize_with = "said")]
    wait: Option<String>,
}

/// The objects that a purge selects.
enum ObjectSelection {
    Urls(Vec<String>),
    Many(ResponseSelector),
}

impl PurgeBody {
    /// Milliseconds that the response may wait for its count.
    fn wait_ms(&self) -> Result<u64, ApiRefusal> {
        match self.wait_ms.unwrap_or(COUNT_MS) {
            ms @ 0..=COUNT_MS_MAX => Ok(ms),
            _ => Err(unprocessable(format!("`wait_ms` is at most {COUNT_MS_MAX}"))),
        }
    }

    /// The consistency level that the response waits for.
    fn level(&self) -> Result<Option<Level>, ApiRefusal> {
        let Some(word) = &self.wait else { return Ok(None) };
        let bad = || unprocessable("`wait` is `local`, `quorum` or `all`");
        Level::named(word).map(Some).ok_or_else(bad)
    }

    fn selection(self) -> Result<ObjectSelection, ApiRefusal> {
        let bad = |why: &str| Err((StatusCode::BAD_REQUEST, why.to_owned()));
        let tags = self.tags.map(OneOrMore::into_vec);
        let said = [
            self.url.is_some(),
            self.prefix.is_some(),
            self.host.is_some() && tags.is_none(),
            tags.is_some(),
            self.ban.is_some(),
            self.all,
        ];
        if said.into_iter().filter(|said| *said).count() != 1 {
            return bad("say one thing: `url`, `prefix`, `host`, `tags`, `ban` or `all`; \
                        `tags` may be of one `host`");
        }
        if let Some(urls) = self.url.map(OneOrMore::into_vec) {
            if urls.is_empty() || urls.len() > URLS_MAX {
                return bad("`url` is one URL, or a list of up to 1000");
            }
            return Ok(ObjectSelection::Urls(urls));
        }
        if let Some(ban) = self.ban {
            return described(&ban).map(ObjectSelection::Many);
        }
        let what = under(self.host.as_deref(), self.prefix.as_deref())?;
        Ok(ObjectSelection::Many(match tags {
            Some(tags) => tagged(what, tags)?,
            None => what,
        }))
    }
}

fn tagged(what: ResponseSelector, tags: Vec<String>) -> Result<ResponseSelector, ApiRefusal> {
    let good = |tag: &String| !tag.is_empty() && !tag.contains([' ', ',', '\t', '\r', '\n']);
    if tags.is_empty() || !tags.iter().all(good) {
        return Err(unprocessable("`tags` are surrogate keys, each a word without comma or space"));
    }
    Ok(what.tagged(tags.into_iter().map(String::into_bytes).collect()))
}

/// The objects that a ban expression matches.
fn described(text: &str) -> Result<ResponseSelector, ApiRefusal> {
    let expression = Expression::parse(text).map_err(|error| {
        unprocessable(format!(
            "{error}; such as: req.http.host == example.org && req.url ~ ^/shop/"
        ))
    })?;
    ResponseSelector::of_expression(expression).map_err(unprocessable)
}

/// The objects of a host whose URL has this prefix; all objects without either.
fn under(host: Option<&str>, prefix: Option<&str>) -> Result<ResponseSelector, ApiRefusal> {
    let named = host.map(|host| of_url(&format!("http://{host}/"))).transpose()?;
    let request = match prefix {
        Some(prefix) if prefix.starts_with('/') => {
            let path = of_url(&format!("http://localhost{prefix}"))?;
            let (host, target) = (named.map(|request| request.host), path.target);
            return ResponseSelector::beginning(host.as_deref(), Some(&target))
                .map_err(unprocessable);
        }
        Some(prefix) => Some(of_url(prefix)?),
        None => named,
    };
    let Some(request) = request else { return Ok(ResponseSelector::Everything) };
    ResponseSelector::beginning(Some(&request.host), Some(&request.target)).map_err(unprocessable)
}

/// The request of a client for a URL, parsed as a client's would be.
pub(super) fn of_url(url: &str) -> Result<Request, ApiRefusal> {
    url_request::parse(url).map_err(unprocessable)
}

impl Daemon {
    /// Invalidates the objects that the body selects.
    pub(super) async fn purge(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let wanted: PurgeBody = super::body(asked.body)?;
        let patience = InvalidationWait { count_ms: wanted.wait_ms()?, level: wanted.level()? };
        let soft = wanted.soft;
        let now = rt::now();
        let outcome = match wanted.selection()? {
            ObjectSelection::Many(what) => {
                self.shared.invalidator.purge(what, soft, now, patience).await.map_err(refused)?
            }
            ObjectSelection::Urls(urls) => {
                let live = self.shared.live();
                // All URLs are parsed before any is purged.
                let mut pages = Vec::with_capacity(urls.len());
                for url in &urls {
                    let request = of_url(url)?;
                    pages.push((site_of(&live, &request, url)?, request));
                }
                let batch = pages.iter().map(|(site, request)| {
                    let client = ConnectionPeer::Local;
                    let page = PurgeContext { live: &live, site, request, client, now };
                    self.shared.invalidator.invalidation_of(&page, &request.target, soft)
                });
                let done = self.shared.invalidator.invalidate(Some(&live), batch, now, patience);
                done.await.map_err(refused)?
            }
        };
        let counts = self.admin_counts.lock();
        counts.inc(Counter::Purges);
        counts.add(Counter::Invalidations, outcome.objects);
        Ok(AdminResponse::json(&json!({ "purged": outcome.objects, "pending": outcome.pending })))
    }

    /// Lists the stored objects that the parameters select.
    pub(super) async fn objects(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let get = |name| asked.parameter(name);
        let ways = [get("url"), get("prefix"), get("ban")];
        let narrowed = get("host").is_some() || get("tag").is_some();
        let said = ways.iter().flatten().count();
        let with_prefix = get("prefix").is_some() && get("host").is_none();
        if said > 1 || (said == 1 && narrowed && !with_prefix) {
            let why =
                "`url` and `ban` stand alone, `prefix` goes with `tag`, and `host` with `tag`";
            return Err((StatusCode::BAD_REQUEST, why.to_owned()));
        }
        let mut what = match (get("url"), get("ban")) {
            (Some(url), _) => {
                let request = of_url(url)?;
                ResponseSelector::at(&request.host, &request.target).map_err(unprocessable)?
            }
            (None, Some(ban)) => described(ban)?,
            (None, None) => under(get("host"), get("prefix"))?,
        };
        if let Some(tag) = get("tag") {
            what = tagged(what, vec![tag.to_owned()])?;
        }
        let live = self.shared.live();
        let scope = match get("site") {
            Some(name) => {
                let site = live.sites.listed.iter().find(|site| *site.name == *name);
                let missing = || (StatusCode::NOT_FOUND, format!("there is no site `{name}`"));
                Some(PurgeableSites::of(&live, [site.ok_or_else(missing)?.number]))
            }
            None => None,
        };
        let most = get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(OBJECTS);
        let listing = self.shared.invalidator.listing(what, scope, rt::now().mono_ms, most).await;
        let objects: Vec<Value> = listing
            .seen
            .iter()
            .map(|seen| {
                json!({
                    "url": seen.url,
                    "vary": seen.vary,
                    "status": seen.status,
                    "age_ms": seen.age_ms,
                    "ttl_ms": seen.lifetime_ms,
                    "fresh_ms": seen.fresh_ms,
                    "stale_ms": seen.stale_ms,
                    "grace_ms": seen.grace_ms,
                    "stale_if_error_ms": seen.stale_if_error_ms,
                    "bytes": seen.length,
                    "hits": seen.hits,
                    "tags": seen.tags,
                })
            })
            .collect();
        Ok(AdminResponse::json(&json!({ "objects": objects, "more": listing.more })))
    }

    /// Lists the bans in force.
    pub(super) fn bans(&self) -> AdminResponse {
        let now_ms = rt::now().mono_ms;
        let bans: Vec<Value> = self
            .shared
            .cache
            .bans()
            .iter()
            .map(|listed| {
                let ban = &listed.ban;
                json!({
                    "number": ban.number(),
                    "text": ban.text(),
                    "soft": ban.is_soft(),
                    "age_ms": now_ms.saturating_sub(ban.made_ms()),
                    "objects": ban.objects(),
                    "over": listed.over,
                })
            })
            .collect();
        AdminResponse::json(&json!({ "bans": bans }))
    }
}

/// The site of a URL's host.
fn site_of(
    live: &Arc<LiveConfiguration>,
    request: &Request,
    url: &str,
) -> Result<Arc<Site>, ApiRefusal> {
    let found = live.sites.by_host.find(&request.host).map(Arc::clone);
    found.ok_or_else(|| (StatusCode::NOT_FOUND, format!("no site has the host of `{url}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_says_one_thing() {
        let meant = |body: Value| {
            let wanted: PurgeBody = serde_json::from_value(body).expect("the shape");
            wanted
                .wait_ms()
                .and_then(|_| wanted.selection())
                .map(|_| ())
                .map_err(|(status, _)| status.as_u16())
        };
        for good in [
            json!({ "url": "http://a/" }),
            json!({ "url": ["http://a/", "http://b/"], "soft": true }),
            json!({ "prefix": "/a" }),
            json!({ "prefix": "https://a/b" }),
            json!({ "host": "a.example" }),
            json!({ "tags": "a" }),
            json!({ "tags": ["a", "b"], "host": "a.example" }),
            json!({ "ban": "obj.status == 404" }),
            json!({ "all": true }),
            json!({ "all": true, "wait_ms": 0 }),
        ] {
            assert_eq!(meant(good.clone()), Ok(()), "{good}");
        }
        for (bad, status) in [
            (json!({}), 400),
            (json!({ "all": false }), 400),
            (json!({ "url": [] }), 400),
            (json!({ "url": "http://a/", "host": "a" }), 400),
            (json!({ "tags": "a", "all": true }), 400),
            (json!({ "tags": [] }), 422),
            (json!({ "tags": "a b" }), 422),
            (json!({ "ban": "req.url" }), 422),
            (json!({ "ban": "obj.http.xkey ~ a" }), 422),
            (json!({ "host": "a b" }), 422),
            (json!({ "prefix": "a" }), 422),
            (json!({ "all": true, "wait_ms": 60_001 }), 422),
        ] {
            assert_eq!(meant(bad.clone()), Err(status), "{bad}");
        }
        for body in [json!({ "urls": "http://a/" }), json!({ "ban": null, "all": true })] {
            assert!(serde_json::from_value::<PurgeBody>(body.clone()).is_err(), "{body}");
        }
    }
}
