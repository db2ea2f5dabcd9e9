//! Spellings of paths that origins interpret differently.

use super::*;
use crate::acl::Net;

#[test]
fn a_rule_holds_for_every_path_that_an_origin_may_take_for_its_own() {
    let deny = vec![parse_net("0.0.0.0/0").expect("a block"), Net::Unix];
    let routes = vec![
        route("/admin*", Settings { deny, ..Settings::default() }),
        route("/account", Settings { cache: false, ..Settings::default() }),
        route("*.js", Settings::default()),
    ];
    let settings = Settings {
        bypass: vec![Bypass::Path(PathPattern::parse("/cart").expect("a pattern"))],
        ..Settings::default()
    };
    let rules = SiteRules { routes, settings, ..SiteRules::default() };
    let opaque = Declared::new(SiteRules { opaque_spellings: true, ..rules.clone() });
    let guarded = Declared::new(rules);
    for path in [
        "/admin",
        "/admin;x",
        "/x/..;/admin",
        "/;/admin",
        "/admin%5cx",
        "/static/..%5Cadmin",
        "/;a=b/admin/x.js",
    ] {
        assert_eq!(ask(&guarded, get(path)).status(), Some(403), "{path}");
    }
    for path in ["/\\admin", "/static/..\\admin", "/a\\b"] {
        for policy in [&guarded, &opaque] {
            assert_eq!(ask(policy, get(path)).status(), Some(400), "{path}");
        }
    }
    for (path, rule) in [
        ("/account;x", "cache = false"),
        ("/cart;jsessionid=1", "bypass path /cart"),
        ("/app.js;jsessionid=1", "cache"),
        ("/list;page=2", "cache"),
        ("/a%5cb", "cache"),
    ] {
        assert_eq!(ask(&guarded, get(path)).rule, rule, "{path}");
    }
    for path in ["/;/admin", "/account;x", "/cart;jsessionid=1", "/static/..%5cadmin"] {
        assert_eq!(ask(&opaque, get(path)).rule, "cache", "{path}");
    }
    assert_eq!(ask(&opaque, get("/admin;x")).status(), Some(403), "the pattern itself has it");
}
