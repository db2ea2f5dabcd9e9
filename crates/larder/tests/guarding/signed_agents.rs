//! Agents that sign their requests (Web Bot Auth): keys from a file and from a directory, what a
//! signature proves, and what it does not.
//!
//! The signer shares nothing with the daemon: it puts the signature base together as text, and its
//! Ed25519 is that of another library.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::{BASE32_NOPAD, BASE64, BASE64URL_NOPAD};
use nkeys::{KeyPair, KeyPairType};
use parking_lot::Mutex;
use serde_json::json;
use sha2::{Digest, Sha256};
use support::explain::{explain, fact, step};
use support::folder::Folder;
use support::tls::{Authority, Kind};
use support::{Setup, Stage, eventually, is_hit};
use testkit::origin::Script;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const BROWSER: &str = "User-Agent: Mozilla/5.0 (X11; Linux x86_64) Chrome/150.0 Safari/537.36\r\n";

/// Agents of models get pages, crawlers that are not known get none.
const SITE: &str = "[site.crawlers]\nhuman = { respond = { status = 402 } }\n\
                    unknown = { respond = { status = 403 } }\n";

fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs()
}

/// An agent with one key.
struct Agent {
    key: KeyPair,
    origin: String,
    x: String,
    id: String,
}

impl Agent {
    fn new(seed: u8, origin: &str) -> Self {
        let key = KeyPair::new_from_raw(KeyPairType::User, [seed; 32]).expect("a key");
        // The kind of the key, the key, and a checksum.
        let public = BASE32_NOPAD.decode(key.public_key().as_bytes()).expect("base32");
        let x = BASE64URL_NOPAD.encode(&public[1..33]);
        let members = format!("{{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"{x}\"}}");
        let id = BASE64URL_NOPAD.encode(&Sha256::digest(members));
        Self { key, origin: origin.to_owned(), x, id }
    }

    /// Its directory.
    fn keys(&self) -> String {
        let key = json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": self.x });
        json!({ "keys": [key] }).to_string()
    }

    /// The fields of a signed GET of `path` at `authority`, made so many seconds ago.
    fn sign_at(&self, authority: &str, path: &str, made_s_ago: u64) -> String {
        let covered = [("@authority", authority), ("@method", "GET"), ("@path", path)];
        self.sign_components(&covered, made_s_ago)
    }

    /// The fields of a signature over these components and the agent's own.
    fn sign_components(&self, covered: &[(&str, &str)], made_s_ago: u64) -> String {
        let created = now_secs() - made_s_ago;
        let (origin, id) = (&self.origin, &self.id);
        let names: String = covered.iter().map(|(name, _)| format!("\"{name}\" ")).collect();
        let lines: String =
            covered.iter().map(|(name, value)| format!("\"{name}\": {value}\n")).collect();
        let params = format!(
            "({names}\"signature-agent\";key=\"sig1\");\
             created={created};expires={};nonce=\"bm9uY2U=\";keyid=\"{id}\";alg=\"ed25519\";\
             tag=\"web-bot-auth\"",
            created + 300
        );
        let base = format!(
            "{lines}\"signature-agent\";key=\"sig1\": \"{origin}\"\n\
             \"@signature-params\": {params}"
        );
        let signature = BASE64.encode(&self.key.sign(base.as_bytes()).expect("signed"));
        format!(
            "Signature-Agent: sig1=\"{origin}\"\r\nSignature-Input: sig1={params}\r\n\
             Signature: sig1=:{signature}:\r\n"
        )
    }

    fn sign(&self, path: &str) -> String {
        self.sign_at("larder.test", path, 1)
    }
}

/// A server of key directories that counts its requests.
struct DirectoryServer {
    port: u16,
    asked: Arc<AtomicUsize>,
    response: Arc<Mutex<String>>,
}

