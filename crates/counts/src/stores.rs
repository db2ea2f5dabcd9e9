//! Stores: keys, lookups and fills.

use std::hint::black_box;
use std::sync::Arc;

use base::{HashSeed, KeyBuf, Limits};
use cache::{
    BeginOptions, CacheLookup, Config, FetchDecision, Flags, NewObject, PushOutcome, Tags, Variant,
};
use flow::tier::{Cache, memory_only};
use message::store::{Permit, Ruling};
use message::vary::vary_signature;
use message::{HeaderBlock, Status};

use crate::samples::{self, BODY, BROWSER_REQUEST, NOW, PLAIN_REQUEST};

/// Objects in the cache that lookups search.
const OBJECTS: u32 = 10_000;
/// More memory than these objects take.
const ROOMY_BYTES: u64 = 64 << 20;
/// Size of a cache that is full after some thousand fills.
const FULL_BYTES: u64 = 4 << 20;
/// The field that variants differ by.
const VARY: &[u8] = b"accept-encoding";

/// An empty cache with the daemon's default limits.
pub(crate) fn store(budget_bytes: u64) -> Arc<Cache> {
    let limits = Limits::default();
    memory_only(Config {
        budget_bytes,
        held_bytes_max: budget_bytes / 2,
        max_variants: usize::try_from(limits.variants).expect("a few"),
        object_bytes_max: limits.object_bytes,
        waiters_max: usize::try_from(limits.waiters).expect("some thousand"),
        window_bytes: limits.window_bytes,
        hit_for_miss_ms: limits.hit_for_miss_ttl,
        bans_max: limits.bans as usize,
        index_bytes: 64 << 20,
    })
}

/// The sample response, five seconds old and fresh for an hour.
pub(crate) fn object() -> NewObject {
    let response = samples::response();
    let mut head = Vec::new();
    h1::encode::stored_head(&mut head, response.status, &response.reason, &response.headers);
    NewObject {
        status: Status::OK,
        head: head.into_boxed_slice(),
        etag: None,
        last_modified: None,
        date: Some(NOW.unix_secs() - 5),
        born_ms: NOW.mono_ms as i64 - 5000,
        lifetime_ms: 3_600_000,
        grace_ms: 10_000,
        stale_if_error_ms: 86_400_000,
        stale_if_unreachable_ms: 86_400_000,
        flags: Flags { shared: true, ..Flags::default() },
        note: Box::default(),
        tags: Tags::default(),
        length: Some(BODY.len() as u64),
    }
}

/// The permission to store a response that nothing forbids to store.
fn permit() -> Permit {
    let ruling = Ruling { passed: false, uncacheable: false, findable: true };
    Permit::by_program(ruling, &HeaderBlock::new()).expect("nothing forbids it")
}

/// Fetches and stores an absent object.
pub(crate) fn put(cache: &Arc<Cache>, key: &KeyBuf, new: NewObject, vary: Option<Variant<'_>>) {
    let mut select = |_: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(vary.map_or(&[][..], |vary| vary.signature));
    };
    let begun = cache.begin(key, &mut select, BeginOptions::default(), NOW.mono_ms);
    let FetchDecision::Lead(lead) = begun else { panic!("somebody stored or fetches {key:?}") };
    let mut filling = lead.store(permit(), new, vary);
    assert_eq!(filling.push(BODY), PushOutcome::Ok);
    assert!(filling.finish(), "the body is whole");
}

/// The key of page number `page`.
fn write_key(key: &mut KeyBuf, page: u32, seed: &HashSeed) {
    key.clear();
    key.field(b"http");
    key.field(b"www.example.com");
    key.field(&[0; 2]);
    key.field(&page.to_be_bytes());
    key.finish(seed);
}

fn page_key(page: u32) -> KeyBuf {
    let mut key = KeyBuf::new();
    write_key(&mut key, page, &samples::seed());
    key
}

/// Builds and hashes a request's key.
pub(crate) fn key(rounds: u32) {
    let request = samples::request(PLAIN_REQUEST);
    let seed = samples::seed();
    let mut key = KeyBuf::new();
    for _ in 0..rounds {
        flow::begin_key(black_box(&request), &mut key);
        key.finish(&seed);
        black_box(&mut key);
    }
}

/// Looks up one of ten thousand objects, each the only one of its key.
pub(crate) fn lookup(rounds: u32) {
    let cache = store(ROOMY_BYTES);
    let keys: Vec<KeyBuf> = (0..OBJECTS).map(page_key).collect();
    for key in &keys {
        put(&cache, key, object(), None);
    }
    for key in keys.iter().cycle().take(rounds as usize) {
        let mut select = |_: &[u8], _: &mut Vec<u8>| panic!("no response varies");
        let found = cache.lookup(black_box(key), &mut select, NOW.mono_ms);
        assert!(matches!(found, CacheLookup::Object(_)), "it was stored");
        black_box(found);
    }
}

/// Looks up the right one of two variants of a key, among as many objects.
pub(crate) fn lookup_variant(rounds: u32) {
    let cache = store(ROOMY_BYTES);
    let keys: Vec<KeyBuf> = (0..OBJECTS / 2).map(page_key).collect();
    let request = samples::request(BROWSER_REQUEST);
    let mut signatures = [Vec::new(), Vec::new()];
    for (wire, signature) in [PLAIN_REQUEST, BROWSER_REQUEST].into_iter().zip(&mut signatures) {
        vary_signature(VARY, &samples::request(wire).headers, signature);
    }
    for key in &keys {
        for signature in &signatures {
            put(&cache, key, object(), Some(Variant { spec: VARY, signature }));
        }
    }
    for key in keys.iter().cycle().take(rounds as usize) {
        let mut select =
            |names: &[u8], out: &mut Vec<u8>| vary_signature(names, &request.headers, out);
        let found = cache.lookup(black_box(key), &mut select, NOW.mono_ms);
        assert!(matches!(found, CacheLookup::Object(_)), "it was stored");
        black_box(found);
    }
}

/// Fetches and stores a response of 1 KiB in a full cache, which evicts another.
pub(crate) fn fill(rounds: u32) {
    fill_with(rounds, object());
}

/// Fetches and stores a text of 1 KiB that may get coded forms, in a full cache.
pub(crate) fn fill_text(rounds: u32) {
    let mut new = object();
    new.flags.negotiated = true;
    fill_with(rounds, new);
}

fn fill_with(rounds: u32, new: NewObject) {
    let cache = store(FULL_BYTES);
    let seed = samples::seed();
    let mut key = KeyBuf::new();
    for page in 0..rounds {
        write_key(&mut key, page, &seed);
        put(&cache, &key, new.clone(), None);
    }
    black_box(cache);
}
