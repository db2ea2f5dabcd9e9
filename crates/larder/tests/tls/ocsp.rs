//! Tests of OCSP stapling, with `openssl` as the authority and as the client: which responses are
//! stapled, which never are, and that handshakes never depend on a responder.

use crate::support;

use std::process::{Command, Stdio};

use support::folder::Folder;
use support::{eventually, is_full_run, pause};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use tls::{CertificateKeyPair, StapleError};

const DAY_SECS: u64 = 24 * 3600;
/// Serial numbers of the certificates.
const LEAF: &str = "0x1001";
const OTHER: &str = "0x1002";

/// An authority in a folder.
struct Authority {
    folder: Folder,
}

impl Authority {
    fn new() -> Self {
        let own = Self { folder: Folder::new() };
        own.key_and(
            "root",
            &["-x509", "-out", "root.pem", "-subj", "/CN=authority", "-days", "30"],
        );
        own
    }

    /// Runs `openssl`, and returns its output.
    fn openssl(&self, arguments: &[&str]) -> Vec<u8> {
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        let output = command.output().expect("openssl is installed");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        output.stdout
    }

    fn key_and(&self, name: &str, request: &[&str]) {
        let key = format!("{name}.key");
        let kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
        self.openssl(&[&["req", "-keyout", &key], &kind[..], request].concat());
    }

    /// Signs a certificate `<name>.pem`, with lines of extensions.
    fn sign(&self, name: &str, serial: &str, extensions: &str) {
        let file = |kind: &str| format!("{name}.{kind}");
        self.key_and(name, &["-out", &file("csr"), "-subj", &format!("/CN={name}")]);
        self.folder.file(&file("ext"), format!("{extensions}\n"));
        let (csr, ext, pem) = (file("csr"), file("ext"), file("pem"));
        let by = ["-CA", "root.pem", "-CAkey", "root.key", "-set_serial", serial, "-days", "20"];
        let of = ["x509", "-req", "-in", &csr, "-extfile", &ext, "-out", &pem];
        self.openssl(&[&of[..], &by[..]].concat());
    }

    /// Signs `leaf`, which names this responder.
    fn sign_leaf(&self, responder: &str, more: &str) {
        let names = "subjectAltName=DNS:a.test";
        let access = format!("authorityInfoAccess=OCSP;URI:{responder}");
        self.sign("leaf", LEAF, &format!("{names}\n{access}\n{more}"));
        let read = |file: &str| std::fs::read(self.folder.path().join(file)).expect("a file");
        self.folder.file("chain.pem", [read("leaf.pem"), read("root.pem")].concat());
    }

    /// The response of `signer` about `serial`, `revoked` or not, valid for so many days, or
    /// minutes (`1m`).
    fn answer(&self, signer: &str, serial: &str, revoked: bool, days: &str) -> Vec<u8> {
        let number = serial.trim_start_matches("0x");
        let state = if revoked { "R\t491231235959Z\t250101000000Z" } else { "V\t491231235959Z\t" };
        self.folder.file("index", format!("{state}\t{number}\tunknown\t/CN=x\n"));
        let (pem, key) = (format!("{signer}.pem"), format!("{signer}.key"));
        let by = ["-index", "index", "-CA", "root.pem", "-rsigner", &pem, "-rkey", &key];
        let of = ["-issuer", "root.pem", "-serial", serial, "-no_nonce", "-noverify"];
        let days = match (days, days.strip_suffix('m')) {
            ("0", _) => vec![],
            (_, Some(minutes)) => vec!["-nmin", minutes],
            (days, None) => vec!["-ndays", days],
        };
        let alone = if signer == "root" { vec!["-resp_no_certs"] } else { vec![] };
        let out = ["-respout", "answer.der"];
        self.openssl(&[&["ocsp"], &by[..], &of, &days, &alone, &out].concat());
        std::fs::read(self.folder.path().join("answer.der")).expect("an answer")
    }

