//! Tests of sites that check their clients differently, on one TLS listener: a session of one must
//! never open another.

use crate::support;

use support::tls::{Authority, Kind, Served};
use support::whole;
use testkit::client::{RawClient, WriteSplit};
use testkit::origin::Script;

const TEXT: &str = "0123456789abcdefghij";

/// `open.test` for everyone, `closed.test` and `also.test` for clients with a certificate,
/// `maybe.test` for both; one certificate is for all of them.
async fn sites(authority: &Authority) -> Served {
    let names = ["open.test", "closed.test", "also.test", "maybe.test"];
    authority.sign("all", &names, Kind::Elliptic);
    let (pair, ca) = (authority.pair("all"), authority.path("ca.pem"));
    let require = format!("tls = {{ {pair}, client_ca = \"{ca}\" }}");
    let optional = format!("tls = {{ {pair}, client_ca = \"{ca}\", client_auth = \"optional\" }}");
    let served = Served::start(&format!(
        "[[site]]\nhost = \"open.test\"\norigin = \"app\"\ntls = {{ {pair} }}\n\
         [[site]]\nhost = [\"closed.test\", \"also.test\"]\norigin = \"app\"\n{require}\n\
         [[site]]\nhost = \"maybe.test\"\norigin = \"app\"\n{optional}\n"
    ))
    .await;
    served.origin.on("/page", Script::cacheable(TEXT));
    served
}

#[tokio::test]
async fn only_clients_with_a_good_certificate_reach_a_site_that_requires_one() {
    let (authority, other) = (Authority::new(), Authority::new());
    let served = sites(&authority).await;
    let own = authority.make(&["client.test"], Kind::Elliptic, false);
    let good = authority.client_of(rustls::ALL_VERSIONS, Some(own));
    assert_eq!(good.get(served.addr(), "closed.test", "/page").await.text(), TEXT);
    assert_eq!(good.get(served.addr(), "maybe.test", "/page").await.text(), TEXT);
    assert_eq!(authority.client().get(served.addr(), "maybe.test", "/page").await.text(), TEXT);
    let foreign = other.make(&["client.test"], Kind::Elliptic, false);
    let expired = authority.make(&["client.test"], Kind::Elliptic, true);
    for (own, name) in [
        (None, "closed.test"),
        (Some(foreign.clone()), "closed.test"),
        (Some(expired), "closed.test"),
        (Some(foreign), "maybe.test"),
    ] {
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let client = authority.client_of(&[version], own.clone());
            let Ok(mut connection) = client.try_connect(served.addr(), name).await else {
                continue;
            };
            // In TLS 1.3 the client's handshake ends before the server has seen its certificate.
            _ = connection.send(&support::tls::get(name, "/page")).await;
            let seen = connection.reply("GET").await;
            assert!(!matches!(seen, testkit::reply::ReplyOutcome::Complete(_)), "{name}: {seen:?}");
        }
    }
}

#[tokio::test]
async fn a_plain_connection_does_not_reach_a_site_that_requires_a_certificate() {
    let authority = Authority::new();
    let served = sites(&authority).await;
    for (host, status) in [("open.test", 200), ("maybe.test", 200), ("closed.test", 403)] {
        let mut raw = RawClient::connect(served.plain()).await.expect("a connection");
        raw.send(&support::tls::get(host, "/page"), WriteSplit::Whole).await.expect("sent");
        assert_eq!(whole(raw.reply("GET").await, host).status, status, "{host}");
    }
}

#[tokio::test]
async fn a_request_over_the_wrong_connection_is_misdirected() {
    let authority = Authority::new();
    let served = sites(&authority).await;
    let own = authority.make(&["client.test"], Kind::Elliptic, false);
    let client = authority.client_of(rustls::ALL_VERSIONS, Some(own));
    for (name, host, status) in [
        ("open.test", "open.test", 200),
        ("open.test", "closed.test", 421),
        ("open.test", "maybe.test", 421),
        ("maybe.test", "closed.test", 421),
        ("closed.test", "also.test", 200),
        ("closed.test", "open.test", 421),
        ("closed.test", "CLOSED.test:443", 200),
    ] {
        let mut connection = client.connect(served.addr(), name).await;
        assert_eq!(connection.get(host, "/page").await.status, status, "{host} over {name}");
    }
}

#[tokio::test]
async fn a_host_that_the_certificate_shown_is_not_for_is_misdirected() {
    let authority = Authority::new();
    authority.sign("ab", &["a.test", "b.test"], Kind::Elliptic);
    authority.sign("c", &["c.test"], Kind::Elliptic);
    let (ab, c) = (authority.pair("ab"), authority.pair("c"));
    let served = Served::start(&format!(
        "[[site]]\nhost = \"a.test\"\norigin = \"app\"\ntls = {{ {ab} }}\n\
         [[site]]\nhost = \"b.test\"\norigin = \"app\"\ntls = {{ {ab} }}\n\
         [[site]]\nhost = \"c.test\"\norigin = \"app\"\ntls = {{ {c} }}\n"
    ))
    .await;
    served.origin.on("/page", Script::cacheable(TEXT));
    let mut connection = authority.client().connect(served.addr(), "a.test").await;
    assert_eq!(connection.get("b.test", "/page").await.status, 200);
    assert_eq!(connection.get("c.test", "/page").await.status, 421);
    assert_eq!(connection.get("a.test", "/page").await.status, 200);
}

