//! Forecasts of [`explain`] must be what then happens to the request.
//!
//! A seed draws a declared policy, a program and an origin. Clients get a forecast before each
//! request. No task runs between a forecast and the request's first steps, so other requests cannot
//! excuse a difference.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::rate::RateQuota;
use base::{Account, HashSeed};
use flow::explain::{Explanation, ForecastOutcome, explain};
use flow::reply::{CacheOutcome, ForwardReason};
use flow::{BodyPart, CoreState, Reply, ReplyBody, RequestConnection, SharedState, Start};
use message::Status;
use message::store::StatusMatch;
use origin::Origin;
use policy::answer::ConfiguredResponse;
use policy::conditions::RouteScope;
use policy::pattern::{NamePattern, PathPattern};
use policy::rules::{Bypass, RouteRules};
use policy::{BasicAuth, ConcurrencyRule, Profile, RateRule, SiteRules, Synthetic, Terms};
use rt::simulation::random;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use vcl::params::Params;

use crate::direct_core::{client, read_request};
use crate::http;
use crate::simulation::{HOSTS, at, listen, live_of, site_of, start, store_of};

/// The field of an authenticated client.
const PASSWORD: &str = "Authorization: Basic b2xkOnBhc3N3b3Jk";
/// Longer than any request takes.
const PATIENCE: Duration = Duration::from_secs(600);
const MINUTE_MS: u64 = 60_000;

/// The counts of one seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct ForecastTally {
    /// Forecasts that were compared.
    pub forecasts: u64,
    /// Forecasts of an immediate answer, a fetch, a wait, a tunnel and a purge.
    pub kinds: [u64; 5],
}

struct Scene {
    core: Rc<CoreState>,
    /// True if clients get forecasts.
    foretells: bool,
    /// True if clients must authenticate.
    gated: bool,
    /// Most requests per second that the rate limit permits.
    rate: Option<u64>,
    /// True if requests may be queued.
    queued: bool,
    /// True if responses to a visitor with cookies are private.
    personal: bool,
    seen: RefCell<ForecastFindings>,
}

/// The findings of one seed.
#[derive(Default)]
struct ForecastFindings {
    /// Differences.
    broken: Vec<String>,
    /// Requests and their outcomes.
    outcomes: Vec<String>,
    compared: ForecastTally,
    /// Times of the requests that the rate limit permitted.
    passed_ms: Vec<u64>,
    /// The rules and the program.
    config: String,
}

/// Plays the seed and returns the counts.
///
/// # Errors
/// Differences between forecasts and outcomes, or between the seed with and without forecasts.
pub fn run(seed: u64) -> Result<ForecastTally, String> {
    let play = |foretells| {
        let seen = Rc::new(RefCell::default());
        let of = Rc::clone(&seen);
        rt::simulation::run(seed, async move {
            let all = play(seed, foretells).await;
            of.replace(all);
        })
        .map_err(|error| format!("seed {seed}: no runtime: {error}"))?;
        Ok::<ForecastFindings, String>(seen.take())
    };
    let (with, without) = (play(true)?, play(false)?);
    if !with.broken.is_empty() {
        let ForecastFindings { broken, outcomes, config, .. } = with;
        let (broken, outcomes) = (broken.join("\n"), outcomes.join("\n  "));
        return Err(format!("seed {seed}: {broken}\n  {outcomes}\n{config}"));
    }
    let differs =
        with.outcomes.iter().zip(&without.outcomes).find(|(with, without)| with != without);
    match differs {
        None if with.outcomes.len() == without.outcomes.len() => Ok(with.compared),
        None => Err(format!("seed {seed}: another number of requests without forecasts")),
        Some((with, without)) => Err(format!(
            "seed {seed}: a forecast has changed something: {with}; without it {without}"
        )),
    }
}

