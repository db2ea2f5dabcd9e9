//! The CLI's answers about programs and parameters, line by line, as varnishd 7.1 gives them; where
//! varnishd is installed it is asked, too. Both are started with the same flags, and connect to the
//! test (`-M`).

use crate::support;

use std::process::{Child, Command, Stdio};

use regex::Regex;
use support::PATIENCE;
use support::cli::{Cli, SECRET, auth};
use support::folder::Folder;
use testkit::larder::binary;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const NONE: &str = "vcl 4.1; backend x none;";
const TOO_FEW: &str = "Too few parameters\n";
const TOO_MANY: &str = "Too many parameters\n";

/// Lines in their order: the status, and the text's pattern from end to end.
fn table(vcl: &str) -> Vec<(String, u16, String)> {
    let says = |line: &str, status, text: &str| (line.to_owned(), status, regex::escape(text));
    let like = |line: &str, status, text: &str| (line.to_owned(), status, text.to_owned());
    let inline = |name: &str, text: &str| format!("vcl.inline {name} \"{text}\"");
    let seconds =
        |value: &str, rest: &str| format!("default_ttl\n        Value is: {value}{rest}(?s).*");
    let try_it = |why: &str, name: &str, value: &str| {
        format!("{why}\n\n(attempting to set param '{name}' to '{value}')")
    };
    let faulty = r"(?s)Message from VCC-compiler:\n.*exited with 2\nVCL compilation failed";
    let stored_in = |storage: &str| {
        format!("{NONE} sub vcl_backend_response {{ set beresp.storage = storage.{storage}; }}")
    };
    vec![
        says("vcl.list", 200, "active   auto    warm         0    boot\n"),
        says(&format!("vcl.load a {vcl}"), 200, ""),
        says(&format!("vcl.load a {vcl}"), 106, "Already a VCL named a"),
        like("vcl.load b /nowhere.vcl", 106, faulty),
        says(&format!("vcl.load b {vcl} cold"), 200, ""),
        says(&format!("vcl.load c {vcl} warm"), 200, ""),
        says(&format!("vcl.load d {vcl} weird"), 106, "State must be one of auto, cold or warm."),
        says(&format!("vcl.load 1d {vcl}"), 106, "Illegal character in VCL name ('1')"),
        says(&format!("vcl.load x.y {vcl}"), 106, "Illegal character in VCL name ('.')"),
        says("vcl.load", 104, TOO_FEW),
        says("vcl.load a", 104, TOO_FEW),
        says(
            "vcl.list",
            200,
            "active      auto    warm         0    boot\navailable   auto    warm         0    a\n\
             available   cold    cold         0    b\navailable   warm    warm         0    c\n",
        ),
        says(&inline("i", NONE), 200, ""),
        like(&inline("bad", "vcl 4.1; backend x nonse;"), 106, faulty),
        like(&inline("bad", "vcl 4.1; backend x none; backend y none;"), 106, faulty),
        says(
            &inline("bad", "vcl 4.1; backend x none; sub vcl_init { return (fail); }"),
            300,
            "VCL \"bad\" Failed initialization\nMessage:\n\tFailed from VCL\n",
        ),
        says("vcl.use nowhere", 106, "No VCL named nowhere known\n"),
        says("vcl.use b", 300, "VCL 'b' is cold - set to auto or warm first"),
        says("vcl.use a", 200, "VCL 'a' now active"),
        says("vcl.use a", 200, ""),
        says("vcl.discard a", 300, "Cannot discard active VCL program a\n"),
        says("vcl.discard boot", 200, ""),
        says("vcl.discard boot", 106, "No VCL name matches boot\n"),
        says("vcl.state a cold", 300, "Cannot set the active VCL cold."),
        says("vcl.state c auto", 200, ""),
        says("vcl.state c x", 106, "State must be one of auto, cold or warm."),
        says("vcl.state nope auto", 106, "No VCL named nope known\n"),
        says("vcl.label lab a", 200, ""),
        says("vcl.label lab c", 200, ""),
        says("vcl.label a c", 106, "a is not a label"),
        says("vcl.label lab2 nope", 106, "No VCL named nope known\n"),
        says("vcl.label lab2 lab", 300, "VCL labels cannot point to labels"),
        says("vcl.label l3 b", 300, "VCL 'b' is cold - set to auto or warm first"),
        like(
            &inline(
                "s",
                "vcl 4.1; backend x none; sub vcl_recv { if (req.url) { return (vcl(lab)); } }",
            ),
            200,
            "",
        ),
        says(
            "vcl.list",
            200,
            "active      auto     warm         0    a\navailable   cold     cold         0    b\n\
             available   auto     warm         0    c      <-    (1 label)\n\
             available   auto     warm         0    i\n\
             available   label    warm         0    lab    ->    c (1 return(vcl))\n\
             available   auto     warm         0    s\n",
        ),
        says("vcl.deps", 200, "a\nb\nc\ni\nlab   c\ns     lab\n"),
        says("vcl.discard c", 300, "Cannot discard labeled VCL program c:\n\tlab\n"),
        says(
            "vcl.discard lab",
            300,
            "Cannot discard VCL label lab, other VCLs depend on it:\n\ts\n",
        ),
        says("vcl.discard s i", 200, ""),
        says("vcl.discard nothing*", 106, "No VCL name matches nothing*\n"),
        says("vcl.use lab", 200, "VCL 'lab' now active"),
        says("vcl.state lab cold", 106, "Labels are always warm"),
        says("vcl.show nope", 106, "No VCL named 'nope'"),
        says("vcl.show a b", 106, "Too many parameters: 'b'"),
        like("vcl.show a", 200, "(?s)vcl 4\\.1;.*"),
        like(
            "vcl.show -v a",
            200,
            "(?s)// VCL\\.SHOW 0 \\d+ .*vcl 4\\.1;.*\n// VCL\\.SHOW 1 \\d+ <builtin>\n.*",
        ),
        says("vcl.label l9 c cold", 105, TOO_MANY),
        says("vcl.use a b", 105, TOO_MANY),
        // Parameters.
        like(
            "param.show default_ttl",
            200,
            &seconds("120\\.000 \\[seconds\\] \\(default\\)\n", "        Minimum is: 0\\.000\n\n"),
        ),
        says("param.set default_ttl 10.5", 200, ""),
        like(
            "param.show default_ttl",
            200,
            &seconds(
                "10\\.500 \\[seconds\\]\n",
                "        Default is: 120\\.000\n        Minimum is: 0\\.000\n\n",
            ),
        ),
        says(
            "param.set default_ttl -1",
            106,
            &try_it("Must be greater or equal to 0.000", "default_ttl", "-1"),
        ),
        says("param.set default_ttl x", 106, &try_it("Invalid number (x)", "default_ttl", "x")),
        says("param.set prefer_ipv6 on", 107, "parameter \"prefer_ipv6\" is protected."),
        says("param.set prefer_ipv6 x", 107, "parameter \"prefer_ipv6\" is protected."),
        says("param.set -j prefer_ipv6 on", 107, "parameter \"prefer_ipv6\" is protected."),
        says("param.reset prefer_ipv6", 107, "parameter \"prefer_ipv6\" is protected."),
        says("param.set prefer_ipv6 on off", 105, TOO_MANY),
        like(
            "param.show prefer_ipv6",
            200,
            "(?s)prefer_ipv6\n        Value is: off \\[bool\\] \\(default\\)\n\n.*\n\n        NB: This \
             parameter is protected and can not be changed\\.\n\n",
        ),
        like(
            "param.show -j prefer_ipv6",
            200,
            "(?s).*\"flags\": \\[\n      \"protected\"\n    \\]\n  }\n\\]\n",
        ),
        says("param.set nothing 1", 106, "Unknown parameter \"nothing\"."),
        says("param.set default_ttl", 104, TOO_FEW),
        says("param.set max_restarts -1", 200, ""),
        says(
            "param.set max_restarts 1.5",
            106,
            &try_it("Not a number (1.5)", "max_restarts", "1.5"),
        ),
        says(
            "param.set http_max_hdr 10",
            106,
            &try_it("Must be at least 32", "http_max_hdr", "10"),
        ),
        says(
            "param.set workspace_client 1k",
            106,
            &try_it("Must be at least 9k", "workspace_client", "1k"),
        ),
        says("param.set workspace_client 128k", 200, ""),
        says(
            "param.set feature +nothing",
            106,
            &try_it("Unknown feature bit (+nothing)", "feature", "+nothing"),
        ),
        says(
            "param.set vcc_allow_inline_c maybe",
            106,
            &try_it("use \"on\" or \"off\"", "vcc_allow_inline_c", "maybe"),
        ),
        says(
            "param.set thread_pool_min 10000",
            106,
            &try_it("Must be no more than 5000 (thread_pool_max)", "thread_pool_min", "10000"),
        ),
        says(
            "param.set accept_filter on",
            300,
            "parameter \"accept_filter\" is not available on this platform.",
        ),
        says(
            "param.show changed",
            200,
            "default_ttl                   10.500 [seconds]\n\
             max_restarts                  unlimited [restarts]\n\
             workspace_client              128k [bytes]\n",
        ),
        like(
            "param.set -j default_ttl 20",
            200,
            "(?s)\\[ 2, \\[\"param\\.set\", \"-j\", \"default_ttl\"\\], .*\"value\": 20\\.000,.*\"default\": \"120\\.000\",.*\\]\n",
        ),
        says("param.reset default_ttl", 200, ""),
        says("param.reset nothing", 106, "Unknown parameter \"nothing\"."),
        says("param.reset -j default_ttl", 102, "JSON unimplemented\n"),
        says(
            "storage.list",
            200,
            "Storage devices:\n\tstorage.s0 = malloc\n\tstorage.big = malloc\n\tstorage.s1 = malloc\n\
             \tstorage.Transient = malloc\n",
        ),
        says(&inline("stored", &stored_in("big")), 200, ""),
        says(&inline("stored1", &stored_in("s1")), 200, ""),
        like(&inline("stored2", &stored_in("s2")), 106, faulty),
        // What is declared and not used.
        like(&inline("unused", &format!("{NONE} backend y none;")), 106, faulty),
        says("param.set vcc_err_unref off", 200, ""),
        like(&inline("unused", &format!("{NONE} backend y none;")), 200, "(?s).*y.*"),
        like(&inline("none", "vcl 4.1; sub mine { }"), 106, faulty),
        says("param.reset vcc_err_unref", 200, ""),
        // Long replies.
        says("param.set cli_limit 127", 106, &try_it("Must be at least 128b", "cli_limit", "127")),
        says("param.set cli_limit 128", 200, ""),
        like("help", 201, "(?s).{127}"),
        like(&inline("again", &format!("{NONE} backend y none;")), 106, "(?s).{127}"),
        says("vcl.use stored", 200, "VCL 'stored' now active"),
        says("param.reset cli_limit", 200, ""),
        like("help", 200, "(?s).{128}.*"),
        says("debug.xid 1000", 200, "XID is 1000 chunk 1"),
        says("debug.xid 1000 5", 200, "XID is 1000 chunk 5"),
    ]
}

