//! Visits that speak against a finding, although most speak for it.

use super::*;

#[test]
fn a_redirect_of_those_without_a_cookie_keeps_the_cookie() {
    let mut site = Recorder::new("");
    for n in 0..400_u64 {
        let (path, body) = page(n);
        let visitor = (n % 41) as u8;
        if visitor < 30 {
            site.respond(&[MINUTES, TAG, ("content-encoding", "gzip")]);
            let visit = site.get(visitor, &path, body);
            visit.set_field("cookie", &format!("member={visitor}"));
        } else {
            site.respond(&[("location", "/login"), ("cache-control", "no-store")]);
            site.get(visitor, &path, 7).status = 302;
        }
    }
    assert!(!site.found().iter().any(|own| own.starts_with("cookie-unused")), "{:?}", site.found());
}

#[test]
fn equal_errors_prove_nothing_of_a_parameter() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..200 {
        site.get((n % 40) as u8, &format!("/x.php?id={n}"), 404).status = 404;
    }
    assert_eq!(site.found(), [""; 0]);
}

/// The findings for forty visitors of ten pages that set these cookies.
fn with_set_cookies(lines: &[&str], change: impl Fn(u64, &mut Visit)) -> Vec<String> {
    let mut site = Recorder::new("");
    let mut fields = vec![MINUTES, TAG];
    fields.extend(lines.iter().map(|line| ("set-cookie", *line)));
    site.respond(&fields);
    for n in 0..400 {
        let visitor = (n % 41) as u8;
        let visit = site.get(visitor, &format!("/news/{}", n % 10), n % 10);
        visit.set_field("cookie", &format!("_ga=GA1.{visitor}"));
        change(n, visit);
    }
    site.found()
}

#[test]
fn cookies_of_visitors_are_not_removed_from_any_line() {
    let found = with_set_cookies(&["lang=de"], |_, _| {});
    assert_eq!(found, ["set-cookie-on-equal-pages lang /news/*"]);
    for lines in [&["PHPSESSID=1"][..], &["lang=de", "xsrf-token=1"], &["a=1", "b=1", "auth=1"]] {
        assert_eq!(with_set_cookies(lines, |_, _| {}), [""; 0], "{lines:?}");
    }
}

#[test]
fn pages_without_the_cookie_count_against_those_with_it() {
    let found = with_set_cookies(&["lang=de"], |n, visit| {
        if n % 41 > 35 {
            visit.response.as_mut().expect("fields").retain(|(name, _)| name != "set-cookie");
            visit.body = Some(BodyPrint { exact: 1000 + n % 41 });
        }
    });
    assert!(!found.iter().any(|own| own.starts_with("set-cookie")), "{found:?}");
}

#[test]
fn one_client_with_many_values_of_a_cookie_proves_nothing_of_it() {
    for (networks, is_found) in [(1, false), (4, false), (30, true)] {
        let mut site = Recorder::new("");
        site.respond(&[MINUTES, TAG]);
        for n in 0..400_u64 {
            let visit = site.get((n % networks) as u8, &format!("/news/{}", n % 10), n % 10);
            visit.set_field("cookie", &format!("theme={}", n % 23));
        }
        let found = site.found();
        let told = found.iter().any(|own| own.starts_with("cookie-unused theme"));
        assert_eq!(told, is_found, "{networks}: {found:?}");
    }
}

#[test]
fn many_browsers_of_one_network_are_one_visitor() {
    let one = |n: u64, visit: &mut Visit| visit.client = Some([192, 0, 2, n as u8].into());
    assert_eq!(with_set_cookies(&["lang=de"], one), [""; 0]);
    assert_eq!(with_set_cookies(&["lang=de"], |_, visit| visit.client = None), [""; 0]);
}

#[test]
fn paths_with_signs_of_patterns_make_no_route() {
    for path in ["/*", "//*", "//a/*", "/a*/x", "/[a-z]/x", "/~x/y"] {
        let mut site = Recorder::new("");
        site.respond(&[TAG]);
        for n in 0..300 {
            site.get((n % 40) as u8, path, 1);
        }
        assert_eq!(site.found(), [""; 0], "{path}");
    }
}

