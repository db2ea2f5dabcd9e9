//! Conditions that a route sets beside its path and method: fields, cookies, parameters, the
//! client's address, User-Agent and class, and the time.
//!
//! They are compiled once, and a request is held against them without an allocation. Whatever a
//! client may write in two ways that an application reads as one, they take as one: a rule that
//! keeps somebody out must not be slipped past by `_` for `-`, or by an escaped name.

pub(crate) mod needs;

use std::fmt;
use std::sync::Arc;

use linear::Regex;
use message::header::Field;
use message::{ClientClass, HeaderId, Method, Request, cookie, percent, query};

use crate::acl::{CidrSet, Net};
use crate::countries::{Countries, CountryCode};
use crate::headers::FieldName;
use crate::pattern::{self, NamePattern, PathPattern, PatternError, TextPattern};
use crate::peer::ConnectionPeer;
use crate::time_windows::TimeWindows;
use crate::value::ValuePattern;

/// A request as routes look at it.
#[derive(Clone, Copy, Debug)]
pub struct RoutedRequest<'a> {
    /// Its path, in the reading that is looked at.
    pub path: &'a [u8],
    /// The request itself.
    pub request: &'a Request,
    /// On whose behalf it is made.
    pub client: ConnectionPeer,
}

/// Conditions that must all hold.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<Condition>);

/// One condition.
#[derive(Clone, Debug)]
pub enum Condition {
    /// One of these fields is as it should be.
    Header(Vec<NamedCondition<FieldName, TextPattern>>),
    /// One of these cookies is.
    Cookie(Vec<NamedCondition<NamePattern, TextPattern>>),
    /// One of these query parameters is.
    Query(Vec<NamedCondition<NamePattern, ValuePattern>>),
    /// The client has one of these addresses.
    Client(ClientAddresses),
    /// The client is in one of these countries.
    Country(ClientCountries),
    /// User-Agent is one of these.
    UserAgent(UserAgents),
    /// The client is of one of these classes.
    Class(Vec<ClientClass>),
    /// The head of the request was read in one of these windows of time.
    Time(Arc<TimeWindows>),
    /// This is not true of the request.
    Not(Box<RouteScope>),
}

/// A name, and what is asked of its values.
#[derive(Clone, Debug)]
pub struct NamedCondition<N, V> {
    /// The name.
    pub name: N,
    /// The values that it should have.
    pub wanted: WantedValue<V>,
}

/// The values that something of a request should have.
#[derive(Clone, Debug)]
pub enum WantedValue<V> {
    /// Any; it is there.
    Present,
    /// None; it is not there.
    Absent,
    /// One of these.
    Like(Vec<V>),
}

/// Addresses of clients, as they are written and as they are looked up.
#[derive(Clone, Debug)]
pub struct ClientAddresses {
    nets: Vec<Net>,
    set: CidrSet,
}

/// Countries of clients. An address of no known country is in none.
#[derive(Clone, Debug)]
pub struct ClientCountries {
    codes: Vec<CountryCode>,
    /// `None` before the file was read: no client is in a country then.
    database: Option<Arc<Countries>>,
}

/// Patterns of User-Agent, which are sought all at once.
#[derive(Clone, Debug)]
pub struct UserAgents {
    patterns: Vec<UserAgentPattern>,
    any: Regex,
}

/// A pattern of User-Agent: a text that occurs anywhere in it, in any case, where `*` stands for
/// anything; or `~ regex` (`~* regex` without regard to case).
#[derive(Clone, Debug)]
struct UserAgentPattern {
    text: String,
    regex: Regex,
}

/// The requests that a route is for, or that it leaves out.
#[derive(Clone, Debug, Default)]
pub struct RouteScope {
    /// Paths; any of them. Empty: every path.
    pub paths: Vec<PathPattern>,
    /// Methods; any of them. Empty: every method.
    pub methods: Vec<Method>,
    /// Conditions that must hold besides.
    pub when: Conditions,
}

impl Conditions {
    /// Adds one that must hold as well.
    pub fn push(&mut self, condition: Condition) {
        self.0.push(condition);
    }

