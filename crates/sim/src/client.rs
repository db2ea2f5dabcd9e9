//! A client of a schedule: it sends requests, reads slowly, leaves, and gives every answer to the
//! oracle.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::Account;
use cache::Reader;
use flow::{BodyPart, BodyParts, ReplyBody};
use rt::simulation::random;
use tokio::time::{sleep, timeout};

use crate::direct_core::{read_request, reply_to};
use crate::http;
use crate::oracle::{ClientRequest, ObservedAnswer, bytes};
use crate::page_reader;
use crate::plan::Engine;
use crate::simulation::Simulation;
use crate::wire::{ClientAnswer, EngineConnection, Outgoing, pause_randomly};

/// Longer than all limits of a request together.
const PATIENCE: Duration = Duration::from_secs(600);
/// Bytes that a client may hold in transit; for pages, windows and a decoder.
const HELD_BYTES: u64 = 256 << 10;
const HELD_OF_PAGES: u64 = 1 << 20;

/// Runs a client: several requests, one after the other.
pub(crate) async fn live(simulation: Rc<Simulation>, number: u64) {
    let most = if simulation.plan.pages.is_empty() { HELD_BYTES } else { HELD_OF_PAGES };
    let account = Account::open(simulation.core.shared.cache.memory(), most);
    simulation.accounts.borrow_mut().push(Arc::clone(&account));
    let mut line = EngineConnection::default();
    for _ in 0..simulation.plan.requests {
        sleep(Duration::from_millis(random(simulation.plan.pause_ms))).await;
        let engine = simulation.plan.engine;
        let uploads = engine != Engine::Direct && !simulation.plan.quiet && random(6) == 0;
        let ahead = if engine == Engine::Http1 && random(5) == 0 { random(3) } else { 0 };
        let (asked, text) = draw(&simulation);
        simulation.oracle.note(format_args!("client {number} asks for {}", asked.resource));
        let leaves = !simulation.plan.quiet && random(8) == 0;
        let patience = if leaves { Duration::from_millis(random(1_000)) } else { PATIENCE };
        let of_page = !simulation.plan.pages.is_empty() && random(2) == 0;
        let exchange = async {
            match simulation.plan.engine {
                _ if of_page => page_reader::ask(&simulation, &mut line, &account).await,
                _ if uploads => upload(&simulation, &mut line).await,
                Engine::Direct => ask(&simulation, &asked, &text, &account).await,
                Engine::Http1 if ahead > 0 => {
                    let more = (0..ahead).map(|_| draw(&simulation));
                    let row: Vec<_> = std::iter::once((asked.clone(), text)).chain(more).collect();
                    pipeline(&simulation, &row, &mut line).await
                }
                Engine::Http1 | Engine::Http2 => {
                    ask_over(&simulation, &asked, &text, &mut line).await
                }
            }
        };
        let done = timeout(patience, exchange).await;
        match done {
            Ok(outcome) => simulation.oracle.note(format_args!("client {number}: {outcome}")),
            Err(_) if leaves => {
                simulation.left.set(simulation.left.get() + line.under_way);
                line = EngineConnection::default();
                simulation.oracle.note(format_args!("client {number} leaves"))
            }
            Err(_) => {
                simulation.oracle.fail(|| format!("no answer to client {number}: {asked:?}"));
                return;
            }
        };
    }
}

