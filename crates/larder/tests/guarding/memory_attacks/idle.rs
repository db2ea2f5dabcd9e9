//! Idle connections after one request, beside a full cache.

use testkit::client::request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::fortress::{ATTACKS, Fortress, get, opens, site};
use crate::support::tls::{Authority, Kind};

/// Connections of a kind: more than find room. Those of HTTP/2 would take more than all memory.
const PLAIN: usize = 6_000;
const HTTP2: usize = 12_000;
const TLS: usize = 2_000;

/// Connections between two looks at other clients.
const ROUND: usize = 1_000;

/// No timeout ends these connections, however long it takes to open them.
const PATIENT: &str = "[limits]\nidle_timeout = \"10m\"\n";

/// Fills the store with pages.
async fn fill(fortress: &Fortress) {
    fortress.flood(3_500, |n| format!("/kept/{n}?bytes=20000")).await;
}

/// Asserts that idle connections are charged, and take no more than that.
async fn are_counted(fortress: &Fortress) {
    let of = async |name| fortress.daemon.metric(name, "").await.expect("metrics");
    let most = of("larder_memory_held_max_bytes").await * 0.75;
    let open = of("larder_memory_connections_bytes").await;
    assert!(open <= most && open > 0.9 * most, "{open} bytes of {most}");
    fortress.reached("connection_memory").await;
}

/// Opens a connection that asks with `bytes` and reads something of the answer.
async fn stays(fortress: &Fortress, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(fortress.daemon.addr()).await.expect("a connection");
    stream.write_all(bytes).await.expect("sent");
    assert!(stream.read(&mut [0; 4096]).await.expect("an answer") > 0);
    stream
}

async fn idle(count: usize, bytes: &[u8]) {
    let fortress = Fortress::with(|origin| format!("{PATIENT}{}", site(origin))).await;
    fill(&fortress).await;
    let mut open = Vec::new();
    while open.len() < count {
        for _ in 0..ROUND {
            open.push(stays(&fortress, bytes).await);
        }
        fortress.stands(&format!("{} connections", open.len())).await;
    }
    are_counted(&fortress).await;
    fortress.recovers_from(open).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_take_what_is_allowed() {
    idle(PLAIN, &request("GET", "/stored", ATTACKS)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_of_http2_take_what_is_allowed() {
    let ask = testkit::h2::Frame::headers(1, get("/stored"), true).bytes();
    idle(HTTP2, &[opens(1 << 30), ask].concat()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_of_tls_take_what_is_allowed() {
    let authority = Authority::new();
    authority.sign("shop", &["shop.test"], Kind::Elliptic);
    let fortress = Fortress::listening("\"127.0.0.1:0 tls\"", |origin| {
        let pair = authority.pair("shop").replace(", ", "\n");
        format!("{PATIENT}[tls]\n{pair}\n{}", site(origin))
    })
    .await;
    fill(&fortress).await;
    let addr = fortress.daemon.addrs()[1];
    let (client, mut open) = (authority.client(), Vec::new());
    while open.len() < TLS {
        for _ in 0..ROUND / 2 {
            let mut connection = client.connect(addr, "shop.test").await;
            let reply = connection.get("shop.test", "/stored").await;
            assert_eq!(reply.status, 200);
            open.push(connection);
        }
        fortress.stands(&format!("{} connections", open.len())).await;
    }
    are_counted(&fortress).await;
    let first = open.remove(0).stream.read(&mut [0]).await;
    assert_eq!(first.expect("the end is announced"), 0, "it made room for others");
    drop(open);
    fortress.recovers_from(Vec::new()).await;
}
