//! The disk cache: objects stored before a stop, a kill or an eviction are hits again, under both
//! policies, and purged ones are not.

use crate::support;

use std::process::{Command, Stdio};

use rustix::process::Signal;
use support::console::printed;
use support::disked::{BOTH, Disked, Policy};
use support::folder::Folder;
use support::{is_full_run, is_hit, pattern};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::{Daemon, binary};
use testkit::origin::Script;
use testkit::reply::Reply;

#[tokio::test]
async fn what_is_stored_is_a_hit_after_a_restart_with_its_age_and_its_variants() {
    for policy in BOTH {
        let mut stage = Disked::start(policy, "").await;
        stage.origin.on("/page", Script::ok("Cache-Control: max-age=1000\r\nAge: 100\r\n", "page"));
        let varied = "Cache-Control: max-age=1000\r\nVary: X-Kind\r\n";
        stage.origin.on("/varied", Script::ok(varied, "one"));
        assert!(!is_hit(&stage.get("/page").await));
        assert_eq!(stage.ask("GET", "/varied", "X-Kind: 1\r\n").await.text(), "one");
        stage.origin.on("/varied", Script::ok(varied, "two"));
        assert_eq!(stage.ask("GET", "/varied", "X-Kind: 2\r\n").await.text(), "two");
        stage.again(Signal::TERM).await;
        stage.origin.forget();
        let page = stage.get("/page").await;
        assert!(is_hit(&page), "{policy:?}: {page:?}");
        assert_eq!(page.text(), "page");
        let age: u64 = page.field("age").expect("an age").parse().expect("a number");
        assert!((100..200).contains(&age), "{age}");
        for (kind, text) in [("2", "two"), ("1", "one")] {
            let varied = stage.ask("GET", "/varied", &format!("X-Kind: {kind}\r\n")).await;
            assert!(is_hit(&varied), "{policy:?}: {varied:?}");
            assert_eq!(varied.text(), text);
        }
        assert!(!is_hit(&stage.ask("GET", "/varied", "X-Kind: 3\r\n").await));
        assert_eq!(stage.origin.targets(), ["/varied"]);
        assert!(stage.metric("larder_disk_hits_total").await >= 3);
    }
}

/// Stricter rules for storing also apply to objects on disk.
#[tokio::test]
async fn what_the_rules_would_not_store_any_more_does_not_come_from_disk() {
    let mut stage = Disked::start(Policy::Declared, "profile = \"rfc\"\n").await;
    let cookie = "Cache-Control: max-age=1000\r\nSet-Cookie: session=of-alice\r\n";
    stage.origin.on("/cookie", Script::ok(cookie, "hers"));
    stage.origin.on("/page", Script::cacheable("a page"));
    for target in ["/cookie", "/page"] {
        stage.get(target).await;
    }
    stage.again(Signal::TERM).await;
    assert!(stage.get("/cookie").await.field("set-cookie").is_some(), "the rules allow it");
    stage.file = stage.file.replace("\"rfc\"", "\"safe\"");
    stage.again(Signal::TERM).await;
    stage.origin.on("/cookie", Script::ok("Cache-Control: private\r\n", "his"));
    let bob = stage.get("/cookie").await;
    assert_eq!((bob.text(), bob.field("set-cookie")), ("his".to_owned(), None), "{bob:?}");
    assert!(is_hit(&stage.get("/page").await), "what may be stored stays");
}

#[tokio::test]
async fn trailers_are_there_again_after_a_restart_and_behind_what_is_read_from_disk() {
    let chunked = |body: &str| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\n\
                    Transfer-Encoding: chunked\r\n\r\n";
        let (length, tail) = (body.len(), "0\r\nX-Sum: 1\r\nx-last: 2\r\n\r\n");
        Script::respond(format!("{head}{length:x}\r\n{body}\r\n{tail}").into_bytes())
    };
    // The body of the last is not brought into memory.
    let bodies = ["page".to_owned(), "large ".repeat(100_000), "larger".repeat(1_000_000)];
    let mut stage = Disked::start(Policy::Declared, "").await;
    for (number, body) in bodies.iter().enumerate() {
        stage.origin.on(&format!("/{number}"), chunked(body));
        stage.get(&format!("/{number}")).await;
    }
    for _ in 0..2 {
        stage.again(Signal::TERM).await;
        for (number, body) in bodies.iter().enumerate() {
            let target = format!("/{number}");
            // Twice: lent, and from memory.
            for _ in 0..2 {
                let reply = stage.ask("GET", &target, "TE: trailers\r\n").await;
                assert!(is_hit(&reply), "{target}");
                assert!(reply.body == body.as_bytes(), "{target}");
                let behind: Vec<_> = reply.trailers.iter().map(|(name, _)| &name[..]).collect();
                assert_eq!(behind, ["X-Sum", "x-last"], "{target}");
            }
            let reply = stage.get(&target).await;
            assert_eq!(reply.field("content-length"), Some(body.len().to_string()), "{target}");
        }
    }
    assert_eq!(stage.origin.targets().len(), bodies.len(), "each once");
}

