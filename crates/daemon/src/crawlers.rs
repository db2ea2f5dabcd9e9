//! Crawlers: the list of crawlers and their address lists, read with the configuration, and the
//! lookups by which search engines are verified.
//!
//! Lists are read before anything changes: an unusable one is an error of the configuration, at a
//! start, a reload and a check.

use std::sync::Arc;

use agents::{AddressList, CrawlerList, Crawlers, KeyDirectory};
use base::Limits;
use config::{Config, ConfigLocation, CrawlersConfig, Diagnostic, PlacedPath};
use flow::SharedCrawlers;
use message::HttpsOrigin;
use origin::AddressNames;
use policy::SiteRules;
use tls::Upstream;

use crate::keeper;
use crate::key_directories::DirectoryPlan;

/// The reading of the trust in servers, by the file of their authorities and its setting.
pub(crate) type TrustReader<'a> =
    &'a dyn Fn(Option<&PlacedPath>, &ConfigLocation) -> Result<Upstream, Box<Diagnostic>>;

/// The list of crawlers, if a site uses it.
#[derive(Debug, Default)]
pub(crate) struct CrawlerLists {
    list: Option<Arc<Crawlers>>,
    /// The agents whose keys are fetched.
    fetched: Vec<(HttpsOrigin, Upstream)>,
}

impl CrawlerLists {
    /// Reads the lists of `config`; unusable ones are reported in `found`.
    pub(crate) fn read(
        config: &Config,
        trust: TrustReader<'_>,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let CrawlersConfig { file, built_in, verify, dns, .. } = &config.crawlers;
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
        let signers = Signers::read(config, &list, trust, found);
        if !config.sites.iter().any(|site| site.rules.ask_for_class()) {
            return Self::default();
        }
        match Crawlers::new(list, addresses, *dns) {
            Ok(mut crawlers) => {
                for (name, agent, keys) in signers.trusted {
                    crawlers.trust(&name, agent, keys);
                }
                Self { list: Some(Arc::new(crawlers)), fetched: signers.fetched }
            }
            Err(error) => {
                let place = config.crawlers.file.as_ref();
                found.extend(place.map(|file| file.error(format!("the list: {error}"))));
                Self::default()
            }
        }
    }

    /// The key directories to fetch.
    pub(crate) fn directories(&self, limits: &Limits) -> DirectoryPlan {
        DirectoryPlan::new(&self.fetched, limits)
    }

    /// The list for a site with `rules`, whose robots.txt is made from it; `None` if the site uses
    /// no classes.
    pub(crate) fn put(&self, rules: &mut SiteRules) -> Option<Arc<Crawlers>> {
        let crawlers = self.list.as_ref().filter(|_| rules.ask_for_class())?;
        if rules.crawlers.robots {
            let own = &rules.crawlers;
            let text = crawlers.robots(&own.kept_out(), &own.robots_lines);
            rules.answer_robots(text);
        }
        Some(Arc::clone(crawlers))
    }
}

/// The agents that sign their requests.
#[derive(Default)]
struct Signers {
    /// Each with its name in the list, and its keys if they are in a file.
    trusted: Vec<(String, HttpsOrigin, Option<KeyDirectory>)>,
    /// Those whose keys are fetched.
    fetched: Vec<(HttpsOrigin, Upstream)>,
}

impl Signers {
    fn read(
        config: &Config,
        list: &CrawlerList,
        trust: TrustReader<'_>,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut signers = Self::default();
        for own in &config.crawlers.signatures {
            if !list.has(&own.name) {
                let message = format!("no crawler of the list is called `{}`", own.name);
                found.push(own.place.error(message));
                continue;
            }
            let keys = match &own.keys {
                Some(file) => match keys(file, config.limits.key_directory_bytes) {
                    Ok(keys) => Some(keys),
                    Err(why) => {
                        found.push(file.error(why));
                        continue;
                    }
                },
                None => match trust(own.ca.as_ref(), &own.place) {
                    Ok(trust) => {
                        signers.fetched.push((own.agent.clone(), trust));
                        None
                    }
                    Err(problem) => {
                        found.push(*problem);
                        continue;
                    }
                },
            };
            signers.trusted.push((own.name.clone(), own.agent.clone(), keys));
        }
        signers
    }
}

fn keys(file: &PlacedPath, most: u64) -> Result<KeyDirectory, String> {
    let bytes = keeper::read_bounded(&file.path, "key_directory_bytes", most)?;
    KeyDirectory::parse(&bytes).map_err(|error| error.to_string())
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
