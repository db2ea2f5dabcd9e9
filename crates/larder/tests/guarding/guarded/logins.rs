//! Tests of connections authenticated by NTLM or Negotiate: an origin connection belongs to the
//! client connection that authenticated it.

use testkit::client::{RawClient, WriteSplit, request};
use testkit::h2::Request;
use testkit::origin::Script;
use testkit::reference_reader::{ParsedRequest, read_requests};
use testkit::reply::Reply;

use super::{Stage, stage};
use crate::support::disked::{BOTH, Policy};
use crate::support::folder::Folder;
use crate::support::{PATIENCE, h2, sent_field, whole};

const ASKS: &str = "HTTP/1.1 401 Who\r\nWWW-Authenticate: NTLM\r\nWWW-Authenticate: Negotiate\r\n\
     Cache-Control: private\r\nContent-Length: 3\r\n\r\nwho";
const PRIVATE: &str = "Cache-Control: private\r\n";

/// A client that keeps its connection, and that the origin identifies by X-Who.
struct Guest {
    raw: RawClient,
    who: &'static str,
}

impl Guest {
    async fn of(stage: &Stage, who: &'static str) -> Self {
        let raw =
            RawClient::connect(stage.daemon.addr()).await.expect("a connection").patience(PATIENCE);
        Self { raw, who }
    }

    async fn ask(&mut self, method: &str, target: &str, fields: &str) -> Reply {
        let fields = format!("X-Who: {}\r\n{fields}", self.who);
        self.raw.send(&request(method, target, &fields), WriteSplit::Whole).await.expect("taken");
        whole(self.raw.reply(method).await, target)
    }

    /// A whole login, as browsers do it.
    async fn log_in(&mut self, target: &str) {
        for shown in ["", "Authorization: NTLM TYPE1\r\n", "Authorization: NTLM TYPE3\r\n"] {
            self.ask("GET", target, shown).await;
        }
    }
}

/// The requests of each connection to the origin.
fn connections(stage: &Stage) -> Vec<Vec<ParsedRequest>> {
    let recorded = stage.origin.recorded();
    let read = |bytes: &[u8]| read_requests(bytes).expect("valid requests");
    recorded.iter().map(|connection| read(&connection.bytes)).collect()
}

/// The connection to the origin that `sought` used.
fn over(stage: &Stage, sought: impl Fn(&ParsedRequest) -> bool) -> Vec<usize> {
    let all = connections(stage);
    let found = all.iter().enumerate().flat_map(|(at, requests)| {
        requests.iter().filter(|request| sought(request)).map(move |_| at)
    });
    found.collect()
}