#[tokio::test]
async fn a_killed_daemon_leaves_what_was_asked_for_again() {
    for policy in BOTH {
        let mut stage = Disked::start(policy, "").await;
        stage.origin.on("/asked", Script::cacheable("asked"));
        stage.origin.on("/once", Script::cacheable("once"));
        for target in ["/asked", "/asked", "/once"] {
            stage.get(target).await;
        }
        stage.kept(1).await;
        stage.again(Signal::KILL).await;
        let asked = stage.get("/asked").await;
        assert!(is_hit(&asked), "{policy:?}: {asked:?}");
        assert_eq!(asked.text(), "asked");
        assert!(!is_hit(&stage.get("/once").await), "{policy:?}: not worth a disk's wear");
    }
}

#[tokio::test]
async fn a_purge_that_was_answered_holds_over_a_kill() {
    for policy in BOTH {
        let by_what_it_has = match policy {
            Policy::Declared => ("PURGEKEYS", "xkey-purge: a\r\n"),
            Policy::Vcl => ("BAN", "X-Kind: a\r\n"),
        };
        for (method, fields) in [("PURGE", ""), by_what_it_has] {
            let mut stage = Disked::start(policy, "").await;
            let fields_sent = "Cache-Control: max-age=1000\r\nX-Kind: a\r\nxkey: a\r\n";
            stage.origin.on("/page", Script::ok(fields_sent, "old"));
            stage.origin.on("/other", Script::cacheable("other"));
            for target in ["/page", "/page", "/other", "/other"] {
                stage.get(target).await;
            }
            stage.kept(2).await;
            assert_eq!(stage.ask(method, "/page", fields).await.status, 200, "{policy:?} {method}");
            stage.again(Signal::KILL).await;
            stage.origin.on("/page", Script::cacheable("new"));
            let page = stage.get("/page").await;
            assert_eq!(page.text(), "new", "{policy:?} {method}");
            assert!(is_hit(&stage.get("/other").await), "{policy:?} {method}");
            // And over the next one, too.
            stage.get("/page").await;
            stage.again(Signal::TERM).await;
            let page = stage.get("/page").await;
            assert_eq!(page.text(), "new", "{policy:?} {method}");
            assert!(is_hit(&page), "{policy:?} {method}: what came after the purge stays");
        }
    }
}

#[tokio::test]
async fn what_memory_has_no_room_for_is_a_hit_from_disk() {
    for policy in BOTH {
        let stage = Disked::start(policy, "memory = { size = \"16MiB\" }").await;
        let bodies: Vec<Vec<u8>> = (0..120)
            .map(|n| pattern(300_000 + n).into_iter().map(|b| b ^ n as u8).collect())
            .collect();
        for (n, body) in bodies.iter().enumerate() {
            let head = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stage.origin.on(&format!("/{n}"), Script::respond([head.as_bytes(), body].concat()));
        }
        for _ in 0..2 {
            for n in 0..bodies.len() {
                let target = format!("/{n}");
                stage.get(&target).await;
                stage.get(&target).await;
            }
        }
        assert!(stage.metric("larder_disk_hits_total").await > 30, "{policy:?}");
        for (n, body) in bodies.iter().enumerate() {
            assert!(stage.get(&format!("/{n}")).await.body == *body, "{policy:?}: /{n}");
        }
        let fetched = stage.origin.targets().len();
        assert!(fetched < 2 * bodies.len(), "{policy:?}: {fetched} fetches");
    }
}

