//! TLS to origins: verified by default, and never in plain text where it was asked for.

use crate::support;

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use support::tls::{Authority, Kind};
use support::{PATIENCE, console, whole};
use testkit::client::RawClient;
use testkit::larder::Daemon;
use testkit::reply::Reply;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 6\r\n\r\nsecret";

/// An origin that speaks TLS, and how often it was connected to.
struct Origin {
    addr: SocketAddr,
    handshakes: Arc<AtomicUsize>,
}

/// Starts an origin with a certificate for `names`; with `checks` it requires client certificates
/// of `authority`.
async fn origin(authority: &Authority, names: &[&str], expired: bool, checks: bool) -> Origin {
    let (chain, key) = authority.make(names, Kind::Elliptic, expired);
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("PEM");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match checks {
        false => builder.with_no_client_auth(),
        true => {
            let mut roots = rustls::RootCertStore::empty();
            let pem = std::fs::read(authority.folder.join("ca.pem")).expect("a file");
            roots.add(CertificateDer::from_pem_slice(&pem).expect("PEM")).expect("added");
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        }
    };
    let config = builder.with_single_cert(chain, key).expect("a pair");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    let handshakes = Arc::new(AtomicUsize::new(0));
    let (acceptor, count) = (TlsAcceptor::from(Arc::new(config)), Arc::clone(&handshakes));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(tcp).await else { return };
                count.fetch_add(1, Ordering::Relaxed);
                let mut received = Vec::new();
                loop {
                    while !received.ends_with(b"\r\n\r\n") {
                        match stream.read_buf(&mut received).await {
                            Ok(read) if read > 0 => {}
                            _ => return,
                        }
                    }
                    received.clear();
                    if stream.write_all(ANSWER).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Origin { addr, handshakes }
}

fn start(server: &str, tls: &str) -> Daemon {
    start_with(server, tls, "")
}

/// Starts a daemon with further keys of the origin.
fn start_with(server: &str, tls: &str, more: &str) -> Daemon {
    let tls = if tls.is_empty() { String::new() } else { format!("tls = {{ {tls} }}") };
    let config = format!(
        "listen = \"127.0.0.1:0\"\nworkers = 1\n[limits]\nconnect_timeout = \"1s\"\nretries = 0\n\
         [[origin]]\nname = \"app\"\nservers = \"{server}\"\n{tls}\n{more}\n\
         [[site]]\nhost = \"*\"\norigin = \"app\"\n"
    );
    Daemon::start(&config).expect("larder starts")
}

async fn get(daemon: &Daemon) -> Reply {
    let mut raw = RawClient::connect(daemon.addr()).await.expect("a connection").patience(PATIENCE);
    whole(raw.get("/page").await.expect("sent"), "/page")
}

#[tokio::test]
async fn a_verified_origin_answers_over_one_kept_connection() {
    let authority = Authority::new();
    let origin = origin(&authority, &["127.0.0.1"], false, false).await;
    let ca = authority.path("ca.pem");
    let daemon = start(&format!("https://{}", origin.addr), &format!("ca = \"{ca}\""));
    for _ in 0..3 {
        let reply = get(&daemon).await;
        assert_eq!((reply.status, reply.text().as_str()), (200, "secret"));
    }
    assert_eq!(origin.handshakes.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_cannot_be_verified_is_refused_and_the_cause_named() {
    let (authority, other) = (Authority::new(), Authority::new());
    let (ca, foreign) = (authority.path("ca.pem"), other.path("ca.pem"));
    let good = origin(&authority, &["127.0.0.1"], false, false).await;
    let misnamed = origin(&authority, &["app.test"], false, false).await;
    let late = origin(&authority, &["127.0.0.1"], true, false).await;
    for (origin, tls, cause) in [
        (&good, format!("ca = \"{foreign}\""), "not signed by a trusted authority"),
        (&good, String::new(), "not signed by a trusted authority"),
        (&misnamed, format!("ca = \"{ca}\""), "for another name"),
        (&late, format!("ca = \"{ca}\""), "has expired"),
        (&good, format!("ca = \"{ca}\", sni = \"other.test\""), "for another name"),
    ] {
        let daemon = start(&format!("https://{}", origin.addr), &tls);
        let reply = get(&daemon).await;
        assert_eq!(reply.status, 502, "{tls}");
        assert!(!reply.text().contains(cause), "for operators: {}", reply.text());
        let origins = console::look(&daemon, "/api/v1/origins").await.to_string();
        assert!(origins.contains(cause), "{cause}: {origins}");
    }
    // The name that is asked for may be set, and checks may be switched off.
    for (origin, tls) in [
        (&misnamed, format!("ca = \"{ca}\", sni = \"app.test\"")),
        (&late, "verify = false".to_owned()),
    ] {
        let daemon = start(&format!("https://{}", origin.addr), &tls);
        assert_eq!(get(&daemon).await.text(), "secret", "{tls}");
        let warned = daemon.log().contains("certificates are not verified");
        assert_eq!(warned, tls.contains("verify"));
    }
}

#[tokio::test]
async fn an_origin_that_checks_its_clients_is_shown_a_certificate() {
    let authority = Authority::new();
    authority.sign("own", &["larder.test"], Kind::Elliptic);
    let origin = origin(&authority, &["127.0.0.1"], false, true).await;
    let (ca, own) = (authority.path("ca.pem"), authority.pair("own"));
    let url = format!("https://{}", origin.addr);
    assert_eq!(get(&start(&url, &format!("ca = \"{ca}\", {own}"))).await.text(), "secret");
    assert_eq!(get(&start(&url, &format!("ca = \"{ca}\""))).await.status, 502);
}

#[tokio::test]
async fn a_server_that_speaks_no_tls_or_nothing_gets_no_plain_request() {
    for answer in [ANSWER, b""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut tcp, _)) = listener.accept().await {
                let said = said.clone();
                tokio::spawn(async move {
                    _ = tcp.write_all(answer).await;
                    let mut bytes = Vec::new();
                    _ = tcp.read_to_end(&mut bytes).await;
                    _ = said.send(bytes);
                });
            }
        });
        let daemon = start(&url, "verify = false");
        let reply = get(&daemon).await;
        let status = if answer.is_empty() { 504 } else { 502 };
        assert_eq!(reply.status, status, "{}", reply.text());
        let bytes = heard.recv().await.expect("a connection");
        assert_eq!(bytes.first(), Some(&22), "a handshake and nothing else");
        assert!(!bytes.windows(4).any(|w| w == b"HTTP"));
    }
}

