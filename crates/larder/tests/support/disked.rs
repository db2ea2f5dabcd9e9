//! A daemon over a disk, which tests stop, kill and start again.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::origin::ScriptedOrigin;
use testkit::reply::Reply;

use super::folder::Folder;
use super::{PATIENCE, eventually, whole};

/// The kind of policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Declared,
    Vcl,
}

pub(crate) const BOTH: [Policy; 2] = [Policy::Declared, Policy::Vcl];

const PROGRAM: &str = "sub vcl_recv {
    if (req.method == \"PURGE\") { return (purge); }
    if (req.method == \"BAN\") {
        ban(\"obj.http.x-kind == \" + req.http.x-kind);
        return (synth(200, \"Banned\"));
    }
}
sub vcl_backend_response { set beresp.grace = 1h; }
sub vcl_deliver { if (obj.hits > 0) { set resp.http.cache-status = \"larder; hit\"; } }
";

/// The configuration with long timeouts of the disk, unless it sets some itself: a late read is a
/// request to the origin, which tests count.
pub(crate) fn patient(file: &str) -> String {
    const KEY: &str = "disk_read_timeout";
    if file.contains(KEY) {
        return file.to_owned();
    }
    let wait = format!("[limits]\n{KEY} = \"1m\"\n");
    match file.contains("[limits]\n") {
        true => file.replacen("[limits]\n", &wait, 1),
        false => format!("{file}\n{wait}"),
    }
}

/// A daemon with a disk cache, which tests stop, kill and restart.
pub(crate) struct Disked {
    pub(crate) origin: ScriptedOrigin,
    daemon: Option<Daemon>,
    /// The folder of the program and the disk.
    _folder: Folder,
    pub(crate) file: String,
}

impl Disked {
    pub(crate) async fn start(policy: Policy, top: &str) -> Self {
        let folder = Folder::new();
        let path = folder.path().join("disk");
        Self::start_at(policy, top, &path, folder).await
    }

    /// The daemon with its disk in `path`. The program is in `folder`.
    pub(crate) async fn start_at(policy: Policy, top: &str, path: &Path, folder: Folder) -> Self {
        let origin = ScriptedOrigin::start().await.expect("an origin");
        let addr = origin.addr();
        let (site, origins) = match policy {
            Policy::Declared => (
                "origin = \"app\"\npurge = { dialects = [\"purge\", \"foshttpcache\"] }\n"
                    .to_owned(),
                format!("[[origin]]\nname = \"app\"\nservers = \"http://{addr}\"\n"),
            ),
            Policy::Vcl => {
                let (host, port) = (addr.ip(), addr.port());
                let backend = format!("backend app {{ .host = \"{host}\"; .port = \"{port}\"; }}");
                folder.file("site.vcl", format!("vcl 4.1;\n{backend}\n{PROGRAM}"));
                let vcl = folder.path().join("site.vcl").display().to_string();
                (format!("vcl = \"{vcl}\"\n"), String::new())
            }
        };
        let path = path.display();
        let file = patient(&format!(
            "listen = \"127.0.0.1:0\"\nworkers = 2\n{top}\n[disk]\npath = \"{path}\"\n\
             size = \"256MiB\"\n{origins}[[site]]\nhost = \"*\"\n{site}"
        ));
        let daemon = Some(Daemon::start(&file).expect("larder starts"));
        Self { origin, daemon, _folder: folder, file }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("it runs")
    }

    pub(crate) fn daemon_mut(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("it runs")
    }

    pub(crate) async fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let raw = RawClient::connect(self.daemon().addr()).await.expect("a connection");
        let mut raw = raw.patience(PATIENCE);
        raw.send(&request(method, target, fields), WriteSplit::Whole).await.expect("it is taken");
        whole(raw.reply(method).await, target)
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask("GET", target, "").await
    }

    pub(crate) async fn metric(&self, name: &str) -> u64 {
        self.daemon().metric(name, "").await.expect("metrics") as u64
    }

    /// Ends the daemon by `signal`, and starts another over the same disk; it has read all of the
    /// index then.
    pub(crate) async fn again(&mut self, signal: Signal) {
        self.stop(signal).await;
        self.begin().await;
    }

    /// Ends the daemon by `signal`.
    pub(crate) async fn stop(&mut self, signal: Signal) {
        let mut old = self.daemon.take().expect("it runs");
        let pid = Pid::from_raw(old.pid() as i32).expect("a process");
        kill_process(pid, signal).expect("sent");
        let ended = tokio::task::spawn_blocking(move || (old.wait(), old.log())).await;
        let (status, log) = ended.expect("no panic");
        let status = status.expect("it ends");
        assert!(signal == Signal::KILL || status.success(), "{log}");
    }

    /// Starts the next one.
    pub(crate) async fn begin(&mut self) {
        self.daemon = Some(Daemon::start(&self.file).expect("larder starts again"));
        eventually("all is found", async || self.is_found().await).await;
    }

    pub(crate) async fn is_found(&self) -> bool {
        self.metric("larder_disk_finding").await == 0
    }

    /// Waits until `records` responses are on disk.
    pub(crate) async fn kept(&self, records: u64) {
        let there = async || {
            self.metric("larder_disk_volume_records").await >= records
                && self.metric("larder_disk_volume_queued_bytes").await == 0
        };
        eventually("copies on disk", there).await;
    }
}