    fn pair(&self) -> CertificateKeyPair {
        let read = |file: &str| std::fs::read(self.folder.path().join(file)).expect("a file");
        CertificateKeyPair::parse(&read("chain.pem"), &read("leaf.key")).expect("a pair")
    }
}

fn now_secs() -> u64 {
    std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs()
}

/// Judges a response, so many seconds from now.
fn judge(pair: &CertificateKeyPair, answer: &[u8], from_now: i64) -> Result<u64, StapleError> {
    let inquiry = pair.inquiry().expect("a responder");
    let now = now_secs().checked_add_signed(from_now).expect("a time");
    inquiry.judge(answer, now).map(|staple| staple.until_secs)
}

#[test]
fn an_answer_of_the_issuer_holds_from_its_beginning_to_its_end() {
    let authority = Authority::new();
    authority.sign_leaf("http://127.0.0.1:1/ocsp", "");
    let pair = authority.pair();
    let inquiry = pair.inquiry().expect("a responder");
    assert_eq!(inquiry.urls, ["http://127.0.0.1:1/ocsp"]);
    assert!(!pair.must_staple());
    let answer = authority.answer("root", LEAF, false, "2");
    let until = judge(&pair, &answer, 0).expect("a good answer");
    assert!(until > now_secs() + DAY_SECS && until <= now_secs() + 2 * DAY_SECS, "{until}");
    let (day, minute) = (DAY_SECS as i64, 60);
    assert_eq!(judge(&pair, &answer, day), Ok(until));
    assert_eq!(judge(&pair, &answer, 2 * day + minute), Err(StapleError::Late));
    assert_eq!(judge(&pair, &answer, -day), Err(StapleError::Early));
    let timeless = authority.answer("root", LEAF, false, "0");
    assert_eq!(judge(&pair, &timeless, 0), Err(StapleError::Timeless));
}

#[test]
fn the_question_is_one_that_a_responder_understands() {
    let authority = Authority::new();
    authority.sign_leaf("http://127.0.0.1:1/", "");
    let inquiry = authority.pair().inquiry().expect("a responder").request.clone();
    authority.folder.file("question.der", &inquiry);
    authority.folder.file("index", "V\t491231235959Z\t\t1001\tunknown\t/CN=x\n");
    authority.openssl(&[
        "ocsp",
        "-index",
        "index",
        "-CA",
        "root.pem",
        "-rsigner",
        "root.pem",
        "-rkey",
        "root.key",
        "-reqin",
        "question.der",
        "-respout",
        "said.der",
        "-ndays",
        "1",
    ]);
    let said = std::fs::read(authority.folder.path().join("said.der")).expect("an answer");
    assert!(judge(&authority.pair(), &said, 0).is_ok());
}

#[test]
fn what_a_client_would_refuse_is_not_taken() {
    let authority = Authority::new();
    authority.sign_leaf("http://127.0.0.1:1/", "");
    let pair = authority.pair();
    let revoked = authority.answer("root", LEAF, true, "1");
    assert_eq!(judge(&pair, &revoked, 0), Err(StapleError::Revoked));
    let other = authority.answer("root", OTHER, false, "1");
    assert_eq!(judge(&pair, &other, 0), Err(StapleError::OtherCertificate));
    let stranger = Authority::new();
    let theirs = stranger.answer("root", LEAF, false, "1");
    assert_eq!(judge(&pair, &theirs, 0), Err(StapleError::Signature));
    let good = authority.answer("root", LEAF, false, "1");
    for at in 0..good.len() {
        let mut bent = good.clone();
        bent[at] ^= 1;
        let judged = judge(&pair, &bent, 0);
        assert!(judged.is_err(), "byte {at}: {judged:?}");
        assert!(judge(&pair, &good[..at], 0).is_err(), "cut at {at}");
    }
    for text in ["", "0", "<html>not found</html>"] {
        assert!(matches!(judge(&pair, text.as_bytes(), 0), Err(StapleError::Unreadable(_))));
    }
    // tryLater, in full.
    let later = judge(&pair, &[0x30, 3, 0x0a, 1, 3], 0);
    assert_eq!(later, Err(StapleError::NoAnswer("tryLater")));
}