    /// Returns true if there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter()
    }

    /// Returns true if all hold for a request.
    pub fn hold(&self, asked: RoutedRequest<'_>) -> bool {
        self.0.iter().all(|condition| condition.holds(asked))
    }

    /// The first that does not hold.
    pub fn failing(&self, asked: RoutedRequest<'_>) -> Option<&Condition> {
        self.0.iter().find(|condition| !condition.holds(asked))
    }

    /// Returns true if these surely hold wherever `other` do: each of them is one of those.
    pub fn covers(&self, other: &Self) -> bool {
        let theirs: Vec<String> = other.0.iter().map(ToString::to_string).collect();
        self.0.iter().all(|own| theirs.contains(&own.to_string()))
    }

    /// Gives conditions about countries their database.
    pub(crate) fn use_countries(&mut self, database: &Arc<Countries>) {
        for condition in &mut self.0 {
            match condition {
                Condition::Country(own) => own.database = Some(Arc::clone(database)),
                Condition::Not(scope) => scope.when.use_countries(database),
                Condition::Header(_)
                | Condition::Cookie(_)
                | Condition::Query(_)
                | Condition::Client(_)
                | Condition::UserAgent(_)
                | Condition::Class(_)
                | Condition::Time(_) => {}
            }
        }
    }

    /// Returns true if a condition is about countries.
    pub fn ask_for_country(&self) -> bool {
        self.0.iter().any(|condition| match condition {
            Condition::Country(_) => true,
            Condition::Not(scope) => scope.when.ask_for_country(),
            Condition::Header(_)
            | Condition::Cookie(_)
            | Condition::Query(_)
            | Condition::Client(_)
            | Condition::UserAgent(_)
            | Condition::Class(_)
            | Condition::Time(_) => false,
        })
    }

    /// Fields that are looked at, those of what is left out too.
    pub fn fields(&self) -> Vec<&FieldName> {
        let mut fields = Vec::new();
        for condition in &self.0 {
            match condition {
                Condition::Header(tests) => fields.extend(tests.iter().map(|test| &test.name)),
                Condition::Not(scope) => fields.extend(scope.when.fields()),
                Condition::Cookie(_)
                | Condition::Query(_)
                | Condition::Client(_)
                | Condition::Country(_)
                | Condition::UserAgent(_)
                | Condition::Class(_)
                | Condition::Time(_) => {}
            }
        }
        fields
    }

    /// Returns true if one of them is about the client's class, also of what is left out.
    pub fn ask_for_class(&self) -> bool {
        self.0.iter().any(|condition| match condition {
            Condition::Class(_) => true,
            Condition::Not(scope) => scope.when.ask_for_class(),
            _ => false,
        })
    }

    /// The classes of clients that they are for; `None` for any.
    pub fn classes(&self) -> Option<&[ClientClass]> {
        self.0.iter().find_map(|condition| match condition {
            Condition::Class(classes) => Some(&**classes),
            _ => None,
        })
    }
}

impl Condition {
    /// Returns true if it holds for a request.
    pub fn holds(&self, asked: RoutedRequest<'_>) -> bool {
        let RoutedRequest { request, client, .. } = asked;
        match self {
            Self::Header(tests) => match &request.replaced {
                Some(_) => tests.iter().any(|test| test.holds(request.sent_fields())),
                // As it mostly is: nothing is in the place of what was sent.
                None => tests.iter().any(|test| test.holds(request.headers.iter())),
            },
            Self::Cookie(tests) => tests.iter().any(|test| test.holds_of_cookies(request)),
            Self::Query(tests) => tests.iter().any(|test| test.holds_of_query(request)),
            Self::Client(addresses) => addresses.set.has(client),
            Self::Country(countries) => countries.have(client),
            Self::UserAgent(agents) => {
                let mut sent = request.sent_fields().filter(|f| f.id == HeaderId::UserAgent);
                sent.any(|field| agents.any.is_match(field.value))
            }
            Self::Class(classes) => {
                request.client.is_some_and(|client| classes.contains(&client.class))
            }
            Self::Time(windows) => windows.contain(request.arrived_unix_ms),
            Self::Not(scope) => !scope.contains(asked),
        }
    }

    /// The condition in words that anybody may read. A value of a field or cookie may be a secret;
    /// it is left out.
    pub fn told(&self) -> String {
        match self {
            Self::Header(tests) => alternatives(tests.iter().map(|t| t.told("header", ": "))),
            Self::Cookie(tests) => alternatives(tests.iter().map(|t| t.told("cookie", "="))),
            Self::Not(scope) => format!("not ({})", scope.told(Self::told)),
            Self::Query(_)
            | Self::Client(_)
            | Self::Country(_)
            | Self::UserAgent(_)
            | Self::Class(_)
            | Self::Time(_) => self.to_string(),
        }
    }
}

