//! Warm sources: the sitemaps and lists of sites, and their hot lists from before the start. Their
//! pages go to [`SharedWarmth`](flow::SharedWarmth), which has them fetched.
//!
//! A sitemap is asked for inside the daemon, of the site itself. Pages of other sites never count.

use std::collections::{HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::Limits;
use codec::{Coding, DecodeLimits, Decoder};
use flow::{Campaign, LiveConfiguration, Site, WarmUrl, WarmWish};
use sitemap::{Location, URL_BYTES_MAX};

use crate::hot_list_file::{self, SiteHotList};
use crate::state::Daemon;
use crate::{keeper, url_request};

/// The interval at which hot lists are saved, in case the process does not end by itself.
const SAVE_INTERVAL: Duration = Duration::from_secs(300);
/// Attempts to read a sitemap, and the pause between two: after a start of the machine the
/// application may come later.
const TRIES: u32 = 5;
const TRY_PAUSE: Duration = Duration::from_secs(5);
/// Pages that are added at once.
const BATCH: usize = 1_000;
/// The most bytes of a site's list.
const LIST_BYTES_MAX: u64 = 256 << 20;

/// Begins to warm what the configuration names, and what was hot before the start.
pub(crate) fn begin(daemon: &Arc<Daemon>) {
    let daemon = Arc::clone(daemon);
    rt::spawn(async move {
        warm_hot_lists(&daemon).await;
        let live = daemon.shared.live();
        let named = live.sites.listed.iter().filter(|site| has_sources(site));
        let mut begun: Vec<Arc<str>> = Vec::new();
        for site in named {
            // A site may be listed twice, with and without its certificate.
            if !begun.contains(&site.name) {
                begun.push(Arc::clone(&site.name));
                let title = format!("what {} names", site.name);
                let campaign = daemon.shared.warmth.begin(title, rt::now().mono_ms);
                read_own_sources(&daemon, &campaign, site);
                campaign.close(rt::now().mono_ms);
            }
        }
    });
}

fn has_sources(site: &Site) -> bool {
    !site.warmth.sitemaps.is_empty() || site.warmth.list.is_some()
}

/// Reads the sitemaps and the list of a site into a campaign, in the background.
pub(crate) fn read_own_sources(daemon: &Arc<Daemon>, campaign: &Arc<Campaign>, site: &Arc<Site>) {
    if !site.warmth.sitemaps.is_empty() {
        read_sitemaps(daemon, campaign, site.warmth.sitemaps.clone());
    }
    if let Some(file) = site.warmth.list.clone() {
        let (daemon, campaign) = (Arc::clone(daemon), Arc::clone(campaign));
        let name = Arc::clone(&site.name);
        campaign.open();
        rt::spawn(async move {
            let path = file.clone();
            let read = move || keeper::read_bounded(&path, "the size of lists", LIST_BYTES_MAX);
            match rt::run_blocking(read).await {
                Ok(bytes) => {
                    let to = Arc::clone(&campaign);
                    let read = move || read_list(&daemon, &to, name, &file, &bytes);
                    rt::run_blocking(read).await;
                }
                Err(why) => note_fault(&campaign, &why),
            }
            campaign.close(rt::now().mono_ms);
        });
    }
}

/// Reads the pages of a site's list into a campaign.
fn read_list(daemon: &Daemon, campaign: &Arc<Campaign>, site: Arc<str>, file: &Path, bytes: &[u8]) {
    let mut pages = PageReader::new(daemon, campaign, Some(site));
    for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if campaign.is_stopped() {
            break;
        }
        let line = line.trim_ascii();
        match std::str::from_utf8(line) {
            Ok("") => {}
            Ok(url) => pages.add(url, || format!("{}:{}", file.display(), at + 1)),
            Err(_) => {
                campaign.note_fault(&format!("{}:{}: not UTF-8", file.display(), at + 1));
            }
        }
    }
    pages.finish();
}

