//! Neighbours: the messages that propagate an invalidation to other caches (Varnish, Squid, nginx,
//! another Larder, services with an API). An invalidation that a dialect cannot express is an
//! error, and must never be sent as a smaller one. Surrogate keys are purged for all hosts if the
//! dialect cannot name hosts.

use std::fmt::{self, Write};

use ban::{Expression, Field, FieldRequirement};
use message::{Framing, HeaderId, Method, Request, Scheme, class};

use crate::invalidation::{
    Invalidation, InvalidationSource, InvalidationTarget, Sites, TOLD_FIELD, Url,
};
use crate::selector::ResponseSelector;

/// The most bytes of surrogate keys in one request.
const TAGS_BYTES: usize = 4000;
/// The most surrogate keys in one request to Fastly's API.
const FASTLY_KEYS: usize = 256;
/// The most surrogate keys in one request to Cloudflare's API.
const CLOUDFLARE_TAGS: usize = 30;

macro_rules! dialects {
    ($($variant:ident $name:literal $about:literal;)*) => {
        /// A dialect in which invalidations are propagated.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum NeighbourDialect { $(#[doc = $about] $variant,)* }

        impl NeighbourDialect {
            /// All dialects, with name and description.
            pub const ALL: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $about),)*];
        }
    };
}

dialects! {
    Purge "purge" "`PURGE url`: Squid, nginx, another Larder, the usual VCL.";
    NginxHelper "nginx-helper" "`GET /purge/path`: nginx with a `purge` location.";
    FosHttpCache "foshttpcache" "`PURGE url`, `BAN` with `X-Host`, `X-Url`, `X-Content-Type`, and with `X-Cache-Tags`: Varnish with the VCL of FOSHttpCache.";
    Xkey "xkey" "The same, but surrogate keys by `PURGEKEYS` with `xkey-purge` or `xkey-softpurge`: Varnish with vmod xkey.";
    Souin "souin" "Souin's API: `PURGE` of keys by a regular expression, of surrogate keys, of all.";
    Fastly "fastly" "Fastly's API: `POST /purge/url`, `/service/ID/purge` with `Surrogate-Key`, `/service/ID/purge_all`.";
    Cloudflare "cloudflare" "Cloudflare's API: `POST /zones/ID/purge_cache` with `files`, `tags`, `hosts`, `prefixes` or `purge_everything`.";
    Htcp "htcp" "HTCP's CLR (RFC 2756), a datagram for each URL: Squid, another Larder.";
}

/// The properties of a neighbour that its messages depend on.
#[derive(Clone, PartialEq, Eq)]
pub struct NeighbourProfile {
    /// Its dialect.
    pub dialect: NeighbourDialect,
    /// The path prefix of its API; may be empty.
    pub base: String,
    /// The token for it.
    pub token: Option<String>,
    /// The names of the sites that it caches; empty for all.
    pub sites: Vec<String>,
}

impl fmt::Debug for NeighbourProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dialect, base, sites, .. } = self;
        write!(f, "{} below {base:?} for {sites:?}", dialect.name())
    }
}

/// One message to a neighbour.
#[derive(Debug)]
pub enum Message {
    /// A request and its body. Its host is the page's, or empty for the neighbour's own.
    Request(Box<Request>, Vec<u8>),
    /// An absolute URL for an HTCP CLR.
    Clear(Vec<u8>),
}

/// The error of a purge that a dialect cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsupportedPurge(pub &'static str);

impl fmt::Display for UnsupportedPurge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "its dialect cannot express {}", self.0)
    }
}

