//! Presets and their leak suite, over real sockets: a second visitor never gets a byte made for the
//! first, whatever the origin's responses claim; and ordinary pages are hits.

use crate::support;

mod answers;
mod commands;
mod common;
mod drupal;
mod magento;
mod mediawiki;
mod microcache;
mod rules;
mod statics;
mod wordpress;

use std::collections::BTreeMap;
use std::sync::Arc;

use support::{Setup, Stage, is_hit, whole};
use testkit::client::{RawClient, WriteSplit};
use testkit::origin::Script;
use testkit::reply::Reply;
use tokio::task::JoinSet;

/// Text that only the first visitor's request holds.
pub(crate) const MARK: &str = "ATTACKER-7f3a9";

/// Fields of the responses that each probe is run with, and whether these fields make a response
/// public. The origin numbers the responses.
const ANSWERS: [(&str, bool); 6] = [
    ("Content-Type: text/html\r\n", false),
    ("Content-Type: text/css\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n", false),
    ("Content-Type: text/html\r\nCache-Control: max-age=300\r\n", false),
    ("Content-Type: text/html\r\nCache-Control: public, max-age=300\r\n", true),
    ("Content-Type: text/css\r\nCache-Control: public, s-maxage=300\r\n", true),
    ("Content-Type: image/x-icon\r\nCDN-Cache-Control: max-age=300\r\n", true),
];

/// Probes that run at once: most of their time goes into changes from one process to the next.
const AT_ONCE: usize = 8;

/// A rule that must hold for every visitor after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Never the answer made for the first.
    Apart,
    /// As [`Rule::Apart`], except that `public` from the origin permits sharing.
    ApartUnlessPublic,
    /// Nothing of what the first sent. One answer for both is good.
    Clean,
}

/// The first visitor's request, and the later visitors' requests.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    method: &'static str,
    target: String,
    /// Lines with their CRLF.
    fields: String,
    body: String,
    /// Lines that the origin's answer has besides.
    answer: String,
    /// Target of the later requests; `None` for the first one's.
    second: Option<String>,
    rule: Rule,
}

impl Probe {
    /// GET of `target`; it and `fields` (lines with their CRLF) may hold [`MARK`].
    pub(crate) fn get(target: impl Into<String>, fields: impl Into<String>, rule: Rule) -> Self {
        Self {
            method: "GET",
            target: target.into(),
            fields: fields.into(),
            body: String::new(),
            answer: String::new(),
            second: None,
            rule,
        }
    }

    /// Makes a probe with another method, and a body that contains [`MARK`].
    pub(crate) fn sent_by(mut self, method: &'static str, body: &str) -> Self {
        self.method = method;
        self.body = body.to_owned();
        self
    }

    /// Adds lines to the origin's response.
    pub(crate) fn answered(mut self, fields: &str) -> Self {
        self.answer = fields.to_owned();
        self
    }

    /// Sets the later visitors' target.
    pub(crate) fn then(mut self, target: &str) -> Self {
        self.second = Some(target.to_owned());
        self
    }

    fn request(&self, host: &str) -> Vec<u8> {
        let length = match self.body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let Self { method, target, fields, body, .. } = self;
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}{length}\r\n{body}")
            .into_bytes()
    }
}

/// Requests with each of `cookies` (names) for each of `targets`.
pub(crate) fn sessions(targets: &[&str], cookies: &[&str], rule: Rule) -> Vec<Probe> {
    let one = |target: &&str, cookie: &&str| {
        Probe::get(*target, format!("Cookie: _ga=1; {cookie}={MARK}\r\n"), rule)
    };
    targets
        .iter()
        .flat_map(|target| cookies.iter().map(move |cookie| one(target, cookie)))
        .collect()
}

/// A daemon whose one site has `preset`: a name, or several with commas between them.
pub(crate) async fn stage(preset: &str) -> Stage {
    let names: Vec<_> = preset.split(", ").map(|name| format!("{name:?}")).collect();
    let site = format!("preset = [{}]", names.join(", "));
    Setup { site: &site, ..Setup::default() }.start().await
}

async fn ask(stage: &Stage, method: &str, request: &[u8]) -> Reply {
    let mut raw = stage.connect().await;
    raw.send(request, WriteSplit::Whole).await.expect("the request is taken");
    whole(raw.reply(method).await, &String::from_utf8_lossy(request))
}

/// A connection of visitors who come later, opened again where an answer ends it.
struct Visitors<'a> {
    stage: &'a Stage,
    open: Option<RawClient>,
}

