//! Tests of a slow or blocked disk. Pages in memory are served as usual, others come from the
//! origin, queued writes stay within their limit, and the disk is used again once it is fast.

use crate::support;

mod gate;

use std::time::{Duration, Instant};

use gate::{Mount, Pace};
use rustix::process::Signal;
use support::disked::{BOTH, Disked, Policy};
use support::folder::Folder;
use support::{PATIENCE, eventually, pattern};
use testkit::origin::Script;

/// A volume that was slow is tried again after a minute.
const AGAIN: Duration = Duration::from_secs(90);

/// Number of pages: more than memory can store.
const PAGES: usize = 60;

/// More new pages than memory and the write queue hold together.
const NEW_PAGES: usize = 150;

/// Concurrent late reads: more than make a volume pause.
const AT_ONCE: usize = 12;

/// The smallest write queue.
const QUEUE_BYTES: u64 = 16 << 20;

/// A body too long for memory, and the number of reads after which it is being sent.
const LONG_BYTES: usize = 16 << 20;
const LONG_READS: usize = 30;

/// Requests for pages in memory while the disk is blocked.
const MEANWHILE: usize = 200;

/// Attempts to bring all pages to disk: each requests them and restarts the daemon.
const ATTEMPTS: usize = 10;

/// A daemon with little memory over a disk with a gate.
struct Stage {
    mount: Mount,
    disked: Disked,
    versions: Vec<u64>,
}

fn body(page: usize, version: u64) -> Vec<u8> {
    let mut body = pattern(500_000 + 1_500 * page);
    body.extend(format!(" {page} {version}").bytes());
    body
}

fn script(page: usize, version: u64) -> Script {
    let body = body(page, version);
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    Script::respond([head.as_bytes(), &body].concat())
}

impl Stage {
    /// All pages are on disk, and none is in memory.
    async fn start(policy: Policy, limits: &str) -> Option<Self> {
        Self::start_with(policy, "16MiB", limits).await
    }

    async fn start_with(policy: Policy, memory: &str, limits: &str) -> Option<Self> {
        let Some(mount) = Mount::new() else {
            eprintln!("skipped: no file system can be mounted by FUSE");
            return None;
        };
        let top = format!("memory = {{ size = \"{memory}\" }}\n[limits]\n{limits}\n");
        let disked = Disked::start_at(policy, &top, &mount.path(), Folder::new()).await;
        let mut stage = Self { mount, disked, versions: vec![0; PAGES] };
        (0..PAGES).for_each(|page| stage.change(page));
        stage.ask_for_all().await;
        // A busy disk drops pages; they are requested again then.
        for _ in 0..ATTEMPTS {
            stage.ask_for_all().await;
            stage.disked.again(Signal::TERM).await;
            if stage.figure("records").await == PAGES as u64 {
                break;
            }
        }
        assert_eq!(stage.figure("records").await, PAGES as u64);
        Some(stage)
    }

    /// The origin serves another version of a page from now on.
    fn change(&mut self, page: usize) {
        self.versions[page] += 1;
        let script = script(page, self.versions[page]);
        self.disked.origin.on(&format!("/{page}"), script);
    }

    /// Requests a page; the response is its newest version. Returns true for a hit.
    async fn get(&self, page: usize) -> bool {
        self.fetch(&format!("/{page}"), page, self.versions[page]).await
    }

    /// Requests a version of a page at `target`. Returns true for a hit.
    async fn fetch(&self, target: &str, page: usize, version: u64) -> bool {
        let reply = self.disked.get(target).await;
        assert_eq!(reply.status, 200, "{target}");
        assert!(reply.body == body(page, version), "{target} is not version {version}");
        reply.field("cache-status").is_some_and(|status| status.contains("hit"))
    }

    /// Requests some pages concurrently, so that their reads are late together.
    async fn ask_at_once(&self) {
        futures_util::future::join_all((0..AT_ONCE).map(|page| self.get(page))).await;
    }

    /// Requests each page twice.
    async fn ask_for_all(&self) {
        for page in 0..PAGES {
            self.get(page).await;
            self.get(page).await;
        }
    }

    async fn figure(&self, name: &str) -> u64 {
        self.disked.metric(&format!("larder_disk_volume_{name}")).await
    }

    async fn asked(&self) -> u64 {
        self.disked.metric("larder_origin_requests_total").await
    }