/// The responses of an invalidation, in a form that neighbours can select.
enum Subject<'a> {
    Url(&'a Url),
    Tags(&'a [Vec<u8>], MatchPatterns),
    Described(MatchPatterns),
}

/// Regular expressions that must all match. An absent one matches everything.
#[derive(Default)]
struct MatchPatterns {
    host: Option<String>,
    url: Option<String>,
    content_type: Option<String>,
}

impl MatchPatterns {
    fn is_all(&self) -> bool {
        self.host.is_none() && self.url.is_none() && self.content_type.is_none()
    }
}

impl NeighbourDialect {
    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(dialect, ..)| *dialect == self).map_or("", |(_, name, _)| name)
    }
}

impl NeighbourProfile {
    /// The messages for `invalidation`, if it concerns the neighbour's sites. `hosts` makes a
    /// regular expression of the hosts of named sites; `None` for every host.
    ///
    /// # Errors
    /// The dialect cannot express it.
    pub fn messages(
        &self,
        invalidation: &Invalidation,
        hosts: &dyn Fn(&[String]) -> Option<String>,
    ) -> Result<Vec<Message>, UnsupportedPurge> {
        match invalidation.cause.heard {
            InvalidationSource::Neighbour => return Ok(Vec::new()),
            InvalidationSource::Datagram if self.dialect == NeighbourDialect::Htcp => {
                return Ok(Vec::new());
            }
            InvalidationSource::Datagram | InvalidationSource::Here => {}
        }
        let (soft, own) = (invalidation.soft, &self.sites);
        let host = match &invalidation.sites {
            Sites::Named(names)
                if !own.is_empty() && !own.iter().any(|site| names.contains(site)) =>
            {
                return Ok(Vec::new());
            }
            // It means all that the neighbour has.
            Sites::Named(names)
                if !own.is_empty() && own.iter().all(|site| names.contains(site)) =>
            {
                None
            }
            Sites::Named(names) => hosts(names),
            Sites::Every => None,
        };
        let messages = match subject(invalidation, host)? {
            Subject::Url(url) => self.of_url(url, soft),
            Subject::Tags(tags, of) => self.of_tags(tags, &of, soft)?,
            Subject::Described(what) if what.is_all() => vec![self.of_all()?],
            Subject::Described(what) => vec![self.described(&what)?],
        };
        let is_sendable = |message: &Message| match message {
            Message::Request(request, _) => {
                request.headers.iter().all(|field| class::is_value(field.value))
            }
            Message::Clear(_) => true,
        };
        match messages.iter().all(is_sendable) {
            true => Ok(messages),
            false => Err(UnsupportedPurge("characters that no field has")),
        }
    }

    fn of_url(&self, url: &Url, soft: bool) -> Vec<Message> {
        let authority = authority(url);
        let at = |prefix: &[u8], rest: &[u8]| [prefix, &authority, rest].concat();
        let of_page = |method: Method, target: Vec<u8>| {
            let mut request = request(method, target);
            (request.host, request.port) = (url.host.clone(), url.port);
            plain(request)
        };
        match self.dialect {
            NeighbourDialect::Purge | NeighbourDialect::FosHttpCache | NeighbourDialect::Xkey => {
                vec![of_page(Method::Purge, url.target.clone())]
            }
            NeighbourDialect::NginxHelper => {
                vec![of_page(Method::Get, [b"/purge", &url.target[..]].concat())]
            }
            NeighbourDialect::Souin => {
                // The name of a key: GET-https-host-/path, and perhaps more.
                let host = linear::escape(&String::from_utf8_lossy(&authority));
                let target = linear::escape(&String::from_utf8_lossy(&url.target));
                // Keys of variants are longer.
                let pattern = format!("^GET-https?-{host}-{target}($|\\{{-VARY-\\}})");
                vec![plain(self.to_api(Method::Purge, &format!("/{}", encoded(&pattern))))]
            }
            NeighbourDialect::Fastly => {
                let mut request = request(Method::Post, at(b"/purge/", &url.target));
                self.authorise(&mut request);
                if soft {
                    request.headers.push_named(b"fastly-soft-purge", b"1");
                }
                vec![plain(request)]
            }
            NeighbourDialect::Cloudflare => {
                let files = [at(b"https://", &url.target), at(b"http://", &url.target)];
                vec![self.to_cloudflare("files", &files.map(|url| lossy(&url)))]
            }
            NeighbourDialect::Htcp => {
                [&b"http://"[..], b"https://"].map(|s| Message::Clear(at(s, &url.target))).into()
            }
        }
    }

