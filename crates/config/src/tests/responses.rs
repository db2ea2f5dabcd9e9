//! Rules for responses, changes of fields, and errors that are replaced.

use crate::{Config, Diagnostic};

/// A site with these keys.
fn site(keys: &str) -> String {
    format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n{keys}\n")
}

fn load(keys: &str) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    crate::load_str(&site(keys), "larder.toml")
}

fn messages(keys: &str) -> Vec<String> {
    super::messages(&site(keys))
}

#[test]
fn a_route_has_its_own_rules_behind_those_of_its_site() {
    let keys = "[[site.response]]\nstatus = [404, \"5xx\"]\nheader = [\"X-A\", \"X-B\"]\n\
                store = false\n[[site.route]]\npath = \"/a/*\"\n[[site.route.response]]\n\
                type = \"image/*\"\nmin_bytes = \"1KiB\"\nttl = \"1m\"\n\
                [[site.route]]\npath = \"/b\"\n";
    let (config, warnings) = load(keys).expect("a configuration");
    assert_eq!(warnings, []);
    let told = |settings: &policy::rules::Settings| {
        settings.response_rules.iter().map(|rule| rule.told.to_string()).collect::<Vec<_>>()
    };
    let rules = &config.sites[0].rules;
    let of_site = "status 404 or 5xx, header X-A or header X-B";
    assert_eq!(told(&rules.settings), [of_site]);
    let own = "type image/*, at least 1024 bytes";
    assert_eq!(told(&rules.routes[0].settings), [of_site, own]);
    assert_eq!(told(&rules.routes[1].settings), [of_site]);
}

#[test]
fn changes_of_fields_are_read_in_all_their_forms() {
    let keys = "response_headers = { unset = \"X-A\", set = { X-B = \"$$5 $host\" }, add = { X-C \
                = [\"1\", \"2\"], X-D = \"3\" }, replace = { X-E = { \"~ ^a\" = \"b\", c = \"\" } \
                } }";
    let (config, _) = load(keys).expect("a configuration");
    let changes = &config.sites[0].rules.settings.response_headers;
    let names: Vec<String> = changes.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(names, ["X-A", "X-B", "X-E", "X-E", "X-C", "X-C", "X-D"]);
    for (keys, message) in [
        ("response_headers = { add = \"a\" }", "`add` takes a table of names"),
        ("response_headers = { replace = { X = \"a\" } }", "`replace` takes a table of names"),
        ("request_headers = { set = { X = 1 } }", "`set` takes a table of names and values"),
        ("request_headers = { set = { X = \"${a\" } }", "`set`: `${` without `}`"),
        ("request_headers = { add = { Host = \"a\" } }", "`Host`: the field belongs to"),
    ] {
        let said = messages(keys);
        assert!(said.len() == 1 && said[0].starts_with(message), "{keys}: {said:?}");
    }
}

#[test]
fn a_part_of_the_path_needs_a_pattern_that_has_it() {
    let own = "response_headers = { set = { X = \"$2\" } }";
    for (keys, message) in [
        (own.to_owned(), "`response_headers` has `$2`, and a site has no `path`"),
        (
            format!("[[site.route]]\nname = \"a\"\npath = \"/a/*\"\n{own}"),
            "`response_headers` of `a` has `$2`",
        ),
    ] {
        assert_eq!(messages(&keys), [message], "{keys}");
    }
    let fits = format!("[[site.route]]\npath = \"~ ^/(a)/(b)\"\n{own}");
    assert_eq!(messages(&fits), [""; 0]);
}

#[test]
fn errors_that_are_replaced_have_a_page() {
    let pages = "error_pages = { 404 = \"/srv/a.html\", 502 = \"/srv/b.html\" }\n";
    for (keys, expected) in [
        ("intercept_errors = true", &[][..]),
        ("intercept_errors = [404, \"5xx\"]", &[]),
        ("intercept_errors = [404, 410]", &["`intercept_errors` without a page for 410"]),
        ("intercept_errors = false", &[]),
    ] {
        assert_eq!(messages(&format!("{pages}{keys}")), expected, "{keys}");
    }
    let none = ["`intercept_errors` without a page for 4xx, 5xx"];
    assert_eq!(messages("intercept_errors = true"), none);
    let route = "[[site.route]]\npath = \"/a\"\nintercept_errors = 500";
    let (config, warnings) = load(&format!("{pages}{route}")).expect("a configuration");
    assert_eq!(warnings[0].message, "`intercept_errors` without a page for 500");
    let rules = &config.sites[0].rules;
    assert!(
        rules.settings.intercepted.is_empty() && rules.routes[0].settings.intercepted.len() == 1
    );
}
