//! Tests of dictionaries (RFC 9842) over TLS: a client with one version of a script gets the next
//! one as a delta.

use crate::support;

use std::fmt::Write as _;
use std::io::Read;
use std::process::Command;

use brotli::enc::StandardAlloc;
use brotli::{Allocator, Decompressor, SliceWrapperMut};
use serde_json::Value;
use sha2::{Digest, Sha256};
use support::console::printed;
use support::folder::Folder;
use support::tls::{Authority, Client, Kind, Served};
use support::{eventually, whole};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// The kind of policy that decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Declared,
    Vcl,
}

const BOTH: [Policy; 2] = [Policy::Declared, Policy::Vcl];

const HOST: &str = "example.test";
const OTHER: &str = "other.test";
const BROWSER: &str = "Accept-Encoding: gzip, deflate, br, zstd, dcb, dcz\r\n";
const PATTERN: &str = "Use-As-Dictionary: match=\"/js/app.*.js\", match-dest=(\"script\")\r\n";
const SCRIPT: &str = "Sec-Fetch-Dest: script\r\n";

/// A daemon over TLS, its origin, and a client that trusts it.
struct Rig {
    served: Served,
    client: Client,
    _authority: Authority,
    _folder: Folder,
}

/// A site of either kind, with these lines in its table and in `[limits]`.
async fn rig(policy: Policy, site: &str, limits: &str) -> Rig {
    let authority = Authority::new();
    authority.sign("site", &[HOST, OTHER], Kind::Elliptic);
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    let (addr, tls) =
        (origin.addr(), format!("[tls]\n{}\n", authority.pair("site").replace(", ", "\n")));
    let policy = match policy {
        Policy::Declared => {
            format!("origin = \"http://{addr}\"\npurge = {{ dialects = [\"purge\"] }}\n{site}\n")
        }
        Policy::Vcl => {
            let program = format!(
                "vcl 4.1;\nbackend app {{ .host = \"{}\"; .port = \"{}\"; }}\n\
                 sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }} }}\n\
                 sub vcl_hash {{ hash_data(req.http.X-Who); }}\n\
                 sub vcl_backend_response {{ set beresp.do_gzip = true; }}\n",
                addr.ip(),
                addr.port()
            );
            folder.file("site.vcl", program);
            format!("vcl = \"{}\"\n", folder.path().join("site.vcl").display())
        }
    };
    let file = format!(
        "listen = [\"127.0.0.1:0 tls\", \"127.0.0.1:0\"]\nworkers = 1\n\
         trusted_proxies = \"127.0.0.1\"\n{tls}[[site]]\nhost = \"*\"\n{policy}\n\
         [compression]\nforms = []\n[limits]\ncoding_time = 100\n{limits}\n"
    );
    let daemon = Daemon::start(&file).expect("larder starts");
    let client = authority.client();
    Rig { served: Served { origin, daemon }, client, _authority: authority, _folder: folder }
}

impl Rig {
    async fn ask(&self, method: &str, host: &str, target: &str, fields: &str) -> Reply {
        let mut connection = self.client.connect(self.served.addr(), host).await;
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n");
        connection.send(request.as_bytes()).await.expect("sent");
        whole(connection.reply(method).await, target)
    }

    async fn get(&self, target: &str, fields: &str) -> Reply {
        self.ask("GET", HOST, target, fields).await
    }

    /// Stores both versions, the first with `field`.
    async fn publish(&self, field: &str) {
        self.served.origin.on("/js/app.v1.js", script(field, &version(1)));
        self.served.origin.on("/js/app.v2.js", script("ETag: \"two\"\r\n", &version(2)));
        for target in ["/js/app.v1.js", "/js/app.v2.js"] {
            assert_eq!(self.get(target, BROWSER).await.status, 200);
        }
    }

    /// Requests the second version with the first as a dictionary until it comes as a delta.
    async fn delta(&self) -> Reply {
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
        eventually("a delta", || async {
            self.get("/js/app.v2.js", &fields).await.field("content-encoding").as_deref()
                == Some("dcz")
        })
        .await;
        self.get("/js/app.v2.js", &fields).await
    }

