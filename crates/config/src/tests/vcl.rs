//! Tests of `vcl` in a site: a file that decides alone, or one beside the site's settings.

use std::path::Path;

use super::*;

/// The parts of a site's VCL: the file that decides, and the one beside its settings.
fn parts(keys: &str) -> (bool, bool) {
    let config = load(&format!("[[site]]\nhost = \"*\"\nvcl = \"/a.vcl\"\n{keys}\n"));
    let site = &config.sites[0];
    let is_named =
        |file: Option<&PlacedPath>| file.is_some_and(|own| own.path == Path::new("/a.vcl"));
    (is_named(site.program()), is_named(site.extra()))
}

#[test]
fn settings_that_decide_make_a_vcl_stand_beside_them() {
    let own = "origin = \"http://127.0.0.1:8080\"\n";
    for keys in [
        own.to_owned(),
        format!("{own}preset = \"wordpress\""),
        format!("{own}cache = {{ ttl = \"1m\" }}"),
        format!("{own}[[site.route]]\npath = \"/a\"\ncache = false"),
        "files = \"/srv/www\"".to_owned(),
    ] {
        assert_eq!(parts(&keys), (false, true), "{keys}");
    }
    for keys in ["", "access_log = false", "rate = { requests = \"1/s\" }"] {
        assert_eq!(parts(keys), (true, false), "{keys}");
    }
}

#[test]
fn a_site_with_settings_beside_a_vcl_needs_what_they_need() {
    let said = said("[[site]]\nhost = \"*\"\nvcl = \"/a.vcl\"\npreset = \"wordpress\"\n");
    assert!(said.contains("a site without origin"), "{said}");
}

#[test]
fn settings_beside_the_top_s_vcl_are_reported_unless_the_site_names_one() {
    let site = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n";
    let said = said(&format!("vcl = \"/all.vcl\"\n{site}"));
    assert!(said.contains("`origin` beside the top's VCL, which decides it"), "{said}");
    assert!(said.contains("name a VCL in the site itself"), "{said}");
    let config = load(&format!("vcl = \"/all.vcl\"\n{site}vcl = \"/own.vcl\"\n"));
    assert!(config.sites[0].extra().is_some());
}
