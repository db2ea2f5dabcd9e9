//! Each kind of finding with a site that has the fault, and one that only looks like it.

mod counterproofs;

use config::sizing::{Machine, MachineFiles};
use observe::record::Served;

use super::*;
use crate::finding::FindingKind;
use crate::visit::BodyPrint;

/// A recorder of visits to one site, a second apart.
struct Recorder {
    settings: String,
    visits: Vec<Visit>,
    fields: Vec<(String, Vec<u8>)>,
    now_ms: u64,
}

/// Noon of a day in 2026, in milliseconds.
const START_MS: u64 = 1_790_000_000_000;

impl Recorder {
    /// A site with these settings behind its host and origin.
    fn new(settings: &str) -> Self {
        let site = "[[site]]\nhost = \"a.test\"\norigin = \"http://127.0.0.1:1\"\n";
        let settings = format!("{site}{settings}");
        Self { settings, visits: Vec::new(), fields: Vec::new(), now_ms: START_MS }
    }

    /// The fields of all later responses.
    fn respond(&mut self, fields: &[(&str, &str)]) {
        let field = |(name, value): &(&str, &str)| ((*name).to_owned(), value.as_bytes().to_vec());
        self.fields = fields.iter().map(field).collect();
    }

    /// A visitor gets a page with this body from the origin.
    fn get(&mut self, visitor: u8, target: &str, body: u64) -> &mut Visit {
        self.now_ms += 1000;
        self.visits.push(Visit {
            at_ms: self.now_ms,
            client: Some([198, 18, visitor, 1].into()),
            host: "a.test".to_owned(),
            method: "GET".to_owned(),
            target: target.as_bytes().to_vec(),
            fields: vec![("user-agent".to_owned(), format!("M{visitor}").into_bytes())],
            status: 200,
            body_bytes: 5000,
            served: Some(Served::Miss),
            fetch_us: Some(100_000),
            response: Some(self.fields.clone()),
            body: Some(BodyPrint { exact: body }),
            ..Visit::default()
        });
        self.visits.last_mut().expect("one was pushed")
    }

    fn advise(&self) -> Advice {
        let files = MachineFiles { cpus: 1, ..MachineFiles::default() };
        let machine = Machine::from_files(&files);
        let settings = Settings::read("larder.toml", &self.settings, machine).expect("settings");
        advise(self.visits.clone(), &settings)
    }

    /// The findings, as kind, thing and paths.
    fn found(&self) -> Vec<String> {
        let findings = self.advise().findings;
        let words = |own: &Finding| format!("{} {} {}", own.kind, own.about, own.paths);
        findings.iter().map(words).map(|text| text.trim().to_owned()).collect()
    }
}

const MINUTES: (&str, &str) = ("cache-control", "max-age=600");
const TAG: (&str, &str) = ("etag", "\"1\"");

/// Paths of thirty pages, each with a body of its own.
fn page(n: u64) -> (String, u64) {
    (format!("/p/{}", n % 30), n % 30)
}

#[test]
fn a_well_set_site_gets_no_advice() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG, ("vary", "Accept-Encoding")]);
    for n in 0..200 {
        let (path, body) = page(n);
        let visitor = (n % 40) as u8;
        let visit = site.get(visitor, &path, body);
        visit.set_field("cookie", &format!("_ga=GA1.{visitor}"));
    }
    assert_eq!(site.found(), [""; 0]);
    let figures = site.advise().figures;
    assert_eq!((figures.requests, figures.hits, figures.origin_requests), (200, 170, 30));
}

#[test]
fn codings_and_unknown_fields_of_hits_make_no_variants() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG, ("vary", "Accept-Encoding, Accept-Language")]);
    for n in 0..100 {
        let (path, body) = page(n);
        let visit = site.get((n % 40) as u8, &path, body);
        if n < 30 {
            visit.set_field("accept-encoding", "gzip");
            visit.set_field("accept-language", "de");
        } else {
            (visit.served, visit.response, visit.body) = (Some(Served::Hit), None, None);
        }
    }
    assert_eq!(site.advise().figures.hits, 70);
}

