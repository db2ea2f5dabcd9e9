//! Crawlers that cause most requests to the origin.

use crate::edit::{Edit, NewValue, Scope};
use crate::finding::{FindingKind, Proof, Suspicion};
use crate::trace::{Seen, Trace};

/// Least requests of crawlers, and the least shares of all requests and of those to the origin, in
/// hundredths.
const REQUESTS_MIN: usize = 50;
const SHARE_MIN: usize = 10;
const ORIGIN_SHARE_MIN: usize = 40;
/// Words by which crawlers name themselves, for sources without classes.
const WORDS: [&str; 5] = ["bot", "crawler", "spider", "slurp", "scrapy"];

pub(super) fn detect(trace: &Trace<'_>) -> Vec<Suspicion> {
    (0..trace.settings.config.sites.len()).filter_map(|site| suspicion(trace, site)).collect()
}

fn is_crawler(seen: &Seen<'_>) -> bool {
    match &seen.visit.class[..] {
        "" => {
            let agent = seen.visit.field("user-agent").unwrap_or_default();
            let agent = String::from_utf8_lossy(agent).to_ascii_lowercase();
            WORDS.iter().any(|word| agent.contains(word))
        }
        class => matches!(class, "search" | "ai"),
    }
}

fn suspicion(trace: &Trace<'_>, site: usize) -> Option<Suspicion> {
    let count = |wanted: &dyn Fn(&Seen<'_>) -> bool| {
        trace.asked().filter(|seen| seen.site == site && wanted(seen)).count()
    };
    let all = count(&|_| true);
    let theirs = count(&is_crawler);
    let fetched = count(&|seen| seen.is_fetched());
    let fetched_by_them = count(&|seen| seen.is_fetched() && is_crawler(seen));
    let is_share = |part: usize, whole: usize, share| part * 100 >= whole * share && whole > 0;
    let is_burden = theirs >= REQUESTS_MIN
        && is_share(theirs, all, SHARE_MIN)
        && is_share(fetched_by_them, fetched, ORIGIN_SHARE_MIN);
    let rules = &trace.settings.config.sites[site].rules.crawlers;
    if !is_burden || !rules.classes.is_empty() {
        return None;
    }
    let value = NewValue::Whole("\"stored\"".to_owned());
    let edit = |table| Edit { scope: Scope::Site(site), table, key: "serve", value: value.clone() };
    Some(Suspicion {
        kind: FindingKind::Bots,
        site,
        about: format!("{}% of requests", theirs * 100 / all.max(1)),
        paths: String::new(),
        proof: Proof::Counts(format!(
            "crawlers sent {theirs} of {all} requests, and caused {fetched_by_them} of {fetched} \
             to the origin"
        )),
        edits: vec![edit("crawlers.ai")],
        bytes: 0,
        is_fault: true,
        risk:
            "crawlers of language models get stored pages however stale, and wait in a queue for \
               others"
                .to_owned(),
        hints: Vec::new(),
    })
}
