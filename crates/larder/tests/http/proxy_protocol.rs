//! Tests of listeners behind balancers that speak the PROXY protocol.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support;

use support::tls::{Authority, Kind, Served, get};
use support::{PATIENCE, Setup, Stage, eventually, sent_field, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::origin::Script;
use testkit::reply::{ConnectionEnd, Reply};
use tokio::net::{TcpSocket, TcpStream};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// A header of version 2 for 192.0.2.1 port 4711 to 198.51.100.2 port 443.
fn binary() -> Vec<u8> {
    let addresses = [192, 0, 2, 1, 198, 51, 100, 2, 0x12, 0x67, 0x01, 0xbb];
    [SIGNATURE, &[0x21, 0x11, 0, 12], &addresses].concat()
}

/// A version 1 line for `source`.
fn line(source: &str) -> Vec<u8> {
    format!("PROXY TCP4 {source} 198.51.100.2 4711 80\r\n").into_bytes()
}

/// A daemon with one `proxy` listener that admits `trusted`.
async fn behind(trusted: &str, top: &str, limits: &str) -> Stage {
    let top = format!("trusted_proxies = [\"{trusted}\"]\n{top}");
    let setup = Setup { top: &top, limits, ..Setup::default() };
    let origin = testkit::origin::ScriptedOrigin::start().await.expect("a port for the origin");
    let file = setup.file(&origin).replacen("127.0.0.1:0", "127.0.0.1:0 proxy", 1);
    let daemon = testkit::larder::Daemon::start(&file).expect("larder starts");
    origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "here"));
    Stage { origin, daemon }
}

/// Sends `bytes`; returns the bytes received, and the connection's end.
async fn answer(stage: &Stage, bytes: &[u8], pieces: WriteSplit) -> (Vec<u8>, ConnectionEnd) {
    let mut raw = stage.connect().await;
    // A daemon that has refused already reads nothing more.
    _ = raw.send(bytes, pieces).await;
    raw.rest().await
}

#[tokio::test]
async fn the_client_is_the_one_in_the_header() {
    let stage = behind("127.0.0.1", "", "").await;
    let ask = request("GET", "/page", "");
    for header in [line("192.0.2.1"), binary()] {
        for pieces in WriteSplit::ALL {
            let mut raw = stage.connect().await;
            raw.send(&[&header[..], &ask].concat(), pieces).await.expect("sent");
            assert_eq!(whole(raw.reply("GET").await, "/page").text(), "here");
            // The header comes once per connection.
            assert_eq!(whole(raw.get("/page").await.expect("sent"), "/page").text(), "here");
        }
    }
    let received = stage.received();
    assert_eq!(received.len(), 12);
    for request in received {
        assert_eq!(sent_field(&request, "x-forwarded-for"), "192.0.2.1");
    }
    stage.daemon.assert_metric("larder_connections_total", 6).await;
}

