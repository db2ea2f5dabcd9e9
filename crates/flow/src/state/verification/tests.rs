//! Tests of findings, and of the draw of hits.

use super::*;

fn cookies(names: &[&str]) -> DifferenceCause {
    DifferenceCause::Cookies(names.iter().map(|name| name.as_bytes().to_vec()).collect())
}

fn finding(cause: DifferenceCause, page: &str, network: u8) -> Finding {
    Finding {
        url: format!("http://{page}"),
        route: String::new(),
        cause,
        scope: FindingScope::Page,
        unix_ms: 0,
        until_ms: 100,
        key: page.len() as u64,
        page: page.as_bytes().to_vec(),
        network: Some(IpAddr::from([10, 0, network, 0])),
    }
}

fn verification() -> SiteVerification {
    SiteVerification { one_in: [4].into(), observes: false, findings: ArcSwap::default() }
}

fn request(page: &str, cookies: &[&str]) -> Request {
    let (host, path) = page.split_at(page.find('/').expect("a path"));
    let mut request = Request::new();
    request.host = host.as_bytes().to_vec();
    request.target = path.as_bytes().to_vec();
    cookies.iter().for_each(|line| request.headers.push(HeaderId::Cookie, line.as_bytes()));
    request
}

#[test]
fn about_one_of_so_many_hits_is_compared() {
    let core = CoreVerification::default();
    let due = (0..10_000).filter(|_| core.is_due(10)).count();
    assert!((700..1_300).contains(&due), "{due}");
    assert!(!core.is_due(0) && core.is_due(1));
}

#[test]
fn a_key_is_fetched_for_an_observed_site_when_it_is_asked_for_again() {
    let core = CoreVerification::default();
    assert_eq!(
        [1, 2, 1, 1, 4097, 1].map(|key| core.is_asked_again(key)),
        [false, false, true, true, false, false]
    );
}

#[test]
fn cookies_concern_a_page_until_visitors_of_two_networks_have_shown_them() {
    let own = verification();
    let told =
        |page: &str, lines: &[&str], now_ms| own.telling_cookies(&request(page, lines), now_ms);
    assert_eq!(told("a.test/x", &["cart=3"], 0), None);
    let added = own.add(finding(cookies(&["cart"]), "a.test/x", 1), 10, 0);
    assert_eq!((added.scope, added.is_new), (FindingScope::Page, true));
    assert_eq!(told("a.test/x", &["a=1", "cart=3"], 99).as_deref(), Some(&b"a=1; cart=3"[..]));
    assert_eq!(told("a.test/x?q", &["cart=3"], 99).as_deref(), Some(&b"cart=3"[..]));
    for (page, line, now_ms) in
        [("a.test/x", "cart=3", 100), ("a.test/x", "cart2=3", 0), ("a.test/y", "cart=3", 0)]
    {
        assert_eq!(told(page, &[line], now_ms), None, "{page} {line}");
    }
    // A visitor alone cannot make more of it.
    let again = own.add(finding(cookies(&["cart"]), "a.test/x", 1), 10, 0);
    assert_eq!((again.scope, again.is_new), (FindingScope::Page, false));
    let added = own.add(finding(cookies(&["cart"]), "a.test/y", 2), 10, 0);
    assert_eq!((added.scope, added.is_new), (FindingScope::Site, true));
    assert!(told("a.test/z", &["cart=3"], 0).is_some());
    let again = own.add(finding(cookies(&["cart"]), "a.test/z", 1), 10, 0);
    assert_eq!((again.scope, again.is_new, own.findings().len()), (FindingScope::Site, false, 1));
}

#[test]
fn one_visitor_may_have_two_addresses_and_drops_no_finding_about_a_site() {
    let own = verification();
    let of = |page: &str, network: Option<&str>| Finding {
        network: network.map(|address| address.parse().expect("an address")),
        ..finding(cookies(&["cart"]), page, 1)
    };
    for network in [Some("192.0.2.0"), Some("2001:db8::"), None, Some("192.0.2.0")] {
        assert_eq!(own.add(of("a.test/x", network), 3, 0).scope, FindingScope::Page);
    }
    assert_eq!(own.add(of("a.test/x", Some("198.51.100.0")), 3, 0).scope, FindingScope::Site);
    for page in ["a.test/1", "a.test/2", "a.test/3", "a.test/4"] {
        own.add(finding(cookies(&[page]), page, 1), 3, 0);
    }
    assert_eq!(own.findings().len(), 3);
    assert!(own.telling_cookies(&request("a.test/y", &["cart=3"]), 0).is_some());
}

#[test]
fn cookies_of_every_visitor_are_only_reported() {
    let own = verification();
    for network in 1..3 {
        let added = own.add(finding(cookies(&["_ga"]), "a.test/x", network), 10, 0);
        assert_eq!(added.scope, FindingScope::Report);
    }
    assert_eq!(own.telling_cookies(&request("a.test/x", &["_ga=1"]), 0), None);
    assert_eq!(own.findings().len(), 1);
}

#[test]
fn a_page_that_differs_otherwise_is_held_for_a_time() {
    let own = verification();
    own.add(finding(DifferenceCause::Field("User-Agent"), "a.test/x", 1), 10, 0);
    own.add(finding(cookies(&["cart"]), "a.test/xyz", 1), 10, 0);
    assert_eq!((own.holds(8, 99), own.holds(8, 100), own.holds(10, 0)), (true, false, false));
}

#[test]
fn findings_are_bounded_and_outlive_a_reload() {
    let own = verification();
    for page in ["a/1", "a/22", "a/333", "a/4444", "a/55555"] {
        let added = own.add(finding(DifferenceCause::Unknown, page, 1), 3, 0);
        assert_eq!(added.drops, page.len() > 5, "{page}");
    }
    assert!(!own.add(finding(DifferenceCause::Unknown, "a/55555", 1), 3, 0).drops, "it is known");
    let next = verification();
    next.take_over(&own);
    let keys: Vec<_> = next.findings().iter().map(|finding| finding.key).collect();
    assert_eq!(keys, [5, 6, 7]);
}

#[test]
fn a_network_is_what_one_client_may_have() {
    for (one, other, is_same) in [
        ("192.0.2.1", "192.0.2.200", true),
        ("192.0.2.1", "192.0.3.1", false),
        ("2001:db8:1::1", "2001:db8:1:2::3", true),
        ("2001:db8:1::1", "2001:db8:2::1", false),
        ("127.0.0.1", "127.0.0.2", false),
    ] {
        let [one, other] = [one, other].map(|text| network_of(text.parse().expect("an address")));
        assert_eq!(one == other, is_same, "{one} {other}");
    }
}