async fn play(seed: u64, foretells: bool) -> ForecastFindings {
    let (socket, listener) = listen();
    let origin = Origin::new(at(&socket));
    let hash_seed = HashSeed::from_u64(seed);
    let params = Params::default();
    let rules = rules();
    let program = program();
    let config = format!("{rules:#?}\n{program}");
    let live = |vcl| {
        let sites = vec![
            site_of(0, &origin, None, rules.clone()),
            site_of(1, &origin, vcl, SiteRules::default()),
        ];
        live_of(hash_seed, sites, &params)
    };
    let shared = SharedState::with_seed(store_of(16 << 20, 60_000), live(None), hash_seed);
    let program = program.replace("SOCKET", &socket.to_string_lossy());
    shared.replace(live(Some(start(&program, &shared))));
    let gated = rules.settings.basic_auth.is_some();
    let rate = rules.settings.rate.as_ref().filter(|rate| !rate[0].terms.dry_run);
    let queued = rate.is_some_and(|rate| rate[0].queue > 0);
    let personal = rules.profile == Profile::Safe;
    // One more may begin in the moment in which another's time ends.
    let most = |rate: &RateRule| rate.requests.count + rate.burst + rate.queue + 1;
    let rate = rate.map(|rate| u64::from(most(&rate[0])));
    let (core, seen) = (CoreState::new(shared), RefCell::default());
    let scene = Rc::new(Scene { core, foretells, gated, rate, queued, personal, seen });
    let serving = rt::spawn_local(serve(Rc::clone(&scene), listener));
    let clients: Vec<_> =
        (0..1 + random(4)).map(|n| rt::spawn_local(visit(Rc::clone(&scene), n))).collect();
    for client in clients {
        if client.await.is_err() {
            scene.fail("a task ended by a panic".to_owned());
        }
    }
    serving.abort();
    // The socket is not needed any more; it does no harm if it stays.
    _ = std::fs::remove_file(&socket);
    ForecastFindings { config, ..scene.seen.take() }
}

fn one_of<T: Copy, const N: usize>(choices: [T; N]) -> T {
    choices[random(N as u64) as usize]
}

/// Draws a declared policy.
fn rules() -> SiteRules {
    let mut rules =
        SiteRules { profile: one_of([Profile::Safe, Profile::Rfc]), ..SiteRules::default() };
    let settings = &mut rules.settings;
    let some_ms = |choices: [u64; 3]| (random(2) == 0).then(|| one_of(choices));
    settings.cache = random(8) != 0;
    if random(3) == 0 {
        settings.ttl = vec![(
            one_of([StatusMatch::Any, StatusMatch::Class(2)]),
            one_of([0, 1_000, MINUTE_MS]),
        )];
    }
    settings.grace_ms = some_ms([0, 1_000, MINUTE_MS]);
    settings.stale_if_error_ms = some_ms([0, 2_000, MINUTE_MS]);
    settings.stale_if_unreachable_ms = some_ms([0, 2_000, MINUTE_MS]);
    settings.honour_request_directives = (random(2) == 0).then(|| random(2) == 0);
    settings.drop_set_cookie = random(3) == 0;
    if random(3) == 0 {
        let bypass = [
            Bypass::AnyQuery,
            Bypass::Path(PathPattern::parse("/a/2*").expect("a pattern")),
            Bypass::Cookie(NamePattern::cookie("session").expect("a name")),
        ];
        settings.bypass.push(bypass[random(3) as usize].clone());
    }
    match random(4) {
        0 => settings.cookies.key = vec!["lang".to_owned()],
        1 => settings.cookies.strip_tracking = Some(false),
        _ => {}
    }
    if random(5) == 0 {
        let terms = Terms { dry_run: random(4) == 0, ..Terms::default() };
        let rule = RateRule {
            requests: RateQuota { count: 1 + random(3) as u32, per_ms: 1_000 },
            burst: random(3) as u32,
            queue: random(3) as u32,
            terms,
        };
        settings.rate = Some([rule].into());
    }
    if random(5) == 0 {
        let terms = Terms { dry_run: random(4) == 0, ..Terms::default() };
        settings.concurrent = Some([ConcurrencyRule { requests: 1, terms }].into());
    }
    if random(5) == 0 {
        let (file, realm) = ("users".into(), "r".into());
        let gate = BasicAuth { file, realm, forward: false, user_field: None };
        settings.basic_auth = Some(Arc::new(gate));
    }
    if random(3) == 0 {
        let status = Status::new(410).expect("a status");
        let synthetic =
            Synthetic { status, fields: Vec::new(), body: b"gone".to_vec(), close: false };
        let settings = policy::rules::Settings {
            answer: Some(ConfiguredResponse::Fixed(Arc::new(synthetic))),
            ..rules.settings.clone()
        };
        let paths = vec![PathPattern::parse("/a/3").expect("a pattern")];
        rules.routes.push(RouteRules {
            name: "gone".to_owned(),
            scope: RouteScope { paths, ..RouteScope::default() },
            settings,
        });
    }
    rules
}

