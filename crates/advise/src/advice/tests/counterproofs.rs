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
