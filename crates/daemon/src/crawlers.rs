//! Crawlers: the list of crawlers and their address lists, read with the configuration, and the
//! lookups by which search engines are verified.
//!
//! Lists are read before anything changes: an unusable one is an error of the configuration, at a
//! start, a reload and a check.

use std::sync::Arc;

use agents::{AddressList, CrawlerList, Crawlers};
use config::{Config, CrawlersConfig, Diagnostic, PlacedPath};
use flow::SharedCrawlers;
use origin::AddressNames;
use policy::SiteRules;

use crate::keeper;

/// The list of crawlers, if a site uses it.
#[derive(Debug, Default)]
pub(crate) struct CrawlerLists(Option<Arc<Crawlers>>);

impl CrawlerLists {
    /// Reads the lists of `config`; unusable ones are reported in `found`.
    pub(crate) fn read(config: &Config, found: &mut Vec<Diagnostic>) -> Self {
        let CrawlersConfig { file, built_in, verify, dns } = &config.crawlers;
        let most = config.limits.crawler_list_bytes;
        let mut list = CrawlerList::default();
        if let Some(file) = file {
            let own = text(file, most)
                .and_then(|text| CrawlerList::parse(&text).map_err(|error| error.to_string()));
            match own {
                Ok(own) => list = own,
                Err(why) => found.push(file.error(why)),
            }
        }
        if *built_in {
            let place = file.as_ref();
            match list.clone().before(CrawlerList::built_in()) {
                Ok(both) => list = both,
                Err(_) => found.extend(place.map(|file| file.error("the list is too long"))),
            }
        }
        let mut addresses = Vec::new();
        for (name, file) in verify {
            let read = text(file, most)
                .and_then(|text| AddressList::parse(&text).map_err(|error| error.to_string()));
            match read {
                Ok(_) if !list.has(name) => {
                    found.push(file.error(format!("no crawler of the list is called `{name}`")));
                }
                Ok(read) => addresses.push((name.clone(), read)),
                Err(why) => found.push(file.error(why)),
            }
        }
        if !config.sites.iter().any(|site| site.rules.ask_for_class()) {
            return Self(None);
        }
        match Crawlers::new(list, addresses, *dns) {
            Ok(crawlers) => Self(Some(Arc::new(crawlers))),
            Err(error) => {
                let place = config.crawlers.file.as_ref();
                found.extend(place.map(|file| file.error(format!("the list: {error}"))));
                Self(None)
            }
        }
    }

    /// The list for a site with `rules`, whose robots.txt is made from it; `None` if the site uses
    /// no classes.
    pub(crate) fn put(&self, rules: &mut SiteRules) -> Option<Arc<Crawlers>> {
        let crawlers = self.0.as_ref().filter(|_| rules.ask_for_class())?;
        if rules.crawlers.robots {
            let own = &rules.crawlers;
            let text = crawlers.robots(&own.kept_out(), &own.robots_lines);
            rules.answer_robots(text);
        }
        Some(Arc::clone(crawlers))
    }
}

fn text(file: &PlacedPath, most: u64) -> Result<String, String> {
    let text = keeper::read_bounded(&file.path, "crawler_list_bytes", most)?;
    String::from_utf8(text).map_err(|_| "the file is no text in UTF-8".to_owned())
}

/// Looks up clients that claim to be a search engine, until it is dropped.
pub(crate) async fn run(crawlers: Arc<SharedCrawlers>) {
    // A slow name server must not hold up all others.
    let one = || look_up(&crawlers);
    tokio::join!(one(), one(), one(), one());
}

async fn look_up(crawlers: &SharedCrawlers) {
    let mut names = AddressNames::default();
    loop {
        let claim = crawlers.verification.next().await;
        let found = names.is_below(claim.address, &claim.domains).await;
        let now_ms = rt::now().mono_ms;
        match found {
            Ok(is_confirmed) => {
                if !is_confirmed {
                    let (address, name) = (claim.address, &claim.name);
                    base::tell!(Info, "larder: {address} claims to be {name}, and is not");
                }
                crawlers.verification.note(&claim, Some(is_confirmed), now_ms);
            }
            Err(_) => crawlers.verification.note(&claim, None, now_ms),
        }
    }
}
