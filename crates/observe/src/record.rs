//! The record of one transaction, as bytes. No other module may read or write this form.
//!
//! All numbers are little-endian. A record is a fixed part of [`FIXED`] bytes, then its texts, then
//! the values of the request fields that are kept.
//!
//! | at | bytes | content |
//! |---|---|---|
//! | 0 | 4 | length of the whole record |
//! | 4 | 2 | status |
//! | 6 | 2 | [`Flags`] |
//! | 8 | 8 | id: the core's number in the upper 16 bits, its count of transactions below |
//! | 16 | 8 | start, milliseconds since 1970 UTC |
//! | 24 | 8 | start, microseconds of the machine's monotonic clock |
//! | 32 | 6 × 4 | phases, microseconds after the start; all ones: not reached |
//! | 56 | 8 | end, microseconds after the start |
//! | 64 | 4 + 4 | bytes of head in and out |
//! | 72 | 8 + 8 | bytes of body in and out |
//! | 88 | 8 | hash of the cache key; 0 without one |
//! | 96 | 8 + 8 | age and remaining lifetime in seconds, if the flags say that they are known |
//! | 112 | 16 | client's address; IPv4 in its first four bytes |
//! | 128 | 1 | cache result: number of [`Served`] |
//! | 129 | 1 | protocol version, tens major, ones minor |
//! | 130 | 2 | attempts at the origin |
//! | 132 | 14 × 2 | lengths of the texts |
//! | 160 | 1 | number of field values |
//! | 161 | 1 | cause: number of [`Kind`] |
//! | 162 | 2 | status of the origin's response; 0 without one |
//! | 164 | 4 + 4 | numbers of the transaction and its session under VCL; 0 without |
//! | 172 | 8 | number of the transaction that caused it; 0 without one |
//! | 180 | 1 | use of a dictionary: number of [`DictionaryUse`] |
//! | 181 | 2 | cipher suite of the client's connection; 0 without TLS |
//! | 183 | 2 | port of the host; 0 for the scheme's default |
//! | 185 | 1 | proof of the crawler: its place in [`ClientProof::ALL`], from 1; 0 without one |
//!
//! The name of the route follows if the flags say so, as its length in two bytes and its bytes.
//! Then follow the [evidence of the fetch](crate::fetch_evidence) and the [heads](crate::heads) of
//! all sides, if the flags say so.
//!
//! A field's value is its length in two bytes (all ones: the request has no such field), then its
//! bytes. The names of the fields are in the ring's header.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::tally::Outcome;
use message::ClientProof;

use crate::fetch_evidence::{EVIDENCE_MAX, FetchEvidence};
use crate::suite::CipherSuite;

/// Version of the form above. A reader must reject any other version.
pub const VERSION: u32 = 10;

/// Bytes of the fixed part.
pub const FIXED: usize = 186;

/// Longest text of a record. A longer text is cut, and [`Flags::CUT`] set. Limits on targets and
/// fields are 8 KiB by default.
pub const TEXT_MAX: usize = 8 * 1024;

/// Most field values of a record: 16 configured ones, two for access logs, and two for traces.
pub const VALUES_MAX: usize = 20;

/// Name of the value that is the `traceparent` sent to the origin; not a field's name.
pub const SENT: &str = "traceparent>";
/// Name of the value that is the user of the scheme Basic; not a field's name.
pub const USER: &str = "authorization>user";

/// Longest field value; a longer one is cut as with [`TEXT_MAX`].
pub const VALUE_MAX: usize = 2 * 1024;

/// Most bytes of heads in a record; the limit `log_heads` is usually less.
pub const HEADS_MAX: usize = 64 * 1024;

const TEXTS: usize = 14;
const LENGTHS_AT: usize = 132;
const VALUES_AT: usize = LENGTHS_AT + 2 * TEXTS;
const KIND_AT: usize = VALUES_AT + 1;
const NEVER: u32 = u32::MAX;
const ABSENT: u16 = u16::MAX;

