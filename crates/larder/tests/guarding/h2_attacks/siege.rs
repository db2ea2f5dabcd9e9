//! A siege: many connections with the same attack, and its effect on the daemon.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testkit::h2::{Client, Farewell, Frame, PREFACE, error, kind};
use testkit::origin::Script;
use testkit::reply::ConnectionEnd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::figures::{Clean, count, processor_secs, resident};
use crate::support::h2::H2C;
use crate::support::{Setup, Stage, eventually, is_full_run, pattern, pause};

/// Attacks take turns: each wants the processor, and a clean client that only it disturbs.
static TURN: Mutex<()> = Mutex::const_new(());

/// Memory that one connection may cost, in bytes.
const EACH: u64 = 4 << 20;
/// Time for which attackers come again in a run at full length.
const FULL: Duration = Duration::from_secs(10);
/// Time that an attacker waits for anything.
const PATIENCE: Duration = Duration::from_secs(10);

/// A daemon with something to attack.
pub(crate) struct Siege {
    pub(crate) stage: Stage,
    before: u64,
    processor_before: f64,
    began: Instant,
    _turn: MutexGuard<'static, ()>,
}

/// The behaviour of an attacker on each of its connections.
#[derive(Clone, Copy)]
pub(crate) struct Flood {
    pub(crate) name: &'static str,
    /// Its SETTINGS.
    pub(crate) settings: &'static [(u16, u32)],
    /// Bytes that the attacker sends in each round, without reading anything in between.
    pub(crate) burst: fn(u32) -> Vec<u8>,
    /// Rounds, if it is let. Enough for any limit.
    pub(crate) rounds: u32,
    /// Codes its connection may end with.
    pub(crate) codes: &'static [u32],
    /// Limits; each connection that ends with ENHANCE_YOUR_CALM must have reached one of them.
    /// Empty if wrong frames end the connection before any limit.
    pub(crate) limits: &'static [&'static str],
}

/// The result of an attack.
pub(crate) struct Made {
    /// Connections it was made on.
    pub(crate) connections: u64,
    /// Connections that a limit has ended.
    pub(crate) calmed: u64,
}

impl Flood {
    /// Values that most floods have.
    pub(crate) const USUAL: Self = Self {
        name: "",
        settings: &[],
        burst: |_| Vec::new(),
        rounds: 400,
        codes: &[error::ENHANCE_YOUR_CALM],
        limits: &["h2_control_frames"],
    };

    /// Carries out the attack, and judges its effect.
    pub(crate) async fn run(self) {
        let siege = Siege::start("").await;
        let made = siege.attack(self).await;
        siege.reached(self.name, self.limits, made.calmed).await;
        siege.end(self.name, made.connections).await;
    }
}

impl Siege {
    /// `/page` and `/large` are stored, `/hang` never answers.
    pub(crate) async fn start(limits: &str) -> Self {
        let turn = TURN.lock().await;
        crate::support::raise_descriptors();
        // The clean client stays on one connection.
        let limits = format!("keepalive_requests = 1000000000\n{limits}");
        let stage = Setup { limits: &limits, ..Setup::default() }.listening(H2C).await;
        let large = String::from_utf8(pattern(1 << 20)).expect("letters");
        stage.origin.on("/page", Script::cacheable(&"x".repeat(1024)));
        stage.origin.on("/large", Script::cacheable(&large));
        stage.origin.on("/passed", Script::ok("Cache-Control: no-store\r\n", &large));
        stage.origin.on("/hang", Script::default().hang());
        for path in ["/page", "/large"] {
            stage.get(path).await;
        }
        let before = resident(&stage.daemon);
        let processor_before = processor_secs(&stage.daemon);
        Self { stage, before, processor_before, began: Instant::now(), _turn: turn }
    }

    /// Runs `flood` on several connections at once with the clean client beside it.
    pub(crate) async fn attack(&self, flood: Flood) -> Made {
        let mut attackers = JoinSet::new();
        let began = Instant::now();
        // Made once: an attack is as fast as it can be sent.
        let bursts: Arc<[_]> = (0..flood.rounds).map(flood.burst).collect();
        for _ in 0..count(20, 5) {
            let (addr, bursts) = (self.stage.daemon.addr(), Arc::clone(&bursts));
            attackers.spawn(async move {
                let mut ends = Vec::new();
                while ends.is_empty() || (is_full_run() && began.elapsed() < FULL) {
                    ends.push(assault(addr, flood.settings, &bursts).await);
                }
                ends
            });
        }
        let ends = self.beside(flood.name, attackers).await;
        let mut made = Made { connections: 0, calmed: 0 };
        for ended in ends.iter().flatten() {
            assert!(is_right(ended, flood.codes), "{}: {ended:?}", flood.name);
            made.connections += 1;
            let only = flood.codes == [error::ENHANCE_YOUR_CALM];
            made.calmed += u64::from(only || ended.code == Some(error::ENHANCE_YOUR_CALM));
        }
        made
    }