/// Reads sitemaps, and those that they name, into a campaign, in the background.
pub(crate) fn read_sitemaps(daemon: &Arc<Daemon>, campaign: &Arc<Campaign>, urls: Vec<String>) {
    let (daemon, campaign) = (Arc::clone(daemon), Arc::clone(campaign));
    campaign.open();
    rt::spawn(async move {
        let mut seen = HashSet::new();
        // Those that a sitemap names belong to its site.
        let of_any = |url| (url, None::<Arc<str>>);
        let mut queue: VecDeque<_> = urls.into_iter().map(of_any).collect();
        while let Some((url, owner)) = queue.pop_front() {
            let limits = daemon.shared.live().limits.clone();
            if campaign.is_stopped() {
                break;
            }
            if !seen.insert(url.clone()) {
                continue;
            }
            if seen.len() as u64 > limits.sitemaps {
                daemon.admin_counts.lock().limit(base::Limit::Sitemaps);
                campaign.note_fault(&format!("{url}: there are more than `sitemaps` of them"));
                break;
            }
            match fetch(&daemon, &campaign, &url, owner.as_ref(), &limits).await {
                Ok(Sitemap { site, xml }) => {
                    let (own, to) = (Arc::clone(&daemon), Arc::clone(&campaign));
                    let (of, most) = (Arc::clone(&site), limits.sitemap_bytes);
                    // One more, so that the limit is reported.
                    let room =
                        limits.sitemaps.saturating_sub((seen.len() + queue.len()) as u64) + 1;
                    let read = move || match unpacked(xml, most) {
                        Ok(xml) => read_sitemap(&own, &to, &of, &url, &xml, room),
                        Err(error) => {
                            if matches!(error, codec::Error::Limit(_)) {
                                own.admin_counts.lock().limit(base::Limit::SitemapBytes);
                            }
                            let why = "its gzip stream cannot be read";
                            note_fault(&to, &format!("{url}: {why}: {error}"));
                            Vec::new()
                        }
                    };
                    let named = rt::run_blocking(read).await;
                    queue.extend(named.into_iter().map(|url| (url, Some(Arc::clone(&site)))));
                }
                Err(why) => note_fault(&campaign, &format!("{url}: {why}")),
            }
        }
        campaign.close(rt::now().mono_ms);
    });
}

fn note_fault(campaign: &Campaign, fault: &str) {
    let fault = campaign.note_fault(fault);
    base::tell!(Warn, "larder: warming: {fault}");
}

/// A sitemap that was read.
struct Sitemap {
    /// The site that it belongs to.
    site: Arc<str>,
    /// It may be in gzip.
    xml: Vec<u8>,
}

/// Gets a sitemap from its site, which must be that of `owner`.
///
/// # Errors
/// The reason why it cannot be had.
async fn fetch(
    daemon: &Daemon,
    campaign: &Campaign,
    url: &str,
    owner: Option<&Arc<str>>,
    limits: &Limits,
) -> Result<Sitemap, String> {
    let request = url_request::parse(url)?;
    let site = site_of(&daemon.shared.live(), &request.host).ok_or("no site has this host")?;
    if owner.is_some_and(|owner| *owner != site) {
        return Err("it is on another site than the sitemap that names it".to_owned());
    }
    let url = WarmUrl::of_request(&request).ok_or("the URL is too long")?;
    let most = limits.sitemap_bytes;
    let mut read = daemon.shared.warmth.read(url.clone(), most).await;
    for _ in 1..TRIES {
        if read.is_ok() || campaign.is_stopped() {
            break;
        }
        rt::time::sleep(TRY_PAUSE).await;
        read = daemon.shared.warmth.read(url.clone(), most).await;
    }
    Ok(Sitemap { site, xml: read? })
}

/// The site of a host, by name.
fn site_of(live: &LiveConfiguration, host: &[u8]) -> Option<Arc<str>> {
    live.sites.by_host.find(host).map(|site| Arc::clone(&site.name))
}