    fn of_tags(
        &self,
        tags: &[Vec<u8>],
        of: &MatchPatterns,
        soft: bool,
    ) -> Result<Vec<Message>, UnsupportedPurge> {
        let is_plain = |tag: &Vec<u8>| {
            !tag.is_empty() && tag.iter().all(|b| b.is_ascii_graphic() && *b != b',')
        };
        if !tags.iter().all(is_plain) {
            return Err(UnsupportedPurge("surrogate keys with blanks or commas in them"));
        }
        let has_more = of.url.is_some() || of.content_type.is_some();
        if has_more && self.dialect != NeighbourDialect::FosHttpCache {
            return Err(UnsupportedPurge("surrogate keys with conditions"));
        }
        let texts: Vec<String> = tags.iter().map(|tag| lossy(tag)).collect();
        let most = match self.dialect {
            NeighbourDialect::Fastly => FASTLY_KEYS,
            NeighbourDialect::Cloudflare => CLOUDFLARE_TAGS,
            _ => usize::MAX,
        };
        let message = |tags: &[String]| match self.dialect {
            NeighbourDialect::FosHttpCache => {
                let any: Vec<_> = tags.iter().map(|tag| linear::escape(tag)).collect();
                let mut request = ban(of);
                let pattern = format!("(^|,)({})(,|$)", any.join("|"));
                request.headers.push_named(b"x-cache-tags", pattern.as_bytes());
                Ok(plain(request))
            }
            NeighbourDialect::Xkey => {
                let mut request = request(Method::from_token(b"PURGEKEYS"), b"/".to_vec());
                let name: &[u8] = if soft { b"xkey-softpurge" } else { b"xkey-purge" };
                request.headers.push_named(name, tags.join(" ").as_bytes());
                Ok(plain(request))
            }
            NeighbourDialect::Souin => {
                let mut request = self.to_api(Method::Purge, "");
                request.headers.push_named(b"surrogate-key", tags.join(", ").as_bytes());
                Ok(plain(request))
            }
            NeighbourDialect::Fastly => {
                let mut request = self.to_api(Method::Post, "/purge");
                request.headers.push_named(b"surrogate-key", tags.join(" ").as_bytes());
                if soft {
                    request.headers.push_named(b"fastly-soft-purge", b"1");
                }
                Ok(plain(request))
            }
            NeighbourDialect::Cloudflare => Ok(self.to_cloudflare("tags", tags)),
            NeighbourDialect::Purge | NeighbourDialect::NginxHelper | NeighbourDialect::Htcp => {
                Err(UnsupportedPurge("surrogate keys"))
            }
        };
        pieces(&texts, most).into_iter().map(message).collect()
    }

    fn of_all(&self) -> Result<Message, UnsupportedPurge> {
        Ok(match self.dialect {
            NeighbourDialect::FosHttpCache | NeighbourDialect::Xkey => {
                plain(ban(&MatchPatterns::default()))
            }
            NeighbourDialect::Souin => plain(self.to_api(Method::Purge, "/flush")),
            NeighbourDialect::Fastly => plain(self.to_api(Method::Post, "/purge_all")),
            NeighbourDialect::Cloudflare => {
                self.json(serde_json::json!({ "purge_everything": true }))
            }
            NeighbourDialect::Purge | NeighbourDialect::NginxHelper | NeighbourDialect::Htcp => {
                return Err(UnsupportedPurge("all that is stored"));
            }
        })
    }

