//! Loads over real sockets: counts, failures by kind, protocols, and latencies from due times.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench::load::Runner;
use bench::result::Round;
use bench::settings::{Background, Load, MeasurementEnd, Protocol, Settings, Tls, Visit};
use bench::urls::{List, RequestOrder, from_log};
use testkit::origin::{Script, ScriptedOrigin};

/// A closed loop of 4 connections, for 100 requests, without a warm-up.
fn settings(urls: &[String]) -> Settings {
    Settings {
        targets: Vec::new(),
        list: List::from_urls(urls),
        order: RequestOrder::Sequence,
        headers: Vec::new(),
        protocol: Protocol::Http1 { old: false, keep_alive: true, pipeline: 1 },
        conditional: false,
        tls: Tls { authorities: None, resume: true },
        load: Load::Closed { connections: 4 },
        until: MeasurementEnd::Count(100),
        warm_up: Duration::ZERO,
        timeout: Duration::from_secs(20),
        threads: 2,
        background: Background::default(),
    }
}

/// Measures a round on a thread outside of the test's runtime.
async fn measured(settings: Settings) -> Round {
    let measure = move || {
        Runner::new(&settings, Vec::new(), Arc::default())
            .and_then(|runner| runner.round(&mut |_| ()))
    };
    tokio::task::spawn_blocking(measure).await.expect("no panic").expect("a round")
}

async fn origin(script: Script) -> (ScriptedOrigin, Settings) {
    let origin = ScriptedOrigin::start().await.expect("origin");
    origin.otherwise(script);
    let settings = settings(&[format!("http://{}/page", origin.addr())]);
    (origin, settings)
}

#[tokio::test]
async fn a_closed_loop_asks_as_often_as_it_shall() {
    let script = Script::ok("X-Cache: HIT\r\nContent-Encoding: gzip\r\n", "0123456789");
    let (origin, settings) = origin(script).await;
    let round = measured(settings).await;
    assert_eq!((round.attempted, round.completed, round.unfinished), (100, 100, 0), "{round:?}");
    assert_eq!(round.statuses, [(200, 100)].into());
    assert_eq!(round.body_lengths, [(10, 100)].into());
    assert_eq!(round.encodings, [("gzip".to_owned(), 100)].into());
    assert_eq!(round.hits, [("x-cache".to_owned(), 100)].into());
    // A connection that opens late may find no request left.
    assert_eq!(round.connections as usize, origin.recorded().len());
    assert!((1..=4).contains(&round.connections), "{round:?}");
    assert_eq!(round.last_byte.map(|latency| latency.count), Some(100));
    assert_eq!(round.connect.map(|latency| latency.count), Some(round.connections));
    assert_eq!(origin.seen("/page"), 100);
    let sent: usize = origin.recorded().iter().map(|recorded| recorded.bytes.len()).sum();
    assert_eq!(round.bytes_sent, sent as u64);
}

#[tokio::test]
async fn without_keep_alive_each_request_has_its_connection() {
    let (origin, settings) = origin(Script::ok("Connection: close\r\n", "x").close()).await;
    for old in [false, true] {
        let protocol = Protocol::Http1 { old, keep_alive: false, pipeline: 1 };
        let round = measured(Settings { protocol, ..settings.clone() }).await;
        assert_eq!((round.completed, round.connections), (100, 100), "{round:?}");
    }
    let heads: Vec<_> = origin.recorded().into_iter().map(|recorded| recorded.bytes).collect();
    let of = |version: &[u8]| {
        heads.iter().filter(|head| head.windows(version.len()).any(|at| at == version)).count()
    };
    assert_eq!((of(b" HTTP/1.1\r\n"), of(b" HTTP/1.0\r\n")), (100, 100));
}

#[tokio::test]
async fn a_connection_that_the_server_ends_between_requests_is_no_error() {
    let (_origin, settings) = origin(Script::ok("", "x").close()).await;
    let round = measured(settings).await;
    assert_eq!((round.completed, round.connections), (100, 100), "{round:?}");
}