#[test]
fn a_delegate_answers_only_with_the_purpose_that_its_issuer_gave_it() {
    let authority = Authority::new();
    authority.sign_leaf("http://127.0.0.1:1/", "");
    authority.sign("delegate", "0x2001", "extendedKeyUsage=OCSPSigning");
    authority.sign("nobody", "0x2002", "extendedKeyUsage=serverAuth");
    let pair = authority.pair();
    assert!(judge(&pair, &authority.answer("delegate", LEAF, false, "1"), 0).is_ok());
    let nobody = authority.answer("nobody", LEAF, false, "1");
    assert_eq!(judge(&pair, &nobody, 0), Err(StapleError::Signer));
    let itself = authority.answer("leaf", LEAF, false, "1");
    assert_eq!(judge(&pair, &itself, 0), Err(StapleError::Signer));
    // Beyond the signer's own lifetime it may not, whatever the response says.
    let long = authority.answer("delegate", LEAF, false, "40");
    assert_eq!(judge(&pair, &long, 30 * DAY_SECS as i64), Err(StapleError::Signer));
    let stranger = Authority::new();
    stranger.sign("delegate", "0x2001", "extendedKeyUsage=OCSPSigning");
    let theirs = stranger.answer("delegate", LEAF, false, "1");
    assert_eq!(judge(&pair, &theirs, 0), Err(StapleError::Signer));
}

#[test]
fn certificates_without_a_responder_or_without_their_issuer_are_not_asked_about() {
    let authority = Authority::new();
    authority.sign_leaf("https://127.0.0.1:1/", "tlsfeature=status_request");
    assert!(authority.pair().inquiry().is_none(), "over TLS");
    assert!(authority.pair().must_staple());
    authority.sign_leaf("http://127.0.0.1:1/", "");
    let leaf = std::fs::read(authority.folder.path().join("leaf.pem")).expect("a file");
    authority.folder.file("chain.pem", &leaf);
    assert!(authority.pair().inquiry().is_none(), "no issuer");
    authority.folder.file("chain.pem", leaf.repeat(2));
    assert!(authority.pair().inquiry().is_none(), "not its issuer");
}

/// A daemon with a certificate that names a responder.
struct Scene {
    authority: Authority,
    responder: ScriptedOrigin,
    daemon: Daemon,
}

impl Scene {
    async fn new(script: impl FnOnce(&Authority) -> Script, settings: &str, more: &str) -> Self {
        let (authority, responder) =
            (Authority::new(), ScriptedOrigin::start().await.expect("a port"));
        authority.sign_leaf(&format!("http://{}/ocsp", responder.addr()), more);
        responder.on("/ocsp", script(&authority));
        let path = |file: &str| authority.folder.path().join(file).display().to_string();
        let config = format!(
            "listen = \"127.0.0.1:0 tls\"\n[tls]\ncert = \"{}\"\nkey = \"{}\"\n{settings}\n\
             [[site]]\nhost = \"*\"\norigin = \"http://{}\"\n",
            path("chain.pem"),
            path("leaf.key"),
            responder.addr()
        );
        let daemon = Daemon::start(&config).expect("it starts");
        Self { authority, responder, daemon }
    }