#[tokio::test]
async fn without_a_header_the_client_is_the_balancer_or_unknown() {
    let stage = behind("127.0.0.1", "", "").await;
    let forged = request("GET", "/page", "X-Forwarded-For: 203.0.113.1\r\n");
    let local = [SIGNATURE, &[0x20, 0, 0, 0]].concat();
    let unix = [SIGNATURE, &[0x21, 0x31, 0, 216], &[b'/'; 216]].concat();
    for (header, client) in [
        // The balancer itself is trusted, a client that it does not name is not.
        (&local[..], "203.0.113.1"),
        (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
        (&unix, "127.0.0.1"),
    ] {
        let mut raw = stage.connect().await;
        raw.send(&[header, &forged].concat(), WriteSplit::Whole).await.expect("sent");
        whole(raw.reply("GET").await, "/page");
        let received = stage.received();
        let last = received.last().expect("a request");
        let first = sent_field(last, "x-forwarded-for");
        assert_eq!(first.split(',').next(), Some(client), "{header:?}");
    }
}

#[tokio::test]
async fn a_proxied_client_cannot_say_it_is_another() {
    let stage = behind("127.0.0.1", "", "").await;
    let forged = "X-Forwarded-For: 203.0.113.1\r\nX-Forwarded-Proto: https\r\n";
    let bytes = [line("192.0.2.1"), request("GET", "/page", forged)].concat();
    whole(stage.connect().await.exchange(&bytes).await, "/page");
    let sent = stage.sole_request("/page");
    assert_eq!(sent_field(&sent, "x-forwarded-for"), "192.0.2.1");
    assert_eq!(sent_field(&sent, "x-forwarded-proto"), "http");
}

#[tokio::test]
async fn strangers_are_closed_and_counted() {
    let stage = behind("127.0.0.9", "", "").await;
    let bytes = [line("192.0.2.1"), request("GET", "/page", "")].concat();
    let (answered, _) = answer(&stage, &bytes, WriteSplit::Whole).await;
    assert_eq!(answered, b"");
    assert_eq!(stage.received().len(), 0);
    stage.daemon.assert_metric("larder_proxy_refused_total", 1).await;
    eventually("none is open", async || stage.metric("larder_connections_open").await == 0).await;
}

#[tokio::test]
async fn without_a_whole_and_right_header_nothing_is_answered() {
    let stage = behind("127.0.0.1", "", "proxy_header_bytes = \"1KiB\"").await;
    let ask = request("GET", "/page", "");
    let spoilt = {
        let mut header = binary();
        header[15] += 7;
        [&header[..], &[3, 0, 4, 1, 2, 3, 4]].concat()
    };
    let long = [SIGNATURE, &[0x21, 0, 4, 0], &[0; 1024]].concat();
    let headers: [&[u8]; 6] = [
        b"",
        b"PROXY TCP4 192.0.2.1 198.51.100.2 4711\r\n",
        b"proxy TCP4 192.0.2.1 198.51.100.2 4711 80\r\n",
        &[SIGNATURE, &[0x21, 0x12, 0, 0]].concat(),
        &spoilt,
        &long,
    ];
    for header in headers {
        let (answered, _) = answer(&stage, &[header, &ask].concat(), WriteSplit::Whole).await;
        assert_eq!(String::from_utf8_lossy(&answered), "", "{header:?}");
    }
    stage.daemon.assert_metric("larder_proxy_errors_total", 6).await;
    stage.daemon.assert_limit_count("proxy_header_bytes", 1).await;
    // A connection that ends within the header, and a port scan.
    let mut raw = stage.connect().await;
    raw.send(b"PROXY TCP4", WriteSplit::Whole).await.expect("sent");
    raw.finish().await.expect("ended");
    assert_eq!(raw.rest().await.0, b"");
    drop(stage.connect().await);
    eventually("every connection is over", async || {
        stage.metric("larder_connections_total").await == 8
            && stage.metric("larder_connections_open").await == 0
    })
    .await;
    stage.daemon.assert_metric("larder_proxy_errors_total", 7).await;
    assert_eq!(stage.received().len(), 0);
}

#[tokio::test]
async fn a_header_that_does_not_come_ends_the_connection() {
    let stage = behind("127.0.0.1", "", "header_timeout = \"200ms\"").await;
    for begun in [&b""[..], b"PROXY TCP4 "] {
        let (answered, _) = answer(&stage, begun, WriteSplit::Whole).await;
        assert_eq!(answered, b"");
    }
    stage.daemon.assert_limit_count("header_timeout", 2).await;
}

#[tokio::test]
async fn each_client_of_a_balancer_has_its_own_bounds_and_rules() {
    let stage = behind("127.0.0.1", "", "connections_per_ip = 1").await;
    let ask = request("GET", "/page", "");
    let mut first = stage.connect().await;
    first.send(&[line("192.0.2.1"), ask.clone()].concat(), WriteSplit::Whole).await.expect("sent");
    whole(first.reply("GET").await, "/page");
    let (answered, _) =
        answer(&stage, &[line("192.0.2.1"), ask.clone()].concat(), WriteSplit::Whole).await;
    assert_eq!(answered, b"", "a second connection of one client");
    let other = [line("192.0.2.2"), ask].concat();
    whole(stage.connect().await.exchange(&other).await, "/page");
    stage.daemon.assert_limit_count("connections_per_ip", 1).await;
    stage.daemon.assert_metric("larder_connections_refused_total", 1).await;
}

#[tokio::test]
async fn access_rules_and_logs_go_by_the_named_client() {
    let log = std::env::temp_dir().join(format!("larder-proxied-{}.log", std::process::id()));
    let top = format!("access_log = \"{}\"", log.display());
    let stage = behind("127.0.0.1", &top, "").await;
    let mut text = fs::read_to_string(stage.daemon.config_file()).expect("a file");
    text.push_str("deny = \"192.0.2.0/24\"\n");
    fs::write(stage.daemon.config_file(), text).expect("written");
    let reloaded = stage.daemon.ask_admin("POST", "/reload").await.expect("an answer");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    let from = |source| [line(source), request("GET", "/page", "")].concat();
    let refused = whole(stage.connect().await.exchange(&from("192.0.2.1")).await, "/page");
    assert_eq!(refused.status, 403);
    let taken = whole(stage.connect().await.exchange(&from("198.51.100.1")).await, "/page");
    assert_eq!(taken.status, 200);
    eventually("lines in the log", async || {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let mut clients: Vec<_> = text.lines().filter_map(|line| line.split(' ').next()).collect();
        // Each core writes its own.
        clients.sort_unstable();
        clients == ["192.0.2.1", "198.51.100.1"]
    })
    .await;
    fs::remove_file(log).expect("removed");
}

/// A TLS site behind a balancer that forwards bytes.
async fn tls_behind(authority: &Authority) -> Served {
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    let tls = authority.pair("site");
    let site = format!("[[site]]\nhost = \"*\"\norigin = \"app\"\ntls = {{ {tls} }}\n");
    let origin = testkit::origin::ScriptedOrigin::start().await.expect("a port for the origin");
    let text = support::tls::config(&origin, &site)
        .replacen("127.0.0.1:0 tls", "127.0.0.1:0 tls proxy", 1)
        .replacen("workers", "trusted_proxies = \"127.0.0.1\"\nworkers", 1);
    let daemon = testkit::larder::Daemon::start(&text).expect("larder starts");
    origin.otherwise(Script::ok("Cache-Control: no-store\r\n", "here"));
    Served { origin, daemon }
}

#[tokio::test]
async fn tls_follows_the_header_in_the_same_segment_or_later() {
    let authority = Authority::new();
    let served = tls_behind(&authority).await;
    for together in [true, false] {
        let mut connection = authority
            .client()
            .connect_after(served.addr(), "larder.test", &binary(), together)
            .await;
        connection.send(&get("larder.test", "/page")).await.expect("sent");
        assert_eq!(whole(connection.reply("GET").await, "/page").text(), "here");
    }
    let requests: Vec<_> = served
        .origin
        .recorded()
        .iter()
        .flat_map(|connection| {
            testkit::reference_reader::read_requests(&connection.bytes).expect("valid requests")
        })
        .collect();
    assert_eq!(requests.len(), 2);
    for request in requests {
        assert_eq!(sent_field(&request, "x-forwarded-for"), "192.0.2.1");
        assert_eq!(sent_field(&request, "x-forwarded-proto"), "https");
    }
}

/// All that `proxy` offers a program, in a response's reason.
const SAYS: &str = "vcl 4.1;
import proxy;
backend none none;
sub vcl_recv {
    return (synth(200, proxy.is_ssl() + \"|\" + proxy.alpn() + \"|\" + proxy.authority() + \"|\"
        + proxy.ssl_version() + \"|\" + proxy.ssl_cipher() + \"|\"
        + proxy.client_has_cert_conn() + \"|\"
        + proxy.client_has_cert_sess() + \"|\" + proxy.client_cert_cn() + \"|\"
        + proxy.ssl_verify_result() + \"|\" + proxy.cert_sign() + \"|\" + proxy.cert_key()));
}
sub vcl_synth {
    set resp.http.said = resp.reason;
}
";

/// A header of version 2 with these additional values.
fn with_values(values: &[(u8, &[u8])]) -> Vec<u8> {
    let mut header = binary();
    for (kind, value) in values {
        header.push(*kind);
        header.extend(u16::try_from(value.len()).expect("a short one").to_be_bytes());
        header.extend(*value);
    }
    let length = u16::try_from(header.len() - 16).expect("a short one").to_be_bytes();
    header[14..16].copy_from_slice(&length);
    header
}

/// Sends `header` and a request to a program behind `addr`; returns what it sees.
async fn told(addr: SocketAddr, header: &[u8]) -> String {
    let mut raw = RawClient::connect(addr).await.expect("connected").patience(PATIENCE);
    raw.send(&[header, &request("GET", "/", "")].concat(), WriteSplit::Whole).await.expect("sent");
    whole(raw.reply("GET").await, "/").field("said").unwrap_or_default()
}

/// Headers, and what a program sees then; equal to a real Varnish, if there is one.
fn headers() -> Vec<(Vec<u8>, &'static str)> {
    let tls = |client: u8, verify: u8| {
        let parts: [(u8, &[u8]); 5] =
            [(0x21, b"TLSv1.2"), (0x22, b"ann"), (0x23, b"SUITE"), (0x24, b"RSA"), (0x25, b"EC")];
        let parts = parts
            .iter()
            .flat_map(|(kind, text)| [&[*kind, 0, text.len() as u8][..], text].concat());
        [client, 0, 0, 0, verify].into_iter().chain(parts).collect::<Vec<u8>>()
    };
    let all = |tls: &[u8]| with_values(&[(1, b"h2"), (2, b"a.test"), (0x20, tls)]);
    vec![
        (binary(), "false|||||false|false||0||"),
        (line("192.0.2.1"), "false|||||false|false||0||"),
        (all(&tls(7, 0)), "true|h2|a.test|TLSv1.2|SUITE|true|true|ann|0|RSA|EC"),
        (all(&tls(1, 10)), "true|h2|a.test|TLSv1.2|SUITE|false|false|ann|10|RSA|EC"),
        (all(&tls(0, 0)), "false|h2|a.test|TLSv1.2|SUITE|false|false|ann|0|RSA|EC"),
        (with_values(&[(2, b"b.test")]), "false||b.test|||false|false||0||"),
    ]
}

#[tokio::test]
async fn programs_know_of_tls_what_the_header_tells() {
    let folder = support::folder::Folder::new();
    folder.file("says.vcl", SAYS);
    let vcl = format!("vcl = \"{}\"\n", folder.path().join("says.vcl").display());
    let daemon = testkit::larder::Daemon::start(&format!(
        "listen = \"127.0.0.1:0 proxy\"\ntrusted_proxies = [\"127.0.0.1\"]\n{vcl}[[site]]\nhost = \"*\"\n"
    ))
    .expect("larder starts");
    let theirs = free_port();
    let (work, listens) = (folder.path().join("varnish"), format!("{theirs},PROXY"));
    let work = work.display().to_string();
    let arguments = ["-F", "-n", &work, "-a", &listens, "-f"];
    let varnish = Balancer::start("varnishd", &arguments, |_| SAYS.to_owned());
    if varnish.is_some() {
        let is_there = async || TcpStream::connect(theirs).await.is_ok();
        eventually("Varnish listens", is_there).await;
    } else {
        eprintln!("without a Varnish to compare with");
    }
    for (header, expected) in headers() {
        assert_eq!(told(daemon.addr(), &header).await, expected);
        if varnish.is_some() {
            assert_eq!(told(theirs, &header).await, expected, "as Varnish has it");
        }
    }
}

#[tokio::test]
async fn programs_know_of_tls_what_was_agreed_on_here() {
    let (authority, folder) = (Authority::new(), support::folder::Folder::new());
    authority.sign("site", &["larder.test"], Kind::Elliptic);
    folder.file("says.vcl", SAYS);
    let vcl = folder.path().join("says.vcl");
    let daemon = testkit::larder::Daemon::start(&format!(
        "listen = [\"127.0.0.1:0\", \"127.0.0.1:0 tls\"]\nvcl = \"{}\"\n[tls]\n{}\n[[site]]\nhost = \"*\"\n",
        vcl.display(),
        authority.pair("site").replace(", ", "\n")
    ))
    .expect("larder starts");
    assert_eq!(told(daemon.addr(), b"").await, "false|||||false|false||0||");
    let mut client = authority.client().connect(daemon.addrs()[1], "larder.test").await;
    let said = client.get("larder.test", "/").await.field("said").unwrap_or_default();
    let parts: Vec<_> = said.split('|').collect();
    assert_eq!(parts[..4], ["true", "http/1.1", "larder.test", "TLSv1.3"], "{said}");
    assert!(
        parts[4].starts_with("TLS_") && parts[5..] == ["false", "false", "", "0", "", ""],
        "{said}"
    );
}

/// A balancer of this test, ended with it.
struct Balancer {
    child: Child,
    folder: PathBuf,
}

impl Balancer {
    /// Starts `program` with a configuration made for `folder`; `None` if it is not installed.
    fn start(program: &str, arguments: &[&str], config: impl Fn(&str) -> String) -> Option<Self> {
        let name = format!("larder-{program}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let here = folder.display().to_string();
        let file = folder.join("balancer.conf");
        fs::write(&file, config(&here)).expect("a file");
        let path = ["/usr/sbin", "/usr/bin", "/usr/local/sbin"]
            .iter()
            .map(|dir| PathBuf::from(dir).join(program))
            .find(|path| path.is_file())?;
        let child = Command::new(path)
            .args(arguments)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Self { child, folder })
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Both end at once on a signal; a kill would leave nginx's worker behind.
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        _ = self.child.wait();
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// The stream module of Debian's nginx.
const STREAM: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

/// A port that is free now.
fn free_port() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address")
}

/// Sends a request through a balancer, from 127.0.0.7 so that the balancer's address differs.
async fn through(balancer: SocketAddr) -> Reply {
    eventually("the balancer listens", async || TcpStream::connect(balancer).await.is_ok()).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.7:0".parse().expect("an address")).expect("bound");
    let stream = socket.connect(balancer).await.expect("a connection");
    let seen = RawClient::over(stream).patience(PATIENCE).get("/page").await.expect("sent");
    whole(seen, "/page")
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_real_balancers_are_read() {
    let stage = behind("127.0.0.1", "", "").await;
    let addr = stage.daemon.addr();
    let (one, two, three) = (free_port(), free_port(), free_port());
    let haproxy = Balancer::start("haproxy", &["-db", "-f"], |_| {
        format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
             listen one\n bind {one}\n server larder {addr} send-proxy\n\
             listen two\n bind {two}\n \
             server larder {addr} send-proxy-v2 proxy-v2-options crc32c,unique-id\n"
        )
    });
    let has_stream = std::path::Path::new(STREAM).exists();
    let nginx_config = |here: &str| {
        format!(
            "daemon off; master_process off; pid {here}/nginx.pid; error_log {here}/error.log;\n\
             load_module {STREAM};\n\
             events {{ }}\nstream {{ server {{ listen {three}; proxy_pass {addr}; \
             proxy_protocol on; }} }}\n"
        )
    };
    let nginx = if has_stream { Balancer::start("nginx", &["-c"], nginx_config) } else { None };
    let mut asked = 0;
    for (balancer, ports) in [(&haproxy, &[one, two][..]), (&nginx, &[three])] {
        // Compared only if installed.
        for port in ports.iter().filter(|_| balancer.is_some()) {
            assert_eq!(through(*port).await.text(), "here");
            asked += 1;
        }
    }
    let received = stage.received();
    assert_eq!(received.len(), asked);
    for request in received {
        assert_eq!(sent_field(&request, "x-forwarded-for"), "127.0.0.7");
    }
    assert_eq!(stage.metric("larder_proxy_errors_total").await, 0);
}
