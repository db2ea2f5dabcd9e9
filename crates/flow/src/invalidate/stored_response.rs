//! Stored response as invalidations see it: its URL, taken from its key, and its head. The tests of
//! bans are made here from an invalidation's data, on each node alike.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use base::key_fields;
use cache::{Record, Test};
use message::Response;

use crate::state::live_configuration::LiveConfiguration;
use crate::surrogate;

/// Scheme, host, port and target of the request that a response is stored under.
pub(crate) struct StoredUrl<'a> {
    pub(crate) secure: bool,
    /// The host without its port.
    pub(crate) host: &'a [u8],
    pub(crate) port: Option<u16>,
    pub(crate) target: &'a [u8],
}

impl<'a> StoredUrl<'a> {
    /// The URL as [`begin_key`](crate::key::begin_key) wrote it: in the key, or in the note if a
    /// program made the key.
    pub(crate) fn of(object: &'a Record) -> Self {
        let asked = crate::state::vcl::note::asked(object.note());
        Self::of_key(asked.unwrap_or_else(|| object.key()))
    }

    /// The URL in a declared site's key.
    pub(crate) fn of_key(key: &'a [u8]) -> Self {
        let mut fields = key_fields(key);
        let mut next = || fields.next().unwrap_or_default();
        let (scheme, host, port, target) = (next(), next(), next(), next());
        let port = port.first_chunk().map(|port| u16::from_be_bytes(*port));
        Self { secure: scheme == b"s", host, port, target }
    }

    /// Host and port, if there is a port.
    pub(crate) fn authority(&self) -> Vec<u8> {
        let mut authority = self.host.to_vec();
        if let Some(port) = self.port {
            authority.extend_from_slice(format!(":{port}").as_bytes());
        }
        authority
    }

    /// The URL as text.
    pub(crate) fn text(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        format!("{scheme}://{}{}", text(&self.authority()), text(self.target))
    }

    /// The name of the response in Souin's lists.
    pub(crate) fn souin_key(&self) -> Vec<u8> {
        let scheme: &[u8] = if self.secure { b"https" } else { b"http" };
        [b"GET-", scheme, b"-", &self.authority(), b"-", self.target].concat()
    }
}

/// Facts about an object for a ban expression. The object's head is parsed at first use.
struct ObjectFacts<'a> {
    object: &'a Record,
    under: StoredUrl<'a>,
    authority: Vec<u8>,
    now_ms: u64,
    head: OnceCell<Response>,
}

impl ban::BanSubject for ObjectFacts<'_> {
    fn url(&self) -> &[u8] {
        self.under.target
    }

    fn host(&self) -> &[u8] {
        &self.authority
    }

    fn status(&self) -> u16 {
        self.object.status().code()
    }

    fn age_ms(&self) -> u64 {
        self.object.age_ms(self.now_ms)
    }

    fn ttl_ms(&self) -> u64 {
        self.object.lifetime_ms()
    }

    fn grace_ms(&self) -> u64 {
        self.object.grace_ms()
    }

    fn keep_ms(&self) -> u64 {
        self.object.stale_if_error_ms()
    }

    fn any_value(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        let head = self.head.get_or_init(|| surrogate::whole_head(self.object));
        head.headers.values_named(name.as_bytes()).any(test)
    }
}

/// Selects responses of a site.
pub(crate) enum Matcher {
    All,
    Expression(ban::Expression),
    /// Responses whose name in Souin's list matches.
    Listed(linear::Regex),
}

/// Sites that may be purged, by their numbers in the configuration in force. Responses of a host
/// belong to its present site.
pub struct PurgeableSites {
    live: Arc<LiveConfiguration>,
    sites: Box<[bool]>,
}

impl PurgeableSites {
    /// These sites of `live`.
    pub fn of(live: &Arc<LiveConfiguration>, numbers: impl IntoIterator<Item = u32>) -> Self {
        let mut sites = vec![false; live.sites.listed.len()];
        for number in numbers {
            if let Some(site) = sites.get_mut(number as usize) {
                *site = true;
            }
        }
        Self { live: Arc::clone(live), sites: sites.into() }
    }

    pub(crate) fn has(&self, under: &StoredUrl<'_>) -> bool {
        let site = self.live.sites.by_host.find(under.host);
        site.is_some_and(|site| self.sites.get(site.number as usize) == Some(&true))
    }

    /// The text in lists of bans.
    pub(crate) fn text(&self) -> String {
        let named =
            self.live.sites.listed.iter().zip(&self.sites).filter(|(_, is_meant)| **is_meant);
        let names = named.map(|(site, _)| &*site.name);
        format!("site {}", names.collect::<Vec<_>>().join(", "))
    }
}

/// The test of a ban.
pub(crate) struct BanCriteria {
    pub(crate) scope: Option<PurgeableSites>,
    pub(crate) matcher: Matcher,
    /// The time of the ban; ages are compared as of then.
    pub(crate) now_ms: u64,
}

impl Test for BanCriteria {
    fn matches(&self, object: &Record) -> bool {
        let under = StoredUrl::of(object);
        if self.scope.as_ref().is_some_and(|scope| !scope.has(&under)) {
            return false;
        }
        match &self.matcher {
            Matcher::All => true,
            Matcher::Listed(regex) => regex.is_match(&under.souin_key()),
            Matcher::Expression(expression) => {
                let authority = under.authority();
                let head = OnceCell::new();
                let now_ms = self.now_ms;
                expression.matches(&ObjectFacts { object, under, authority, now_ms, head })
            }
        }
    }

    fn may_match(&self, key: &[u8]) -> bool {
        // Declared sites have marks; programs store objects instead.
        let under = StoredUrl::of_key(key);
        if self.scope.as_ref().is_some_and(|scope| !scope.has(&under)) {
            return false;
        }
        match &self.matcher {
            Matcher::All | Matcher::Expression(_) => true,
            Matcher::Listed(regex) => regex.is_match(&under.souin_key()),
        }
    }
}

impl fmt::Debug for BanCriteria {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meant(..)")
    }
}