#[test]
fn a_parameter_without_effect_is_found_and_its_removal_predicted() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..120 {
        let (path, body) = page(n);
        site.get((n % 40) as u8, &format!("{path}?cid=x{n}"), body);
    }
    let advice = site.advise();
    let [finding] = &advice.findings[..] else { panic!("{:?}", site.found()) };
    assert_eq!((finding.kind, &finding.about[..]), (FindingKind::QueryParameterUnused, "cid"));
    assert_eq!(finding.points(&advice.figures).round() as i64, 75);
    let change = finding.change.as_ref().expect("a setting");
    assert_eq!(change.places[0].lines, ["[site.query]", "strip = [\"cid\"]"]);
    assert!(finding.proof.text().starts_with("90 of 90 pages"), "{:?}", finding.proof);
}

#[test]
fn a_parameter_that_matters_to_one_visitor_or_one_page_stays() {
    let mut rarely = Recorder::new("");
    let mut search = Recorder::new("");
    for site in [&mut rarely, &mut search] {
        site.respond(&[MINUTES, TAG]);
    }
    for n in 0..200 {
        let (path, body) = page(n);
        let odd = if n == 101 { 1000 } else { 0 };
        rarely.get((n % 40) as u8, &format!("{path}?ref=x{}", n % 50), body + odd);
        search.get((n % 40) as u8, &format!("{path}?sort={}", n % 7), body);
        search.get((n % 40) as u8, &format!("/search?sort={}", n % 7), 500 + n % 7);
    }
    assert_eq!(rarely.found(), [""; 0]);
    assert_eq!(search.found(), [""; 0]);
}

#[test]
fn pages_that_change_prove_nothing_about_parameters() {
    let mut site = Recorder::new("");
    site.respond(&[("cache-control", "no-store")]);
    for n in 0..120 {
        let (path, _) = page(n);
        site.get((n % 40) as u8, &format!("{path}?cid=x{n}"), n);
    }
    assert_eq!(site.found(), [""; 0]);
}

#[test]
fn a_log_without_bodies_gives_no_proof() {
    let mut site = Recorder::new("cache.ttl = \"10m\"\n");
    for n in 0..120 {
        let (path, body) = page(n);
        let visit = site.get((n % 40) as u8, &format!("{path}?cid=x{n}"), body);
        (visit.body, visit.response, visit.served) = (None, None, None);
        visit.body_bytes = 1000 + body;
    }
    let findings = site.advise().findings;
    let proofs: Vec<_> = findings.iter().map(|own| (own.kind.word(), own.proof.word())).collect();
    assert_eq!(proofs, [("query-parameter-unused", "missing")]);
}

#[test]
fn a_cookie_without_effect_is_found_and_one_with_an_effect_stays() {
    let mut unused = Recorder::new("");
    let mut used = Recorder::new("");
    for site in [&mut unused, &mut used] {
        site.respond(&[MINUTES, TAG]);
    }
    for n in 0..300_u64 {
        let (path, body) = page(n);
        let visitor = (n % 41) as u8;
        let odd = if visitor == 7 { 1000 } else { 0 };
        let cookie = format!("seen={visitor}");
        unused.get(visitor, &path, body).set_field("cookie", &cookie);
        used.get(visitor, &path, body + odd).set_field("cookie", &cookie);
    }
    assert_eq!(unused.found(), ["cookie-unused seen"]);
    assert_eq!(used.found(), [""; 0]);
}

#[test]
fn a_name_in_vary_is_found_where_bodies_do_not_depend_on_it() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG, ("vary", "User-Agent, Accept-Encoding")]);
    for n in 0..200 {
        let visitor = (n % 40) as u8;
        site.get(visitor, &format!("/blog/{}", n % 10), n % 10);
        site.get(
            visitor,
            &format!("/app/{}", n % 10),
            100 + n % 10 + 50 * u64::from(visitor / 10 % 2),
        );
    }
    assert_eq!(site.found(), ["vary-unused User-Agent /blog/*"]);
    let change = site.advise().findings[0].change.clone().expect("a setting");
    let expected = [
        "[[site.route]]",
        "path = \"/blog/*\"",
        "",
        "[site.route.cache]",
        "ignore = [\"Vary: User-Agent\"]",
    ];
    assert_eq!(change.places[0].lines, expected);
}

