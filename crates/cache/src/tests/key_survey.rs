//! Tests of surveys: they find the keys that vary and those with a mark, and no others.

use super::*;

fn put(cache: &Arc<Cache>, name: &str, signature: &str, body: &[u8]) {
    let options = BeginOptions { coalesce: false, rejected: None };
    let lead = lead(cache.begin(&key(name), &mut of("matches nothing stored"), options, 0));
    let vary = Variant { spec: b"x", signature: signature.as_bytes() };
    let mut filling = lead.store(permit(), head(Some(body.len() as u64)), Some(vary));
    assert_eq!(filling.push(body), PushOutcome::Ok);
    assert!(filling.finish());
}

#[test]
fn keys_that_vary_and_marks_are_found_with_their_bodies() {
    let cache = cache();
    let (body, other) = (pattern(90_000), pattern(80_000));
    put(&cache, "one", "1", &body);
    for (signature, body) in [("1", &body), ("2", &other), ("3", &body)] {
        put(&cache, "three", signature, body);
    }
    let options = BeginOptions { coalesce: true, rejected: None };
    lead(cache.begin(&key("mark"), &mut plain, options, 0)).refuse(Some(700));
    let mut found = Vec::new();
    cache.survey(
        &mut |own| {
            found.push((own.key.to_vec(), own.variants.len(), own.bodies(), own.marked_until_ms));
        },
        &mut || (),
    );
    found.sort();
    let mut expected = vec![
        (key("three").bytes().to_vec(), 3, 2, None),
        (key("mark").bytes().to_vec(), 0, 0, Some(700)),
    ];
    expected.sort();
    assert_eq!(found, expected);
}
