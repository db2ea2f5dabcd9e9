//! Tests of name resolution.

use super::dns::{Hosts, build, in_hosts};
use super::*;
use std::sync::atomic::{AtomicU8, Ordering};

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use tokio::net::UdpSocket;

use crate::config::OriginConfig;

#[test]
fn the_hosts_file_answers_for_both_families_in_any_case() {
    let mut hosts = Hosts::default();
    let file = "10.0.0.1 app App2 # a comment\n::1 app\n10.0.0.2 other\n";
    hosts.read_hosts_conf(file.as_bytes()).expect("a readable hosts file");
    let ips: Vec<IpAddr> = ["10.0.0.1", "::1"].map(|ip| ip.parse().expect("an address")).into();
    assert_eq!(in_hosts(&hosts, "app"), ips);
    assert_eq!(in_hosts(&hosts, "app2"), ips[..1]);
    assert_eq!(in_hosts(&hosts, "nowhere"), Vec::<IpAddr>::new());
}

/// The value for which the name server below answers NXDOMAIN; for n from 1 to 199 it answers
/// 10.0.0.n.
const NXDOMAIN: u8 = 200;

/// A name server that answers every A query with `10.0.0.<last>` and a time to live of a second.
async fn name_server(last: Arc<AtomicU8>) -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let port = socket.local_addr().expect("an address").port();
    rt::spawn(async move {
        let mut query = [0; 1500];
        while let Ok((_, peer)) = socket.recv_from(&mut query).await {
            let reply = reply(&query, last.load(Ordering::SeqCst));
            let _ = socket.send_to(&reply, peer).await;
        }
    });
    port
}

/// RFC 1035 4: header, the query's question, and for A one record that points back to its name.
fn reply(query: &[u8], last: u8) -> Vec<u8> {
    let name_end = 12 + query[12..].iter().position(|b| *b == 0).expect("a name") + 1;
    let question = &query[12..name_end + 4];
    let is_a = query[name_end..name_end + 2] == [0, 1];
    let records = u8::from(is_a && last != NXDOMAIN);
    let code = if last == NXDOMAIN { 3 } else { 0 };
    let mut reply = vec![query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, records, 0, 0, 0, 0];
    reply.extend_from_slice(question);
    if records == 1 {
        reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 10, 0, 0, last]);
    }
    reply
}

fn server(url: &str) -> Arc<Server> {
    let config = crate::parse_server(url).expect("a good URL");
    let limits = base::Limits::default();
    let origin = OriginConfig::with_limits("o", vec![config.clone()], &limits);
    Arc::new(Server::new(config, &origin))
}

async fn eventually(mut what: impl FnMut() -> bool) {
    let waiting = async {
        while !what() {
            rt::time::sleep(Duration::from_millis(10)).await;
        }
    };
    rt::time::timeout(Duration::from_secs(60), waiting).await.expect("it happens");
}

#[tokio::test]
async fn a_change_of_address_is_followed_and_a_failure_keeps_the_last_good_one() {
    let last = Arc::new(AtomicU8::new(1));
    let port = name_server(Arc::clone(&last)).await;
    let server = server("http://app.example:8080");
    let make = move || {
        let mut connection = ConnectionConfig::udp();
        connection.port = port;
        let mut names = NameServerConfig::udp(IpAddr::from([127, 0, 0, 1]));
        names.connections = vec![connection];
        let config = ResolverConfig::from_parts(None, Vec::new(), vec![names]);
        build(Resolver::builder_with_config(config, TokioRuntimeProvider::default()))
    };
    let host = "app.example".to_owned();
    let task = rt::spawn(resolve_for_ever(
        Arc::clone(&server),
        host,
        8080,
        LookupSchedule::default(),
        make,
    ));
    let at = |last: u8| vec![SocketAddr::from(([10, 0, 0, last], 8080))];
    eventually(|| server.addresses() == at(1)).await;
    assert_eq!(server.last_error(), None);

    last.store(2, Ordering::SeqCst);
    eventually(|| server.addresses() == at(2)).await;

    last.store(NXDOMAIN, Ordering::SeqCst);
    eventually(|| server.last_error().is_some()).await;
    assert_eq!(server.addresses(), at(2));

    last.store(3, Ordering::SeqCst);
    eventually(|| server.addresses() == at(3)).await;
    task.abort();
}