/// Longest possible record.
pub const RECORD_MAX: usize =
    FIXED + TEXTS * TEXT_MAX + (VALUES_MAX + 1) * (VALUE_MAX + 2) + EVIDENCE_MAX + HEADS_MAX;

/// Boolean facts about a transaction, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u16);

impl Flags {
    /// Over TLS.
    pub const TLS: Self = Self(1);
    /// Over IPv4.
    pub const V4: Self = Self(1 << 1);
    /// Over IPv6.
    pub const V6: Self = Self(1 << 2);
    /// The age is known.
    pub const AGE: Self = Self(1 << 3);
    /// The remaining lifetime is known.
    pub const TTL: Self = Self(1 << 4);
    /// The request could not be read.
    pub const REFUSED: Self = Self(1 << 5);
    /// The response was not sent to its end.
    pub const CUT_OFF: Self = Self(1 << 6);
    /// A text was too long to be kept whole.
    pub const CUT: Self = Self(1 << 7);
    /// The request to the origin went over a reused connection.
    pub const REUSED: Self = Self(1 << 8);
    /// The response is stored.
    pub const STORED: Self = Self(1 << 9);
    /// The connection became a tunnel.
    pub const TUNNEL: Self = Self(1 << 10);
    /// Heads follow the record.
    pub const HEADS: Self = Self(1 << 11);
    /// The name of a route follows the record.
    pub const ROUTE: Self = Self(1 << 12);
    /// The access log has no line about it.
    pub const UNLOGGED: Self = Self(1 << 13);
    /// Evidence of a fetch follows the record.
    pub const EVIDENCE: Self = Self(1 << 14);

    /// Returns true if all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets `other` if `on`.
    #[must_use]
    pub fn with(self, other: Self, on: bool) -> Self {
        if on { Self(self.0 | other.0) } else { self }
    }
}

macro_rules! served {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// The cache result: how a request was served.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Served { #[default] $(#[doc = $about] $variant,)* }

        impl Served {
            /// All results, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in logs.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

served! {
    Synth "SYNTH" "By policy or an error page.";
    Hit "HIT" "From a fresh stored response.";
    Stale "STALE" "From a stale one within its grace.";
    StaleOnError "STALE-ERROR" "From a stale one because the origin failed.";
    Revalidated "REVALIDATED" "From a stored one that the origin has just confirmed.";
    Miss "MISS" "Fetched.";
    HitForMiss "HIT-FOR-MISS" "Fetched without waiting, a former answer having been uncacheable.";
    Collapsed "COLLAPSED" "By another request's fetch.";
    Pass "PASS" "Sent to the origin past the cache.";
    File "FILE" "From a file.";
    Refresh "REFRESH" "Fetched in the background: no client waited.";
    Peer "PEER" "To another node of the cluster, which had asked.";
}

impl Served {
    /// The class in which counters count the result. [`Record::outcome`] knows unreadable requests,
    /// too.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Hit => Outcome::Hit,
            Self::Stale | Self::StaleOnError => Outcome::Stale,
            Self::Revalidated => Outcome::Revalidated,
            Self::Miss | Self::HitForMiss | Self::Collapsed | Self::Refresh => Outcome::Miss,
            Self::Pass => Outcome::Pass,
            Self::File => Outcome::File,
            Self::Synth => Outcome::Synth,
            Self::Peer => Outcome::Peer,
        }
    }

    /// Returns true if the response came from the cache without an origin.
    pub fn is_hit(self) -> bool {
        self.outcome().is_hit()
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

macro_rules! dictionary_uses {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// The use of the dictionary that the client named (RFC 9842).
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DictionaryUse { #[default] $(#[doc = $about] $variant,)* }

        impl DictionaryUse {
            /// All uses, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in logs; empty if no dictionary was named.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }
        }
    };
}

dictionary_uses! {
    NotNamed "" "The client names none.";
    Used "used" "The response is a difference from the dictionary.";
    Off "off" "Settings or limits forbid dictionaries.";
    PlainHttp "plain-http" "Dictionaries are for HTTPS only.";
    NotTaken "not-taken" "The client prefers other codings to dcz and dcb.";
    Opaque "opaque" "The requesting page may not read the response.";
    Malformed "malformed" "Available-Dictionary is not one SHA-256.";
    OneForm "one-form" "The response has only one form.";
    TooLong "too-long" "The response is longer than the limit `form_bytes`.";
    Unknown "unknown" "No stored response is known by this hash.";
    Foreign "foreign" "The response with this hash is not for this request.";
    Making "making" "The form with the dictionary is made in the background, as time and memory permit.";
    Tried "tried" "There is no such form: it is being made, or is not clearly shorter than others.";
    Program "program" "The program has changed the stored response.";
}

/// The name and a sentence; empty if no dictionary was named.
impl fmt::Display for DictionaryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNamed => Ok(()),
            _ => write!(f, "{}: {}", self.word(), self.about()),
        }
    }
}

