//! Tests with Debian's Varnish, nginx and Squid: they get purges, and Squid sends some.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::SITE;
use super::support::folder::Folder;
use super::support::{PATIENCE, Setup, Stage, eventually, http_date, is_hit, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

/// A server, ended with its folder.
struct Peer {
    child: Child,
    addr: SocketAddr,
    _folder: Folder,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A port that is free now. If another process binds it first, the server fails and is started
/// again.
fn free() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

/// Starts what `command` makes of a folder and a port, again if the port was taken.
async fn start(program: &str, command: impl Fn(&Path, u16) -> Command) -> Option<Peer> {
    let found =
        Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_err() {
        eprintln!("skipped: no {program}");
        return None;
    }
    for _ in 0..5 {
        let (folder, port) = (Folder::new(), free());
        let mut command = command(folder.path(), port);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let addr = SocketAddr::from(([127, 0, 0, 1], port));
        let mut is_up = false;
        while !is_up && child.try_wait().expect("a process").is_none() {
            is_up = tokio::net::TcpStream::connect(addr).await.is_ok();
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let peer = Peer { child, addr, _folder: folder };
        if is_up {
            return Some(peer);
        }
    }
    panic!("{program} does not start");
}

async fn ask(addr: SocketAddr, method: &str, target: &str) -> Reply {
    let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    raw.send(&request(method, target, ""), WriteSplit::Whole).await.expect("it is taken");
    whole(raw.reply(method).await, target)
}

async fn origin() -> ScriptedOrigin {
    let origin = ScriptedOrigin::start().await.expect("an origin");
    for target in ["/a", "/b"] {
        // Squid stores nothing without a Date.
        let date = http_date(0);
        let fields = format!("Cache-Control: max-age=600\r\nX-Cache-Tags: t1\r\nDate: {date}\r\n");
        origin.on(target, Script::ok(&fields, "a page"));
    }
    origin
}

/// Makes the peer store both pages; the result is the number of its requests for each.
async fn store(peer: &Peer, origin: &ScriptedOrigin) -> [usize; 2] {
    for target in ["/a", "/b"] {
        eventually("stored", async || {
            ask(peer.addr, "GET", target).await;
            let before = origin.seen(target);
            ask(peer.addr, "GET", target).await;
            origin.seen(target) == before
        })
        .await;
    }
    [origin.seen("/a"), origin.seen("/b")]
}

/// Requests both pages from the peer; the result is which of them it had to fetch.
async fn lacks(peer: &Peer, origin: &ScriptedOrigin, before: [usize; 2]) -> [bool; 2] {
    let mut lacks = [false; 2];
    for (at, target) in ["/a", "/b"].into_iter().enumerate() {
        ask(peer.addr, "GET", target).await;
        lacks[at] = origin.seen(target) > before[at];
    }
    lacks
}

/// A Larder with this neighbour, and an idle origin.
async fn larder(neighbour: &str) -> Stage {
    let site = format!("{SITE}\n[[neighbour]]\n{neighbour}\n");
    Setup { site: &site, ..Setup::default() }.start().await
}

async fn told(stage: &Stage, method: &str, fields: &str) {
    let fields = format!("Larder-Wait: all\r\n{fields}");
    let reply = stage.ask(method, "/a", &fields).await;
    assert_eq!(reply.status, 200, "{method} {fields}: {}", reply.text());
}

/// A program as in FOSHttpCache's documentation.
fn vcl(origin: &ScriptedOrigin) -> String {
    let (host, port) = (origin.addr().ip(), origin.addr().port());
    format!(
        "vcl 4.1;\nbackend app {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
         sub vcl_recv {{\n\
         if (req.method == \"PURGE\") {{ return (purge); }}\n\
         if (req.method == \"BAN\") {{\n\
         if (req.http.x-cache-tags) {{\n\
         ban(\"obj.http.x-host ~ \" + req.http.x-host\n\
         + \" && obj.http.x-url ~ \" + req.http.x-url\n\
         + \" && obj.http.x-cache-tags ~ \" + req.http.x-cache-tags);\n\
         }} else {{\n\
         ban(\"obj.http.x-host ~ \" + req.http.x-host\n\
         + \" && obj.http.x-url ~ \" + req.http.x-url);\n\
         }}\n\
         return (synth(200, \"Banned\")); }} }}\n\
         sub vcl_backend_response {{\n\
         set beresp.http.x-url = bereq.url; set beresp.http.x-host = bereq.http.host; }}\n"
    )
}

#[tokio::test]
async fn varnish_is_notified_by_url_by_tag_and_of_all() {
    let origin = origin().await;
    let program = vcl(&origin);
    let peer = start("varnishd", |folder, port| {
        let file = folder.join("site.vcl");
        std::fs::write(&file, &program).expect("written");
        let mut command = Command::new("varnishd");
        command.arg("-F").arg("-n").arg(folder.join("work")).arg("-f").arg(file);
        command.args(["-a", &format!("127.0.0.1:{port}"), "-s", "default,16m"]);
        command
    });
    let Some(peer) = peer.await else { return };
    let neighbour = format!("origin = \"http://{}\"\ndialect = \"foshttpcache\"", peer.addr);
    let stage = larder(&neighbour).await;
    for (method, fields, wanted) in [
        ("PURGE", "", [true, false]),
        ("BAN", "X-Host: .*\r\nX-Url: ^/b$\r\nX-Content-Type: .*\r\n", [false, true]),
        ("BAN", "X-Cache-Tags: (^|,)(t0|t1)(,|$)\r\n", [true, true]),
        ("BAN", "X-Cache-Tags: (^|,)(t)(,|$)\r\n", [false, false]),
        ("BAN", "X-Host: .*\r\nX-Url: .*\r\nX-Content-Type: .*\r\n", [true, true]),
    ] {
        let before = store(&peer, &origin).await;
        told(&stage, method, fields).await;
        assert_eq!(lacks(&peer, &origin, before).await, wanted, "{method} {fields}");
    }
}

/// A Squid as an accelerator, with these peers.
fn squid(folder: &Path, port: u16, peers: &str) -> Command {
    squid_as("accel defaultsite=larder.test", folder, port, peers)
}

/// A Squid with a port of this mode, or a proxy's if empty.
fn squid_as(mode: &str, folder: &Path, port: u16, peers: &str) -> Command {
    let conf = format!(
        "http_port 127.0.0.1:{port} {mode}\n{peers}\
         http_access allow all\nnever_direct allow all\nudp_incoming_address 127.0.0.1\n\
         cache_mem 16 MB\nicp_port 0\npinger_enable off\naccess_log none\n\
         cache_log {folder}/cache.log\npid_filename {folder}/squid.pid\n\
         coredump_dir {folder}\nshutdown_lifetime 0 seconds\ndns_nameservers 127.0.0.1\n\
         visible_hostname squid.test\n",
        folder = folder.display()
    );
    std::fs::write(folder.join("squid.conf"), conf).expect("written");
    if rustix::process::geteuid().is_root() {
        // It switches from root to a user who must reach its folder.
        _ = Command::new("chown").arg("-R").arg("proxy").arg(folder).status();
    }
    let mut command = Command::new("squid");
    command.args(["-N", "-n", &format!("t{port}"), "-f"]).arg(folder.join("squid.conf"));
    command
}

#[tokio::test]
async fn squid_is_notified_by_requests_and_by_datagrams_and_notifies() {
    let origin = origin().await;
    // The receiver of Squid's messages, and Squid's own port for datagrams.
    let top = "htcp = { listen = \"127.0.0.1:0\" }\n";
    let hears = Setup { top, ..Setup::default() }.start().await;
    hears.origin.on("/a", Script::ok("Cache-Control: max-age=600\r\n", "a page"));
    let (htcp, listens) = (free(), hears.daemon.port("HTCP").expect("its port").port());
    let upstream = origin.addr();
    let peer = start("squid", |folder, port| {
        let peers = format!(
            "cache_peer {} parent {} 0 no-query originserver name=app no-digest\n\
             cache_peer 127.0.0.1 sibling {} {listens} htcp name=larder no-digest proxy-only\n\
             cache_peer_access larder deny all\ncache_peer_access app allow all\n\
             htcp_port {htcp}\nhtcp_access allow all\nhtcp_clr_access allow all\n\
             acl PURGE method PURGE\n",
            upstream.ip(),
            upstream.port(),
            free(),
        );
        squid(folder, port, &peers)
    });
    let Some(peer) = peer.await else { return };
    for neighbour in
        [format!("origin = \"http://{}\"", peer.addr), format!("htcp = \"127.0.0.1:{htcp}\"")]
    {
        let stage = larder(&neighbour).await;
        let before = store(&peer, &origin).await;
        told(&stage, "PURGE", "").await;
        assert_eq!(lacks(&peer, &origin, before).await, [true, false], "{neighbour}");
        // A page that is gone is cleared as well.
        told(&stage, "PURGE", "").await;
        stage.daemon.assert_metric("larder_neighbours_told_total", 2).await;
    }
    // Squid tells its siblings of a page that it stored and purged.
    eventually("stored", async || is_hit(&hears.get("/a").await)).await;
    store(&peer, &origin).await;
    assert_eq!(ask(peer.addr, "PURGE", "/a").await.status, 200);
    eventually("a sibling of Squid has heard", async || !is_hit(&hears.get("/a").await)).await;
}

/// A page that only a sibling has comes from there: Squid asks by TST, and fetches by a request
/// with only-if-cached.
#[tokio::test]
async fn squid_asks_whether_a_page_is_stored_and_takes_it() {
    let origin = origin().await;
    let top = "htcp = { listen = \"127.0.0.1:0\" }\n";
    let sibling = Setup { top, ..Setup::default() }.start().await;
    let fields = format!("Cache-Control: max-age=600\r\nDate: {}\r\n", http_date(0));
    sibling.origin.otherwise(Script::ok(&fields, "the sibling's page"));
    origin.otherwise(Script::ok(&fields, "a page"));
    let (http, htcp) =
        (sibling.daemon.addr().port(), sibling.daemon.port("HTCP").expect("its port").port());
    let upstream = origin.addr();
    let peer = start("squid", |folder, port| {
        let peers = format!(
            "cache_peer 127.0.0.1 sibling {http} {htcp} htcp name=larder no-digest\n\
             cache_peer {} parent {} 0 no-query originserver name=app no-digest\n\
             cache_peer_access larder allow all\ncache_peer_access app allow all\n\
             htcp_port {}\n",
            upstream.ip(),
            upstream.port(),
            free()
        );
        squid(folder, port, &peers)
    });
    let Some(peer) = peer.await else { return };
    // A new page each time, as Squid stores them: it may not know its sibling at once.
    let number = std::cell::Cell::new(0);
    eventually("the sibling has answered", async || {
        number.set(number.get() + 1);
        let target = format!("/page-{}", number.get());
        eventually("stored", async || is_hit(&sibling.get(&target).await)).await;
        let before = sibling.origin.seen(&target);
        let reply = ask(peer.addr, "GET", &target).await;
        assert_eq!(sibling.origin.seen(&target), before, "it had it");
        reply.text() == "the sibling's page"
    })
    .await;
    assert_eq!(ask(peer.addr, "GET", "/lacks").await.text(), "a page", "what it lacks is not its");
    assert_eq!(sibling.origin.seen("/lacks"), 0);
    assert!(sibling.metric("larder_htcp_tests_total").await >= 2);
}

/// A page stored by a Squid comes from there, an accelerator or a proxy, under either policy; a
/// purged one does not.
#[tokio::test]
async fn a_page_that_squid_has_is_fetched_from_it() {
    for (mode, prefix) in [("accel defaultsite=larder.test", ""), ("", "http://larder.test")] {
        for vcl in [false, true] {
            let (origin, htcp) = (origin().await, free());
            let fields = format!("Cache-Control: max-age=600\r\nDate: {}\r\n", http_date(0));
            origin.otherwise(Script::ok(&fields, "Squid's page"));
            let (host, at) = (origin.addr().ip(), origin.addr().port());
            let peers = format!(
                "cache_peer {host} parent {at} 0 no-query originserver name=app no-digest\n\
                 htcp_port {htcp}\nhtcp_access allow all\nhtcp_clr_access allow all\n"
            );
            let peer = start("squid", |folder, port| squid_as(mode, folder, port, &peers)).await;
            let Some(peer) = peer else { return };
            let stage = asking(vcl, htcp, peer.addr).await;
            let number = std::cell::Cell::new(0);
            let target = || format!("/page-{}", number.get());
            // It may not know its parent at once, nor Larder its neighbour.
            eventually("a page comes from Squid", async || {
                number.set(number.get() + 1);
                ask(peer.addr, "GET", &format!("{prefix}{}", target())).await;
                stage.get(&target()).await.text() == "Squid's page"
            })
            .await;
            let what = format!("{mode:?}, vcl: {vcl}");
            assert_eq!((stage.origin.seen(&target()), origin.seen(&target())), (0, 1), "{what}");
            assert!(is_hit(&stage.get(&target()).await), "{what}: it is stored");
            assert_eq!(stage.get("/lacks").await.text(), "the origin's page", "{what}");
            assert_eq!((stage.origin.seen("/lacks"), origin.seen("/lacks")), (1, 0), "{what}");
            let reply = stage.ask("PURGE", &target(), "Larder-Wait: all\r\n").await;
            assert_eq!(reply.status, 200, "{what}: {}", reply.text());
            assert_eq!(stage.get(&target()).await.text(), "the origin's page", "{what}: purged");
            assert_eq!(stage.metric("larder_siblings_false_total").await, 0, "{what}");
        }
    }
}

/// A Larder with a Squid as its sibling, under either policy.
async fn asking(vcl: bool, htcp: u16, http: SocketAddr) -> Stage {
    let folder = Folder::new();
    let origin = ScriptedOrigin::start().await.expect("an origin");
    origin.otherwise(Script::ok("Cache-Control: max-age=600\r\n", "the origin's page"));
    let site = super::site(&folder, &origin, vcl);
    let file = format!(
        "listen = \"127.0.0.1:0\"\n[limits]\nsibling_timeout = \"1m\"\n[[neighbour]]\n\
         htcp = \"127.0.0.1:{htcp}\"\nask = \"http://{http}\"\n[[site]]\nhost = \"*\"\n{site}\n"
    );
    Stage { daemon: Daemon::start(&file).expect("larder starts"), origin }
}

#[tokio::test]
async fn nginx_is_notified_by_its_purge_module() {
    const MODULE: &str = "/usr/lib/nginx/modules/ngx_http_cache_purge_module.so";
    if !Path::new(MODULE).exists() {
        return eprintln!("skipped: no libnginx-mod-http-cache-purge");
    }
    let origin = origin().await;
    let upstream = origin.addr();
    let peer = start("nginx", |folder, port| {
        let conf = format!(
            "load_module {MODULE};\ndaemon off;\nmaster_process off;\nworker_processes 1;\n\
             pid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{ }}\nhttp {{\n\
             access_log off;\nclient_body_temp_path {folder}/body;\n\
             proxy_temp_path {folder}/proxy;\nfastcgi_temp_path {folder}/fastcgi;\n\
             uwsgi_temp_path {folder}/uwsgi;\nscgi_temp_path {folder}/scgi;\n\
             proxy_cache_path {folder}/cache keys_zone=pages:1m;\n\
             server {{ listen 127.0.0.1:{port};\n\
             location / {{ proxy_pass http://{upstream}; proxy_cache pages;\n\
             proxy_cache_key $host$uri$is_args$args; }}\n\
             location ~ /purge(/.*) {{ proxy_cache_purge pages $host$1$is_args$args; }}\n\
             }} }}\n",
            folder = folder.display()
        );
        std::fs::write(folder.join("nginx.conf"), conf).expect("written");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        command
    });
    let Some(peer) = peer.await else { return };
    let neighbour = format!("origin = \"http://{}\"\ndialect = \"nginx-helper\"", peer.addr);
    let stage = larder(&neighbour).await;
    let before = store(&peer, &origin).await;
    told(&stage, "PURGE", "").await;
    assert_eq!(lacks(&peer, &origin, before).await, [true, false]);
    let before = store(&peer, &origin).await;
    told(&stage, "PURGE", "").await;
    // The page is not stored: nginx's module responds with 404 or 412.
    told(&stage, "PURGE", "").await;
    stage.daemon.assert_metric("larder_neighbours_told_total", 3).await;
    assert_eq!(lacks(&peer, &origin, before).await, [true, false]);
}
