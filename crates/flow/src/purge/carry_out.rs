//! What a purge does to the store. Everything that is not one URL is a ban: it is in force at once,
//! and the sweep that counts what it hit runs beside the cores.

use std::sync::Arc;
use std::time::Duration;

use ban::{Expression, Field, Term};
use base::{KeyBuf, Now};
use cache::{NewBan, Tags, Which};
use message::{Framing, HeaderBlock, Method, Request, Scheme};
use policy::{Notes, Peer, ReceiveCtx};

use super::dialects::of_host;
use super::stored::{Matcher, Meant, Scope, Under};
use crate::core::{Ask, Core, begin_key};
use crate::live::{Live, Shared, Site};
use crate::tags;

/// Which stored responses are meant, but for one URL's.
#[derive(Clone, Debug)]
pub enum What {
    /// All.
    Everything,
    /// Those with any of these surrogate keys.
    Tags(Vec<Vec<u8>>),
    /// Those that an expression describes and, if there are any, that have one of these surrogate
    /// keys.
    Ban {
        /// The expression.
        expression: Expression,
        /// Surrogate keys.
        tags: Option<Vec<Vec<u8>>>,
    },
    /// Those whose name in Souin's list matches.
    Listed(regex::bytes::Regex),
}

impl What {
    pub(super) fn terms(terms: Vec<Term>) -> Self {
        Self::Ban { expression: Expression::all(terms), tags: None }
    }

    /// What a ban expression describes. A condition on a field with surrogate keys, which are kept
    /// as hashes, must name them whole: `obj.http.xkey ~ (^|,)(a|b)(,|$)`.
    ///
    /// # Errors
    /// When it does not; the text says so.
    pub fn of_expression(mut expression: Expression) -> Result<Self, String> {
        let of_tags = expression.take_headers(|name| message::tags::is_tag_field(name.as_bytes()));
        let mut tags = None;
        for (field, wanted) in of_tags {
            let named = match wanted {
                ban::Wanted::Equal(text) => Some(vec![text]),
                ban::Wanted::Match(pattern) => message::tags::of_pattern(&pattern, true),
                ban::Wanted::Not => None,
            };
            let Some(named) = named.filter(|_| tags.is_none()) else {
                return Err(format!(
                    "surrogate keys are kept as hashes: one condition on `{field}` that names them \
                     whole, such as `~ (^|,)(a|b)(,|$)`"
                ));
            };
            tags = Some(named.into_iter().map(String::into_bytes).collect());
        }
        Ok(match tags {
            Some(tags) if expression.is_empty() => Self::Tags(tags),
            tags => Self::Ban { expression, tags },
        })
    }

    /// As lists of bans have it.
    pub(super) fn text(&self) -> String {
        let tags = |tags: &[Vec<u8>]| {
            let texts = tags.iter().map(|tag| String::from_utf8_lossy(tag));
            format!("tags {}", texts.collect::<Vec<_>>().join(" "))
        };
        match self {
            Self::Everything => "everything".to_owned(),
            Self::Tags(of) => tags(of),
            Self::Ban { expression, tags: None } => expression.to_string(),
            Self::Ban { expression, tags: Some(of) } => format!("{expression} && {}", tags(of)),
            Self::Listed(regex) => format!("souin {regex}"),
        }
    }
}

/// What a purge came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Stored responses that it hit.
    pub objects: u64,
    /// Not everything has been looked at yet. What is still there is not used any more.
    pub pending: bool,
}

/// A URL of a site.
#[derive(Clone, Copy)]
pub struct Url<'a> {
    /// The configuration.
    pub live: &'a Arc<Live>,
    /// The site that has the host.
    pub site: &'a Site,
    /// Host, port and target are the URL's; nothing else of it counts.
    pub request: &'a Request,
    /// Who purges it.
    pub client: Peer,
}

/// Longest pause of a sweep between two short pieces of work, so that the thread it shares a
/// processor with answers meanwhile.
const PAUSE: Duration = Duration::from_micros(100);
/// Pieces of work between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;
/// How long the answer to a purge waits until it is known what was hit.
const COUNT_MS: u64 = 1_000;
/// The same for one URL, of which plugins purge many, one after the other.
const COUNT_URL_MS: u64 = 50;
/// Most names of a list of what is stored.
const LISTED_MAX: usize = 10_000;