/// Draws a request: the oracle's view of it, and its text.
fn draw(simulation: &Simulation) -> (ClientRequest, String) {
    let plan = &simulation.plan;
    let at = random(plan.resources.len() as u64).min(random(plan.resources.len() as u64)) as usize;
    let resource = &plan.resources[at];
    let variant = if resource.varies { random(3) } else { 0 };
    let host = ["d.example", "v.example"][resource.site];
    let method = if !plan.quiet && random(12) == 0 { "HEAD" } else { "GET" };
    let mut text =
        format!("{method} {} HTTP/1.1\r\nHost: {host}\r\nX-Variant: {variant}\r\n", resource.path);
    if !plan.quiet {
        match random(12) {
            0 | 1 => {
                let from = random(resource.bytes_max);
                text.push_str(&format!("Range: bytes={from}-{}\r\n", from + random(2_000)));
            }
            2 => {
                let content = simulation.content_now(at, variant);
                text.push_str(&format!("If-None-Match: \"c{content}\"\r\n"));
            }
            _ => {}
        }
    }
    text.push_str("\r\n");
    let tick = simulation.oracle.note(format_args!("  {}", text.replace("\r\n", "; ")));
    (ClientRequest { resource: at, variant, tick, ms: rt::now().mono_ms }, text)
}

async fn ask(
    simulation: &Simulation,
    asked: &ClientRequest,
    text: &str,
    account: &Arc<Account>,
) -> String {
    let mut request = read_request(text);
    let (live, mut reply) = reply_to(simulation, &mut request, account).await;
    let mut head = Vec::new();
    reply.write_head(&live, &mut head);
    let head = String::from_utf8_lossy(&head).into_owned();
    let seen = ObservedAnswer {
        status: reply.status.code(),
        serial: http::number(&head, "x-serial"),
        word: reply.served.word().to_owned(),
        range: http::content_range(&head),
        waited: reply.about.trace.as_ref().is_some_and(|trace| trace.has_waited()),
    };
    simulation.oracle.note(format_args!("  {seen:?}"));
    simulation.oracle.judge_head(asked, &seen, &simulation.plan.resources, simulation.plan.quiet);
    let promised = reply.length();
    let body = std::mem::replace(&mut reply.body, ReplyBody::None);
    if matches!(body, ReplyBody::None | ReplyBody::Head(_)) {
        return "a head".to_owned();
    }
    match take(simulation, body, account).await {
        Some(body) => {
            if promised.is_some_and(|promised| promised != body.len() as u64) {
                simulation.oracle.fail(|| {
                    format!("{} bytes instead of {promised:?}: {asked:?} {seen:?}", body.len())
                });
            }
            simulation.oracle.judge_body(asked, &seen, &body);
            format!("{} bytes", body.len())
        }
        None => {
            if simulation.plan.quiet {
                simulation
                    .oracle
                    .fail(|| format!("nothing failed, and yet: {asked:?} {seen:?} cut"));
            }
            "a cut body".to_owned()
        }
    }
}

/// Sends a request over a connection.
async fn ask_over(
    simulation: &Simulation,
    asked: &ClientRequest,
    text: &str,
    line: &mut EngineConnection,
) -> String {
    match line.ask(simulation, &Outgoing { head: text, body: &[] }).await {
        Ok(answer) => judge(simulation, asked, text, answer),
        Err(why) => {
            simulation.oracle.fail(|| format!("{why}: {asked:?}"));
            "a fault".to_owned()
        }
    }
}

/// Sends several requests at once.
async fn pipeline(
    simulation: &Simulation,
    row: &[(ClientRequest, String)],
    line: &mut EngineConnection,
) -> String {
    let outgoing: Vec<_> = row.iter().map(|(_, text)| Outgoing { head: text, body: &[] }).collect();
    match line.pipeline(simulation, &outgoing).await {
        Ok(answers) => {
            for ((asked, text), answer) in row.iter().zip(answers) {
                let outcome = judge(simulation, asked, text, answer);
                simulation.oracle.note(format_args!("  in a row: {outcome}"));
            }
            format!("{} in a row", row.len())
        }
        Err(why) => {
            simulation.oracle.fail(|| format!("{why}: {row:?}"));
            "a fault".to_owned()
        }
    }
}

