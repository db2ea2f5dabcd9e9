//! Rig: a core with one program, and its origin on the loopback.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use base::{Account, HashSeed, Limits};
use bytes::Bytes;
use cache::{BodyWindow, Config, Reader, WindowLimit};
use h1::{HeadLimits, ReadProgress, RequestReader};
use message::{Framing, Method, Request, Scheme};
use origin::{Address, EjectConfig, OriginConfig, Protocol, ServerConfig};
use parking_lot::Mutex;
use policy::{ConnectionPeer, Declared, SiteRules};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;
use vcl::backend::{Backend, split};
use vcl::params::Params;
use vcl::program::{CompileSettings, Input, Instance, Program, ProgramRole};
use vcl::source::NoFiles;

use crate::disposition::Start;
use crate::explain::{Explanation, explain};
use crate::invalidate::ResponseSelector;
use crate::state::body::{BodyPart, BodyParts, ReplyBody};
use crate::state::client::Client;
use crate::state::core::CoreState;
use crate::state::invalidate::Outcome;
use crate::state::live_configuration::LiveConfiguration;
use crate::state::reply::Reply;
use crate::state::request_context::RequestConnection;
use crate::state::shared::SharedState;
use crate::state::site::{Site, SiteTable};
use crate::state::vcl::link::BackendOrigin;
use crate::state::vcl::{VclConnection, VclSettings};
use crate::vcl::ProgramWorld;

/// Requests that the origin got: each with its head and the bytes behind it.
type Asked = Arc<Mutex<Vec<String>>>;
/// Responses of the origin in order; the last one repeats.
type Answers = Arc<Mutex<VecDeque<String>>>;

/// A scripted origin.
pub(super) struct Backdrop {
    pub(super) port: u16,
    asked: Asked,
    answers: Answers,
}

impl Backdrop {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (asked, answers) = (Asked::default(), Answers::default());
        let (seen, next) = (Arc::clone(&asked), Arc::clone(&answers));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, next) = (Arc::clone(&seen), Arc::clone(&next));
                thread::spawn(move || serve(stream, &seen, &next));
            }
        });
        Self { port, asked, answers }
    }

    /// Takes the requests since the last call.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock())
    }

    /// Sets the next responses: heads without framing, an empty line, bodies.
    pub(super) fn answers(&self, answers: &[&str]) {
        let mut queue = self.answers.lock();
        *queue = answers.iter().map(|answer| (*answer).to_owned()).collect();
    }
}

fn serve(stream: TcpStream, asked: &Asked, answers: &Answers) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.strip_prefix("Content-Length: ") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let is_head = head.starts_with("HEAD");
        head.push_str(&String::from_utf8_lossy(&body));
        asked.lock().push(head.replace("\r\n", "\n"));
        let answer = {
            let mut answers = answers.lock();
            let next = answers.front().cloned().unwrap_or_else(|| "200 OK\n\nhello".to_owned());
            if answers.len() > 1 {
                answers.pop_front();
            }
            next
        };
        if answer == "close" {
            return;
        }
        let (head, body) = answer.split_once("\n\n").unwrap_or((&answer, ""));
        let framing = match head {
            head if head.starts_with("304") || head.starts_with("101") => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let head = head.replace('\n', "\r\n");
        let body = if is_head { "" } else { body };
        let sent = write!(reader.get_mut(), "HTTP/1.1 {head}\r\n{framing}\r\n{body}");
        if sent.is_err() {
            return;
        }
    }
}

/// A response as its client sees it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    pub(super) head: String,
    pub(super) body: String,
    pub(super) close: bool,
    pub(super) ran: Vec<String>,
    pub(super) log: Vec<String>,
    /// The record's text about the program, line by line. Lines of the builtin VCL have no numbers.
    pub(super) recorded: Vec<String>,
}

impl Seen {
    /// The first value of a field.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(": ")?;
            field.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A core with a program.
pub(crate) struct Rig {
    runtime: Runtime,
    local: LocalSet,
    pub(crate) core: Rc<CoreState>,
    pub(super) origin: Backdrop,
    line: VclConnection,
    account: Arc<Account>,
}

impl Rig {
    /// A rig with the program `text`, in which `ORIGIN` is the backend `b`.
    pub(crate) fn new(text: &str) -> Self {
        Self::with(text, &[])
    }

    /// A rig with the program `text` and these parameters.
    pub(super) fn with(text: &str, settings: &[(&str, &str)]) -> Self {
        let origin = Backdrop::new();
        let port = origin.port;
        let backend = format!("backend b {{ .host = \"127.0.0.1\"; .port = \"{port}\"; }}");
        let text = format!("vcl 4.1;\n{}", text.replace("ORIGIN", &backend));
        let mut params = Params::default();
        for (name, value) in settings {
            params.set(name, value).expect("a parameter");
        }
        let shared = SharedState::with_seed(store(), live(None, &params), HashSeed::from_u64(1));
        let instance = start(&text, &shared);
        shared.replace(live(Some(instance), &params));
        let client: SocketAddr = "127.0.0.9:1234".parse().expect("an address");
        let line = VclConnection {
            client: Some(client),
            remote: Some(client),
            server: Some("127.0.0.1:80".parse().expect("an address")),
            local: Some("127.0.0.1:80".parse().expect("an address")),
            xid: Cell::new(0),
            ..VclConnection::default()
        };
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let account = Account::open(shared.cache.memory(), u64::MAX);
        let (local, core) = (LocalSet::new(), CoreState::new(shared));
        Self { runtime, local, core, origin, line, account }
    }