/// Draws a program.
fn program() -> String {
    let recv = [
        "",
        "if (req.http.Cookie ~ \"session\") { return (pass); }",
        "if (req.url ~ \"^/a/2\") { return (synth(418)); }",
        "set req.hash_ignore_busy = true;",
        "set req.hash_always_miss = (req.url == \"/a/1\");",
        "unset req.http.Cookie;",
        "if (req.url ~ \"^/a/2\") { return (pipe); }",
        "if (req.restarts == 0 && req.url ~ \"^/a/1\") { set req.http.X-Again = \"1\"; return (restart); }",
        "set req.grace = 0s;",
        "if (req.method == \"PURGE\") { return (purge); }",
    ];
    let response = [
        "",
        "set beresp.ttl = 1s;",
        "set beresp.grace = 1s;",
        "set beresp.uncacheable = (bereq.url ~ \"^/a/1\");",
        "if (beresp.status >= 500) { return (abandon); }",
        "if (bereq.url ~ \"^/p\") { set beresp.do_esi = true; }",
        "set beresp.keep = 1m;",
        "unset beresp.http.Set-Cookie;",
    ];
    let hit = [
        "",
        "if (obj.ttl < 1s) { return (pass); }",
        "if (req.url ~ \"^/a/1\") { return (restart); }",
    ];
    let deliver = [
        "",
        "if (obj.hits > 2 && req.restarts == 0) { return (restart); }",
        "set resp.http.X-Hits = obj.hits;",
        "if (resp.http.X-No) { return (synth(503)); }",
    ];
    let some = |of: &[&str]| {
        (0..2).map(|_| of[random(of.len() as u64) as usize]).collect::<Vec<_>>().join("\n    ")
    };
    format!(
        "vcl 4.1;\nbackend b {{ .path = \"SOCKET\"; .first_byte_timeout = 4s; }}\n\
         sub vcl_recv {{\n    {}\n}}\nsub vcl_backend_response {{\n    {}\n}}\n\
         sub vcl_hit {{\n    {}\n}}\nsub vcl_deliver {{\n    {}\n}}\n",
        some(&recv),
        some(&response),
        some(&hit),
        some(&deliver),
    )
}

