//! Conditions of routes, and the URLs that their origins are asked for.

use super::messages;

/// A site with a route of these keys.
fn with_route(keys: &str) -> String {
    format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n[[site.route]]\n{keys}\n")
}

/// The conditions of the first route, in words.
fn conditions(keys: &str) -> Vec<String> {
    let (config, _) = crate::load_str(&with_route(keys), "larder.toml").expect("a configuration");
    let route = &config.sites[0].rules.routes[0];
    route.scope.when.iter().map(ToString::to_string).collect()
}

#[test]
fn conditions_are_read_in_all_their_forms() {
    for (keys, expected) in [
        ("when = { header = \"X-A\" }", &["header X-A"][..]),
        ("when = { header = [\"X-A\", \"X-B\"] }", &["header X-A or header X-B"]),
        (
            "when = { header = { X-A = [\"1\", \"2*\"], X-B = true, X-C = false } }",
            &["header X-A: 1 or 2*", "header X-B", "no header X-C"],
        ),
        ("when = { cookie = { \"sess_*\" = false } }", &["no cookie sess_*"]),
        ("when = { query = { page = \"~ ^[0-9]+$\" } }", &["query page=~ ^[0-9]+$"]),
        ("when = { client = [\"10.0.0.0/8\", \"::1\"] }", &["client 10.0.0.0/8 or ::1/128"]),
        ("when = { user_agent = [\"bot\", \"~ ^curl\"] }", &["user_agent bot or ~ ^curl"]),
        (
            "when = { time = [\"Sat,Sun\", \"Mon-Fri 18:00-08:00\"], not = { time = \"2026-12-24\" } }",
            &["time Sat,Sun or Mon-Fri 18:00-08:00", "not (time 2026-12-24)"],
        ),
        (
            "when = { not = { path = \"/a/*\", method = \"POST\", cookie = \"b\" } }",
            &["not (path /a/*, method POST, cookie b)"],
        ),
    ] {
        assert_eq!(conditions(keys), expected, "{keys}");
    }
}

#[test]
fn a_route_needs_something_that_it_is_for() {
    let route = "a route without `path`, `method` or `when`";
    for (keys, message) in [
        ("cache = false", route),
        ("when = {}", "`when` without conditions"),
        ("when = { not = {} }", "`not` without conditions would leave out every request"),
        ("when = { header = [] }", "`header` is an empty list"),
        ("when = { header = { X-A = [] } }", "`header` is an empty list"),
        ("when = { client = [] }", "`client` is an empty list"),
        ("when = { user_agent = \"\" }", "`user_agent`: a name that cannot occur"),
        ("when = { user_agent = [\"a\", \"~ (\"] }", "`user_agent`: unclosed group"),
        ("when = { cookie = { a = \"~ (\" } }", "`cookie`: unclosed group"),
        ("when = { time = [] }", "`time` is an empty list"),
        ("when = { time = \"Mon 9-17\" }", "`time`: `9-17` is no date, weekday, time or zone"),
        (
            "when = { time = \"Mon Mars/Utopia_Planitia\" }",
            "`time`: this machine has no time zone `Mars/Utopia_Planitia` (package tzdata)",
        ),
    ] {
        assert_eq!(messages(&with_route(keys)), [message], "{keys}");
    }
}

#[test]
fn fields_that_are_removed_before_a_route_is_chosen_are_no_conditions() {
    let removed = "Larder removes the field from requests before a route is chosen";
    for name in ["X-Forwarded-For", "x_real_ip", "Authorization", "Client-Cert"] {
        let keys = format!("when = {{ header = {{ {name} = true }} }}");
        assert_eq!(messages(&with_route(&keys)), [format!("`{name}`: {removed}")], "{name}");
    }
    assert_eq!(conditions("when = { header = \"CF-IPCountry\" }"), ["header CF-IPCountry"]);
    let auth = "basic_auth = { file = \"/etc/users\", user_field = \"X-User\" }\n\
                when = { header = \"x_user\" }\nname = \"own\"";
    assert_eq!(
        messages(&with_route(auth)),
        ["`when` of `own` looks at `x_user`, which Larder sets"]
    );
    let devices =
        "when = { header = \"x_device\" }\nname = \"own\"\nvary = { user_agent = \"device\" }";
    assert_eq!(
        messages(&with_route(devices)),
        ["`when` of `own` looks at `x_device`, which Larder sets"]
    );
}