impl DirectoryServer {
    async fn start(authority: &Authority) -> Self {
        authority.sign("agent", &["127.0.0.1"], Kind::Elliptic);
        let acceptor = authority.acceptor("agent");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (asked, response) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<String>>::default());
        let server = Self { port, asked: Arc::clone(&asked), response: Arc::clone(&response) };
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let Ok(mut stream) = acceptor.accept(tcp).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = "GET /.well-known/http-message-signatures-directory HTTP/1.1\r\n";
                assert!(head.starts_with(path), "{head}");
                let accept = "\r\nAccept: application/http-message-signatures-directory+json\r\n";
                assert!(head.contains(accept), "{head}");
                asked.fetch_add(1, Ordering::Relaxed);
                let response = response.lock().clone();
                _ = stream.write_all(response.as_bytes()).await;
                _ = stream.shutdown().await;
            }
        });
        server
    }

    fn answer(&self, status: &str, keys: &str) {
        let length = keys.len();
        *self.response.lock() = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/http-message-signatures-directory+json\
             \r\nCache-Control: max-age=86400\r\nContent-Length: {length}\r\n\r\n{keys}"
        );
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// A stage on which ChatGPT-User signs with the keys of a file.
async fn with_file(agent: &Agent, folder: &Folder, more: &str, limits: &str) -> Stage {
    folder.file("keys.json", agent.keys());
    let top = format!(
        "{more}[crawlers.signatures]\nChatGPT-User = {{ agent = \"{}\", keys = \"{}/keys.json\" }}\n",
        agent.origin,
        folder.path().display()
    );
    let stage = Setup { top: &top, site: SITE, limits, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    stage
}

async fn counts(stage: &Stage) -> [u64; 3] {
    let mut counts = [0; 3];
    for (count, name) in counts.iter_mut().zip(["true", "false", "open"]) {
        *count = stage.metric(&format!("larder_signatures_{name}_total")).await;
    }
    counts
}

#[tokio::test]
async fn a_signature_is_for_one_site_one_path_and_a_time() {
    let (agent, folder) = (Agent::new(1, "https://agent.test"), Folder::new());
    let log = folder.path().join("log").display().to_string();
    let more = format!("access_log = {{ path = \"{log}\", format = \"json\" }}\n");
    let stage = with_file(&agent, &folder, &more, "").await;
    let ask = async |fields: &str| stage.ask("GET", "/page", &format!("{BROWSER}{fields}")).await;
    assert_eq!(ask("").await.status, 402, "a browser");
    let signed = agent.sign("/page");
    assert_eq!(ask(&signed).await.status, 200);
    assert!(is_hit(&ask(&signed).await), "agents share what is stored");
    assert_eq!(counts(&stage).await, [2, 0, 0]);
    for (fields, why) in [
        (agent.sign_at("other.test", "/page", 1), "another site's"),
        (agent.sign("/other"), "another page's"),
        (agent.sign_at("larder.test", "/page", 400), "expired"),
        (agent.sign("/page").replace("nonce=\"b", "nonce=\"c"), "changed"),
        (agent.sign("/page").replace("tag=", "x=1;tag="), "with more parameters"),
    ] {
        assert_eq!(ask(&fields).await.status, 403, "{why}");
    }
    assert_eq!(counts(&stage).await, [2, 5, 0]);
    // Another method is not covered by it.
    let posted = stage.ask("HEAD", "/page", &format!("{BROWSER}{signed}")).await;
    assert_eq!(posted.status, 403);
    for (class, requests) in [("ai", 2), ("unknown", 6), ("human", 1)] {
        stage.daemon.assert_metric(&format!("larder_class_{class}_requests_total"), requests).await;
    }
    eventually("the log", async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let has = |class: &str, proof: &str| {
            let fields =
                format!("\"class\":\"{class}\",\"crawler\":\"ChatGPT-User\",\"proof\":\"{proof}\"");
            text.lines().filter(|line| line.contains(&fields)).count()
        };
        has("ai", "signature") == 2 && has("unknown", "forged") == 6
    })
    .await;
}