#[test]
fn cookies_that_visitors_have_together_are_found_together() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..300_u64 {
        let (path, body) = page(n);
        let visitor = (n % 41) as u8;
        let visit = site.get(visitor, &path, body);
        visit.set_field("cookie", &format!("seen={visitor}; last={}", visitor + 1));
    }
    assert_eq!(site.found(), ["cookie-unused last, seen"]);
    let change = site.advise().findings[0].change.clone().expect("a setting");
    assert!(change.text.contains("strip = [\"last\", \"seen\"]"), "{}", change.text);
}

/// Visits of forty people with cookies of their own, to ten pages.
fn people(site: &mut Recorder, body: impl Fn(u8, u64) -> u64) {
    for n in 0..200 {
        let visitor = (n % 41) as u8;
        let visit = site.get(visitor, &format!("/news/{}", n % 10), body(visitor, n % 10));
        if visitor.is_multiple_of(2) {
            visit.set_field("cookie", &format!("_ga=GA1.{visitor}"));
        }
    }
}

#[test]
fn equal_pages_that_set_a_cookie_are_found_and_pages_with_a_name_are_not() {
    for (body, expected) in [
        ((|_, page| page) as fn(u8, u64) -> u64, &["set-cookie-on-equal-pages lang /news/*"][..]),
        (|visitor, page| page + if visitor == 6 { 100 } else { 0 }, &[]),
    ] {
        let mut site = Recorder::new("");
        site.respond(&[MINUTES, TAG, ("set-cookie", "lang=1; Path=/")]);
        people(&mut site, body);
        assert_eq!(site.found(), expected);
    }
}

#[test]
fn a_cookie_that_comes_back_is_removed_where_pages_are_equal() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG, ("set-cookie", "lang=1; Path=/")]);
    for n in 0..200 {
        let visitor = (n % 41) as u8;
        let visit = site.get(visitor, &format!("/news/{}", n % 10), n % 10);
        if n > 41 {
            visit.set_field("cookie", &format!("lang={visitor}"));
        }
    }
    let found = site.found();
    assert_eq!(found, ["set-cookie-on-equal-pages lang /news/*"]);
    let finding = &site.advise().findings[0];
    assert_eq!(finding.after.expect("a replay").hits, 190);
}

#[test]
fn private_pages_need_many_visitors_for_an_opinion() {
    let control = ("cache-control", "private, max-age=0");
    let mut site = Recorder::new("");
    site.respond(&[control, TAG]);
    people(&mut site, |_, page| page);
    assert_eq!(site.found(), ["private-on-equal-pages Cache-Control: private, max-age=0 /news/*"]);
    let mut two = Recorder::new("");
    two.respond(&[control, TAG]);
    for n in 0..100 {
        two.get(n % 2, "/account/", 1).set_field("cookie", &format!("sid={}", n % 2));
    }
    assert_eq!(two.found(), [""; 0]);
    let mut differing = Recorder::new("");
    differing.respond(&[control, TAG]);
    people(&mut differing, |visitor, _| u64::from(visitor));
    assert_eq!(differing.found(), [""; 0]);
}

#[test]
fn a_page_of_one_visitor_among_equal_pages_stays_private() {
    let mut site = Recorder::new("");
    site.respond(&[("cache-control", "private"), TAG]);
    people(&mut site, |_, page| page);
    for _ in 0..20 {
        site.get(3, "/news/draft", 99).set_field("cookie", "sid=3");
    }
    let found = site.found();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("/news/1 ") && !found[0].contains("draft"), "{found:?}");
}

