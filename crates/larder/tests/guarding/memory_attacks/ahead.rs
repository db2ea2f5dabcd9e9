//! Attacks by input that arrives too early, and by output that cannot be sent yet: pipelined
//! requests, endless heads, responses to many small requests, and bytes from a tunnel.

use testkit::client::{RawClient, request};
use testkit::h2::Frame;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::bodies;
use super::fortress::{ATTACKS, Fortress, get, opens};
use crate::support::{PATIENCE, whole};

/// Connections of an attack.
const CONNECTIONS: usize = 1_200;
/// Tunnels.
const TUNNELS: u64 = 8;

/// Opens `count` connections that send `bytes` and read nothing.
async fn deaf(fortress: &Fortress, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for n in 0..count {
        open.push(fortress.deaf(bytes).await);
        if n % 300 == 299 {
            fortress.stands(&format!("{} connections", n + 1)).await;
        }
    }
    fortress.stands("all of them").await;
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_sent_ahead_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let mut bytes = request("GET", "/never/answered", ATTACKS);
    let ahead = request("GET", "/stored", ATTACKS);
    bytes.extend(ahead.repeat(120 * 1024 / ahead.len()));
    let open = deaf(&fortress, CONNECTIONS, &bytes).await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_leave_other_clients_room_for_theirs() {
    let fortress = Fortress::start().await;
    let bytes = fortress.eager(100, || get("/never/answered"));
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS / 4 {
        open.push(fortress.deaf(&bytes).await);
    }
    fortress.reached("client_memory").await;
    fortress.stands("hundreds of connections wait").await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_without_end_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let mut bytes = request("GET", "/stored", ATTACKS);
    bytes.truncate(bytes.len() - 2);
    for n in 0..4 {
        bytes.extend(format!("X-Long-{n}: {}\r\n", "h".repeat(7_900)).into_bytes());
    }
    let open = deaf(&fortress, 2 * CONNECTIONS, &bytes).await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_to_many_small_requests_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    fortress.stands("before").await;
    let bytes = request("GET", "/stored?bytes=14000", ATTACKS).repeat(300);
    let open = deaf(&fortress, CONNECTIONS, &bytes).await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_to_many_small_requests_of_http2_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let open =
        deaf(&fortress, CONNECTIONS, &fortress.eager(200, || get("/stored?bytes=1900"))).await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tunnels_hold_what_is_on_its_way_and_no_more() {
    let fortress = Fortress::start().await;
    let wish = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let tunnels = async |target| {
        let mut open = Vec::new();
        for _ in 0..TUNNELS {
            open.push(fortress.deaf(&request("GET", target, wish)).await);
        }
        fortress.daemon.assert_metric("larder_tunnels_open", TUNNELS).await;
        open
    };
    let idle = tunnels("/tunnel/idle").await;
    let least = TUNNELS as f64 * 4.0 * 1024.0;
    fortress.holds("idle tunnels", least..=2.0 * least).await;
    fortress.recovers_from(idle).await;
    let unread = tunnels("/tunnel/full").await;
    fortress.holds("tunnels that nobody reads from", 2.0 * least..=20.0 * least).await;
    fortress.recovers_from(unread).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_without_end_of_http2_take_what_is_allowed() {
    let fortress = Fortress::start().await;
    let mut bytes = opens(0);
    bytes.extend(Frame::open_headers(1, get("/stored"), true).bytes());
    for _ in 0..2 {
        // A literal field with a value longer than what is sent.
        let part = [&b"\x00\x01x\x7f\xff\x7f"[..], &[b'h'; 14_000]].concat();
        bytes.extend(Frame::continuation(1, part, false).bytes());
    }
    let half = Frame::continuation(1, vec![b'h'; 16_000], false).bytes();
    bytes.extend(&half[..15_000]);
    let open = deaf(&fortress, 2 * CONNECTIONS, &bytes).await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_pages_that_a_program_makes_take_what_is_allowed() {
    let program = "vcl 4.1;\nbackend app { .host = \"127.0.0.1\"; .port = \"PORT\"; \
                   .connect_timeout = 30s; .first_byte_timeout = 30s; }\n\
                   sub vcl_recv { if (req.url ~ \"^/made\") { return (synth(200)); } }\n\
                   sub vcl_synth { set resp.body = regsuball(req.url, \"x\", \"FILL\"); \
                   return (deliver); }\n";
    let program = program.replace("FILL", &"made ".repeat(120));
    let fortress = Fortress::of_program(&program).await;
    let target = format!("/made/{{}}{}", "x".repeat(100));
    let deaf = bodies::unread(&fortress, &target).await;
    fortress.recovers_from(deaf).await;
}

/// Chained substitutions in a program: each of seven makes the text sixteen times as long.
#[tokio::test(flavor = "multi_thread")]
async fn chained_substitutions_take_what_is_allowed() {
    let more = "x".repeat(16);
    let within = |inner: String| format!("regsuball({inner}, \"x\", \"{more}\")");
    let once = within("req.http.X-Seed".to_owned());
    let nested = (0..6).fold(once.clone(), |inner, _| within(inner));
    let apart =
        format!("set req.http.X-Seed = regsuball(req.http.X-Seed, \"x\", \"{more}\");\n").repeat(7);
    let program = format!(
        "vcl 4.1;\nbackend app {{ .host = \"127.0.0.1\"; .port = \"PORT\"; }}\n\
         sub vcl_recv {{\nset req.http.X-Seed = \"{more}\";\n\
         if (req.url == \"/once\") {{ set req.http.X-Grown = {once}; return (synth(200)); }}\n\
         if (req.url == \"/nested\") {{ set req.http.X-Grown = {nested}; return (synth(200)); }}\n\
         if (req.url == \"/apart\") {{ {apart} return (synth(200)); }}\n}}\n"
    );
    let fortress = Fortress::of_program(&program).await;
    let addr = fortress.daemon.addr();
    for (target, status) in [("/once", 200), ("/nested", 503), ("/apart", 503)] {
        let mut attackers = JoinSet::new();
        for _ in 0..40 {
            attackers.spawn(async move {
                let raw = RawClient::connect(addr).await.expect("a connection").patience(PATIENCE);
                whole(raw.exchange(&request("GET", target, ATTACKS)).await, target).status
            });
        }
        let answered = attackers.join_all().await;
        assert_eq!(answered, [status; 40], "{target}");
        fortress.stands(target).await;
    }
    fortress.gives_back().await;
}