impl DictionaryUse {
    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The cause of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A client's request.
    #[default]
    Client,
    /// A background fetch renews a stale object.
    Background,
    /// A fragment of an assembled page (ESI, SSI).
    Fragment,
    /// A fetch that warms the store, before a client asks.
    Warm,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: &[Self] = &[Self::Client, Self::Background, Self::Fragment, Self::Warm];

    /// The name in logs and filters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Background => "background",
            Self::Fragment => "fragment",
            Self::Warm => "warm",
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Times of a transaction's phases, in microseconds after its start; `None` for a phase that was
/// not reached. They ascend in this order, except that `fetch` may follow `wait`: a waiter whose
/// lead fetch failed fetches itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// The request's head was complete.
    pub read: Option<u32>,
    /// The policy had decided, and the cache had been looked up.
    pub policy: Option<u32>,
    /// The request began to wait for another request's fetch.
    pub wait: Option<u32>,
    /// The fetch began.
    pub fetch: Option<u32>,
    /// The head of the origin's response was complete.
    pub head: Option<u32>,
    /// The response was ready to be sent.
    pub reply: Option<u32>,
    /// The kernel had taken the last byte. A response from memory ends when it is in the
    /// connection's buffer.
    pub end: u64,
}

/// The record of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// The transaction's number, unique within one run of the daemon.
    pub id: u64,
    /// The transaction's cause.
    pub kind: Kind,
    /// The transaction that caused this one: its `xid` under VCL, else its `id`. 0 if a client did.
    pub parent: u64,
    /// Start in milliseconds since 1970 UTC.
    pub start_unix_ms: u64,
    /// Start in microseconds of the monotonic clock, comparable between cores.
    pub start_us: u64,
    /// Times of the phases.
    pub phases: Phases,
    /// Boolean facts.
    pub flags: Flags,
    /// The client's address; `None` over a unix socket.
    pub client: Option<IpAddr>,
    /// Cipher suite of the client's connection.
    pub suite: CipherSuite,
    /// Protocol version, tens major, ones minor: 11 for HTTP/1.1.
    pub version: u8,
    /// Status sent; 499 if the client left before the response (as in nginx's log).
    pub status: u16,
    /// Status of the origin's last response; 0 without one.
    pub origin_status: u16,
    /// The cache result.
    pub served: Served,
    /// The use of the dictionary that the client named.
    pub dictionary: DictionaryUse,
    /// Attempts at the origin.
    pub tries: u16,
    /// Bytes of the request's head.
    pub head_in: u32,
    /// Bytes of the response's head.
    pub head_out: u32,
    /// Bytes of the request's body.
    pub body_in: u64,
    /// Bytes of the response's body, as sent.
    pub body_out: u64,
    /// Hash of the cache key; 0 without one.
    pub key: u64,
    /// Age sent, in seconds.
    pub age_s: Option<u64>,
    /// Remaining lifetime in seconds; negative when stale.
    pub ttl_s: Option<i64>,
    /// Method.
    pub method: &'a [u8],
    /// Host, lower case.
    pub host: &'a [u8],
    /// Port of the request's URL; 0 for the scheme's default.
    pub port: u16,
    /// Path and query, after the policy's changes.
    pub target: &'a [u8],
    /// The site's name.
    pub site: &'a [u8],
    /// The rule that decided.
    pub rule: &'a [u8],
    /// The name of the route; empty if the site's own settings decided, or no route is known.
    pub route: &'a [u8],
    /// The origin of the fetch.
    pub origin: &'a [u8],
    /// The origin's server that responded.
    pub server: &'a [u8],
    /// The error that occurred.
    pub error: &'a [u8],
    /// The limit that was reached.
    pub limit: &'a [u8],
    /// The reason why the response is not stored.
    pub not_stored: &'a [u8],
    /// The field of the response or request that is the reason, if one is.
    pub evidence: &'a [u8],
    /// The trace of the site's VCL program, one line per step. `recv default.vcl:14 hash` is a
    /// subroutine, the `return` that ended it, and its action. `VCL_Log text` is a text that it
    /// logged before. [`steps`](crate::steps::steps) parses the lines.
    pub vcl: &'a [u8],
    /// The client's class; empty on sites that use no classes.
    pub class: &'a [u8],
    /// The crawler that the client's User-Agent or signature names.
    pub crawler: &'a [u8],
    /// The proof that the client is this crawler; `None` without a crawler.
    pub proof: Option<ClientProof>,
    /// The transaction's number, the first one in `X-Varnish`; 0 without VCL.
    pub xid: u32,
    /// The session's number; 0 without VCL.
    pub session: u32,
    /// Values of the kept request fields, in the order of their names in the ring's header.
    pub values: Values<'a>,
    /// The bytes behind: see [`Record::fetch_evidence`] and [`Record::heads`].
    pub behind: &'a [u8],
}