/// Reads a sitemap's pages into a campaign, and returns the sitemaps that it names, up to `most`.
fn read_sitemap(
    daemon: &Arc<Daemon>,
    campaign: &Arc<Campaign>,
    site: &Arc<str>,
    url: &str,
    xml: &[u8],
    most: u64,
) -> Vec<String> {
    let mut pages = PageReader::new(daemon, campaign, Some(Arc::clone(site)));
    let mut sitemaps = Vec::new();
    let read = sitemap::read(xml, &mut |line, location| match location {
        Location::Page(page) if page.len() <= URL_BYTES_MAX => {
            pages.add(page, || format!("{url}: line {line}"));
        }
        Location::Sitemap(more) if more.len() <= URL_BYTES_MAX => {
            if (sitemaps.len() as u64) < most {
                sitemaps.push(more.to_owned());
            }
        }
        Location::Page(_) | Location::Sitemap(_) => {
            campaign.note_fault(&format!("{url}: line {line}: a URL is too long"));
        }
    });
    if let Err(error) = read {
        note_fault(campaign, &format!("{url}: {error}"));
    }
    pages.finish();
    sitemaps
}

/// Bytes without gzip, if they have it.
///
/// # Errors
/// They are damaged, or too many.
fn unpacked(bytes: Vec<u8>, most: u64) -> Result<Vec<u8>, codec::Error> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    if !bytes.starts_with(GZIP) {
        return Ok(bytes);
    }
    // Sitemaps repeat themselves, so that a high ratio is no sign of an attack.
    let limits = DecodeLimits { size_bytes: most, ratio: u64::MAX, ..DecodeLimits::default() };
    let mut decoder = Decoder::new(Coding::Gzip, limits)?;
    let (mut rest, mut whole) = (&bytes[..], Vec::new());
    let mut room = vec![0; 64 * 1024];
    loop {
        let step = decoder.step(rest, &mut room)?;
        whole.extend_from_slice(&room[..step.made]);
        rest = &rest[step.taken..];
        if step.done {
            break;
        }
    }
    decoder.finish()?;
    Ok(whole)
}

/// A reader of pages into a campaign.
pub(crate) struct PageReader<'a> {
    daemon: &'a Daemon,
    live: Arc<LiveConfiguration>,
    campaign: &'a Arc<Campaign>,
    /// The site that pages must belong to; any site if `None`.
    site: Option<Arc<str>>,
    batch: Vec<WarmWish>,
}

impl<'a> PageReader<'a> {
    /// A reader for the pages of `site`, or of any site.
    pub(crate) fn new(
        daemon: &'a Daemon,
        campaign: &'a Arc<Campaign>,
        site: Option<Arc<str>>,
    ) -> Self {
        let live = daemon.shared.live();
        Self { daemon, live, campaign, site, batch: Vec::new() }
    }

    /// Adds a page; `place` says where it stands.
    fn add(&mut self, url: &str, place: impl Fn() -> String) {
        match self.wish(url, 0) {
            Ok(wish) => self.push(wish),
            Err(why) => _ = self.campaign.note_fault(&format!("{}: {why}", place())),
        }
    }

    /// The wish for a page with so many visits.
    ///
    /// # Errors
    /// The reason why it is not to be warmed.
    pub(crate) fn wish(&self, url: &str, visits: u64) -> Result<WarmWish, String> {
        let request = url_request::parse(url)?;
        let found = site_of(&self.live, &request.host);
        let site = found.ok_or_else(|| format!("no site has the host of `{url}`"))?;
        if self.site.as_ref().is_some_and(|own| *own != site) {
            return Err(format!("`{url}` is a page of another site"));
        }
        let url = WarmUrl::of_request(&request).ok_or("a URL is too long")?;
        Ok(WarmWish { site, url: Arc::new(url), score: visits })
    }

