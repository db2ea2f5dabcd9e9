//! Tests of siblings: which pages they serve, and what they are never asked for.

use crate::support;

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;
use support::console::run;
use support::folder::Folder;
use support::nats::Nats;
use support::nodes::{Node, PLAIN, Wanted, all_joined};
use support::tls::{Authority, Kind};
use support::{PATIENCE, eventually, is_hit, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Longer than any test takes.
const PATIENT: &str = "sibling_timeout = \"1m\"";

/// The answers of a sibling to questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    Yes,
    No,
    Nothing,
    /// Yes, when the test permits it.
    Late,
    /// Yes, with the number of another question.
    ToAnother,
    /// Yes, from another address.
    FromElsewhere,
}

/// A sibling that answers as the test sets, and serves its script's pages.
struct Sibling {
    http: ScriptedOrigin,
    htcp: SocketAddr,
    says: Arc<Mutex<Says>>,
    /// It confirms invalidations.
    confirms: Arc<Mutex<bool>>,
    asked: Arc<AtomicUsize>,
    cleared: Arc<AtomicUsize>,
    now: Arc<Notify>,
    work: JoinHandle<()>,
}

impl Drop for Sibling {
    fn drop(&mut self) {
        self.work.abort();
    }
}

/// The answer to a datagram of Larder's: RFC 2756 3 and 6.2, opcode and response, RR set.
fn answer(question: &[u8], response: u8) -> Vec<u8> {
    let code = question[6] & 0xf0 | response;
    let (len, data, texts): (u8, u8, usize) = match (question[6] >> 4, response) {
        (1, 0) => (20, 14, 6),
        (1, _) => (16, 10, 2),
        _ => (14, 8, 0),
    };
    let mut answer = vec![0, len, 0, question[3], 0, data, code, 1];
    answer.extend(&question[8..12]);
    answer.resize(12 + texts, 0);
    answer.extend([0, 2]);
    answer
}

impl Sibling {
    async fn start(says: Says, has: Script) -> Self {
        let http = ScriptedOrigin::start().await.expect("a port");
        http.otherwise(has);
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let other = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let htcp = socket.local_addr().expect("an address");
        let (says, confirms) = (Arc::new(Mutex::new(says)), Arc::new(Mutex::new(true)));
        let (asked, cleared, now) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<Notify>)>::default();
        let own = (says.clone(), confirms.clone(), asked.clone(), cleared.clone(), now.clone());
        let work = tokio::spawn(async move {
            let (says, confirms, asked, cleared, now) = own;
            let mut buffer = [0; 9000];
            loop {
                let Ok((len, from)) = socket.recv_from(&mut buffer).await else { continue };
                let question = &mut buffer[..len];
                if question[6] >> 4 == 4 {
                    cleared.fetch_add(1, Ordering::SeqCst);
                    if *confirms.lock() {
                        socket.send_to(&answer(question, 0), from).await.expect("sent");
                    }
                    continue;
                }
                asked.fetch_add(1, Ordering::SeqCst);
                let says = *says.lock();
                let mut by = &socket;
                match says {
                    Says::Nothing => continue,
                    Says::Late => now.notified().await,
                    Says::ToAnother => question[11] ^= 1,
                    Says::FromElsewhere => by = &other,
                    Says::Yes | Says::No => {}
                }
                let response = u8::from(says == Says::No);
                by.send_to(&answer(question, response), from).await.expect("sent");
            }
        });
        Self { http, htcp, says, confirms, asked, cleared, now, work }
    }

    /// Its part of a configuration.
    fn neighbour(&self) -> String {
        format!("[[neighbour]]\nhtcp = \"{}\"\nask = \"http://{}\"\n", self.htcp, self.http.addr())
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The number of requests that it got.
    fn requests(&self) -> usize {
        self.http.recorded().iter().map(|connection| connection.requests).sum()
    }
}