    /// The clean client while `attackers` are at work: every answer of its is right. Memory is
    /// watched meanwhile.
    pub(crate) async fn beside<T: 'static>(&self, name: &str, mut attackers: JoinSet<T>) -> Vec<T> {
        let number = attackers.len() as u64;
        let (addr, done) = (self.stage.daemon.addr(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&done);
        // On a thread of its own: it is the daemon that is to be measured, not the attackers' loop.
        let friend = std::thread::spawn(move || clean_client(addr, &seen));
        let mut peak = self.before;
        let mut results = Vec::new();
        while !attackers.is_empty() {
            match timeout(Duration::from_millis(20), attackers.join_next()).await {
                Ok(joined) => results.extend(joined.map(|result| result.expect("no panic"))),
                Err(_) => peak = peak.max(resident(&self.stage.daemon)),
            }
        }
        peak = peak.max(resident(&self.stage.daemon));
        done.store(true, Ordering::Relaxed);
        let joined = tokio::task::spawn_blocking(move || friend.join()).await.expect("no panic");
        joined.expect("the clean client is served").judge(name);
        let each = peak.saturating_sub(self.before) / number.max(1);
        println!("{name}: {number} attackers at once, {each} bytes of RSS each at the most");
        assert!(each <= EACH, "{name}: {each} bytes for each connection");
        results
    }

    /// Asserts that one of `limits` was reached on each of `connections` connections.
    pub(crate) async fn reached(&self, name: &str, limits: &[&str], connections: u64) {
        if limits.is_empty() {
            return;
        }
        let hits = async || {
            let mut hits = Vec::new();
            for limit in limits {
                hits.push((*limit, self.stage.limit_hits(limit).await));
            }
            hits
        };
        // The last may be counted after the end of its connection has been seen.
        eventually(&format!("{name}: a limit reached for each connection"), async || {
            hits().await.iter().map(|(_, hits)| hits).sum::<u64>() >= connections
        })
        .await;
        println!("{name}: {connections} connections, limits reached {:?}", hits().await);
    }

    /// Asserts that nothing is left of the attack.
    pub(crate) async fn end(mut self, name: &str, connections: u64) {
        let spent = processor_secs(&self.stage.daemon) - self.processor_before;
        let took = self.began.elapsed().as_secs_f64();
        let each = spent * 1e6 / connections.max(1) as f64;
        println!("{name}: {spent:.2} s of processor in {took:.1} s, {each:.0} us each connection");
        eventually("all attackers are gone", async || {
            self.stage.metric("larder_connections_open").await == 0
        })
        .await;
        assert!(self.stage.daemon.alive(), "{name}: {}", self.stage.daemon.log());
        assert!(!self.stage.daemon.log().contains("panicked"), "{}", self.stage.daemon.log());
    }
}

/// A client on one connection that requests the stored page every millisecond.
fn clean_client(addr: SocketAddr, done: &AtomicBool) -> Clean {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut friend = Client::connect(addr).await.expect("a connection").patience(PATIENCE);
        friend.greet(&[]).await.expect("a greeting is taken");
        let mut clean = Clean::new();
        while !done.load(Ordering::Relaxed) || clean.requests() < 200 {
            let answer = clean.time(friend.get("/page")).await.answer("the clean client");
            assert_eq!((answer.status, answer.body.len()), (200, 1024));
            pause(1).await;
        }
        clean
    })
}

/// An attacking connection, to its end. It reads only after it has sent everything, or can send no
/// more.
async fn assault(addr: SocketAddr, settings: &[(u16, u32)], bursts: &[Vec<u8>]) -> Farewell {
    let mut stream = TcpStream::connect(addr).await.expect("a connection");
    let greeting = [PREFACE, &Frame::settings(settings).bytes()].concat();
    let sending = async {
        stream.write_all(&greeting).await?;
        for burst in bursts {
            stream.write_all(burst).await?;
        }
        std::io::Result::Ok(())
    };
    // Errors of writing are expected; the end of the connection decides.
    _ = timeout(PATIENCE, sending).await;
    let mut ending = Farewell { code: None, end: ConnectionEnd::Open };
    let mut received = Vec::new();
    let reading = async {
        while ending.end == ConnectionEnd::Open {
            ending.end = match stream.read_buf(&mut received).await {
                Ok(0) => ConnectionEnd::Closed,
                Ok(_) => ConnectionEnd::Open,
                Err(_) => ConnectionEnd::Reset,
            };
            let mut at = 0;
            while let Some((frame, used)) = Frame::read(&received[at..]) {
                if frame.kind == kind::GOAWAY {
                    ending.code = frame.number(4);
                }
                at += used;
            }
            received.drain(..at);
        }
    };
    // Without an end in time, it is open.
    _ = timeout(PATIENCE, reading).await;
    ending
}

/// The connection has ended, with one of `codes`. Who does not read while sending may lose the
/// GOAWAY to the reset that answers what came after it.
fn is_right(ended: &Farewell, codes: &[u32]) -> bool {
    match ended.code {
        _ if ended.end == ConnectionEnd::Open => false,
        Some(code) => codes.contains(&code),
        None => ended.end == ConnectionEnd::Reset,
    }
}

/// The number of the `n`th stream of a connection, counted from 0.
pub(crate) fn stream(n: u32) -> u32 {
    1 + 2 * n
}