/// Draws a request of client `number`.
fn request(number: u64) -> String {
    let method = match random(14) {
        0 => "HEAD",
        1 => "POST",
        2 => "OPTIONS",
        3 => "PURGE",
        _ => "GET",
    };
    let path = one_of(["/a/1", "/a/2", "/a/3", "/a/4", "/a/5", "/a/5?x=1", "/p/1"]);
    let host = if random(40) == 0 { "unknown.example" } else { one_of(HOSTS) };
    let mut text = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nX-Client: {number}\r\n");
    match random(5) {
        0 => text.push_str(&format!("Cookie: session={number}\r\n")),
        1 => text.push_str(&format!("Cookie: _ga=1; session={number}; lang=de\r\n")),
        2 => text.push_str("Cookie: lang=de\r\n"),
        3 => text.push_str("Cookie: _ga=1\r\n"),
        _ => {}
    }
    for _ in 0..random(3) {
        let field = one_of([
            "Authorization: Basic YTpi",
            PASSWORD,
            PASSWORD,
            "Cache-Control: no-cache",
            "Cache-Control: max-age=0",
            "Cache-Control: only-if-cached",
            "Cache-Control: max-stale=100",
            "Cache-Control: no-store",
            "Pragma: no-cache",
            "Accept: text/event-stream",
            "Accept-Encoding: gzip",
            "Max-Forwards: 0",
            "Range: bytes=0-3",
            "If-None-Match: \"e1\"",
            "If-Match: \"e1\"",
            "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT",
            "X-Variant: 1",
            "Via: 1.1 larder",
            "Connection: upgrade\r\nUpgrade: websocket",
        ]);
        if !text.contains(field.split(':').next().unwrap_or(field)) {
            text.push_str(field);
            text.push_str("\r\n");
        }
    }
    if method == "POST" {
        text.push_str("Content-Length: 0\r\n");
    }
    text.push_str("\r\n");
    text
}

/// Runs a client.
async fn visit(scene: Rc<Scene>, number: u64) {
    let account = Account::open(scene.core.shared.cache.memory(), 1 << 20);
    for _ in 0..4 + random(16) {
        sleep(Duration::from_millis(random(one_of([5, 5, 500, 3_000])))).await;
        let text = request(number);
        if timeout(PATIENCE, ask(&scene, &text, &account)).await.is_err() {
            scene.fail(format!("no answer: {text}"));
            return;
        }
    }
}

async fn ask(scene: &Scene, text: &str, account: &Arc<Account>) {
    let (core, mut request) = (&scene.core, read_request(text));
    let (live, now, client) = (core.live(), core.now(), client(account));
    let told =
        scene.foretells.then(|| explain(&core.shared, &live, request.clone(), client.peer, now));
    let (start, _) = core.start(&live, &mut request, &client, now);
    let waits = matches!(start, Start::Slow(_));
    let mut reply = match start {
        Start::Reply(reply) => reply,
        Start::Slow(slow) => slow.run(core, &request, None, RequestConnection::of(account)).await,
    };
    let outcome = format!(
        "{:?} with status {}, {}: {}",
        reply.served,
        reply.status,
        if waits { "after a wait" } else { "at once" },
        text.replace("\r\n", "; "),
    );
    // A forecast assumes an authenticated client, and the state before an authentication or a wait
    // in the queue.
    let is_checked = text.contains("d.example")
        && (scene.gated && (waits || reply.status.code() == 401) || scene.queued && waits);
    if let Some(told) = told.filter(|_| !is_checked) {
        scene.compare(&told, holds(told.outcome, waits, &reply), &outcome);
    }
    let mut head = Vec::new();
    reply.write_head(&live, &mut head);
    scene.judge_head(text, &String::from_utf8_lossy(&head), &outcome);
    scene.judge_reply(text, &reply, now.mono_ms, &outcome);
    let body = take(std::mem::replace(&mut reply.body, ReplyBody::None), account).await;
    // Pages with other statuses are not read.
    let is_page = reply.status == Status::OK && text.contains("d.example");
    if is_page && body.windows(5).any(|five| five == b"<esi:") {
        scene.fail(format!("a page was sent as it is: {outcome}"));
    }
    scene.seen.borrow_mut().outcomes.push(outcome);
}

/// Reads a body as far as it comes.
async fn take(body: ReplyBody, account: &Arc<Account>) -> Vec<u8> {
    let mut all = Vec::new();
    match body {
        ReplyBody::Stream { mut reader, .. } => {
            reader.hold_for(account);
            while let Ok(Some(bytes)) = reader.next().await {
                all.extend_from_slice(&bytes);
            }
        }
        ReplyBody::Parts(parts) => {
            for part in parts {
                match part {
                    BodyPart::Bytes(bytes) => all.extend_from_slice(&bytes),
                    BodyPart::Stored(object, range) => {
                        let whole = object.whole();
                        let pieces = whole.iter().flat_map(|whole| whole.range(range.clone()));
                        pieces.for_each(|piece| all.extend_from_slice(piece));
                    }
                    BodyPart::File(..) => {}
                }
            }
        }
        _ => {}
    }
    all
}