    /// Requests until the response is gzip-coded, which happens in the background.
    async fn gzip(&self, target: &str, fields: &str) -> Reply {
        eventually("gzip", || async {
            let reply = self.get(target, fields).await;
            reply.field("content-encoding").as_deref() == Some("gzip")
        })
        .await;
        self.get(target, fields).await
    }

    /// Requests `target`, a dictionary with the content `body`, until its hash is known.
    async fn note(&self, target: &str, body: &[u8]) {
        let (page, fields) = (format!("https://{HOST}/js/app.v2.js"), available(body));
        let fields = format!("{BROWSER}{SCRIPT}{fields}");
        eventually("its hash", || async {
            self.get(target, BROWSER).await;
            !self.explain(&page, &fields).await.contains("\"unknown: ")
        })
        .await;
    }

    /// The steps of a forecast for a request with these fields, in JSON.
    async fn explain(&self, url: &str, fields: &str) -> String {
        let mut arguments = vec!["explain", url, "--json"];
        fields.split_terminator("\r\n").for_each(|field| arguments.extend(["-H", field]));
        let told = printed(&self.served.daemon, &arguments).await;
        let told: Value = serde_json::from_str(&told).expect("JSON");
        told["steps"].to_string()
    }

    /// Requests so often that a form would have been made, and returns the last response.
    async fn often(&self, target: &str, fields: &str) -> Reply {
        for _ in 0..20 {
            self.get(target, fields).await;
        }
        support::pause(200).await;
        self.get(target, fields).await
    }
}

/// A version of a script: long, and mostly unchanged.
fn version(number: u32) -> Vec<u8> {
    let mut text = format!("const version = {number};\n");
    let mut seed = 1_u32;
    for _ in 0..1500 {
        seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        writeln!(text, "export function f{seed}() {{ return {}; }}", seed >> 7).expect("memory");
    }
    text.into_bytes()
}

fn script(fields: &str, body: &[u8]) -> Script {
    let mut bytes = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Type: text/javascript\r\n\
         Content-Length: {}\r\n{fields}\r\n",
        body.len()
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    Script::respond(bytes)
}

fn hash(body: &[u8]) -> Vec<u8> {
    Sha256::digest(body).to_vec()
}