impl Visitors<'_> {
    async fn ask(&mut self, method: &str, request: &[u8]) -> Reply {
        let mut raw = match self.open.take() {
            Some(raw) => raw,
            None => self.stage.connect().await,
        };
        raw.send(request, WriteSplit::Whole).await.expect("the request is taken");
        let reply = whole(raw.reply(method).await, &String::from_utf8_lossy(request));
        if !reply.closes() {
            self.open = Some(raw);
        }
        reply
    }
}

/// Runs every probe with every answer. `session` is the name of a cookie by which visitors of such
/// a site are known.
pub(crate) async fn no_leak(preset: &str, probes: &[Probe], session: &'static str) {
    assert!(probes.len() >= 40, "{preset}: {} probes", probes.len());
    let stage = Arc::new(stage(preset).await);
    let mut alike: BTreeMap<&str, Vec<(usize, Probe)>> = BTreeMap::new();
    for (number, probe) in probes.iter().enumerate() {
        alike.entry(&probe.answer).or_default().push((number, probe.clone()));
    }
    let mut reached = 0;
    for (kind, (fields, public)) in ANSWERS.iter().enumerate() {
        for (more, probes) in &alike {
            let answer = format!("{fields}{more}X-Answer: {{n}}\r\n");
            stage.origin.otherwise(Script::mirror(&answer));
            let mut groups = JoinSet::new();
            for probes in probes.chunks(probes.len().div_ceil(AT_ONCE)) {
                let (stage, probes) = (Arc::clone(&stage), probes.to_vec());
                groups.spawn(async move { run(&stage, kind, &probes, *public, session).await });
            }
            reached += groups.join_all().await.iter().sum::<usize>();
        }
    }
    let all = probes.len() * ANSWERS.len();
    assert!(reached * 2 > all, "{preset}: of {all} probes {reached} reached the origin");
}

/// Runs probes against an origin that gives this kind of response to all of them. Returns the
/// number of probes that reached the origin. Each probe has its own host, so that no two share an
/// object.
async fn run(
    stage: &Stage,
    kind: usize,
    probes: &[(usize, Probe)],
    public: bool,
    session: &str,
) -> usize {
    let mut visitors = Visitors { stage, open: None };
    let mut reached = 0;
    for (number, probe) in probes {
        let host = format!("p{number}-{kind}.test");
        reached += usize::from(check(&mut visitors, probe, &host, public, session).await);
    }
    reached
}

/// Runs a probe. Returns true if its first request reached the origin.
async fn check(
    visitors: &mut Visitors<'_>,
    probe: &Probe,
    host: &str,
    public: bool,
    session: &str,
) -> bool {
    let first = ask(visitors.stage, probe.method, &probe.request(host)).await;
    let number = first.field("x-answer");
    let target = probe.second.as_ref().unwrap_or(&probe.target);
    for (method, cookie) in [
        ("GET", String::new()),
        ("GET", format!("Cookie: {session}=VICTIM\r\n")),
        ("HEAD", String::new()),
        ("GET", "Cookie: _ga=2\r\n".to_owned()),
    ] {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\n");
        let second = visitors.ask(method, request.as_bytes()).await;
        let shown = || format!("{probe:?}\nthen {method} {cookie}\n{second:?}\n{}", second.text());
        let apart = match probe.rule {
            Rule::Apart => true,
            Rule::ApartUnlessPublic => !public,
            Rule::Clean => false,
        };
        let clean = apart || probe.rule == Rule::Clean;
        if clean && (probe.second.is_some() || !target.contains(MARK)) {
            let fields = second.fields.iter().map(|(_, value)| String::from_utf8_lossy(value));
            let all = fields.collect::<Vec<_>>().join("\n") + &second.text();
            assert!(!all.contains(MARK), "a leak: {}", shown());
        }
        let answer = second.field("x-answer");
        assert!(!apart || answer.is_none() || answer != number, "one answer for two: {}", shown());
        assert!(second.status == 200 || second.status == 400, "{}", shown());
    }
    number.is_some()
}

/// A page that all get: target, fields of the first request, of the second, and of the answer.
pub(crate) type Page<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The second request of each page is answered from the store.
pub(crate) async fn hits(preset: &str, pages: &[Page<'_>]) {
    let stage = stage(preset).await;
    for (number, (target, first, second, answer)) in pages.iter().enumerate() {
        stage.origin.otherwise(Script::mirror(&format!("{answer}X-Answer: {{n}}\r\n")));
        let request = |fields: &str| {
            format!("GET {target} HTTP/1.1\r\nHost: h{number}.test\r\n{fields}\r\n").into_bytes()
        };
        let first = ask(&stage, "GET", &request(first)).await;
        let second = ask(&stage, "GET", &request(second)).await;
        assert!(is_hit(&second), "{preset}, {target}: {first:?} {second:?}");
        assert_eq!(first.field("x-answer"), second.field("x-answer"), "{target}");
    }
}
