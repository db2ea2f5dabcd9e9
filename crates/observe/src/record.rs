//! The record of one transaction, as bytes: the one place that knows its form.
//!
//! All numbers are little-endian. A record is a fixed part of [`FIXED`] bytes, then its texts one
//! behind the other, then the values of the fields that were chosen to be kept.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 4 | length of the whole record |
//! | 4 | 2 | status |
//! | 6 | 2 | [`Flags`] |
//! | 8 | 8 | id: the core's number in the upper 16 bits, its count of transactions below |
//! | 16 | 8 | start, milliseconds since 1970 UTC |
//! | 24 | 8 | start, microseconds of the machine's monotonic clock |
//! | 32 | 6 × 4 | phases, microseconds after the start; all ones: never came to pass |
//! | 56 | 8 | end, microseconds after the start |
//! | 64 | 4 + 4 | bytes of head in and out |
//! | 72 | 8 + 8 | bytes of body in and out |
//! | 88 | 8 | hash of the cache key; 0 when none was made |
//! | 96 | 8 + 8 | age and remaining lifetime in seconds, where the flags say that they are known |
//! | 112 | 16 | client's address; IPv4 in its first four bytes |
//! | 128 | 1 | how it was served, as [`Served`] counts |
//! | 129 | 1 | protocol version, tens major, ones minor |
//! | 130 | 2 | tries at the origin |
//! | 132 | 12 × 2 | lengths of the texts |
//! | 156 | 1 | number of field values |
//! | 157 | 1 | why it came about, as [`Kind`] counts |
//! | 158 | 2 | status of the origin's answer; 0 without one |
//! | 160 | 4 + 4 | numbers of the transaction and its session under VCL; 0 without |
//! | 168 | 8 | number of the transaction that caused it; 0 without one |
//! | 176 | 1 | whether a dictionary was used, as [`DictionaryUse`] counts |
//! | 177 | 2 | cipher suite of the client's connection; 0 without TLS |
//! | 179 | 2 | port of the host; 0 where it is the scheme's own |
//!
//! Where the flags say so, the [heads](crate::heads) of all sides follow.
//!
//! A field's value is its length in two bytes (all ones: the request has no such field), then its
//! bytes. Which fields these are stands once, in the ring's head.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base::tally::Outcome;

use crate::suite::CipherSuite;

/// Version of the form above. A reader of another version says so instead of guessing.
pub const VERSION: u32 = 7;

/// Bytes of the fixed part.
pub const FIXED: usize = 181;

/// Longest text of a record; what is longer is cut and [`Flags::CUT`] set. Limits on targets and
/// fields are 8 KiB by default.
pub const TEXT_MAX: usize = 8 * 1024;

/// Field values a record has room for: 16 that were chosen, two that access logs always have, and
/// two of traces.
pub const VALUES_MAX: usize = 20;

/// The name under which the `traceparent` stands that an origin was sent. It is no field's.
pub const SENT: &str = "traceparent>";
/// The name under which a record has the user who signed in by the scheme Basic; no field's name.
pub const USER: &str = "authorization>user";

/// Longest field value; as [`TEXT_MAX`].
pub const VALUE_MAX: usize = 2 * 1024;

/// Bytes of heads that a record has room for; the limit `log_heads` is mostly less.
pub const HEADS_MAX: usize = 64 * 1024;

const TEXTS: usize = 12;
const LENGTHS_AT: usize = 132;
const VALUES_AT: usize = LENGTHS_AT + 2 * TEXTS;
const KIND_AT: usize = VALUES_AT + 1;
const NEVER: u32 = u32::MAX;
const ABSENT: u16 = u16::MAX;

/// The longest record there can be.
pub const RECORD_MAX: usize = FIXED + TEXTS * TEXT_MAX + VALUES_MAX * (VALUE_MAX + 2) + HEADS_MAX;

/// Yes-or-no facts about a transaction, one bit each.
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
    /// The response did not reach its end.
    pub const CUT_OFF: Self = Self(1 << 6);
    /// A text was too long to be kept whole.
    pub const CUT: Self = Self(1 << 7);
    /// The origin was asked over a kept connection.
    pub const REUSED: Self = Self(1 << 8);
    /// The answer is stored.
    pub const STORED: Self = Self(1 << 9);
    /// The connection became a tunnel.
    pub const TUNNEL: Self = Self(1 << 10);
    /// Heads stand behind it.
    pub const HEADS: Self = Self(1 << 11);

    /// Returns true if all of `other` are set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Sets `other` where `on`.
    #[must_use]
    pub fn with(self, other: Self, on: bool) -> Self {
        if on { Self(self.0 | other.0) } else { self }
    }
}

