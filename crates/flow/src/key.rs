//! Key of a stored response, and the request's side of variant selection.

use base::{HashSeed, KeyBuf, key_fields};
use cache::Record;
use message::vary::vary_signature;
use message::{HeaderBlock, Request, Scheme};
use policy::{Notes, Policy};

/// An addition to a key, of the VCL beside a site's settings.
pub(crate) trait KeyAddition {
    /// Adds it.
    fn add_to(&self, key: &mut KeyBuf);
}

/// Makes the key of a request: scheme, host, port and target in canonical form, then the additions
/// of the policy and of the VCL beside it.
#[inline]
pub(crate) fn make_key(
    seed: &HashSeed,
    policy: &dyn Policy,
    request: &Request,
    notes: &Notes,
    extra: Option<&dyn KeyAddition>,
    key: &mut KeyBuf,
) {
    begin_key(request, key);
    policy.key(request, notes, key);
    if let Some(extra) = extra {
        extra.add_to(key);
    }
    key.finish(seed);
}

/// Starts a key with the fields that each key has: scheme, host, port and target of the request's
/// canonical form. The policy's additions and the hash come later.
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

/// Returns true if no request can ask for the record: it is a slice or a coded file.
pub(crate) fn is_internal(record: &Record) -> bool {
    matches!(key_fields(record.key()).next(), Some(SLICE | FILE))
}

/// The signature function of a request: its values of the fields that a variant is selected by.
pub(crate) fn select_by(headers: &HeaderBlock) -> impl FnMut(&[u8], &mut Vec<u8>) {
    |names, out| vary_signature(names, headers, out)
}
