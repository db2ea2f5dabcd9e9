//! `larder demo`: the daemon in front of a slow built-in origin, with live figures.
//!
//! The origin imitates a site: its front page takes 180 ms and has 58 KB, `/gen/<KB>?as=<n>` is a
//! page of that size, cacheable if `as` is present, and `/cart` begins a session, whose cookie
//! passes the cache. The demo's own visitors request all of these for two minutes.

use std::fs::DirBuilder;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use base::tally::hit_ratio;
use base::{Counter, Limits};
use clap::Args;
use config::{CliOptions, Config};
use daemon::{
    ConfigSource, Daemon, DaemonOptions, KeeperArgs, RunAs, Sharing, Sockets, helper_runtime,
    listeners, usual_folder,
};
use flow::SharedState;
use h1::encode::{self, BodyFraming, ConnectionHeader};
use h1::{HeadLimits, ReadProgress, RequestReader};
use message::{HeaderBlock, HeaderId, Request, Scheme, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Clone, Debug, Args)]
pub(crate) struct DemoArgs {
    /// Address of the site.
    #[arg(long, default_value = "127.0.0.1:8780")]
    listen: String,
    /// Simulated visitors, for two minutes; 0 for none.
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = few())]
    visitors: u16,
    /// End after this many seconds; by default it runs until interrupted.
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

/// Time that the origin needs for its front page.
const WORK: Duration = Duration::from_millis(180);
/// Size of the front page, in bytes.
const PAGE_BYTES: usize = 58_000;

/// Duration of the visitors' stay.
const VISIT: Duration = Duration::from_secs(120);
/// Pause of a visitor between two pages.
const PAUSE: Duration = Duration::from_millis(100);
/// Pages that visitors request, in proportion to their frequency.
const ROUND: [&str; 8] =
    ["/", "/gen/20?as=1", "/", "/gen/20", "/gen/20?as=2", "/", "/cart", "/gen/5?as=3"];
/// URLs to explain, each with its outcome.
const TOLD: [(&str, &str); 3] = [
    ("/", "names no lifetime, and gets one second here"),
    ("/gen/20", "says `no-store`"),
    ("/cart", "begins a session"),
];

/// Vocabulary of the pages.
const WORDS: [&str; 32] = [
    "apples", "at", "barley", "beside", "bread", "butter", "by", "cellar", "cheese", "close",
    "cool", "fresh", "from", "fruit", "hand", "honey", "in", "jars", "keeps", "larder", "of", "on",
    "pears", "plums", "shelf", "stays", "stone", "the", "under", "walnuts", "what", "with",
];

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<(), String> {
    let runtime = helper_runtime()?;
    let pages = Arc::new(AtomicU64::new(0));
    let origin = runtime
        .block_on(start_origin(Arc::clone(&pages)))
        .map_err(|e| format!("larder: the demo's origin cannot start: {e}"))?;
    let options = CliOptions {
        origin: format!("http://{origin}"),
        listen: vec![args.listen.clone()],
        ..CliOptions::default()
    };
    let left = Leftovers::new()?;
    let socket = left.folder.join("admin.sock");
    let (settings, admin_socket) = (ConfigSource::Flags(options), socket.clone());
    let log_ring = Some(left.ring.clone());
    let (user, sharing) = (RunAs::Same, Sharing::Refused);
    let source = DaemonOptions {
        settings,
        admin_socket,
        log_ring,
        user,
        keeper: None,
        pid_file: None,
        sharing,
        takes_over: false,
    };
    let mut config = source.config()?;
    demo_settings(&mut config);
    let tokens = left.folder.join("tokens");
    console_settings(&mut config, &tokens);
    let listen = listeners(&config, &Sockets::default())?;
    let (daemon, server) = runtime.block_on(Daemon::start(source, &config, listen))?;
    let net::ListenAddress::Address(address) = server.addresses()[0].at else {
        return Err("larder: the demo listens on an address with a port".to_owned());
    };
    println!("larder demo");
    println!(
        "  site      http://{address}/             one page: {PAGE_BYTES} bytes, 180 ms of work"
    );
    println!("            http://{address}/gen/20?as=1  20 KB, cacheable; without `as` it is not");
    println!("  origin    http://{origin}/             the same pages, without Larder");
    if let Some(at) = daemon.admin_addresses.first() {
        let token = std::fs::read_to_string(admin::Tokens::file(&tokens, admin::Role::Config));
        println!("  dashboard http://{at}/#token={}", token.unwrap_or_default().trim());
    }
    let program = std::env::args().next().unwrap_or_else(|| "larder".to_owned());
    println!("  figures   {program} stat --admin-socket {}", socket.display());
    let requests = if cfg!(larder_demo) { "log" } else { "top" };
    println!("  requests  {program} {requests} --admin-socket {}", socket.display());
    println!();
    first_requests(address);
    questions(&program, &socket, address);
    let visitors = Visitors { count: args.visitors, until: Instant::now() + VISIT };
    visitors.come(&runtime, address);
    println!("\n  Ctrl-C ends the demo. Requests of {}:\n", visitors.words());
    println!("  {:>10} {:>9} {:>14} {:>12}", "requests/s", "hits", "origin pages", "memory");
    show(&runtime, &daemon.shared, &pages, args.seconds, &visitors);
    println!();
    server.drain(Duration::from_secs(2));
    if let Some(ring) = &daemon.ring {
        ring.end();
    }
    drop(left);
    Ok(())
}