/// Checks an answer that came over a connection.
fn judge(
    simulation: &Simulation,
    asked: &ClientRequest,
    text: &str,
    answer: ClientAnswer,
) -> String {
    let ClientAnswer { status, head, body } = answer;
    simulation.oracle.note(format_args!("  {}", head.replace("\r\n", "; ")));
    let seen = ObservedAnswer {
        status,
        serial: http::number(&head, "x-serial"),
        word: http::field(&head, "x-cache").unwrap_or_default().to_owned(),
        range: http::content_range(&head),
        waited: false,
    };
    simulation.oracle.note(format_args!("  {seen:?}"));
    simulation.oracle.judge_head(asked, &seen, &simulation.plan.resources, simulation.plan.quiet);
    match body {
        Some(body) => {
            if !text.starts_with("HEAD") {
                simulation.oracle.judge_body(asked, &seen, &body);
            }
            format!("{} bytes", body.len())
        }
        None => {
            if simulation.plan.quiet {
                simulation
                    .oracle
                    .fail(|| format!("nothing failed, and yet: {asked:?} {seen:?} cut"));
            }
            "a cut body".to_owned()
        }
    }
}

/// Uploads a body over a connection. The origin answers with what it received.
async fn upload(simulation: &Simulation, line: &mut EngineConnection) -> String {
    let length = random([100, 20_000, 300_000][random(3) as usize]);
    let content = random(1_000);
    let body = bytes(content, 0, length);
    let host = ["d.example", "v.example"][random(2) as usize];
    let mut outgoing = format!("POST /up/{content} HTTP/1.1\r\nHost: {host}\r\n");
    if random(4) == 0 {
        outgoing.push_str("Expect: 100-continue\r\n");
    }
    match random(2) {
        0 => outgoing.push_str(&format!("Content-Length: {length}\r\n\r\n")),
        _ => outgoing.push_str("Transfer-Encoding: chunked\r\n\r\n"),
    }
    simulation.oracle.note(format_args!("  {length} bytes of content {content}"));
    match line.ask(simulation, &Outgoing { head: &outgoing, body: &body }).await {
        Ok(ClientAnswer { status: 200, body: told, .. }) => {
            let arrived = told.map(|text| String::from_utf8_lossy(&text).into_owned());
            if arrived.as_deref() != Some(&*http::sum(&body)) {
                simulation
                    .oracle
                    .fail(|| format!("{arrived:?} has arrived of {length} bytes: {outgoing}"));
            }
            "an upload".to_owned()
        }
        Ok(ClientAnswer { status, head, .. }) => {
            if (400..500).contains(&status) {
                simulation.oracle.fail(|| format!("{status} for an upload in order: {outgoing}"));
            }
            format!("an upload, {}", head.replace("\r\n", "; "))
        }
        Err(why) => {
            simulation.oracle.fail(|| format!("{why}: {outgoing}"));
            "a fault".to_owned()
        }
    }
}

/// Reads a body; `None` if it is cut off.
async fn take(simulation: &Simulation, body: ReplyBody, account: &Arc<Account>) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    match body {
        ReplyBody::Parts(parts) => {
            for part in all_of(parts) {
                pause_randomly(simulation).await;
                match part {
                    BodyPart::Bytes(bytes) => all.extend_from_slice(&bytes),
                    BodyPart::Stored(object, range) => {
                        let whole = object.whole()?;
                        let bytes: Vec<u8> = whole.pieces().flatten().copied().collect();
                        all.extend_from_slice(bytes.get(range.start as usize..range.end as usize)?);
                    }
                    BodyPart::File(..) => return None,
                }
            }
        }
        ReplyBody::Stream { reader, length } => {
            let mut reader: Reader = reader;
            reader.hold_for(account);
            let most = length.unwrap_or(u64::MAX);
            while (all.len() as u64) < most {
                pause_randomly(simulation).await;
                match reader.next().await {
                    Ok(Some(bytes)) => all.extend_from_slice(&bytes),
                    Ok(None) => break,
                    Err(_) => return None,
                }
            }
            all.truncate(usize::try_from(most).unwrap_or(usize::MAX).min(all.len()));
        }
        _ => {}
    }
    Some(all)
}

fn all_of(parts: BodyParts) -> Vec<BodyPart> {
    parts.collect()
}
