//! Paths: the rules for them, and the scripts that run for them. `/a.php/b` is run by `/a.php`.

use testkit::origin::{Script, ScriptedOrigin};

use super::stage;
use crate::support::disked::Policy;
use crate::support::folder::Folder;
use crate::support::{is_hit, scripts};

/// Paths that application servers take for one below a script of this name.
fn below(script: &str) -> [String; 6] {
    let stem = script.trim_start_matches('/');
    [
        format!("{script}/"),
        format!("{script}/x"),
        format!("{script}/x.css"),
        format!("{script}%2fx"),
        format!("/a/..{script}//x"),
        format!("/%{:02x}{}/x.css", stem.as_bytes()[0], &stem[1..]),
    ]
}

/// Routes with every kind of restriction.
fn routes(keeper: &ScriptedOrigin, folder: &Folder) -> String {
    // `htpasswd -nbB -C 5 ann secret`.
    folder.file("users", "ann:$2y$05$pirA/ZQzb4TZXyVzoFnxVO9xpzbhsxFvsySVXQE3G/voezCDT78bO\n");
    let users = folder.path().join("users");
    let route = |path: &str, rule: &str| format!("[[site.route]]\npath = \"{path}\"\n{rule}\n");
    let keeper = keeper.addr();
    [
        route("/wp-login.php", &format!("basic_auth = {{ file = \"{}\" }}", users.display())),
        route(
            "/word.php",
            &format!("forward_auth = {{ origin = \"http://{keeper}\", path = \"/v\" }}"),
        ),
        route("/denied.php", "deny = [\"127.0.0.0/8\"]"),
        route("/allowed.php", "allow = [\"192.0.2.0/24\"]"),
        route("/answered.php", "respond = { status = 410 }"),
        route("/live.php", "cache = false"),
        route("/often.php", "rate = { requests = \"1/h\" }"),
        route("*.css", "cache = { ttl = { 200 = \"1h\" } }"),
    ]
    .concat()
}

/// The status of each of the paths below a script, but for those rules that count requests.
const GUARDED: [(&str, u16); 5] = [
    ("/wp-login.php", 401),
    ("/word.php", 401),
    ("/denied.php", 403),
    ("/allowed.php", 403),
    ("/answered.php", 410),
];

async fn keeper() -> ScriptedOrigin {
    let keeper = ScriptedOrigin::start().await.expect("an origin");
    keeper.otherwise(Script::respond("HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"));
    keeper
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_a_script_is_under_its_rules() {
    let (folder, keeper) = (Folder::new(), keeper().await);
    let stage = scripts::Stage::start("", &routes(&keeper, &folder)).await;
    for (script, _) in GUARDED {
        stage.root.file(script.trim_start_matches('/'), "<?php");
    }
    for script in ["live.php", "often.php", "free.php"] {
        stage.root.file(script, "<?php");
    }
    for (script, status) in GUARDED {
        for target in [script.to_owned()].into_iter().chain(below(script)) {
            assert_eq!(stage.get(&target).await.status, status, "{target}");
        }
    }
    assert_eq!(stage.app.asked().len(), 0, "nothing has run");
    for target in below("/live.php") {
        for _ in 0..2 {
            assert!(!is_hit(&stage.get(&target).await), "{target}");
        }
    }
    assert_eq!(stage.get("/often.php/0").await.status, 200);
    for target in ["/often.php/1", "/often.php%2f2", "/often.php/x.css", "/often.php"] {
        assert_eq!(stage.get(target).await.status, 429, "{target}");
    }
    assert_eq!(stage.get("/free.php/x").await.status, 200);
    assert_eq!(stage.app.last().param("PATH_INFO"), "/x");
}

#[tokio::test(flavor = "multi_thread")]
async fn before_other_servers_it_is_the_same_unless_a_site_says_otherwise() {
    let (folder, keeper) = (Folder::new(), keeper().await);
    for guards in [true, false] {
        let site = format!("guard_spellings = {guards}\n{}", routes(&keeper, &folder));
        let stage = stage(Policy::Declared, &folder, "", &site).await;
        stage.origin.otherwise(Script::cacheable("page"));
        for (script, status) in GUARDED {
            for target in below(script) {
                let expected = if guards { status } else { 200 };
                assert_eq!(stage.get(&target).await.status, expected, "{target} {guards}");
            }
        }
        let target = "/live.php/x.css";
        stage.get(target).await;
        assert_eq!(is_hit(&stage.get(target).await), !guards, "{guards}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_for_what_follows_a_script_is_for_that() {
    let folder = Folder::new();
    folder.file("users", "ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=\n");
    let users = folder.path().join("users");
    let site = format!(
        "basic_auth = {{ file = \"{}\" }}\n[[site.route]]\npath = \"/index.php/open/*\"\n\
         basic_auth = false\n",
        users.display()
    );
    let stage = scripts::Stage::start("", &site).await;
    for (target, status) in [
        ("/index.php/open/a.css", 200),
        ("/index.php/other/a.css", 401),
        ("/index.php", 401),
        ("/index.php/open/../other", 401),
    ] {
        assert_eq!(stage.get(target).await.status, status, "{target}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_s_limit_for_a_path_counts_what_runs_under_it() {
    let folder = Folder::new();
    let site = "rate = { requests = \"1/h\", path = \"/wp-login.php\" }\n";
    let stage = stage(Policy::Vcl, &folder, "", site).await;
    stage.origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "here"));
    assert_eq!(stage.get("/wp-login.php/0").await.status, 200);
    for target in below("/wp-login.php") {
        assert_eq!(stage.get(&target).await.status, 429, "{target}");
    }
    assert_eq!(stage.get("/other.php/0").await.status, 200);
}
