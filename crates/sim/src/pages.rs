//! Pages that are put together of fragments: what they are, and the promise about them. Each comes
//! to its end, at whatever pace it is read, and has all that it names.

use std::sync::Arc;
use std::time::Duration;

use base::Account;
use flow::{Part, ReplyBody};
use rt::simulation::{Draws, random};
use tokio::time::sleep;

use crate::client::{read_request, reply_to};
use crate::plan::Engine;
use crate::wire::{Answer, Line, Outgoing};
use crate::world::World;

/// A longest fragment now and then, in bytes.
const LARGEST: u64 = 4 << 20;
/// A slow reader takes as many pauses of at most this.
const PAUSES: u64 = 20;
const PAUSE_MS: u64 = 500;

/// One page.
#[derive(Debug)]
pub(crate) struct Page {
    /// The site that it belongs to, as of a resource.
    pub(crate) site: usize,
    path: String,
    /// 0 for one that is not stored.
    ttl_s: u64,
    /// Bytes of each of its texts.
    text: u64,
    /// The numbers of its fragments; a text stands before each and behind the last.
    fragments: Vec<usize>,
}

/// Something that pages name.
#[derive(Debug)]
struct Fragment {
    path: String,
    ttl_s: u64,
    bytes: u64,
}

/// All pages of a schedule, and their fragments.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<Page>,
    fragments: Vec<Fragment>,
}

/// A body and its lifetime, for the origin to give.
pub(crate) struct Whole {
    pub(crate) fields: String,
    pub(crate) body: Vec<u8>,
}

/// Letters that differ from those of other numbers and at other places.
fn letters(number: u64, bytes: u64) -> Vec<u8> {
    let letter =
        |at: u64| b'a' + ((at ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 % 26;
    (0..bytes).map(letter).collect()
}

impl Pages {
    /// Draws those of a schedule; most have none.
    pub(crate) fn draw(draw: &mut Draws) -> Self {
        if draw.below(6) != 0 {
            return Self::default();
        }
        let fragment = |draw: &mut Draws, number| {
            let most = draw.of([1_000, 1_000, 30_000, 300_000, 1 << 20]);
            let most = if draw.below(60) == 0 { LARGEST } else { most };
            // A program compresses what `z` begins, on its way into the store.
            let kind = draw.of(["f", "z"]);
            Fragment {
                path: format!("/{kind}/{number}"),
                ttl_s: draw.of([0, 1, 20]),
                bytes: most / 2 + draw.below(most / 2),
            }
        };
        let count = 1 + draw.below(6);
        let fragments: Vec<_> = (0..count).map(|number| fragment(draw, number)).collect();
        let page = |draw: &mut Draws, number| Page {
            site: draw.below(2) as usize,
            path: format!("/p/{number}"),
            ttl_s: draw.of([0, 2, 20]),
            text: draw.of([10, 3_000, 80_000]),
            fragments: (0..1 + draw.below(5)).map(|_| draw.below(count) as usize).collect(),
        };
        let pages = 1 + draw.below(2);
        let pages = (0..pages).map(|number| page(draw, number)).collect();
        Self { pages, fragments }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    fn any(&self) -> &Page {
        &self.pages[random(self.pages.len() as u64) as usize]
    }

    /// The body of `page` as its fragments, or their instructions, make it.
    fn body(&self, page: &Page, fragment: impl Fn(&Fragment) -> Vec<u8>) -> Vec<u8> {
        let mut body = b"<p>".to_vec();
        for (at, number) in page.fragments.iter().enumerate() {
            body.extend(letters(1_000 + at as u64, page.text));
            body.extend(fragment(&self.fragments[*number]));
        }
        body.extend(letters(999, page.text));
        body
    }

    /// The page of `site` or the fragment at `path`, as its origin has it.
    pub(crate) fn whole(&self, site: usize, path: &str) -> Option<Whole> {
        let lives = |ttl_s: u64| match ttl_s {
            0 => "Cache-Control: private, no-store\r\n".to_owned(),
            ttl_s => format!("Cache-Control: max-age={ttl_s}\r\n"),
        };
        if let Some(number) = self.fragments.iter().position(|one| one.path == path) {
            let Fragment { ttl_s, bytes, .. } = &self.fragments[number];
            return Some(Whole { fields: lives(*ttl_s), body: letters(number as u64, *bytes) });
        }
        let page = self.pages.iter().find(|page| page.site == site && page.path == path)?;
        let include = |fragment: &Fragment| format!("<esi:include src=\"{}\"/>", fragment.path);
        let fields = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
        Some(Whole {
            fields: lives(page.ttl_s) + fields,
            body: self.body(page, |fragment| include(fragment).into_bytes()),
        })
    }

    /// The page as its clients get it.
    fn together(&self, page: &Page) -> Vec<u8> {
        let numbered = |path: &str| self.fragments.iter().position(|one| one.path == path);
        self.body(page, |fragment| {
            letters(numbered(&fragment.path).unwrap_or_default() as u64, fragment.bytes)
        })
    }
}

/// Asks for a page, and holds it against the truth.
pub(crate) async fn ask(world: &World, line: &mut Line, account: &Arc<Account>) -> String {
    let pages = &world.plan.pages;
    let page = pages.any();
    let host = ["d.example", "v.example"][page.site];
    let text = format!("GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", page.path);
    world.book.note(format_args!("  {}", text.replace("\r\n", "; ")));
    let expected = pages.together(page);
    let answer = match world.plan.engine {
        Engine::Direct => Ok(take(world, &text, account, expected.len() as u64).await),
        Engine::Http1 | Engine::Http2 => {
            line.ask(world, &Outgoing { head: &text, body: &[] }).await
        }
    };
    let (status, body) = match answer {
        Ok(Answer { status, body, .. }) => (status, body),
        Err(why) => {
            world.book.fail(|| format!("{why}: {page:?}"));
            return "a fault".to_owned();
        }
    };
    let length = body.as_ref().map(Vec::len);
    // Nothing but want of memory makes it another.
    if !world.plan.is_tight && (status != 200 || body.as_ref() != Some(&expected)) {
        let of = expected.len();
        world.book.fail(|| format!("{status} with {length:?} bytes of {of}: {page:?} {pages:?}"));
    }
    format!("a page of {length:?} bytes")
}

/// Takes a page from the core itself, at one pace or another.
async fn take(world: &World, text: &str, account: &Arc<Account>, bytes: u64) -> Answer {
    let mut request = read_request(text);
    let (live, mut reply) = reply_to(world, &mut request, account).await;
    let mut head = Vec::new();
    reply.write_head(&live, &mut head);
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut pace = Pace::draw(bytes);
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
                    Part::Bytes(bytes) => add(&mut body, &bytes),
                    Part::Stored(object, range) => {
                        let pieces = object.whole();
                        pieces
                            .iter()
                            .flat_map(|whole| whole.range(range.clone()))
                            .for_each(|piece| add(&mut body, piece));
                    }
                    Part::File(..) => body = None,
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
    Answer { status: http_status(&head), head, body }
}

fn http_status(head: &str) -> u16 {
    head.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The pace of a reader.
struct Pace {
    /// Bytes between two pauses.
    every: u64,
    passed: u64,
    pause_ms: u64,
}

impl Pace {
    /// One for about `bytes`: none pauses so long that the whole takes longer than an exchange may.
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
