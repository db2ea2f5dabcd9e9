//! Tests of the transport of files: large ones, over TLS, to slow clients, from a cold disk, and
//! files that change meanwhile.

use crate::support;

use std::fs::File;
use std::io;

use rustix::fs::{Advice, fadvise};
use support::folder::Folder;
use support::tls::{Authority, Kind};
use support::{PATIENCE, eventually, pattern, pause, whole};
use testkit::client::{RawClient, WriteSplit, request};
use testkit::larder::Daemon;
use testkit::reply::ReplyOutcome;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const MIB: usize = 1 << 20;

/// Plain and TLS listeners of a site of files.
struct Stage {
    daemon: Daemon,
    root: Folder,
    authority: Authority,
}

impl Stage {
    fn start(limits: &str) -> Self {
        let (root, authority) = (Folder::new(), Authority::new());
        authority.sign("a", &["a.test"], Kind::Elliptic);
        let daemon = Daemon::start(&format!(
            "listen = [\"127.0.0.1:0\", \"127.0.0.1:0 tls\"]\nworkers = 1\ntls = {{ {} }}\n\
             [limits]\n{limits}\n[[site]]\nhost = \"*\"\nfiles = \"{}\"\n",
            authority.pair("a"),
            root.path().display(),
        ));
        Self { daemon: daemon.expect("larder starts"), root, authority }
    }

    async fn over_both(&self, target: &str) -> [Vec<u8>; 2] {
        let addr = self.daemon.addrs()[0];
        let mut raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
        raw.send(&request("GET", target, ""), WriteSplit::Whole).await.expect("taken");
        let plain = whole(raw.reply("GET").await, target);
        let sealed = self.authority.client().get(self.daemon.addrs()[1], "a.test", target).await;
        [plain.body, sealed.body]
    }

    /// A connection that reads slowly.
    async fn slow(&self) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(16 * 1024)?;
        socket.connect(self.daemon.addrs()[0]).await
    }
}

#[tokio::test]
async fn every_length_arrives_whole_over_both_kinds_of_connection() {
    let stage = Stage::start("");
    let content = pattern(3 * MIB + 1);
    for length in
        [0, 1, 2047, 2048, 2049, 16_384, 16_385, 26_000, 65_535, 65_536, 65_537, MIB, 3 * MIB + 1]
    {
        let name = format!("{length}.bin");
        stage.root.file(&name, &content[..length]);
        for body in stage.over_both(&format!("/{name}")).await {
            assert!(body == content[..length], "{length}: got {}", body.len());
        }
    }
}

#[tokio::test]
async fn what_is_not_in_memory_is_read_from_the_disk() {
    let stage = Stage::start("");
    let content = pattern(2 * MIB + 77);
    for length in [100, 20_000, 2 * MIB + 77] {
        let name = format!("{length}.bin");
        stage.root.file(&name, &content[..length]);
        for _ in 0..2 {
            let file = File::open(stage.root.path().join(&name)).expect("a file");
            file.sync_all().expect("on disk");
            fadvise(&file, 0, None, Advice::DontNeed).expect("forgotten");
            let mut raw = RawClient::connect(stage.daemon.addrs()[0]).await.expect("a connection");
            raw.send(&request("GET", &format!("/{name}"), ""), WriteSplit::Whole)
                .await
                .expect("taken");
            let reply = whole(raw.reply("GET").await, &name);
            assert!(reply.body == content[..length], "{length}: got {}", reply.body.len());
        }
        let file = File::open(stage.root.path().join(&name)).expect("a file");
        fadvise(&file, 0, None, Advice::DontNeed).expect("forgotten");
        for body in stage.over_both(&format!("/{name}")).await {
            assert!(body == content[..length], "{length}");
        }
    }
}

#[tokio::test]
async fn a_slow_client_gets_ten_mebibytes_and_costs_little_memory() {
    let stage = Stage::start("");
    let content = pattern(10 * MIB);
    stage.root.file("large.bin", &content);
    let before = resident(stage.daemon.pid());
    let mut clients = Vec::new();
    for _ in 0..8 {
        let mut client = stage.slow().await.expect("a connection");
        client
            .write_all(&request("GET", "/large.bin", "Connection: close\r\n"))
            .await
            .expect("sent");
        clients.push(client);
    }
    let mut taken = vec![Vec::new(); clients.len()];
    for _ in 0..20 {
        for (client, taken) in clients.iter_mut().zip(&mut taken) {
            let mut piece = [0; 4096];
            let read = client.read(&mut piece).await.expect("a piece");
            taken.extend_from_slice(&piece[..read]);
        }
        pause(2).await;
    }
    let grown = resident(stage.daemon.pid()).saturating_sub(before);
    assert!(grown < 8 * MIB, "eight slow clients of ten mebibytes: {grown} bytes");
    for (mut client, mut taken) in clients.into_iter().zip(taken) {
        let rest = tokio::time::timeout(PATIENCE, client.read_to_end(&mut taken));
        rest.await.expect("in time").expect("the rest");
        let head = taken.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
        assert!(taken[head..] == content, "got {}", taken.len() - head);
    }
}

