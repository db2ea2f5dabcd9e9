//! Fields that storing ignores: what is refused, and what is warned of.

/// The messages about a site with these keys.
fn messages(keys: &str) -> Vec<String> {
    let text = format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n{keys}\n");
    super::messages(&text)
}

#[test]
fn what_may_give_one_visitors_page_to_others_is_warned_of_unless_something_passes() {
    let private = "without `Cache-Control`, responses that the origin marks `private` or \
                   `no-store` are stored for all visitors";
    let cookie = "without `Set-Cookie`, no visitor gets a cookie of a stored page, and a token in \
                  its forms is everybody's";
    let vary = "one response is stored for visitors whom the origin tells apart";
    for (ignore, expected) in [
        ("\"Cache-Control\"", &[private][..]),
        ("[\"Cache-Control\", \"Set-Cookie\"]", &[private, cookie]),
        ("\"Vary\"", &[&format!("without `Vary`, {vary}")]),
        ("\"Vary: Cookie\"", &[&format!("without `Vary: cookie`, {vary}")]),
        ("[\"Expires\", \"Pragma\", \"Vary: User-Agent\"]", &[]),
    ] {
        let cache = format!("cache = {{ ttl = \"1m\", ignore = {ignore} }}");
        assert_eq!(messages(&cache), expected, "{ignore}");
        let guarded = format!("bypass = {{ cookie = \"session*\" }}\n{cache}");
        assert_eq!(messages(&guarded), [""; 0], "{ignore}");
        let route = format!("[[site.route]]\npath = \"/a/*\"\n{cache}");
        assert_eq!(messages(&route), expected, "{ignore}");
    }
}

#[test]
fn a_route_may_drop_what_its_site_ignores() {
    let keys = "bypass = { path = \"/a\" }\ncache = { ttl = \"1m\", ignore = [\"Set-Cookie\", \
                \"Expires\"] }\n[[site.route]]\npath = \"/b/*\"\ncache = { ignore = \"Pragma\" }\n\
                [[site.route]]\npath = \"/c/*\"\ncache = { ignore = false }";
    let text = format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n{keys}\n");
    let (config, warnings) = crate::load_str(&text, "larder.toml").expect("a configuration");
    assert_eq!(warnings, []);
    let names = |at: usize| {
        let ignored = &config.sites[0].rules.routes[at].settings.ignored;
        ignored.names().collect::<Vec<_>>().join(" ")
    };
    assert_eq!((names(0).as_str(), names(1).as_str()), ("Expires Pragma Set-Cookie", ""));
}

#[test]
fn a_lifetime_is_asked_for_where_none_is_left() {
    let without = "`ignore` without `ttl`: responses without their own lifetime are rarely stored";
    assert_eq!(messages("cache = { ignore = \"Expires\" }"), [without]);
    assert_eq!(messages("cache = { ignore = \"Pragma\" }"), [""; 0]);
}

#[test]
fn the_profile_that_knows_no_visitors_ignores_nothing_that_keeps_them_apart() {
    let refused = "`ignore` in the profile `rfc`, where cookies do not keep a visitor's pages from \
                   others";
    for (ignore, expected) in [
        ("\"X-Accel-Expires\"", &[refused][..]),
        ("\"Vary: *\"", &[refused]),
        ("[\"Expires\", \"Vary: Accept\"]", &[]),
    ] {
        let cache = format!("cache = {{ ttl = \"1m\", ignore = {ignore} }}");
        assert_eq!(messages(&format!("profile = \"rfc\"\n{cache}")), expected, "{ignore}");
        let guarded = format!("bypass = {{ path = \"/a\" }}\n{cache}");
        assert_eq!(messages(&format!("profile = \"rfc\"\n{guarded}")), expected, "{ignore}");
    }
}
