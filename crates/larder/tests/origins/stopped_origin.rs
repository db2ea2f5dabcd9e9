//! Tests of an origin whose process is stopped under load: it accepts connections and does not
//! respond.

use crate::support;

use rustix::process::{Pid, Signal, kill_process};
use support::{PATIENCE, Setup, eventually, pause, whole};
use testkit::client::RawClient;
use testkit::larder::Daemon;
use testkit::origin::ScriptedOrigin;
use tokio::task::JoinSet;

const PAGES: usize = 8;
const CLIENTS: usize = 24;

/// A process that answers every page.
fn origin() -> Daemon {
    let config = "listen = \"127.0.0.1:0\"\nworkers = 1\n[[site]]\nhost = \"*\"\n[site.respond]\n\
                  status = 200\nbody = \"a page\"\n";
    Daemon::start(config).expect("an origin")
}

fn send(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("a process id");
    kill_process(pid, signal).expect("our own child");
}

/// A client that requests each page in turn, `rounds` times; each response is the stored one.
async fn read(daemon: std::net::SocketAddr, first: usize, rounds: usize) {
    let mut client = RawClient::connect(daemon).await.expect("connected").patience(PATIENCE);
    for n in 0..rounds * PAGES {
        let page = format!("/{}", (first + n) % PAGES);
        let reply = whole(client.get(&page).await.expect("sent"), &page);
        assert_eq!((reply.status, reply.text().as_str()), (200, "a page"), "{page}");
    }
}

async fn in_flight(daemon: &Daemon) -> usize {
    daemon.metric("larder_server_in_flight", "").await.expect("metrics") as usize
}

/// Stops the origin under load, checks, and resumes it. In the end `held` fetches wait.
async fn stopped_under_load(limits: &str, cache: &str, held: usize) {
    let origin = origin();
    let site = format!("cache = {{ ttl = {{ 200 = \"100ms\" }}, {cache} }}");
    let limits = format!("retries = 0\n{limits}");
    // It only provides an address.
    let lent = ScriptedOrigin::start().await.expect("a port");
    let file = Setup { limits: &limits, site: &site, ..Setup::default() }.file(&lent);
    let file = file.replace(&lent.addr().to_string(), &origin.addr().to_string());
    let daemon = Daemon::start(&file).expect("it starts");
    read(daemon.addr(), 0, 1).await;

    let mut clients = JoinSet::new();
    for first in 0..CLIENTS {
        clients.spawn(read(daemon.addr(), first, 4));
        if first == CLIENTS / 2 {
            send(&origin, Signal::STOP);
            // From here on everything stored is stale.
            pause(150).await;
        }
    }
    let mut most = 0;
    while !clients.is_empty() {
        tokio::select! {
            Some(read) = clients.join_next() => read.expect("every page is answered"),
            () = pause(20) => most = most.max(in_flight(&daemon).await),
        }
    }
    eventually("the fetches that wait", async || in_flight(&daemon).await == held).await;
    assert!(most <= PAGES, "{most} fetches waited for {PAGES} pages");

    send(&origin, Signal::CONT);
    eventually("an end of all fetches", async || in_flight(&daemon).await == 0).await;
    read(daemon.addr(), 0, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn within_grace_pages_are_answered_at_once_with_one_fetch_each_behind_them() {
    let cache = "stale_while_revalidate = \"1h\"";
    stopped_under_load("first_byte_timeout = \"10m\"", cache, PAGES).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_grace_pages_stand_in_once_the_one_fetch_has_failed_or_been_waited_for() {
    let cache = "stale_while_revalidate = \"0s\", stale_if_error = \"1h\"";
    let limits = "first_byte_timeout = \"500ms\"\nwait_timeout = \"100ms\"";
    stopped_under_load(limits, cache, 0).await;
}