impl Scene {
    fn fail(&self, words: String) {
        self.seen.borrow_mut().broken.push(words);
    }

    /// Checks a request to the origin against its client's.
    fn judge_asked(&self, head: &str) {
        let client = http::field(head, "x-client").unwrap_or_default().to_owned();
        if let Some(cookies) = http::field(head, "cookie") {
            let others = cookies.split("; ").find(|cookie| {
                cookie.strip_prefix("session=").is_some_and(|number| number != client)
            });
            if let Some(cookie) = others {
                self.fail(format!("client {client} has the cookie {cookie}: {head}"));
            }
        }
    }

    /// Checks that a reply was made for its client.
    fn judge_head(&self, text: &str, head: &str, outcome: &str) {
        let client = http::field(text, "x-client").unwrap_or_default();
        let is_others = |name| http::field(head, name).is_some_and(|of| of != client);
        let leaks = is_others("x-private") || self.personal && is_others("x-for");
        if leaks && text.contains("d.example") {
            self.fail(format!("another client's response: {outcome}"));
        }
    }

    /// Checks a reply against authentication and limits.
    fn judge_reply(&self, text: &str, reply: &Reply, came_ms: u64, outcome: &str) {
        let status = reply.status.code();
        if !text.contains("d.example") || status == 429 {
            return;
        }
        // Limits do not apply to purges.
        if let Some(most) = self.rate.filter(|_| !text.starts_with("PURGE")) {
            let mut seen = self.seen.borrow_mut();
            seen.passed_ms.push(came_ms);
            let since = came_ms.saturating_sub(999);
            let lately = seen.passed_ms.iter().filter(|at| (since..=came_ms).contains(at));
            if lately.count() as u64 > most {
                seen.broken.push(format!("more than the limit lets pass: {outcome}"));
            }
        }
        if self.gated && (status == 401) == text.contains(PASSWORD) {
            self.fail(format!("the gate is wrong: {outcome}"));
        }
    }

    /// Records a forecast, and if it was right.
    fn compare(&self, told: &Explanation, holds: Result<(), &'static str>, outcome: &str) {
        let mut seen = self.seen.borrow_mut();
        seen.compared.forecasts += 1;
        seen.compared.kinds[kind_of(told.outcome)] += 1;
        if let Err(why) = holds {
            let (foreseen, summary) = (told.outcome, &told.summary);
            seen.broken.push(format!("{why}: foretold {foreseen:?} ({summary}); became {outcome}"));
        }
    }
}

fn kind_of(foreseen: ForecastOutcome) -> usize {
    match foreseen {
        ForecastOutcome::Answer { .. } => 0,
        ForecastOutcome::Fetch { waits: false, .. } => 1,
        ForecastOutcome::Fetch { waits: true, .. } => 2,
        ForecastOutcome::Tunnel => 3,
        ForecastOutcome::Purge => 4,
    }
}