#[test]
fn lifetimes_are_too_short_only_where_pages_do_not_change_sooner() {
    let advised = |control: &str, body: fn(u64) -> u64| {
        let mut site = Recorder::new("");
        site.respond(&[("cache-control", control), TAG]);
        for n in 0..300 {
            site.get((n % 40) as u8, "/css/a.css", body(n));
        }
        site.found()
    };
    assert_eq!(advised("max-age=2", |_| 1), ["lifetime-short 2s *.css"]);
    assert_eq!(advised("max-age=2", |n| n / 3), [""; 0]);
    assert_eq!(advised("max-age=200", |_| 1), [""; 0]);
}

#[test]
fn a_missing_lifetime_is_advised_by_what_renewals_show() {
    let mut site = Recorder::new("");
    site.respond(&[TAG]);
    for n in 0..300 {
        let (path, body) = page(n);
        site.get((n % 40) as u8, &path, body);
    }
    let advice = site.advise();
    assert_eq!(site.found(), ["lifetime-missing 200 /p/*"]);
    let change = advice.findings[0].change.as_ref().expect("a setting");
    assert!(change.text.contains("ttl = { 200 = \"2m\" }"), "{}", change.text);
}

#[test]
fn renewals_that_are_sent_whole_need_a_validator() {
    let mut site = Recorder::new("cache.stale_while_revalidate = \"0s\"\n");
    site.respond(&[("cache-control", "max-age=3600")]);
    for n in 0..30 {
        site.now_ms += 4_000_000;
        site.get(n, "/p", 1);
    }
    assert_eq!(site.found(), ["validator-missing ETag /p"]);
    site.respond(&[("cache-control", "max-age=3600"), TAG]);
    site.visits.iter_mut().for_each(|visit| visit.set_response_field("etag", "\"1\""));
    assert_eq!(site.found(), [""; 0]);
}

#[test]
fn a_clock_is_off_if_all_dates_are() {
    for (ahead_s, expected) in [(0, &[][..]), (-90, &["clock-off 90s behind"])] {
        let mut site = Recorder::new("");
        for n in 0..40 {
            let at_s = (site.now_ms / 1000).checked_add_signed(ahead_s + 1).expect("a time");
            let date = message::date::HttpDate::new(at_s);
            let date = String::from_utf8_lossy(date.as_bytes()).into_owned();
            site.respond(&[("cache-control", "max-age=600"), TAG, ("date", &date)]);
            let (path, body) = page(n);
            site.get(n as u8, &path, body);
        }
        assert_eq!(site.found(), expected);
    }
}

#[test]
fn memory_is_too_small_if_more_of_it_brings_hits() {
    let found = |size: &str| {
        let mut site = Recorder::new(&format!("[memory]\nsize = \"{size}\"\n"));
        site.respond(&[("cache-control", "max-age=86400"), TAG]);
        for n in 0..3000 {
            // A round over more pages than there is room for.
            let body = n % 100;
            site.get((n % 40) as u8, &format!("/p/{body}"), body).body_bytes = 200_000;
        }
        site.found()
    };
    assert_eq!(found("8MiB"), ["memory-small +24MiB"]);
    assert_eq!(found("80MiB"), [""; 0]);
}

#[test]
fn large_files_that_push_pages_out_are_found() {
    let mut site = Recorder::new("[memory]\nsize = \"8MiB\"\n");
    site.respond(&[("cache-control", "max-age=86400"), TAG]);
    for n in 0..2000_u64 {
        let page = n * n % 97;
        site.get((n % 40) as u8, &format!("/p/{page}"), page).body_bytes = 40_000;
        if n % 4 == 0 {
            let file = n / 4;
            let path = format!("/video/{}.mp4", file % 160);
            site.get((n % 40) as u8, &path, 1000 + file % 160).body_bytes = 1_500_000;
        }
    }
    assert!(
        site.found().iter().any(|own| own.starts_with("large-files 160 files")),
        "{:?}",
        site.found()
    );
}

#[test]
fn text_without_compression_is_found_only_if_a_setting_forbids_it() {
    for (setting, expected) in [("compress = \"off\"\n", 1), ("", 0)] {
        let mut site = Recorder::new(setting);
        site.respond(&[MINUTES, TAG, ("content-type", "text/html; charset=utf-8")]);
        for n in 0..60 {
            let (path, body) = page(n);
            site.get((n % 40) as u8, &path, body).set_field("accept-encoding", "gzip, br");
        }
        let found = site.found();
        assert_eq!(found.len(), expected, "{found:?}");
        assert!(found.iter().all(|own| own == "uncompressed compress"));
    }
}

