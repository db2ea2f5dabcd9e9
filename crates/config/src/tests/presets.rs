//! Tests of presets: their files, how they join a site's own rules, and messages about conflicts.

use insta::assert_snapshot;
use policy::rules::{Bypass, Settings};

use super::*;
use crate::preset::PRESETS;

/// A site with `preset`, as TOML, and more lines.
fn site(preset: &str, more: &str) -> String {
    format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\npreset = {preset}\n{more}")
}

fn reasons(settings: &Settings) -> Vec<String> {
    settings.bypass.iter().map(ToString::to_string).collect()
}

fn ttl(settings: &Settings, status: u16) -> Option<u64> {
    let status = Status::new(status).expect("three digits");
    settings.ttl.iter().find(|(of, _)| of.matches(status)).map(|(_, ms)| *ms)
}

#[test]
fn every_preset_is_read_without_a_word_and_says_what_it_is_for() {
    for preset in PRESETS {
        let config = load(&site(&format!("{:?}", preset.name), ""));
        assert_eq!(config.sites[0].presets, [preset.name]);
        assert!(preset.about().ends_with('.') && preset.about().len() < 110, "{}", preset.about());
        let names = config.sites[0].rules.routes.iter().map(|route| route.name.as_str());
        assert!(names.into_iter().all(|name| name.starts_with(preset.name)), "{}", preset.name);
        let comments = preset.text.lines().filter(|line| line.trim_start().starts_with('#'));
        assert!(comments.count() > 10, "{}", preset.name);
    }
}

#[test]
fn the_scripts_of_an_application_stay_out_of_folders_that_it_writes_to() {
    let origin = |name: &str, more: &str| {
        format!(
            "[[origin]]\nname = \"{name}\"\nservers = \"fastcgi://127.0.0.1\"\nroot = \"/srv\"\n{more}\n"
        )
    };
    for preset in ["wordpress", "drupal", "magento", "mediawiki"] {
        let text = origin("php", "no_scripts = \"/own\"")
            + &origin("other", "")
            + &origin("open", "no_scripts = false")
            + &format!("[[site]]\nhost = \"*\"\norigin = \"php\"\npreset = {preset:?}\n")
            + "[[site.route]]\npath = \"/x/*\"\norigin = \"other\"\n"
            + "[[site.route]]\npath = \"/y/*\"\norigin = \"open\"\n";
        let config = load(&text);
        let barred = |at: usize| {
            let scripts = config.origins[at].scripts.as_ref().expect("scripts");
            scripts.rules.barred.clone()
        };
        assert_eq!(barred(0)[0], "/own", "its own stay");
        assert_eq!(barred(0)[1..], barred(1)[..], "{preset}: an origin of a route has them too");
        assert!(barred(1).len() > 3 && barred(2).is_empty(), "{preset}: {:?}", barred(1));
    }
}

#[test]
fn what_the_site_says_wins_and_its_routes_come_first() {
    let own = "cache = { ttl = { 200 = \"5s\" } }\nbypass = { cookie = \"vip\" }\n\
               [[site.route]]\npath = \"/x/*\"\n[[site.route]]\npath = \"/y/*\"\nbypass = false\n\
               [[site.route]]\npath = \"/z/*\"\nbypass = { query = false }\n";
    let config = load(&site("[\"wordpress\", \"microcache\"]", own));
    let rules = &config.sites[0].rules;
    assert_eq!(ttl(&rules.settings, 200), Some(5000));
    // The later of two presets wins, also if the site sets nothing.
    assert_eq!((ttl(&rules.settings, 404), rules.settings.heuristic_ms), (Some(1000), Some(0)));
    let all = reasons(&rules.settings);
    for one in ["cookie wordpress_*", "cookie JSESSIONID*", "cookie vip", "header Authorization"] {
        assert_eq!(all.iter().filter(|reason| *reason == one).count(), 1, "{one}");
    }
    let names: Vec<_> = rules.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names[..4], ["/x/*", "/y/*", "/z/*", "wordpress: php"]);
    assert_eq!(reasons(&rules.routes[0].settings), all);
    assert!(reasons(&rules.routes[1].settings).is_empty());
    let of_z = &rules.routes[2].settings.bypass;
    assert!(!of_z.iter().any(|b| matches!(b, Bypass::AnyQuery)) && of_z.len() == all.len() - 1);
    let last = &rules.routes.last().expect("routes").settings;
    assert!(reasons(last).contains(&"cookie vip".to_owned()), "a preset's route has the site's");
}

