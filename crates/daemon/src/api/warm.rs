//! The API of warming: orders to warm pages, and the progress.

use std::sync::Arc;

use admin::{AdminRequest, AdminResponse};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::said;
use super::store::ApiRefusal;
use crate::live::campaign_row;
use crate::state::Daemon;
use crate::warm_sources::{self, PageReader};

/// Pages and sitemaps of one order.
const PAGES_MAX: usize = 1_000;
const SITEMAPS_MAX: usize = 100;
/// The longest title.
const TITLE_CHARS_MAX: usize = 200;

/// The body of an order to warm pages.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct WarmBody {
    #[serde(deserialize_with = "said")]
    title: Option<String>,
    pages: Vec<PageBody>,
    sitemaps: Vec<String>,
    #[serde(deserialize_with = "said")]
    site: Option<String>,
    #[serde(deserialize_with = "said")]
    campaign: Option<u64>,
    more: bool,
    stop: bool,
}

/// A page of an order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageBody {
    url: String,
    #[serde(default)]
    visits: u64,
}

impl WarmBody {
    /// Checks what the order consists of.
    fn check(&self) -> Result<(), ApiRefusal> {
        let bad = |why: &str| Err((StatusCode::BAD_REQUEST, why.to_owned()));
        let is_empty = self.pages.is_empty() && self.sitemaps.is_empty() && self.site.is_none();
        if self.stop && !(is_empty && self.campaign.is_none()) {
            return bad("`stop` stops all campaigns, and goes with nothing else");
        }
        if !self.stop && is_empty && self.campaign.is_none() {
            return bad("say what to warm: `pages`, `sitemaps` or `site`");
        }
        if self.pages.len() > PAGES_MAX || self.sitemaps.len() > SITEMAPS_MAX {
            return bad("an order has up to 1000 `pages` and 100 `sitemaps`");
        }
        Ok(())
    }
}

impl Daemon {
    /// Warms what the body names.
    pub(super) fn warm(self: &Arc<Self>, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let wanted: WarmBody = super::body(asked.body)?;
        wanted.check()?;
        let (warmth, now_ms) = (&self.shared.warmth, rt::now().mono_ms);
        if wanted.stop {
            warmth.stop(now_ms);
            let none = || (StatusCode::NOT_FOUND, "nothing has been warmed".to_owned());
            let last = warmth.campaigns().pop().ok_or_else(none)?;
            return Ok(AdminResponse::json(&campaign_row(&last)));
        }
        let site = match &wanted.site {
            Some(name) => {
                let live = self.shared.live();
                let site = live.sites.listed.iter().find(|site| *site.name == **name).cloned();
                let none = || (StatusCode::NOT_FOUND, format!("there is no site `{name}`"));
                Some(site.ok_or_else(none)?)
            }
            None => None,
        };
        let campaign = match wanted.campaign {
            Some(number) => {
                let known = warmth.campaigns().into_iter().find(|own| own.number == number);
                let none = || (StatusCode::NOT_FOUND, format!("there is no campaign {number}"));
                known.ok_or_else(none)?
            }
            None => {
                let title = wanted.title.as_deref().unwrap_or("what an operator has ordered");
                warmth.begin(title.chars().take(TITLE_CHARS_MAX).collect::<String>(), now_ms)
            }
        };
        let mut pages = PageReader::new(self, &campaign, None);
        for PageBody { url, visits } in &wanted.pages {
            match pages.wish(url, *visits) {
                Ok(wish) => pages.push(wish),
                Err(why) => _ = campaign.note_fault(&why),
            }
        }
        pages.finish();
        if !wanted.sitemaps.is_empty() {
            warm_sources::read_sitemaps(self, &campaign, wanted.sitemaps);
        }
        if let Some(site) = site {
            warm_sources::read_own_sources(self, &campaign, &site);
        }
        if !wanted.more {
            campaign.close(rt::now().mono_ms);
        }
        Ok(AdminResponse::json(&campaign_row(&campaign)))
    }

    /// The progress of warming.
    pub(super) fn warming(&self) -> AdminResponse {
        AdminResponse::json(&warming(self))
    }
}

/// The state of warming.
fn warming(daemon: &Daemon) -> Value {
    let warmth = &daemon.shared.warmth;
    let campaigns: Vec<Value> = warmth.campaigns().iter().map(|own| campaign_row(own)).collect();
    let waiting: Vec<Value> = warmth
        .waiting()
        .iter()
        .map(|(site, urls)| json!({ "site": &**site, "urls": urls }))
        .collect();
    let origins: Vec<Value> = warmth
        .lanes(rt::now().mono_ms)
        .iter()
        .map(|lane| {
            json!({
                "origin": &*lane.origin,
                "running": lane.running,
                "window": lane.window,
                "median_ms": lane.median_us.map(|us| us as f64 / 1000.0),
                "rests": lane.rests,
            })
        })
        .collect();
    json!({ "campaigns": campaigns, "waiting": waiting, "origins": origins })
}