/// A Larder with an origin, under a declared policy or an equivalent program.
struct Place {
    daemon: Daemon,
    origin: ScriptedOrigin,
    _folder: Folder,
}

fn file(vcl: bool, folder: &Folder, origin: &ScriptedOrigin, top: &str, limits: &str) -> String {
    let addr = origin.addr();
    let site = if vcl {
        let program = format!(
            "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n\
             sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }}\n\
             if (req.url ~ \"^/pass\") {{ return (pass); }} }}\n\
             sub vcl_backend_response {{ set beresp.keep = 1h; set beresp.grace = 0s; }}\n\
             sub vcl_deliver {{ if (obj.hits > 0) \
             {{ set resp.http.cache-status = \"larder; hit\"; }} }}\n",
            addr.ip(),
            addr.port()
        );
        folder.file("site.vcl", program);
        format!("vcl = \"{}\"", folder.path().join("site.vcl").display())
    } else {
        format!(
            "origin = \"http://{addr}\"\nbypass = {{ path = [\"/pass*\"] }}\n\
             purge = {{ dialects = [\"purge\"] }}\n[site.cache]\nstale_while_revalidate = \"0s\""
        )
    };
    format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\n{top}\n[limits]\n{limits}\n[[site]]\nhost = \"*\"\n\
         {site}\n"
    )
}

/// A Larder with `top` in its file. The origin has every page.
async fn place(vcl: bool, top: &str, limits: &str) -> Place {
    let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
    origin.otherwise(page("the origin's page"));
    let daemon = Daemon::start(&file(vcl, &folder, &origin, top, limits)).expect("larder starts");
    Place { daemon, origin, _folder: folder }
}

fn page(body: &str) -> Script {
    Script::ok("Cache-Control: max-age=600\r\n", body)
}

/// A page with an age of some seconds.
fn stored(age: u64) -> Script {
    let fields = format!("Cache-Control: max-age=600\r\nAge: {age}\r\n");
    Script::ok(&fields, "the sibling's page")
}

impl Place {
    async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let raw = RawClient::connect(self.daemon.addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        raw.send(&request(method, target, fields), WriteSplit::Whole).await.expect("it is taken");
        whole(raw.reply(method).await, target)
    }

    async fn get(&self, target: &str) -> String {
        self.ask("GET", target, "").await.text()
    }

    async fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(name, "").await.expect("metrics") as u64
    }

    /// The sums of questions, hits, and unused answers.
    async fn sums(&self) -> [u64; 3] {
        let mut sums = [0; 3];
        for (sum, name) in sums.iter_mut().zip(["asked", "found", "false"]) {
            *sum = self.metric(&format!("larder_siblings_{name}_total")).await;
        }
        sums
    }

    /// The record of the miss of `target`, once it is written.
    async fn record(&self, target: &str) -> Value {
        let found = Mutex::new(None);
        eventually("its record", async || {
            let (done, out, err) = run(&self.daemon, &["log", "--once", "--json"]).await;
            assert!(done, "{err}");
            let mut records =
                out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
            *found.lock() = records.find(|one| one["target"] == target && one["cache"] == "MISS");
            found.lock().is_some()
        })
        .await;
        found.into_inner().expect("it is there")
    }

    async fn explained(&self, target: &str) -> String {
        let url = format!("http://larder.test{target}");
        let (done, out, err) = run(&self.daemon, &["explain", &url]).await;
        assert!(done, "{err}");
        out
    }

    /// Waits until a sibling is asked: its socket is opened after the start.
    async fn asks(&self, asked: impl Fn() -> usize) {
        let (number, before) = (Cell::new(0), asked());
        eventually("a sibling is asked", async || {
            number.set(number.get() + 1);
            self.get(&format!("/begin/{}", number.get())).await;
            asked() > before
        })
        .await;
    }
}

