//! The surrogate keys of origins' responses, as the store keeps them.

use base::{HashSeed, Limit, Limits};
use cache::Tags;
use message::{HeaderBlock, tags};

/// The seed of tags' hashes. All processes have the same, so that what one stores means the same to
/// others; who chooses tags is an origin, which gains nothing by two of one hash.
const SEED: u64 = 0x7a69_5f74_6167_7300;

thread_local! {
    static HASHES: HashSeed = HashSeed::from_u64(SEED);
}

/// The hash that a surrogate key is kept as.
pub(crate) fn hash(tag: &[u8]) -> u64 {
    HASHES.with(|seed| seed.hash(tag))
}

/// The tags in `headers`; `None` if there is no field for them. Each stands there once, and once
/// more for each time that `xkey` repeats it.
///
/// # Errors
/// The limit that they are beyond: by those left out a response could not be invalidated.
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

/// Removes the fields.
pub(crate) fn hide(headers: &mut HeaderBlock) {
    if tags::fields(headers).next().is_some() {
        headers.retain(|field| !tags::is_tag_field(field.name));
    }
}