#[tokio::test]
async fn requests_in_a_row_have_their_responses_in_order() {
    let (_origin, settings) = origin(Script::ok("", "x")).await;

    let protocol = Protocol::Http1 { old: false, keep_alive: true, pipeline: 8 };
    let round = measured(Settings { protocol, ..settings }).await;
    assert_eq!((round.attempted, round.completed), (100, 100), "{round:?}");
    assert!(round.connections <= 4, "{round:?}");
}

#[tokio::test]
async fn errors_have_their_kinds() {
    let cases = [
        ("closed", Script::default().close()),
        ("malformed", Script::respond("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n")),
        ("closed", Script::respond("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nxx").close()),
        ("timeout", Script::default().hang()),
    ];
    for (kind, script) in cases {
        let (_origin, settings) = origin(script).await;
        let timeout = Duration::from_millis(if kind == "timeout" { 50 } else { 20_000 });
        let until = MeasurementEnd::Count(8);
        let round = measured(Settings { timeout, until, ..settings }).await;
        assert_eq!((round.attempted, round.completed), (8, 0), "{kind}: {round:?}");
        assert_eq!(round.errors, [(kind.to_owned(), 8)].into());
        assert!(round.error_texts.contains_key(kind));
    }
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address");
    let settings = settings(&[format!("http://{free}/")]);
    let round = measured(Settings { until: MeasurementEnd::Count(4), ..settings }).await;
    assert_eq!(round.errors, [("connect".to_owned(), 4)].into());
}

#[tokio::test]
async fn lengths_that_differ_are_counted() {
    let (_origin, settings) = origin(Script::mirror("")).await;
    let round = measured(settings).await;
    // The body contains the response's number, which gets longer.
    assert!(round.lengths_differ > 0, "{round:?}");
}

#[tokio::test]
async fn an_open_loop_asks_at_its_rate() {
    let (origin, settings) = origin(Script::ok("", "x")).await;
    let load = |random| Load::Open { rate: 400.0, random, connections: 8 };
    let until = MeasurementEnd::Time(Duration::from_millis(500));
    let round = measured(Settings { load: load(false), until, ..settings.clone() }).await;
    assert_eq!((round.attempted, round.unfinished), (200, 0), "{round:?}");
    assert_eq!(round.last_byte.map(|latency| latency.count), Some(200));
    let before = origin.seen("/page");
    let round = measured(Settings { load: load(true), until, ..settings }).await;
    assert!((120..280).contains(&round.attempted), "{round:?}");
    assert_eq!(origin.seen("/page") - before, round.attempted as usize);
}

#[tokio::test]
async fn sessions_have_a_connection_and_bursts() {
    let (origin, settings) = origin(Script::ok("", "x")).await;
    let visit = Visit { bursts: 3, calls: 2, think: Duration::from_millis(10) };
    let load = Load::Sessions { rate: 200.0, visit, connections: 100 };
    let round = measured(Settings { load, until: MeasurementEnd::Count(20), ..settings }).await;
    let sessions = round.sessions.expect("sessions");
    assert_eq!((sessions.begun, sessions.completed), (20, 20));
    assert_eq!((round.completed, round.connections), (120, 20), "{round:?}");
    assert_eq!(origin.seen("/page"), 120);
}

#[tokio::test]
async fn a_visit_may_last_longer_than_a_response() {
    let (_origin, settings) = origin(Script::ok("", "x")).await;
    let visit = Visit { bursts: 4, calls: 1, think: Duration::from_millis(400) };
    let load = Load::Sessions { rate: 100.0, visit, connections: 100 };
    let (until, timeout) = (MeasurementEnd::Count(5), Duration::from_millis(800));
    let round = measured(Settings { load, until, timeout, ..settings }).await;
    let sessions = round.sessions.expect("sessions");
    assert_eq!((sessions.begun, sessions.completed), (5, 5), "{round:?}");
}

