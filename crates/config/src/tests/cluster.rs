//! Tests of `[cluster]`: values and messages.

use insta::assert_snapshot;
use purge::Level;

use super::{load, said};
use crate::{ClusterCredentials, Isolation};

fn file(lines: &str) -> String {
    format!("[cluster]\n{lines}\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n")
}

const SERVERS: &str = "servers = \"nats://127.0.0.1:4222\"";

#[test]
fn servers_are_enough() {
    let text = file(SERVERS);
    assert_eq!(said(&text), "");
    let cluster = load(&text).cluster.expect("a cluster");
    assert_eq!(cluster.servers, ["nats://127.0.0.1:4222"]);
    assert_eq!((cluster.name, cluster.prefix), (None, None));
    assert_eq!((cluster.acknowledge, cluster.isolation), (Level::Quorum, Isolation::Revalidate));
    assert_eq!((cluster.max_isolation_ms, cluster.keep_ms), (30_000, 86_400_000));
    assert_eq!((cluster.replicas, cluster.credentials), (1, ClusterCredentials::None));
    let alone = "[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n";
    assert!(load(alone).cluster.is_none());
}

#[test]
fn all_that_is_said_counts() {
    let text = file(
        "servers = [\"tls://a:4222\", \"tls://b:4222\"]\nname = \"n-1\"\nprefix = \"shop\"\n\
         mode = \"invalidate\"\nacknowledge = \"all\"\nmax_isolation = \"5s\"\n\
         isolation = \"not-ready\"\nreplicas = 3\nkeep = \"2h\"\nuser = \"u\"\npassword = \"p\"\n\
         secret_file = [\"/new\", \"/old\"]\n\
         ca = \"/ca.pem\"\ncertificate = \"/c.pem\"\nkey = \"/k.pem\"",
    );
    assert_eq!(said(&text), "");
    let cluster = load(&text).cluster.expect("a cluster");
    assert_eq!((cluster.name.as_deref(), cluster.prefix.as_deref()), (Some("n-1"), Some("shop")));
    assert_eq!((cluster.acknowledge, cluster.isolation), (Level::All, Isolation::NotReady));
    assert_eq!((cluster.max_isolation_ms, cluster.keep_ms), (5_000, 7_200_000));
    assert_eq!(cluster.credentials, ClusterCredentials::Password("u".into(), "p".into()));
    assert!(cluster.ca.is_some() && cluster.certificate.is_some() && cluster.replicas == 3);
    let files: Vec<_> =
        cluster.secret_files.iter().flatten().map(|file| file.path.to_str()).collect();
    assert_eq!(files, [Some("/new"), Some("/old")]);
    assert!(!format!("{cluster:?}").contains("\"p\""), "secrets are not shown");
}

#[test]
fn what_cannot_be_is_said() {
    for (lines, text) in [
        ("name = \"a\"", "[cluster] needs `servers`"),
        ("servers = \"http://a\"", "`http://a` is no NATS server"),
        ("servers = \"nats://u:p@a\"", "`nats://u:p@a` is no NATS server"),
        (&format!("{SERVERS}\nname = \"a.b\""), "`name` is letters, digits, `-` and `_`"),
        (&format!("{SERVERS}\nprefix = \"\""), "`prefix` is letters, digits, `-` and `_`"),
        (&format!("{SERVERS}\nreplicas = 2"), "`replicas` is 1, 3 or 5"),
        (&format!("{SERVERS}\nuser = \"u\""), "`user` and `password` go together"),
        (&format!("{SERVERS}\ntoken = \"t\"\nnkey = \"/k\""), "one of `password`, `token`"),
        (&format!("{SERVERS}\nkey = \"/k\""), "`certificate` and `key` go together"),
        (&format!("{SERVERS}\nmax_isolation = \"1ms\""), "`max_isolation` is at least 200ms"),
        (&format!("{SERVERS}\nsecret_file = \"a\""), "`secret_file` takes an absolute path"),
        (&format!("{SERVERS}\nsecret_file = [\"/a\", \"/b\", \"/c\"]"), "is one file, or the new"),
        (&format!("{SERVERS}\nacknowledge = \"most\""), "`acknowledge`"),
        (&format!("{SERVERS}\nmode = \"split\""), "`mode`"),
        (&format!("{SERVERS}\nmode = \"share\""), "a node that shares needs `peer`"),
        (&format!("{SERVERS}\nmode = \"shield\""), "a node that shares needs `peer`"),
        (&format!("{SERVERS}\nmode = \"share\"\npeer = \":7800\""), "`:7800` is no address"),
        (&format!("{SERVERS}\nmode = \"share\"\npeer = \"0.0.0.0:1\""), "is no address that"),
        (&format!("{SERVERS}\npeer = \"10.0.0.1:7800\""), "`peer` has no effect without"),
    ] {
        assert!(said(&file(lines)).contains(text), "{lines}: {}", said(&file(lines)));
    }
    assert_snapshot!(said(&file("servers = \"nats://a:4222\"\ntoken = \"t\"")), @r#"
    warning: the password crosses the network as it is: use tls://
     --> larder.toml:1:1
      |
    1 | [cluster]
      | ^^^^^^^^^
    "#);
}

#[test]
fn what_is_not_shared_for_want_of_a_secret_is_said_unless_it_is_meant() {
    let pair = "tls = { cert = \"/c.pem\", key = \"/k.pem\" }\n";
    let tls = |lines: &str| format!("listen = \":443 tls\"\n{}{pair}", file(lines));
    let acme = |lines: &str| {
        let file = file(lines).replace("\"*\"", "\"example.com\"");
        format!("{file}[tls.acme]\nemail = \"a@b.test\"\n")
    };
    let sessions = "warning: without `secret_file` sessions are not resumed on another node";
    let orders = "warning: without `secret_file` each node orders certificates of its own";
    for (text, why) in [(tls(SERVERS), sessions), (acme(SERVERS), orders)] {
        assert!(said(&text).starts_with(why), "{}", said(&text));
        assert_eq!(said(&text).matches("secret_file`").count(), 1, "once");
    }
    for meant in ["secret_file = []", "secret_file = \"/s\""] {
        let lines = format!("{SERVERS}\n{meant}");
        assert_eq!((said(&tls(&lines)), said(&acme(&lines))), (String::new(), String::new()));
    }
}

#[test]
fn what_moves_in_the_file_takes_no_restart() {
    for own in ["nkey = \"/n\"", "credentials = \"/c\"", "secret_file = \"/s\""] {
        let text = file(&format!("{SERVERS}\n{own}"));
        let (before, moved) = (load(&text), load(&format!("# moved\n{text}")));
        assert_eq!(before.fixed_changes(&moved), Vec::<&str>::new(), "{own}");
        let other = load(&text.replace(own, &own.replacen("\"/", "\"/other", 1)));
        assert_eq!(before.fixed_changes(&other), ["[cluster]"], "{own}");
    }
}