/// The values of request fields in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values<'a> {
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// Iterates over the values in order; `None` where the request has no such field.
    pub fn iter(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (value, after) = split_value(rest)?;
            rest = after;
            Some(value)
        })
    }
}

/// The proof of this number; `None` for a number of none.
fn proof(number: u8) -> Option<Option<ClientProof>> {
    match number.checked_sub(1) {
        None => Some(None),
        Some(at) => ClientProof::ALL.get(usize::from(at)).map(|proof| Some(*proof)),
    }
}

/// Splits one value off.
fn split_value(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match u16::from_le_bytes(*length) {
        ABSENT => Some((None, rest)),
        length => rest.split_at_checked(usize::from(length)).map(|(v, rest)| (Some(v), rest)),
    }
}

impl<'a> Record<'a> {
    /// Appends the record to `out`, with `values` instead of its own.
    pub fn write<V: AsRef<[u8]>>(
        &self,
        values: impl IntoIterator<Item = Option<V>>,
        out: &mut Vec<u8>,
    ) {
        let at = out.len();
        let mut fixed = [0; FIXED];
        let mut flags = self.flags;
        self.put_numbers(&mut fixed);
        let mut texts = self.texts();
        for (text, place) in texts.iter_mut().zip(fixed[LENGTHS_AT..].as_chunks_mut::<2>().0) {
            *text = short(text, TEXT_MAX, &mut flags);
            *place = (text.len() as u16).to_le_bytes();
        }
        out.extend_from_slice(&fixed);
        // Most texts are empty unless a request fails.
        for text in texts.iter().filter(|text| !text.is_empty()) {
            out.extend_from_slice(text);
        }
        let mut count = 0;
        for value in values.into_iter().take(VALUES_MAX) {
            count += 1;
            match value {
                None => out.extend_from_slice(&ABSENT.to_le_bytes()),
                Some(value) => {
                    let value = short(value.as_ref(), VALUE_MAX, &mut flags);
                    out.extend_from_slice(&(value.len() as u16).to_le_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
        if !self.route.is_empty() {
            let route = short(self.route, VALUE_MAX, &mut flags);
            out.extend_from_slice(&(route.len() as u16).to_le_bytes());
            out.extend_from_slice(route);
            flags = flags.with(Flags::ROUTE, true);
        }
        let record = &mut out[at..];
        let length = record.len() as u32;
        record[..4].copy_from_slice(&length.to_le_bytes());
        record[6..8].copy_from_slice(&flags.0.to_le_bytes());
        record[VALUES_AT] = count;
    }

    fn put_numbers(&self, fixed: &mut [u8; FIXED]) {
        let p = &self.phases;
        let mut out = FieldWriter { bytes: fixed, at: 4 };
        out.put(self.status.to_le_bytes());
        out.at += 2;
        out.put(self.id.to_le_bytes());
        out.put(self.start_unix_ms.to_le_bytes());
        out.put(self.start_us.to_le_bytes());
        for phase in [p.read, p.policy, p.wait, p.fetch, p.head, p.reply] {
            // A phase later than an hour is written as the latest possible time.
            out.put(phase.map_or(NEVER, |us| us.min(NEVER - 1)).to_le_bytes());
        }
        out.put(p.end.to_le_bytes());
        out.put(self.head_in.to_le_bytes());
        out.put(self.head_out.to_le_bytes());
        out.put(self.body_in.to_le_bytes());
        out.put(self.body_out.to_le_bytes());
        out.put(self.key.to_le_bytes());
        out.put(self.age_s.unwrap_or(0).to_le_bytes());
        out.put(self.ttl_s.unwrap_or(0).to_le_bytes());
        match self.client {
            Some(IpAddr::V4(address)) => out.put(address.octets()),
            Some(IpAddr::V6(address)) => out.put(address.octets()),
            None => {}
        }
        out.at = 128;
        out.put([self.served as u8, self.version]);
        out.put(self.tries.to_le_bytes());
        out.at = KIND_AT;
        out.put([self.kind as u8]);
        out.put(self.origin_status.to_le_bytes());
        out.put(self.xid.to_le_bytes());
        out.put(self.session.to_le_bytes());
        out.put(self.parent.to_le_bytes());
        out.put([self.dictionary as u8]);
        out.put(self.suite.0.to_le_bytes());
        out.put(self.port.to_le_bytes());
        out.put([self.proof.map_or(0, |proof| proof as u8 + 1)]);
    }

    fn texts(&self) -> [&'a [u8]; TEXTS] {
        [
            self.method,
            self.host,
            self.target,
            self.site,
            self.rule,
            self.origin,
            self.server,
            self.error,
            self.limit,
            self.not_stored,
            self.evidence,
            self.vcl,
            self.class,
            self.crawler,
        ]
    }

    /// Sets the flags that follow from other members: age, lifetime, address and route are known.
    #[must_use]
    pub fn with_derived_flags(mut self) -> Self {
        self.flags = self
            .flags
            .with(Flags::AGE, self.age_s.is_some())
            .with(Flags::TTL, self.ttl_s.is_some())
            .with(Flags::V4, self.client.is_some_and(|a| a.is_ipv4()))
            .with(Flags::V6, self.client.is_some_and(|a| a.is_ipv6()))
            .with(Flags::ROUTE, !self.route.is_empty());
        self
    }

    /// Reads the record at the beginning of `bytes`, and returns it with the rest; `None` if it is
    /// incomplete or malformed.
    pub fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let length = u32::from_le_bytes(*bytes.first_chunk()?) as usize;
        let (bytes, rest) = bytes.split_at_checked(length)?;
        let (fixed, mut tail) = bytes.split_first_chunk::<FIXED>()?;
        let mut texts: [&[u8]; TEXTS] = [&[]; TEXTS];
        for (text, length) in texts.iter_mut().zip(fixed[LENGTHS_AT..].as_chunks::<2>().0) {
            (*text, tail) = tail.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        }
        let mut after = tail;
        for _ in 0..fixed[VALUES_AT] {
            (_, after) = split_value(after)?;
        }
        let record = Self::of_fixed(fixed, texts)?;
        let values = Values { bytes: &tail[..tail.len() - after.len()] };
        let mut route = &b""[..];
        if record.flags.has(Flags::ROUTE) {
            let (name, behind) = split_value(after)?;
            (route, after) = (name?, behind);
        }
        let heads = match record.flags.has(Flags::EVIDENCE) {
            true => FetchEvidence::read(after)?.1,
            false => after,
        };
        if !heads.is_empty() && !record.flags.has(Flags::HEADS) {
            return None;
        }
        Some((Self { values, route, behind: after, ..record }, rest))
    }

    fn of_fixed(fixed: &[u8; FIXED], texts: [&'a [u8]; TEXTS]) -> Option<Self> {
        let mut from = FieldReader { bytes: fixed, at: 4 };
        let status = u16::from_le_bytes(from.take());
        let flags = Flags(u16::from_le_bytes(from.take()));
        let id = from.u64();
        let (start_unix_ms, start_us) = (from.u64(), from.u64());
        let mut phase = || Some(u32::from_le_bytes(from.take())).filter(|us| *us != NEVER);
        let (read, policy, wait) = (phase(), phase(), phase());
        let (fetch, head, reply) = (phase(), phase(), phase());
        let end = from.u64();
        let (head_in, head_out) = (from.u32(), from.u32());
        let (body_in, body_out, key) = (from.u64(), from.u64(), from.u64());
        let age_s = Some(from.u64()).filter(|_| flags.has(Flags::AGE));
        let ttl_s = Some(from.u64().cast_signed()).filter(|_| flags.has(Flags::TTL));
        let address: [u8; 16] = from.take();
        let [served, version] = from.take();
        let tries = u16::from_le_bytes(from.take());
        from.at = KIND_AT;
        let [kind] = from.take();
        let origin_status = u16::from_le_bytes(from.take());
        let (xid, session) = (from.u32(), from.u32());
        Some(Self {
            id,
            kind: Kind::of(kind)?,
            parent: from.u64(),
            dictionary: DictionaryUse::of(from.take::<1>()[0])?,
            suite: CipherSuite(u16::from_le_bytes(from.take())),
            port: u16::from_le_bytes(from.take()),
            proof: proof(from.take::<1>()[0])?,
            origin_status,
            start_unix_ms,
            start_us,
            phases: Phases { read, policy, wait, fetch, head, reply, end },
            flags,
            client: client(flags, address),
            version,
            status,
            served: Served::of(served)?,
            tries,
            head_in,
            head_out,
            body_in,
            body_out,
            key,
            age_s,
            ttl_s,
            xid,
            session,
            values: Values::default(),
            ..Self::of_texts(texts)
        })
    }

    /// Makes a record that has only texts.
    fn of_texts(texts: [&'a [u8]; TEXTS]) -> Self {
        let [method, host, target, site, rule, origin, server, rest @ ..] = texts;
        let [error, limit, not_stored, evidence, vcl, class, crawler] = rest;
        Self {
            method,
            host,
            target,
            site,
            rule,
            origin,
            server,
            error,
            limit,
            not_stored,
            evidence,
            vcl,
            class,
            crawler,
            ..Self::default()
        }
    }

    /// Evidence of the fetch; `None` if no origin has responded, or evidence is off.
    pub fn fetch_evidence(&self) -> Option<FetchEvidence<'a>> {
        let has_it = self.flags.has(Flags::EVIDENCE);
        has_it.then(|| FetchEvidence::read(self.behind)).flatten().map(|(evidence, _)| evidence)
    }

    /// Heads of all sides, as far as readers subscribe to them. [`heads::fields`] parses them.
    ///
    /// [`heads::fields`]: crate::heads::fields
    pub fn heads(&self) -> &'a [u8] {
        match self.flags.has(Flags::EVIDENCE) {
            true => FetchEvidence::read(self.behind).map_or(&b""[..], |(_, heads)| heads),
            false => self.behind,
        }
    }

    /// The name of the proof; empty without one.
    pub fn proof_word(&self) -> &'static [u8] {
        self.proof.map_or(b"", |proof| proof.word().as_bytes())
    }

    /// The class in which counters count the transaction.
    pub fn outcome(&self) -> Outcome {
        if self.flags.has(Flags::REFUSED) { Outcome::Refused } else { self.served.outcome() }
    }

    /// Returns true if a client's request caused it.
    pub fn is_client(&self) -> bool {
        self.kind == Kind::Client
    }

    /// End in microseconds of the monotonic clock. Readers merge the cores' records in this order.
    pub fn end_us(&self) -> u64 {
        self.start_us.saturating_add(self.phases.end)
    }

    /// Host and target as in a URL, with the port unless it is the scheme's default.
    pub fn address(&self) -> Vec<u8> {
        let mut address = self.host.to_vec();
        if self.port != 0 {
            address.extend_from_slice(format!(":{}", self.port).as_bytes());
        }
        address.extend_from_slice(self.target);
        address
    }

    /// Microseconds until the response was ready to be sent (time to first byte); of a background
    /// fetch, until the head of the origin's response was complete.
    pub fn ttfb_us(&self) -> u64 {
        self.phases.reply.or(self.phases.head).map_or(self.phases.end, u64::from)
    }
}

/// Appends `evidence` to the record that begins at `at` and is the last in `out`. Heads may follow.
pub fn add_evidence(out: &mut Vec<u8>, at: usize, evidence: &FetchEvidence<'_>) {
    evidence.write(out);
    extend(out, at, Flags::EVIDENCE);
}

/// Appends `heads` to the record that begins at `at` and is the last in `out`; `is_cut` if fields
/// were left out.
pub fn add_heads(out: &mut Vec<u8>, at: usize, heads: &[u8], is_cut: bool) {
    out.extend_from_slice(heads);
    extend(out, at, Flags::HEADS.with(Flags::CUT, is_cut));
}

/// Makes what was appended to the record at `at` a part of it, with these further flags.
fn extend(out: &mut [u8], at: usize, further: Flags) {
    let Some(record) = out.get_mut(at..).filter(|record| record.len() >= FIXED) else { return };
    let length = record.len() as u32;
    record[..4].copy_from_slice(&length.to_le_bytes());
    let flags = Flags(u16::from_le_bytes([record[6], record[7]])).with(further, true);
    record[6..8].copy_from_slice(&flags.0.to_le_bytes());
}

fn client(flags: Flags, address: [u8; 16]) -> Option<IpAddr> {
    if flags.has(Flags::V4) {
        let [a, b, c, d, ..] = address;
        Some(Ipv4Addr::new(a, b, c, d).into())
    } else {
        flags.has(Flags::V6).then(|| Ipv6Addr::from(address).into())
    }
}

fn short<'t>(text: &'t [u8], most: usize, flags: &mut Flags) -> &'t [u8] {
    if text.len() > most {
        *flags = flags.with(Flags::CUT, true);
    }
    &text[..text.len().min(most)]
}

/// A writer of little-endian numbers.
struct FieldWriter<'a> {
    bytes: &'a mut [u8; FIXED],
    at: usize,
}

impl FieldWriter<'_> {
    fn put<const N: usize>(&mut self, number: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&number);
        self.at += N;
    }
}

/// A reader of little-endian numbers.
struct FieldReader<'a> {
    bytes: &'a [u8; FIXED],
    at: usize,
}

impl FieldReader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut number = [0; N];
        number.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        number
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests;
