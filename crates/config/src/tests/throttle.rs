//! Tests of `rate` and `concurrent`, limits on clients' requests.

use std::sync::Arc;

use base::rate::RateQuota;
use policy::LimitKey;

use super::*;

const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n";

#[test]
fn limits_are_read_and_a_route_shares_its_site_s() {
    let config = load(&format!(
        "{SITE}rate = [{{ requests = \"10/s\", burst = 20, queue = 5 }}, \
         {{ requests = \"1000/h\", per = {{ field = \"X-Api-Key\" }}, exempt = \"10.0.0.0/8\" }}]\n\
         concurrent = {{ requests = 8, per = \"site\", status = 503, dry_run = true }}\n\
         [[site.route]]\npath = \"/a\"\n\
         [[site.route]]\npath = \"/b\"\nrate = {{ requests = \"5/m\", path = \"/b\" }}\n\
         concurrent = false\n"
    ));
    let rules = &config.sites[0].rules;
    let site = rules.settings.rate.as_ref().expect("rates");
    let pace = RateQuota { count: 10, per_ms: 1000 };
    assert_eq!((site[0].requests, site[0].burst, site[0].queue), (pace, 20, 5));
    assert_eq!((site[0].terms.per.clone(), site[0].terms.status), (LimitKey::Address, None));
    assert!(matches!(site[1].terms.per, LimitKey::Field(_)) && site[1].terms.exempt.len() == 1);
    let concurrent = rules.settings.concurrent.as_ref().expect("a limit");
    let terms = &concurrent[0].terms;
    let status = terms.status.map(Status::code);
    assert_eq!((concurrent[0].requests, status, terms.dry_run), (8, Some(503), true));
    let [a, b] = [&rules.routes[0].settings, &rules.routes[1].settings];
    // Identical limits, not equal ones: they count together.
    assert!(Arc::ptr_eq(site, a.rate.as_ref().expect("its site's")));
    assert!(Arc::ptr_eq(concurrent, a.concurrent.as_ref().expect("its site's")));
    let pace = RateQuota { count: 5, per_ms: 60_000 };
    assert_eq!(b.rate.as_ref().expect("its own")[0].requests, pace);
    assert!(b.concurrent.is_none());
    let shown = show(&config);
    for line in ["10/s, burst 20, queue 5 per address", "8 per site (only counted)"] {
        assert!(shown.contains(line), "{shown}");
    }
}

#[test]
fn what_is_no_limit_is_said() {
    for (keys, expected) in [
        ("rate = \"10/s\"", "`rate` takes a table, a list of tables, or false"),
        ("rate = {}", "a limit without `requests`"),
        ("rate = []", "`rate` is an empty list"),
        ("rate = { requests = \"10\" }", "`10` is no rate"),
        ("rate = { requests = \"0/s\" }", "`0/s` is no rate"),
        ("rate = { requests = \"1/s\", status = 500 }", "a refusal is 429 or 503"),
        ("rate = { requests = \"1/s\", per = \"user\" }", "`per` takes"),
        ("rate = { requests = \"1/s\", per = { cookie = \"a\" } }", "`per` takes"),
        ("rate = { requests = \"1/s\", count = \"fetches\" }", "`count`"),
        ("concurrent = { requests = 0 }", "`requests` must be from 1 to"),
        ("concurrent = { requests = 1, burst = 2 }", "unknown key `burst`"),
    ] {
        let said = said(&format!("{SITE}{keys}\n"));
        assert!(said.contains(expected), "{keys}: {said}");
    }
}

#[test]
fn a_site_with_a_vcl_may_have_limits() {
    let site = "[[site]]\nhost = \"*\"\nvcl = \"/a.vcl\"\nrate = { requests = \"1/s\" }\n\
                concurrent = { requests = 1 }\n";
    let settings = &load(site).sites[0].rules.settings;
    assert!(settings.rate.is_some() && settings.concurrent.is_some());
}
