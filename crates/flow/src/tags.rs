//! Tags: the surrogate keys of origins' responses, as the store keeps them.

use base::{HashSeed, Limit, Limits};
use cache::Tags;
use message::{HeaderBlock, tags};

/// The seed of the tags' hashes. It is equal in all processes, so that they understand each other's
/// tags. An origin that forges a collision gains nothing.
const SEED: u64 = 0x7a69_5f74_6167_7300;

thread_local! {
    static HASHES: HashSeed = HashSeed::from_u64(SEED);
}

/// The hash that the store keeps of a surrogate key.
pub(crate) fn hash(tag: &[u8]) -> u64 {
    HASHES.with(|seed| seed.hash(tag))
}

/// The tags in `headers`; `None` without such a field. Each tag is listed once, and again for each
/// time that `xkey` repeats it.
///
/// # Errors
/// The limit that the tags exceed: without all of them the response could not be invalidated.
pub(crate) fn read(headers: &HeaderBlock, limits: &Limits) -> Result<Option<Tags>, Limit> {
    let (fields, bytes) = tags::fields(headers)
        .fold((0, 0), |(fields, bytes), field| (fields + 1, bytes + field.value.len() as u64));
    if fields == 0 {
        return Ok(None);
    }
    if bytes > limits.tag_bytes {
        return Err(Limit::TagBytes);
    }
    let mut hashes = Vec::new();
    tags::of_response(headers, |tag| hashes.push(hash(tag)));
    hashes.sort_unstable();
    hashes.dedup();
    let mut xkey = Vec::new();
    tags::of_xkey(headers, |tag| xkey.push(hash(tag)));
    xkey.sort_unstable();
    hashes.extend(xkey.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
    let tags = Tags::new(hashes);
    if tags.len() as u64 > limits.tags { Err(Limit::Tags) } else { Ok(Some(tags)) }
}

/// Removes the fields with surrogate keys.
pub(crate) fn hide(headers: &mut HeaderBlock) {
    if tags::fields(headers).next().is_some() {
        headers.retain(|field| !tags::is_tag_field(field.name));
    }
}