    /// Makes the label `other` lead to the program `text` instead of the rig's own.
    pub(super) fn label(&self, text: &str) {
        let (shared, params) = (&self.core.shared, Params::default());
        let mut live = live(shared.live().sites.listed[0].vcl.clone(), &params);
        live.vcl.labels.insert("other".into(), start(text, shared));
        shared.replace(live);
    }

    /// The response to a request: its first line and fields, a line each, and a body behind an
    /// empty line.
    pub(crate) fn ask(&self, text: &str) -> Seen {
        let asking = async {
            let seen = self.answer(text).await;
            // Background work completes.
            for _ in 0..50 {
                rt::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            seen
        };
        self.local.block_on(&self.runtime, asking)
    }

    /// Runs `work` where the rig's fetches run.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.local.block_on(&self.runtime, work)
    }

    /// Blocks sweeps of the store until it is dropped.
    pub(super) fn hold_sweeps(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.core.shared.invalidator.sweeping)
            .try_lock_owned()
            .expect("no sweep is in progress")
    }

    /// Purges everything, and waits `wait_ms` at most for the count.
    pub(super) fn purge(&self, wait_ms: u64) -> Outcome {
        let now = self.core.now();
        let purge =
            self.core.shared.invalidator.purge(ResponseSelector::Everything, false, now, wait_ms);
        self.local.block_on(&self.runtime, purge).expect("there is no journal")
    }

    /// The responses to simultaneous requests.
    pub(super) fn ask_at_once(&self, texts: &[&str]) -> Vec<Seen> {
        let asking = async {
            let mut seen = Vec::new();
            let mut all: Vec<_> = texts.iter().map(|text| Box::pin(self.answer(text))).collect();
            // All start before the first is awaited.
            for one in &mut all {
                let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(one.as_mut().poll(cx)));
                if let std::task::Poll::Ready(done) = poll.await {
                    seen.push(done);
                }
            }
            let done = seen.len();
            for one in all.into_iter().skip(done) {
                seen.push(one.await);
            }
            seen
        };
        self.local.block_on(&self.runtime, asking)
    }

    /// Forecasts the outcome of a request.
    pub(crate) fn foretell(&self, text: &str) -> Explanation {
        let live = self.core.live();
        let peer = ConnectionPeer::Host("127.0.0.9".parse().expect("an address"));
        explain(&self.core.shared, &live, read_request(text).0, peer, self.core.now())
    }

    async fn answer(&self, text: &str) -> Seen {
        let (mut request, body) = read_request(text);
        let live = self.core.live();
        let client = Client {
            peer: ConnectionPeer::Unnamed(None),
            near: false,
            secured: None,
            vcl_connection: Some(&self.line),
            account: &self.account,
        };
        let now = self.core.now();
        let (start, _) = self.core.start(&live, &mut request, &client, now);
        let reply = match start {
            Start::Reply(reply) => reply,
            Start::Slow(slow) => {
                let has_body = request.framing != Framing::None;
                let body = has_body.then(|| upload(body, &self.account));
                slow.run(&self.core, &request, body, RequestConnection::of(&self.account)).await
            }
        };
        self.see(&live, &request, reply).await
    }

    async fn see(&self, live: &LiveConfiguration, request: &Request, mut reply: Reply) -> Seen {
        let mut head = Vec::new();
        reply.write_head(live, &mut head);
        let body = match std::mem::replace(&mut reply.body, ReplyBody::None) {
            ReplyBody::Parts(BodyParts::One(BodyPart::Bytes(bytes))) => bytes.to_vec(),
            ReplyBody::Parts(BodyParts::One(BodyPart::Stored(object, range))) => {
                let whole = object.whole().expect("complete");
                let all: Vec<u8> = whole.pieces().flatten().copied().collect();
                all[range.start as usize..range.end as usize].to_vec()
            }
            ReplyBody::Stream { reader, length } => {
                let mut all = read(reader).await;
                all.truncate(length.map_or(all.len(), |length| length as usize));
                all
            }
            _ => Vec::new(),
        };
        if request.method == Method::Head {
            assert!(body.is_empty(), "the answer to HEAD has no body");
        }
        let recorded = reply.about.program_trace.take().expect("a program has told");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let site = reply.about.site(live).expect("it has a site");
        let mut lines = Vec::new();
        recorded.write(site.vcl.as_ref().map(|vcl| &**vcl.program()), &mut lines);
        Seen {
            status: reply.status.code(),
            head: text(&head).replace("\r\n", "\n"),
            body: text(&body),
            close: reply.close,
            ran: recorded.ran.iter().map(|ran| ran.sub.name()["vcl_".len()..].to_owned()).collect(),
            recorded: text(&lines).lines().map(without_builtin_lines).collect(),
            log: recorded.lines().iter().map(|(_, line)| text(line)).collect(),
        }
    }
}