#[tokio::test]
async fn sessions_resume_within_a_site_and_never_across_checks() {
    let authority = Authority::new();
    let served = sites(&authority).await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = authority.client_of(&[version], None);
        for wanted in [false, true, true] {
            let mut connection = client.connect(served.addr(), "open.test").await;
            // Tickets of TLS 1.3 follow the first response.
            connection.get("open.test", "/page").await;
            assert_eq!(connection.is_resumed(), wanted);
        }
    }
    served.daemon.assert_metric("larder_tls_resumed_total", 4).await;

    // A client that uses its tickets of one host for another: it takes them for one server. The
    // ticket of the open site must not even be readable for the closed one.
    let before = served.metric("larder_tls_resumed_total").await;
    let addr = served.addr().to_string();
    let folder = authority.folder.clone();
    let run = move |name: &'static str, flag: &'static str| {
        let file = folder.join("session");
        let mut command = std::process::Command::new("openssl");
        command.args(["s_client", "-connect", &addr, "-servername", name, "-tls1_2", flag]);
        command.arg(file).stdin(std::process::Stdio::null());
        let output = command.output().expect("openssl is installed");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let said = tokio::task::spawn_blocking(move || {
        run("open.test", "-sess_out");
        [run("open.test", "-sess_in"), run("closed.test", "-sess_in")]
    })
    .await
    .expect("it ran");
    assert!(said[0].contains("Reused, TLSv1.2"), "{}", said[0]);
    assert!(!said[1].contains("Reused"), "{}", said[1]);
    served.daemon.assert_metric("larder_tls_resumed_total", before + 1).await;
}

/// The requests to the origin for `target`, in no order.
fn sent(served: &Served, target: &str) -> Vec<testkit::reference_reader::ParsedRequest> {
    let recorded = served.origin.recorded();
    let requests = recorded.iter().flat_map(|connection| {
        testkit::reference_reader::read_requests(&connection.bytes).expect("valid requests")
    });
    requests.filter(|request| request.target == target).collect()
}

#[tokio::test]
async fn origins_get_clients_certificates_and_clients_cannot_forge_them() {
    let authority = Authority::new();
    authority.sign("all", &["maybe.test"], Kind::Elliptic);
    let (pair, ca) = (authority.pair("all"), authority.path("ca.pem"));
    let served = Served::start(&format!(
        "[[site]]\nhost = \"maybe.test\"\norigin = \"app\"\ntls = {{ {pair}, client_ca = \"{ca}\", \
         client_auth = \"optional\", client_fields = [\"x-ssl\", \"client-cert\"] }}\n"
    ))
    .await;
    served.origin.on("/page", Script::cacheable(TEXT));
    let (chain, key) = authority.make(&["client.test"], Kind::Elliptic, false);
    let client = authority.client_of(rustls::ALL_VERSIONS, Some((chain.clone(), key)));
    let forged = "GET /page HTTP/1.1\r\nHost: maybe.test\r\nX-SSL-Client-Verify: SUCCESS\r\n\
                  X-SSL-Client-S-DN: CN=root\r\nClient-Cert: :AAAA:\r\nSSL_CLIENT_CERT: x\r\n\
                  Connection: keep-alive, X-SSL-Client-Verify, X-SSL-Client-S-DN, Client-Cert, \
                  X-SSL-Client-Fingerprint\r\n\r\n";
    let names = ["x-ssl-client-verify", "x-ssl-client-s-dn", "client-cert", "ssl_client_cert"];
    let told = || -> Vec<_> {
        let field = |sent| names.map(|name| support::sent_field(sent, name));
        sent(&served, "/page").iter().map(field).collect()
    };
    let base64: String = chain.lines().filter(|line| !line.starts_with('-')).collect();
    let known: [String; 3] =
        ["SUCCESS".into(), "CN=rcgen self signed cert".into(), format!(":{base64}:")];
    // The second connection resumes the first, whose certificate still counts.
    for resumed in [false, true] {
        let mut connection = client.connect(served.addr(), "maybe.test").await;
        connection.send(forged.as_bytes()).await.expect("sent");
        whole(connection.reply("GET").await, "/page");
        assert_eq!(connection.is_resumed(), resumed);
    }
    assert_eq!(served.origin.seen("/page"), 2, "what is for one client is not kept");
    for (told, sent) in told().iter().zip(sent(&served, "/page")) {
        assert_eq!((&told[..3], told[3].as_str()), (&known[..], ""));
        let print = support::sent_field(&sent, "x-ssl-client-fingerprint");
        assert!(print.len() == 40 && print.bytes().all(|b| b.is_ascii_hexdigit()), "{print}");
    }
    let mut nobody = authority.client().connect(served.addr(), "maybe.test").await;
    nobody.send(forged.as_bytes()).await.expect("sent");
    whole(nobody.reply("GET").await, "/page");
    assert_eq!(told().len(), 3);
    assert!(told().contains(&["NONE", "", "", ""].map(str::to_owned)), "{:?}", told());
    // A page stored for clients without a certificate is not for those with one.
    client.get(served.addr(), "maybe.test", "/page").await;
    assert_eq!(served.origin.seen("/page"), 4);
}