/// `openssl s_server` with a certificate of X.509's version 1.
struct VersionOne {
    child: Child,
    /// Open, so that it may go on to talk.
    _said: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl VersionOne {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new("openssl");
            command.current_dir(folder).args(arguments);
            let output = command.output().expect("openssl is installed");
            assert!(output.status.success(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "v1.key"]);
        openssl(&["req", "-new", "-key", "v1.key", "-subj", "/CN=old", "-out", "v1.csr"]);
        openssl(&["x509", "-req", "-in", "v1.csr", "-signkey", "v1.key", "-out", "v1.pem"]);
        assert!(openssl(&["x509", "-in", "v1.pem", "-noout", "-text"]).contains("Version: 1 "));
        let mut child = Command::new("openssl")
            .current_dir(folder)
            .args(["s_server", "-accept", "127.0.0.1:0", "-www", "-cert", "v1.pem"])
            .args(["-key", "v1.key"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl is installed");
        let mut said = BufReader::new(child.stdout.take().expect("its output")).lines();
        let accepts = |line: String| line.strip_prefix("ACCEPT ").map(str::to_owned);
        let address = said.by_ref().map_while(Result::ok).find_map(accepts);
        Self { child, _said: said, address: address.expect("an address") }
    }
}

impl Drop for VersionOne {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

#[tokio::test]
async fn certificates_of_version_1_are_believed_where_nothing_is_verified() {
    for version in ["-tls1_2", "-tls1_3"] {
        let authority = Authority::new();
        let folder = authority.folder.clone();
        let server = tokio::task::spawn_blocking(move || VersionOne::start(&folder, &[version]));
        let server = server.await.expect("no panic");
        let url = format!("https://{}", server.address);
        let reply = get(&start(&url, "verify = false")).await;
        assert_eq!(reply.status, 200, "{version}: {}", reply.text());
        let daemon = start(&url, &format!("ca = \"{}\"", authority.path("ca.pem")));
        assert_eq!(get(&daemon).await.status, 502, "{version}");
        let origins = console::look(&daemon, "/api/v1/origins").await.to_string();
        assert!(origins.contains("TLS: its certificate"), "{origins}");
        assert!(!origins.contains("Unsupported"), "{origins}");
    }
}

/// An origin whose responses end with their connection, with a TLS close_notify if `clean`.
async fn closing(authority: &Authority, clean: bool) -> SocketAddr {
    authority.sign("own", &["127.0.0.1"], Kind::Elliptic);
    let acceptor = authority.acceptor("own");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(tcp).await else { continue };
            let mut received = Vec::new();
            while !received.ends_with(b"\r\n\r\n") {
                if !stream.read_buf(&mut received).await.is_ok_and(|read| read > 0) {
                    break;
                }
            }
            let answer = b"HTTP/1.0 200 OK\r\nCache-Control: max-age=60\r\n\r\nsecret";
            _ = stream.write_all(answer).await;
            _ = stream.flush().await;
            if clean {
                _ = stream.shutdown().await;
            }
        }
    });
    addr
}

#[tokio::test]
async fn a_body_that_ends_with_its_connection_is_whole_only_if_tls_says_so() {
    for clean in [true, false] {
        let authority = Authority::new();
        let url = format!("https://{}", closing(&authority, clean).await);
        let daemon = start_with(&url, "verify = false", "store_close_delimited = true");
        let stored = async || {
            let mut raw = RawClient::connect(daemon.addr()).await.expect("a connection");
            let seen = raw.get("/page").await.expect("sent");
            seen.complete().is_some_and(support::is_hit)
        };
        assert!(!stored().await);
        assert_eq!(stored().await, clean);
        assert_eq!(stored().await, clean);
    }
}
