//! A variant: the Vary names of a response, and the signature of a request for them. The names and
//! signatures are opaque here.

use std::cell::Cell;

/// The names of a Vary field in the caller's own encoding; compared byte for byte.
pub type VarySpec = [u8];

/// Computes a request's signature for the names given: it is appended to the buffer. It must not
/// call the cache.
pub type SignatureFunction<'a> = dyn FnMut(&VarySpec, &mut Vec<u8>) + 'a;

/// The names that a response varies by, and the signature of the request it answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant<'a> {
    /// The names.
    pub spec: &'a VarySpec,
    /// The signature of a request for these names.
    pub signature: &'a [u8],
}

thread_local! {
    /// The buffer for signatures, so that a hit does not allocate.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Takes the buffer for signatures, which is returned by [`keep`].
pub(crate) fn scratch() -> Vec<u8> {
    SCRATCH.take()
}

pub(crate) fn keep(scratch: Vec<u8>) {
    SCRATCH.set(scratch);
}

/// Returns true if the request has the signature of `vary`.
pub(crate) fn is_for(vary: Variant<'_>, select: &mut SignatureFunction<'_>) -> bool {
    let mut scratch = scratch();
    scratch.clear();
    select(vary.spec, &mut scratch);
    let matches = scratch == vary.signature;
    keep(scratch);
    matches
}
