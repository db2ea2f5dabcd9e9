//! Tests of large bodies in slices, under both policies: an origin of a large file counts the
//! requests and the bytes that it sends.

use crate::support;

mod verdicts;

use std::ops::Range;

use rustix::process::{Pid, Signal, kill_process};
use support::console::printed;
use support::disked::{BOTH, Policy, patient};
use support::folder::Folder;
use support::{PATIENCE, eventually, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::large_file::{LargeFile, RangeManner as Manner};
use testkit::reply::{Reply, ReplyOutcome};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const SLICE: u64 = 64 * KIB;
const LENGTH: u64 = MIB + 1000;
const SMALL: &str = "slices_from = \"256KiB\"\nslice_bytes = \"64KiB\"\nslice_ahead = 0";

/// A daemon in front of a film.
struct Cinema {
    film: LargeFile,
    daemon: Daemon,
    _folder: Folder,
    disk: Option<Folder>,
    file: String,
}

impl Cinema {
    async fn open(policy: Policy, length: u64, top: &str, limits: &str) -> Self {
        Self::open_with(policy, length, (top, limits), "").await
    }

    /// A cinema with these keys of a declared site.
    async fn open_with(
        policy: Policy,
        length: u64,
        (top, limits): (&str, &str),
        keys: &str,
    ) -> Self {
        let film = LargeFile::start(length).await.expect("a port for the origin");
        let folder = Folder::new();
        let (host, port) = (film.addr().ip(), film.addr().port());
        let site = match policy {
            Policy::Declared => {
                format!("origin = \"film\"\npurge = {{ dialects = [\"purge\"] }}\n{keys}")
            }
            Policy::Vcl => {
                let program = format!(
                    "vcl 4.1;\nbackend film {{ .host = \"{host}\"; .port = \"{port}\"; }}\n\
                     sub vcl_recv {{ if (req.method == \"PURGE\") {{ return (purge); }} }}\n"
                );
                folder.file("site.vcl", program);
                format!("vcl = \"{}\"", folder.path().join("site.vcl").display())
            }
        };
        let origin = match policy {
            Policy::Declared => format!(
                "[[origin]]\nname = \"film\"\nservers = \"http://{host}:{port}\"\n\
                 eject = {{ failures = 0 }}\n"
            ),
            Policy::Vcl => String::new(),
        };
        let file = patient(&format!(
            "listen = \"127.0.0.1:0\"\nworkers = 2\n{top}\n[limits]\n{limits}\n{origin}\
             [[site]]\nhost = \"*\"\n{site}\n"
        ));
        let daemon = Daemon::start(&file).expect("larder starts");
        Self { film, daemon, _folder: folder, disk: None, file }
    }

    /// A cinema over a disk, to which everything sinks that leaves memory.
    async fn over_a_disk(policy: Policy, length: u64, limits: &str) -> Self {
        let disk = Folder::new();
        let path = disk.path().join("disk").display().to_string();
        let top = format!(
            "memory = {{ size = \"16MiB\" }}\n\
             [disk]\npath = \"{path}\"\nsize = \"256MiB\"\nadmission = \"all\"\n"
        );
        let mut cinema = Self::open(policy, length, &top, limits).await;
        cinema.disk = Some(disk);
        cinema
    }

    /// Stops the daemon, and starts another over its disk.
    async fn again(&mut self) {
        let pid = Pid::from_raw(self.daemon.pid() as i32).expect("a process");
        kill_process(pid, Signal::TERM).expect("sent");
        let status = tokio::task::block_in_place(|| self.daemon.wait()).expect("it ends");
        assert!(status.success(), "{}", self.daemon.log());
        self.daemon = Daemon::start(&self.file).expect("larder starts again");
        eventually("all is found", async || self.metric("disk_finding").await == 0).await;
    }

    /// With small slices.
    async fn small(policy: Policy) -> Self {
        Self::open(policy, LENGTH, "", SMALL).await
    }

    async fn small_that(policy: Policy, keys: &str) -> Self {
        Self::open_with(policy, LENGTH, ("", SMALL), keys).await
    }

    async fn client(&self) -> RawClient {
        RawClient::connect(self.daemon.addr()).await.expect("a connection").patience(PATIENCE)
    }

    async fn seen(&self, method: &str, fields: &str) -> ReplyOutcome {
        let mut client = self.client().await;
        client.send(&request(method, "/film", fields), WriteSplit::Whole).await.expect("sent");
        client.reply(method).await
    }

    async fn ask(&self, fields: &str) -> Reply {
        whole(self.seen("GET", fields).await, fields)
    }

    /// The bytes of one range.
    async fn part(&self, range: Range<u64>) -> Reply {
        self.ask(&format!("Range: bytes={}-{}\r\n", range.start, range.end - 1)).await
    }

    async fn metric(&self, name: &str) -> u64 {
        self.daemon.metric(&format!("larder_{name}"), "").await.expect("metrics") as u64
    }

    /// Waits until the origin has begun to send.
    async fn begun(&self) {
        eventually("the origin sends", async || self.film.sent() > 0).await;
    }

    /// The ranges of the origin's requests.
    fn ranges(&self) -> Vec<Option<Range<u64>>> {
        self.film.asked().into_iter().map(|asked| asked.range).collect()
    }
}

/// Asserts that the bytes of the range are those of `version`.
fn assert_part(reply: &Reply, range: Range<u64>, version: u64, of: u64, what: &str) {
    assert_eq!(reply.status, 206, "{what}");
    let told = format!("bytes {}-{}/{of}", range.start, range.end - 1);
    assert_eq!(reply.field("content-range"), Some(told), "{what}");
    assert!(reply.body == LargeFile::bytes(version, range), "{what}: other bytes");
}

#[tokio::test]
async fn a_large_response_is_cut_into_slices_that_answer_later_requests() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        let first = cinema.ask("").await;
        assert_eq!(first.status, 200, "{policy:?}");
        assert!(first.body == LargeFile::bytes(1, 0..LENGTH), "{policy:?}");
        cinema.daemon.assert_metric("larder_slices_cut_total", LENGTH.div_ceil(SLICE)).await;
        let again = cinema.ask("").await;
        assert!(again.body == first.body, "{policy:?}");
        for range in [0..1, 100_000..300_000, LENGTH - 1..LENGTH, 0..LENGTH] {
            let part = cinema.part(range.clone()).await;
            assert_part(&part, range, 1, LENGTH, &format!("{policy:?}"));
        }
        assert_eq!(cinema.ranges(), [None], "{policy:?}: one request for all of it");
        assert_eq!(cinema.metric("slice_sets_total").await, 1, "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_on_disk_answer_after_a_restart_until_they_are_purged() {
    for policy in BOTH {
        let mut cinema = Cinema::over_a_disk(policy, LENGTH, SMALL).await;
        cinema.ask("").await;
        cinema.daemon.assert_metric("larder_slices_cut_total", LENGTH.div_ceil(SLICE)).await;
        for _ in 0..2 {
            cinema.again().await;
            for range in [100_000..300_000, LENGTH - 1..LENGTH, 0..LENGTH] {
                let part = cinema.part(range.clone()).await;
                assert_part(&part, range, 1, LENGTH, &format!("{policy:?}"));
            }
            assert_eq!(cinema.ranges(), [None], "{policy:?}: nothing is fetched anew");
        }
        assert!(matches!(cinema.seen("PURGE", "").await, ReplyOutcome::Complete(_)), "{policy:?}");
        cinema.again().await;
        assert_part(&cinema.part(0..10).await, 0..10, 1, LENGTH, &format!("{policy:?}"));
        assert!(cinema.ranges().len() > 1, "{policy:?}: it is fetched anew");
    }
}

#[tokio::test]
async fn a_film_that_is_larger_than_memory_is_read_from_disk() {
    const FILM: u64 = 32 * MIB + 77;
    for policy in BOTH {
        let limits = "slices_from = \"1MiB\"\nslice_bytes = \"1MiB\"";
        let cinema = Cinema::over_a_disk(policy, FILM, limits).await;
        // Each time more of it is on disk: late writes first need space.
        eventually("all of it is on disk", async || {
            let before = cinema.ranges().len();
            let film = cinema.ask("").await;
            assert!(film.body == LargeFile::bytes(1, 0..FILM), "{policy:?}: other bytes");
            cinema.ranges().len() == before
        })
        .await;
        for at in [0, 7, 19, 31] {
            let range = at * MIB + 5..at * MIB + MIB / 2;
            assert_part(&cinema.part(range.clone()).await, range, 1, FILM, &format!("{policy:?}"));
        }
        assert!(cinema.metric("disk_hits_total").await > 20, "{policy:?}");
    }
}

/// A film larger than memory, whose origin sends no ranges.
async fn in_one_go(policy: Policy) -> Cinema {
    let cinema = Cinema::over_a_disk(policy, ONE_GO, "").await;
    cinema.film.set_manner(Manner::NoRanges);
    cinema
}

const ONE_GO: u64 = 24 * MIB + 77;

#[tokio::test(flavor = "multi_thread")]
async fn what_only_one_response_brings_goes_to_disk_while_it_comes() {
    for policy in BOTH {
        let mut cinema = in_one_go(policy).await;
        for _ in 0..2 {
            assert!(cinema.ask("").await.body == LargeFile::bytes(1, 0..ONE_GO), "{policy:?}");
        }
        assert_eq!(cinema.ranges(), [None], "{policy:?}: the second time it is there");
        cinema.again().await;
        for range in [20 * MIB..21 * MIB, 5..10, 0..ONE_GO] {
            let part = cinema.part(range.clone()).await;
            assert_part(&part, range, 1, ONE_GO, &format!("{policy:?}"));
        }
        assert_eq!(cinema.ranges(), [None], "{policy:?}: it is there after a restart");
        assert!(matches!(cinema.seen("PURGE", "").await, ReplyOutcome::Complete(_)), "{policy:?}");
        cinema.again().await;
        cinema.film.change(ONE_GO);
        assert!(cinema.ask("").await.body == LargeFile::bytes(2, 0..ONE_GO), "{policy:?}");
    }
}

#[tokio::test]
async fn a_body_without_ranges_is_fetched_once_and_not_for_later_requests() {
    for policy in BOTH {
        let cinema = in_one_go(policy).await;
        // One client leaves at once, one wants the end, one begins later.
        let mut gone = cinema.client().await;
        gone.send(&request("GET", "/film", ""), WriteSplit::Whole).await.expect("sent");
        cinema.begun().await;
        drop(gone);
        let last = ONE_GO - 1000..ONE_GO;
        let (end, film) = tokio::join!(cinema.part(last.clone()), cinema.ask(""));
        assert_part(&end, last, 1, ONE_GO, &format!("{policy:?}"));
        assert!(film.body == LargeFile::bytes(1, 0..ONE_GO), "{policy:?}: other bytes");
        assert_eq!(cinema.metric("disk_spools_refused_total").await, 0, "{policy:?}");
        assert_eq!(cinema.ranges(), [None], "{policy:?}");
    }
}

#[tokio::test]
async fn what_breaks_off_is_not_kept() {
    for policy in BOTH {
        let cinema = in_one_go(policy).await;
        cinema.film.set_manner(Manner::NoRangesCut(12 * MIB));
        let seen = cinema.seen("GET", "").await;
        let ReplyOutcome::Truncated(_) = &seen else { panic!("{policy:?}: {seen:?}") };
        cinema.film.set_manner(Manner::NoRanges);
        assert!(cinema.ask("").await.body == LargeFile::bytes(1, 0..ONE_GO), "{policy:?}");
        assert_eq!(cinema.ranges(), [None, None], "{policy:?}: it is fetched anew");
    }
}

#[tokio::test]
async fn an_object_purged_while_it_arrives_is_whole_for_its_readers_only() {
    for policy in BOTH {
        let cinema = in_one_go(policy).await;
        let mut client = cinema.client().await;
        client.send(&request("GET", "/film", ""), WriteSplit::Whole).await.expect("sent");
        cinema.begun().await;
        assert!(matches!(cinema.seen("PURGE", "").await, ReplyOutcome::Complete(_)), "{policy:?}");
        let first = whole(client.reply("GET").await, "the first");
        assert!(first.body == LargeFile::bytes(1, 0..ONE_GO), "{policy:?}: other bytes");
        cinema.film.change(ONE_GO);
        assert!(cinema.ask("").await.body == LargeFile::bytes(2, 0..ONE_GO), "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_purged_while_it_is_read_from_disk_is_whole_for_its_readers() {
    for policy in BOTH {
        let mut cinema = in_one_go(policy).await;
        cinema.ask("").await;
        cinema.again().await;
        // More than the sockets between the two take.
        let mut client = cinema.client().await;
        client.send(&request("GET", "/film", ""), WriteSplit::Whole).await.expect("sent");
        cinema.daemon.assert_metric("larder_disk_hits_total", 1).await;
        assert!(matches!(cinema.seen("PURGE", "").await, ReplyOutcome::Complete(_)), "{policy:?}");
        let film = whole(client.reply("GET").await, "what was begun");
        assert!(film.body == LargeFile::bytes(1, 0..ONE_GO), "{policy:?}: other bytes");
        // Now it leaves the disk, too.
        eventually("it is gone", async || cinema.metric("disk_volume_records").await == 0).await;
        cinema.film.change(ONE_GO);
        cinema.again().await;
        assert!(cinema.ask("").await.body == LargeFile::bytes(2, 0..ONE_GO), "{policy:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_read_from_disk_stays_until_it_has_been_read() {
    // The client may wait as long as the others take.
    let limits = "send_timeout = \"10m\"\nsend_rate_leeway = \"10m\"";
    let mut cinema = Cinema::over_a_disk(Policy::Declared, ONE_GO, limits).await;
    cinema.film.set_manner(Manner::NoRanges);
    cinema.ask("").await;
    cinema.again().await;
    let mut client = cinema.client().await;
    client.send(&request("GET", "/film", ""), WriteSplit::Whole).await.expect("sent");
    cinema.daemon.assert_metric("larder_disk_hits_total", 1).await;
    // Other responses need all memory, while the client reads nothing.
    for other in 0..12 {
        let mut raw = cinema.client().await;
        let reply = whole(raw.get(&format!("/film?{other}")).await.expect("sent"), "another");
        assert_eq!(reply.body.len() as u64, ONE_GO);
    }
    assert!(cinema.metric("disk_volume_dropped_total").await > 0, "for others");
    let film = whole(client.reply("GET").await, "what was begun");
    assert!(film.body == LargeFile::bytes(1, 0..ONE_GO), "other bytes");
    assert_eq!(cinema.metric("disk_volume_reads_gone_total").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_stay_for_a_client_is_asked_of_the_origin() {
    for policy in BOTH {
        let mut cinema = Cinema::over_a_disk(policy, ONE_GO, "disk_read_share = 0").await;
        cinema.film.set_manner(Manner::NoRanges);
        cinema.ask("").await;
        cinema.again().await;
        for round in 2..4 {
            assert!(cinema.ask("").await.body == LargeFile::bytes(1, 0..ONE_GO), "{policy:?}");
            assert_eq!(cinema.film.asked().len(), round, "{policy:?}");
        }
        let part = cinema.part(1000..2000).await.body;
        assert!(part == LargeFile::bytes(1, 1000..2000), "{policy:?}");
        assert_eq!(cinema.film.asked().len(), 3, "{policy:?}: it knows no ranges");
        assert!(cinema.metric("disk_volume_refused_hold_total").await > 0, "{policy:?}");
    }
}

#[tokio::test]
async fn the_middle_of_a_film_needs_one_slice() {
    const FILM: u64 = 4 << 30;
    let cinema = Cinema::open(Policy::Declared, FILM, "", "slice_bytes = \"1MiB\"").await;
    let middle = FILM / 2 + 300;
    let part = cinema.part(middle..middle + 1).await;
    assert_part(&part, middle..middle + 1, 1, FILM, "the middle");
    assert_eq!(cinema.ranges(), [Some(FILM / 2..FILM / 2 + MIB)]);
    // A stored part serves its ranges, and is extended by others.
    let part = cinema.part(middle + 1..middle + 1000).await;
    assert_part(&part, middle + 1..middle + 1000, 1, FILM, "beside it");
    assert_eq!(cinema.film.asked().len(), 1);
    let edge = FILM / 2 + MIB;
    let part = cinema.part(edge - 10..edge + 10).await;
    assert_part(&part, edge - 10..edge + 10, 1, FILM, "across the edge");
    let asked = cinema.film.asked();
    assert_eq!(asked[1].range, Some(edge..edge + MIB));
    assert!(asked[1].if_range, "of the same version");
    let tail = cinema.ask("Range: bytes=-5\r\n").await;
    assert_part(&tail, FILM - 5..FILM, 1, FILM, "the last bytes");
    assert_eq!(cinema.ask(&format!("Range: bytes={FILM}-\r\n")).await.status, 416);
    assert_eq!(cinema.film.sent(), 3 * MIB);
}

#[tokio::test]
async fn the_end_of_a_film_needs_its_slice_and_the_first_which_tells_the_length() {
    const FILM: u64 = 4 << 30;
    let cinema = Cinema::open(Policy::Declared, FILM, "", "slice_bytes = \"1MiB\"").await;
    let tail = cinema.ask("Range: bytes=-5\r\n").await;
    assert_part(&tail, FILM - 5..FILM, 1, FILM, "the last bytes");
    assert_eq!(cinema.ranges(), [Some(0..MIB), Some(FILM - MIB..FILM)]);
    assert!(cinema.film.asked()[1].if_range, "of the same version");
    assert_eq!(cinema.film.sent(), 2 * MIB);
}

#[tokio::test]
async fn several_parts_of_a_film_need_the_slices_that_they_are_in() {
    const FILM: u64 = 4 << 30;
    let cinema = Cinema::open(Policy::Declared, FILM, "", "slice_bytes = \"1MiB\"").await;
    let (far, near) = (FILM - MIB..FILM, 5 * MIB..6 * MIB);
    let fields = format!("Range: bytes=-10, {}-{}\r\n", near.start + 7, near.start + 11);
    let reply = cinema.ask(&fields).await;
    assert_eq!(reply.status, 206);
    let kind = reply.field("content-type").expect("a type");
    assert!(kind.starts_with("multipart/byteranges; boundary="), "{kind}");
    for part in [FILM - 10..FILM, near.start + 7..near.start + 12] {
        let told = format!("Content-Range: bytes {}-{}/{FILM}\r\n\r\n", part.start, part.end - 1);
        let expected = [told.as_bytes(), &LargeFile::bytes(1, part)].concat();
        let is_there = reply.body.windows(expected.len()).any(|window| window == expected);
        assert!(is_there, "{told}");
    }
    assert_eq!(cinema.ranges(), [Some(near), Some(far)]);
    assert_eq!(cinema.film.sent(), 2 * MIB);
}

#[tokio::test]
async fn under_a_program_the_middle_of_a_film_needs_its_slice_and_the_first() {
    const FILM: u64 = 4 << 30;
    let cinema = Cinema::open(Policy::Vcl, FILM, "", "slice_bytes = \"1MiB\"").await;
    let middle = FILM / 2 + 300;
    let part = cinema.part(middle..middle + 1).await;
    assert_part(&part, middle..middle + 1, 1, FILM, "the middle");
    // A program's fetch requests the whole, as Varnish does, and is cut off when no reader is left.
    assert_eq!(cinema.ranges(), [None, Some(FILM / 2..FILM / 2 + MIB)]);
    // The rest of the first response in the kernel's buffers was sent, too.
    assert!(cinema.film.sent() < 20 * MIB, "{}", cinema.film.sent());
}

#[tokio::test]
async fn seeking_costs_the_slices_it_touches_and_no_more_memory_than_there_is() {
    const FILM: u64 = 4 << 30;
    const SEEKS: u64 = 64;
    let limits = "slice_bytes = \"512KiB\"\nslices_from = \"32MiB\"";
    let cinema = Cinema::open(Policy::Declared, FILM, "[memory]\nsize = \"16MiB\"", limits).await;
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut touched = std::collections::BTreeSet::new();
    for _ in 0..SEEKS {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = state % (FILM - 100_000);
        let range = at..at + 100_000;
        let part = cinema.part(range.clone()).await;
        assert_part(&part, range.clone(), 1, FILM, "a seek");
        touched.extend([range.start / (512 * KIB), (range.end - 1) / (512 * KIB)]);
    }
    let most = touched.len() as u64 * 512 * KIB;
    let sent = cinema.film.sent();
    assert!(sent <= most + most / 10, "{sent} bytes for {} slices", touched.len());
    let used = cinema.daemon.metric("larder_memory_bytes", "").await.expect("metrics");
    assert!(used as u64 <= 16 * MIB, "{used}");
}

#[tokio::test]
async fn slices_that_were_evicted_are_fetched_anew() {
    // About two slices of the whole film fit.
    let limits = "slices_from = \"1MiB\"\nslice_bytes = \"1MiB\"\nslice_ahead = 0";
    for policy in BOTH {
        let cinema = Cinema::open(policy, 12 * MIB, "[memory]\nsize = \"8MiB\"", limits).await;
        for _ in 0..3 {
            let mut at = 0;
            while at < 12 * MIB {
                let range = at..at + 1000;
                assert_part(&cinema.part(range.clone()).await, range, 1, 12 * MIB, "a slice");
                at += MIB;
            }
        }
        assert!(cinema.metric("slices_fetched_total").await > 12, "{policy:?}");
        assert_eq!(cinema.metric("slice_sets_changed_total").await, 0, "{policy:?}");
    }
}

#[tokio::test]
async fn a_slice_that_many_want_is_fetched_once() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        cinema.part(0..1).await;
        let range = 10 * SLICE..10 * SLICE + 5000;
        let asks = (0..20).map(|_| cinema.part(range.clone()));
        for part in futures_util::future::join_all(asks).await {
            assert_part(&part, range.clone(), 1, LENGTH, &format!("{policy:?}"));
        }
        let slice = Some(10 * SLICE..11 * SLICE);
        let fetched = cinema.ranges().into_iter().filter(|range| *range == slice).count();
        assert!(fetched <= 1, "{policy:?}: {fetched}");
    }
}

/// The version that a response's validator names.
fn version_of(reply: &Reply) -> u64 {
    let etag = reply.field("etag").expect("an entity tag");
    etag.trim_matches(['"', 'v']).parse().expect("a version")
}

/// Asserts that a response, whole or truncated, has bytes of the version that it names and of no
/// other; true if it is whole.
fn assert_one_version(
    seen: &ReplyOutcome,
    wanted: Option<&Range<u64>>,
    of: u64,
    what: &str,
) -> bool {
    let (reply, is_whole) = match seen {
        ReplyOutcome::Complete(reply) => (reply, true),
        ReplyOutcome::Truncated(reply) => (reply, false),
        ReplyOutcome::Nothing => return false,
        other => panic!("{what}: {other:?}"),
    };
    let range = match (reply.status, wanted) {
        (200, _) => 0..of,
        (206, Some(range)) => range.start..range.end.min(of),
        // It failed before anything was sent.
        (502 | 503, _) => return false,
        (status, _) => panic!("{what}: status {status}"),
    };
    let expected = LargeFile::bytes(version_of(reply), range);
    assert!(reply.body.len() <= expected.len(), "{what}: too much");
    assert!(reply.body == expected[..reply.body.len()], "{what}: other bytes");
    assert_eq!(is_whole, reply.body.len() == expected.len(), "{what}: whole");
    is_whole
}

#[tokio::test]
async fn another_version_ends_the_set_and_no_answer_mixes_two() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        assert_part(&cinema.part(0..1000).await, 0..1000, 1, LENGTH, "the first");
        cinema.film.change(LENGTH);
        let seen = cinema.seen("GET", "Range: bytes=0-\r\n").await;
        assert_one_version(&seen, Some(&(0..LENGTH)), LENGTH, &format!("{policy:?}"));
        eventually("the new version", async || {
            let seen = cinema.seen("GET", "").await;
            assert_one_version(&seen, None, LENGTH, &format!("{policy:?}"));
            seen.complete().is_some_and(|reply| version_of(reply) == 2)
        })
        .await;
        assert_eq!(cinema.metric("slice_sets_changed_total").await, 1, "{policy:?}");
    }
}

/// Compared with a plain file: whatever is requested, evicted, purged, validated and changed, a
/// response has bytes of one version, and is whole or truncated.
#[tokio::test]
async fn a_random_walk_over_a_film_sees_one_version_at_a_time() {
    let limits = "slices_from = \"256KiB\"\nslice_bytes = \"64KiB\"";
    for (policy, seed) in [(Policy::Declared, 7_u64), (Policy::Vcl, 11), (Policy::Declared, 13)] {
        let cinema = Cinema::open(policy, LENGTH, "[memory]\nsize = \"8MiB\"", limits).await;
        cinema.film.say("Cache-Control: max-age=1\r\n");
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut whole_answers = 0;
        for step in 0..150 {
            let what = format!("{policy:?}, seed {seed}, step {step}");
            match random(20) {
                0 => cinema.film.change(LENGTH),
                1 => _ = cinema.seen("PURGE", "").await,
                2 => cinema.film.set_manner(Manner::Cut(random(2 * SLICE))),
                3 => {
                    let seen = cinema.seen("GET", "").await;
                    whole_answers += u64::from(assert_one_version(&seen, None, LENGTH, &what));
                }
                _ => {
                    let start = random(LENGTH);
                    let range = start..start + 1 + random(3 * SLICE);
                    let last = range.end - 1;
                    let fields = format!("Range: bytes={start}-{last}\r\n");
                    let seen = cinema.seen("GET", &fields).await;
                    whole_answers +=
                        u64::from(assert_one_version(&seen, Some(&range), LENGTH, &what));
                }
            }
            if random(3) > 0 {
                cinema.film.set_manner(Manner::Right);
            }
        }
        assert!(whole_answers > 50, "{policy:?}, seed {seed}: {whole_answers} whole answers");
    }
}

#[tokio::test]
async fn an_origin_without_ranges_is_asked_for_them_once() {
    let cinema = Cinema::small(Policy::Declared).await;
    cinema.film.set_manner(Manner::NoRanges);
    let part = cinema.part(70_000..70_010).await;
    assert_part(&part, 70_000..70_010, 1, LENGTH, "from the whole");
    assert_eq!(cinema.ranges(), [Some(SLICE..2 * SLICE)]);
    // The whole is stored, in one piece.
    assert_part(&cinema.part(0..10).await, 0..10, 1, LENGTH, "from the store");
    assert_eq!(cinema.film.asked().len(), 1);
    assert_eq!(cinema.metric("slice_sets_total").await, 0);
    // For another response of the same origin the range is not requested again.
    let mut client = cinema.client().await;
    let other = request("GET", "/other", "Range: bytes=70000-70009\r\n");
    client.send(&other, WriteSplit::Whole).await.expect("sent");
    assert_part(&whole(client.reply("GET").await, "/other"), 70_000..70_010, 1, LENGTH, "other");
    assert_eq!(cinema.ranges(), [Some(SLICE..2 * SLICE), None]);
    // Also when the end is requested.
    let cinema = Cinema::small(Policy::Declared).await;
    cinema.film.set_manner(Manner::NoRanges);
    let tail = cinema.ask("Range: bytes=-10\r\n").await;
    assert_part(&tail, LENGTH - 10..LENGTH, 1, LENGTH, "the end");
    assert_eq!(cinema.ranges(), [Some(0..SLICE)]);
}

#[tokio::test]
async fn a_small_file_of_which_a_part_is_wanted_is_stored_whole() {
    let cinema = Cinema::open(Policy::Declared, 100_000, "", SMALL).await;
    assert_part(&cinema.part(70_000..70_010).await, 70_000..70_010, 1, 100_000, "a part");
    assert_eq!(cinema.ranges(), [Some(SLICE..2 * SLICE), None]);
    assert!(cinema.ask("").await.body == LargeFile::bytes(1, 0..100_000));
    // Of a smaller body the part is the whole.
    let cinema = Cinema::open(Policy::Declared, 5000, "", SMALL).await;
    assert_part(&cinema.part(10..20).await, 10..20, 1, 5000, "a part");
    assert_eq!(cinema.ask("").await.status, 200);
    assert_eq!(cinema.ranges(), [Some(0..SLICE)]);
    assert_eq!(cinema.metric("slice_sets_total").await, 0);
}

#[tokio::test]
async fn contradictory_ranges_are_neither_stored_nor_sent() {
    use testkit::large_file::RangeManner::*;
    let manners = [
        WrongTotal,
        WrongStart,
        TooLong,
        NoContentRange,
        TwoContentRanges,
        NoEtag,
        OtherCoding,
        Status(500),
        Status(404),
        Cut(100),
        Promises,
    ];
    for policy in BOTH {
        for manner in manners {
            let what = format!("{policy:?} {manner:?}");
            let cinema = Cinema::small(policy).await;
            // A set begins well; then the origin fails.
            assert_part(&cinema.part(0..10).await, 0..10, 1, LENGTH, &what);
            cinema.film.set_manner(manner);
            let range = 9 * SLICE + 50..9 * SLICE + 4050;
            let fields = format!("Range: bytes={}-{}\r\n", range.start, range.end - 1);
            match cinema.seen("GET", &fields).await {
                ReplyOutcome::Complete(reply) if reply.status == 206 => {
                    assert_part(&reply, range.clone(), 1, LENGTH, &what);
                }
                ReplyOutcome::Complete(reply) => assert_ne!(reply.status, 200, "{what}"),
                _ => {}
            }
            // Once the origin recovers, so does everything.
            cinema.film.set_manner(Right);
            let part = cinema.part(range.clone()).await;
            assert_part(&part, range.clone(), 1, LENGTH, &what);
            assert!(cinema.ask("").await.body == LargeFile::bytes(1, 0..LENGTH), "{what}");
        }
    }
}

#[tokio::test]
async fn several_ranges_come_as_parts_of_one_answer() {
    for policy in [Policy::Declared] {
        let cinema = Cinema::small(policy).await;
        cinema.part(0..10).await;
        let (far, near) = (LENGTH - 10..LENGTH, 5..SLICE + 5);
        let fields = format!(
            "Range: bytes={}-{},{}-{}\r\n",
            far.start,
            far.end - 1,
            near.start,
            near.end - 1
        );
        let reply = cinema.ask(&fields).await;
        assert_eq!(reply.status, 206, "{policy:?}");
        let kind = reply.field("content-type").expect("a type");
        let boundary = kind.strip_prefix("multipart/byteranges; boundary=").expect("parts");
        let mut expected = Vec::new();
        for range in [far, near] {
            let (first, last) = (range.start, range.end - 1);
            let head =
                format!("\r\n--{boundary}\r\nContent-Range: bytes {first}-{last}/{LENGTH}\r\n\r\n");
            expected.extend_from_slice(head.as_bytes());
            expected.extend_from_slice(&LargeFile::bytes(1, range));
        }
        expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        assert!(reply.body == expected, "{policy:?}");
    }
}

#[tokio::test]
async fn a_thousand_ranges_of_a_byte_cost_the_slices_they_are_in() {
    let heads = "header_bytes = \"64KiB\"\nheader_field_bytes = \"32KiB\"";
    let limits = format!("{SMALL}\n{heads}\nranges = 1000");
    let cinema = Cinema::open(Policy::Declared, LENGTH, "", &limits).await;
    cinema.part(0..1).await;
    let specs: Vec<_> = (0..1000).map(|at| format!("{0}-{0}", at * 1000 % LENGTH)).collect();
    let field = format!("Range: bytes={}\r\n", specs.join(","));
    let reply = cinema.ask(&field).await;
    assert_eq!(reply.status, 206);
    let touched = LENGTH.div_ceil(SLICE);
    assert!(cinema.film.sent() <= touched * SLICE, "{}", cinema.film.sent());
    // With the default limit they are not even read.
    let limits = format!("{SMALL}\n{heads}");
    let cinema = Cinema::open(Policy::Declared, LENGTH, "", &limits).await;
    assert_eq!(cinema.ask(&field).await.status, 200);
}

#[tokio::test]
async fn a_set_that_is_confirmed_keeps_its_slices() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        cinema.film.say("Cache-Control: max-age=1\r\n");
        cinema.ask("").await;
        cinema.daemon.assert_metric("larder_slices_cut_total", LENGTH.div_ceil(SLICE)).await;
        let sent = cinema.film.sent();
        eventually("it is confirmed", async || {
            let range = 5 * SLICE..5 * SLICE + 10;
            assert_part(&cinema.part(range.clone()).await, range, 1, LENGTH, "a part");
            cinema.metric("revalidated_total").await > 0
        })
        .await;
        let range = 7 * SLICE..7 * SLICE + 10;
        assert_part(&cinema.part(range.clone()).await, range, 1, LENGTH, "a part");
        assert_eq!(cinema.film.sent(), sent, "{policy:?}: nothing is sent again");
    }
}

#[tokio::test]
async fn what_is_purged_is_fetched_anew_with_all_its_slices() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        cinema.ask("").await;
        cinema.daemon.assert_metric("larder_slices_cut_total", LENGTH.div_ceil(SLICE)).await;
        cinema.film.change(LENGTH);
        assert_eq!(whole(cinema.seen("PURGE", "").await, "purge").status, 200, "{policy:?}");
        let range = 5 * SLICE..5 * SLICE + 10;
        assert_part(&cinema.part(range.clone()).await, range, 2, LENGTH, "the new one");
        // The old slices leave, though nothing needs their space.
        eventually("they are gone", async || {
            let stored = cinema.daemon.metric("larder_objects", "").await;
            stored.is_ok_and(|stored| (stored as u64) < LENGTH.div_ceil(SLICE))
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_fetch_at_a_slice_s_end() {
    const FILM: u64 = 1 << 30;
    for policy in BOTH {
        let cinema = Cinema::open(policy, FILM, "", "slice_bytes = \"1MiB\"").await;
        let mut client = cinema.client().await;
        client.send(&request("GET", "/film", ""), WriteSplit::Whole).await.expect("sent");
        cinema.daemon.assert_metric("larder_slice_sets_total", 1).await;
        drop(client);
        cinema.daemon.assert_metric("larder_responses_aborted_total", 1).await;
        // No reader is left: the fetch ends though it has hardly begun.
        let before = std::cell::Cell::new(u64::MAX);
        eventually("it stands still", async || {
            let sent = cinema.film.sent();
            before.replace(sent) == sent
        })
        .await;
        assert!(cinema.film.sent() < FILM / 4, "{policy:?}: {}", cinema.film.sent());
    }
}

#[tokio::test]
async fn curl_takes_parts_and_goes_on_with_what_it_has() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        let folder = Folder::new();
        let url = format!("http://{}/film", cinema.daemon.addr());
        let file = folder.path().join("film");
        let (from, to) = (3 * SLICE + 7, 5 * SLICE);
        let name = file.display().to_string();
        for (more, expected) in [
            (["-r".to_owned(), format!("0-{}", from - 1)], 0..from),
            (["-C".to_owned(), "-".to_owned()], 0..LENGTH),
            (["-r".to_owned(), format!("{from}-{}", to - 1)], from..to),
        ] {
            let mut command = std::process::Command::new("curl");
            command.args(["-sS", "-o", &name, &url]).args(&more);
            let run = tokio::task::spawn_blocking(move || command.output()).await;
            let output = run.expect("no panic").expect("curl is there");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{policy:?} {more:?}: {said}");
            let got = std::fs::read(&file).expect("a file");
            assert!(got == LargeFile::bytes(1, expected), "{policy:?} {more:?}: other bytes");
        }
    }
}

#[tokio::test]
async fn head_tells_the_length_and_explain_the_slices() {
    for policy in BOTH {
        let cinema = Cinema::small(policy).await;
        assert_part(&cinema.part(0..10).await, 0..10, 1, LENGTH, "a part");
        let head = whole(cinema.seen("HEAD", "").await, "HEAD");
        assert_eq!(head.field("content-length"), Some(LENGTH.to_string()), "{policy:?}");
        let text = printed(&cinema.daemon, &["explain", "http://larder.test/film"]).await;
        assert!(text.contains("of 17, of 64KiB each"), "{policy:?}: {text}");
    }
}
