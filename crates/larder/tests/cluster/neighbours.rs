//! Tests of neighbours: the invalidations that other caches get, the behaviour while they are away,
//! and real ones of each kind.

use crate::support;

mod real;

use support::console::run;
use support::folder::Folder;
use support::{PATIENCE, Setup, Stage, eventually, is_hit, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// A site that accepts purges in most dialects.
const SITE: &str = "purge = { dialects = [\"purge\", \"foshttpcache\"] }";
const TAKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n";

/// A daemon with neighbours, `more` being the rest of the file.
async fn stage(more: &str) -> Stage {
    let site = format!("{SITE}\n{more}");
    let stage = Setup { site: &site, ..Setup::default() }.start().await;
    stage.origin.on("/a", Script::ok("Cache-Control: max-age=600\r\nCache-Tag: t1\r\n", "a page"));
    stage
}

async fn taker() -> ScriptedOrigin {
    let taker = ScriptedOrigin::start().await.expect("a port");
    taker.otherwise(Script::respond(TAKEN));
    taker
}

/// The heads of the requests that a neighbour got, without fields that every request has.
fn heads(neighbour: &ScriptedOrigin) -> Vec<String> {
    let all: Vec<u8> = neighbour.recorded().into_iter().flat_map(|one| one.bytes).collect();
    let text = String::from_utf8_lossy(&all).into_owned();
    let heads = text.split("\r\n\r\n").filter(|head| !head.is_empty());
    heads.map(|head| head.replace("\r\n", " | ")).collect()
}

async fn purge(stage: &Stage, method: &str, target: &str, fields: &str) -> Reply {
    stage.ask(method, target, fields).await
}

#[tokio::test]
async fn each_server_of_a_neighbour_is_notified_in_its_dialect() {
    let (first, second, api) = (taker().await, taker().await, taker().await);
    let stage = stage(&format!(
        "[[origin]]\nname = \"edge\"\nservers = [\"http://{}\", \"http://{}\"]\n\
         [[neighbour]]\norigin = \"edge\"\ndialect = \"xkey\"\n\
         [[neighbour]]\norigin = \"http://{}\"\ndialect = \"cloudflare\"\npath = \"/zones/Z\"\n\
         token = \"secret\"\n",
        first.addr(),
        second.addr(),
        api.addr()
    ))
    .await;
    let all = "Larder-Wait: all\r\n";
    assert_eq!(purge(&stage, "PURGE", "/a", all).await.status, 200);
    let tags = format!("{all}xkey-purge: t1 t2\r\n");
    assert_eq!(purge(&stage, "PURGEKEYS", "/", &tags).await.status, 200);
    for neighbour in [&first, &second] {
        let heads = heads(neighbour);
        assert_eq!(heads.len(), 2, "{heads:?}");
        let told = "PURGE /a HTTP/1.1 | Host: larder.test | larder-told: 1";
        assert!(heads.iter().any(|head| head.starts_with(told)), "{heads:?}");
        let keys = "xkey-purge: t1 t2";
        assert!(heads.iter().any(|head| head.contains(keys)), "{heads:?}");
    }
    let text = heads(&api).join("\n");
    for wanted in [
        "POST /zones/Z/purge_cache HTTP/1.1",
        "authorization: Bearer secret",
        "{\"files\":[\"https://larder.test/a\",\"http://larder.test/a\"]}",
        "{\"tags\":[\"t1\",\"t2\"]}",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    stage.daemon.assert_metric("larder_neighbours_told_total", 6).await;
    assert_eq!(stage.daemon.metric("larder_neighbour_up", "").await.expect("metrics") as u64, 3);
}

#[tokio::test]
async fn every_way_to_purge_is_passed_on() {
    let neighbour = taker().await;
    let stage = stage(&format!(
        "[[neighbour]]\norigin = \"http://{}\"\ndialect = \"foshttpcache\"\n",
        neighbour.addr()
    ))
    .await;
    let admin = async |arguments: &[&str]| {
        let (done, _, err) = run(&stage.daemon, arguments).await;
        assert!(done, "{arguments:?}: {err}");
    };
    admin(&["purge", "http://larder.test/a", "--wait", "all"]).await;
    admin(&["purge", "--tag", "t1", "--wait", "all"]).await;
    admin(&["purge", "--all", "--wait", "all"]).await;
    admin(&["purge", "--ban", "req.url ~ ^/b", "--wait", "all"]).await;
    // An unsafe method invalidates a URL (RFC 9111 4.4).
    stage.origin.on("/form", Script::ok("", "done"));
    stage.ask("POST", "/form", "Content-Length: 0\r\n").await;
    stage.daemon.assert_metric("larder_neighbours_told_total", 5).await;
    // Its dialect cannot express the age of a response.
    admin(&["purge", "--ban", "obj.age > 1h"]).await;
    stage.daemon.assert_metric("larder_neighbours_unsaid_total", 1).await;
    let told =
        stage.daemon.assert_logged("is not sent a purge: its dialect cannot express ages").await;
    assert!(told.contains("neighbour"), "{told}");
    let text = heads(&neighbour).join("\n");
    for wanted in [
        "PURGE /a HTTP/1.1",
        "x-cache-tags: (^|,)(t1)(,|$)",
        "x-host: .* | x-url: .*",
        "x-url: ^/b",
        "PURGE /form HTTP/1.1",
    ] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
}

#[tokio::test]
async fn a_neighbour_that_is_down_delays_nothing_and_is_notified_when_it_is_up() {
    let folder = Folder::new();
    let path = folder.path().join("neighbour");
    let more = format!("[[neighbour]]\norigin = \"unix:{}\"\n", path.display());
    let stage = stage(&more).await;
    assert_eq!(purge(&stage, "PURGE", "/a", "").await.status, 200);
    let quick = "Larder-Wait: local\r\n";
    assert_eq!(purge(&stage, "PURGE", "/a", quick).await.status, 200);
    stage.daemon.assert_logged("does not accept invalidations").await;
    let up = async |wanted: u64| {
        stage.daemon.metric("larder_neighbour_up", "").await.expect("metrics") as u64 == wanted
    };
    eventually("it is seen to be away", async || up(0).await).await;
    let waits = stage.daemon.metric("larder_neighbour_waiting", "").await.expect("metrics");
    assert_eq!(waits as u64, 2);
    let listener = tokio::net::UnixListener::bind(path).expect("its socket");
    let answered = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut all = Vec::new();
        while all.len() < 2 {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut head = vec![0; 4096];
            let len = stream.read(&mut head).await.expect("a request");
            stream.write_all(TAKEN.as_bytes()).await.expect("an answer");
            all.push(String::from_utf8_lossy(&head[..len]).into_owned());
        }
        all
    });
    stage.daemon.assert_metric("larder_neighbours_told_total", 2).await;
    eventually("it is seen to be back", async || up(1).await).await;
    stage.daemon.assert_logged("accepts invalidations again").await;
    answered.abort();
}