/// Asserts that no client used an origin connection on which another one authenticated, or was
/// asked to.
fn assert_no_shared_login(stage: &Stage, policy: Policy) {
    for requests in connections(stage) {
        let who: std::collections::HashSet<_> =
            requests.iter().map(|request| sent_field(request, "x-who")).collect();
        assert_eq!(who.len(), 1, "{policy:?}: {who:?} on one connection");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_continues_over_its_own_connection_which_no_other_client_uses() {
    for policy in BOTH {
        let folder = Folder::new();
        let stage = stage(policy, &folder, "", "").await;
        stage.origin.otherwise(Script::respond(ASKS));
        let mut ann = Guest::of(&stage, "ann").await;
        ann.log_in("/mail").await;
        for (who, target) in [("bob", "/mail"), ("cec", "/pass/a"), ("dan", "/pipe/a")] {
            for method in ["GET", "POST"] {
                Guest::of(&stage, who).await.ask(method, target, "Content-Length: 0\r\n").await;
            }
        }
        ann.ask("GET", "/pass/more", "Authorization: NTLM TYPE1\r\n").await;
        let login = over(&stage, |one| sent_field(one, "authorization").starts_with("NTLM"));
        assert_eq!(login.len(), 3, "{policy:?}");
        assert!(login.iter().all(|at| *at == login[0]), "{policy:?}: {login:?}");
        let met: Vec<_> = connections(&stage)[login[0]]
            .iter()
            .map(|request| sent_field(request, "x-who"))
            .filter(|who| who != "ann")
            .collect();
        assert_eq!(met, [""; 0], "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_was_asked_to_log_in_keeps_the_connection_too() {
    for policy in BOTH {
        let folder = Folder::new();
        let stage = stage(policy, &folder, "", "").await;
        stage.origin.otherwise(Script::respond(ASKS));
        for who in ["ann", "bob", "cec"] {
            let mut guest = Guest::of(&stage, who).await;
            for target in ["/pass/a", "/pass/b"] {
                let fields = "Cookie: sid=1\r\n";
                assert_eq!(guest.ask("GET", target, fields).await.status, 401, "{policy:?}");
            }
        }
        assert_no_shared_login(&stage, policy);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_s_later_requests_are_the_user_s_alone() {
    let folder = Folder::new();
    let stage = stage(Policy::Declared, &folder, "", "").await;
    stage.origin.otherwise(Script::cacheable("hello ann"));
    let mut ann = Guest::of(&stage, "ann").await;
    ann.ask("GET", "/login", "Authorization: Negotiate YII\r\n").await;
    ann.ask("GET", "/page", "").await;
    Guest::of(&stage, "bob").await.ask("GET", "/page", "").await;
    assert_eq!(stage.origin.seen("/page"), 2, "what came over a user's connection is not kept");
    let login = over(&stage, |one| one.target == "/login");
    let page = over(&stage, |one| one.target == "/page" && sent_field(one, "x-who") == "ann");
    assert_eq!(login, page, "it goes on over the same connection");
    assert_no_shared_login(&stage, Policy::Declared);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http2_it_is_the_same() {
    for policy in BOTH {
        let folder = Folder::new();
        let stage = stage(policy, &folder, "", "").await;
        stage.origin.otherwise(Script::ok(PRIVATE, "hello"));
        for who in ["ann", "bob"] {
            let mut client = h2::client(&stage.daemon).await;
            for shown in ["Negotiate a", "Negotiate b"] {
                let asked =
                    Request::get("/pass/a").field("authorization", shown).field("x-who", who);
                assert_eq!(client.fetch(&asked).await.answer("/pass/a").status, 200);
            }
        }
        assert_eq!(connections(&stage).len(), 2, "{policy:?}: one for each");
        assert_no_shared_login(&stage, policy);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_ends_with_its_client() {
    for policy in BOTH {
        let folder = Folder::new();
        let stage = stage(policy, &folder, "", "").await;
        stage.origin.otherwise(Script::ok(PRIVATE, "hello"));
        for who in ["ann", "bob", "cec"] {
            // Their connections follow each other, perhaps from one port.
            let mut guest = Guest::of(&stage, who).await;
            guest.ask("GET", "/pass/a", "Authorization: NTLM TYPE3\r\n").await;
            guest.ask("GET", "/pass/b", "").await;
        }
        assert_eq!(connections(&stage).len(), 3, "{policy:?}");
        assert_no_shared_login(&stage, policy);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_a_proxy_uses_for_many_has_no_logins() {
    for policy in BOTH {
        for (top, told) in [
            ("trusted_proxies = \"127.0.0.1\"\n", "X-Forwarded-For: 203.0.113.7\r\n"),
            ("", "X-Forwarded-For: 203.0.113.7\r\n"),
            ("", "Via: 1.1 proxy\r\n"),
        ] {
            let folder = Folder::new();
            let stage = stage(policy, &folder, top, "").await;
            stage.origin.otherwise(Script::ok(PRIVATE, "hello"));
            let mut proxy = Guest::of(&stage, "proxy").await;
            proxy.ask("GET", "/pass/a", &format!("Authorization: NTLM x\r\n{told}")).await;
            proxy.ask("GET", "/pass/b", told).await;
            let (login, later) = (
                over(&stage, |one| one.target == "/pass/a"),
                over(&stage, |one| one.target == "/pass/b"),
            );
            assert_ne!(login, later, "{policy:?} {told}");
        }
    }
}
