//! The HTCP port (RFC 2756): CLR purges one URL by one datagram, as MediaWiki sends them to many
//! caches; TST is the question of a Squid for what a sibling has stored.
//!
//! An address without permission must never get a reply.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base::{Counter, Counters};
use flow::explain::{ForecastOutcome, explain};
use flow::invalidate::{Cause, InvalidationSource};
use flow::purge::PurgeContext;
use flow::reply::CacheOutcome;
use flow::{CidrSet, ConnectionPeer};
use h1::{ReadProgress, RequestReader};
use message::{HeaderId, Request, Scheme, class, target};
use purge::htcp::{DATAGRAM_BYTES, HtcpRequest, Operation};
use tokio::net::UdpSocket;

use crate::ports::Port;
use crate::state::Daemon;

/// Milliseconds that a reply waits for the count of purged objects.
const COUNT_MS: u64 = 50;

/// State that the ports share.
struct HtcpPort {
    daemon: Arc<Daemon>,
    counters: Arc<Counters>,
    allow: CidrSet,
}

/// Serves datagrams on `ports`.
pub(crate) fn start(daemon: &Arc<Daemon>, config: Option<&config::Htcp>, ports: Vec<Port>) {
    let Some(config) = config else { return };
    let counters = daemon.shared.counters.register();
    let allow = config.allow.clone();
    let shared = Arc::new(HtcpPort { daemon: Arc::clone(daemon), counters, allow });
    for port in ports {
        let shared = Arc::clone(&shared);
        port.hold(&daemon.ports, move |socket| {
            let socket = Arc::new(UdpSocket::from_std(socket.into())?);
            rt::spawn(async move {
                let serve = || serve(&shared, &socket);
                let served = net::run_with_restarts(serve, || shared.counters.inc(Counter::Panics));
                tokio::select! {
                    () = served => {}
                    _ = shared.daemon.succession.replaced() => {}
                }
            });
            Ok(())
        });
    }
}

async fn serve(port: &HtcpPort, socket: &UdpSocket) {
    let mut buffer = vec![0; DATAGRAM_BYTES];
    loop {
        if take(port, socket, &mut buffer).await.is_err() {
            // Both receiving and sending report earlier errors, too.
            rt::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Handles one datagram, and replies if the sender wants that.
async fn take(port: &HtcpPort, socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<()> {
    let (len, peer) = socket.recv_from(buffer).await?;
    // Datagrams without permission are not even parsed.
    let question = match port.allow.contains(peer.ip()) {
        true => HtcpRequest::read(&buffer[..len]).ok(),
        false => None,
    };
    let was_there = match &question {
        Some(question) if question.operation == Operation::Test => test(port, question, peer).await,
        Some(question) => clear(port, question, peer).await,
        None => None,
    };
    let (Some(question), Some(was_there)) = (question, was_there) else {
        port.counters.inc(Counter::HtcpRefused);
        return Ok(());
    };
    if question.wants_answer {
        socket.send_to(&question.answer(was_there), peer).await?;
    }
    Ok(())
}

/// Purges a URL. Returns true if something was stored for it.
async fn clear(port: &HtcpPort, question: &HtcpRequest<'_>, peer: SocketAddr) -> Option<bool> {
    let objects = purge(port, question.url, peer).await?;
    port.counters.inc(Counter::HtcpClears);
    port.counters.add(Counter::Invalidations, objects);
    Some(objects > 0)
}

/// Returns true if a request would be answered with a stored response; `None` for no valid request,
/// or for no known site.
async fn test(port: &HtcpPort, question: &HtcpRequest<'_>, peer: SocketAddr) -> Option<bool> {
    let Request { scheme, host, port: own_port, target, .. } = read_url(question.url)?;
    let live = port.daemon.shared.live();
    live.sites.by_host.find(&host)?;
    // The request as it would arrive at a listener.
    let head = [question.method, b" / HTTP/1.0\r\n", question.fields, b"\r\n"].concat();
    let mut request = Request::new();
    let read =
        RequestReader::new().read(&head, &live.connections.head_limits, scheme, &mut request);
    let Ok(ReadProgress::Complete(_)) = read else { return None };
    // A program reads the port where a client would have sent it.
    let port_text = own_port.map_or_else(String::new, |port| format!(":{port}"));
    request.headers.set(HeaderId::Host, &[&host[..], port_text.as_bytes()].concat());
    (request.scheme, request.host, request.port, request.target) = (scheme, host, own_port, target);
    port.counters.inc(Counter::HtcpTests);
    let (shared, client) = (Arc::clone(&port.daemon.shared), ConnectionPeer::Host(peer.ip()));
    let foretold = move || explain(&shared, &live, request, client, rt::now()).outcome;
    let outcome = rt::blocking(foretold).await.ok()?;
    let is_stored = |served| matches!(served, CacheOutcome::Hit | CacheOutcome::Stale);
    Some(matches!(outcome, ForecastOutcome::Answer { served, .. } if is_stored(served)))
}

/// Parses an absolute URL into a request.
fn read_url(url: &[u8]) -> Option<Request> {
    if class::skip_target(url, 0) != url.len() {
        return None;
    }
    let is_secure = url.split_at_checked(6).is_some_and(|(s, _)| s.eq_ignore_ascii_case(b"https:"));
    let scheme = if is_secure { Scheme::Https } else { Scheme::Http };
    let mut request = Request { scheme, ..Request::new() };
    let is_absolute = target::read(url, scheme, &mut request).ok()?;
    is_absolute.then_some(request)
}

/// Purges the stored responses of an absolute URL, and returns their number; `None` if no site
/// purged by HTCP has the URL, or if the journal rejects the purge.
async fn purge(port: &HtcpPort, url: &[u8], peer: SocketAddr) -> Option<u64> {
    let request = read_url(url)?;
    let live = port.daemon.shared.live();
    let site = live.sites.by_host.find(&request.host).filter(|site| site.purges.by_htcp)?;
    let (client, now) = (ConnectionPeer::Host(peer.ip()), rt::now());
    let page = PurgeContext { live: &live, site, request: &request, client, now };
    let shared = &port.daemon.shared;
    let one = shared.invalidator.invalidation_of(&page, &request.target, false);
    let one = one.by(Cause { heard: InvalidationSource::Datagram, url: None });
    match shared.invalidator.invalidate(Some(&live), [one], now, COUNT_MS).await {
        Ok(outcome) => Some(outcome.objects),
        Err(why) => {
            base::tell!(Warn, "larder: HTCP: {peer}: {why}");
            None
        }
    }
}