#[tokio::test]
async fn a_ramp_counts_its_parts() {
    let (_origin, settings) = origin(Script::ok("", "x")).await;
    let load = Load::Ramp { from: 1, to: 20 };
    let until = MeasurementEnd::Time(Duration::from_millis(600));
    let settings = Settings { load, until, ..settings };
    let measure = move || {
        Runner::new(&settings, Vec::new(), Arc::default())
            .and_then(|runner| runner.ramp(&mut |_| ()))
    };
    let parts = tokio::task::spawn_blocking(measure).await.expect("no panic").expect("parts");
    let xs: Vec<_> = parts.iter().map(|(x, _)| *x).collect();
    assert_eq!(xs.len(), 20);
    assert!(xs.is_sorted(), "{xs:?}");
    assert!(parts.iter().map(|(_, round)| round.connections).sum::<u64>() <= 20);
    assert!(parts.iter().map(|(_, round)| round.completed).sum::<u64>() > 20);
    // Each window has its own reading of the machine.
    let cpu_us: Vec<_> = parts.iter().map(|(_, round)| round.generator_cpu_us).collect();
    assert!(cpu_us.iter().filter(|cpu_us| **cpu_us > 0).count() > 5, "{cpu_us:?}");
}

#[tokio::test]
async fn connections_besides_are_held() {
    let (origin, settings) = origin(Script::ok("", &"x".repeat(100_000))).await;
    let background = Background { idle: 10, slow: 5, slow_rate: 100 };
    let round = measured(Settings { background, ..settings }).await;
    assert_eq!((round.completed, round.background), (100, 15), "{round:?}");
    assert_eq!(origin.recorded().len() as u64, round.connections + 15);
}

#[tokio::test]
async fn paths_are_asked_of_every_server() {
    let (one, settings) = origin(Script::ok("", "x")).await;
    let (other, _) = origin(Script::ok("", "x")).await;
    let of =
        |addr| bench::target::TargetServer::parse(&format!("http://{addr}/")).expect("target").0;
    let targets = vec![of(one.addr()), of(other.addr())];
    let list = List::from_urls(&["/a"]);
    let round = measured(Settings { targets, list, threads: 1, ..settings }).await;
    assert_eq!(round.completed, 100);
    assert_eq!((one.seen("/a"), other.seen("/a")), (50, 50));
}

#[tokio::test]
async fn a_stop_ends_a_measurement_and_keeps_what_was_measured() {
    let (_origin, settings) = origin(Script::ok("", "x")).await;
    let settings = Settings { until: MeasurementEnd::Time(Duration::from_secs(600)), ..settings };
    let stop = Arc::new(AtomicBool::new(false));
    let measure = move || {
        let runner = Runner::new(&settings, Vec::new(), Arc::clone(&stop))?;
        runner.round(&mut |progress| {
            if progress.completed > 50 {
                stop.store(true, Ordering::Relaxed);
            }
        })
    };
    let round = tokio::task::spawn_blocking(measure).await.expect("no panic").expect("a round");
    assert!(round.completed > 50 && round.elapsed_us < 600_000_000, "{round:?}");
}

/// A server that responds at once, except that it pauses for `stop` after `after`.
fn stopping(after: Duration, stop: Duration) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        let until = Instant::now() + after;
        let resume = until + stop;
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream, until, resume));
        }
    });
    address
}

fn serve(mut stream: std::net::TcpStream, until: Instant, resume: Instant) {
    let mut request = [0; 4096];
    while stream.read(&mut request).is_ok_and(|read| read > 0) {
        let now = Instant::now();
        if now >= until && now < resume {
            std::thread::sleep(resume - now);
        }
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        if stream.write_all(response).is_err() {
            return;
        }
    }
}

/// Responses that took longer than half of the pause.
fn slow(round: &Round, stop: Duration) -> u64 {
    let histogram = round.last_byte.as_ref().expect("latency").histogram().expect("histogram");
    histogram.count_between(stop.as_micros() as u64 / 2, u64::MAX)
}

