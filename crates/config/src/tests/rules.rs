//! Conditions of routes.

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

/// The messages about such a file, each in one line.
fn messages(text: &str) -> Vec<String> {
    let found = match crate::load_str(text, "larder.toml") {
        Ok((_, warnings)) => warnings,
        Err(errors) => errors,
    };
    found.into_iter().map(|problem| problem.message).collect()
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
        ("when = { user_agent = \"\" }", "`user_agent`: not a name that can occur"),
        ("when = { user_agent = [\"a\", \"~ (\"] }", "`user_agent`: unclosed group"),
        ("when = { cookie = { a = \"~ (\" } }", "`cookie`: unclosed group"),
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
