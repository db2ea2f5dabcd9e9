//! Record of a stored response on disk: its head holds the response, its body the body.

use std::sync::Arc;

use base::Now;
use bytes::Bytes;
use cache::{DemotionPolicy, Object, Record};
use disk::{Body, BorrowedBytes, Entry, RecordAddress, RecordData};
use message::Trailers;

use super::body::{DiskBody, end_ms, may_answer};
use super::store::Store;

/// The version of heads, of heads of slice sets, and of heads with trailers; others are not read.
const VERSION: u8 = 4;
const VERSION_OF_SETS: u8 = 5;
const VERSION_OF_TRAILED: u8 = 6;
/// Bytes before the record: version, and length of the decoded content.
const FIXED_BYTES: usize = 9;
/// An unknown length.
const NO_LENGTH: u64 = u64::MAX;

/// A response whose body is being written.
#[derive(Debug)]
struct DemotedObject(Arc<Object>);

impl BorrowedBytes for DemotedObject {
    fn size(&self) -> u64 {
        self.0.whole().map_or(0, |whole| whole.len())
    }

    fn pieces(&self, each: &mut dyn FnMut(&[u8])) {
        self.0.whole().into_iter().flat_map(|whole| whole.pieces()).for_each(each);
    }
}

/// A response read from the disk.
pub(crate) struct DiskResponse {
    pub(crate) record: Record,
    pub(crate) plain_length: Option<u64>,
    /// The trailers of its body.
    pub(crate) trailers: Option<Trailers>,
    /// The stored form of its slice set, if its body is one.
    pub(crate) set: Option<Bytes>,
}

impl Store {
    /// Writes `object` to the disk if that accepts it and it is worth it; with `all`, each object
    /// that may answer again is.
    pub(crate) fn keep(&self, object: &Arc<Object>, all: bool) -> Option<RecordAddress> {
        let now = rt::now();
        let is_meant = self.is_worth_it(object) || all && object.sinks() != DemotionPolicy::Never;
        if !is_meant || !may_answer(object, now.mono_ms) {
            return None;
        }
        let set = object.elsewhere().and_then(|body| body.kept());
        let body = match &set {
            Some(_) => Body::Bytes(Bytes::new()),
            None => Body::Lent(Arc::new(DemotedObject(Arc::clone(object)))),
        };
        self.disk.put(self.entry(object, set, body, now))
    }

    fn entry(&self, object: &Object, set: Option<Vec<u8>>, body: Body, now: Now) -> Entry {
        Entry {
            hash: self.seed.hash(object.key()),
            passed: object.passed(),
            expires_ms: u64::try_from(now.unix_at(end_ms(object))).unwrap_or(0),
            order: self.order(object),
            head: encode(object, set, now),
            body,
        }
    }

    /// The record of a response whose body the disk received while it arrived.
    pub(crate) fn entry_of_received(&self, object: &Object, now: Now) -> Entry {
        self.entry(object, None, Body::Bytes(Bytes::new()), now)
    }

    /// Returns true if the rules admit the response to the disk: it was requested again, or its
    /// program says so.
    pub(crate) fn is_worth_it(&self, object: &Object) -> bool {
        match object.sinks() {
            DemotionPolicy::Never => false,
            DemotionPolicy::Always => true,
            // A body that is on disk already costs only a head.
            DemotionPolicy::ByMerit => {
                self.rules.admit_all
                    || object.hits() > 0
                    || DiskBody::released_body(object).is_some()
            }
        }
    }

    /// Decodes a response, translating its times and bans to this process.
    pub(crate) fn decode(&self, answer: &RecordData, now: Now) -> Option<DiskResponse> {
        let Content { record, plain_length, trailers, set } = content(&answer.head)?;
        // By a clock that has not gone back since the record was written.
        let now = Now { unix_ms: now.unix_ms.saturating_add(answer.behind_ms), ..now };
        let record = Record::decode(record, now)?;
        let record = record.having_passed(self.passed(answer.order, answer.passed));
        Some(DiskResponse { record, plain_length, trailers, set })
    }
}

/// The parts of a record's head.
pub(crate) struct Content<'a> {
    pub(crate) record: &'a [u8],
    pub(crate) plain_length: Option<u64>,
    pub(crate) trailers: Option<Trailers>,
    pub(crate) set: Option<Bytes>,
}

/// Parses a head; `None` for an unknown version.
pub(crate) fn content(head: &Bytes) -> Option<Content<'_>> {
    let (fixed, record) = head.split_first_chunk::<FIXED_BYTES>()?;
    let [version, length @ ..] = *fixed;
    let (mut trailers, mut set) = (None, None);
    let record = match version {
        VERSION => record,
        VERSION_OF_SETS => {
            let (kept, record) = split(record)?;
            set = Some(head.slice_ref(kept));
            record
        }
        VERSION_OF_TRAILED => {
            let (lines, record) = split(record)?;
            trailers = Some(Trailers::of_lines(lines)?);
            record
        }
        _ => return None,
    };
    let length = u64::from_le_bytes(length);
    let plain_length = (length != NO_LENGTH).then_some(length);
    Some(Content { record, plain_length, trailers, set })
}

/// Splits off a field behind its length.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

fn encode(object: &Object, set: Option<Vec<u8>>, now: Now) -> Bytes {
    let (version, more) = match (&set, object.trailers()) {
        (Some(kept), _) => (VERSION_OF_SETS, Some(&kept[..])),
        (None, Some(trailers)) => (VERSION_OF_TRAILED, Some(trailers.lines())),
        (None, None) => (VERSION, None),
    };
    let mut head = vec![version];
    head.extend_from_slice(&object.plain_length().unwrap_or(NO_LENGTH).to_le_bytes());
    if let Some(more) = more {
        head.extend_from_slice(&(more.len() as u32).to_le_bytes());
        head.extend_from_slice(more);
    }
    object.encode(now, &mut head);
    head.into()
}
