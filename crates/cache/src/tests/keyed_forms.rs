//! Keyed forms of stored bodies.

use super::*;
use crate::KEYED_FORMS;

/// Stores a body that may have forms.
fn put_formed(cache: &Arc<Cache>, name: &str) -> Arc<Object> {
    let flags = Flags { dictionary: true, ..Flags::default() };
    let new = NewObject { flags, ..head(None) };
    let mut filling = begin_anew(cache, name).store(permit(), new, None);
    assert_eq!(filling.push(&pattern(1000)), PushOutcome::Ok);
    let object = Arc::clone(filling.object());
    assert!(!object.wants_keyed_form(1), "not while it fills");
    assert!(filling.finish());
    object
}

fn give(cache: &Arc<Cache>, name: &str, object: &Arc<Object>, key: u64) -> bool {
    cache.begin_keyed_form(object, key, |_| false)
        && cache.put_keyed_form(object, self::key(name).hash(), key, vec![key as u8; 10_000])
}

#[test]
fn a_form_is_made_once_and_read_by_its_key() {
    let cache = cache();
    let object = put_formed(&cache, "/a");
    assert!(object.flags().dictionary);
    assert_eq!((object.keyed_form(5), object.has_keyed_forms()), (None, false));
    assert!(object.wants_keyed_form(5));
    assert!(cache.begin_keyed_form(&object, 5, |_| false));
    assert!(!object.wants_keyed_form(5) && object.wants_keyed_form(6));
    assert!(!object.has_keyed_forms(), "begun is not made");
    assert!(!cache.begin_keyed_form(&object, 5, |_| true), "it has begun already");
    assert!(!cache.begin_keyed_form(&object, 0, |_| true), "no key");
    let hash = key("/a").hash();
    assert!(!cache.put_keyed_form(&object, hash, 6, vec![1]), "it has not begun");
    assert!(cache.put_keyed_form(&object, hash, 5, vec![1, 2]));
    assert_eq!(object.keyed_form(5).as_deref(), Some(&[1, 2][..]));
    assert_eq!(object.keyed_form(6), None);
    assert!(object.has_keyed_forms());
    assert_eq!(bytes_of(&object).expect("complete"), pattern(1000), "the body stays");
    cache.check();
}

#[test]
fn a_place_is_given_away_only_when_its_key_is_over() {
    let cache = cache();
    let object = put_formed(&cache, "/a");
    let keys = 1..=KEYED_FORMS as u64;
    assert!(keys.clone().all(|key| give(&cache, "/a", &object, key)));
    let full = cache.stats().bytes;
    assert!(!cache.begin_keyed_form(&object, 99, |_| false));
    assert!(cache.begin_keyed_form(&object, 99, |key| key == 2));
    assert!(object.keyed_form(2).is_some(), "until the next is there");
    assert!(cache.put_keyed_form(&object, key("/a").hash(), 99, vec![9; 10_000]));
    let there: Vec<u64> =
        keys.chain([99]).filter(|key| object.keyed_form(*key).is_some()).collect();
    assert_eq!(there, [1, 3, 4, 99]);
    assert_eq!(cache.stats().bytes, full, "one for the other");
    cache.check();
}

#[test]
fn keyed_forms_are_charged_and_given_back_with_the_object() {
    let cache = cache();
    let object = put_formed(&cache, "/a");
    let before = cache.stats().bytes;
    assert!(give(&cache, "/a", &object, 1) && give(&cache, "/a", &object, 2));
    assert!(cache.stats().bytes >= before + 20_000);
    cache.check();
    let body = object.body_ref();
    assert_eq!(body.whole(|whole| whole.pieces().map(<[u8]>::len).sum::<usize>()), Some(1000));
    assert_eq!(cache.invalidate(&key("/a")), 1);
    assert!(!give(&cache, "/a", &object, 3), "it has left the index");
    assert!(body.is_there(), "the slot is in use");
    drop(object);
    assert!(!body.is_there());
    assert_eq!(body.whole(|_| ()), None);
    cache.clear();
    assert_eq!(cache.stats().bytes, 0);
}

#[test]
fn body_and_forms_stay_over_a_confirmation() {
    let cache = cache();
    let old = put_formed(&cache, "/a");
    assert!(give(&cache, "/a", &old, 1));
    let body = old.body_ref();
    let flags = Flags { dictionary: true, ..Flags::default() };
    let new = NewObject { flags, ..head(None) };
    let object = begin_anew(&cache, "/a").freshen(permit(), &old, new, None);
    drop(old);
    assert!(body.is_there() && object.keyed_form(1).is_some());
    assert!(give(&cache, "/a", &object, 2));
    assert!(object.body_ref().is_there());
    cache.check();
}

#[test]
fn without_memory_there_are_no_keyed_forms() {
    let cache = Cache::new(config(MIB));
    let object = put_formed(&cache, "/a");
    assert!(cache.begin_keyed_form(&object, 1, |_| false));
    assert!(!cache.put_keyed_form(&object, key("/a").hash(), 1, vec![0; 2 << 20]));
    assert_eq!(object.keyed_form(1), None);
    let object = put(&cache, "/b", b"abc");
    assert!(!object.wants_keyed_form(1) && !cache.begin_keyed_form(&object, 1, |_| false));
}