/// Bytes of a process's private memory.
fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
    let kib = line.split_whitespace().nth(1).expect("a number");
    kib.parse::<usize>().expect("a number") * 1024
}

#[tokio::test]
async fn a_file_that_becomes_shorter_is_never_passed_off_as_whole() {
    let stage = Stage::start("");
    for (round, keep) in [0, 1000, 3 * MIB].into_iter().enumerate() {
        let name = format!("{round}.bin");
        stage.root.file(&name, pattern(8 * MIB));
        let mut client = stage.slow().await.expect("a connection");
        client.write_all(&request("GET", &format!("/{name}"), "")).await.expect("sent");
        let mut got = vec![0; 4096];
        client.read_exact(&mut got).await.expect("its beginning");
        let file = File::options().write(true).open(stage.root.path().join(&name));
        file.expect("a file").set_len(keep as u64).expect("cut short");
        // Reset or ended: in either case long before what the head promised.
        let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut got)).await;
        let _: io::Result<usize> = read.expect("it ends");
        assert!(got.len() < 8 * MIB, "{keep}: {}", got.len());
        let head = String::from_utf8_lossy(&got[..400]).to_ascii_lowercase();
        assert!(head.contains(&format!("content-length: {}", 8 * MIB)), "{head}");
    }
    let aborted = async || stage.daemon.metric("larder_responses_aborted_total", "").await;
    eventually("three cut answers", async || aborted().await.expect("metrics") >= 3.0).await;
}

#[tokio::test]
async fn a_small_file_cut_short_between_look_and_read_is_cut_too() {
    // A long recheck, so that the length in the table is certainly out of date.
    let stage = Stage::start("files_recheck = \"1h\"");
    stage.root.file("a.txt", pattern(5_000));
    assert_eq!(stage.over_both("/a.txt").await.map(|body| body.len()), [5_000, 5_000]);
    let file = File::options().write(true).open(stage.root.path().join("a.txt"));
    file.expect("a file").set_len(10).expect("cut short");
    let mut raw = RawClient::connect(stage.daemon.addrs()[0]).await.expect("a connection");
    raw.send(&request("GET", "/a.txt", ""), WriteSplit::Whole).await.expect("taken");
    match raw.patience(PATIENCE).reply("GET").await {
        ReplyOutcome::Truncated(reply) => assert!(reply.body.len() <= 10),
        ReplyOutcome::Nothing => {}
        other => panic!("{other:?}"),
    }
    let mut sealed = stage.authority.client().connect(stage.daemon.addrs()[1], "a.test").await;
    sealed.send(&support::tls::get("a.test", "/a.txt")).await.expect("taken");
    let seen = sealed.reply("GET").await;
    assert!(matches!(seen, ReplyOutcome::Truncated(_) | ReplyOutcome::Nothing), "{seen:?}");
}

#[tokio::test]
async fn a_file_replaced_under_way_arrives_as_it_was() {
    let stage = Stage::start("");
    let content = pattern(8 * MIB);
    stage.root.file("a.bin", &content);
    let mut client = stage.slow().await.expect("a connection");
    client.write_all(&request("GET", "/a.bin", "Connection: close\r\n")).await.expect("sent");
    let mut got = vec![0; 4096];
    client.read_exact(&mut got).await.expect("its beginning");
    stage.root.replace("a.bin", vec![b'#'; 8 * MIB]);
    let read = tokio::time::timeout(PATIENCE, client.read_to_end(&mut got)).await;
    read.expect("in time").expect("the rest");
    assert!(got.ends_with(&content), "one file, not two");
    eventually("the new one", async || stage.over_both("/a.bin").await[0][0] == b'#').await;
}

#[tokio::test]
async fn a_client_that_leaves_early_leaves_no_open_file_behind() {
    let stage = Stage::start("open_files = 0");
    stage.root.file("large.bin", pattern(8 * MIB));
    for _ in 0..5 {
        let mut client = stage.slow().await.expect("a connection");
        client.write_all(&request("GET", "/large.bin", "")).await.expect("sent");
        let mut got = [0; 1024];
        client.read_exact(&mut got).await.expect("its beginning");
    }
    let held = || {
        let folder = format!("/proc/{}/fd", stage.daemon.pid());
        let links = std::fs::read_dir(folder).expect("a process").flatten();
        let names = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        names.filter(|name| name.ends_with("large.bin")).count()
    };
    eventually("nothing is held", async || held() == 0).await;
}