/// Prints the times of the first three requests.
fn first_requests(address: SocketAddr) {
    for (label, url) in [("first request ", "/"), ("second request", "/"), ("third request ", "/")]
    {
        match visit(address, url) {
            Ok((took, verdict)) => println!("  {label}  {took:>9.3?}  {verdict}"),
            Err(e) => println!("  {label}  failed: {e}"),
        }
    }
}

/// Prints commands that explain requests.
fn questions(program: &str, socket: &Path, address: SocketAddr) {
    println!("\n  why, and why not?");
    for (target, what) in TOLD {
        let url = format!("http://{address}{target}");
        println!("    {program} explain --admin-socket {} {url}  # {what}", socket.display());
    }
}

/// Files that the demo would leave behind. Dropping this value removes them. If the demo is killed,
/// its keeper removes them.
struct Leftovers {
    folder: PathBuf,
    ring: PathBuf,
}

impl Leftovers {
    fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("larder-demo-{}", std::process::id()));
        let ring = usual_folder(&folder.join("admin.sock"));
        for folder in [&folder, &ring] {
            DirBuilder::new()
                .mode(0o700)
                .create(folder)
                .map_err(|error| format!("larder: {}: {error}", folder.display()))?;
        }
        // Without a keeper, a killed demo leaves some files, nothing worse.
        _ = KeeperArgs::new(None, Vec::new(), vec![ring.clone(), folder.clone()]).start();
        Ok(Self { folder, ring })
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        for folder in [&self.ring, &self.folder] {
            // The ring may be inside the folder.
            _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The dashboard on a port of its own, with tokens that end with the demo.
fn console_settings(config: &mut Config, tokens: &Path) {
    let mut listen = config.listen[0].clone();
    listen.addresses = vec![SocketAddr::from(([127, 0, 0, 1], 0))];
    (listen.path, listen.given, listen.tls) = (None, None, false);
    config.admin.listen = Some(listen);
    config.admin.tokens = Some(tokens.to_owned());
}

/// The page has no caching fields, as most have none: it is fresh for a second, with a background
/// fetch afterwards.
fn demo_settings(config: &mut Config) {
    for site in &mut config.sites {
        let ok = message::store::StatusMatch::Exact(Status::OK);
        site.rules.settings.set_ttl(ok, 1_000);
    }
}

/// One request as a browser would make it: its duration, and the Cache-Status.
fn visit(address: SocketAddr, target: &str) -> std::io::Result<(Duration, String)> {
    let start = Instant::now();
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    write!(stream, "GET {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let took = start.elapsed();
    let text = String::from_utf8_lossy(&answer);
    let verdict =
        text.lines().take_while(|l| !l.is_empty()).find(|l| l.starts_with("Cache-Status:"));
    Ok((took, verdict.unwrap_or_default().to_owned()))
}

/// The simulated visitors.
struct Visitors {
    count: u16,
    until: Instant,
}

impl Visitors {
    /// Starts the visitors, who request pages until their time is over.
    fn come(&self, runtime: &tokio::runtime::Runtime, address: SocketAddr) {
        for number in 0..usize::from(self.count) {
            runtime.spawn(stroll(address, number, self.until));
        }
    }

    /// The visitors, as text.
    fn words(&self) -> String {
        let left = self.until.saturating_duration_since(Instant::now()).as_secs();
        match self.count {
            0 => "yours alone".to_owned(),
            _ if left == 0 => "yours: the visitors have left".to_owned(),
            count => format!("{count} visitors, for another {left} s, and yours"),
        }
    }
}

/// One visitor, who requests page after page.
async fn stroll(address: SocketAddr, number: usize, until: Instant) {
    for target in ROUND.iter().cycle().skip(number) {
        if Instant::now() >= until {
            return;
        }
        // A failed page does not end the visit.
        _ = read_page(address, target).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn read_page(address: SocketAddr, target: &str) -> std::io::Result<u64> {
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let asked = format!(
        "GET {target} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: larder-demo\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(asked.as_bytes()).await?;
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
}

/// The permitted number of visitors.
fn few() -> clap::builder::RangedI64ValueParser<u16> {
    clap::value_parser!(u16).range(..=100)
}

/// Prints a line of figures a second, until interrupted or for `seconds`. A terminal shows one
/// line, which is rewritten.
fn show(
    runtime: &tokio::runtime::Runtime,
    shared: &SharedState,
    pages: &AtomicU64,
    seconds: Option<u64>,
    visitors: &Visitors,
) {
    let live = std::io::IsTerminal::is_terminal(&std::io::stdout());
    runtime.block_on(async {
        let mut tick = tokio::time::interval(Duration::from_secs(1));
        tick.tick().await;
        let mut ends =
            [SignalKind::terminate(), SignalKind::hangup()].map(|kind| signal(kind).ok());
        let [terminated, hung_up] = &mut ends;
        let mut last = 0;
        let mut shown = 0;
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                _ = tokio::signal::ctrl_c() => return,
                () = signalled(terminated) => return,
                () = signalled(hung_up) => return,
            }
            let sum = |counter| shared.counters.sum(counter);
            let requests = sum(Counter::Requests);
            let hits = hit_ratio(|outcome| outcome.counted(sum) as f64).unwrap_or_default();
            let line = format!(
                "  {:>10} {:>8.1}% {:>14} {:>8} KiB",
                requests - last,
                100.0 * hits,
                pages.load(Ordering::Relaxed),
                shared.cache.stats().bytes / 1024,
            );
            last = requests;
            if live {
                print!("\r{line}  {}\x1b[K", visitors.words());
                _ = std::io::stdout().flush();
            } else {
                println!("{line}");
            }
            shown += 1;
            if seconds.is_some_and(|n| shown >= n) {
                return;
            }
        }
    });
}

/// Waits for a signal; for ever if it cannot be handled.
async fn signalled(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

async fn start_origin(pages: Arc<AtomicU64>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_all(stream, Arc::clone(&pages)));
        }
    });
    Ok(address)
}