    /// Adds a wish.
    pub(crate) fn push(&mut self, wish: WarmWish) {
        self.batch.push(wish);
        if self.batch.len() >= BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let (most, now_ms) = (self.live.limits.warm_urls, rt::now().mono_ms);
        self.daemon.shared.warmth.add(self.campaign, self.batch.drain(..), most, now_ms);
    }

    /// Adds the last ones.
    pub(crate) fn finish(mut self) {
        self.flush();
    }
}

/// Warms what was hot before the start.
async fn warm_hot_lists(daemon: &Daemon) {
    let live = daemon.shared.live();
    let rewarms = |name: &str| {
        live.sites.listed.iter().find(|site| *site.name == *name && site.warmth.rewarm)
    };
    let loaded = rt::run_blocking(|| hot_list_file::load(&hot_list_file::folder())).await;
    let mut lists = loaded.unwrap_or_else(|why| {
        base::tell!(Warn, "larder: warming: the hot list is lost: {why}");
        Vec::new()
    });
    daemon.shared.warmth.note_loaded();
    lists.retain(|list| rewarms(&list.site).is_some());
    if lists.is_empty() {
        return;
    }
    let now_ms = rt::now().mono_ms;
    let (warmth, limits) = (&daemon.shared.warmth, &live.limits);
    let campaign = warmth.begin("what was hot before the start", now_ms);
    for SiteHotList { site, urls } in lists {
        let Some(site) = rewarms(&site) else { continue };
        let is_own = |host: &[u8]| site_of(&live, host).is_some_and(|own| own == site.name);
        let most = usize::try_from(limits.hot_urls).unwrap_or(usize::MAX);
        let urls = urls.into_iter().filter(|hot| is_own(&hot.url.host)).take(most).collect();
        let urls = warmth.note_visits(&site.name, urls, limits.hot_urls, now_ms);
        let wishes = urls.into_iter().map(|hot| WarmWish::of_hot(&site.name, hot));
        warmth.add(&campaign, wishes, limits.warm_urls, now_ms);
    }
    campaign.close(rt::now().mono_ms);
}

/// Saves the hot lists from time to time.
pub(crate) async fn keep_hot_lists(daemon: Arc<Daemon>) {
    loop {
        rt::time::sleep(SAVE_INTERVAL).await;
        save_hot_lists(&daemon).await;
    }
}

/// Saves the hot lists, if there are any.
pub(crate) async fn save_hot_lists(daemon: &Daemon) {
    // What was hot before must not be replaced by less.
    if !daemon.shared.warmth.is_loaded() {
        return;
    }
    let lists = daemon.shared.invalidator.hot_lists(rt::now().mono_ms).await;
    if lists.is_empty() {
        return;
    }
    let lists: Vec<SiteHotList> =
        lists.into_iter().map(|(site, urls)| SiteHotList { site, urls }).collect();
    let saved = rt::run_blocking(move || hot_list_file::save(&hot_list_file::folder(), &lists));
    if let Err(why) = saved.await {
        base::tell!(Warn, "larder: warming: the hot list is not kept over a restart: {why}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_unpacked_up_to_a_size() {
        // `printf '<urlset/>' | gzip -n`.
        let gzip = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xb3, 0x29, 0x2d, 0xca, 0x29, 0x4e, 0x2d, 0xd1,
            0xb7, 3, 0, 0xdb, 0xce, 0x72, 0xfc, 9, 0, 0, 0,
        ];
        assert_eq!(unpacked(gzip.to_vec(), 9).as_deref(), Ok(&b"<urlset/>"[..]));
        assert!(unpacked(gzip.to_vec(), 8).is_err());
        assert!(unpacked(gzip[..20].to_vec(), 9).is_err());
        assert_eq!(unpacked(b"<urlset/>".to_vec(), 1).as_deref(), Ok(&b"<urlset/>"[..]));
    }
}
