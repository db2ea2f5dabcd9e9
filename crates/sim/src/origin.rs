//! The origin: it answers over a unix socket in the same process, with faults that the seed draws.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use rt::simulation::random;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use crate::http;
use crate::oracle::{Serial, bytes};
use crate::pages::OriginContent;
use crate::plan::Resource;
use crate::simulation::Simulation;
use crate::wire;

/// Faults of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OriginFault {
    None,
    /// No answer.
    Silent,
    /// The connection is closed without an answer.
    Closed,
    /// 503.
    Error,
    /// The body is cut off.
    Cut,
    /// The body stalls, and the connection stays open.
    Stalled,
}

/// Accepts connections until it is aborted.
pub(crate) async fn serve(simulation: Rc<Simulation>, listener: UnixListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let simulation = Rc::clone(&simulation);
        rt::spawn_local(async move {
            // A peer that goes away is no failure.
            _ = talk(&simulation, stream).await;
        });
    }
}

async fn talk(simulation: &Simulation, mut stream: UnixStream) -> io::Result<()> {
    let mut unread = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut unread).await? == 0 {
                return Ok(());
            }
        };
        let rest = unread.split_off(end);
        let head = String::from_utf8_lossy(&std::mem::replace(&mut unread, rest)).into_owned();
        let keeps = if head.starts_with("POST") {
            take_upload(simulation, &mut stream, &head, &mut unread).await?
        } else {
            answer(simulation, &mut stream, &head).await?
        };
        if !keeps {
            return Ok(());
        }
    }
}

fn fault(simulation: &Simulation) -> OriginFault {
    if random(1_000) >= simulation.plan.faults {
        return OriginFault::None;
    }
    match random(8) {
        0 => OriginFault::Silent,
        1 => OriginFault::Closed,
        2 | 3 => OriginFault::Error,
        4..7 => OriginFault::Cut,
        _ => OriginFault::Stalled,
    }
}

async fn doze(simulation: &Simulation) {
    let most = match random(12) {
        0 => 1_500,
        1..5 => 40,
        _ => return,
    };
    let most = if simulation.plan.quiet { 40 } else { most };
    sleep(Duration::from_millis(random(most))).await;
}

/// Takes an upload and answers with what it received; false if the connection is over.
async fn take_upload(
    simulation: &Simulation,
    stream: &mut UnixStream,
    head: &str,
    unread: &mut Vec<u8>,
) -> io::Result<bool> {
    let fault = fault(simulation);
    simulation.oracle.note(format_args!("origin gets an upload: {fault:?}"));
    match fault {
        OriginFault::Silent | OriginFault::Stalled => {
            // It reads nothing until the peer has given up.
            sleep(Duration::from_secs(90)).await;
            return Ok(false);
        }
        OriginFault::Closed => return Ok(false),
        OriginFault::Error => {
            let text = "HTTP/1.1 503 Broken\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(text.as_bytes()).await?;
            return Ok(false);
        }
        OriginFault::None | OriginFault::Cut => {}
    }
    let body = if http::field(head, "transfer-encoding").is_some() {
        wire::read_chunks(simulation, stream, unread).await.map_err(io::Error::other)?
    } else {
        let length = http::number(head, "content-length").unwrap_or(0);
        wire::read_length(simulation, stream, unread, length as usize).await
    };
    let Some(body) = body else { return Ok(false) };
    let sum = http::sum(&body);
    let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{sum}", sum.len());
    stream.write_all(text.as_bytes()).await?;
    Ok(true)
}