#[tokio::test]
async fn an_open_loop_sees_a_stop_that_a_closed_one_hides() {
    let stop = Duration::from_secs(1);
    let until = MeasurementEnd::Time(Duration::from_secs(2));
    let load = |open| match open {
        true => Load::Open { rate: 100.0, random: false, connections: 4 },
        false => Load::Closed { connections: 4 },
    };
    let mut slow_ones = Vec::new();
    for open in [true, false] {
        let address = stopping(Duration::from_millis(500), stop);
        let settings = settings(&[format!("http://{address}/")]);
        let round = measured(Settings { load: load(open), until, ..settings }).await;
        slow_ones.push((slow(&round, stop), round.attempted));
    }
    let [(open, asked), (closed, _)] = slow_ones[..] else {
        panic!("{slow_ones:?}");
    };
    // Half of the requests due in the pause waited longer than half of it; in the closed loop, only
    // those in flight did.
    assert_eq!(asked, 200);
    assert!(open >= 40, "{slow_ones:?}");
    assert!(closed <= 8, "{slow_ones:?}");
}

#[tokio::test]
async fn an_open_loop_lasts_as_long_as_it_shall() {
    let (_origin, settings) = origin(Script::ok("", "x")).await;
    let load = Load::Open { rate: 1.0, random: false, connections: 1 };
    let time = Duration::from_millis(1300);
    let began = Instant::now();
    let round = measured(Settings { load, until: MeasurementEnd::Time(time), ..settings }).await;
    // The last of two requests is due 300 ms before the end.
    assert_eq!((round.completed, round.elapsed_us), (2, 1_300_000));
    assert!(began.elapsed() >= time);
}

#[tokio::test]
async fn a_replay_ends_with_its_log() {
    let (origin, settings) = origin(Script::ok("", "x")).await;
    let line = |second| {
        format!("::1 - - [25/Nov/2026:10:00:0{second} +0000] \"GET /page HTTP/1.1\" 200 4\n")
    };
    let log = [0, 1, 1, 2].map(line).concat();
    let targets =
        vec![bench::target::TargetServer::parse(&format!("http://{}", origin.addr())).expect("").0];
    let load = Load::Replay { speed: 10.0, connections: 4 };
    let until = MeasurementEnd::Time(Duration::from_secs(60));
    let list = from_log("log", log.as_bytes());
    let round = measured(Settings { targets, list, load, until, ..settings }).await;
    assert_eq!(round.completed, 4);
    assert!((200_000..30_000_000).contains(&round.elapsed_us), "{round:?}");
}

#[tokio::test]
async fn slow_readers_ask_again_and_again() {
    let (origin, settings) = origin(Script::ok("", "0123456789")).await;
    let background = Background { idle: 1, slow: 2, slow_rate: 1_000_000 };
    let load = Load::Open { rate: 1.0, random: false, connections: 1 };
    let until = MeasurementEnd::Time(Duration::from_millis(1500));
    let round = measured(Settings { background, load, until, ..settings }).await;
    assert_eq!(round.background, 3);
    let besides = origin.seen("/page") as u64 - round.attempted;
    assert!(besides >= 6, "{besides} requests of 2 slow readers");
}

#[tokio::test]
async fn a_condition_is_the_validator_of_the_last_response() {
    let script = Script::ok("ETag: \"one\"\r\n", "x");
    let (origin, settings) = origin(script).await;
    let load = Load::Closed { connections: 1 };
    let settings = Settings {
        conditional: true,
        load,
        threads: 1,
        until: MeasurementEnd::Count(3),
        ..settings
    };
    measured(settings).await;
    let sent: Vec<_> = origin.recorded().iter().flat_map(|one| one.bytes.clone()).collect();
    let sent = String::from_utf8_lossy(&sent).into_owned();
    let heads: Vec<_> = sent.split_terminator("\r\n\r\n").collect();
    assert_eq!(heads.len(), 3, "{sent}");
    let conditional = |head: &&&str| head.contains("\r\nIf-None-Match: \"one\"");
    assert_eq!(heads.iter().filter(conditional).count(), 2, "{sent}");
    assert!(!conditional(&&heads[0]), "{sent}");
}