#[test]
fn errors_that_are_kept_long_are_found() {
    for (control, expected) in [("max-age=3600", 1), ("max-age=10", 0), ("no-store", 0)] {
        let mut site = Recorder::new("");
        site.respond(&[("cache-control", control), TAG]);
        for n in 0..60 {
            site.get((n % 40) as u8, "/p", 1).status = 503;
        }
        let found = site.found();
        assert_eq!(found.len(), expected, "{control}: {found:?}");
        assert!(found.iter().all(|own| own == "error-lifetime 503"));
    }
}

#[test]
fn redirects_and_missing_pages_without_a_lifetime_are_found() {
    let mut site = Recorder::new("");
    for n in 0..120 {
        site.respond(&[("location", "https://a.test/new")]);
        site.get((n % 40) as u8, "/old", 1).status = 301;
        site.respond(&[]);
        site.get((n % 40) as u8, &format!("/none/{}", n % 5), 2).status = 404;
    }
    let mut found = site.found();
    found.sort();
    assert_eq!(found, ["not-found-lifetime 404", "redirect-lifetime 301 /old"]);
}

#[test]
fn a_redirect_by_visitor_and_a_page_that_comes_to_be_stay() {
    let mut site = Recorder::new("");
    for n in 0..120 {
        let language = if n % 3 == 0 { "de" } else { "en" };
        site.respond(&[("location", &format!("/{language}/"))]);
        site.get((n % 40) as u8, "/", 1).status = 302;
        site.respond(&[]);
        let status = if n < 119 { 404 } else { 200 };
        site.get((n % 40) as u8, "/draft", 2).status = status;
    }
    assert_eq!(site.found(), [""; 0]);
}

#[test]
fn purges_of_everything_are_found_by_what_comes_back() {
    for (changes, expected) in [(false, &["purge-wide 2 purges"][..]), (true, &[])] {
        let mut site = Recorder::new("purge = {}\n");
        site.respond(&[("cache-control", "max-age=86400"), TAG]);
        for round in 0..3 {
            for n in 0..30 {
                let (path, body) = page(n);
                let version = if changes { 100 * round } else { 0 };
                site.get((n % 40) as u8, &path, body + version);
            }
            if round < 2 {
                let purge = site.get(1, "/", 0);
                (purge.method, purge.served) = ("PURGE".to_owned(), Some(Served::Synth));
                (purge.response, purge.body) = (None, None);
            }
        }
        assert_eq!(site.found(), expected);
    }
}

#[test]
fn many_pages_that_expire_at_one_moment_are_found() {
    let at = |s: u64| {
        let date = message::date::HttpDate::new(s);
        String::from_utf8_lossy(date.as_bytes()).into_owned()
    };
    for (is_fixed, expected) in [(true, &["expire-together Expires /p/*"][..]), (false, &[])] {
        let mut site = Recorder::new("");
        for n in 0..30 {
            let now_s = site.now_ms / 1000 + 1;
            let end_s = if is_fixed { START_MS / 1000 + 7200 } else { now_s + 7200 };
            site.respond(&[("expires", &at(end_s)), ("date", &at(now_s)), TAG]);
            let (path, body) = page(n);
            site.get((n % 40) as u8, &path, body);
        }
        assert_eq!(site.found(), expected);
    }
}

#[test]
fn crawlers_are_found_if_they_cause_most_fetches() {
    for (agent, expected) in [("ExampleBot/1.0", &["bots 50% of requests"][..]), ("Mozilla", &[])] {
        let mut site = Recorder::new("");
        site.respond(&[MINUTES, TAG]);
        for n in 0..200 {
            site.get((n % 40) as u8, "/p", 1);
            site.get((n % 40) as u8, &format!("/q/{n}"), n).fields =
                vec![("user-agent".to_owned(), agent.as_bytes().to_vec())];
        }
        assert_eq!(site.found(), expected);
    }
}

