//! Needs of a scope: what a request must have at least to be in it. They are told without looking
//! at patterns, so that a request is held against the needs of many scopes at once.
//!
//! The values that a part of a request has fall into 64 buckets. Needs must never leave out a
//! request that is in the scope; requests that are not in it may pass them.

use std::sync::Arc;

use linear::Regex;
use message::header::Field;
use message::{HeaderBlock, HeaderId, Method, cookie, query};

use super::{Condition, NamedCondition, RouteScope, RoutedRequest, UserAgents, WantedValue};
use crate::acl::CidrSet;
use crate::countries::{Countries, CountryCode};
use crate::headers::FieldName;
use crate::pattern::{self, NamePattern};

/// Buckets, a bit for each.
pub(crate) type Buckets = u64;

/// All buckets.
const ANY: Buckets = Buckets::MAX;

/// The number of [`Part::ALL`].
pub(crate) const PARTS: usize = Part::ALL.len();

/// A part of a request that a scope may need something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Class,
    Method,
    /// The second byte of the path.
    Start,
    /// The last byte of the path.
    End,
    /// The names of fields.
    Field,
    /// The names of cookies.
    Cookie,
    /// The names of query parameters.
    Param,
    /// The client's address, which is in a list or in none.
    Client,
    Country,
    /// User-Agent, which has a text of a list or of none.
    Agent,
}

impl Part {
    /// All parts, in their order.
    pub(crate) const ALL: [Self; 10] = [
        Self::Class,
        Self::Method,
        Self::Start,
        Self::End,
        Self::Field,
        Self::Cookie,
        Self::Param,
        Self::Client,
        Self::Country,
        Self::Agent,
    ];

    /// Those that are looked at for every request, and those for which lists are searched.
    pub(crate) const CHEAP: [Self; 7] =
        [Self::Class, Self::Method, Self::Start, Self::End, Self::Field, Self::Cookie, Self::Param];
    pub(crate) const DEAR: [Self; 3] = [Self::Client, Self::Country, Self::Agent];

    /// Those that need no condition.
    pub(crate) const OF_URL: [Self; 3] = [Self::Method, Self::Start, Self::End];
}

/// The lists of many scopes, each as one.
#[derive(Debug, Default)]
pub(crate) struct JoinedLists {
    /// The known fields that are asked for, with their buckets.
    fields: Vec<(HeaderId, Buckets)>,
    clients: CidrSet,
    countries: Option<Arc<Countries>>,
    /// `None` if the texts are too many for one search.
    agents: Option<Regex>,
}

impl RouteScope {
    /// The buckets of a part that a request in this scope has one of; `None` if it may lack all.
    pub(crate) fn needs(&self, part: Part) -> Option<Buckets> {
        match part {
            Part::Method => any_of(self.methods.iter().map(bucket_of_method).map(Some)),
            Part::Start => {
                any_of(self.paths.iter().map(|path| of_texts(path.starts(), |text| text.get(1))))
            }
            Part::End => {
                any_of(self.paths.iter().map(|path| of_texts(path.ends(), |text| text.last())))
            }
            _ => self.when.iter().find_map(|condition| condition.needs(part)),
        }
    }
}

impl Condition {
    fn needs(&self, part: Part) -> Option<Buckets> {
        match (self, part) {
            (Self::Class(classes), Part::Class) => {
                any_of(classes.iter().map(|class| Some(1 << *class as u8)))
            }
            (Self::Header(tests), Part::Field) => names_of(tests, bucket_of_field),
            (Self::Cookie(tests), Part::Cookie) => names_of(tests, bucket_of_pattern),
            (Self::Query(tests), Part::Param) => names_of(tests, bucket_of_pattern),
            (Self::Country(countries), Part::Country) => {
                any_of(countries.codes.iter().map(|code| Some(bucket_of_country(*code))))
            }
            (Self::Client(_), Part::Client) | (Self::UserAgent(_), Part::Agent) => Some(1),
            _ => None,
        }
    }
}

/// The union of what alternatives need; `None` if one of them needs nothing, or there are none.
fn any_of(alternatives: impl Iterator<Item = Option<Buckets>>) -> Option<Buckets> {
    let needed = alternatives.reduce(|all, own| Some(all? | own?)).flatten();
    needed.filter(|buckets| *buckets != ANY)
}

/// The buckets of names that are alternatives.
fn names_of<N, V>(
    tests: &[NamedCondition<N, V>],
    bucket: impl Fn(&N) -> Buckets,
) -> Option<Buckets> {
    tests.iter().try_fold(0, |all, test| match test.wanted {
        WantedValue::Present | WantedValue::Like(_) => Some(all | bucket(&test.name)),
        WantedValue::Absent => None,
    })
}

/// The buckets of texts that are alternatives at an edge of a path, by a byte of each.
fn of_texts(texts: Option<Vec<Vec<u8>>>, byte: fn(&[u8]) -> Option<&u8>) -> Option<Buckets> {
    any_of(texts?.iter().map(|text| byte(text).map(|byte| bucket_of_byte(*byte))))
}

fn bucket_of_byte(byte: u8) -> Buckets {
    1 << (byte & 63)
}

fn bucket_of_method(method: &Method) -> Buckets {
    1 << match method {
        Method::Get => 0,
        Method::Head => 1,
        Method::Post => 2,
        Method::Put => 3,
        Method::Delete => 4,
        Method::Patch => 5,
        Method::Options => 6,
        _ => 7,
    }
}