#[tokio::test]
async fn what_is_asked_for_too_seldom_for_memory_answers_from_the_disk_as_from_memory() {
    for policy in BOTH {
        let stage = Disked::start(policy, "memory = { size = \"16MiB\" }").await;
        let body_of =
            |n: usize| pattern(if n.is_multiple_of(9) { 300_000 + n } else { 20_000 + n });
        for n in 0..800 {
            let (body, length) = (body_of(n), body_of(n).len());
            let head = format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nETag: \"{n}\"\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            stage.origin.on(&format!("/{n}"), Script::respond([head.as_bytes(), &body].concat()));
        }
        // Each was asked for again, and the last ones stay in memory.
        for n in 0..800 {
            stage.get(&format!("/{n}")).await;
            stage.get(&format!("/{n}")).await;
        }
        stage.origin.forget();
        for n in 0..300 {
            let (target, body) = (format!("/{n}"), body_of(n));
            let head = stage.ask("HEAD", &target, "").await;
            let length = Some(body.len().to_string());
            assert_eq!(
                (head.status, head.field("content-length")),
                (200, length),
                "{policy:?} {n}"
            );
            for (from, to) in [(100, 200), (19_000, 21_000), (130_000, 290_000)] {
                if to > body.len() {
                    continue;
                }
                let range = format!("Range: bytes={from}-{}\r\n", to - 1);
                let part = stage.ask("GET", &target, &range).await;
                assert_eq!(part.status, 206, "{policy:?} {n}");
                assert!(part.body == body[from..to], "{policy:?} {n}");
            }
            let same = stage.ask("GET", &target, &format!("If-None-Match: \"{n}\"\r\n")).await;
            assert_eq!(same.status, 304, "{policy:?} {n}");
            assert!(stage.get(&target).await.body == body, "{policy:?} {n}");
            let are_hits = is_hit(&head) && is_hit(&same);
            assert!(are_hits || stage.origin.targets().contains(&target), "{policy:?} {n}");
        }
        assert!(stage.metric("larder_disk_lent_total").await > 0, "{policy:?}");
    }
}

#[tokio::test]
async fn a_large_body_is_read_from_where_it_lies_in_ranges_too() {
    for policy in BOTH {
        let mut stage = Disked::start(policy, "").await;
        let body = pattern(9_000_001);
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stage.origin.on("/film", Script::respond([head.as_bytes(), &body].concat()));
        assert!(stage.get("/film").await.body == body);
        stage.again(Signal::TERM).await;
        stage.origin.forget();
        let part = stage.ask("GET", "/film", "Range: bytes=5000000-5000099\r\n").await;
        assert_eq!(part.status, 206, "{policy:?}");
        assert!(part.body == body[5_000_000..5_000_100], "{policy:?}");
        for _ in 0..2 {
            let film = stage.get("/film").await;
            assert!(is_hit(&film) && film.body == body, "{policy:?}");
        }
        assert!(stage.origin.targets().is_empty(), "{policy:?}");
        // As often as one likes: its body is on disk, its head in memory.
        stage.again(Signal::TERM).await;
        assert!(stage.get("/film").await.body == body, "{policy:?}");
        assert!(stage.origin.targets().is_empty(), "{policy:?}");
    }
}