/// One of the two, under equal flags.
struct Peer {
    child: Child,
    folder: Folder,
}

impl Peer {
    fn start(mut command: Command, master: &TcpListener, listen: &str) -> Option<Self> {
        let folder = Folder::new();
        folder.file("secret", SECRET);
        folder.file(
            "boot.vcl",
            "vcl 4.1;\nbackend default { .host = \"127.0.0.1\"; .port = \"9\"; }\n",
        );
        let at = |name: &str| folder.path().join(name).display().to_string();
        let master = master.local_addr().expect("bound").to_string();
        let started = command
            .args(["-F", "-s", "malloc,10m", "-s", "big=malloc,5m", "-s", "malloc,5m"])
            .args(["-a", listen, "-M", &master])
            .args(["-n", &at("work"), "-S", &at("secret"), "-f", &at("boot.vcl")])
            .args(["-r", "prefer_ipv6"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Some(Self { child: started.ok()?, folder })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Asked nicely varnishd ends its child, too. The id is that of a child not yet waited for.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id() as i32) {
            _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        _ = self.child.wait();
    }
}

/// A server that has connected to `master`, once it runs; `None` without varnishd.
async fn run(command: Command, master: &TcpListener, listen: &str) -> Option<(Peer, Cli)> {
    let Some(peer) = Peer::start(command, master, listen) else {
        eprintln!("skipped: no varnishd");
        return None;
    };
    let accepted = timeout(PATIENCE, master.accept()).await.expect("it connects");
    let (mut cli, (_, greeting)) = Cli::over(accepted.expect("a connection").0).await;
    assert_eq!(cli.ask(&auth(&greeting, SECRET)).await.0, 200);
    while cli.ask("status").await.1 != "Child in state running" {
        support::pause(50).await;
    }
    Some((peer, cli))
}

/// HTTP/2 can be switched on and off while it runs, for connections that come then.
async fn switches_http2(command: Command, address: &str) {
    let master = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    // An address on which only this test listens: its ports are free.
    let free = TcpListener::bind(address).await.expect("a port").local_addr().expect("bound");
    let Some((_peer, mut cli)) = run(command, &master, &free.to_string()).await else { return };
    for (line, speaks) in
        [("ping", false), ("param.set feature +http2", true), ("param.set feature -http2", false)]
    {
        assert_eq!(cli.ask(line).await.0, 200, "{line}");
        support::eventually(line, async || speaks_http2(free).await == speaks).await;
    }
}

/// Returns true if the listener at `address` answers the preface of HTTP/2 (RFC 9113 3.4) with its
/// own preface.
async fn speaks_http2(address: std::net::SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    if stream.write_all(preface).await.is_err() {
        return false;
    }
    let mut frame = [0; 9];
    let read = timeout(PATIENCE, stream.read_exact(&mut frame)).await;
    matches!(read, Ok(Ok(_))) && frame[3] == 4
}

#[tokio::test]
async fn larder_switches_http2_while_it_runs() {
    let mut command = Command::new(binary().expect("the binary"));
    command.arg("serve");
    switches_http2(command, "127.78.0.1:0").await;
}

#[tokio::test]
async fn varnishd_switches_http2_while_it_runs() {
    switches_http2(Command::new("varnishd"), "127.78.0.2:0").await;
}

async fn holds(command: Command) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let Some((peer, mut cli)) = run(command, &listener, "127.0.0.1:0").await else { return };
    let mut faults = Vec::new();
    for (line, status, text) in table(&peer.folder.path().join("boot.vcl").display().to_string()) {
        let (own, said) = cli.ask(&line).await;
        let pattern = Regex::new(&format!("^{text}$")).expect("a pattern");
        if own != status || !pattern.is_match(&said) {
            faults.push(format!("{line}: {own} {said:?}, expected {status} {text:?}"));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

#[tokio::test]
async fn larder_answers_as_the_table_says() {
    let mut command = Command::new(binary().expect("the binary"));
    command.arg("serve");
    holds(command).await;
}

#[tokio::test]
async fn varnishd_answers_as_the_table_says() {
    holds(Command::new("varnishd")).await;
}
