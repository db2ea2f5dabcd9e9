//! The list of crawlers, and what sites set for whole classes of clients.

use message::ClientClass;
use policy::ServeMode;

use super::messages;

const SITE: &str = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n";

/// The configuration of a site with these keys.
fn config(keys: &str) -> crate::Config {
    let loaded = crate::load_str(&format!("{SITE}{keys}\n"), "larder.toml");
    loaded.map_err(|errors| crate::render(&errors, false)).expect("a configuration").0
}

#[test]
fn classes_are_a_condition_of_routes() {
    let keys = "[[site.route]]\nserve = \"stored\"\n\
                when = { class = [\"ai\", \"tool\"], not = { class = \"human\" } }";
    let config = config(keys);
    let route = &config.sites[0].rules.routes[0];
    let when: Vec<_> = route.scope.when.iter().map(ToString::to_string).collect();
    assert_eq!(when, ["class ai or tool", "not (class human)"]);
    assert_eq!(route.settings.serve, ServeMode::Stored);
    assert_eq!(config.sites[0].rules.settings.serve, ServeMode::All);
    assert!(config.sites[0].rules.ask_for_class());
}

#[test]
fn the_short_form_divides_the_sites_routes() {
    let config = config(
        "[site.crawlers]\nrobots = true\nrobots_lines = [\"Sitemap: https://a.example/s.xml\"]\n\
         ai = { serve = \"stored\", rate = { requests = \"1/s\" } }\n\
         tool = { respond = { status = 403 } }\n[[site.route]]\npath = \"/a\"\ncache = false",
    );
    let rules = &config.sites[0].rules;
    let names: Vec<_> = rules.routes.iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["/a (ai)", "/a (tool)", "/a", "crawlers: ai", "crawlers: tool"]);
    let ai = &rules.routes[0].settings;
    assert!(!ai.cache && ai.serve == ServeMode::Stored && ai.rate.is_some());
    assert_eq!(rules.crawlers.kept_out(), [ClientClass::Tool]);
    assert_eq!(rules.crawlers.robots_lines.len(), 1);
    let settings: Vec<_> = rules.routes.iter().filter_map(|r| r.settings.rate.as_ref()).collect();
    // One count for the class, whatever the route.
    assert!(settings.len() == 2 && std::sync::Arc::ptr_eq(settings[0], settings[1]));
}

#[test]
fn a_sites_class_replaces_its_presets() {
    let config =
        config("preset = \"crawlers\"\n[site.crawlers]\nai = { respond = { status = 403 } }");
    let rules = &config.sites[0].rules;
    assert_eq!(rules.crawlers.kept_out(), [ClientClass::Ai]);
    let of = |class| rules.crawlers.classes.iter().filter(|own| own.class == class).count();
    assert_eq!((of(ClientClass::Ai), of(ClientClass::Tool)), (1, 1));
}

#[test]
fn the_list_is_for_all_sites() {
    let config = config(
        "[crawlers]\nfile = \"/etc/larder/crawlers.txt\"\nbuilt_in = false\ndns = false\n\
         verify = { Googlebot = \"/etc/larder/googlebot.json\" }",
    );
    let own = &config.crawlers;
    assert!(!own.built_in && !own.dns && own.file.is_some());
    assert_eq!(own.verify[0].0, "Googlebot");
    assert_eq!(own.verify[0].1.path.to_str(), Some("/etc/larder/googlebot.json"));
}

#[test]
fn agents_that_sign_are_named_by_their_origin() {
    let config = config(
        "[crawlers.signatures]\nChatGPT-User = \"https://ChatGPT.com/\"\n\
         Mine = { agent = \"https://a.example:8443\", keys = \"/etc/larder/mine.json\" }\n\
         Other = { agent = \"https://b.example\", ca = \"/etc/larder/ca.pem\" }",
    );
    let own = &config.crawlers.signatures;
    let agents: Vec<_> = own.iter().map(|own| (&*own.name, own.agent.to_string())).collect();
    let expected = [
        ("ChatGPT-User", "https://chatgpt.com"),
        ("Mine", "https://a.example:8443"),
        ("Other", "https://b.example"),
    ];
    assert_eq!(agents, expected.map(|(name, agent)| (name, agent.to_owned())));
    assert!(own[0].keys.is_none() && own[0].ca.is_none());
    assert!(own[1].keys.is_some() && own[2].ca.is_some());
}

#[test]
fn faults_are_named() {
    for (keys, message) in [
        ("[crawlers]\nbuilt_in = false", "`built_in = false` without `file`"),
        (
            "[crawlers]\nsignatures = { A = \"http://a.example\" }",
            "`http://a.example` is no origin of an agent",
        ),
        ("[crawlers]\nsignatures = { A = { keys = \"/a\" } }", "a signer needs `agent`"),
        (
            "[crawlers]\nsignatures = { A = \"https://a.b\", B = \"https://A.b\" }",
            "`B` and `A` have the agent https://a.b",
        ),
        (
            "[site.crawlers]\nrobots_lines = \"Sitemap: x\"",
            "`robots_lines` without `robots = true`",
        ),
        (
            "[site.crawlers]\nrobots = true\nrobots_lines = \"a\\nb\"",
            "`robots_lines` has one line in each string",
        ),
        (
            "[site.crawlers]\nrobots = true\n[[site.route]]\npath = \"/robots.txt\"\n\
             respond = { body = \"x\" }",
            "`robots` and the route `/robots.txt` both answer /robots.txt",
        ),
        ("[[site.route]]\nwhen = { class = [] }", "`class` is an empty list"),
    ] {
        assert_eq!(messages(&format!("{SITE}{keys}\n")), [message], "{keys}");
    }
    let wrong = messages(&format!("{SITE}[[site.route]]\nwhen = {{ class = \"robot\" }}\n"));
    assert!(wrong[0].contains("human") && wrong[0].contains("unknown"), "{wrong:?}");
}
