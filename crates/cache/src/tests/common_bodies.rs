//! Tests of variants with equal bodies: the bytes are stored once, and the account is right
//! whichever variant leaves first.

use proptest::prelude::*;

use super::*;

/// Stores a variant with this body for requests with this signature.
fn put(cache: &Arc<Cache>, signature: &str, body: &[u8]) -> Arc<Object> {
    let options = BeginOptions { coalesce: false, rejected: None };
    let lead = lead(cache.begin(&key("a"), &mut of("matches nothing stored"), options, 0));
    let vary = Variant { spec: b"x", signature: signature.as_bytes() };
    let new = head(Some(body.len() as u64));
    let mut filling = lead.store(permit(), new, Some(vary));
    assert_eq!(filling.push(body), PushOutcome::Ok);
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    object
}

fn variant(cache: &Cache, signature: &str) -> Option<Arc<Object>> {
    match cache.lookup(&key("a"), &mut of(signature), 0) {
        CacheLookup::Object(object) => Some(object),
        _ => None,
    }
}

fn address(object: &Object) -> *const u8 {
    object.whole().and_then(|body| body.pieces().next()).expect("a body of one piece").as_ptr()
}

#[test]
fn equal_bodies_are_stored_once() {
    const BODY: usize = 100_000;
    let cache = cache();
    let body = pattern(BODY);
    let first = put(&cache, "1", &body);
    let one = cache.stats().bytes;
    let second = put(&cache, "2", &body);
    let two = cache.stats().bytes;
    assert!(two - one < 1000, "{} more", two - one);
    assert_eq!(address(&first), address(&second));
    let mut other = body.clone();
    other[BODY - 1] ^= 1;
    let third = put(&cache, "3", &other);
    assert!(cache.stats().bytes - two > BODY as u64);
    assert_ne!(address(&first), address(&third));
    let shorter = put(&cache, "4", &body[..BODY - 1]);
    assert_ne!(address(&first), address(&shorter));
    assert_eq!((cache.stats().variants, cache.stats().variants_equal), (4, 1));
    for (signature, wanted) in [("1", &body), ("2", &body), ("3", &other)] {
        let found = variant(&cache, signature).expect("it is stored");
        assert!(bytes_of(&found).as_ref() == Some(wanted), "{signature}");
    }
}

#[test]
fn the_bytes_return_with_the_last_variant() {
    const BODY: u64 = 50_000;
    let cache = cache();
    let body = pattern(BODY as usize);
    let empty = cache.stats().bytes;
    drop(put(&cache, "1", &body));
    drop(put(&cache, "2", &body));
    let both = cache.stats().bytes;
    // The first leaves: another response for its requests replaces it.
    drop(put(&cache, "1", b"short"));
    let second = cache.stats().bytes;
    assert!(second.abs_diff(both) < 1000, "{both} {second}");
    assert!(bytes_of(&variant(&cache, "2").expect("it stays")) == Some(body));
    drop(put(&cache, "2", b"short"));
    assert!(both - cache.stats().bytes > BODY);
    // A reader keeps its bytes, and no others.
    cache.clear();
    assert!(cache.stats().bytes <= empty);
}

#[test]
fn variants_that_have_a_body_in_common_can_be_evicted() {
    const BODY: usize = 20_000;
    let cache = cache();
    let body = pattern(BODY);
    for signature in ["1", "2", "3"] {
        drop(put(&cache, signature, &body));
    }
    cache.set_config(config(MIB));
    for number in 0..200 {
        drop(super::put(&cache, &format!("/{number}"), &body));
    }
    assert!(cache.stats().bytes <= MIB);
    for signature in ["1", "2", "3"] {
        assert!(variant(&cache, signature).is_none(), "{signature}");
    }
}

#[test]
fn a_304_leaves_the_body_in_common() {
    let cache = cache();
    let body = pattern(30_000);
    let first = put(&cache, "1", &body);
    drop(put(&cache, "2", &body));
    let before = cache.stats().bytes;
    let options = BeginOptions { coalesce: false, rejected: Some(&first) };
    let refresh = lead(cache.begin(&key("a"), &mut of("1"), options, 0));
    let fresh = refresh.freshen(permit(), &first, head(None), first.vary());
    let at = address(&first);
    drop(first);
    assert!(cache.stats().bytes.abs_diff(before) < 1000);
    let second = variant(&cache, "2").expect("it is stored");
    assert_eq!((address(&fresh), address(&second)), (at, at));
}

proptest! {
    /// In whatever order variants come and go, each has its own bytes, and all memory returns.
    #[test]
    fn each_variant_has_its_bytes_and_the_account_is_right(
        steps in prop::collection::vec((0..4_usize, 0..3_u8), 1..30),
    ) {
        let cache = cache();
        let mut wanted = [None; 4];
        for (at, kind) in steps {
            let body = vec![kind; 5000];
            put(&cache, &at.to_string(), &body);
            wanted[at] = Some(kind);
            let mut places = Vec::new();
            for (at, kind) in wanted.iter().enumerate() {
                let found = variant(&cache, &at.to_string());
                let bytes = found.as_deref().and_then(bytes_of);
                prop_assert_eq!(bytes, kind.map(|kind| vec![kind; 5000]));
                places.extend(found.map(|found| address(&found)));
            }
            places.sort_unstable();
            places.dedup();
            let kinds: std::collections::BTreeSet<_> = wanted.iter().flatten().collect();
            prop_assert_eq!(places.len(), kinds.len());
            let bodies = kinds.len() as u64 * 5000;
            let bytes = cache.stats().bytes;
            prop_assert!((bodies..bodies + 20_000).contains(&bytes), "{} for {}", bytes, bodies);
        }
        cache.clear();
        prop_assert_eq!(cache.stats().bytes, 0);
    }
}