/// Compares a forecast with the outcome.
fn holds(foreseen: ForecastOutcome, waited: bool, reply: &Reply) -> Result<(), &'static str> {
    match foreseen {
        ForecastOutcome::Answer { served, status } => {
            if served != reply.served {
                return Err("another part of the cache");
            }
            match status.is_some_and(|status| status != reply.status) {
                true => Err("another status"),
                false => Ok(()),
            }
        }
        _ if !waited && !matches!(foreseen, ForecastOutcome::Purge) => Err("an answer at once"),
        // Another request's fetch may have any outcome.
        ForecastOutcome::Fetch { waits: true, .. } => Ok(()),
        ForecastOutcome::Fetch { reason, stale, .. } => match reply.served {
            CacheOutcome::Fetched { reason: given, collapsed: false, .. } if given == reason => {
                Ok(())
            }
            CacheOutcome::Fetched { collapsed: true, .. } => Err("a wait"),
            CacheOutcome::Fetched { .. } => Err("another reason"),
            CacheOutcome::Revalidated | CacheOutcome::StaleOnError if !stale => {
                Err("something stored")
            }
            CacheOutcome::Hit | CacheOutcome::Stale => Err("a stored response"),
            // Its origin has failed, or the response was not shareable.
            _ => Ok(()),
        },
        ForecastOutcome::Tunnel => match reply.served {
            CacheOutcome::Fetched { reason: ForwardReason::Bypass, .. }
            | CacheOutcome::Synthetic => Ok(()),
            _ => Err("no tunnel"),
        },
        ForecastOutcome::Purge => Ok(()),
    }
}

/// The origin.
async fn serve(scene: Rc<Scene>, listener: UnixListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let scene = Rc::clone(&scene);
        rt::spawn_local(async move {
            // A peer that goes away is no failure.
            _ = talk(&scene, stream).await;
        });
    }
}

async fn talk(scene: &Scene, mut stream: UnixStream) -> std::io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut unread).await? == 0 {
                return Ok(());
            }
        };
        let rest = unread.split_off(end);
        let head = String::from_utf8_lossy(&std::mem::replace(&mut unread, rest)).into_owned();
        scene.judge_asked(&head);
        sleep(Duration::from_millis(random(one_of([1, 40, 1_500])))).await;
        if random(12) == 0 {
            // Closes the connection.
            return Ok(());
        }
        stream.write_all(response(&head).as_bytes()).await?;
    }
}

/// Draws the response to a request.
fn response(head: &str) -> String {
    let etag = one_of(["e1", "e1", "e2"]);
    let known = http::field(head, "if-none-match").is_some_and(|tags| tags.contains(etag));
    let status = match random(12) {
        _ if known => "304 Not Modified",
        0 => "404 Not Found",
        1 => "503 Broken",
        2 => "302 Found",
        _ => "200 OK",
    };
    let mut text = format!("HTTP/1.1 {status}\r\n");
    let control = one_of([
        "max-age=1",
        "max-age=2, stale-while-revalidate=2",
        "max-age=60",
        "s-maxage=2",
        "max-age=1, stale-if-error=10",
        "private, max-age=60",
        "no-store",
        "no-cache",
        "max-age=2, must-revalidate",
        "public, max-age=3",
        "",
    ]);
    if !control.is_empty() {
        text.push_str(&format!("Cache-Control: {control}\r\n"));
    }
    for field in [
        "Vary: X-Variant",
        "Vary: *",
        "Set-Cookie: a=b",
        "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT",
        "Age: 1",
    ] {
        if random(8) == 0 {
            text.push_str(&format!("{field}\r\n"));
        }
    }
    if random(2) == 0 || known {
        text.push_str(&format!("ETag: \"{etag}\"\r\n"));
    }
    let client = http::field(head, "x-client").unwrap_or_default();
    if ["private", "no-store"].iter().any(|word| control.contains(word)) {
        text.push_str(&format!("X-Private: {client}\r\n"));
    }
    let is_public = control.contains("public") || control.contains("s-maxage");
    if head.contains("session=") && !is_public {
        text.push_str(&format!("X-For: {client}\r\n"));
    }
    let body = match head.contains(" /p/1 ") {
        true => {
            text.push_str("Surrogate-Control: content=\"ESI/1.0\"\r\n");
            "<p><esi:include src=\"/a/4\"/><esi:include src=\"/a/5\"/></p>"
        }
        false => "some words",
    };
    if known {
        text.push_str("\r\n");
        return text;
    }
    text.push_str(&format!("Content-Type: text/html\r\nContent-Length: {}\r\n\r\n", body.len()));
    if !head.starts_with("HEAD") {
        text.push_str(body);
    }
    text
}