/// The field by which a client announces that it has `body`.
fn available(body: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in hash(body).chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - three.len()));
        for at in 0..=three.len() {
            text.push(char::from(DIGITS[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    format!("Available-Dictionary: :{text}=:\r\n")
}

/// The content of a dcz body, decoded by another program.
fn decoded(body: &[u8], dictionary: &[u8]) -> Vec<u8> {
    assert_eq!(body[..8], [0x5e, 0x2a, 0x4d, 0x18, 0x20, 0, 0, 0]);
    assert_eq!(body[8..40], hash(dictionary));
    let folder = Folder::new();
    folder.file("dictionary", dictionary);
    folder.file("body.zst", body);
    let path = |name| folder.path().join(name);
    let done = Command::new("zstd")
        .arg("-dcq")
        .arg("-D")
        .arg(path("dictionary"))
        .arg(path("body.zst"))
        .output();
    let done = done.expect("zstd runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

/// The content of a dcb body.
fn decoded_from_brotli(body: &[u8], dictionary: &[u8]) -> Vec<u8> {
    assert_eq!(body[..4], *b"\xffDCB");
    assert_eq!(body[4..36], hash(dictionary));
    let mut memory = Allocator::<u8>::alloc_cell(&mut StandardAlloc::default(), dictionary.len());
    memory.slice_mut().copy_from_slice(dictionary);
    let mut decoder = Decompressor::new(&body[36..], 4096);
    assert!(decoder.attach_dictionary(memory));
    let mut plain = Vec::new();
    decoder.read_to_end(&mut plain).expect("decodes");
    plain
}

fn varies_by(reply: &Reply, name: &str) -> bool {
    let values = reply.fields.iter().filter(|(field, _)| field.eq_ignore_ascii_case("vary"));
    let text: Vec<_> =
        values.map(|(_, value)| String::from_utf8_lossy(value).to_lowercase()).collect();
    text.join(",").split(',').any(|one| one.trim() == name)
}

#[tokio::test]
async fn a_client_with_a_version_gets_the_next_one_as_what_differs() {
    for policy in BOTH {
        let rig = rig(policy, "", "").await;
        rig.publish(PATTERN).await;
        let usual = rig.get("/js/app.v2.js", BROWSER).await;
        assert!(!varies_by(&usual, "available-dictionary"), "{policy:?}: nothing goes by it yet");
        let reply = rig.delta().await;
        assert_eq!(decoded(&reply.body, &version(1)), version(2), "{policy:?}");
        assert!(
            reply.body.len() * 20 < usual.body.len(),
            "{} {}",
            reply.body.len(),
            usual.body.len()
        );
        assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string()));
        assert!(varies_by(&reply, "available-dictionary") && varies_by(&reply, "accept-encoding"));
        let tag = reply.field("etag").expect("a tag");
        // Under VCL all forms have one weak tag.
        let is_own = Some(&tag) != usual.field("etag").as_ref();
        assert_eq!(is_own, policy == Policy::Declared, "{tag}");
        // Other clients get the form that they got before, with the Vary on dictionaries.
        let other = rig.gzip("/js/app.v2.js", "Accept-Encoding: gzip\r\n").await;
        assert!(varies_by(&other, "available-dictionary"));
        let plain = rig.get("/js/app.v2.js", "Accept-Encoding: identity\r\n").await;
        assert_eq!(plain.body, version(2));
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
        let head = rig.ask("HEAD", HOST, "/js/app.v2.js", &fields).await;
        assert_eq!(head.field("content-encoding").as_deref(), Some("dcz"));
        assert_eq!(head.field("content-length"), reply.field("content-length"));
        for tag in [tag, usual.field("etag").expect("a tag")] {
            let fields = format!("{fields}If-None-Match: {tag}\r\n");
            let reply = rig.get("/js/app.v2.js", &fields).await;
            assert_eq!(reply.status, 304, "{policy:?} {tag}");
            assert!(varies_by(&reply, "available-dictionary"));
        }
        assert_eq!(rig.served.origin.seen("/js/app.v2.js"), 1);
        assert_eq!(rig.served.metric("larder_deltas_made_total").await, 1);
        assert!(rig.served.metric("larder_deltas_sent_total").await >= 2);
    }
}

#[tokio::test]
async fn a_client_that_takes_only_brotli_gets_that() {
    for policy in BOTH {
        let rig = rig(policy, "", "").await;
        rig.publish(PATTERN).await;
        let zstd = rig.delta().await;
        let fields =
            format!("Accept-Encoding: gzip, br, dcb\r\n{SCRIPT}{}", available(&version(1)));
        let is_dcb = async || {
            let reply = rig.get("/js/app.v2.js", &fields).await;
            reply.field("content-encoding").as_deref() == Some("dcb")
        };
        eventually("a delta in brotli", is_dcb).await;
        let reply = rig.get("/js/app.v2.js", &fields).await;
        assert_eq!(decoded_from_brotli(&reply.body, &version(1)), version(2), "{policy:?}");
        assert_eq!(reply.field("content-length"), Some(reply.body.len().to_string()));
        let is_own = reply.field("etag") != zstd.field("etag");
        assert_eq!(is_own, policy == Policy::Declared, "{:?}", reply.field("etag"));
        assert_eq!(rig.delta().await.body, zstd.body, "{policy:?}: one beside the other");
        assert_eq!(rig.served.metric("larder_deltas_made_total").await, 2);
    }
}

#[tokio::test]
async fn what_is_kept_apart_for_some_is_no_dictionary_for_others() {
    for policy in BOTH {
        let rig = rig(policy, "cache = { key_headers = [\"X-Who\"] }", "").await;
        rig.served.origin.on("/js/app.v1.js", script(PATTERN, &version(1)));
        rig.served.origin.on("/js/app.v2.js", script("", &version(2)));
        let of = |who: &str| {
            let has = available(&version(1));
            format!("{BROWSER}{SCRIPT}X-Who: {who}\r\n{has}")
        };
        // Only Anna has the first version; others guess its hash.
        rig.often("/js/app.v1.js", &of("anna")).await;
        let has_delta = async |who: &str| {
            let reply = rig.get("/js/app.v2.js", &of(who)).await;
            reply.field("content-encoding").as_deref() == Some("dcz")
        };
        for who in ["bert", "anna", "bert"] {
            if who == "anna" {
                eventually("a delta", async || {
                    rig.get("/js/app.v1.js", &of("anna")).await;
                    has_delta("anna").await
                })
                .await;
            }
            let reply = rig.often("/js/app.v2.js", &of(who)).await;
            let is_delta = reply.field("content-encoding").as_deref() == Some("dcz");
            assert_eq!(is_delta, who == "anna", "{policy:?} {who}");
            assert_eq!(
                varies_by(&reply, "available-dictionary"),
                who == "anna",
                "{policy:?} {who}"
            );
        }
    }
}

#[tokio::test]
async fn what_a_route_keeps_for_some_is_no_dictionary_for_another_route() {
    let route = "[[site.route]]\npath = \"/js/app.v1.js\"\nallow = \"192.0.2.1\"";
    let rig = rig(Policy::Declared, route, "").await;
    rig.served.origin.on("/js/app.v1.js", script(PATTERN, &version(1)));
    rig.served.origin.on("/js/app.v2.js", script("", &version(2)));
    let of = |client: &str| {
        let has = available(&version(1));
        format!("{BROWSER}{SCRIPT}X-Forwarded-For: {client}\r\n{has}")
    };
    rig.often("/js/app.v1.js", &of("192.0.2.1")).await;
    assert_eq!(rig.get("/js/app.v1.js", &of("192.0.2.2")).await.status, 403);
    let target = "/js/app.v2.js";
    // A form made for one client's dictionary would be stored for all.
    for client in ["192.0.2.1", "192.0.2.2"] {
        rig.gzip(target, &of(client)).await;
        let reply = rig.often(target, &of(client)).await;
        assert_eq!(reply.field("content-encoding").as_deref(), Some("gzip"), "{client}");
        let told = rig.explain(&format!("https://{HOST}{target}"), &of(client)).await;
        assert!(told.contains("foreign: "), "{told}");
    }
}

#[tokio::test]
async fn explain_and_the_log_say_why_an_answer_goes_by_a_dictionary_or_not() {
    for policy in BOTH {
        let rig = rig(policy, "", "").await;
        rig.publish(PATTERN).await;
        rig.delta().await;
        let (own, other) = (available(&version(1)), available(b"something else"));
        rig.served.origin.on("/other.js", script("", &version(3)));
        rig.get("/other.js", BROWSER).await;
        let sent = rig.served.metric("larder_deltas_sent_total").await;
        let page = format!("https://{HOST}/js/app.v2.js");
        for (url, fields, word) in [
            (&page, format!("{BROWSER}{SCRIPT}{own}"), "used"),
            (&page, format!("{BROWSER}{SCRIPT}{other}"), "unknown"),
            (&page, format!("Accept-Encoding: gzip\r\n{own}"), "not-taken"),
            (&page, format!("{BROWSER}Available-Dictionary: x\r\n"), "malformed"),
            (
                &page,
                format!("{BROWSER}Sec-Fetch-Mode: cors\r\nSec-Fetch-Site: cross-site\r\n{own}"),
                "opaque",
            ),
            (&format!("https://{HOST}/other.js"), format!("{BROWSER}{SCRIPT}{own}"), "foreign"),
        ] {
            let told = rig.explain(url, &fields).await;
            assert!(told.contains(&format!("\"{word}: ")), "{policy:?} {word}: {told}");
            let target = url.strip_prefix(&format!("https://{HOST}")).expect("of this host");
            rig.get(target, &fields).await;
            let query = format!("dictionary == {word}");
            let found = async || {
                printed(&rig.served.daemon, &["log", "--once", "--json", "-q", &query]).await
            };
            eventually(word, async || !found().await.is_empty()).await;
            let line = found().await;
            let record: Value =
                serde_json::from_str(line.lines().last().expect("a line")).expect("JSON");
            assert_eq!(record["dictionary"], word, "{policy:?}");
        }
        // Each was requested once, and explained once: a forecast sends nothing.
        assert_eq!(rig.served.metric("larder_deltas_sent_total").await, sent + 1);
        let none = rig.explain(&page, BROWSER).await;
        assert!(!none.contains("dictionary"), "{policy:?}: {none}");
    }
}

#[tokio::test]
async fn clients_that_may_not_have_a_delta_get_the_usual_form() {
    for policy in BOTH {
        let rig = rig(policy, "", "").await;
        rig.publish(PATTERN).await;
        rig.delta().await;
        let own = available(&version(1));
        for fields in [
            format!("Accept-Encoding: gzip, br\r\n{SCRIPT}{own}"),
            format!("Accept-Encoding: gzip, dcz;q=0.5\r\n{SCRIPT}{own}"),
            format!("{BROWSER}{SCRIPT}{own}{own}"),
            format!(
                "{BROWSER}{SCRIPT}Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Site: cross-site\r\n{own}"
            ),
            format!("{BROWSER}{SCRIPT}{}", available(b"something else")),
            format!("{BROWSER}{SCRIPT}Available-Dictionary: :AAAA:\r\n"),
        ] {
            let reply = rig.get("/js/app.v2.js", &fields).await;
            assert_ne!(
                reply.field("content-encoding").as_deref(),
                Some("dcz"),
                "{policy:?} {fields}"
            );
        }
        let same = format!(
            "{BROWSER}{SCRIPT}Sec-Fetch-Mode: no-cors\r\nSec-Fetch-Site: same-origin\r\n{own}"
        );
        let reply = rig.get("/js/app.v2.js", &same).await;
        assert_eq!(reply.field("content-encoding").as_deref(), Some("dcz"), "{policy:?}");
    }
}

#[tokio::test]
async fn dictionaries_are_for_what_they_match_on_their_own_host() {
    for policy in BOTH {
        let rig = rig(policy, "", "").await;
        rig.publish(PATTERN).await;
        rig.served.origin.on("/js/lib.v2.js", script("", &version(3)));
        rig.delta().await;
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
        let reply = rig.often("/js/lib.v2.js", &fields).await;
        assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"), "no match");
        let fields = format!("{BROWSER}Sec-Fetch-Dest: style\r\n{}", available(&version(1)));
        rig.served.origin.on("/js/app.v3.js", script("", &version(3)));
        let reply = rig.often("/js/app.v3.js", &fields).await;
        assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"), "no destination");
        // Another host must not find out what this one has stored.
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
        for _ in 0..20 {
            rig.ask("GET", OTHER, "/js/app.v2.js", &fields).await;
        }
        support::pause(200).await;
        let reply = rig.ask("GET", OTHER, "/js/app.v2.js", &fields).await;
        assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"), "another host");
        assert_eq!(rig.served.metric("larder_deltas_made_total").await, 1);
    }
}

#[tokio::test]
async fn what_says_nothing_or_nonsense_is_no_dictionary() {
    for (policy, field) in BOTH.into_iter().flat_map(|policy| {
        let fields = [
            "",
            "Use-As-Dictionary: match=\"/js/(a|b)\"\r\n",
            "Use-As-Dictionary: match=\"https://other.test/js/*\"\r\n",
            "Use-As-Dictionary: match=\"/js/*\", type=trained\r\n",
        ];
        fields.map(|field| (policy, field))
    }) {
        let rig = rig(policy, "", "").await;
        rig.publish(field).await;
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
        rig.often("/js/app.v1.js", BROWSER).await;
        let reply = rig.often("/js/app.v2.js", &fields).await;
        assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"), "{policy:?} {field}");
    }
}

#[tokio::test]
async fn a_setting_makes_dictionaries_and_another_forbids_them() {
    let rig = rig(
        Policy::Declared,
        "[[site.route]]\npath = \"/js/*\"\ncache = { dictionary = \"/js/app.*.js\" }",
        "",
    )
    .await;
    rig.publish("").await;
    let first = rig.get("/js/app.v1.js", BROWSER).await;
    assert_eq!(first.field("use-as-dictionary").as_deref(), Some("match=\"/js/app.*.js\""));
    let reply = rig.delta().await;
    assert_eq!(decoded(&reply.body, &version(1)), version(2));
    // The origin is asked for a public response.
    rig.served.origin.on("/js/app.v3.js", script("", &version(3)));
    let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(2)));
    rig.get("/js/app.v3.js", &fields).await;
    let asked: Vec<u8> =
        rig.served.origin.recorded().into_iter().flat_map(|one| one.bytes).collect();
    let asked = String::from_utf8_lossy(&asked).to_lowercase();
    assert!(asked.contains("/js/app.v3.js") && !asked.contains("available-dictionary"), "{asked}");

    let off = self::rig(Policy::Declared, "", "dictionaries = 0").await;
    off.publish(PATTERN).await;
    let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
    let reply = off.often("/js/app.v2.js", &fields).await;
    assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"));
}

#[tokio::test]
async fn a_delta_leaves_with_its_response_and_a_dictionary_with_its_own() {
    for policy in BOTH {
        let rig = rig(policy, "", "").await;
        rig.publish(PATTERN).await;
        rig.delta().await;
        assert_eq!(rig.ask("PURGE", HOST, "/js/app.v2.js", "").await.status, 200);
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&version(1)));
        let reply = rig.get("/js/app.v2.js", &fields).await;
        assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"), "{policy:?}");
        rig.delta().await;
        for target in ["/js/app.v1.js", "/js/app.v2.js"] {
            assert_eq!(rig.ask("PURGE", HOST, target, "").await.status, 200);
        }
        rig.get("/js/app.v2.js", BROWSER).await;
        let reply = rig.often("/js/app.v2.js", &fields).await;
        assert_ne!(
            reply.field("content-encoding").as_deref(),
            Some("dcz"),
            "{policy:?}: it is gone"
        );
    }
}