    fn described(&self, what: &MatchPatterns) -> Result<Message, UnsupportedPurge> {
        match self.dialect {
            NeighbourDialect::FosHttpCache | NeighbourDialect::Xkey => Ok(plain(ban(what))),
            NeighbourDialect::Cloudflare if what.content_type.is_none() => {
                let host = what.host.as_deref().and_then(one_host);
                let host = host.ok_or(UnsupportedPurge("more than one host"))?;
                match what.url.as_deref().map(beginning) {
                    None => Ok(self.to_cloudflare("hosts", &[host])),
                    Some(Some(prefix)) => {
                        Ok(self.to_cloudflare("prefixes", &[format!("{host}{prefix}")]))
                    }
                    Some(None) => Err(UnsupportedPurge("a regular expression")),
                }
            }
            _ => Err(UnsupportedPurge("a description of responses")),
        }
    }

    /// A request to the neighbour's API.
    fn to_api(&self, method: Method, path: &str) -> Request {
        let mut request = request(method, format!("{}{path}", self.base).into_bytes());
        self.authorise(&mut request);
        request
    }

    fn authorise(&self, request: &mut Request) {
        let Some(token) = &self.token else { return };
        match self.dialect {
            NeighbourDialect::Fastly => {
                request.headers.push_named(b"fastly-key", token.as_bytes());
            }
            _ => request.headers.push_named(b"authorization", bearer(token).as_bytes()),
        }
    }

    fn to_cloudflare(&self, name: &str, values: &[String]) -> Message {
        self.json(serde_json::json!({ name: values }))
    }

    fn json(&self, value: serde_json::Value) -> Message {
        let mut request = self.to_api(Method::Post, "/purge_cache");
        request.headers.push(HeaderId::ContentType, b"application/json");
        let body = value.to_string().into_bytes();
        request.framing = Framing::Length(body.len() as u64);
        Message::Request(Box::new(request), body)
    }
}

/// A regular expression of hosts, on any port, in the notation of sites; `None` if every host is
/// among them.
pub fn hosts_of<'a>(hosts: impl IntoIterator<Item = &'a String>) -> Option<String> {
    let pattern = |host: &String| match host.strip_prefix("*.") {
        _ if host == "*" => None,
        Some(rest) => Some(format!("[^:]+\\.{}", linear::escape(rest))),
        None => Some(linear::escape(host)),
    };
    let all: Option<Vec<_>> = hosts.into_iter().map(pattern).collect();
    all.map(|all| match &*all {
        [one] => format!("^{one}(:[0-9]+)?$"),
        all => format!("^({})(:[0-9]+)?$", all.join("|")),
    })
}

/// The responses of sites with hosts like `host` that `invalidation` selects.
fn subject(
    invalidation: &Invalidation,
    host: Option<String>,
) -> Result<Subject<'_>, UnsupportedPurge> {
    let of_sites = MatchPatterns { host, ..MatchPatterns::default() };
    match &invalidation.what {
        InvalidationTarget::Url(url) => Ok(Subject::Url(url)),
        InvalidationTarget::Key(_) | InvalidationTarget::Retime(..) => invalidation
            .cause
            .url
            .as_deref()
            .map(Subject::Url)
            .ok_or(UnsupportedPurge("a key without a URL")),
        InvalidationTarget::Many(ResponseSelector::Everything) => Ok(Subject::Described(of_sites)),
        InvalidationTarget::Many(ResponseSelector::Tags(tags)) => Ok(Subject::Tags(tags, of_sites)),
        InvalidationTarget::Many(ResponseSelector::Ban { expression, tags }) => {
            let what = described(expression, of_sites)?;
            Ok(match tags {
                Some(tags) => Subject::Tags(tags, what),
                None => Subject::Described(what),
            })
        }
        InvalidationTarget::Many(ResponseSelector::Listed(_)) => {
            Err(UnsupportedPurge("names of Souin's list"))
        }
    }
}

