//! A cache much smaller than what it is asked for, over a disk: bodies from one byte to gigabytes,
//! from an origin that sends ranges of some and not of others, whole and in part, and every byte is
//! looked at. `LARDER_TEST_FULL=1 cargo test --release -p larder --test cache
//! larger_than_memory -- --nocapture` asks for 20 GiB with 256 MiB of memory, for half an hour.

use crate::support;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use support::folder::Folder;
use support::is_full_run;
use testkit::larder::Daemon;
use testkit::large_file::LargeFile;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;
/// Bytes that are made and compared at once.
const PIECE: u64 = 64 * KIB;

/// The dimensions of a run.
struct Extent {
    memory: u64,
    disk: u64,
    /// The longest body, and bytes of all long ones.
    longest: u64,
    all: u64,
    pages: u64,
    clients: u64,
    /// Requests of each client, or the time until the last one.
    requests: u64,
    time: Option<Duration>,
}

impl Extent {
    fn new() -> Self {
        if is_full_run() {
            let time = Some(Duration::from_secs(30 * 60));
            let (memory, disk, longest, all) = (256 * MIB, 20 * GIB, 4 * GIB, 20 * GIB);
            let (pages, clients, requests) = (20_000, 8, u64::MAX);
            return Self { memory, disk, longest, all, pages, clients, requests, time };
        }
        let (memory, disk, longest, all) = (16 * MIB, 512 * MIB, 24 * MIB, 80 * MIB);
        let (pages, clients, requests, time) = (200, 4, 60, None);
        Self { memory, disk, longest, all, pages, clients, requests, time }
    }
}

/// A work to request: its length, its number, and whether the origin sends ranges of it.
#[derive(Clone, Copy, Debug)]
struct Work {
    length: u64,
    number: u64,
    has_ranges: bool,
}

impl Work {
    fn target(&self) -> String {
        let kind = if self.has_ranges { "ranges" } else { "whole" };
        format!("/{kind}/{}/{}", self.length, self.number)
    }

    fn of(target: &str) -> Option<Self> {
        let mut parts = target.strip_prefix('/')?.split('/');
        let has_ranges = parts.next()? == "ranges";
        let (length, number) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { length, number, has_ranges })
    }
}

/// Long works, with lengths spread evenly over the orders of magnitude, and pages.
fn works(extent: &Extent, random: &mut Rng) -> Vec<Work> {
    let mut works = vec![Work { length: extent.longest, number: 1, has_ranges: false }];
    let mut all = extent.longest;
    while all < extent.all {
        let length = (extent.longest as f64).powf(random.f64()) as u64;
        let number = works.len() as u64 + 1;
        works.push(Work { length, number, has_ranges: random.bool() });
        all += length;
    }
    let number = works.len() as u64;
    works.extend((1..=extent.pages).map(|page| Work {
        length: random.u64(1..100_000),
        number: number + page,
        has_ranges: false,
    }));
    works
}

/// Serves works until the test ends.
async fn origin(asked: Arc<AtomicU64>) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let addr = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let asked = Arc::clone(&asked);
            tokio::spawn(async move {
                let mut read = Vec::new();
                while let Some(head) = head_of(&mut stream, &mut read).await {
                    asked.fetch_add(1, Ordering::Relaxed);
                    if answer(&mut stream, &head).await.is_none() {
                        return;
                    }
                }
            });
        }
    });
    addr
}

/// The next head; further bytes stay in `read`.
async fn head_of(stream: &mut TcpStream, read: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(at) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = read.split_off(at + 4);
            let head = std::mem::replace(read, rest);
            return String::from_utf8(head).ok();
        }
        if stream.read_buf(read).await.ok()? == 0 {
            return None;
        }
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

async fn answer(stream: &mut TcpStream, head: &str) -> Option<()> {
    let work = Work::of(head.split(' ').nth(1)?)?;
    let range = field(head, "range").filter(|_| work.has_ranges).and_then(|value| {
        let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
        Some(first.parse::<u64>().ok()?..last.parse::<u64>().ok()?.saturating_add(1))
    });
    let mut fields = format!("Cache-Control: max-age=86400\r\nETag: \"{}\"\r\n", work.number);
    if work.has_ranges {
        fields += "Accept-Ranges: bytes\r\n";
    }
    let (status, range) = match range {
        Some(range) => {
            let range = range.start..range.end.min(work.length);
            let Range { start, end } = range;
            fields += &format!("Content-Range: bytes {start}-{}/{}\r\n", end - 1, work.length);
            (206, range)
        }
        None => (200, 0..work.length),
    };
    let length = range.end - range.start;
    let head = format!("HTTP/1.1 {status} OK\r\n{fields}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + PIECE);
        stream.write_all(&LargeFile::bytes(work.number, at..end)).await.ok()?;
        at = end;
    }
    Some(())
}

