//! What a purge does to the store. Everything that is not one URL is a ban: it is in force at once,
//! and the sweep that counts what it hit runs beside the cores.

use std::sync::Arc;
use std::time::Duration;

use ban::{Expression, Field, Term};
use base::{KeyBuf, Now};
use cache::{Ban, NewBan, Tags, Which};
use message::{Framing, HeaderBlock, Method, Request, Scheme, target};
use policy::{Notes, ReceiveCtx};

use super::dialects::of_host;
use super::reach::Share;
use super::stored::{Matcher, Meant, Scope, Under};
use crate::ask::Ask;
use crate::core::Core;
use crate::key::make_key;
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
    Listed(linear::Regex),
}

impl What {
    pub(super) fn terms(terms: Vec<Term>) -> Self {
        Self::Ban { expression: Expression::all(terms), tags: None }
    }

    /// What a ban expression says, word for word: for programs, which have every field that they
    /// left in what is stored, surrogate keys as well.
    pub fn by_fields(expression: Expression) -> Self {
        Self::Ban { expression, tags: None }
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

    /// Those of `host`, on any port, whose target begins with `prefix`; either may be left out.
    ///
    /// # Errors
    /// What is too long for an expression.
    pub fn beginning(host: Option<&[u8]>, prefix: Option<&[u8]>) -> Result<Self, String> {
        let mut terms = Vec::new();
        if let Some(host) = host {
            terms.push(of_host(host).ok_or("the host is too long")?);
        }
        if let Some(prefix) = prefix.filter(|prefix| *prefix != b"/") {
            let prefix = std::str::from_utf8(prefix).map_err(|_| "the prefix is not UTF-8")?;
            let regex = ban::regex(&format!("^{}", linear::escape(prefix)))?;
            terms.push(Term::matches(Field::Url, false, regex));
        }
        Ok(if terms.is_empty() { Self::Everything } else { Self::terms(terms) })
    }

    /// Those of one target of `host`, on any port.
    ///
    /// # Errors
    /// What is too long for an expression.
    pub fn at(host: &[u8], target: &[u8]) -> Result<Self, String> {
        let host = of_host(host).ok_or("the host is too long")?;
        let target = std::str::from_utf8(target).map_err(|_| "the URL is not UTF-8")?;
        Ok(Self::terms(vec![host, Term::equal(Field::Url, false, target)]))
    }

    /// Of these, those with any of these surrogate keys.
    #[must_use]
    pub fn tagged(self, tags: Vec<Vec<u8>>) -> Self {
        match self {
            Self::Ban { expression, .. } => Self::Ban { expression, tags: Some(tags) },
            _ => Self::Tags(tags),
        }
    }

    /// As lists of bans have it.
    /// As bans are listed.
    pub(super) fn text(&self) -> String {
        let tags = |tags: &[Vec<u8>]| {
            let texts = tags.iter().map(|tag| String::from_utf8_lossy(tag));
            format!("tags {}", texts.collect::<Vec<_>>().join(" "))
        };
        match self {
            Self::Everything => "everything".to_owned(),
            Self::Tags(of) => tags(of),
            Self::Ban { expression, tags: None } => expression.listed(),
            Self::Ban { expression, tags: Some(of) } => {
                format!("{} && {}", expression.listed(), tags(of))
            }
            Self::Listed(regex) => format!("souin {}", regex.as_str()),
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

/// Longest pause of a sweep between two short pieces of work, so that the thread it shares a
/// processor with answers meanwhile.
const PAUSE: Duration = Duration::from_micros(100);
/// Pieces of work between two pauses: a few hundred microseconds.
const PIECES: u32 = 8;
/// How long the answer to a purge waits until it is known what was hit: plugins purge many pages
/// and keys, one after the other, and few of them wait for more than a second.
const COUNT_MS: u64 = 50;
/// Places of the index that a program's purge by keys looks at before it goes on: some
/// milliseconds. What is stored beyond them is counted by nobody.
const COUNT_PLACES: usize = 64 * 1024;
/// Most names of a list of what is stored.
const LISTED_MAX: usize = 10_000;

impl Shared {
    /// Invalidates what is meant of all sites. When this returns no core uses it any more. At most
    /// `wait_ms` are waited until everything stored has been looked at.
    pub async fn purge(
        self: &Arc<Self>,
        what: What,
        soft: bool,
        now_ms: u64,
        wait_ms: u64,
    ) -> Outcome {
        self.purge_of(None, what, soft, now_ms, wait_ms).await
    }

    /// The same of some sites only.
    async fn purge_of(
        self: &Arc<Self>,
        scope: Option<Scope>,
        what: What,
        soft: bool,
        now_ms: u64,
        wait_ms: u64,
    ) -> Outcome {
        let text = match &scope {
            Some(scope) => format!("{} && {}", scope.text(), what.text()),
            None => what.text(),
        };
        let (tags, matcher) = self.sought(what);
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

    /// Invalidates what is meant, at once and without waiting: what is stored is looked at as it is
    /// found, or by a sweep beside the cores.
    pub(crate) fn ban_at_once(self: &Arc<Self>, what: What, soft: bool, now_ms: u64) {
        let ban = self.enact(what, soft, now_ms);
        self.sweep_beside(&ban, now_ms);
    }

    /// The same. The ban that comes back has counted what it meets: of a large store, what could be
    /// looked at without holding others up.
    pub(crate) fn ban_and_count(self: &Arc<Self>, what: What, soft: bool, now_ms: u64) -> Arc<Ban> {
        let ban = self.enact(what, soft, now_ms);
        if !self.cache.sweep_first(COUNT_PLACES) {
            self.sweep_beside(&ban, now_ms);
        }
        ban
    }

    fn enact(&self, what: What, soft: bool, now_ms: u64) -> Arc<Ban> {
        let text = what.text().into();
        let (tags, matcher) = self.sought(what);
        let test = Arc::new(Meant { scope: None, matcher, now_ms });
        let which = Which { tags, test: Some(test) };
        self.cache.ban_at_once(NewBan { text, which, soft, now_ms })
    }

    fn sweep_beside(self: &Arc<Self>, ban: &Ban, now_ms: u64) {
        // Outside of a runtime (a program's start) the next sweep will do.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (shared, until) = (Arc::clone(self), ban.number());
            runtime.spawn(async move { shared.sweep(until, now_ms).await });
        }
    }

    /// What is meant, as stored responses are tested for it.
    pub(super) fn sought(&self, what: What) -> (Option<Tags>, Matcher) {
        let hashes = |tags: &[Vec<u8>]| {
            Tags::new(tags.iter().map(|tag| tags::hash(&self.seed, tag)).collect())
        };
        match what {
            What::Everything => (None, Matcher::All),
            What::Tags(of) => (Some(hashes(&of)), Matcher::All),
            What::Ban { expression, tags } => {
                (tags.as_deref().map(hashes), Matcher::Expression(expression))
            }
            What::Listed(regex) => (None, Matcher::Listed(regex)),
        }
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
        let scope = Scope::of(live, [site.number]);
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
        self.purge_share(ask, Share { what, soft, sites: vec![ask.site.number] }).await
    }

    /// Invalidates some sites' share.
    pub(crate) async fn purge_share(&self, ask: &Ask<'_>, share: Share) -> Outcome {
        let scope = Scope::of(ask.live, share.sites);
        let now_ms = self.now().mono_ms;
        self.shared.purge_of(Some(scope), share.what, share.soft, now_ms, COUNT_MS).await
    }

    /// Tests what nobody asked for against bans that were made, and forgets old ones. Once a
    /// second.
    pub(crate) fn sweep_bans(&self, now_ms: u64) {
        let shared = Arc::clone(&self.shared);
        if shared.cache.has_bans() && shared.sweeping.try_lock().is_ok() {
            tokio::task::spawn_local(async move { shared.sweep(u32::MAX, now_ms).await });
        }
    }

    /// Invalidates every variant of `target`, of the host that the request names.
    pub(crate) async fn purge_url(&self, ask: &Ask<'_>, target: &[u8], soft: bool) -> Outcome {
        let page = Page {
            live: ask.live,
            site: ask.site,
            request: ask.request,
            client: ask.notes.client.unwrap_or(policy::Peer::Local),
            now: self.now(),
        };
        self.shared.purge_url(&page, target, soft).await
    }
}

/// Where a URL that is purged belongs.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    /// The configuration in force.
    pub live: &'a Arc<Live>,
    /// The host's site.
    pub site: &'a Site,
    /// The request that names the host.
    pub request: &'a Request,
    /// Who purges.
    pub client: policy::Peer,
    /// The time.
    pub now: Now,
}

impl Shared {
    /// Invalidates every variant of `target`, of the host that the page's request names, over
    /// either scheme, on the port it names and on none: what makes purges seldom comes the way
    /// readers do.
    pub async fn purge_url(
        self: &Arc<Self>,
        page: &Page<'_>,
        target: &[u8],
        soft: bool,
    ) -> Outcome {
        let (site, now_ms) = (page.site, page.now.mono_ms);
        let mut ports = vec![None];
        ports.extend(page.request.port.map(Some));
        let mut outcome = Outcome::default();
        let mut split = Vec::new();
        for scheme in [Scheme::Http, Scheme::Https] {
            for port in &ports {
                let (request, notes) = as_read(page, target, scheme, *port);
                if site.policy.splits_key(&notes) {
                    split.push(request.target);
                    continue;
                }
                let mut key = KeyBuf::new();
                make_key(&self.seed, site, &request, &notes, &mut key);
                outcome.objects += match soft {
                    true => self.cache.soft_invalidate(&key, now_ms),
                    false => self.cache.invalidate(&key),
                } as u64;
            }
        }
        split.sort();
        split.dedup();
        for target in split {
            let url = Term::equal(Field::Url, false, &String::from_utf8_lossy(&target));
            // Without the condition on the host it is every host's of the site.
            let what = What::terms(of_host(&page.request.host).into_iter().chain([url]).collect());
            let scope = Some(Scope::of(page.live, [site.number]));
            let more = self.purge_of(scope, what, soft, now_ms, COUNT_MS).await;
            outcome.objects += more.objects;
            outcome.pending |= more.pending;
        }
        outcome
    }
}

/// The request of a reader who asks for `target`, in the form it is stored under.
fn as_read(page: &Page<'_>, target: &[u8], scheme: Scheme, port: Option<u16>) -> (Request, Notes) {
    let mut request = Request {
        method: Method::Get,
        scheme,
        port,
        target: target.to_vec(),
        headers: HeaderBlock::new(),
        framing: Framing::None,
        ..page.request.clone()
    };
    if page.site.vcl.is_none() {
        target::canonical(&mut request);
    }
    let mut notes = Notes::default();
    let Page { client, now, .. } = *page;
    let mut ctx = ReceiveCtx { request: &mut request, client, now, notes: &mut notes };
    // What would become of the request does not matter: its form does.
    _ = page.site.policy.receive(&mut ctx);
    (request, notes)
}
