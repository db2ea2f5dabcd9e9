//! Keys of stored responses, and the request's side of a variant.

use base::{HashSeed, KeyBuf, key_fields};
use cache::Record;
use message::vary::vary_signature;
use message::{HeaderBlock, Request, Scheme};
use policy::{Notes, Policy};

/// The key of a request: scheme, host, port and target of its canonical form, and what policy adds.
#[inline]
pub(crate) fn make_key(
    seed: &HashSeed,
    policy: &dyn Policy,
    request: &Request,
    notes: &Notes,
    key: &mut KeyBuf,
) {
    begin_key(request, key);
    policy.key(request, notes, key);
    key.finish(seed);
}

/// Begins a key anew with what is in every one: scheme, host, port and target of a request's
/// canonical form. What policy adds and the hash come after.
pub fn begin_key(request: &Request, key: &mut KeyBuf) {
    key.clear();
    key.field(match request.scheme {
        Scheme::Http => b"",
        Scheme::Https => b"s",
    });
    key.field(&request.host);
    match request.port {
        None => key.field(b""),
        Some(port) => key.field(&port.to_be_bytes()),
    }
    key.field(&request.target);
}

/// The first field in the keys of slices.
const SLICE: &[u8] = b"slice";
/// The first field in the keys of coded files.
pub(crate) const FILE: &[u8] = b"file";

/// The key of slice `number` of a set.
pub(crate) fn slice_key(seed: &HashSeed, set: u64, number: u64, key: &mut KeyBuf) {
    key.clear();
    key.field(SLICE);
    key.field(b"");
    key.field(&set.to_be_bytes());
    key.field(&number.to_be_bytes());
    key.finish(seed);
}

/// Returns true if no request asks for what is stored: it is a slice, or a coded file.
pub(crate) fn is_internal(record: &Record) -> bool {
    matches!(key_fields(record.key()).next(), Some(SLICE | FILE))
}

/// The request's side of a Vary: its signature over the names a variant goes by.
pub(crate) fn select_by(headers: &HeaderBlock) -> impl FnMut(&[u8], &mut Vec<u8>) {
    |names, out| vary_signature(names, headers, out)
}