/// Requests a work or a part of it, and compares every byte. Returns their number.
async fn ask(addr: std::net::SocketAddr, work: Work, range: Option<Range<u64>>) -> u64 {
    let what = format!("{work:?} {range:?}");
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    let wanted = range.clone().unwrap_or(0..work.length);
    let fields = range.map(|it| format!("Range: bytes={}-{}\r\n", it.start, it.end - 1));
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{}\r\n",
        work.target(),
        fields.as_deref().unwrap_or_default()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut read = Vec::new();
    let head = head_of(&mut stream, &mut read).await.unwrap_or_else(|| panic!("{what}: no head"));
    let status = if fields.is_some() { "206" } else { "200" };
    assert_eq!(head.split(' ').nth(1), Some(status), "{what}: {head}");
    let length = (wanted.end - wanted.start).to_string();
    assert_eq!(field(&head, "content-length"), Some(&*length), "{what}: {head}");
    let mut at = wanted.start;
    loop {
        let end = at + read.len() as u64;
        assert!(end <= wanted.end, "{what}: more than there is");
        assert!(read == LargeFile::bytes(work.number, at..end), "{what}: other bytes at {at}");
        at = end;
        read.clear();
        read.reserve(PIECE as usize);
        match stream.read_buf(&mut read).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => panic!("{what}: {error} at {at}"),
        }
    }
    assert_eq!(at, wanted.end, "{what}: it is cut");
    wanted.end - wanted.start
}

/// Requests at random until the time is over; returns requests and bytes.
async fn visit(
    addr: std::net::SocketAddr,
    works: Arc<Vec<Work>>,
    seed: u64,
    extent: Arc<Extent>,
) -> (u64, u64) {
    let mut random = Rng::with_seed(seed);
    let began = Instant::now();
    let (mut requests, mut bytes) = (0, 0);
    let long = works.len() as u64 - extent.pages;
    while requests < extent.requests && extent.time.is_none_or(|time| began.elapsed() < time) {
        let is_page = random.f64() < 0.8;
        let number = if is_page { long..works.len() as u64 } else { 0..long };
        let work = works[random.u64(number) as usize];
        let range = (!is_page && random.f64() < 0.6).then(|| {
            let start = random.u64(0..work.length);
            start..work.length.min(start + random.u64(1..=4 * MIB))
        });
        bytes += ask(addr, work, range).await;
        requests += 1;
    }
    (requests, bytes)
}

/// Resident bytes of a process.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kib =
        field(&status, "vmrss").and_then(|value| value.split(' ').next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * KIB
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_larger_than_memory_comes_right_and_memory_stays_small() {
    let extent = Arc::new(Extent::new());
    let asked = Arc::new(AtomicU64::new(0));
    let addr = origin(Arc::clone(&asked)).await;
    let folder = Folder::new();
    let (memory, disk) = (extent.memory / MIB, extent.disk / MIB);
    let daemon = Daemon::start(&format!(
        "listen = \"127.0.0.1:0\"\nworkers = 2\nmemory = {{ size = \"{memory}MiB\" }}\n\
         [disk]\npath = \"{}\"\nsize = \"{disk}MiB\"\nadmission = \"all\"\n\
         [[origin]]\nname = \"app\"\nservers = \"http://{addr}\"\n\
         [[site]]\nhost = \"*\"\norigin = \"app\"\n",
        folder.path().join("disk").display()
    ));
    let daemon = daemon.expect("larder starts");
    let works = Arc::new(works(&extent, &mut Rng::with_seed(21)));
    let is_over = Arc::new(AtomicBool::new(false));
    let (pid, watched) = (daemon.pid(), Arc::clone(&is_over));
    let watch = tokio::task::spawn_blocking(move || {
        let mut most = 0;
        while !watched.load(Ordering::Relaxed) {
            most = resident(pid).max(most);
            std::thread::sleep(Duration::from_millis(50));
        }
        most
    });
    let visits = (0..extent.clients).map(|seed| {
        tokio::spawn(visit(daemon.addr(), Arc::clone(&works), seed, Arc::clone(&extent)))
    });
    let (mut requests, mut bytes) = (0, 0);
    for visit in visits.collect::<Vec<_>>() {
        let (more, come) = visit.await.expect("every body is right");
        requests += more;
        bytes += come;
    }
    is_over.store(true, Ordering::Relaxed);
    let most = watch.await.expect("no panic");
    let of = async |name: &str| daemon.metric(name, "").await.expect("metrics") as u64;
    eprintln!(
        "{requests} requests, {} MiB; the origin had {}; {} from disk, in vain {}; bodies that the \
         disk refused {}; memory at most {} MiB of {memory}",
        bytes / MIB,
        asked.load(Ordering::Relaxed),
        of("larder_disk_hits_total").await,
        of("larder_disk_misses_total").await,
        of("larder_disk_spools_refused_total").await,
        most / MIB
    );
    assert!(of("larder_disk_hits_total").await > 0, "some of it came from the disk");
    if is_full_run() {
        assert!(most <= extent.memory / 10 * 11, "{} MiB of {memory}", most / MIB);
    }
}