#[test]
fn a_route_behind_one_with_fewer_conditions_is_never_reached() {
    let two = |first: &str, second: &str| {
        messages(&with_route(&format!("{first}\n[[site.route]]\n{second}")))
    };
    let narrow = "name = \"b\"\npath = \"/a/b\"\nwhen = { header = \"X-A\", cookie = \"c\" }";
    assert_eq!(two("path = \"/a/*\"", narrow), ["`b` is never reached"]);
    assert_eq!(two("when = { cookie = \"c\" }", narrow), ["`b` is never reached"]);
    assert!(two("when = { cookie = \"d\" }", narrow).is_empty());
    assert!(two(narrow, "path = \"/a/b\"").is_empty());
}

/// The rewrite of the first route, as it is shown.
fn rewrite(keys: &str) -> Option<String> {
    let (config, _) = crate::load_str(&with_route(keys), "larder.toml").expect("a configuration");
    config.sites[0].rules.routes[0].settings.rewrite.as_ref().map(ToString::to_string)
}

#[test]
fn rewrites_are_whole_or_prefixes() {
    for (keys, expected) in [
        ("path = \"/a/*\"\nrewrite = \"/b/$1\"", Some("/b/$1")),
        ("path = \"/a/*\"\nstrip_prefix = \"/a\"", Some("without /a")),
        ("path = \"/a/*\"\nadd_prefix = \"/b\"", Some("/b before it")),
        ("path = \"/a/*\"\nstrip_prefix = \"/a\"\nadd_prefix = \"/b\"", Some("/b for /a")),
        ("path = \"/a/*\"\nstrip_prefix = false", None),
    ] {
        assert_eq!(rewrite(keys).as_deref(), expected, "{keys}");
    }
    let site = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\nadd_prefix = \"/v2\"\n\
                [[site.route]]\npath = \"/a\"\n[[site.route]]\npath = \"/b\"\nadd_prefix = false\n";
    let (config, _) = crate::load_str(site, "larder.toml").expect("a configuration");
    let has = |at: usize| config.sites[0].rules.routes[at].settings.rewrite.is_some();
    assert!(has(0) && !has(1));
}

#[test]
fn a_capture_that_no_path_has_is_an_error() {
    for (keys, message) in [
        ("name = \"r\"\npath = \"/a\"\nrewrite = \"/$1\"", "`rewrite` of `r` has `$1`"),
        (
            "name = \"r\"\npath = [\"/a/*/*\", \"/b/*\"]\nredirect = \"/$2\"",
            "`redirect` of `r` has `$2`",
        ),
        (
            "path = \"/a/*\"\nrewrite = \"/b\"\nstrip_prefix = \"/a\"",
            "`rewrite` has the whole URL: no prefix goes",
        ),
        (
            "path = \"/a/*\"\nstrip_prefix = \"a/\"",
            "`strip_prefix`: a prefix is a path without a slash at its end: `/api`",
        ),
        (
            "path = \"/a/*\"\nredirect = \"https://$1.test/\"",
            "`redirect`: the host may not come from the path: name it, or use `$host`",
        ),
    ] {
        assert_eq!(messages(&with_route(keys)), [message], "{keys}");
    }
    let site = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\nrewrite = \"/$1\"\n";
    assert_eq!(messages(site), ["`rewrite` has `$1`, and a site has no `path`"]);
}