macro_rules! served {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// The way in which a request was served.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Served { #[default] $(#[doc = $about] $variant,)* }

        impl Served {
            /// Every way there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its word in logs.
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
    /// The class in which figures count it; of what could not be read see [`Record::outcome`].
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

    /// Returns true if the store answered with no word of an origin.
    pub fn is_hit(self) -> bool {
        self.outcome().is_hit()
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

macro_rules! dictionary_uses {
    ($($variant:ident $word:literal $about:literal;)*) => {
        /// The use that was made of the dictionary that a client has named (RFC 9842), if any was.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum DictionaryUse { #[default] $(#[doc = $about] $variant,)* }

        impl DictionaryUse {
            /// Every one there is.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Its word in logs; empty where none was named.
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
    Used "used" "The answer is what differs from it.";
    Off "off" "Settings or limits forbid dictionaries.";
    PlainHttp "plain-http" "Dictionaries are for HTTPS only.";
    NotTaken "not-taken" "The client does not take dcz or dcb as gladly as other codings.";
    Opaque "opaque" "The page that asks could not read the answer.";
    Malformed "malformed" "Available-Dictionary is not one SHA-256.";
    OneForm "one-form" "The answer has but one form.";
    TooLong "too-long" "The answer is longer than the limit `form_bytes`.";
    Unknown "unknown" "No stored response is known to have this hash.";
    Foreign "foreign" "The response with this hash is not for this request.";
    Making "making" "The form with it is made behind the request, once there are time and room for it.";
    Tried "tried" "There is no form with it: it is on its way, or is not clearly shorter than others.";
    Program "program" "The program has made another answer of the stored one.";
}

/// The word, and a sentence; nothing where none was named.
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

/// Why a transaction came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// A client asked.
    #[default]
    Client,
    /// A background fetch renews a stale object.
    Background,
    /// A page is put together of it (ESI, SSI).
    Fragment,
}

impl Kind {
    /// Every one there is, in the order of their numbers.
    pub const ALL: &[Self] = &[Self::Client, Self::Background, Self::Fragment];

    /// Its word in logs and filters.
    pub fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Background => "background",
            Self::Fragment => "fragment",
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// Moments of a transaction, in microseconds after its start; none for what never came to pass.
/// Those that are there are in this order, but for `wait` and `fetch`: who waits in vain fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// The request's head was read whole.
    pub read: Option<u32>,
    /// Policy had decided, and the store had been asked.
    pub policy: Option<u32>,
    /// Another request's fetch was waited for from here on.
    pub wait: Option<u32>,
    /// The fetch began.
    pub fetch: Option<u32>,
    /// The origin's head was there.
    pub head: Option<u32>,
    /// The answer was ready to be sent.
    pub reply: Option<u32>,
    /// It was sent, the last byte given to the kernel. What is answered from memory at once ends
    /// here when it is written into the connection's buffer.
    pub end: u64,
}

/// The log record of one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its number, unique within one run of the daemon.
    pub id: u64,
    /// Why it came about.
    pub kind: Kind,
    /// The transaction that caused it; 0 where a client did. Under VCL its `xid`, else its `id`.
    pub parent: u64,
    /// When it began: milliseconds since 1970 UTC.
    pub start_unix_ms: u64,
    /// When it began: microseconds of the monotonic clock, comparable between cores.
    pub start_us: u64,
    /// When what came to pass.
    pub phases: Phases,
    /// Yes-or-no facts.
    pub flags: Flags,
    /// The client's address; `None` over a unix socket.
    pub client: Option<IpAddr>,
    /// Cipher suite of the client's connection.
    pub suite: CipherSuite,
    /// Protocol version, tens major, ones minor: 11 for HTTP/1.1.
    pub version: u8,
    /// Status sent; 499 when the client left before its answer (as nginx logs it).
    pub status: u16,
    /// Status of the origin's answer, the last time it was asked; 0 without one.
    pub origin_status: u16,
    /// The way in which it was served.
    pub served: Served,
    /// The use that was made of the dictionary that the client has named.
    pub dictionary: DictionaryUse,
    /// Tries at the origin.
    pub tries: u16,
    /// Bytes of the request's head.
    pub head_in: u32,
    /// Bytes of the response's head.
    pub head_out: u32,
    /// Bytes of the request's body.
    pub body_in: u64,
    /// Bytes of the response's body, as sent.
    pub body_out: u64,
    /// Hash of the cache key; 0 when none was made.
    pub key: u64,
    /// Age sent, in seconds.
    pub age_s: Option<u64>,
    /// Remaining lifetime in seconds; negative when stale.
    pub ttl_s: Option<i64>,
    /// Method.
    pub method: &'a [u8],
    /// Host, lower case.
    pub host: &'a [u8],
    /// Port that was asked for with it; 0 where it is the scheme's own.
    pub port: u16,
    /// Path and query, as the policy left them.
    pub target: &'a [u8],
    /// The site that was asked.
    pub site: &'a [u8],
    /// The rule that decided.
    pub rule: &'a [u8],
    /// The origin that was asked.
    pub origin: &'a [u8],
    /// Its server that answered.
    pub server: &'a [u8],
    /// The error that occurred.
    pub error: &'a [u8],
    /// The limit that was reached.
    pub limit: &'a [u8],
    /// Why the answer is not stored.
    pub not_stored: &'a [u8],
    /// The field of the answer or the request that says so, if one does.
    pub evidence: &'a [u8],
    /// The steps of the site's program, one per line. `recv default.vcl:14 hash` has a subroutine,
    /// the `return` that ended it, and the action returned. `VCL_Log text` has a text that was
    /// logged before. [`steps`](crate::steps::steps) takes the lines apart.
    pub vcl: &'a [u8],
    /// The number of the transaction, as `X-Varnish` has it first; 0 without VCL.
    pub xid: u32,
    /// The number of its session; 0 without VCL.
    pub session: u32,
    /// Values of the chosen request fields, in the order of their names in the ring's head.
    pub values: Values<'a>,
    /// Its heads on all sides, as far as somebody asked for them; [`heads::fields`] takes them
    /// apart.
    ///
    /// [`heads::fields`]: crate::heads::fields
    pub heads: &'a [u8],
}

/// Values of request fields as they stand in a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Values<'a> {
    bytes: &'a [u8],
}

impl<'a> Values<'a> {
    /// The values in order; `None` where the request has no such field.
    pub fn iter(self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (value, after) = split_value(rest)?;
            rest = after;
            Some(value)
        })
    }
}