impl Shared {
    /// Invalidates what is meant: of one site, or of all. When this returns no core uses it any
    /// more. At most `wait_ms` are waited until everything stored has been looked at.
    pub async fn purge(
        self: &Arc<Self>,
        what: What,
        site: Option<(&Arc<Live>, &Site)>,
        soft: bool,
        now_ms: u64,
        wait_ms: u64,
    ) -> Outcome {
        let text = match site {
            Some((_, site)) => format!("site {} && {}", site.name, what.text()),
            None => what.text(),
        };
        let hashes = |tags: &[Vec<u8>]| {
            Tags::new(tags.iter().map(|tag| tags::hash(&self.seed, tag)).collect())
        };
        let (tags, matcher) = match what {
            What::Everything => (None, Matcher::All),
            What::Tags(of) => (Some(hashes(&of)), Matcher::All),
            What::Ban { expression, tags } => {
                (tags.as_deref().map(hashes), Matcher::Expression(expression))
            }
            What::Listed(regex) => (None, Matcher::Listed(regex)),
        };
        let scope =
            site.map(|(live, site)| Scope { live: Arc::clone(live), site: site.name.clone() });
        let test = Arc::new(Meant { scope, matcher, now_ms });
        let which = Which { tags, test: Some(test) };
        let new = NewBan { text: text.into(), which, soft, now_ms };
        let shared = Arc::clone(self);
        // Another thread's: when there are many bans it completes the oldest first.
        let ban = match tokio::task::spawn_blocking(move || shared.cache.ban(new)).await {
            Ok(ban) => ban,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let sweep = self.sweep(ban.number(), now_ms);
        let swept = tokio::time::timeout(Duration::from_millis(wait_ms), sweep).await;
        Outcome { objects: ban.objects(), pending: swept.is_err() }
    }

    /// Invalidates every variant of a URL, over either scheme, on the port it names and on none:
    /// what makes purges seldom comes the way readers do.
    pub async fn purge_url(self: &Arc<Self>, url: &Url<'_>, soft: bool, now: Now) -> Outcome {
        let mut ports = vec![None];
        ports.extend(url.request.port.map(Some));
        let mut outcome = Outcome::default();
        let mut split = Vec::new();
        for scheme in [Scheme::Http, Scheme::Https] {
            for port in &ports {
                let (request, notes) = as_read(url, now, scheme, *port);
                if url.site.policy.splits_key(&notes) {
                    split.push(request.target);
                    continue;
                }
                let mut key = KeyBuf::new();
                begin_key(&request, &mut key);
                url.site.policy.key(&request, &notes, &mut key);
                key.finish(&self.seed);
                outcome.objects += match soft {
                    true => self.cache.soft_invalidate(&key, now.mono_ms),
                    false => self.cache.invalidate(&key),
                } as u64;
            }
        }
        split.sort();
        split.dedup();
        for target in split {
            let term = Term::equal(Field::Url, false, &String::from_utf8_lossy(&target));
            // Without the condition on the host it is every host's of the site.
            let what = What::terms(of_host(&url.request.host).into_iter().chain([term]).collect());
            let site = Some((url.live, url.site));
            let more = self.purge(what, site, soft, now.mono_ms, COUNT_URL_MS).await;
            outcome.objects += more.objects;
            outcome.pending |= more.pending;
        }
        outcome
    }

    /// Has everything stored tested against the bans up to `until`, beside the cores. One sweep
    /// serves all who wait, and goes on when they do not.
    pub(crate) async fn sweep(self: &Arc<Self>, until: u32, now_ms: u64) {
        let turn = Arc::clone(&self.sweeping).lock_owned().await;
        let cache = Arc::clone(&self.cache);
        let swept = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let mut pieces = 0;
            cache.sweep(until, now_ms, &mut || {
                pieces += 1;
                if pieces % PIECES == 0 {
                    std::thread::sleep(PAUSE);
                }
            });
        });
        if let Err(error) = swept.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }

    /// What is stored of a site, as Souin names it: no more than some thousand.
    pub(crate) async fn list(self: &Arc<Self>, live: &Arc<Live>, site: &Site) -> Vec<String> {
        let scope = Scope { live: Arc::clone(live), site: site.name.clone() };
        let cache = Arc::clone(&self.cache);
        let listed = tokio::task::spawn_blocking(move || {
            let mut names = Vec::new();
            cache.walk(&mut |object| {
                let under = Under::of(object);
                if scope.has(&under) {
                    names.push(String::from_utf8_lossy(&under.souin_key()).into_owned());
                }
                names.len() < LISTED_MAX
            });
            names
        });
        match listed.await {
            Ok(names) => names,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl Core {
    /// Invalidates what is meant of the request's site.
    pub(crate) async fn purge_many(&self, ask: &Ask<'_>, what: What, soft: bool) -> Outcome {
        let site = Some((&**ask.live, &**ask.site));
        self.shared.purge(what, site, soft, self.now().mono_ms, COUNT_MS).await
    }

    /// Tests what nobody asked for against bans that were made, and forgets old ones. Once a
    /// second.
    pub(crate) fn sweep_bans(&self, now_ms: u64) {
        let shared = Arc::clone(&self.shared);
        if shared.cache.has_bans() && shared.sweeping.try_lock().is_ok() {
            tokio::task::spawn_local(async move { shared.sweep(u32::MAX, now_ms).await });
        }
    }

    /// As [`Shared::purge_url`], of the site and the host that a request is for.
    pub(crate) async fn purge_url(&self, ask: &Ask<'_>, target: &[u8], soft: bool) -> Outcome {
        let request = Request { target: target.to_vec(), ..ask.request.clone() };
        let client = ask.notes.client.unwrap_or(Peer::Local);
        let url = Url { live: ask.live, site: ask.site, request: &request, client };
        self.shared.purge_url(&url, soft, self.now()).await
    }
}

/// The request of a reader who asks for the URL, in the form it is stored under.
fn as_read(url: &Url<'_>, now: Now, scheme: Scheme, port: Option<u16>) -> (Request, Notes) {
    let mut request = Request {
        method: Method::Get,
        scheme,
        port,
        headers: HeaderBlock::new(),
        framing: Framing::None,
        ..url.request.clone()
    };
    let mut notes = Notes::default();
    let mut ctx = ReceiveCtx { request: &mut request, client: url.client, now, notes: &mut notes };
    // What would become of the request does not matter: its form does.
    _ = url.site.policy.receive(&mut ctx);
    (request, notes)
}