#[tokio::test]
async fn what_a_sibling_has_comes_from_there_and_is_stored() {
    for vcl in [false, true] {
        let sibling = Sibling::start(Says::Yes, stored(50)).await;
        let place = place(vcl, &sibling.neighbour(), PATIENT).await;
        place.asks(|| sibling.asked()).await;
        let (asked, requests, [sum, ..]) =
            (sibling.asked(), sibling.requests(), place.sums().await);
        let told = place.explained("/a?b=1").await;
        assert!(told.contains("siblings would be asked before the origin"), "{vcl}: {told}");
        let first = place.ask("GET", "/a?b=1", "Accept-Language: de\r\n").await;
        assert_eq!(first.text(), "the sibling's page", "vcl: {vcl}");
        let age: u64 = first.field("age").expect("an age").parse().expect("seconds");
        assert!(age >= 50, "vcl: {vcl}: it is as old as it was there");
        let second = place.ask("GET", "/a?b=1", "").await;
        assert!(is_hit(&second), "vcl: {vcl}: it is stored");
        assert_eq!(place.origin.seen("/a?b=1"), 0, "vcl: {vcl}");
        assert_eq!(sibling.asked() - asked, 1, "vcl: {vcl}");
        assert_eq!(sibling.requests() - requests, 1, "vcl: {vcl}");
        assert_eq!(sibling.http.seen("http://larder.test/a?b=1"), 1, "vcl: {vcl}");
        let heads: Vec<u8> =
            sibling.http.recorded().into_iter().flat_map(|one| one.bytes).collect();
        let heads = String::from_utf8_lossy(&heads).to_lowercase();
        let head = heads.split("\r\n\r\n").find(|head| head.contains("/a?b=1")).expect("its head");
        for wanted in ["only-if-cached", "host: larder.test", "accept-language: de"] {
            assert!(head.contains(wanted), "vcl: {vcl}: {wanted} in {head}");
        }
        let sums = place.sums().await;
        assert_eq!((sums[0] - sum, sums[2]), (1, 0), "vcl: {vcl}");
        let record = place.record("/a?b=1").await;
        let server = format!("sibling http://{}", sibling.http.addr());
        assert_eq!(record["server"], server, "vcl: {vcl}: {record}");
    }
}

#[tokio::test]
async fn what_no_sibling_has_the_origin_is_asked_for_once() {
    for vcl in [false, true] {
        let (one, two) = (Sibling::start(Says::No, stored(9)), Sibling::start(Says::No, stored(9)));
        let (one, two) = (one.await, two.await);
        let top = format!("{}{}", one.neighbour(), two.neighbour());
        let place = place(vcl, &top, PATIENT).await;
        place.asks(|| one.asked().min(two.asked())).await;
        let asked = (one.asked(), two.asked());
        assert_eq!(place.get("/a").await, "the origin's page", "vcl: {vcl}");
        assert_eq!(place.origin.seen("/a"), 1, "vcl: {vcl}");
        assert_eq!((one.asked(), two.asked()), (asked.0 + 1, asked.1 + 1), "vcl: {vcl}");
        assert_eq!(one.requests() + two.requests(), 0, "vcl: {vcl}");
        // The other one has it, and the first one does not answer at all.
        (*one.says.lock(), *two.says.lock()) = (Says::Nothing, Says::Yes);
        assert_eq!(place.get("/b").await, "the sibling's page", "vcl: {vcl}");
        assert_eq!((place.origin.seen("/b"), one.requests()), (0, 0), "vcl: {vcl}");
    }
}