/// Answers one connection's requests.
async fn answer_all(
    mut stream: tokio::net::TcpStream,
    pages: Arc<AtomicU64>,
) -> std::io::Result<()> {
    let limits = HeadLimits::from(&Limits::default());
    let (mut reader, mut request) = (RequestReader::new(), Request::new());
    let mut input = Vec::new();
    loop {
        match reader.read(&input, &limits, Scheme::Http, &mut request) {
            Ok(ReadProgress::Complete(used)) => {
                pages.fetch_add(1, Ordering::Relaxed);
                let page = DemoPage::of(&request);
                tokio::time::sleep(page.work).await;
                stream.write_all(&page.encode()).await?;
                input.drain(..used);
                reader.reset();
                request.clear();
            }
            Ok(ReadProgress::Partial) => {
                if stream.read_buf(&mut input).await? == 0 {
                    return Ok(());
                }
            }
            Err(_) => return Ok(()),
        }
    }
}

/// A page of the demo's site.
struct DemoPage {
    bytes: usize,
    work: Duration,
    cache_control: Option<&'static str>,
    /// The page begins a session.
    session: bool,
}

impl DemoPage {
    fn of(request: &Request) -> Self {
        let path = String::from_utf8_lossy(request.path());
        if path == "/cart" {
            let cache_control = Some("max-age=60");
            return Self { bytes: 5_000, work: WORK / 4, cache_control, session: true };
        }
        let Some(kilobytes) = path.strip_prefix("/gen/").and_then(|n| n.parse::<usize>().ok())
        else {
            return Self { bytes: PAGE_BYTES, work: WORK, cache_control: None, session: false };
        };
        let query = String::from_utf8_lossy(request.query().unwrap_or_default());
        let cacheable = query.split('&').any(|p| p.starts_with("as="));
        Self {
            bytes: kilobytes.min(10_000) * 1000,
            work: Duration::ZERO,
            cache_control: Some(if cacheable { "max-age=60" } else { "no-store" }),
            session: false,
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut fields = HeaderBlock::new();
        fields.push(HeaderId::ContentType, b"text/html; charset=utf-8");
        if let Some(value) = self.cache_control {
            fields.push(HeaderId::CacheControl, value.as_bytes());
        }
        if self.session {
            fields.push(HeaderId::SetCookie, b"demo_session=1; Path=/; HttpOnly");
        }
        let mut out = Vec::with_capacity(self.bytes + 256);
        encode::stored_head(&mut out, Status::OK, b"", &fields);
        let framing = BodyFraming::Length(self.bytes as u64);
        encode::response_tail(&mut out, framing, ConnectionHeader::KeepAliveDefault);
        let head =
            b"<!doctype html><title>Larder demo</title><h1>A page that took a while</h1>\n<p>";
        let body = head.iter().copied().chain(words()).take(self.bytes);
        out.extend(body);
        out
    }
}

/// Endless words, always the same ones, in an order that hardly repeats: a page is about as
/// compressible as real text.
fn words() -> impl Iterator<Item = u8> {
    let mut state = 1_u32;
    let word = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        WORDS[(state >> 27) as usize]
    };
    std::iter::repeat_with(word).flat_map(|word| word.bytes().chain([b' ']))
}
