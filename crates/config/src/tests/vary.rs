//! Fields that are brought into few forms.

use policy::vary::{DeviceClasses, VaryRules};

/// A site with these lines behind it.
fn with(lines: &str) -> String {
    format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n{lines}\n")
}

/// The rules of the site and of its first route.
fn rules(lines: &str) -> [VaryRules; 2] {
    let (config, _) = crate::load_str(&with(lines), "larder.toml").expect("a configuration");
    let site = &config.sites[0].rules;
    let route = site.routes.first().map(|route| route.settings.vary.clone());
    [site.settings.vary.clone(), route.unwrap_or_default()]
}

/// The messages about such a site, each in one line.
fn messages(lines: &str) -> Vec<String> {
    super::messages(&with(lines))
}

#[test]
fn fields_and_cookies_are_read() {
    let [own, _] = rules(
        "[site.vary]\naccept_language = [\"en\", \"pt-BR\"]\naccept = \"markdown\"\n\
         user_agent = \"device\"\ncookie = { currency = [\"EUR\", \"USD\"] }",
    );
    let tags = own.languages.as_ref().expect("languages").iter().collect::<Vec<_>>();
    assert_eq!(tags, [&b"en"[..], b"pt-BR"]);
    assert_eq!(own.media.as_ref().expect("types").to_string(), "text/html, text/markdown");
    assert_eq!(own.devices, Some(DeviceClasses::Two));
    assert_eq!(own.cookies[0].name, "currency");
    assert_eq!(own.cookies[0].values.as_deref(), Some(&["EUR".to_owned(), "USD".to_owned()][..]));
    let [own, _] = rules("vary = { cookie = [\"a\", \"b\", \"a\"], accept = \"images\" }");
    let names: Vec<_> = own.cookies.iter().map(|own| (&*own.name, own.values.is_none())).collect();
    assert_eq!(names, [("a", true), ("b", true)]);
    assert_eq!(own.media.expect("images").to_string(), "images");
    for (list, classes) in [
        ("[\"mobile\", \"desktop\"]", Some(DeviceClasses::Two)),
        ("[\"desktop\", \"tablet\", \"mobile\"]", Some(DeviceClasses::Three)),
        ("false", None),
    ] {
        assert_eq!(rules(&format!("vary = {{ user_agent = {list} }}"))[0].devices, classes);
    }
}

#[test]
fn a_route_changes_what_it_names_and_may_drop_all() {
    let site = "vary = { accept_language = [\"en\", \"de\"], user_agent = \"device\" }\n\
                [[site.route]]\npath = \"/a/*\"\n";
    let [own, route] =
        rules(&format!("{site}vary = {{ user_agent = false, accept = \"images\" }}"));
    assert_eq!(route.languages, own.languages);
    assert!(route.devices.is_none() && route.media.is_some() && own.media.is_none());
    let [own, route] = rules(&format!("{site}vary = false"));
    assert!(route.is_empty() && !own.is_empty());
    assert_eq!(rules(site)[1], own);
}

#[test]
fn wrong_values_are_named() {
    for (value, message) in [
        (
            "accept_language = [\"en\"]",
            "`accept_language`: lists 2 to 32 languages, the default first",
        ),
        (
            "accept_language = [\"en\", \"de_AT\"]",
            "`accept_language`: \"de_AT\" is not a language tag such as \"de\" or \"pt-BR\"",
        ),
        ("accept_language = [\"en\", \"EN\"]", "`accept_language`: \"EN\" is listed twice"),
        (
            "accept = \"webp\"",
            "`accept` takes \"images\", \"markdown\", a list of media types, or false",
        ),
        (
            "accept = [\"text/html\", \"image/webp\"]",
            "`accept`: \"image/webp\" is an image: write `accept = \"images\"` in a route for images",
        ),
        (
            "accept = [\"text/html\", \"json\"]",
            "`accept`: \"json\" is not a media type such as \"text/html\", in lower case",
        ),
        ("user_agent = [\"phone\"]", "`user_agent` names no known classes of devices"),
        ("user_agent = \"mobile\"", "`user_agent` takes \"device\", a list, or false"),
        ("cookie = [\"a*\"]", "`a*` is not the name of a cookie"),
        ("cookie = { a = [] }", "the cookie `a` may have no value"),
        ("cookie = { a = [\"x;y\"] }", "\"x;y\" is not the value of a cookie"),
        ("accept_charset = []", "unknown key `accept_charset`"),
    ] {
        let found = messages(&format!("[site.vary]\n{value}"));
        assert!(found.len() == 1 && found[0].starts_with(message), "{value}: {found:?}");
    }
}