#[test]
fn a_file_of_redirects_answers_some_requests_and_a_target_all() {
    let of = |keys: &str| {
        let text = format!("[[site]]\nhost = \"a\"\n{keys}\n");
        let (config, _) = crate::load_str(&text, "larder.toml").map_err(|found| {
            found.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
        })?;
        let settings = &config.sites[0].rules.settings;
        Ok((settings.redirects.is_some(), settings.answer.is_some()))
    };
    let refused = |message: &str| Err(vec![message.to_owned()]);
    for (keys, expected) in [
        ("origin = \"http://b\"\nredirect = { map = \"/m\" }", Ok((true, false))),
        ("redirect = { map = \"/m\", to = \"/x\" }", Ok((true, true))),
        ("redirect = { map = \"/m\" }\nrespond = { status = 410 }", Ok((true, true))),
        ("origin = \"http://b\"\nredirect = false", Ok((false, false))),
        ("redirect = { map = \"/m\" }", refused("a site without origin")),
        ("redirect = { status = 301 }", refused("a redirect without `to` or `map`")),
        (
            "redirect = { map = \"/m\", to = \"/x\" }\nrespond = { status = 410 }",
            refused("`redirect` and `respond` cannot both answer"),
        ),
        (
            "origin = \"http://b\"\nredirect = { map = \"/m\", status = 304 }",
            refused("`status`: a redirect's status is 301, 302, 303, 307 or 308"),
        ),
        (
            "origin = \"http://b\"\nredirect = { map = \"m\" }",
            refused("`map` takes an absolute path"),
        ),
    ] {
        assert_eq!(of(keys), expected, "{keys}");
    }
}

#[test]
fn a_sticky_cookie_is_of_the_origin_s_servers() {
    let with = |origin: &str| {
        format!(
            "[[origin]]\nname = \"o\"\n{origin}\n[[site]]\nhost = \"a\"\norigin = \"o\"\n\
             [[site.route]]\npath = \"/b\"\norigin = \"http://c\"\n"
        )
    };
    let two = "servers = [\"http://a\", { url = \"http://b\", id = \"x\" }]";
    let good = with(&format!("sticky = \"srv\"\n{two}"));
    let (config, warnings) = crate::load_str(&good, "larder.toml").expect("a configuration");
    assert!(warnings.is_empty());
    let rules = &config.sites[0].rules;
    let sticky = rules.settings.sticky.as_ref().expect("a cookie");
    let servers: Vec<&str> = sticky.servers.iter().map(|id| &**id).collect();
    assert_eq!((&*sticky.name, &servers[..]), ("srv", &["1", "x"][..]));
    assert!(rules.routes[0].settings.sticky.is_none(), "another origin");
    for (keys, message) in [
        ("sticky = \"a b\"\nservers = \"http://a\"", "a cookie's name has at most 64 letters"),
        ("sticky = \"s\"\nservers = \"http://a\"", "`sticky` of an origin with one server"),
        (
            "sticky = \"s\"\nservers = [{ url = \"http://a\", id = \"2\" }, \"http://b\"]",
            "two servers have the `id` 2",
        ),
        ("servers = [{ url = \"http://a\", id = \"a;b\" }]", "an `id` has at most 64 letters"),
    ] {
        let found = messages(&with(keys)).join("\n");
        assert!(found.contains(message), "{keys}: {found}");
    }
    let attributes = |more: &str| {
        messages(&with(&format!("sticky = {{ name = \"s\", {more} }}\n{two}"))).join("\n")
    };
    assert!(attributes("same_site = \"none\"").contains("without `secure = true`"));
    assert!(attributes("path = \"/; Domain=b\"").contains("`path` has no blanks"));
    assert_eq!(attributes("same_site = \"none\", secure = true"), "");
}

#[test]
fn no_hits_are_compared_beside_a_vcl() {
    for (key, name) in [("mode = \"observe\"", "mode"), ("cache.verify = \"1%\"", "cache.verify")] {
        let file = format!(
            "[[site]]\nhost = \"a\"\norigin = \"http://c\"\nvcl = \"/etc/extra.vcl\"\n{key}\n"
        );
        let found = crate::load_str(&file, "larder.toml").expect_err(key);
        let message = format!("`{name}` is not for a site with a VCL");
        assert!(found.iter().any(|one| one.message == message), "{found:?}");
    }
}