#[tokio::test]
async fn explain_says_that_the_disk_would_be_read_and_after_that_that_it_is_a_hit() {
    for policy in BOTH {
        let mut stage = Disked::start(policy, "").await;
        stage.origin.on("/page", Script::cacheable("page"));
        stage.get("/page").await;
        stage.again(Signal::TERM).await;
        let explain = async || {
            let arguments = ["explain", "http://larder.test/page"];
            let text = printed(stage.daemon(), &arguments).await;
            // However its lines are broken.
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let before = explain().await;
        for words in [
            "nothing is in memory under this key",
            "it has 1 response that may be for this request",
            "would read the disk first, and fetch if that has nothing for it",
        ] {
            assert!(before.contains(words), "{policy:?}: {before}");
        }
        assert!(is_hit(&stage.get("/page").await), "explain has changed nothing");
        let after = explain().await;
        assert!(!after.contains("disk"), "{policy:?}: {after}");
    }
}

#[tokio::test]
async fn what_is_brought_out_is_what_clients_got() {
    for policy in BOTH {
        let folder = Folder::new();
        let (path, to) = (folder.path().join("disk"), folder.path().join("out"));
        let mut stage = Disked::start_at(policy, "", &path, folder).await;
        let fields = "Cache-Control: max-age=1000\r\nX-Kind: a\r\n";
        stage.origin.on("/page?a=1", Script::ok(fields, "page"));
        stage.get("/page?a=1").await;
        stage.stop(Signal::TERM).await;
        let mut command = Command::new(binary().expect("a binary"));
        command.args(["disk", "export", "--path"]).arg(&path).arg("--to").arg(&to);
        let output = command.stdin(Stdio::null()).output().expect("it starts");
        assert!(output.status.success(), "{policy:?}: {output:?}");
        let read = |name: &str| std::fs::read_to_string(to.join(name)).expect("a file");
        assert_eq!(read("0.body"), "page");
        let head = read("0.head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{policy:?}: {head}");
        assert!(head.contains("\r\nX-Kind: a\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let line: serde_json::Value = serde_json::from_str(&read("index.jsonl")).expect("JSON");
        assert_eq!((&line["status"], &line["sliced"]), (&200.into(), &false.into()));
        assert_eq!(line["url"], "http://larder.test/page?a=1");
        let kind = serde_json::json!(["X-Kind", "a"]);
        let fields = line["fields"].as_array().expect("a list");
        assert!(fields.contains(&kind), "{policy:?}: {line}");
        let [born, stale] = ["born_ms", "fresh_until_ms"].map(|name| line[name].as_i64());
        assert_eq!(stale.zip(born).map(|(stale, born)| stale - born), Some(1_000_000), "{line}");
    }
}

#[tokio::test]
async fn a_second_daemon_on_the_same_disk_is_refused_by_name() {
    let stage = Disked::start(Policy::Declared, "").await;
    let refused = Daemon::start(&stage.file).expect_err("the disk is in use").to_string();
    assert!(refused.contains("disk"), "{refused}");
    assert!(!is_hit(&stage.get("/").await), "the first one goes on");
}

#[tokio::test]
async fn what_a_post_has_made_untrue_does_not_come_back_with_a_kill() {
    let mut stage = Disked::start(Policy::Declared, "").await;
    stage.origin.on("/page", Script::cacheable("old"));
    for _ in 0..2 {
        stage.get("/page").await;
    }
    stage.kept(1).await;
    stage.origin.on("/page", Script::cacheable("done"));
    assert_eq!(stage.ask("POST", "/page", "Content-Length: 0\r\n").await.status, 200);
    stage.again(Signal::KILL).await;
    stage.origin.on("/page", Script::cacheable("new"));
    assert_eq!(stage.get("/page").await.text(), "new");
}

/// The version that a page says it is.
fn version(reply: &Reply) -> u64 {
    let text = reply.text();
    text.rsplit(' ').next().and_then(|number| number.parse().ok()).expect("a version")
}

/// Kills under load: purged objects never come back, and most requested ones do. Five times, or 200
/// in a full run.
#[tokio::test(flavor = "multi_thread")]
async fn kills_in_a_row_bring_back_nothing_that_was_purged() {
    const PAGES: usize = 40;
    // Of hits in a hundred. A read that a busy disk delays is a miss; in many rounds those are few.
    let (rounds, wanted) = if is_full_run() { (200, 99) } else { (5, 95) };
    let mut stage = Disked::start(Policy::Declared, "").await;
    let mut least = [1_u64; PAGES];
    let set = |stage: &Disked, page: usize, version: u64| {
        stage.origin.on(&format!("/{page}"), Script::cacheable(&format!("version {version}")));
    };
    (0..PAGES).for_each(|page| set(&stage, page, 1));
    let (mut hits, mut asked) = (0, 0);
    for round in 0..rounds {
        for _ in 0..2 {
            for page in 0..PAGES {
                stage.get(&format!("/{page}")).await;
            }
        }
        stage.kept(PAGES as u64).await;
        let addr = stage.daemon().addr();
        let load = tokio::spawn(async move {
            // Until the daemon is gone.
            for page in (0..PAGES).cycle() {
                let Ok(mut raw) = RawClient::connect(addr).await else { return };
                let target = format!("/{page}");
                if raw.send(&request("GET", &target, ""), WriteSplit::Whole).await.is_err() {
                    return;
                }
                raw.reply("GET").await;
            }
        });
        let purged: Vec<usize> = (0..3).map(|n| (round * 7 + n * 13) % PAGES).collect();
        for page in &purged {
            least[*page] += 1;
            set(&stage, *page, least[*page]);
            assert_eq!(stage.ask("PURGE", &format!("/{page}"), "").await.status, 200);
        }
        stage.again(Signal::KILL).await;
        load.await.expect("no panic");
        for (page, least) in least.iter().enumerate() {
            let reply = stage.get(&format!("/{page}")).await;
            assert!(version(&reply) >= *least, "round {round}, /{page}: {}", reply.text());
            if !purged.contains(&page) {
                asked += 1;
                hits += usize::from(is_hit(&reply));
            }
        }
    }
    println!("{rounds} kills: {hits} hits of {asked}");
    assert!(hits * 100 >= asked * wanted, "{hits} hits of {asked}");
}
