//! Tests of one configuration for all nodes: rolled out to canaries, then to all, and rolled back
//! if one of them is unhealthy, under load.

use crate::support;

use rustix::process::Signal;
use serde_json::json;
use support::console::{Ask, LISTENS, json as json_of};
use support::fleet::{Fleet, Load};
use support::tls::{Authority, Kind};
use support::wire::Wire;
use support::{PATIENCE, eventually};
use testkit::client::RawClient;
use testkit::reply::ReplyOutcome;

const STREAM: &str = "larder-secrets";
const STATE: &str = "larder.secret.configuration";

#[tokio::test(flavor = "multi_thread")]
async fn five_nodes_take_a_configuration_and_the_next_under_load_and_no_request_fails() {
    let fleet = Fleet::start(5).await;
    for node in &fleet.nodes {
        let ready = Ask::get("/readyz").send_locally(node.daemon()).await;
        assert_eq!(ready.status, 503, "there is nothing to serve yet");
        assert!(ready.text().contains("waits for the configuration"), "{}", ready.text());
    }
    let one = fleet.all_take(&fleet.marked("one")).await;
    for node in &fleet.nodes {
        assert_eq!(node.readiness().await, 200);
    }
    let load = Load::begin(&fleet, 4);
    load.goes_on().await;
    let check = format!("200 http://{}/page", "a.test");
    let more = ["--canary", "n2,n4", "--check", &check, "--comment", "a new mark", "--wait"];
    let (done, said) = fleet.roll_out(&fleet.marked("two"), &more).await;
    assert!(done, "{said}");
    load.goes_on().await;
    let answered = load.end();
    assert!(answered > 200, "{answered}");
    for node in &fleet.nodes {
        assert_eq!(load.marks(&node.name), ["one", "two"], "{}", node.name);
        assert_eq!(node.mark().await, "two");
    }
    let state = fleet.nodes[2].state().await;
    let two = state["version"].as_str().expect("a version").to_owned();
    assert_ne!(one, two);
    let (_, page, _) = fleet.nodes[3].run(&["cluster", "configuration"]).await;
    for words in [&format!("{two} is for all nodes"), "a new mark", &one, "n5 "] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let (_, page, _) = fleet.nodes[3].run(&["cluster", "status"]).await;
    assert!(page.contains(&format!("configuration: {two}; for all")), "{page}");
    let labels = format!("version=\"{two}\"");
    let name = "larder_cluster_configuration_info";
    assert_eq!(fleet.nodes[0].daemon().metric(name, &labels).await.expect("metrics"), 1.0);
    let wanted = "larder_cluster_configuration_wanted";
    assert_eq!(fleet.nodes[0].daemon().metric(wanted, "").await.expect("metrics"), 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_configuration_stops_at_the_canary_which_goes_back_and_no_request_fails() {
    let fleet = Fleet::start(5).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    let load = Load::begin(&fleet, 3);
    load.goes_on().await;
    // A configuration that is wrong by itself reaches no node.
    let (done, said) = fleet.roll_out("nonsense = = 1\n", &[]).await;
    assert!(!done && said.contains("shared.toml:1"), "{said}");
    let (done, said) = fleet.roll_out(&format!("workers = 3\n{}", fleet.marked("x")), &[]).await;
    assert!(!done && said.contains("`workers` is each node's own"), "{said}");
    let (done, said) = fleet.roll_out(&fleet.marked("x"), &["--canary", "n9"]).await;
    assert!(!done && said.contains("n9: no live node"), "{said}");
    assert_eq!(fleet.nodes[0].state().await["number"], 1, "nothing was rolled out");
    // A program that does not compile, sent without a check.
    let body = json!({
        "configuration": {
            "name": "all.toml", "toml": "vcl = \"/x.vcl\"\n[[site]]\nhost = \"*\"\n",
            "vcl": { "/x.vcl": "vcl 4.1; sub vcl_recv { nonsense; }" },
        },
        "canaries": ["n3"],
    });
    let asked = Ask::post("/api/v1/cluster/roll-out", &body);
    let reply = asked.send_locally(fleet.nodes[0].daemon()).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    fleet.all_see("failed").await;
    let why = fleet.nodes[0].state().await["why"].as_str().expect("a reason").to_owned();
    assert!(why.starts_with("n3: ") && why.contains("VCL compilation failed"), "{why}");
    // One that a check finds.
    let broken = "[[site]]\nhost = \"a.test\"\nrespond = { status = 503 }\n";
    let more = ["--canary", "n4", "--check", "http://a.test/", "--wait"];
    let (done, said) = fleet.roll_out(&format!("{}{broken}", fleet.marked("two")), &more).await;
    assert!(!done && said.contains("n4: check http://a.test/: it answers 503"), "{said}");
    fleet.has(3, &one).await;
    load.goes_on().await;
    load.end();
    for node in &fleet.nodes {
        assert_eq!(node.in_force().await, one);
        let only = if node.name == "n4" { "two" } else { "one" };
        let marks = load.marks(&node.name);
        assert!(marks.iter().all(|mark| mark == "one" || mark == only), "{}: {marks:?}", node.name);
    }
    assert!(fleet.nodes[3].has_said("has failed here: check http://a.test/"));
    // The failure is reported, and the next good configuration goes to all.
    let failed = "larder_cluster_configuration_failed";
    assert_eq!(fleet.nodes[1].daemon().metric(failed, "").await.expect("metrics"), 1.0);
    fleet.all_take(&fleet.marked("three")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_fails_more_than_before_goes_back() {
    fails_more_than_before(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_is_cut_off_and_fails_goes_back_by_itself_and_says_so_later() {
    fails_more_than_before(true).await;
}

async fn fails_more_than_before(is_cut_off: bool) {
    let mut fleet = Fleet::start(2).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    let broken = "[[site]]\nhost = \"*\"\nrespond = { status = 500 }\n";
    let more = ["--canary", "n2", "--watch", "1h"];
    let file = fleet.write("shared.toml", broken);
    let arguments = [&["cluster", "roll-out", &file], &more[..]].concat();
    let (done, out, err) = fleet.nodes[0].run(&arguments).await;
    assert!(done, "{out}{err}");
    let answers = async || fleet.nodes[1].get("/page").await.status == 500;
    eventually("the canary has it", answers).await;
    if is_cut_off {
        fleet.nats.kill();
    }
    for _ in 0..20 {
        fleet.nodes[1].get("/page").await;
    }
    fleet.has(1, &one).await;
    if is_cut_off {
        assert_eq!(fleet.nodes[0].state().await["stage"], "canary", "nobody knows");
        fleet.nats.begin().await;
    }
    fleet.all_see("failed").await;
    let why = fleet.nodes[0].state().await["why"].as_str().expect("a reason").to_owned();
    assert!(why.starts_with("n2: ") && why.contains("answers were errors (5xx)"), "{why}");
    assert_eq!(fleet.nodes[1].mark().await, "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_canarys_own_file_does_not_allow_fails_there() {
    let mut fleet = Fleet::start(3).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    fleet.nodes[1].end(Signal::TERM).await;
    fleet.nodes[1].begin_as(|own| format!("via = \"own\"\n{own}"));
    fleet.all_know(3).await;
    let next = format!("via = \"all\"\n{}", fleet.marked("two"));
    let (done, said) = fleet.roll_out(&next, &["--canary", "n2", "--wait"]).await;
    let place = format!("`via` stands in {}:1, too", fleet.nodes[1].config_file().display());
    assert!(!done && said.contains(&place) && said.contains("shared.toml@"), "{said}");
    fleet.has(1, &one).await;
    // With another canary it goes to all; the node that cannot apply it reports that and keeps its
    // own.
    let (done, said) = fleet.roll_out(&next, &["--wait"]).await;
    assert!(!done && said.contains("not all nodes applied it") && said.contains("n2: "), "{said}");
    assert_eq!(fleet.nodes[2].mark().await, "two");
    assert_eq!(fleet.nodes[1].mark().await, "one");
    let wanted = "larder_cluster_configuration_wanted";
    assert_eq!(fleet.nodes[1].daemon().metric(wanted, "").await.expect("metrics"), 0.0);
    // Once its own file is right, a reload suffices.
    let file = fleet.nodes[1].config_file();
    let text = std::fs::read_to_string(&file).expect("its file").replace("via = \"own\"\n", "");
    std::fs::write(&file, text).expect("written");
    let (done, _, err) = fleet.nodes[1].run(&["reload"]).await;
    assert!(done, "{err}");
    let has_it = async || fleet.nodes[1].mark().await == "two";
    eventually("it takes what it had refused", has_it).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_that_is_killed_promotes_nothing_and_an_operator_ends_it() {
    let mut fleet = Fleet::start(3).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    let file = fleet.write("shared.toml", &fleet.marked("two"));
    let arguments = ["cluster", "roll-out", &file, "--canary", "n3", "--watch", "1h"];
    let (done, out, err) = fleet.nodes[0].run(&arguments).await;
    assert!(done && out.contains("is on its canaries") && out.contains("n3"), "{out}{err}");
    let has_it = async || fleet.nodes[2].mark().await == "two";
    eventually("the canary has it", has_it).await;
    fleet.nodes[2].end(Signal::KILL).await;
    // Two at once: one is rejected.
    let (done, said) = fleet.roll_out(&fleet.marked("three"), &[]).await;
    assert!(!done && said.contains("waiting for the report of n3"), "{said}");
    // After its restart, it begins with the good version, and then tries again.
    fleet.nodes[2].begin();
    let has_it = async || fleet.nodes[2].mark().await == "two";
    eventually("the canary has it again", has_it).await;
    for node in &fleet.nodes[..2] {
        assert_eq!((node.in_force().await, node.mark().await), (one.clone(), "one".to_owned()));
    }
    fleet.nodes[2].end(Signal::KILL).await;
    let (done, out, err) = fleet.nodes[1].run(&["cluster", "roll-back"]).await;
    assert!(done && out.contains("rolled back by hand"), "{out}{err}");
    fleet.all_see("failed").await;
    fleet.nodes[2].begin();
    fleet.all_see("failed").await;
    fleet.has(2, &one).await;
    assert_eq!(fleet.nodes[2].mark().await, "one");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canary_asks_itself_over_tls_and_says_which_listener_is_missing() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let mut fleet = Fleet::start(1).await;
    let text = fleet.marked("one").replace("\"*\"", "\"larder.test\"");
    let with_tls = format!("{text}tls = {{ {} }}\n", authority.pair("site"));
    let check = |check: &'static str| ["--check", check, "--wait"];
    let (done, said) = fleet.roll_out(&text, &check("https://larder.test/page")).await;
    assert!(!done && said.contains("no listener of this node with TLS takes it"), "{said}");
    fleet.nodes[0].end(Signal::TERM).await;
    let plain = "listen = \"127.0.0.1:0\"";
    let both = "listen = [\"127.0.0.1:0\", \"127.0.0.1:0 tls\"]";
    fleet.nodes[0].begin_as(|own| own.replacen(plain, both, 1));
    fleet.all_know(1).await;
    let (done, said) = fleet.roll_out(&with_tls, &check("404 https://larder.test/page")).await;
    assert!(!done && said.contains("it answers 200"), "{said}");
    let (done, said) = fleet.roll_out(&with_tls, &check("200 https://larder.test/page")).await;
    assert!(done, "{said}");
    let whole = RawClient::connect(fleet.nodes[0].daemon().addr()).await.expect("a connection");
    let asked = b"GET /page HTTP/1.1\r\nHost: larder.test\r\n\r\n";
    let ReplyOutcome::Complete(reply) = whole.patience(PATIENCE).exchange(asked).await else {
        panic!("no whole answer")
    };
    assert_eq!(reply.field("x-mark").as_deref(), Some("one"));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_roll_outs_at_once_one_is_rejected() {
    let fleet = Fleet::start(2).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    let begin = async |node: usize, mark: &str| {
        let file = fleet.write(&format!("{mark}.toml"), &fleet.marked(mark));
        let arguments = ["cluster", "roll-out", &file, "--watch", "1h", "--canary", "n1"];
        let (done, out, err) = fleet.nodes[node].run(&arguments).await;
        (done, format!("{out}{err}"))
    };
    let (first, second) = tokio::join!(begin(0, "a"), begin(1, "b"));
    assert_ne!(first.0, second.0, "{first:?} {second:?}");
    let told = if first.0 { second.1 } else { first.1 };
    let is_told = told.contains("at the same time") || told.contains("is on its canaries");
    assert!(is_told, "{told}");
    let (done, _, err) = fleet.nodes[1].run(&["cluster", "roll-back"]).await;
    assert!(done, "{err}");
    fleet.has(0, &one).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_away_or_comes_new_takes_it_and_one_without_nats_has_the_last() {
    let mut fleet = Fleet::start(3).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    fleet.nodes[2].end(Signal::TERM).await;
    let two = fleet.all_take(&fleet.marked("two")).await;
    fleet.nodes[2].begin();
    fleet.has(2, &two).await;
    fleet.add("n4");
    fleet.has(3, &two).await;
    assert_eq!(fleet.nodes[3].mark().await, "two");
    fleet.nats.kill();
    for at in [0, 3] {
        fleet.nodes[at].end(Signal::TERM).await;
        fleet.nodes[at].begin();
        let node = &fleet.nodes[at];
        assert_eq!((node.in_force().await, node.mark().await), (two.clone(), "two".to_owned()));
        assert_eq!(node.readiness().await, 200);
    }
    let (done, said) = fleet.roll_out(&fleet.marked("three"), &[]).await;
    assert!(!done, "{said}");
    fleet.nats.begin().await;
    fleet.all_know(4).await;
    // All roll back, and forward.
    let (done, out, err) = fleet.nodes[1].run(&["cluster", "roll-back", "--wait"]).await;
    assert!(done && out.starts_with(&one), "{out}{err}");
    for at in 0..4 {
        fleet.has(at, &one).await;
    }
    let (done, _, err) = fleet.nodes[1].run(&["cluster", "roll-back", &two, "--wait"]).await;
    assert!(done, "{err}");
    for at in 0..4 {
        fleet.has(at, &two).await;
    }
    let (done, _, err) = fleet.nodes[1].run(&["cluster", "roll-back", "000000000000"]).await;
    assert!(!done && err.contains("no version 000000000000 is kept"), "{err}");
    // A lost stream removes nothing; canaries go back to what the nodes run.
    fleet.nats.kill();
    fleet.nats.forget();
    fleet.nats.begin().await;
    fleet.all_know(4).await;
    let broken =
        format!("{}[[site]]\nhost = \"a.test\"\nrespond = {{ status = 503 }}\n", fleet.marked("x"));
    let (done, said) = fleet.roll_out(&broken, &["--check", "http://a.test/", "--wait"]).await;
    assert!(!done && said.contains("it answers 503") && said.contains(&two), "{said}");
    for at in 0..4 {
        fleet.has(at, &two).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_go_with_it_and_no_file_of_a_node_takes_their_place() {
    let fleet = Fleet::start(2).await;
    let (host, port) = (fleet.origin.addr().ip(), fleet.origin.addr().port());
    let main = |mark: &str| {
        format!(
            "vcl 4.1;\ninclude \"./parts/*.vcl\";\n\
             sub vcl_deliver {{ set resp.http.x-mark = \"{mark}\"; }}\n"
        )
    };
    let backend = format!("backend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n");
    fleet.folder.file("vcl/parts/backend.vcl", &backend);
    let path = fleet.write(
        "vcl/main.vcl",
        &main("one").replace("\"./parts/*.vcl\"", "+glob \"./parts/*.vcl\""),
    );
    let text = format!("vcl = \"{path}\"\n[[site]]\nhost = \"*\"\n");
    let one = fleet.all_take(&text).await;
    // Local files no longer matter.
    std::fs::remove_dir_all(fleet.folder.path().join("vcl")).expect("removed");
    for node in &fleet.nodes {
        assert_eq!(node.mark().await, "one");
        let (done, _, err) = node.run(&["reload"]).await;
        assert!(done, "{err}");
        assert_eq!((node.mark().await, node.in_force().await), ("one".to_owned(), one.clone()));
    }
    // A program with a fault is rejected at once.
    let path = fleet.write("vcl/main.vcl", "vcl 4.1; sub vcl_recv { nonsense; }");
    let (done, said) =
        fleet.roll_out(&format!("vcl = \"{path}\"\n{}", "[[site]]\nhost = \"*\"\n"), &[]).await;
    assert!(!done && said.contains("nonsense"), "{said}");
    let path = fleet.write(
        "vcl/main.vcl",
        &format!("{}{backend}", main("two").replace("include \"./parts/*.vcl\";\n", "")),
    );
    fleet.all_take(&format!("vcl = \"{path}\"\n[[site]]\nhost = \"*\"\n")).await;
    assert_eq!(fleet.nodes[1].mark().await, "two");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_was_tampered_with_is_refused_and_nothing_is_lost() {
    let mut fleet = Fleet::start(2).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    let mut wire = Wire::open(&fleet.nats).await;
    let good = wire.last(STREAM, STATE).await;
    let mut changed = good.clone();
    *changed.last_mut().expect("bytes") ^= 1;
    wire.publish(STATE, &changed).await.expect("it is taken");
    for node in &fleet.nodes {
        let is_told = async || {
            let problem = node.state().await["problem"].clone();
            problem.as_str().is_some_and(|why| why.contains("it was changed after sealing"))
        };
        eventually("it is refused", is_told).await;
        assert_eq!((node.in_force().await, node.mark().await), (one.clone(), "one".to_owned()));
    }
    // The entries are sealed: no clear text of them or of the configuration.
    let slots = (0..8).map(|slot| format!("larder.secret.configuration.{slot}"));
    let mut found = None;
    for subject in slots {
        let asked = json!({ "last_by_subj": subject });
        let answer = wire.ask(&format!("$JS.API.STREAM.MSG.GET.{STREAM}"), &asked).await;
        if answer["error"].is_null() {
            let sealed = wire.last(STREAM, &subject).await;
            assert!(!sealed.windows(6).any(|bytes| bytes == b"X-Mark"));
            found = Some(subject);
        }
    }
    let subject = found.expect("its content is there");
    wire.publish(STATE, &good).await.expect("it is taken");
    // An unreadable entry keeps the configuration from nodes without it, until it is stored again.
    wire.publish(&subject, b"nonsense").await.expect("it is taken");
    fleet.add("n3");
    let is_told = async || {
        let (_, page, _) = fleet.nodes[2].run(&["cluster", "configuration"]).await;
        page.contains("the stored entry was rejected")
    };
    eventually("it says what it lacks", is_told).await;
    assert_eq!(fleet.nodes[0].mark().await, "one");
    let (done, said) = fleet.roll_out(&fleet.marked("one"), &[]).await;
    assert!(!done && said.contains("is the version of all nodes already"), "{said}");
    fleet.has(2, &one).await;
    // A new order replaces whatever is stored.
    wire.publish(STATE, b"nonsense").await.expect("it is taken");
    fleet.all_take(&fleet.marked("two")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_rolled_out_over_the_socket_alone_and_by_nodes_that_share_one() {
    let mut fleet = Fleet::start(1).await;
    fleet.nodes[0].end(Signal::TERM).await;
    let limits = "[limits]\ncluster_configuration_bytes = \"1KiB\"\n";
    fleet.nodes[0].begin_as(|own| format!("{own}{limits}{LISTENS}"));
    fleet.all_know(1).await;
    let body = json!({ "configuration": { "name": "a", "toml": "", "vcl": {} } });
    let daemon = fleet.nodes[0].daemon();
    let reply =
        Ask::post("/api/v1/cluster/roll-out", &body).with(daemon, "config").send(daemon).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    for (role, status) in [("read", 403), ("config", 409)] {
        let asked = Ask::post("/api/v1/cluster/roll-back", &json!({})).with(daemon, role);
        assert_eq!(asked.send(daemon).await.status, status, "{role}");
    }
    // It is logged after the response.
    eventually("the change is told", async || daemon.log().contains("cluster/roll-back")).await;
    assert!(!daemon.log().contains("\"toml\""), "{}", daemon.log());
    let large = format!("{}# {}\n", fleet.marked("one"), "x".repeat(1 << 10));
    let (done, said) = fleet.roll_out(&large, &[]).await;
    assert!(!done && said.contains("limit: cluster_configuration_bytes"), "{said}");
    assert_eq!(fleet.nodes[0].state().await["number"], 0, "nothing has begun");
    eventually("it is told", async || daemon.log().contains("(not shown)")).await;
    assert!(!daemon.log().contains("X-Mark"), "{}", daemon.log());
    let counted = daemon.metric("larder_limit_hits_total", "cluster_configuration_bytes").await;
    assert!(counted.expect("metrics") >= 1.0);
    let alone = testkit::larder::Daemon::start(
        "listen = \"127.0.0.1:0\"\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n",
    )
    .expect("larder starts");
    let reply = Ask::post("/api/v1/cluster/roll-out", &body).send_locally(&alone).await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    assert!(
        json_of(&reply)["error"]
            .as_str()
            .is_some_and(|why| why.contains("shares no configuration"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn five_nodes_are_replaced_one_after_the_other_under_load_and_no_request_fails() {
    let mut fleet = Fleet::start(5).await;
    let one = fleet.all_take(&fleet.marked("one")).await;
    let load = Load::begin(&fleet, 3);
    load.goes_on().await;
    for at in 0..5 {
        let (done, _, err) = fleet.nodes[at].run(&["cluster", "drain"]).await;
        assert!(done, "{err}");
        // A balancer reads this, and takes the node out.
        assert_eq!(fleet.nodes[at].readiness().await, 503);
        load.remove(&fleet.nodes[at]).await;
        fleet.nodes[at].end(Signal::TERM).await;
        fleet.nodes[at].begin();
        let is_ready = async || fleet.nodes[at].readiness().await == 200;
        eventually("it is ready again", is_ready).await;
        assert_eq!(fleet.nodes[at].in_force().await, one);
        load.add(&fleet.nodes[at]);
        load.goes_on().await;
    }
    // And the next configuration goes to all of them.
    let (done, said) = fleet.roll_out(&fleet.marked("two"), &["--wait"]).await;
    assert!(done, "{said}");
    load.goes_on().await;
    let answered = load.end();
    assert!(answered > 500, "{answered}");
    for node in &fleet.nodes {
        assert_eq!(load.marks(&node.name), ["one", "two"]);
    }
}