/// A balancer that ends TLS changes the scheme of the listener, and not what the agent has signed.
#[tokio::test]
async fn a_signature_is_for_the_scheme_of_the_client() {
    let (agent, folder) = (Agent::new(1, "https://agent.test"), Folder::new());
    let stage = with_file(&agent, &folder, "trusted_proxies = \"127.0.0.1\"\n", "").await;
    let signed = agent
        .sign_components(&[("@target-uri", "https://larder.test/page"), ("@scheme", "https")], 1);
    let ask = async |fields: &str| stage.ask("GET", "/page", &format!("{BROWSER}{fields}")).await;
    for (more, status) in [
        ("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n", 200),
        ("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\n", 403),
        ("", 403),
    ] {
        assert_eq!(ask(&format!("{signed}{more}")).await.status, status, "{more}");
    }
    assert_eq!(counts(&stage).await, [1, 2, 0]);
}

/// Trust in another authority ends what came by the trust in the first one.
#[tokio::test]
async fn keys_end_with_the_trust_in_their_server() {
    let (authority, other, folder) = (Authority::new(), Authority::new(), Folder::new());
    let server = DirectoryServer::start(&authority).await;
    let origin = format!("https://127.0.0.1:{}", server.port);
    let agent = Agent::new(1, &origin);
    server.answer("200 OK", &agent.keys());
    let trust = |authority: &Authority| {
        folder.file("ca.pem", std::fs::read(authority.path("ca.pem")).expect("a file"));
    };
    trust(&authority);
    let top = format!(
        "[crawlers.signatures]\nChatGPT-User = {{ agent = \"{origin}\", ca = \"{}/ca.pem\" }}\n",
        folder.path().display()
    );
    let stage = Setup { top: &top, site: SITE, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    let ask = async || {
        stage.ask("GET", "/page", &format!("{BROWSER}{}", agent.sign("/page"))).await.status
    };
    eventually("the keys", async || ask().await == 200).await;
    let reload = async || stage.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    trust(&other);
    assert_eq!(reload().await.status, 200);
    eventually("the end of the keys", async || ask().await == 402).await;
    stage.daemon.assert_logged("not signed by a trusted authority").await;
    trust(&authority);
    assert_eq!(reload().await.status, 200);
    eventually("the keys again", async || ask().await == 200).await;
}

#[tokio::test]
async fn what_cannot_be_verified_changes_nothing() {
    let (agent, folder) = (Agent::new(1, "https://agent.test"), Folder::new());
    let stage = with_file(&agent, &folder, "", "signature_checks = 0").await;
    let ask =
        async |fields: &str| stage.ask("GET", "/page", &format!("{BROWSER}{fields}")).await.status;
    // A stranger, or one that names an agent whose key it lacks.
    assert_eq!(ask(&Agent::new(2, "https://stranger.test").sign("/page")).await, 402);
    assert_eq!(counts(&stage).await, [0, 0, 0]);
    assert_eq!(ask(&Agent::new(2, "https://agent.test").sign("/page")).await, 402);
    assert_eq!(counts(&stage).await, [0, 0, 1]);
    assert_eq!(ask(&agent.sign("/page")).await, 402, "no core may verify any");
    assert_eq!(counts(&stage).await, [0, 0, 2]);
    assert_eq!(stage.limit_hits("signature_checks").await, 1);
    // A crawler that is known by its User-Agent stays so.
    let fields = Agent::new(2, "https://agent.test").sign("/page");
    let reply = stage.ask("GET", "/page", &format!("User-Agent: GPTBot/1\r\n{fields}")).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn explain_says_what_a_signature_proves() {
    let (agent, folder) = (Agent::new(1, "https://agent.test"), Folder::new());
    let stage = with_file(&agent, &folder, "", "").await;
    let told = async |fields: &str| {
        let headers: Vec<_> = fields.trim_end().split("\r\n").collect();
        let question = json!({ "url": "http://larder.test/page", "headers": headers });
        explain(&stage.daemon, &question).await
    };
    let good = told(&agent.sign("/page")).await;
    assert_eq!(step(&good, "class")["why"], "ai: it is `ChatGPT-User`, by its signature");
    let expired = told(&agent.sign_at("larder.test", "/page", 400)).await;
    let class = step(&expired, "class");
    assert_eq!(class["why"], "unknown: it claims to be `ChatGPT-User`, and its signature is false");
    assert_eq!(fact(class, "signature"), "false: it has expired");
    let unknown = told(&Agent::new(2, "https://agent.test").sign("/page")).await;
    let why = fact(step(&unknown, "class"), "signature");
    assert_eq!(why, "not verified: its key is not in the agent's directory");
    // It only looks on.
    assert_eq!(counts(&stage).await, [0, 0, 0]);
}

#[tokio::test]
async fn keys_are_fetched_kept_and_replaced() {
    let authority = Authority::new();
    let server = DirectoryServer::start(&authority).await;
    let origin = format!("https://127.0.0.1:{}", server.port);
    let (old, new) = (Agent::new(1, &origin), Agent::new(2, &origin));
    server.answer("503 Busy", "");
    let top = format!(
        "[crawlers.signatures]\nChatGPT-User = {{ agent = \"{origin}\", ca = \"{}\" }}\n",
        authority.path("ca.pem")
    );
    let limits = "key_directory_retry_wait = \"100ms\"\nkey_directory_bytes = \"2KiB\"";
    let stage = Setup { top: &top, site: SITE, limits, ..Setup::default() }.start().await;
    stage.origin.otherwise(Script::cacheable("page"));
    let ask = async |agent: &Agent| {
        stage.ask("GET", "/page", &format!("{BROWSER}{}", agent.sign("/page"))).await.status
    };
    stage.daemon.assert_logged("cannot be fetched: it answers with status 503").await;
    assert_eq!(ask(&old).await, 402, "without keys it is what its User-Agent says");
    assert_eq!(counts(&stage).await, [0, 0, 1]);
    server.answer("200 OK", &old.keys());
    eventually("the keys", async || ask(&old).await == 200).await;
    assert_eq!(ask(&new).await, 402);
    let failures = stage.metric("larder_key_directory_failures_total").await;
    assert!(failures >= 1);
    // A day is not over, so nothing is fetched; a reload changes nothing either.
    let asked = server.asked();
    let reload = async || stage.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    server.answer("200 OK", &new.keys());
    assert_eq!(reload().await.status, 200);
    assert_eq!((ask(&old).await, ask(&new).await, server.asked()), (200, 402, asked));
    assert_eq!(stage.metric("larder_key_directory_failures_total").await, failures);
}

#[tokio::test]
async fn a_directory_is_small_and_its_server_is_its_own() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = DirectoryServer::start(&authority).await;
    let origin = format!("https://127.0.0.1:{}", server.port);
    let agent = Agent::new(1, &origin);
    server.answer("200 OK", &format!("{}{}", agent.keys(), " ".repeat(2048)));
    for (ca, said, limit_hits) in [
        (&authority, "(limit: key_directory_bytes)", 1),
        (&other, "not signed by a trusted authority", 0),
    ] {
        let top = format!(
            "[crawlers.signatures]\nChatGPT-User = {{ agent = \"{origin}\", ca = \"{}\" }}\n",
            ca.path("ca.pem")
        );
        let limits = "key_directory_retry_wait = \"1h\"\nkey_directory_bytes = \"2KiB\"";
        let stage = Setup { top: &top, site: SITE, limits, ..Setup::default() }.start().await;
        let log = stage.daemon.assert_logged("the key directory cannot be fetched: ").await;
        assert!(log.contains(said), "{log}");
        assert_eq!(stage.limit_hits("key_directory_bytes").await, limit_hits);
        let fields = format!("{BROWSER}{}", agent.sign("/page"));
        assert_eq!(stage.ask("GET", "/page", &fields).await.status, 402);
    }
}