    /// Waits until the volume is in use again: pages are stored and read.
    async fn is_used_again(&mut self) {
        let started = Instant::now();
        let (puts, reads) = (self.figure("puts_total").await, self.figure("reads_total").await);
        let is_used = async |stage: &Self| {
            stage.figure("up").await == 1
                && stage.figure("puts_total").await > puts
                && stage.figure("reads_total").await > reads
        };
        while !is_used(self).await {
            assert!(started.elapsed() < AGAIN + PATIENCE, "the volume is not used again");
            tokio::time::sleep(Duration::from_millis(500)).await;
            self.change(0);
            self.disked.ask("PURGE", "/0", "").await;
            self.ask_for_all().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_answers_while_a_disk_blocks_and_only_its_readers_wait() {
    for policy in BOTH {
        // Only the gate ends the wait.
        let Some(stage) = Stage::start(policy, "disk_read_timeout = \"1h\"").await else { return };
        let (cold, warm) = (1, 2);
        stage.get(warm).await;
        assert!(stage.get(warm).await, "it is in memory");
        stage.mount.set(Pace::Still, Pace::Still);
        let waits = stage.get(cold);
        let meanwhile = async {
            stage.mount.holds_a_read().await;
            for _ in 0..MEANWHILE {
                assert!(stage.get(warm).await, "a hit out of memory");
            }
            assert_eq!(stage.asked().await, 0, "the page on disk is waited for");
            stage.mount.set(Pace::Quick, Pace::Quick);
        };
        let (is_hit, ()) = tokio::join!(waits, meanwhile);
        assert!(is_hit, "{policy:?}: it came from the disk after all");
        assert_eq!(stage.asked().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_are_late_go_to_the_origin_and_a_slow_disk_is_left_alone_for_a_while() {
    let late = "disk_read_timeout = \"2s\"";
    let Some(mut stage) = Stage::start(Policy::Declared, late).await else { return };
    stage.mount.set(Pace::Still, Pace::Quick);
    stage.ask_at_once().await;
    stage.ask_for_all().await;
    assert!(stage.asked().await >= PAGES as u64, "the origin has answered instead");
    let late = stage.figure("reads_late_total").await;
    assert!(late > 0, "no read was late");
    stage.disked.daemon().assert_limit_count("disk_read_timeout", late).await;
    assert_eq!(stage.figure("pauses_total").await, 1, "it is left alone");
    stage.ask_for_all().await;
    assert_eq!(stage.figure("reads_late_total").await, late, "nobody waits for it any more");
    stage.mount.set(Pace::Quick, Pace::Quick);
    stage.is_used_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_to_be_written_is_bounded_and_the_rest_is_not_admitted() {
    let limits = format!("disk_queue_bytes = {QUEUE_BYTES}\ndisk_read_timeout = \"2s\"");
    let start = Stage::start_with(Policy::Declared, "48MiB", &limits);
    let Some(mut stage) = start.await else { return };
    let warm = 2;
    stage.get(warm).await;
    stage.mount.set(Pace::Quick, Pace::Still);
    for page in 0..NEW_PAGES {
        let target = format!("/new/{page}");
        stage.disked.origin.on(&target, script(page, 1));
        for _ in 0..2 {
            stage.fetch(&target, page, 1).await;
            assert!(stage.get(warm).await, "{target}: what is asked for all the time stays");
        }
        let queued = stage.figure("queued_bytes").await;
        assert!(queued <= QUEUE_BYTES + (4 << 20), "{queued} bytes wait");
    }
    stage.mount.holds_a_write().await;
    assert!(stage.figure("refused_queue_total").await > 0, "everything was admitted");
    // Rejected pages are offered again, so both counters grow meanwhile.
    eventually("the limit counts what was refused", async || {
        let refused = stage.figure("refused_queue_total").await;
        let limit = ("larder_limit_hits_total", "limit=\"disk_queue_bytes\"");
        stage.disked.daemon().metric(limit.0, limit.1).await.expect("metrics") as u64 == refused
    })
    .await;
    stage.mount.set(Pace::Quick, Pace::Quick);
    stage.is_used_again().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_that_cannot_be_written_says_so_and_holds_all_the_same() {
    let late = "disk_read_timeout = \"2s\"";
    let Some(mut stage) = Stage::start(Policy::Declared, late).await else { return };
    stage.mount.set(Pace::Quick, Pace::Still);
    stage.change(7);
    let reply = stage.disked.ask("PURGE", "/7", "").await;
    assert_eq!(reply.status, 503, "it is not on the disk: {}", reply.text());
    stage.ask_for_all().await;
    stage.mount.set(Pace::Quick, Pace::Quick);
    stage.ask_for_all().await;
    stage.disked.again(Signal::KILL).await;
    stage.get(7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_body_that_has_begun_goes_on_when_its_disk_does() {
    let late = "disk_read_timeout = \"2s\"";
    let Some(mut stage) = Stage::start_with(Policy::Declared, "64MiB", late).await else { return };
    let long = pattern(LONG_BYTES);
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=1000\r\nContent-Length: {LONG_BYTES}\r\n\r\n"
    );
    stage.disked.origin.on("/long", Script::respond([head.as_bytes(), &long].concat()));
    for _ in 0..2 {
        assert!(stage.disked.get("/long").await.body == long);
    }
    stage.disked.again(Signal::TERM).await;
    // Its head has come by then, and a part of it.
    stage.mount.set(Pace::StillAfter(LONG_READS), Pace::Quick);
    let meanwhile = async {
        stage.mount.holds_a_read().await;
        stage.ask_at_once().await;
        stage.ask_for_all().await;
        assert_eq!(stage.figure("pauses_total").await, 1, "it is slow to others, too");
        stage.mount.set(Pace::Quick, Pace::Quick);
    };
    let (reply, ()) = tokio::join!(stage.disked.get("/long"), meanwhile);
    assert_eq!(reply.status, 200);
    assert!(reply.body == long, "it is cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_of_half_a_second_costs_no_client_a_response() {
    let Some(stage) = Stage::start(Policy::Declared, "disk_read_timeout = \"200ms\"").await else {
        return;
    };
    let slow = Pace::Slow(Duration::from_millis(500));
    stage.mount.set(slow, slow);
    for _ in 0..3 {
        stage.ask_for_all().await;
    }
    assert!(stage.figure("reads_late_total").await > 0, "no read was late");
    assert_eq!(stage.figure("outs_total").await, 0, "slow is no reason to take it out");
}