#[tokio::test]
async fn hostile_hashes_and_large_dictionaries_cost_nothing_that_lasts() {
    for policy in BOTH {
        let rig = rig(policy, "", "form_bytes = \"128KB\"\ndictionaries = 2").await;
        rig.publish(PATTERN).await;
        rig.delta().await;
        let mut connection = rig.client.connect(rig.served.addr(), HOST).await;
        for number in 0..2000_u32 {
            let request = format!(
                "GET /js/app.v2.js HTTP/1.1\r\nHost: {HOST}\r\n{BROWSER}{SCRIPT}{}\r\n",
                available(&number.to_le_bytes())
            );
            connection.send(request.as_bytes()).await.expect("sent");
            let reply = whole(connection.reply("GET").await, "hostile");
            assert_ne!(reply.field("content-encoding").as_deref(), Some("dcz"));
        }
        assert_eq!(rig.served.metric("larder_deltas_made_total").await, 1, "{policy:?}");
        // A body longer than the limit is neither hashed nor coded.
        let huge: Vec<u8> = (0..20).flat_map(|_| version(4)).collect();
        rig.served.origin.on("/js/app.v4.js", script(PATTERN, &huge));
        rig.often("/js/app.v4.js", BROWSER).await;
        let fields = format!("{BROWSER}{SCRIPT}{}", available(&huge));
        rig.often("/js/app.v2.js", &fields).await;
        assert_eq!(rig.served.metric("larder_deltas_made_total").await, 1, "{policy:?}");
        // Beyond the limit of dictionaries the first is dropped.
        for number in 5..9 {
            let target = format!("/js/app.v{number}.js");
            rig.served.origin.on(&target, script(PATTERN, &version(number)));
            rig.note(&target, &version(number)).await;
        }
        rig.served.daemon.assert_limit_count("dictionaries", 3).await;
    }
}
