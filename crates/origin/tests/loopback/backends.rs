//! Backends of a VCL: connection openings, timeouts per request, a default Host, addresses in
//! order, and Varnish's probes.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use message::Method;
use origin::{
    Address, ClientEnds, Error, Opening, OriginRequestContext, ProbeConfig, ProbeVerdict,
    ProxyHeader, RequestBody, TimeoutStep, Timeouts, run_background,
};
use parking_lot::Mutex;

use crate::kit::*;

/// A server that answers 200 and records the heads it received.
async fn listening() -> (Scripted, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let server = Scripted::new(move |_, mut conn| {
        let kept = Arc::clone(&kept);
        async move {
            while let Some(head) = conn.head().await {
                kept.lock().push(head);
                conn.send(OK).await;
            }
        }
    })
    .await;
    (server, heads)
}

fn heads(of: &Mutex<Vec<String>>) -> Vec<String> {
    of.lock().clone()
}

async fn get_as(client: &Client, caller: &OriginRequestContext) -> Result<String, Error> {
    let (get, mut events) = (request(Method::Get), ());
    let sending = client.pool.send(&client.origin, &get, RequestBody::None, 0, caller, &mut events);
    let mut exchange = tokio::time::timeout(LONG, sending).await.expect("an outcome")?;
    read(&mut exchange).await
}

#[tokio::test]
async fn a_preamble_opens_every_connection_and_no_request() {
    let (server, seen) = listening().await;
    let client = Client::new(&[&server.url], |config| {
        config.opening.preamble = Bytes::from_static(b"hello\n");
    });
    for _ in 0..2 {
        client.get().await.expect("a response");
    }
    let heads = heads(&seen);
    assert!(heads[0].starts_with("hello\nGET /a?b HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[1].starts_with("GET /a?b HTTP/1.1\r\n"), "{}", heads[1]);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_proxy_header_tells_of_the_client_on_a_connection_of_its_own() {
    let (server, seen) = listening().await;
    let client = Client::new(&[&server.url], |config| {
        let preamble = Bytes::from_static(b"hello\n");
        config.opening = Opening { preamble, proxy: Some(ProxyHeader::V1) };
    });
    for port in [1001, 1002] {
        let peer = SocketAddr::from(([192, 0, 2, 1], port));
        let own = SocketAddr::from(([192, 0, 2, 2], 80));
        let caller = OriginRequestContext {
            ends: Some(ClientEnds { client: peer, own }),
            ..OriginRequestContext::default()
        };
        get_as(&client, &caller).await.expect("a response");
    }
    for (head, port) in heads(&seen).iter().zip([1001, 1002]) {
        let line = format!("hello\nPROXY TCP4 192.0.2.1 192.0.2.2 {port} 80\r\nGET /a?b ");
        assert!(head.starts_with(&line), "{head}");
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn version_2_says_that_a_connection_without_client_is_the_proxys_own() {
    let header = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&header);
    let server = Scripted::new(move |_, mut conn| {
        let kept = Arc::clone(&kept);
        async move {
            let bytes = conn.bytes(16).await;
            kept.lock().extend(bytes);
            conn.answer_all(OK).await;
        }
    })
    .await;
    let client = Client::new(&[&server.url], |config| {
        config.opening.proxy = Some(ProxyHeader::V2);
    });
    client.get().await.expect("a response");
    let header = header.lock().clone();
    let read = proxyproto::read(&header, 16);
    assert_eq!(read, Ok(proxyproto::HeaderProgress::Complete(proxyproto::Header::Local, 16)));
}

#[tokio::test]
async fn a_request_may_have_timeouts_of_its_own() {
    let server = Scripted::new(|_, conn| conn.hang()).await;
    let client = Client::new(&[&server.url], |_| {});
    let timeouts = Timeouts { first_byte_ms: 30, ..client.origin.config().timeouts };
    let caller =
        OriginRequestContext { timeouts: Some(timeouts), ..OriginRequestContext::default() };
    let error = get_as(&client, &caller).await.expect_err("no answer");
    let ours = matches!(error, Error::Timeout { step: TimeoutStep::FirstByte, after_ms: 30, .. });
    assert!(ours, "{error}");
}

#[tokio::test]
async fn a_host_is_added_only_where_there_is_none() {
    let (server, seen) = listening().await;
    let client = Client::new(&[&server.url], |config| {
        config.host_default = Some("app:8080".to_owned());
    });
    let mut get = request(Method::Get);
    client.send(&get, RequestBody::None).await.expect("a response");
    get.host.clear();
    client.send(&get, RequestBody::None).await.expect("a response");
    let heads = heads(&seen);
    assert!(heads[0].contains("\r\nHost: www.example\r\n"), "{}", heads[0]);
    assert!(heads[1].contains("\r\nHost: app:8080\r\n"), "{}", heads[1]);
}

#[tokio::test]
async fn fixed_addresses_are_tried_in_order() {
    let address = |url: &str| -> SocketAddr {
        url.strip_prefix("http://").expect("a URL").parse().expect("an address")
    };
    let (good, other) = (Scripted::answering(OK).await, Scripted::answering(OK).await);
    let addresses = [&refusing().await, &good.url, &other.url].map(|url| address(url)).to_vec();
    let client = Client::new(&[&good.url], |config| {
        config.servers[0].address = Address::Fixed { name: "app".to_owned(), addresses };
        config.idle_max = 0;
    });
    for _ in 0..3 {
        client.get().await.expect("a response");
    }
    assert_eq!((good.connections(), other.connections()), (3, 0));
    assert_eq!(&*client.origin.servers()[0].name, "app");
}

#[tokio::test]
async fn a_probe_may_want_the_connection_closed_and_then_reads_the_first_line() {
    // By number of the connection: no end, no byte, no HTTP, then good ones.
    let server = Scripted::new(|number, mut conn| async move {
        let head = conn.head().await.expect("a request");
        assert_eq!(head, "GET /up HTTP/1.1\r\n\r\n");
        match number {
            0 => {
                conn.send(OK).await;
                conn.hang().await;
            }
            1 => {}
            2 => conn.send("hello\r\n").await,
            _ => conn.send("HTTP/1.1 200\r\nno field").await,
        }
    })
    .await;
    let client = Client::new(&[&server.url], |config| {
        config.probe = Some(ProbeConfig {
            request: Some(b"GET /up HTTP/1.1\r\n\r\n".to_vec()),
            initial: Some(2),
            expect_close: true,
            interval_ms: 10,
            timeout_ms: 1_000,
            ..ProbeConfig::default()
        });
    });
    assert_eq!(
        client.origin.servers()[0].probed,
        ProbeVerdict::Sick,
        "until the first one has ended"
    );
    let background = tokio::spawn(run_background(Arc::clone(&client.origin), None));
    eventually(|| client.origin.is_healthy()).await;
    background.abort();
    let seen = client.origin.servers().remove(0).history;
    // The first four, with two assumed before; more may have followed.
    let after = seen.ipv4.count_ones() - 4;
    let bits = [seen.good, seen.ipv4, seen.sent, seen.unsent, seen.received, seen.failed];
    assert_eq!(bits.map(|bits| bits >> after), [0b11_0001, 0b1111, 0b1111, 0, 0b0011, 0b1000]);
    assert!(seen.average > 0.0);
}