impl fmt::Display for Condition {
    /// The condition in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Header(tests) => alternatives(tests.iter().map(|t| t.full("header", ": "))),
            Self::Cookie(tests) => alternatives(tests.iter().map(|t| t.full("cookie", "="))),
            Self::Query(tests) => alternatives(tests.iter().map(|t| t.full("query", "="))),
            Self::Client(addresses) => {
                format!("client {}", alternatives(addresses.nets.iter().map(ToString::to_string)))
            }
            Self::Country(countries) => {
                let codes = countries.codes.iter().map(ToString::to_string);
                format!("country {}", alternatives(codes))
            }
            Self::UserAgent(agents) => {
                let texts = agents.patterns.iter().map(|pattern| pattern.text.clone());
                format!("user_agent {}", alternatives(texts))
            }
            Self::Class(classes) => {
                let words = classes.iter().map(|class| class.word().to_owned());
                format!("class {}", alternatives(words))
            }
            Self::Time(windows) => windows.to_string(),
            Self::Not(scope) => format!("not ({})", scope.told(ToString::to_string)),
        };
        f.write_str(&text)
    }
}

fn alternatives(texts: impl Iterator<Item = String>) -> String {
    texts.collect::<Vec<_>>().join(" or ")
}

impl<V> WantedValue<V> {
    /// Returns true if `values` are as they should be, where `matches` tells whether one is.
    fn is_met<'v>(
        &self,
        mut values: impl Iterator<Item = &'v [u8]>,
        matches: impl Fn(&V, &[u8]) -> bool,
    ) -> bool {
        match self {
            Self::Present => values.next().is_some(),
            Self::Absent => values.next().is_none(),
            Self::Like(patterns) => {
                values.any(|value| patterns.iter().any(|pattern| matches(pattern, value)))
            }
        }
    }
}

impl<N: fmt::Display, V: fmt::Display> NamedCondition<N, V> {
    fn full(&self, kind: &str, between: &str) -> String {
        let Self { name, wanted } = self;
        match wanted {
            WantedValue::Present => format!("{kind} {name}"),
            WantedValue::Absent => format!("no {kind} {name}"),
            WantedValue::Like(patterns) => {
                let values = alternatives(patterns.iter().map(ToString::to_string));
                format!("{kind} {name}{between}{values}")
            }
        }
    }

    /// The condition in words, without a value, which may be a secret.
    pub(crate) fn told(&self, kind: &str, between: &str) -> String {
        match &self.wanted {
            WantedValue::Like(_) => format!("{kind} {}{between}(value)", self.name),
            WantedValue::Present | WantedValue::Absent => self.full(kind, between),
        }
    }
}

impl NamedCondition<FieldName, TextPattern> {
    /// Returns true if it holds for a head with these fields.
    pub fn holds<'f>(&self, fields: impl Iterator<Item = Field<'f>>) -> bool {
        let fields = fields.filter(|field| self.name.names(*field));
        self.wanted.is_met(fields.map(|field| field.value), TextPattern::matches)
    }
}

impl NamedCondition<NamePattern, TextPattern> {
    fn holds_of_cookies(&self, request: &Request) -> bool {
        let pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
        let values = pairs.filter(|pair| self.name.matches(pair.name)).map(|pair| pair.value);
        self.wanted.is_met(values, TextPattern::matches)
    }
}

impl NamedCondition<NamePattern, ValuePattern> {
    fn holds_of_query(&self, request: &Request) -> bool {
        let params = request.query().into_iter().flat_map(query::params);
        let values = params.filter_map(|param| {
            let name = query::name(param);
            let is_it = self.name.matches(name)
                || memchr::memchr2(b'%', b'+', name).is_some()
                    && self.name.matches(&percent::decode(name));
            is_it.then(|| param.get(name.len() + 1..).unwrap_or_default())
        });
        self.wanted.is_met(values, ValuePattern::matches)
    }
}

impl ClientAddresses {
    /// The set of `nets`.
    pub fn new(nets: Vec<Net>) -> Self {
        let set = CidrSet::new(&nets);
        Self { nets, set }
    }
}