/// Answers a request; false if the connection is over.
async fn answer(simulation: &Simulation, stream: &mut UnixStream, head: &str) -> io::Result<bool> {
    let target = head.split(' ').nth(1).unwrap_or_default();
    let site = usize::from(http::field(head, "host").is_some_and(|host| host.starts_with('v')));
    let found =
        simulation.plan.resources.iter().position(|one| one.path == target && one.site == site);
    let Some(number) = found else {
        if let Some(whole) = simulation.plan.pages.origin_content(site, target) {
            return give_whole(simulation, stream, head, &whole).await;
        }
        simulation.oracle.fail(|| format!("no client asked for {target} of {site}"));
        return Ok(false);
    };
    let resource = &simulation.plan.resources[number];
    let variant = if resource.varies { http::number(head, "x-variant").unwrap_or(0) } else { 0 };
    let under_way = simulation.oracle.fetch_began(number, variant);
    simulation
        .oracle
        .note(format_args!("origin asked for {number}.{variant}: {under_way} under way"));
    if simulation.plan.quiet && !resource.private && under_way > 1 {
        simulation.oracle.fail(|| format!("{under_way} fetches at once of {resource:?}"));
    }
    let kept = respond(simulation, stream, head, number, variant).await;
    simulation.oracle.fetch_ended(number, variant);
    kept
}

async fn respond(
    simulation: &Simulation,
    stream: &mut UnixStream,
    head: &str,
    number: usize,
    variant: u64,
) -> io::Result<bool> {
    let resource = &simulation.plan.resources[number];
    let fault = fault(simulation);
    let (born_tick, born_ms) =
        (simulation.oracle.note(format_args!("  {fault:?}")), rt::now().mono_ms);
    let content = simulation.content(number, variant);
    doze(simulation).await;
    match fault {
        OriginFault::Silent => {
            // Waits until the peer gives up.
            _ = stream.read(&mut [0]).await;
            return Ok(false);
        }
        OriginFault::Closed => return Ok(false),
        OriginFault::Error => {
            let text = "HTTP/1.1 503 Broken\r\nContent-Length: 3\r\n\r\nno\n";
            stream.write_all(text.as_bytes()).await?;
            return Ok(true);
        }
        OriginFault::None | OriginFault::Cut | OriginFault::Stalled => {}
    }
    let known = http::field(head, "if-none-match").and_then(http::content_of);
    if resource.has_etag && known == Some(content) {
        simulation.oracle.note(format_args!("  304 of content {content}"));
        simulation.oracle.confirm(number, variant, content);
        let text = format!("HTTP/1.1 304 Same\r\n{}\r\n", fields(resource, content));
        stream.write_all(text.as_bytes()).await?;
        return Ok(true);
    }
    give(
        simulation,
        stream,
        head,
        PendingResponse { number, variant, content, fault, born_tick, born_ms },
    )
    .await
}

/// A response about to be sent.
struct PendingResponse {
    number: usize,
    variant: u64,
    content: u64,
    fault: OriginFault,
    born_tick: u64,
    born_ms: u64,
}

async fn give(
    simulation: &Simulation,
    stream: &mut UnixStream,
    head: &str,
    given: PendingResponse,
) -> io::Result<bool> {
    let PendingResponse { number, variant, content, fault, born_tick, born_ms } = given;
    let resource = &simulation.plan.resources[number];
    let length = 1 + content.wrapping_mul(0x9e37_79b9) % resource.bytes_max;
    let serial = Serial {
        resource: number,
        variant,
        content,
        length,
        born_tick,
        born_ms,
        head_ms: u64::MAX,
        cut_ms: u64::MAX,
    };
    let serial = simulation.oracle.enter(serial);
    simulation.oracle.note(format_args!("  response {serial}, content {content}, {length} bytes"));
    let is_head = head.starts_with("HEAD");
    let framing = Framing::draw(simulation, fault);
    let mut out = format!("HTTP/1.1 200 OK\r\nX-Serial: {serial}\r\n{}", fields(resource, content));
    out.push_str(&framing.field(length));
    let closes = framing == Framing::Close || random(10) == 0;
    if closes {
        out.push_str("Connection: close\r\n");
    }
    out.push_str("\r\n");
    send(stream, out.as_bytes()).await?;
    simulation.oracle.head_sent(serial);
    if !is_head {
        let whole = match fault {
            OriginFault::None => length,
            _ => random(length),
        };
        send_body(simulation, stream, framing, &bytes(content, 0, whole)).await?;
        match fault {
            OriginFault::None => {
                doze(simulation).await;
                stream.write_all(framing.end()).await?;
                if framing == Framing::Chunked
                    && !simulation.plan.quiet
                    && !closes
                    && random(20) == 0
                {
                    // An unrequested response (response splitting), sent at once: a later one might
                    // be taken for the answer to the next request.
                    let stray = "HTTP/1.1 200 OK\r\nX-Serial: 999999\r\nContent-Length: 1\r\n\r\nx";
                    stream.write_all(stray.as_bytes()).await?;
                }
            }
            OriginFault::Stalled => {
                _ = stream.read(&mut [0]).await;
                return Ok(false);
            }
            _ => {
                simulation.oracle.cut(serial);
                return Ok(false);
            }
        }
    }
    Ok(!closes)
}