/// The bucket of a field's name, which is that of all its spellings.
fn bucket_of_name(name: &[u8]) -> Buckets {
    let last = match name.last() {
        Some(b'_') | None => b'-',
        Some(last) => *last,
    };
    // Without the bit that tells capitals from small letters.
    let number = (name.len() as u8).wrapping_mul(5).wrapping_add(last & 0x1f);
    1 << (number & 63)
}

fn bucket_of_field(name: &FieldName) -> Buckets {
    bucket_of_name(name.as_bytes())
}

/// The known field of this name, or of another spelling of it.
fn known_field(name: &FieldName) -> Option<HeaderId> {
    let plain = |b: &u8| if *b == b'_' { b'-' } else { *b };
    let plain: Vec<u8> = name.as_bytes().iter().map(plain).collect();
    Some(HeaderId::of(&plain)).filter(|id| *id != HeaderId::Other)
}

/// The bucket of the first byte of a cookie's or parameter's name.
fn bucket_of_first(name: &[u8]) -> Buckets {
    name.first().map_or(ANY, |first| bucket_of_byte(*first))
}

fn bucket_of_pattern(name: &NamePattern) -> Buckets {
    match name.as_str().as_bytes() {
        [b'*', ..] | [] => ANY,
        name => bucket_of_first(name),
    }
}

fn bucket_of_country(code: CountryCode) -> Buckets {
    let [first, second] = code.letters();
    1 << ((first ^ (second << 1)) & 63)
}

impl JoinedLists {
    /// The lists of `scopes`.
    pub(crate) fn of<'a>(scopes: impl Iterator<Item = &'a RouteScope>) -> Self {
        let (mut nets, mut agents, mut countries) = (Vec::new(), Vec::new(), None);
        let mut fields = Vec::new();
        for condition in scopes.flat_map(|scope| scope.when.iter()) {
            match condition {
                Condition::Header(tests) => fields.extend(tests.iter().filter_map(|test| {
                    let id = known_field(&test.name)?;
                    Some((id, bucket_of_field(&test.name)))
                })),
                Condition::Client(addresses) => nets.extend_from_slice(&addresses.nets),
                Condition::Country(own) => countries = countries.or_else(|| own.database.clone()),
                Condition::UserAgent(UserAgents { any, .. }) => {
                    agents.push(format!("(?:{})", any.as_str()));
                }
                _ => {}
            }
        }
        let agents = pattern::regex(&agents.join("|"), false).ok();
        Self { fields, clients: CidrSet::new(&nets), countries, agents }
    }

    /// The buckets that a request has of parts that are cheap to look at, as far as some are
    /// needed.
    #[inline]
    pub(crate) fn cheap(
        &self,
        needed: &[Buckets; PARTS],
        asked: RoutedRequest<'_>,
    ) -> [Buckets; PARTS] {
        let RoutedRequest { path, request, .. } = asked;
        let needs = |part: Part| needed[part as usize] != 0;
        let mut had = [0; PARTS];
        had[Part::Class as usize] = request.client.map_or(0, |client| 1 << client.class as u8);
        had[Part::Method as usize] = bucket_of_method(&request.method);
        had[Part::Start as usize] = path.get(1).map_or(0, |byte| bucket_of_byte(*byte));
        had[Part::End as usize] = path.last().map_or(0, |byte| bucket_of_byte(*byte));
        if needs(Part::Field) {
            let replaced = request.replaced.as_deref();
            let replaced = replaced.map_or(0, |sent| self.fields_in(sent));
            had[Part::Field as usize] = self.fields_in(&request.headers) | replaced;
        }
        if needs(Part::Cookie) && request.headers.contains(HeaderId::Cookie) {
            let pairs = cookie::pairs(request.headers.values(HeaderId::Cookie));
            had[Part::Cookie as usize] =
                pairs.fold(0, |all, pair| all | bucket_of_first(pair.name));
        }
        if needs(Part::Param)
            && let Some(query) = request.query()
        {
            let names = query::params(query).map(query::name);
            had[Part::Param as usize] = names.fold(0, |all, name| all | of_param(name));
        }
        had.iter_mut().zip(needed).for_each(|(had, needed)| *had &= needed);
        had
    }

    /// The buckets that a request has of a part for which a list is searched.
    #[inline(never)]
    pub(crate) fn dear(&self, part: Part, asked: RoutedRequest<'_>) -> Buckets {
        let RoutedRequest { request, client, .. } = asked;
        match part {
            Part::Client => self.clients.has(client).into(),
            Part::Country => {
                let country = self.countries.as_ref().zip(client.address());
                let country = country.and_then(|(database, address)| database.of(address));
                country.map_or(0, bucket_of_country)
            }
            Part::Agent => {
                let is_listed = |field: Field<'_>| {
                    let agents = self.agents.as_ref();
                    agents.is_none_or(|agents| agents.is_match(field.value))
                };
                let mut sent = request.sent_fields().filter(|f| f.id == HeaderId::UserAgent);
                sent.any(is_listed).into()
            }
            _ => ANY,
        }
    }

    /// The buckets of fields: of the known ones that are asked for, and of all others, among which
    /// a known one may be in another spelling.
    #[inline]
    fn fields_in(&self, headers: &HeaderBlock) -> Buckets {
        let known = self.fields.iter().filter(|(id, _)| headers.contains(*id));
        let known = known.fold(0, |all, (_, bucket)| all | bucket);
        headers.other_names().fold(known, |all, name| all | bucket_of_name(name))
    }
}

/// The bucket of a parameter's name, which may be written with escapes.
fn of_param(name: &[u8]) -> Buckets {
    match name.first() {
        Some(b'%' | b'+') | None => ANY,
        Some(first) => bucket_of_byte(*first),
    }
}