#[test]
fn marks_and_limits_are_told_by_their_counts() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..60 {
        let (path, body) = page(n);
        let visit = site.get((n % 40) as u8, &path, body);
        visit.served = Some(Served::HitForMiss);
        visit.limit = if n < 20 { "rate".to_owned() } else { String::new() };
    }
    let mut found = site.found();
    found.sort();
    assert_eq!(found, ["hit-for-miss-long hit_for_miss_ttl", "limit-fires rate"]);
}

#[test]
fn static_files_that_a_cookie_keeps_away_are_found() {
    for (body, expected) in [
        ((|_| 1) as fn(u8) -> u64, &["pass-static bypass cookie sess* *.css"][..]),
        (u64::from, &[]),
    ] {
        let mut site = Recorder::new("bypass = { cookie = \"sess*\" }\n");
        site.respond(&[MINUTES, TAG]);
        for n in 0..120 {
            let visitor = (n % 40) as u8;
            let visit = site.get(visitor, "/a.css", body(visitor));
            visit.set_field("cookie", &format!("sess={visitor}"));
        }
        let found: Vec<_> =
            site.found().into_iter().filter(|own| own.starts_with("pass-static")).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn sites_with_a_program_are_left_out() {
    let mut site = Recorder::new("vcl = \"/etc/a.vcl\"\n");
    site.settings = site.settings.replace("origin = \"http://127.0.0.1:1\"\n", "");
    site.respond(&[MINUTES, TAG]);
    for n in 0..120 {
        let (path, body) = page(n);
        site.get((n % 40) as u8, &format!("{path}?cid=x{n}"), body);
    }
    assert_eq!(site.found(), [""; 0]);
    assert_eq!(site.advise().figures.requests, 0);
}

#[test]
fn a_failure_is_not_taken_for_the_page() {
    let mut log = Recorder::new("");
    log.respond(&[MINUTES]);
    for visitor in 0..10 {
        let failed = log.get(visitor, "/p", 1);
        (failed.status, failed.response, failed.body) = (503, None, None);
    }
    log.get(20, "/p", 1);
    assert_eq!(log.advise().figures.hits, 0, "the page was not there before");
    log.get(21, "/p", 1);
    assert_eq!(log.advise().figures.hits, 1);
}

#[test]
fn bodies_above_the_limit_are_not_stored() {
    let mut log = Recorder::new("[limits]\nobject_bytes = \"64KiB\"\nslices_from = \"0B\"\n");
    log.respond(&[MINUTES]);
    for visitor in 0..10 {
        log.get(visitor, "/large", 1).body_bytes = 100_000;
    }
    assert_eq!(log.advise().figures.hits, 0);
    for visitor in 0..10 {
        log.get(visitor, "/small", 1);
    }
    assert_eq!(log.advise().figures.hits, 9);
}

#[test]
fn an_origin_is_asked_for_redirects_and_missing_pages_too() {
    let mut log = Recorder::new("");
    for (target, status) in [("/page", 200), ("/moved", 301), ("/gone", 404), ("/broken", 503)] {
        log.get(1, target, 1).status = status;
    }
    let files = MachineFiles { cpus: 1, ..MachineFiles::default() };
    let settings = Settings::read("larder.toml", &log.settings, Machine::from_files(&files))
        .expect("settings");
    let asked = crate::questions(&log.visits, &settings, 10);
    let targets: Vec<_> = asked.iter().map(|own| String::from_utf8_lossy(&own.target)).collect();
    assert_eq!(targets, ["/gone", "/moved", "/page"]);
}

#[test]
fn bodies_that_are_too_large_meet_a_limit() {
    let mut ring = Recorder::new("");
    ring.respond(&[MINUTES, TAG]);
    for n in 0..5 {
        "too-large".clone_into(&mut ring.get(n, &format!("/film/{n}"), 1).not_stored);
    }
    assert_eq!(ring.found(), ["limit-fires object_bytes"]);
}