/// A request, its first line and fields a line each, and the body behind an empty line.
fn read_request(text: &str) -> (Request, &str) {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let length = match body {
        "" => String::new(),
        body => format!("Content-Length: {}\r\n", body.len()),
    };
    let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
    let host = if fields.contains("Host:") { "" } else { "Host: example.com\r\n" };
    let fields = fields.replace('\n', "\r\n");
    let end = if fields.is_empty() { "" } else { "\r\n" };
    let wire = format!("{line} HTTP/1.1\r\n{host}{fields}{end}{length}\r\n");
    let mut request = Request::new();
    let limits = HeadLimits::from(&Limits::default());
    let read = RequestReader::new().read(wire.as_bytes(), &limits, Scheme::Http, &mut request);
    assert!(matches!(read, Ok(ReadProgress::Complete(_))), "{read:?}: {wire}");
    (request, body)
}

fn without_builtin_lines(line: &str) -> String {
    let Some((before, after)) = line.split_once("<builtin>:") else { return line.to_owned() };
    format!("{before}<builtin>{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

fn upload(body: &str, account: &Arc<Account>) -> Reader {
    let passage = WindowLimit { bytes: 1 << 20, account: Arc::clone(account) };
    let (mut writer, reader) = BodyWindow::window(passage);
    _ = writer.push(body.as_bytes());
    writer.finish();
    reader
}

async fn read(mut reader: Reader) -> Vec<u8> {
    let mut all = Vec::new();
    while let Ok(Some(piece)) = reader.next().await {
        let piece: Bytes = piece;
        all.extend_from_slice(&piece);
    }
    all
}

/// Connects a backend to an origin that is asked once, and the backends of a director.
fn connect(backend: &Backend) {
    match backend {
        Backend::None => {}
        Backend::Director(director) => director.members().iter().for_each(connect),
        Backend::Leaf(leaf) => {
            let (host, port) = split(&leaf.spec.host, &leaf.spec.port).expect("host and port");
            let address = SocketAddr::new(host.parse().expect("an address"), port);
            let address = Address::Fixed { name: address.to_string(), addresses: vec![address] };
            let server = ServerConfig {
                address,
                protocol: Protocol::Http,
                weight: 1,
                backup: false,
                tls: false,
            };
            let config = OriginConfig {
                host_default: Some(host.to_owned()),
                queue: 0,
                retries: 0,
                lenient: true,
                eject: EjectConfig { failures: 0, ..EjectConfig::default() },
                ..OriginConfig::with_limits(&leaf.name, vec![server], &Limits::default())
            };
            leaf.set_link(Arc::new(BackendOrigin::new(config)));
        }
    }
}

fn start(text: &str, shared: &Arc<SharedState>) -> Arc<Instance> {
    let rules = CompileSettings {
        storages: &["s0"],
        labels: &["other"],
        include_depth: 10,
        unused_is_error: true,
        role: ProgramRole::Whole,
    };
    let input = Input { name: "test.vcl", text: text.as_bytes(), loader: &NoFiles, rules };
    let compiled = Program::compile(&input).unwrap_or_else(|error| panic!("{error}"));
    let (live, log) = (shared.live(), RefCell::default());
    let now = rt::now();
    let world = ProgramWorld::without_request(shared, &live, now, &log);
    let instance = compiled
        .program
        .start(&world, super::super::call::seconds(now))
        .unwrap_or_else(|error| panic!("{error}"));
    instance.backends().iter().for_each(connect);
    instance
}

fn store() -> Arc<crate::state::tier::Cache> {
    let limits = Limits::default();
    crate::state::tier::memory_only(Config {
        budget_bytes: 16 << 20,
        held_bytes_max: 8 << 20,
        max_variants: 10,
        object_bytes_max: 1 << 20,
        waiters_max: 100,
        window_bytes: limits.window_bytes,
        hit_for_miss_ms: limits.hit_for_miss_ttl,
        bans_max: limits.bans as usize,
        index_bytes: 64 << 20,
    })
}

pub(super) fn live(vcl: Option<Arc<Instance>>, params: &Params) -> LiveConfiguration {
    let policy = Arc::new(Declared::new(SiteRules::default()));
    let site = Arc::new(Site { vcl: vcl.clone(), ..Site::new("example.com", policy) });
    let mut sites = SiteTable::new(HashSeed::from_u64(1));
    sites.by_host.insert("*", Arc::clone(&site)).expect("every host");
    sites.listed.push(site);
    let labels = vcl.into_iter().map(|instance| ("other".into(), instance)).collect();
    let (identity, hostname) = ("me".into(), "host".into());
    LiveConfiguration {
        vcl: VclSettings { labels, identity, hostname, ..VclSettings::new(params) },
        ..LiveConfiguration::new(sites, Limits::default())
    }
}