#[tokio::test]
async fn a_purge_for_all_names_missing_neighbours_and_rejected_ones_are_not_retried() {
    let (silent, refuses) = (taker().await, taker().await);
    silent.otherwise(Script::default().hang());
    refuses.otherwise(Script::respond("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"));
    let more = format!(
        "[[origin]]\nname = \"silent\"\nservers = \"http://{}\"\n\
         [[origin]]\nname = \"strict\"\nservers = \"http://{}\"\n\
         [[neighbour]]\norigin = \"silent\"\n[[neighbour]]\norigin = \"strict\"\n",
        silent.addr(),
        refuses.addr()
    );
    let site = format!("{SITE}\n{more}");
    let limits = "neighbour_timeout = \"300ms\"\nneighbour_queue = 2";
    let stage = Setup { site: &site, limits, ..Setup::default() }.start().await;
    let reply = purge(&stage, "PURGE", "/a", "Larder-Wait: all\r\n").await;
    assert_eq!(reply.status, 503, "{}", reply.text());
    let wanted = "not confirmed yet by neighbours: silent, strict";
    assert!(reply.text().contains(wanted), "{}", reply.text());
    stage.daemon.assert_logged("strict does not accept invalidations: it rejects").await;
    stage.daemon.assert_metric("larder_neighbours_lost_total", 1).await;
    assert_eq!(refuses.seen("/a"), 1);
    // Four are being sent, two wait, and the queue is full.
    for _ in 0..20 {
        assert_eq!(purge(&stage, "PURGE", "/a", "").await.status, 200);
    }
    let full = async || {
        stage.daemon.metric("larder_limit_hits_total", "neighbour_queue").await.expect("it") > 0.0
    };
    eventually("the limit is reached", full).await;
}

