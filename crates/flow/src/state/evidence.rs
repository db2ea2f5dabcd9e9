//! Evidence of a fetch, noted while the origin's response passes, for the record of its
//! transaction.
//!
//! Must never change or delay a response, and never note a secret: cookies leave their names and
//! keyed hashes of their values.

use base::{HashSeed, Limits};
use fingerprint::{BodyFingerprint, BodyHasher};
use message::header::Field;
use message::{HeaderId, Method, Request, Response, Status, cookie, tags};
use observe::fetch_evidence::{FIELDS_MAX, FetchEvidence};
use observe::heads::{self, HeadSide, Heads};
use observe::record;

/// The time for which a page has its turn among those whose responses get a fingerprint.
const TURN_MS: u64 = 60_000;
/// The value that stands for a secret one.
const THERE: &[u8] = b"***";

/// Settings of the evidence that records keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EvidenceRules {
    /// One of so many pages gets fingerprints at a time; 0 for none.
    pub one_in: u32,
    /// Records have the client's User-Agent elsewhere.
    pub has_agent: bool,
}

impl EvidenceRules {
    /// Returns true if it is the turn of the request's page. All requests for a page have their
    /// turns together, so that their responses can be compared.
    fn is_turn(self, seed: &HashSeed, request: &Request, unix_ms: u64) -> bool {
        if self.one_in == 0 {
            return false;
        }
        let page = seed.hash(&request.host) ^ seed.hash(request.path()).rotate_left(1);
        page.wrapping_add(unix_ms / TURN_MS).is_multiple_of(u64::from(self.one_in))
    }
}

/// The evidence of one fetch.
#[derive(Debug, Default)]
pub(crate) struct NotedEvidence {
    fields: Heads,
    removed: Box<[u8]>,
    /// The fingerprint that the body will complete.
    hasher: Option<Box<BodyHasher>>,
    fingerprint: Option<BodyFingerprint>,
}

/// A request to an origin and the head of its response, before a policy changes it.
#[derive(Clone, Copy)]
pub(crate) struct FetchHeads<'a> {
    pub(crate) request: &'a Request,
    pub(crate) response: &'a Response,
}

impl NotedEvidence {
    /// The evidence in `heads` of a fetch at `unix_ms`.
    pub(crate) fn of(
        heads: FetchHeads<'_>,
        rules: EvidenceRules,
        seed: &HashSeed,
        limits: &Limits,
        unix_ms: u64,
    ) -> Self {
        let FetchHeads { request, response } = heads;
        let most = usize::try_from(limits.log_evidence).unwrap_or(FIELDS_MAX).min(FIELDS_MAX);
        let mut fields = FieldWriter { heads: Heads::default(), most, seed };
        request.headers.iter().for_each(|field| fields.sent(field, rules));
        response.headers.iter().for_each(|field| fields.received(field));
        let is_whole = request.method != Method::Head
            && !response.status.has_no_body()
            && response.status != Status::PARTIAL_CONTENT;
        let is_due = is_whole && rules.is_turn(seed, request, unix_ms);
        let hasher = is_due.then(|| Box::new(hasher(seed, response)));
        let removed = request.taken.as_slice().into();
        Self { fields: fields.heads, removed, hasher, fingerprint: None }
    }

    /// Returns true if a field was left out for its size.
    pub(crate) fn is_cut(&self) -> bool {
        self.fields.is_cut()
    }

    /// The fingerprint that the body will complete, once.
    pub(crate) fn take_hasher(&mut self) -> Option<Box<BodyHasher>> {
        self.hasher.take()
    }

    pub(crate) fn note_fingerprint(&mut self, fingerprint: BodyFingerprint) {
        self.fingerprint = Some(fingerprint);
    }

    /// Appends the evidence to the record that begins at `at` and is the last in `out`. If some of
    /// its fields were left out, it would say that the response lacks them, and is left out.
    pub(crate) fn append(&self, out: &mut Vec<u8>, at: usize) {
        let Self { fields, removed, fingerprint, .. } = self;
        if fields.is_cut() {
            return;
        }
        let (fingerprint, fields) = (*fingerprint, fields.bytes());
        record::add_evidence(out, at, &FetchEvidence { fingerprint, removed, fields });
    }
}