impl ClientCountries {
    /// The clients of these countries.
    pub fn new(codes: Vec<CountryCode>) -> Self {
        Self { codes, database: None }
    }

    fn have(&self, client: ConnectionPeer) -> bool {
        let country = self.database.as_ref().zip(client.address());
        let country = country.and_then(|(database, address)| database.of(address));
        country.is_some_and(|country| self.codes.contains(&country))
    }
}

impl UserAgents {
    /// Reads patterns.
    ///
    /// # Errors
    /// The number of the first that cannot be read, and why; an empty one would be every client's.
    pub fn parse(texts: &[&str]) -> Result<Self, RefusedUserAgent> {
        let (mut patterns, mut expressions) = (Vec::new(), Vec::new());
        for (at, text) in texts.iter().enumerate() {
            let expression = expression(text).map_err(|why| RefusedUserAgent { at, why })?;
            let regex =
                pattern::regex(&expression, false).map_err(|why| RefusedUserAgent { at, why })?;
            patterns.push(UserAgentPattern { text: (*text).to_owned(), regex });
            expressions.push(expression);
        }
        let any = pattern::regex(&expressions.join("|"), false)
            .map_err(|why| RefusedUserAgent { at: 0, why })?;
        Ok(Self { patterns, any })
    }

    /// The first pattern that matches `agent`, as written.
    pub fn which(&self, agent: &[u8]) -> Option<&str> {
        let found = self.patterns.iter().find(|pattern| pattern.regex.is_match(agent));
        found.map(|pattern| pattern.text.as_str())
    }
}

/// A pattern of User-Agent that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedUserAgent {
    /// Its place in the list, from 0.
    pub at: usize,
    /// The reason.
    pub why: PatternError,
}

/// The regular expression that a pattern of User-Agent stands for, as one that may stand beside
/// others.
fn expression(text: &str) -> Result<String, PatternError> {
    let alone = |inner: &str, flags: &str| {
        // It must be an expression by itself before it is put into another.
        pattern::regex(inner, false).map(|_| format!("(?{flags}:{inner})"))
    };
    match text.as_bytes() {
        [b'~', b'*', ..] => alone(text[2..].trim(), "i"),
        [b'~', ..] => alone(text[1..].trim(), "-i"),
        _ if text.bytes().all(|b| b == b'*') => Err(PatternError::Name),
        _ => {
            let parts: Vec<String> = text.split('*').map(linear::escape).collect();
            Ok(format!("(?i:{})", parts.join(".*")))
        }
    }
}

impl RouteScope {
    /// Returns true if a request is in it.
    #[inline]
    pub fn contains(&self, asked: RoutedRequest<'_>) -> bool {
        self.is_for(asked.path, &asked.request.method)
            && (self.when.is_empty() || self.when.hold(asked))
    }

    /// Returns true if path and method are those of requests in it.
    #[inline]
    pub fn is_for(&self, path: &[u8], method: &Method) -> bool {
        (self.paths.is_empty() || self.paths.iter().any(|pattern| pattern.matches(path)))
            && (self.methods.is_empty() || self.methods.contains(method))
    }

    /// Returns true if there is nothing that it asks for.
    pub fn is_everything(&self) -> bool {
        self.paths.is_empty() && self.methods.is_empty() && self.when.is_empty()
    }

    /// Returns true if surely every request of `other` is in it.
    pub fn covers(&self, other: &Self) -> bool {
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty()
                && other.methods.iter().all(|m| self.methods.contains(m)));
        let paths = self.paths.is_empty()
            || (!other.paths.is_empty()
                && other.paths.iter().all(|path| self.paths.iter().any(|wide| wide.covers(path))));
        methods && paths && self.when.covers(&other.when)
    }

    /// The scope in words, its conditions told by `told`.
    fn told(&self, told: fn(&Condition) -> String) -> String {
        let mut parts = Vec::new();
        if !self.paths.is_empty() {
            parts.push(format!("path {}", alternatives(self.paths.iter().map(|p| p.to_string()))));
        }
        if !self.methods.is_empty() {
            let methods = alternatives(self.methods.iter().map(|m| m.to_string()));
            parts.push(format!("method {methods}"));
        }
        parts.extend(self.when.iter().map(told));
        parts.join(", ")
    }
}

#[cfg(test)]
mod tests;
