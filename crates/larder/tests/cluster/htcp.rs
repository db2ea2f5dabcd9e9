//! Tests of HTCP's CLR, with real datagrams.

use crate::support;

use std::net::SocketAddr;
use std::time::Duration;

use support::folder::Folder;
use support::htcp::mediawikis;
use support::{PATIENCE, Setup, Stage, is_hit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use tokio::net::UdpSocket;
use tokio::time::timeout;

async fn stage(htcp: &str, site: &str) -> Stage {
    let top = format!("htcp = {{ listen = \"127.0.0.1:0\"{htcp} }}\n");
    Setup { top: &top, site, ..Setup::default() }.start().await
}

async fn store(stage: &Stage, target: &str) {
    stage.origin.on(target, Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    stage.get(target).await;
    assert!(is_hit(&stage.get(target).await), "{target} is stored");
}

async fn socket(from: &str) -> UdpSocket {
    UdpSocket::bind(from).await.expect("a port")
}

fn port(stage: &Stage) -> SocketAddr {
    stage.daemon.port("HTCP").expect("the port")
}

#[tokio::test]
async fn mediawikis_datagram_purges_one_url() {
    let stage = stage("", "").await;
    let socket = socket("127.0.0.1:0").await;
    for (url, target) in [
        ("http://larder.test/a?x=1", "/a?x=1"),
        ("https://larder.test/a?x=1", "/a?x=1"),
        ("HTTP://LARDER.test/a?x=1&utm_source=y", "/a?x=1"),
    ] {
        store(&stage, "/a?x=1").await;
        store(&stage, "/b").await;
        socket.send_to(&mediawikis(url, 0), port(&stage)).await.expect("sent");
        support::eventually(url, async || !is_hit(&stage.get(target).await)).await;
        assert!(is_hit(&stage.get("/b").await), "{url}");
    }
    stage.daemon.assert_metric("larder_htcp_clears_total", 3).await;
}

#[tokio::test]
async fn every_variant_goes_and_the_answer_says_whether_something_was_there() {
    let stage = stage("", "cookies = { key = [\"lang\"] }\n").await;
    let socket = socket("127.0.0.1:0").await;
    let ask = async |url: &str| {
        socket.send_to(&mediawikis(url, 0x40), port(&stage)).await.expect("sent");
        let mut answer = [0; 100];
        let read = timeout(PATIENCE, socket.recv(&mut answer)).await.expect("in time");
        answer[..read.expect("an answer")].to_vec()
    };
    stage.origin.on("/a", Script::ok("Cache-Control: public, max-age=600\r\n", "a page"));
    for fields in ["", "Cookie: lang=de\r\n"] {
        stage.ask("GET", "/a", fields).await;
        assert!(is_hit(&stage.ask("GET", "/a", fields).await));
    }
    let answer = |response: u8| vec![0, 14, 0, 0, 0, 8, 4 | response << 4, 0x80, 0, 0, 0, 9, 0, 2];
    assert_eq!(ask("http://larder.test/a").await, answer(0));
    for fields in ["", "Cookie: lang=de\r\n"] {
        assert!(!is_hit(&stage.ask("GET", "/a", fields).await), "{fields}");
    }
    assert_eq!(ask("http://larder.test/nothing").await, answer(2));
}

/// A program makes keys that only it knows.
#[tokio::test]
async fn a_page_of_a_program_is_purged_by_its_url() {
    let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
    let (host, at) = (origin.addr().ip(), origin.addr().port());
    let program = format!(
        "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{at}\"; }}\n\
         sub vcl_deliver {{ if (obj.hits > 0) \
         {{ set resp.http.cache-status = \"larder; hit\"; }} }}\n"
    );
    folder.file("site.vcl", program);
    let file = format!(
        "listen = \"127.0.0.1:0\"\nhtcp = {{ listen = \"127.0.0.1:0\" }}\n\
         [[site]]\nhost = \"*\"\nvcl = \"{}\"\n",
        folder.path().join("site.vcl").display()
    );
    let stage = Stage { origin, daemon: Daemon::start(&file).expect("larder starts") };
    store(&stage, "/a%c3%a9?x=1").await;
    store(&stage, "/b").await;
    let socket = socket("127.0.0.1:0").await;
    let clear = mediawikis("http://larder.test/a%c3%a9?x=1", 0x40);
    socket.send_to(&clear, port(&stage)).await.expect("sent");
    let mut answer = [0; 100];
    let read = timeout(PATIENCE, socket.recv(&mut answer)).await.expect("in time");
    assert_eq!(answer[..read.expect("an answer")][6], 4, "it was there");
    assert!(!is_hit(&stage.get("/a%c3%a9?x=1").await));
    assert!(is_hit(&stage.get("/b").await));
}

#[tokio::test]
async fn strangers_and_malformed_datagrams_do_nothing_and_are_counted() {
    let stage = stage(", allow = [\"127.0.0.7\"]", "").await;
    store(&stage, "/a").await;
    let url = "http://larder.test/a";
    let (stranger, friend) = (socket("127.0.0.1:0").await, socket("127.0.0.7:0").await);
    stranger.send_to(&mediawikis(url, 0x40), port(&stage)).await.expect("sent");
    for datagram in [
        b"x".to_vec(),
        mediawikis("/a", 0x40),
        mediawikis("larder.test/a", 0x40),
        mediawikis("ftp://larder.test/a", 0x40),
        mediawikis("http://larder.test/a\r\nX: y", 0x40),
        mediawikis(url, 0x80),
    ] {
        friend.send_to(&datagram, port(&stage)).await.expect("sent");
    }
    support::eventually("all seven are counted", async || {
        stage.metric("larder_htcp_refused_total").await == 7
    })
    .await;
    assert!(is_hit(&stage.get("/a").await));
    for socket in [&stranger, &friend] {
        let answer = timeout(Duration::from_millis(100), socket.recv(&mut [0; 100])).await;
        assert!(answer.is_err(), "nothing is said to them");
    }
    friend.send_to(&mediawikis(url, 0), port(&stage)).await.expect("sent");
    support::eventually("purged", async || !is_hit(&stage.get("/a").await)).await;
}

#[tokio::test]
async fn a_site_without_purges_or_with_a_token_is_not_purged() {
    for site in [
        "preset = \"mediawiki\"\npurge = false\n",
        "purge = false\n",
        "purge = { token = \"a-token-for-this-test\" }\n",
    ] {
        let stage = stage("", site).await;
        store(&stage, "/a").await;
        let socket = socket("127.0.0.1:0").await;
        let clear = mediawikis("http://larder.test/a", 0);
        socket.send_to(&clear, port(&stage)).await.expect("sent");
        stage.daemon.assert_metric("larder_htcp_refused_total", 1).await;
        assert!(is_hit(&stage.get("/a").await), "{site}");
    }
}

#[tokio::test]
async fn a_multicast_group_is_joined_and_one_that_cannot_be_is_named() {
    let group = "239.128.0.112";
    // A port in use by no other process: all members of a group share one.
    let port = {
        let free = socket("127.0.0.1:0").await;
        free.local_addr().expect("an address").port()
    };
    let top = |interface: &str| {
        format!(
            "htcp = {{ listen = \"{group}:{port}\", allow = [\"127.0.0.1\"], \
             interface = \"{interface}\" }}\n"
        )
    };
    let stage = Setup { top: &top("lo"), ..Setup::default() }.start().await;
    store(&stage, "/a").await;
    let socket =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).expect("a socket");
    socket.set_multicast_if_v4(&std::net::Ipv4Addr::LOCALHOST).expect("an interface");
    let to: SocketAddr = format!("{group}:{port}").parse().expect("an address");
    let clear = mediawikis("http://larder.test/a", 0);
    socket.send_to(&clear, &to.into()).expect("sent");
    support::eventually("purged", async || !is_hit(&stage.get("/a").await)).await;
    stage.daemon.assert_metric("larder_htcp_clears_total", 1).await;
    let stage = Setup { top: &top("nowhere0"), ..Setup::default() }.start().await;
    let why = format!(
        "HTCP cannot listen on {group}:{port}: cannot join the multicast group through nowhere0"
    );
    support::eventually(&why, async || stage.daemon.log().contains(&why)).await;
}