#[test]
fn a_family_with_a_private_page_keeps_its_cache_control() {
    for (private, expected) in [(false, 1), (true, 0)] {
        let mut site = Recorder::new("");
        for n in 0..300 {
            site.respond(&[("cache-control", "max-age=2"), TAG]);
            site.get((n % 40) as u8, "/p/news", 1);
            if private && n > 290 {
                site.respond(&[("cache-control", "Private=\"x\", max-age=0"), TAG]);
                site.get((n % 40) as u8, "/p/me", n).set_field("cookie", "a=1");
            }
        }
        let found = site.found();
        let short = found.iter().filter(|own| own.starts_with("lifetime-short")).count();
        assert_eq!(short, expected, "{found:?}");
    }
}

/// The findings about static files that a cookie keeps away, with these further settings.
fn static_files(settings: &str, change: impl Fn(u64, &mut Recorder)) -> Vec<String> {
    let mut site = Recorder::new(settings);
    site.respond(&[MINUTES, TAG]);
    for n in 0..120 {
        let visitor = (n % 40) as u8;
        let visit = site.get(visitor, "/a.css", 1);
        visit.set_field("cookie", &format!("sess={visitor}"));
        change(n, &mut site);
    }
    site.found().into_iter().filter(|own| own.starts_with("pass-static")).collect()
}

#[test]
fn static_files_of_one_visitor_and_guarded_ones_keep_their_rules() {
    let bypass = "bypass = { cookie = \"sess*\" }\n";
    let found = static_files(bypass, |n, site| {
        if n % 40 == 7 {
            site.get(7, "/mine/7.css", 7).set_field("cookie", "sess=7");
        }
    });
    assert_eq!(found, ["pass-static bypass cookie sess* /a.css"]);
    for (route, expected) in [
        ("path = \"/private/*\"\ncache = false\n", "/a.css"),
        ("path = \"*.php\"\ncache = false\n", "*.css"),
        ("path = \"/private/*\"\ndeny = [\"192.0.2.0/24\"]\n", "/a.css"),
    ] {
        let found = static_files(&format!("{bypass}[[site.route]]\n{route}"), |_, _| {});
        assert_eq!(found, [format!("pass-static bypass cookie sess* {expected}")], "{route}");
    }
    let by_path = static_files("bypass = { path = \"/a*\" }\n", |_, _| {});
    assert_eq!(by_path, [""; 0]);
}

#[test]
fn a_difference_among_visitors_who_are_compared_with_no_other_counts() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..600_u64 {
        let (path, body) = page(n);
        let visitor = (n % 41) as u8;
        let (odd, cookies) = match visitor {
            30.. => (100, format!("tier=gold; uid={n}")),
            _ => (0, format!("tier={visitor}")),
        };
        site.get(visitor, &path, body + odd).set_field("cookie", &cookies);
    }
    let found = site.found();
    assert!(!found.iter().any(|own| own.contains("tier")), "{found:?}");
}

#[test]
fn marks_of_bodies_that_are_too_large_are_right() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..60 {
        let visit = site.get((n % 40) as u8, &format!("/film/{}", n % 3), n % 3);
        visit.served = Some(Served::HitForMiss);
        "too-large".clone_into(&mut visit.not_stored);
    }
    assert_eq!(site.found(), ["limit-fires object_bytes"]);
}

#[test]
fn redirects_of_sessions_are_asked_for_each_time() {
    let mut site = Recorder::new("");
    for n in 0..120 {
        let visitor = (n % 40) as u8;
        site.respond(&[("location", "https://a.test/new")]);
        site.get(visitor, "/old", 1).status = 302;
        site.get(visitor, "/logout", 1).status = 302;
        site.get(n as u8 % 2, "/rare", 1).status = 302;
        site.respond(&[("location", "/"), ("set-cookie", "theme=dark")]);
        site.get(visitor, "/theme", 1).status = 302;
    }
    assert_eq!(site.found(), ["redirect-lifetime 302 /old"]);
}

#[test]
fn replays_are_bounded_and_the_rest_is_told() {
    let mut site = Recorder::new("");
    site.respond(&[MINUTES, TAG]);
    for n in 0..1400_u64 {
        site.get((n % 40) as u8, &format!("/p?c{}=x{n}", n % 70), 1);
    }
    let advice = site.advise();
    assert_eq!(advice.untried, 10, "{:?}", advice.findings.len());
    assert!(crate::report::text(&advice).contains("10 further changes were not tried"));
    assert_eq!(crate::report::json(&advice)["untried"], 10);
}