/// Sends a page or a fragment, without faults.
async fn give_whole(
    simulation: &Simulation,
    stream: &mut UnixStream,
    head: &str,
    whole: &OriginContent,
) -> io::Result<bool> {
    let OriginContent { fields, body } = whole;
    doze(simulation).await;
    let framing = Framing::draw(simulation, OriginFault::None);
    let mut out = format!("HTTP/1.1 200 OK\r\n{fields}{}", framing.field(body.len() as u64));
    if framing == Framing::Close {
        out.push_str("Connection: close\r\n");
    }
    out.push_str("\r\n");
    send(stream, out.as_bytes()).await?;
    if !head.starts_with("HEAD") {
        send_body(simulation, stream, framing, body).await?;
        stream.write_all(framing.end()).await?;
    }
    Ok(framing != Framing::Close)
}

fn fields(resource: &Resource, content: u64) -> String {
    let Resource { ttl_s, grace_s, error_s, tag, .. } = resource;
    let mut out = match resource.private {
        true => "Cache-Control: private, no-store\r\n".to_owned(),
        false => format!(
            "Cache-Control: max-age={ttl_s}, stale-while-revalidate={grace_s}, stale-if-error={error_s}\r\nX-Grace: {grace_s}s\r\n"
        ),
    };
    out.push_str(&format!("Surrogate-Key: t{tag}\r\nX-Content: {content}\r\n"));
    if resource.has_etag {
        out.push_str(&format!("ETag: \"c{content}\"\r\n"));
    }
    if resource.varies {
        out.push_str("Vary: X-Variant\r\n");
    }
    out
}

/// Framing of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    Close,
}

impl Framing {
    fn draw(simulation: &Simulation, fault: OriginFault) -> Self {
        match random(6) {
            0 if fault == OriginFault::None && !simulation.plan.quiet => Self::Close,
            0..3 => Self::Chunked,
            _ => Self::Length,
        }
    }

    fn field(self, length: u64) -> String {
        match self {
            Self::Length => format!("Content-Length: {length}\r\n"),
            Self::Chunked => "Transfer-Encoding: chunked\r\n".to_owned(),
            Self::Close => String::new(),
        }
    }

    fn end(self) -> &'static [u8] {
        if self == Self::Chunked { b"0\r\n\r\n" } else { b"" }
    }
}

/// Sends bytes in one piece or in two.
async fn send(stream: &mut UnixStream, bytes: &[u8]) -> io::Result<()> {
    let at = if random(4) == 0 { random(bytes.len() as u64 + 1) as usize } else { 0 };
    stream.write_all(&bytes[..at]).await?;
    if at > 0 {
        sleep(Duration::from_millis(random(20))).await;
    }
    stream.write_all(&bytes[at..]).await
}

async fn send_body(
    simulation: &Simulation,
    stream: &mut UnixStream,
    framing: Framing,
    mut left: &[u8],
) -> io::Result<()> {
    let least = if simulation.plan.quiet { 3_000 } else { 1 };
    // At most forty pieces, so that even a slow origin finishes in time.
    let piece = ((least + random(20_000)) as usize).max(left.len() / 40);
    while !left.is_empty() {
        let (now, later) = left.split_at(piece.min(left.len()));
        if framing == Framing::Chunked {
            let chunk = [format!("{:x}\r\n", now.len()).as_bytes(), now, b"\r\n"].concat();
            send(stream, &chunk).await?;
        } else {
            send(stream, now).await?;
        }
        left = later;
        if !left.is_empty() {
            doze(simulation).await;
        }
    }
    Ok(())
}