    /// Output of `openssl s_client` about the status in a handshake.
    async fn shown(&self) -> String {
        let (address, folder) = (self.daemon.addr(), self.authority.folder.path().to_owned());
        let run = move || {
            let to = address.to_string();
            Command::new("openssl")
                .args(["s_client", "-connect", &to, "-servername", "a.test", "-status"])
                .args(["-CAfile", "root.pem", "-verify_return_error"])
                .current_dir(folder)
                .stdin(Stdio::null())
                .output()
                .expect("openssl is installed")
        };
        let output = tokio::task::spawn_blocking(run).await.expect("no panic");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.contains("Verify return code: 0 (ok)"), "the handshake: {said}");
        said
    }

    async fn is_shown(&self) -> bool {
        let said = self.shown().await;
        let good =
            said.contains("OCSP Response Status: successful") && said.contains("Cert Status: good");
        assert!(good || said.contains("OCSP response: no response sent"), "{said}");
        good
    }

    async fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(name, "").await.expect("metrics") as u64
    }

    /// Waits until responders have failed so often.
    async fn failed(&self, times: u64) {
        let name = "larder_ocsp_failures_total";
        eventually("a failure", || async { self.metric(name).await >= times }).await;
    }

    async fn reload(&self) {
        let said = self.daemon.ask_admin("POST", "/reload").await.expect("an answer");
        assert_eq!(said.status, 200, "{}", said.text());
    }
}

fn answered(answer: &[u8]) -> Script {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: {}\r\n\r\n",
        answer.len()
    );
    Script::respond([head.as_bytes(), answer].concat())
}

const SOON: &str = "[limits]\nocsp_retry_wait = \"200ms\"";

#[tokio::test]
async fn handshakes_show_the_answer_and_go_on_with_it_after_a_reload() {
    let good = |authority: &Authority| answered(&authority.answer("root", LEAF, false, "2"));
    let scene = Scene::new(good, SOON, "").await;
    eventually("a staple", || async { scene.is_shown().await }).await;
    assert_eq!(scene.responder.seen("/ocsp"), 1);
    scene.responder.on("/ocsp", Script::default().hang());
    scene.reload().await;
    assert!(scene.is_shown().await, "after a reload");
    // The same certificate in a file that was written anew.
    let chain = std::fs::read(scene.authority.folder.path().join("chain.pem")).expect("a file");
    scene.authority.folder.replace("chain.pem", chain);
    eventually("it is read", || async { scene.daemon.log().contains("certificates renewed") })
        .await;
    assert!(scene.is_shown().await, "after a renewal");
    assert_eq!(scene.responder.seen("/ocsp"), 1, "nobody asks for what is there");
    assert!(scene.daemon.log().contains("OCSP: a.test: "), "{}", scene.daemon.log());
    assert_eq!(scene.metric("larder_ocsp_failures_total").await, 0);
    // Another certificate has no staple.
    scene.authority.sign_leaf("https://127.0.0.1:1/", "");
    eventually("it is shown", || async { !scene.is_shown().await }).await;
}

#[tokio::test]
async fn without_a_good_answer_handshakes_go_on_without_one() {
    type Answer = fn(&Authority) -> Script;
    let cases: [(&str, Answer); 6] = [
        ("revoked", |own| answered(&own.answer("root", LEAF, true, "2"))),
        ("other", |own| answered(&own.answer("root", OTHER, false, "2"))),
        ("stranger", |_| answered(&Authority::new().answer("root", LEAF, false, "2"))),
        ("page", |_| answered(b"<html>hello</html>")),
        ("status", |own| {
            let head = "HTTP/1.1 404 Not Found\r\nContent-Length: ";
            let answer = own.answer("root", LEAF, false, "2");
            let head = format!("{head}{}\r\n\r\n", answer.len());
            Script::respond([head.as_bytes(), &answer].concat())
        }),
        ("cut", |own| {
            let answer = own.answer("root", LEAF, false, "2");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", answer.len());
            Script::respond([head.as_bytes(), &answer[..answer.len() - 1]].concat()).close()
        }),
    ];
    for (name, script) in cases {
        let scene = Scene::new(script, SOON, "tlsfeature=status_request").await;
        scene.failed(2).await;
        assert!(!scene.is_shown().await, "{name}");
        scene.daemon.assert_logged("the certificate requires one").await;
    }
}