/// One value, and what follows it.
fn split_value(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match u16::from_le_bytes(*length) {
        ABSENT => Some((None, rest)),
        length => rest.split_at_checked(usize::from(length)).map(|(v, rest)| (Some(v), rest)),
    }
}

impl<'a> Record<'a> {
    /// Appends the record to `out`, with `values` in place of its own.
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
        // Most of them are of what goes wrong.
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
            // A phase later than an hour is told as the latest that can be.
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
        ]
    }

    /// The flags that follow from the other members: whether age, lifetime and address are there.
    #[must_use]
    pub fn with_derived_flags(mut self) -> Self {
        self.flags = self
            .flags
            .with(Flags::AGE, self.age_s.is_some())
            .with(Flags::TTL, self.ttl_s.is_some())
            .with(Flags::V4, self.client.is_some_and(|a| a.is_ipv4()))
            .with(Flags::V6, self.client.is_some_and(|a| a.is_ipv6()));
        self
    }

    /// The record at the beginning of `bytes`, and what follows it; `None` if there is no whole and
    /// well-formed one.
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
        if !after.is_empty() && !record.flags.has(Flags::HEADS) {
            return None;
        }
        let values = Values { bytes: &tail[..tail.len() - after.len()] };
        Some((Self { values, heads: after, ..record }, rest))
    }

    fn of_fixed(fixed: &[u8; FIXED], texts: [&'a [u8]; TEXTS]) -> Option<Self> {
        let mut from = Take { bytes: fixed, at: 4 };
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

    /// A record with nothing but its texts.
    fn of_texts(texts: [&'a [u8]; TEXTS]) -> Self {
        let [method, host, target, site, rule, origin, server, rest @ ..] = texts;
        let [error, limit, not_stored, evidence, vcl] = rest;
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
            ..Self::default()
        }
    }

    /// The class in which figures count it.
    pub fn outcome(&self) -> Outcome {
        if self.flags.has(Flags::REFUSED) { Outcome::Refused } else { self.served.outcome() }
    }

    /// Returns true if a client's request caused it.
    pub fn is_client(&self) -> bool {
        self.kind == Kind::Client
    }

    /// When it ended, in microseconds of the monotonic clock: the order in which cores' records are
    /// told.
    pub fn end_us(&self) -> u64 {
        self.start_us.saturating_add(self.phases.end)
    }

    /// Host and target, and between them the port if it is not the scheme's own: as URLs have them.
    pub fn address(&self) -> Vec<u8> {
        let mut address = self.host.to_vec();
        if self.port != 0 {
            address.extend_from_slice(format!(":{}", self.port).as_bytes());
        }
        address.extend_from_slice(self.target);
        address
    }

    /// Until its answer was ready to be sent, in microseconds: the time to the first byte. Of a
    /// background fetch, until the origin's head was there.
    pub fn ttfb_us(&self) -> u64 {
        self.phases.reply.or(self.phases.head).map_or(self.phases.end, u64::from)
    }
}

/// Puts `heads` behind the record that begins at `at` and is the last in `out`; `is_cut` when there
/// was more.
pub fn add_heads(out: &mut Vec<u8>, at: usize, heads: &[u8], is_cut: bool) {
    out.extend_from_slice(heads);
    let Some(record) = out.get_mut(at..).filter(|record| record.len() >= FIXED) else { return };
    let length = record.len() as u32;
    record[..4].copy_from_slice(&length.to_le_bytes());
    let flags = Flags(u16::from_le_bytes([record[6], record[7]]));
    let flags = flags.with(Flags::HEADS, true).with(Flags::CUT, is_cut);
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

/// Writes numbers one behind the other.
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

/// Reads them.
struct Take<'a> {
    bytes: &'a [u8; FIXED],
    at: usize,
}

impl Take<'_> {
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
