//! A `dynamic` director whose hosts clients name: made-up names by the thousand take neither the
//! places nor the lookups of real ones.

use crate::support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use support::folder::Folder;
use support::{eventually, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::larder::Daemon;
use testkit::origin::{Script, ScriptedOrigin};

/// Names that are taken on in a second.
const NEW: u32 = 6;

/// A daemon that goes where `X-Host` says, with few places.
async fn daemon(folder: &Folder, origin: &ScriptedOrigin) -> Daemon {
    let program = format!(
        "vcl 4.1;\nimport dynamic;\nbackend none none;\n\
         sub vcl_init {{ new d = dynamic.director(port = \"{}\"); }}\n\
         sub vcl_recv {{ set req.backend_hint = d.backend(req.http.x-host); return (pass); }}\n",
        origin.addr().port()
    );
    folder.file("dynamic.vcl", program);
    let config = format!(
        "listen = \"127.0.0.1:0\"\nvcl = \"{}\"\n\n[limits]\ndirector_backends = 4\nkeepalive_requests = 10000000\n\
         director_new_hosts = {NEW}\n\n[[site]]\nhost = \"*\"\n",
        folder.path().join("dynamic.vcl").display()
    );
    Daemon::start(&config).expect("it starts")
}

/// Requests `host`. Returns the status.
async fn ask(client: &mut RawClient, host: &str) -> u16 {
    let asked = format!("GET / HTTP/1.1\r\nHost: site.test\r\nX-Host: {host}\r\n\r\n");
    client.send(asked.as_bytes(), WriteSplit::Whole).await.expect("sent");
    whole(client.reply("GET").await, host).status
}

/// A name that no name server needs to be asked for: its first label is too long.
fn made_up(number: u32) -> String {
    format!("{}.n{number}.test", "x".repeat(64))
}

async fn limit_hits(daemon: &Daemon, limit: &str) -> f64 {
    let label = format!("limit=\"{limit}\"");
    daemon.metric("larder_limit_hits_total", &label).await.expect("metrics")
}

#[tokio::test]
async fn a_flood_of_made_up_hosts_keeps_no_real_one_out() {
    let (folder, origin) = (Folder::new(), ScriptedOrigin::start().await.expect("an origin"));
    origin.on("/", Script::ok("", "real"));
    let daemon = daemon(&folder, &origin).await;
    let sent = Arc::new(AtomicU32::new(0));
    let flood = tokio::spawn({
        let (sent, addr) = (Arc::clone(&sent), daemon.addr());
        async move {
            let mut client = RawClient::connect(addr).await.expect("a connection");
            loop {
                let number = sent.load(Ordering::SeqCst);
                assert_eq!(ask(&mut client, &made_up(number)).await, 503);
                sent.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    // More names than places and lookups: the flood alone has reached both bounds.
    eventually("the flood has taken all places", || async {
        limit_hits(&daemon, "director_backends").await > 0.0
            && limit_hits(&daemon, "director_new_hosts").await > 0.0
    })
    .await;
    // A real name that was never requested is resolved at once: a client has half of a second.
    let client = RawClient::connect(daemon.addr()).await.expect("a connection");
    let client = tokio::sync::Mutex::new(client);
    assert_eq!(ask(&mut *client.lock().await, "localhost").await, 200);
    // It stays, however many come.
    let before = sent.load(Ordering::SeqCst);
    let places = limit_hits(&daemon, "director_backends").await;
    eventually("many more have come", || async {
        assert_eq!(ask(&mut *client.lock().await, "localhost").await, 200);
        sent.load(Ordering::SeqCst) > before + 200
            && limit_hits(&daemon, "director_backends").await > places + 5.0
    })
    .await;
    flood.abort();
    assert!(flood.await.expect_err("it was ended").is_cancelled(), "every made-up name was 503");
}