#[tokio::test]
async fn a_responder_that_says_too_much_or_nothing_is_left_by_its_limits() {
    let large = |_: &Authority| answered(&vec![b'x'; 100_000]);
    let scene = Scene::new(large, SOON, "").await;
    scene.failed(1).await;
    assert!(!scene.is_shown().await);
    let label = "limit=\"ocsp_answer_bytes\"";
    let hits = scene.daemon.metric("larder_limit_hits_total", label).await.expect("metrics");
    assert!(hits >= 1.0, "counted");
    let settings = "[limits]\nocsp_timeout = \"300ms\"\nocsp_retry_wait = \"200ms\"";
    let scene = Scene::new(|_| Script::default().hang(), settings, "").await;
    scene.failed(1).await;
    assert!(!scene.is_shown().await);
    // The responder recovers.
    let good = answered(&scene.authority.answer("root", LEAF, false, "2"));
    scene.responder.on("/ocsp", good);
    eventually("a staple", || async { scene.is_shown().await }).await;
}

#[tokio::test]
async fn the_last_answer_is_shown_until_it_ends_and_no_longer() {
    // A minute is the shortest validity that `openssl` can set.
    if !is_full_run() {
        return;
    }
    let good = |authority: &Authority| answered(&authority.answer("root", LEAF, false, "1m"));
    let scene = Scene::new(good, SOON, "").await;
    eventually("a staple", || async { scene.is_shown().await }).await;
    scene.responder.on("/ocsp", Script::respond("HTTP/1.1 500 x\r\nContent-Length: 0\r\n\r\n"));
    while scene.metric("larder_ocsp_failures_total").await == 0 {
        pause(200).await;
    }
    assert!(scene.is_shown().await, "half of its time is left");
    while scene.is_shown().await {
        pause(200).await;
    }
    scene.daemon.assert_logged("the last response stays stapled").await;
    scene.daemon.assert_logged("no response is stapled").await;
    scene.responder.on("/ocsp", answered(&scene.authority.answer("root", LEAF, false, "1")));
    eventually("a new one", || async { scene.is_shown().await }).await;
}

#[tokio::test]
async fn a_staple_can_be_switched_off() {
    let good = |authority: &Authority| answered(&authority.answer("root", LEAF, false, "2"));
    let scene = Scene::new(good, "ocsp = true", "").await;
    eventually("a staple", || async { scene.is_shown().await }).await;
    let file = scene.daemon.config_file();
    let config = std::fs::read_to_string(&file).expect("its configuration");
    std::fs::write(&file, config.replace("ocsp = true", "ocsp = false")).expect("written");
    scene.reload().await;
    assert!(!scene.is_shown().await);
    assert_eq!(scene.responder.seen("/ocsp"), 1);
}

#[test]
fn a_certificate_that_insists_on_an_answer_and_can_have_none_is_warned_of() {
    let authority = Authority::new();
    let check = |ocsp: bool| {
        let path = |file: &str| authority.folder.path().join(file).display().to_string();
        let config = format!(
            "listen = \"127.0.0.1:0 tls\"\n[tls]\ncert = \"{}\"\nkey = \"{}\"\nocsp = {ocsp}\n\
             [[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n",
            path("chain.pem"),
            path("leaf.key"),
        );
        authority.folder.file("larder.toml", config);
        let mut check = Command::new(testkit::larder::binary().expect("a binary"));
        let checked = check.args(["check", &path("larder.toml")]).output().expect("it starts");
        assert!(checked.status.success(), "a warning is no error");
        String::from_utf8_lossy(&checked.stderr).into_owned()
    };
    let (responder, over_tls) = ("http://127.0.0.1:1/", "https://127.0.0.1:1/");
    for (url, insists, ocsp, why) in [
        (over_tls, true, true, Some("it names no responder over http")),
        (responder, true, false, Some("`ocsp = false` switches it off")),
        (responder, true, true, None),
        (over_tls, false, true, None),
    ] {
        authority.sign_leaf(url, if insists { "tlsfeature=status_request" } else { "" });
        let said = check(ocsp);
        let is_warned = said.contains("makes clients require an OCSP response");
        assert_eq!(is_warned, why.is_some(), "{url} {insists} {ocsp}: {said}");
        assert!(why.is_none_or(|why| said.contains(why)), "{said}");
    }
}