#[tokio::test]
async fn a_sibling_that_says_nothing_or_lies_is_not_waited_for_long() {
    for says in [Says::Nothing, Says::ToAnother, Says::FromElsewhere] {
        let sibling = Sibling::start(says, stored(9)).await;
        let place = place(false, &sibling.neighbour(), "sibling_timeout = \"20ms\"").await;
        place.asks(|| sibling.asked()).await;
        for number in 0..8 {
            let target = format!("/{number}");
            assert_eq!(place.get(&target).await, "the origin's page", "{says:?}");
            assert_eq!(place.origin.seen(&target), 1, "{says:?}");
        }
        assert_eq!(sibling.requests(), 0, "{says:?}");
        let late = "limit=\"sibling_timeout\"";
        let late = place.daemon.metric("larder_limit_hits_total", late).await.expect("metrics");
        assert!(late > 0.0, "{says:?}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_too_late_changes_nothing() {
    let sibling = Sibling::start(Says::Late, stored(9)).await;
    let place = place(false, &sibling.neighbour(), "sibling_timeout = \"20ms\"").await;
    place.asks(|| sibling.asked()).await;
    assert_eq!(place.get("/a").await, "the origin's page");
    *sibling.says.lock() = Says::No;
    // It answers the first question; only then it sees the later ones.
    let before = sibling.asked();
    sibling.now.notify_one();
    place.asks(|| sibling.asked().saturating_sub(before)).await;
    assert_eq!(place.get("/a").await, "the origin's page");
    assert_eq!((place.origin.seen("/a"), sibling.requests()), (1, 0));
}

#[tokio::test]
async fn a_sibling_that_says_yes_and_has_nothing_costs_one_request() {
    let late = Script::default().hang();
    let not_there = "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 3\r\n\r\nno\n";
    let refuses = "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n";
    let own = "Cache-Control: max-age=600\r\nAge: 3\r\nSet-Cookie: who=else\r\n";
    for vcl in [false, true] {
        for (what, has) in [
            ("504", Script::respond(not_there)),
            ("403", Script::respond(refuses)),
            ("closes", Script::default().close()),
            ("somebody's", Script::ok(own, "somebody's page")),
            ("hangs", late.clone()),
        ] {
            let sibling = Sibling::start(Says::Yes, has).await;
            let limits = if what == "hangs" { "sibling_timeout = \"500ms\"" } else { PATIENT };
            let place = place(vcl, &sibling.neighbour(), limits).await;
            place.asks(|| sibling.requests()).await;
            assert_eq!(place.get("/a").await, "the origin's page", "{what}, vcl: {vcl}");
            assert_eq!(place.origin.seen("/a"), 1, "{what}, vcl: {vcl}");
            let [asked, found, in_vain] = place.sums().await;
            assert!(found == 0 && in_vain > 0 && in_vain <= asked, "{what}, vcl: {vcl}");
        }
    }
}

#[tokio::test]
async fn siblings_are_not_asked_for_private_objects() {
    for vcl in [false, true] {
        let sibling = Sibling::start(Says::Yes, stored(9)).await;
        let place = place(vcl, &sibling.neighbour(), PATIENT).await;
        place.asks(|| sibling.asked()).await;
        let asked = sibling.asked();
        let old = "Cache-Control: max-age=0\r\nETag: \"v\"\r\n";
        place.origin.on("/old", Script::ok(old, "the origin's page"));
        for (method, target, fields) in [
            ("GET", "/pass/a", ""),
            ("HEAD", "/head", ""),
            ("POST", "/post", "Content-Length: 0\r\n"),
            ("GET", "/range", "Range: bytes=0-2\r\n"),
            ("GET", "/cookie", "Cookie: session=1\r\n"),
            ("GET", "/authorization", "Authorization: Basic YTpi\r\n"),
            ("GET", "/reload", "Pragma: no-cache\r\n"),
            ("GET", "/sibling", "Cache-Control: only-if-cached\r\n"),
        ] {
            let reply = place.ask(method, target, fields).await;
            let is_refused = target == "/sibling" && !vcl;
            assert_eq!(reply.status == 504, is_refused, "{method} {target}, vcl: {vcl}");
            let seen = place.origin.seen(target);
            assert_eq!(seen, usize::from(!is_refused), "{method} {target}, vcl: {vcl}");
        }
        if !vcl {
            // A program's site ignores the field, as Varnish does.
            place.ask("GET", "/reload2", "Cache-Control: no-cache\r\n").await;
        }
        assert_eq!(sibling.asked(), asked, "vcl: {vcl}");
    }
}

/// A stale response is validated by its origin, and not replaced by a sibling's.
#[tokio::test]
async fn what_is_stale_is_a_question_to_the_origin_alone() {
    for vcl in [false, true] {
        let sibling = Sibling::start(Says::No, stored(9)).await;
        let place = place(vcl, &sibling.neighbour(), PATIENT).await;
        place.asks(|| sibling.asked()).await;
        let fields = "Cache-Control: max-age=1\r\nETag: \"v\"\r\n";
        place.origin.on("/a", Script::ok(fields, "the origin's page"));
        place.get("/a").await;
        let fresh =
            "HTTP/1.1 304 Not Modified\r\nETag: \"v\"\r\nCache-Control: max-age=600\r\n\r\n";
        place.origin.on("/a", Script::respond(fresh));
        *sibling.says.lock() = Says::Yes;
        let asked = sibling.asked();
        eventually("it is stale, and asked for", async || {
            assert_eq!(place.get("/a").await, "the origin's page", "vcl: {vcl}");
            place.origin.seen("/a") == 2
        })
        .await;
        assert_eq!(sibling.asked(), asked, "vcl: {vcl}");
    }
}

#[tokio::test]
async fn a_page_that_was_purged_does_not_come_back_from_a_sibling() {
    for vcl in [false, true] {
        let sibling = Sibling::start(Says::Yes, stored(9)).await;
        let place = place(vcl, &sibling.neighbour(), PATIENT).await;
        place.asks(|| sibling.asked()).await;
        assert_eq!(place.get("/a").await, "the sibling's page", "vcl: {vcl}");
        // It gets the purge, and does not confirm it.
        *sibling.confirms.lock() = false;
        assert_eq!(place.ask("PURGE", "/a", "").await.status, 200, "vcl: {vcl}");
        let told = place.explained("/a").await;
        assert!(told.contains("no sibling would be asked now"), "vcl: {vcl}: {told}");
        let asked = sibling.asked();
        assert_eq!(place.get("/a").await, "the origin's page", "vcl: {vcl}");
        assert_eq!(place.get("/b").await, "the origin's page", "vcl: {vcl}");
        assert_eq!((place.origin.seen("/a"), sibling.asked()), (1, asked), "vcl: {vcl}");
        assert!(sibling.cleared.load(Ordering::SeqCst) > 0, "vcl: {vcl}");
        *sibling.confirms.lock() = true;
        place.daemon.assert_metric("larder_neighbours_told_total", 1).await;
        assert_eq!(place.get("/c").await, "the sibling's page", "vcl: {vcl}");
        // HTCP has no patterns: any page stored before may match.
        let ban = ["purge", "--ban", "req.url ~ ^/[a-z]"];
        let (done, _, err) = run(&place.daemon, &ban).await;
        assert!(done, "{err}");
        sibling.http.otherwise(stored(500));
        assert_eq!(place.get("/c").await, "the origin's page", "vcl: {vcl}");
        assert_eq!(place.origin.seen("/c"), 1, "vcl: {vcl}");
        // Pages stored since do not match.
        sibling.http.otherwise(stored(0));
        let number = Cell::new(0);
        eventually("a younger page comes from there", async || {
            number.set(number.get() + 1);
            place.get(&format!("/young/{}", number.get())).await == "the sibling's page"
        })
        .await;
    }
}

/// A sibling gets a purge from the node where it began only: other nodes take nothing from the
/// sibling that is as old as the purge.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_node_has_purged_does_not_come_back_from_a_sibling() {
    const OLD: u64 = 5;
    for vcl in [false, true] {
        let (nats, origin) =
            (Nats::start(&[]).await, ScriptedOrigin::start().await.expect("an origin"));
        origin.otherwise(page("the origin's page"));
        let sibling = Sibling::start(Says::Yes, stored(OLD)).await;
        let more = format!("{}[limits]\n{PATIENT}\n", sibling.neighbour());
        let wanted = Wanted { cluster: &more, vcl, ..PLAIN };
        let nodes = ["n1", "n2"].map(|name| Node::start(name, &nats, &origin, wanted));
        all_joined(&nodes).await;
        let number = Cell::new(0);
        let is_from_there = async || {
            number.set(number.get() + 1);
            let target = format!("/{}", number.get());
            nodes[1].ask("GET", &target, "").await.text() == "the sibling's page"
        };
        // A node that has just joined does not know earlier purges.
        let mut rounds = 0;
        loop {
            eventually("a page of that age comes from there", is_from_there).await;
            let (target, began) = (format!("/{}", number.get()), Instant::now());
            let reply = nodes[0].ask("PURGE", &target, "Larder-Wait: all\r\n").await;
            assert_eq!(reply.status, 200, "vcl: {vcl}: {}", reply.text());
            let seen = nodes[1].ask("GET", &target, "").await.text();
            // On a slow machine the page may be younger than the purge.
            if began.elapsed() < Duration::from_secs(OLD) {
                assert_eq!(seen, "the origin's page", "vcl: {vcl}");
                break;
            }
            rounds += 1;
            assert!(rounds < 20, "this machine is too slow to tell");
        }
        eventually("what is younger comes from there", is_from_there).await;
    }
}

/// A page with a key beyond its URL is another page to a sibling.
#[tokio::test]
async fn a_key_with_more_than_the_url_is_nothing_to_ask_for() {
    let sibling = Sibling::start(Says::Yes, stored(9)).await;
    let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
    origin.otherwise(page("the origin's page"));
    let mut text = file(false, &folder, &origin, &sibling.neighbour(), PATIENT);
    text.push_str(&format!(
        "[[site]]\nhost = \"keyed.test\"\norigin = \"http://{}\"\ncookies = {{ key = [\"lang\"] }}\n",
        origin.addr()
    ));
    let daemon = Daemon::start(&text).expect("larder starts");
    let place = Place { daemon, origin, _folder: folder };
    place.asks(|| sibling.asked()).await;
    let asked = sibling.asked();
    for cookie in ["", "Cookie: lang=de\r\n"] {
        let bytes = format!("GET /a HTTP/1.1\r\nHost: keyed.test\r\n{cookie}\r\n");
        let raw = RawClient::connect(place.daemon.addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        raw.send(bytes.as_bytes(), WriteSplit::Whole).await.expect("it is taken");
        assert_eq!(whole(raw.reply("GET").await, "/a").text(), "the origin's page");
    }
    assert_eq!((place.origin.seen("/a"), sibling.asked()), (2, asked));
}

/// Two siblings of each other: what one has the other need not fetch, and each origin gets one
/// request for what neither has.
#[tokio::test]
async fn two_larders_ask_each_other() {
    for vcl in [false, true] {
        let top = |of: Option<&Daemon>| {
            let neighbour = of.map_or_else(String::new, |of| {
                let (htcp, http) = (of.port("HTCP").expect("its port"), of.addr());
                format!("[[neighbour]]\nhtcp = \"{htcp}\"\nask = \"http://{http}\"\n")
            });
            format!("htcp = {{ listen = \"127.0.0.1:0\" }}\n{neighbour}")
        };
        let one = place(vcl, &top(None), PATIENT).await;
        let two = place(vcl, &top(Some(&one.daemon)), PATIENT).await;
        one.origin.otherwise(page("one's page"));
        two.origin.otherwise(page("two's page"));
        let text = file(vcl, &one._folder, &one.origin, &top(Some(&two.daemon)), PATIENT);
        let htcp = one.daemon.port("HTCP").expect("its port");
        let text = text.replacen(
            "htcp = { listen = \"127.0.0.1:0\" }",
            &format!("htcp = {{ listen = \"{htcp}\" }}"),
            1,
        );
        std::fs::write(one.daemon.config_file(), text).expect("written");
        let (done, _, err) = run(&one.daemon, &["reload"]).await;
        assert!(done, "{err}");
        for (asks, has, body) in [(&two, &one, "one's page"), (&one, &two, "two's page")] {
            let number = Cell::new(0);
            let target = || format!("/{body}/{}", number.get()).replace([' ', '\''], "-");
            eventually("a page comes from the other one", async || {
                number.set(number.get() + 1);
                has.get(&target()).await;
                asks.get(&target()).await == body
            })
            .await;
            assert_eq!(asks.origin.seen(&target()), 0, "vcl: {vcl}");
            assert_eq!(has.origin.seen(&target()), 1, "vcl: {vcl}");
            assert!(is_hit(&asks.ask("GET", &target(), "").await), "vcl: {vcl}: it is stored");
        }
        assert_eq!(one.get("/nobodys").await, "one's page", "vcl: {vcl}");
        assert_eq!((one.origin.seen("/nobodys"), two.origin.seen("/nobodys")), (1, 0));
        // A purge of one is a purge of the other, before that is asked again.
        one.origin.otherwise(page("new"));
        two.origin.otherwise(page("new"));
        assert_eq!(two.get("/nobodys").await, "one's page", "vcl: {vcl}");
        let told = two.metric("larder_htcp_clears_total").await;
        assert_eq!(one.ask("PURGE", "/nobodys", "").await.status, 200, "vcl: {vcl}");
        assert_eq!(one.get("/nobodys").await, "new", "vcl: {vcl}");
        eventually("told", async || two.metric("larder_htcp_clears_total").await > told).await;
        assert_eq!(two.get("/nobodys").await, "new", "vcl: {vcl}");
    }
}

/// Pages over HTTPS come from a sibling over TLS; those over HTTP are different ones, which it is
/// not asked for.
#[tokio::test]
async fn pages_over_https_come_over_tls() {
    let authority = Authority::new();
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let tls = format!("tls = {{ {} }}\n", authority.pair("site"));
    let listen = "listen = [\"127.0.0.1:0\", \"127.0.0.1:0 tls\"]";
    let place_with = async |top: &str, origin: &str| {
        let (folder, scripted) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
        scripted.otherwise(page(origin));
        let text = file(false, &folder, &scripted, top, PATIENT)
            .replacen("listen = \"127.0.0.1:0\"", listen, 1)
            .replacen("[site.cache]", &format!("{tls}[site.cache]"), 1);
        let daemon = Daemon::start(&text).expect("larder starts");
        Place { daemon, origin: scripted, _folder: folder }
    };
    let has = place_with("htcp = { listen = \"127.0.0.1:0\" }", "the sibling's page").await;
    let [_, secure] = has.daemon.addrs() else { panic!("two listeners") };
    let neighbour = format!(
        "[[neighbour]]\nhtcp = \"{}\"\nask = \"secure\"\n[[origin]]\nname = \"secure\"\n\
         servers = \"https://{secure}\"\ntls = {{ ca = \"{}\", sni = \"larder.test\" }}\n",
        has.daemon.port("HTCP").expect("its port"),
        authority.path("ca.pem")
    );
    let asks = place_with(&neighbour, "the origin's page").await;
    let [_, own] = asks.daemon.addrs() else { panic!("two listeners") };
    let (client, number) = (authority.client(), Cell::new(0));
    let target = || format!("/{}", number.get());
    eventually("a page comes from the sibling", async || {
        number.set(number.get() + 1);
        client.get(*secure, "larder.test", &target()).await;
        client.get(*own, "larder.test", &target()).await.text() == "the sibling's page"
    })
    .await;
    assert_eq!((has.origin.seen(&target()), asks.origin.seen(&target())), (1, 0));
    let before = asks.sums().await;
    has.get("/plain").await;
    assert_eq!(asks.get("/plain").await, "the origin's page");
    assert_eq!(asks.sums().await, before);
}