#[test]
fn a_share_of_hits_is_compared_where_it_is_asked_for() {
    let file = |value: &str| {
        format!(
            "[[site]]\nhost = \"a\"\norigin = \"http://c\"\ncache.verify = {value}\n\
             [[site.route]]\npath = \"/x\"\ncache.verify = false\n"
        )
    };
    for (value, one_in) in [("\"0.5%\"", 200), ("\"100 %\"", 1), ("\"30%\"", 3), ("false", 0)] {
        let (config, _) = crate::load_str(&file(value), "larder.toml").expect(value);
        let rules = &config.sites[0].rules;
        let route = &rules.routes[0].settings;
        let shares = (rules.settings.verify_one_in, route.verify_one_in);
        assert_eq!(shares, (Some(one_in), Some(0)), "{value}");
    }
    for value in ["true", "0.5", "\"0.5\"", "\"0%\"", "\"101%\"", "\"NaN%\"", "\"-1%\"", "\"%\""] {
        let found = crate::load_str(&file(value), "larder.toml").expect_err(value);
        let message = "`verify` takes a percentage, or false";
        assert!(found.iter().any(|one| one.message.contains(message)), "{value}: {found:?}");
    }
}

#[test]
fn a_mirror_is_another_origin_that_speaks_http() {
    let with = |keys: &str| {
        format!(
            "[[origin]]\nname = \"php\"\nservers = \"fastcgi://b\"\nroot = \"/srv\"\n\
             no_scripts = false\n[[site]]\nhost = \"a\"\norigin = \"http://c\"\n{keys}\n"
        )
    };
    let mirrors = |keys: &str| {
        let (config, _) = crate::load_str(&with(keys), "larder.toml").expect("a configuration");
        let rules = &config.sites[0].rules;
        let name = |settings: &policy::rules::Settings| {
            settings.mirror.map(|at| config.origins[at].name.clone()).unwrap_or_default()
        };
        let routes: Vec<String> = rules.routes.iter().map(|route| name(&route.settings)).collect();
        (name(&rules.settings), routes.concat())
    };
    let route = "[[site.route]]\npath = \"/x\"";
    let of = |site: &str, route: &str| (site.to_owned(), route.to_owned());
    let mirror = "mirror = \"http://d\"";
    assert_eq!(mirrors(&format!("{mirror}\n{route}")), of("http://d", "http://d"));
    assert_eq!(mirrors(&format!("{mirror}\n{route}\nmirror = false")), of("http://d", ""));
    let own = format!("{mirror}\n{route}\norigin = \"http://d\"");
    assert_eq!(mirrors(&own), of("http://d", ""));
    for (keys, message) in [
        ("mirror = \"http://c\"", "`mirror` is the origin itself"),
        ("mirror = \"php\"", "a mirror speaks HTTP, not FastCGI"),
        ("mirror = \"nope\"", "no origin is called `nope`"),
    ] {
        let found = messages(&with(keys)).join("\n");
        assert!(found.contains(message), "{keys}: {found}");
    }
}

#[test]
fn countries_are_two_letters_and_need_a_database() {
    let with = |top: &str, when: &str| {
        let keys = format!("when = {when}");
        format!("{top}\n{}", with_route(&keys))
    };
    let geoip = "geoip = \"/var/lib/GeoIP/GeoLite2-Country.mmdb\"";
    let when = "{ country = [\"de\", \"AT\"], not = { country = \"CH\" } }";
    let (config, warnings) =
        crate::load_str(&with(geoip, when), "larder.toml").expect("a configuration");
    assert!(warnings.is_empty() && config.geoip.is_some());
    let route = &config.sites[0].rules.routes[0];
    let said: Vec<String> = route.scope.when.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["country DE or AT", "not (country CH)"]);
    for (top, when, message) in [
        ("", "{ country = \"DE\" }", "is for countries, without `geoip`"),
        ("", "{ not = { country = \"DE\" } }", "is for countries, without `geoip`"),
        (geoip, "{ country = \"Germany\" }", "`Germany` is no country: write two letters"),
        (geoip, "{ country = [] }", "`country` is an empty list"),
        ("geoip = \"a.mmdb\"", "{ country = \"DE\" }", "`geoip` takes an absolute path"),
    ] {
        let found = messages(&with(top, when)).join("\n");
        assert!(found.contains(message), "{when}: {found}");
    }
}