#[test]
fn a_preset_that_is_not_there_or_twice_is_named() {
    assert_snapshot!(said(&site("[\"wordpres\", \"static\", \"static\", \"joomla\"]", "")), @r#"
    error: no preset is called `wordpres`
     --> larder.toml:4:11
      |
    4 | preset = ["wordpres", "static", "static", "joomla"]
      |           ^^^^^^^^^^
      |
      = help: did you mean "wordpress"?

    error: preset `static` twice
     --> larder.toml:4:33
      |
    4 | preset = ["wordpres", "static", "static", "joomla"]
      |                       --------  ^^^^^^^^
      |                       |
      |                       here for the first time

    error: no preset is called `joomla`
     --> larder.toml:4:43
      |
    4 | preset = ["wordpres", "static", "static", "joomla"]
      |                                           ^^^^^^^^
      |
      = help: presets are wordpress, drupal, magento, mediawiki, static, microcache, crawlers
    "#);
}

#[test]
fn what_takes_a_preset_s_protection_away_is_shown() {
    let strip = "cookies = { strip = [\"theme\", \"wordpress_*\"] }\nquery = { ignore = true }\n";
    assert_snapshot!(said(&site("\"wordpress\"", strip)), @r#"
    warning: this removes `wordpress_*` before `bypass` looks for it
     --> larder.toml:5:31
      |
    5 | cookies = { strip = ["theme", "wordpress_*"] }
      |                               ^^^^^^^^^^^^^
      |
      = help: preset `wordpress`, line 61, passes such requests; here the cache answers them

    warning: this removes the query before `bypass` looks for it
     --> larder.toml:6:20
      |
    6 | query = { ignore = true }
      |                    ^^^^
      |
      = help: preset `wordpress`, line 89, passes such requests; here the cache answers them
    "#);
    let undone = "profile = \"rfc\"\nbypass = false\n";
    assert_snapshot!(said(&site("\"drupal\"", undone)), @r#"
    error: preset `drupal` counts on the `safe` profile
     --> larder.toml:4:10
      |
    4 | preset = "drupal"
      |          ^^^^^^^^
    5 | profile = "rfc"
      |           ----- this is another
      |
      = help: in `rfc` no cookie makes a request personal; write `profile = "safe"` in [[site]]

    error: `bypass = false` takes away what a preset passes
     --> larder.toml:6:10
      |
    4 | preset = "drupal"
      |          -------- the preset
    5 | profile = "rfc"
    6 | bypass = false
      |          ^^^^^
      |
      = help: write it in a [[site.route]], for the paths it is for
    "#);
    let answers = "[[site]]\nhost = \"*\"\npreset = \"static\"\nrespond = { status = 200 }\n";
    assert_snapshot!(said(answers), @r#"
    error: a preset in a site that has no origin
     --> larder.toml:3:10
      |
    3 | preset = "static"
      |          ^^^^^^^^
      |
      = help: a site that answers everything itself needs no preset
    "#);
}

#[test]
fn a_mistake_in_a_preset_s_file_is_shown_there() {
    let text =
        "# Broken.\nhost = \"x\"\n[bypass]\npath = \"~ (\"\n[[route]]\npath = 7\norigin = \"x\"\n";
    assert_snapshot!(crate::parse::preset_diagnostics("broken", text), @r#"
    error: unknown key `host` in a preset
     --> presets/broken.toml:2:1
      |
    2 | host = "x"
      | ^^^^
      |
      = help: `host` stands in [[origin]]

    error: `path`: unclosed group
     --> presets/broken.toml:4:8
      |
    4 | path = "~ ("
      |        ^^^^^

    error: unknown key `origin` in [[route]]
     --> presets/broken.toml:7:1
      |
    7 | origin = "x"
      | ^^^^^^
      |
      = help: `origin` stands at the top of the file

    error: `path` takes a string or a list of strings, not an integer
     --> presets/broken.toml:6:8
      |
    6 | path = 7
      |        ^
    "#);
}

#[test]
fn rules_and_settings_know_the_line_they_are_written_on() {
    let own = "cache = { ttl = { 200 = \"5s\" } }\nbypass = { cookie = [\n\"vip\",\n\"vop\"],\n\
               query = { a = \"1\" } }\n[[site.route]]\npath = \"/x/*\"\n";
    let text = site("\"wordpress\"", own);
    let config = load(&text);
    let settings = &config.sites[0].rules.settings;
    let place = |name: &str| settings.places.of(name).map(ToString::to_string).unwrap_or_default();
    let line = |wanted: &str| {
        text.lines().position(|line| line.contains(wanted)).expect("it is there") + 1
    };
    for (name, wanted) in [
        ("host", "host ="),
        ("origin", "origin ="),
        ("cache.ttl.200", "ttl ="),
        ("bypass cookie vip", "\"vip\""),
        ("bypass cookie vop", "\"vop\""),
        ("bypass query a=1", "query ="),
    ] {
        assert_eq!(place(name), format!("larder.toml:{}", line(wanted)), "{name}");
    }
    let short = text.replace("{ 200 = \"5s\" }", "\"5s\"");
    let short = load(&short);
    let short = &short.sites[0].rules.settings.places;
    assert_eq!(short.of("cache.ttl.302"), settings.places.of("cache.ttl.200"));
    let preset = crate::preset::find("wordpress").expect("a preset");
    let of_preset = |wanted: &str| {
        let at = preset.text.lines().position(|line| line.contains(wanted));
        format!("preset wordpress: line {}", at.expect("it is there") + 1)
    };
    assert_eq!(place("bypass cookie wordpress_*"), of_preset("\"wordpress_*\""));
    assert_eq!(place("bypass header X-WP-Nonce"), of_preset("X-WP-Nonce = true"));
    assert_eq!(place("cache.stale_while_revalidate"), of_preset("stale_while_revalidate ="));
    let route = &config.sites[0].rules.routes[0].settings.places;
    assert_eq!(route.of("route").map(|p| &**p), Some(&*format!("larder.toml:{}", line("/x/*"))));
    assert_eq!(route.of("bypass cookie vip"), settings.places.of("bypass cookie vip"));
}

#[test]
fn a_preset_s_time_for_heads_yields_to_the_origin_s_own_and_to_the_site_s() {
    let times = |origin: &str, own: &str| {
        let text = format!(
            "[[origin]]\nname = \"app\"\nservers = \"http://127.0.0.1:1\"\n{origin}\n\
             [[site]]\nhost = \"*\"\norigin = \"app\"\npreset = \"magento\"\n{own}\n\
             [[site.route]]\npath = \"/x/*\"\n"
        );
        let rules = load(&text).sites.remove(0).rules;
        let of_routes: Vec<_> = rules.routes.iter().map(|r| r.settings.first_byte_ms).collect();
        assert!(of_routes.iter().all(|ms| *ms == rules.settings.first_byte_ms), "{of_routes:?}");
        rules.settings.first_byte_ms
    };
    assert_eq!(times("", ""), Some(600_000));
    assert_eq!(times("first_byte_timeout = \"10s\"", ""), None);
    assert_eq!(times("", "first_byte_timeout = \"20s\""), Some(20_000));
    assert_eq!(times("first_byte_timeout = \"10s\"", "first_byte_timeout = \"20s\""), Some(20_000));
    let wordpress = load(&site("\"wordpress\"", "")).sites.remove(0).rules;
    assert_eq!(wordpress.settings.first_byte_ms, None);
    let php = wordpress.routes.iter().find(|route| route.name == "wordpress: php");
    assert_eq!(php.expect("a route").settings.first_byte_ms, Some(600_000));
}

#[test]
fn pages_of_a_preset_are_put_together_unless_the_site_says_otherwise() {
    let esi = |more: &str| load(&site("\"magento\"", more)).sites.remove(0).includes.esi;
    assert_eq!(esi(""), policy::EsiPages::Html);
    assert_eq!(esi("includes = { ssi = true }"), policy::EsiPages::Html);
    assert_eq!(esi("includes = { esi = false }"), policy::EsiPages::Never);
    let none = load(&site("\"drupal\"", "")).sites.remove(0).includes.esi;
    assert_eq!(none, policy::EsiPages::Announced);
}