/// The conditions of `expression`, on responses of `of_sites`.
fn described(
    expression: &Expression,
    of_sites: MatchPatterns,
) -> Result<MatchPatterns, UnsupportedPurge> {
    let mut what = MatchPatterns::default();
    for (field, wanted) in expression.requirements().ok_or(UnsupportedPurge("ages and times"))? {
        let pattern = match wanted {
            FieldRequirement::Equal(text) => format!("^{}$", linear::escape(&text)),
            FieldRequirement::Match(pattern) => pattern,
            FieldRequirement::Not => return Err(UnsupportedPurge("what does not match")),
        };
        let place = match field {
            Field::Host => &mut what.host,
            Field::Url => &mut what.url,
            // Programs keep both in fields, for bans that see no request.
            Field::Header(name) if name.eq_ignore_ascii_case("x-host") => &mut what.host,
            Field::Header(name) if name.eq_ignore_ascii_case("x-url") => &mut what.url,
            Field::Header(name) if name.eq_ignore_ascii_case("content-type") => {
                &mut what.content_type
            }
            Field::Header(_) | Field::Status => {
                return Err(UnsupportedPurge("fields of responses"));
            }
        };
        if place.replace(pattern).is_some() {
            return Err(UnsupportedPurge("two conditions on one thing"));
        }
    }
    // A named host is one of the sites'.
    what.host = what.host.or(of_sites.host);
    Ok(what)
}

fn request(method: Method, target: Vec<u8>) -> Request {
    let mut request = Request::new();
    (request.method, request.target, request.scheme) = (method, target, Scheme::Http);
    request.headers.push_named(TOLD_FIELD, b"1");
    request
}

fn plain(request: Request) -> Message {
    Message::Request(Box::new(request), Vec::new())
}

/// A BAN for FOSHttpCache: all fields are present, with `.*` for no condition.
fn ban(what: &MatchPatterns) -> Request {
    let mut request = request(Method::Ban, b"/".to_vec());
    for (name, pattern) in [
        (&b"x-host"[..], &what.host),
        (b"x-url", &what.url),
        (b"x-content-type", &what.content_type),
    ] {
        let pattern = pattern.as_deref().unwrap_or(".*");
        request.headers.push_named(name, pattern.as_bytes());
    }
    request
}

/// Surrogate keys, divided into requests.
fn pieces(tags: &[String], most: usize) -> Vec<&[String]> {
    let (mut all, mut from, mut bytes) = (Vec::new(), 0, 0);
    for (at, tag) in tags.iter().enumerate() {
        // An escaped key may be twice as long, and a separator follows.
        let own = 2 * tag.len() + 2;
        if at > from && (bytes + own > TAGS_BYTES || at - from >= most) {
            all.push(&tags[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += own;
    }
    all.push(&tags[from..]);
    all
}

fn authority(url: &Url) -> Vec<u8> {
    let mut authority = url.host.clone();
    url.port.into_iter().for_each(|port| authority.extend(format!(":{port}").bytes()));
    authority
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// The text encoded for a path.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The text that a regular expression of literal characters matches.
fn literal(pattern: &str) -> Option<String> {
    let (mut out, mut chars) = (String::new(), pattern.chars());
    while let Some(char) = chars.next() {
        match char {
            '\\' => out.push(chars.next().filter(char::is_ascii_punctuation)?),
            '.' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '^' | '$' => {
                return None;
            }
            char => out.push(char),
        }
    }
    Some(out)
}

/// The host in a regular expression of [`crate::of_host`].
fn one_host(pattern: &str) -> Option<String> {
    literal(pattern.strip_prefix('^')?.strip_suffix("(:[0-9]+)?$")?)
}

/// The prefix that a regular expression matches.
fn beginning(pattern: &str) -> Option<String> {
    literal(pattern.strip_prefix('^')?)
}

#[cfg(test)]
#[path = "neighbour/tests.rs"]
mod tests;