/// The site of a Larder, by one policy or the other.
fn site(folder: &Folder, origin: &ScriptedOrigin, vcl: bool) -> String {
    let addr = origin.addr();
    if !vcl {
        return format!("origin = \"http://{addr}\"\n{SITE}");
    }
    let program = format!(
        "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n\
         sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }}\n\
         if (req.method == \"BAN\") {{ ban(\"req.url ~ \" + req.http.x-url);\n\
         return (synth(200)); }} }}\n\
         sub vcl_deliver {{ if (obj.hits > 0) \
         {{ set resp.http.cache-status = \"larder; hit\"; }} }}\n",
        addr.ip(),
        addr.port()
    );
    folder.file("site.vcl", program);
    format!("vcl = \"{}\"", folder.path().join("site.vcl").display())
}

/// Two neighbours of each other do not loop. The second one's address is known only after its
/// start, so the first one gets it by a reload.
#[tokio::test]
async fn two_larders_notify_each_other_once() {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.on("/a", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    for vcl in [false, true] {
        let folder = Folder::new();
        let site = site(&folder, &origin, vcl);
        let file = |other: Option<&Daemon>| {
            let told = other.map_or_else(String::new, |other| {
                let addr = other.addr();
                format!("[[neighbour]]\norigin = \"http://{addr}\"\ndialect = \"foshttpcache\"\n")
            });
            format!("listen = \"127.0.0.1:0\"\nworkers = 1\n{told}[[site]]\nhost = \"*\"\n{site}\n")
        };
        let one = Daemon::start(&file(None)).expect("larder starts");
        let two = Daemon::start(&file(Some(&one))).expect("larder starts");
        std::fs::write(one.config_file(), file(Some(&two))).expect("written");
        let (done, _, err) = run(&one, &["reload"]).await;
        assert!(done, "{err}");
        let mut told = 0;
        for (method, fields) in
            [("PURGE", ""), ("BAN", "X-Url: ^/a\r\nX-Host: .*\r\nX-Content-Type: .*\r\n")]
        {
            for daemon in [&one, &two] {
                eventually("stored", async || is_hit(&ask(daemon, "GET", "").await)).await;
            }
            let reply = ask(&one, method, fields).await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            told += 1;
            one.assert_metric("larder_neighbours_told_total", told).await;
            for daemon in [&one, &two] {
                assert!(!is_hit(&ask(daemon, "GET", "").await), "{method}: it is gone on both");
            }
        }
        let back = two.metric("larder_neighbours_told_total", "").await.expect("metrics");
        assert_eq!(back as u64, 0, "nothing is told back");
    }
}

async fn ask(daemon: &Daemon, method: &str, fields: &str) -> Reply {
    let raw = RawClient::connect(daemon.addr()).await.expect("a connection");
    let mut raw = raw.patience(PATIENCE);
    raw.send(&request(method, "/a", fields), WriteSplit::Whole).await.expect("it is taken");
    whole(raw.reply(method).await, method)
}