#[test]
fn names_are_looked_up_again_when_settings_or_answers_say() {
    use crate::config::LookupTtl;
    let seconds = Duration::from_secs;
    for (from, pause) in
        [(LookupTtl::Own, 60), (LookupTtl::Answer, 5), (LookupTtl::Min, 5), (LookupTtl::Max, 60)]
    {
        let times = Lookups { from, ttl_ms: 60_000, retry_ms: 0 };
        assert_eq!(times.pause(seconds(5)), seconds(pause), "{from:?}");
        assert_eq!(times.retry(), seconds(1));
    }
    // A change has effect within hours, in spite of a long time to live, and lookups are not
    // constant.
    assert_eq!(Lookups::default().pause(seconds(86_400)), seconds(3_600));
    assert_eq!(Lookups::default().pause(seconds(0)), seconds(1));
}

#[test]
fn p24_dns_leads_to_no_metadata_service() {
    let read = |texts: &[&str]| -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().expect("an address")).collect()
    };
    for bad in [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "fe80::1",
        "fd00:ec2::254",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "255.255.255.255",
        "ff02::1",
    ] {
        let only = admissible(read(&[bad]).into_iter());
        assert!(only.is_err_and(|why| why.contains("DNS")), "{bad}");
        let mixed = admissible(read(&[bad, "192.0.2.1"]).into_iter());
        assert_eq!(mixed, Ok(read(&["192.0.2.1"])), "{bad}");
    }
    // Private addresses are the normal case behind this proxy.
    let good = read(&["10.0.0.1", "127.0.0.1", "192.168.0.1", "fd12::1", "::1", "203.0.113.7"]);
    assert_eq!(admissible(good.clone().into_iter()), Ok(good));
    assert_eq!(admissible(std::iter::empty()), Ok(Vec::new()));
}

/// A name server for two crawlers: 192.0.2.1 has a name that leads back to it, and 192.0.2.2 has
/// one that leads to 192.0.2.1. No other address has a name.
async fn crawlers_name_server() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let port = socket.local_addr().expect("an address").port();
    rt::spawn(async move {
        let mut query = [0; 1500];
        while let Ok((_, peer)) = socket.recv_from(&mut query).await {
            let _ = socket.send_to(&reply_about_crawlers(&query), peer).await;
        }
    });
    port
}

fn reply_about_crawlers(query: &[u8]) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|b| *b == 0).expect("a name") + 1;
    let (name, kind) = (&query[12..end], u16::from_be_bytes([query[end], query[end + 1]]));
    let mut labels = Vec::new();
    let mut at = 0;
    while let Some(length) = name.get(at).copied().filter(|length| *length > 0) {
        let label = &name[at + 1..at + 1 + usize::from(length)];
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        at += 1 + usize::from(length);
    }
    let target = b"\x05crawl\x09googlebot\x03com\x00";
    let data: Option<&[u8]> = match (labels.join(".").as_str(), kind) {
        ("1.2.0.192.in-addr.arpa" | "2.2.0.192.in-addr.arpa", 12) => Some(target),
        ("crawl.googlebot.com", 1) => Some(&[192, 0, 2, 1]),
        _ => None,
    };
    let code = if data.is_some() || labels[0] == "crawl" { 0 } else { 3 };
    let records = u8::from(data.is_some());
    let mut reply = vec![query[0], query[1], 0x81, 0x80 | code, 0, 1, 0, records, 0, 0, 0, 0];
    reply.extend_from_slice(&query[12..end + 4]);
    if let Some(data) = data {
        reply.extend_from_slice(&[0xc0, 12, 0, query[end + 1], 0, 1, 0, 0, 0, 60]);
        reply.extend_from_slice(&[0, data.len() as u8]);
        reply.extend_from_slice(data);
    }
    reply
}

#[tokio::test]
async fn an_address_is_a_crawlers_if_its_name_leads_back_to_it() {
    let port = crawlers_name_server().await;
    let mut connection = ConnectionConfig::udp();
    connection.port = port;
    let mut names = NameServerConfig::udp(IpAddr::from([127, 0, 0, 1]));
    names.connections = vec![connection];
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![names]);
    let resolver = build(Resolver::builder_with_config(config, TokioRuntimeProvider::default()));
    let resolver = resolver.expect("a resolver");
    let google = ["googlebot.com".into(), "google.com".into()];
    let bing = ["search.msn.com".into()];
    for (last, domains, is_one) in [
        (1, &google[..], true),
        (1, &bing, false),
        // The holder of an address may give it any name.
        (2, &google, false),
        (3, &google, false),
    ] {
        let address = IpAddr::from([192, 0, 2, last]);
        let found = address_names::is_below(&resolver, address, domains).await;
        assert_eq!(found, Ok(is_one), "{address} {domains:?}");
    }
    let mapped = "::ffff:192.0.2.1".parse().expect("an address");
    assert_eq!(address_names::is_below(&resolver, mapped, &google).await, Ok(true));
}
