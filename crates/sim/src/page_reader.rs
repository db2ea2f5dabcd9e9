//! A page's reader, and the promise about assembled pages: each is delivered completely, however
//! slowly it is read.

use std::sync::Arc;
use std::time::Duration;

use base::Account;
use flow::{BodyPart, ReplyBody};
use rt::simulation::random;
use tokio::time::sleep;

use crate::direct_core::{read_request, reply_to};
use crate::plan::Engine;
use crate::simulation::Simulation;
use crate::wire::{ClientAnswer, EngineConnection, Outgoing};

/// Most pauses of a slow reader.
const PAUSES: u64 = 20;
const PAUSE_MS: u64 = 500;

/// Requests a page and checks it.
pub(crate) async fn ask(
    simulation: &Simulation,
    line: &mut EngineConnection,
    account: &Arc<Account>,
) -> String {
    let pages = &simulation.plan.pages;
    let page = pages.any();
    let host = ["d.example", "v.example"][page.site];
    let text = format!("GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", page.path);
    simulation.oracle.note(format_args!("  {}", text.replace("\r\n", "; ")));
    let expected = pages.assembled(page);
    let answer = match simulation.plan.engine {
        Engine::Direct => Ok(take(simulation, &text, account, expected.len() as u64).await),
        Engine::Http1 | Engine::Http2 => {
            line.ask(simulation, &Outgoing { head: &text, body: &[] }).await
        }
    };
    let (status, body) = match answer {
        Ok(ClientAnswer { status, body, .. }) => (status, body),
        Err(why) => {
            simulation.oracle.fail(|| format!("{why}: {page:?}"));
            return "a fault".to_owned();
        }
    };
    let length = body.as_ref().map(Vec::len);
    // Only a lack of memory excuses another answer.
    if !simulation.plan.is_tight && (status != 200 || body.as_ref() != Some(&expected)) {
        let of = expected.len();
        simulation
            .oracle
            .fail(|| format!("{status} with {length:?} bytes of {of}: {page:?} {pages:?}"));
    }
    format!("a page of {length:?} bytes")
}

/// Requests a page from the core, and reads it at a random pace.
async fn take(
    simulation: &Simulation,
    text: &str,
    account: &Arc<Account>,
    bytes: u64,
) -> ClientAnswer {
    let mut request = read_request(text);
    let (live, mut reply) = reply_to(simulation, &mut request, account).await;
    let mut head = Vec::new();
    reply.write_head(&live, &mut head);
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut pace = ReaderPace::draw(bytes);
    let mut body = Some(Vec::new());
    let add = |body: &mut Option<Vec<u8>>, bytes: &[u8]| {
        if let Some(body) = body {
            body.extend_from_slice(bytes);
        }
    };
    match std::mem::replace(&mut reply.body, ReplyBody::None) {
        ReplyBody::Parts(parts) => {
            for part in parts {
                pace.passed(part.len()).await;
                match part {
                    BodyPart::Bytes(bytes) => add(&mut body, &bytes),
                    BodyPart::Stored(object, range) => {
                        let pieces = object.whole();
                        pieces
                            .iter()
                            .flat_map(|whole| whole.range(range.clone()))
                            .for_each(|piece| add(&mut body, piece));
                    }
                    BodyPart::File(..) => body = None,
                }
            }
        }
        ReplyBody::Stream { mut reader, .. } => {
            reader.hold_for(account);
            loop {
                match reader.next().await {
                    Ok(Some(bytes)) => {
                        add(&mut body, &bytes);
                        pace.passed(bytes.len() as u64).await;
                    }
                    Ok(None) => break,
                    Err(_) => {
                        body = None;
                        break;
                    }
                }
            }
        }
        _ => {}
    }
    ClientAnswer { status: http_status(&head), head, body }
}

fn http_status(head: &str) -> u16 {
    head.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The pace of a reader.
struct ReaderPace {
    /// Bytes between two pauses.
    every: u64,
    passed: u64,
    pause_ms: u64,
}

impl ReaderPace {
    /// Draws a pace for about `bytes`, fast enough for the time limit of an exchange.
    fn draw(bytes: u64) -> Self {
        let pauses = match random(3) {
            0 => 0,
            _ => 1 + random(PAUSES),
        };
        Self {
            every: bytes.checked_div(pauses).unwrap_or(u64::MAX).max(1),
            passed: 0,
            pause_ms: PAUSE_MS,
        }
    }

    async fn passed(&mut self, bytes: u64) {
        self.passed += bytes;
        if self.passed >= self.every {
            self.passed = 0;
            sleep(Duration::from_millis(random(self.pause_ms))).await;
        }
    }
}
