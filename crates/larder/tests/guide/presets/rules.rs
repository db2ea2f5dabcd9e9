//! The rules of applications, as the guide's tables have them, each with exchanges that play it:
//! before a site with the preset, and where there is a VCL for the application, before varnishd
//! too.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testkit::client::{RawClient, WriteSplit};
use testkit::origin::{Script, ScriptedOrigin};
use testkit::reply::Reply;

use super::{drupal, magento, mediawiki, stage, wordpress};
use crate::support::{PATIENCE, whole};

/// A rule, and what plays it.
pub(crate) struct Row {
    /// The first cell of its row in the guide's table.
    pub(crate) name: &'static str,
    pub(crate) plays: &'static [Play],
}

/// Two requests, one after the other, and their required results. A request is `METHOD target` and
/// fields, a response a status and fields, separated by ` | `; behind ` || ` follows a body.
#[derive(Clone, Copy)]
pub(crate) struct Play {
    pub(crate) first: &'static str,
    pub(crate) answer: &'static str,
    pub(crate) second: &'static str,
    pub(crate) want: Want,
    /// The reason for which the VCL differs, or has no such rule.
    pub(crate) unlike: Option<&'static str>,
}

/// The outcome of two requests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Want {
    /// Equal responses for both.
    One,
    /// An answer for each.
    Two,
    /// The second response has this field with this value; without it if the value is empty.
    Field(&'static str, &'static str),
    /// The second response's body contains this text.
    Text(&'static str),
    /// An answer for each, since this request came between them; without it there would be one.
    Gone(&'static str),
}

/// A play whose rule the VCL has too.
pub(crate) const fn play(
    first: &'static str,
    answer: &'static str,
    second: &'static str,
    want: Want,
) -> Play {
    Play { first, answer, second, want, unlike: None }
}

impl Play {
    /// Marks a play for which the VCL differs, or has no such rule.
    pub(crate) const fn unlike(self, why: &'static str) -> Self {
        Self { unlike: Some(why), ..self }
    }
}

/// An application: its preset, its page of the guide, its rules.
struct Application {
    preset: &'static str,
    page: &'static str,
    rules: &'static [Row],
    /// The program with the rules of its usual VCL, where there is one.
    vcl: Option<&'static str>,
}

const APPLICATIONS: [Application; 4] = [
    Application {
        preset: "magento",
        page: "magento.md",
        rules: magento::RULES,
        vcl: Some(include_str!("vcl/magento.vcl")),
    },
    Application {
        preset: "drupal",
        page: "drupal.md",
        rules: drupal::RULES,
        vcl: Some(include_str!("vcl/drupal.vcl")),
    },
    Application {
        preset: "mediawiki",
        page: "mediawiki.md",
        rules: mediawiki::RULES,
        vcl: Some(include_str!("vcl/mediawiki.vcl")),
    },
    Application { preset: "wordpress", page: "wordpress.md", rules: wordpress::RULES, vcl: None },
];

#[tokio::test]
async fn every_rule_of_an_application_holds() {
    let mut failed = Vec::new();
    for application in &APPLICATIONS {
        let stage = stage(application.preset).await;
        for (name, play, number) in plays(application) {
            let host = format!("r{number}.test");
            if let Err(why) = try_play(&stage.origin, stage.daemon.addr(), &host, play).await {
                failed.push(format!("{}, `{name}`: {why}", application.preset));
            }
        }
    }
    assert!(failed.is_empty(), "{} plays fail\n{}", failed.len(), failed.join("\n"));
}

#[tokio::test]
async fn the_usual_vcl_does_the_same() {
    if Command::new("varnishd").arg("-V").stderr(Stdio::null()).status().is_err() {
        return eprintln!("skipped: no varnishd");
    }
    let mut failed = Vec::new();
    for application in &APPLICATIONS {
        let Some(vcl) = application.vcl else { continue };
        let origin = ScriptedOrigin::start().await.expect("a port for the origin");
        let varnish = Varnish::start(&vcl.replace("ORIGIN", &origin.addr().port().to_string()));
        for (name, play, number) in plays(application).filter(|(_, play, _)| play.unlike.is_none())
        {
            let host = format!("r{number}.test");
            if let Err(why) = try_play(&origin, varnish.addr, &host, play).await {
                failed.push(format!("{}, `{name}`: {why}", application.preset));
            }
        }
    }
    assert!(failed.is_empty(), "{} plays fail\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn the_guide_has_every_rule_and_no_other() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    for application in &APPLICATIONS {
        let text = fs::read_to_string(guide.join(application.page)).expect("a page of the guide");
        let (_, table) = text.split_once("## The rules\n").expect("a chapter");
        let rows = table.lines().skip_while(|line| !line.starts_with('|')).skip(2);
        let rows = rows.take_while(|line| line.starts_with('|'));
        let told: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
        let played: Vec<&str> = application.rules.iter().map(|rule| rule.name).collect();
        assert_eq!(told, played, "{}", application.page);
        assert!(application.rules.iter().all(|rule| !rule.plays.is_empty()));
    }
}

fn plays(application: &Application) -> impl Iterator<Item = (&'static str, &'static Play, usize)> {
    let rules = application.rules.iter();
    let plays = rules.flat_map(|rule| rule.plays.iter().map(move |play| (rule.name, play)));
    plays.enumerate().map(|(number, (name, play))| (name, play, number))
}

/// The number of requests that the origin has had.
fn asked(origin: &ScriptedOrigin) -> usize {
    origin.targets().iter().map(|target| origin.seen(target)).sum()
}

async fn try_play(
    origin: &ScriptedOrigin,
    addr: SocketAddr,
    host: &str,
    play: &Play,
) -> Result<(), String> {
    origin.otherwise(answer(play.answer));
    origin
        .on("/fragment", Script::respond(plain(200, "Cache-Control: max-age=60\r\n", "FRAGMENT")));
    let first = ask(addr, host, play.first).await;
    if let Want::Gone(order) = play.want {
        let before = asked(origin);
        ask(addr, host, play.second).await;
        if asked(origin) != before {
            return Err(format!("{}: never stored", play.second));
        }
        let done = ask(addr, host, order).await;
        if done.status != 200 {
            return Err(format!("{order}: status {}", done.status));
        }
    }
    let before = asked(origin);
    let second = ask(addr, host, play.second).await;
    let is_one = asked(origin) == before;
    let shown = || format!("{}, then {}: {first:?}\n{second:?}", play.first, play.second);
    let is_right = match play.want {
        Want::One => is_one,
        Want::Two | Want::Gone(_) => !is_one,
        Want::Field(name, value) => second.field(name).unwrap_or_default() == value,
        Want::Text(text) => second.text().contains(text),
    };
    if is_right { Ok(()) } else { Err(format!("not {:?}: {}", play.want, shown())) }
}

/// The origin's script for a response; without a body it shows the request.
fn answer(text: &str) -> Script {
    let (head, body) = text.split_once(" || ").unwrap_or((text, ""));
    let mut parts = head.split(" | ");
    let status = parts.next().and_then(|status| status.parse().ok()).expect("a status");
    let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
    match (status, body) {
        (200, "") => Script::mirror(&fields),
        _ => Script::respond(plain(status, &fields, body)),
    }
}

fn plain(status: u16, fields: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

async fn ask(addr: SocketAddr, host: &str, text: &str) -> Reply {
    let (head, body) = text.split_once(" || ").unwrap_or((text, ""));
    let mut parts = head.split(" | ");
    let line = parts.next().unwrap_or_default();
    let method = line.split(' ').next().unwrap_or_default();
    let fields: String = parts.map(|field| format!("{field}\r\n")).collect();
    let length = match body.len() {
        0 => String::new(),
        length => format!("Content-Length: {length}\r\n"),
    };
    let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{fields}{length}\r\n{body}");
    let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
    raw.send(request.as_bytes(), WriteSplit::Whole).await.expect("the request is taken");
    whole(raw.reply(method).await, text)
}

/// varnishd with one program; it ends with this.
struct Varnish {
    child: Child,
    folder: PathBuf,
    addr: SocketAddr,
}

impl Varnish {
    fn start(vcl: &str) -> Self {
        let mut fault = String::new();
        // Another process may take the port between its choice and its use.
        for attempt in 0..3 {
            let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            let addr = taken.local_addr().expect("an address");
            drop(taken);
            match Self::attempt(vcl, addr, attempt) {
                Ok(varnish) => return varnish,
                Err(why) => fault = why,
            }
        }
        panic!("varnishd does not start: {fault}");
    }

    fn attempt(vcl: &str, addr: SocketAddr, attempt: u32) -> Result<Self, String> {
        let name = format!("larder-presets-{}-{}-{attempt}", std::process::id(), addr.port());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("presets.vcl");
        fs::write(&file, vcl).expect("a file");
        let said = fs::File::create(folder.join("said")).expect("a file");
        // The code matters here, not how fast it is.
        let compiler = "cc_command=exec gcc -O0 -pthread -fpic -shared -Wl,-x -o %o %s";
        let child = Command::new("varnishd")
            .args(["-j", "none", "-F", "-s", "malloc,32m", "-p", compiler])
            .args(["-a", &addr.to_string()])
            .arg("-f")
            .arg(&file)
            .arg("-n")
            .arg(folder.join("work"))
            .stdin(Stdio::null())
            .stdout(said.try_clone().expect("a file"))
            .stderr(said)
            .spawn()
            .expect("varnishd runs");
        let mut varnish = Self { child, folder, addr };
        let started = Instant::now();
        while TcpStream::connect(addr).is_err() {
            let has_ended = varnish.child.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || started.elapsed() > PATIENCE {
                return Err(fs::read_to_string(varnish.folder.join("said")).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(varnish)
    }
}

impl Drop for Varnish {
    fn drop(&mut self) {
        // It ends its own child on a signal other than KILL.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