/// The beginning of a fingerprint: the parts of a head without which equal bodies are no equal
/// responses.
fn hasher(seed: &HashSeed, response: &Response) -> BodyHasher {
    let value = |id| response.headers.value(id).unwrap_or_default();
    let status = response.status.code().to_be_bytes();
    let [coding, kind] = [HeaderId::ContentEncoding, HeaderId::ContentType].map(value);
    let parts = [&status[..], value(HeaderId::Location), coding, kind];
    BodyHasher::new(*seed, &parts)
}

/// A writer of the fields that evidence has.
struct FieldWriter<'a> {
    heads: Heads,
    most: usize,
    seed: &'a HashSeed,
}

impl FieldWriter<'_> {
    /// Adds a field of the request to the origin.
    fn sent(&mut self, field: Field<'_>, rules: EvidenceRules) {
        let name: &[u8] = match field.id {
            HeaderId::Accept => b"accept",
            HeaderId::AcceptEncoding => b"accept-encoding",
            HeaderId::AcceptLanguage => b"accept-language",
            HeaderId::UserAgent if !rules.has_agent => b"user-agent",
            HeaderId::Cookie => {
                let cookies = self.hashed(field.value);
                return self.add(HeadSide::Bereq, b"cookie", &cookies);
            }
            HeaderId::Authorization => {
                return self.add(HeadSide::Bereq, b"authorization", THERE);
            }
            _ => return,
        };
        self.add(HeadSide::Bereq, name, field.value);
    }

    /// Adds a field of the origin's response.
    fn received(&mut self, field: Field<'_>) {
        let name: &[u8] = match field.id {
            HeaderId::Age => b"age",
            HeaderId::CacheControl => b"cache-control",
            HeaderId::CdnCacheControl => b"cdn-cache-control",
            HeaderId::ContentEncoding => b"content-encoding",
            HeaderId::ContentLength => b"content-length",
            HeaderId::ContentType => b"content-type",
            HeaderId::Date => b"date",
            HeaderId::Etag => b"etag",
            HeaderId::Expires => b"expires",
            HeaderId::LastModified => b"last-modified",
            HeaderId::Location => {
                let place = self.without_query(field.value);
                return self.add(HeadSide::Beresp, b"location", &place);
            }
            HeaderId::Pragma => b"pragma",
            HeaderId::SurrogateControl => b"surrogate-control",
            HeaderId::Vary => b"vary",
            HeaderId::SetCookie => {
                let end = field.value.iter().position(|byte| matches!(byte, b'=' | b';'));
                let name = end.map_or(&b""[..], |end| field.value[..end].trim_ascii());
                return self.add(HeadSide::Beresp, b"set-cookie", name);
            }
            HeaderId::Other if field.name.eq_ignore_ascii_case(b"x-accel-expires") => {
                b"x-accel-expires"
            }
            HeaderId::Other if tags::is_tag_field(field.name) => {
                let keys = field.value.split(|byte| matches!(byte, b' ' | b',' | b'\t'));
                let count = keys.filter(|key| !key.is_empty()).count().to_string();
                let name = field.name.to_ascii_lowercase();
                return self.add(HeadSide::Beresp, &name, count.as_bytes());
            }
            _ => return,
        };
        self.add(HeadSide::Beresp, name, field.value);
    }

    /// A URL with a keyed hash in place of its query, which may have a code or a token.
    fn without_query(&self, url: &[u8]) -> Vec<u8> {
        let Some(end) = url.iter().position(|byte| *byte == b'?') else { return url.to_vec() };
        let mut out = url[..=end].to_vec();
        out.extend_from_slice(format!("{:016x}", self.seed.hash(&url[end..])).as_bytes());
        out
    }

    /// The cookies of a line, with keyed hashes in place of their values.
    fn hashed(&self, line: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(line.len());
        for pair in cookie::pairs([line]) {
            let gap = if out.is_empty() { "" } else { "; " };
            out.extend_from_slice(gap.as_bytes());
            out.extend_from_slice(pair.name);
            out.push(b'=');
            out.extend_from_slice(format!("{:016x}", self.seed.hash(pair.value)).as_bytes());
        }
        out
    }

    fn add(&mut self, side: HeadSide, name: &[u8], value: &[u8]) {
        self.heads.add(self.most, heads::Field { side, name, value });
    }
}

#[cfg(test)]
mod tests;
