//! Further forms of stored bodies.

use super::*;
use crate::FORMS;

/// The bytes of a form.
fn form(object: &Object, number: usize) -> Option<Vec<u8>> {
    object.form(number).map(|bytes| bytes.to_vec())
}

/// Stores a body of `len` bytes that may have forms.
fn put_formed(cache: &Arc<Cache>, name: &str, len: usize) -> Arc<Object> {
    let flags = Flags { negotiated: true, ..Flags::default() };
    let new = NewObject { flags, ..head(None) };
    let mut filling = begin_anew(cache, name).store(permit(), new, None);
    for piece in pattern(len).chunks(50_000) {
        assert_eq!(filling.push(piece), PushOutcome::Ok);
    }
    let object = Arc::clone(filling.object());
    assert!(!object.wants_form(1, 1), "not while it fills");
    assert!(filling.finish());
    object
}

fn give(cache: &Arc<Cache>, name: &str, object: &Arc<Object>, number: usize, effort: u8) -> bool {
    let data = vec![effort; 10_000];
    cache.begin_form(object, number, effort)
        && cache.put_form(object, key(name).hash(), number, effort, data)
}

#[test]
fn a_form_is_made_once_with_each_effort_and_read_by_its_number() {
    let cache = cache();
    let object = put_formed(&cache, "/a", 1000);
    assert_eq!((form(&object, 1), object.form_effort(1)), (None, 0));
    assert!(object.wants_form(1, 1) && object.wants_form(FORMS - 1, 1));
    assert!(!object.wants_form(FORMS, 1));
    assert!(cache.begin_form(&object, 1, 1));
    assert!(!cache.begin_form(&object, 1, 1), "it has begun already");
    assert!(!object.wants_form(1, 1));
    let hash = key("/a").hash();
    assert!(cache.put_form(&object, hash, 1, 1, b"first".to_vec()));
    assert_eq!((form(&object, 1), object.form_effort(1)), (Some(b"first".to_vec()), 1));
    assert_eq!(form(&object, 2), None);
    assert!(cache.begin_form(&object, 1, 2));
    assert!(cache.put_form(&object, hash, 1, 2, b"better".to_vec()));
    assert!(cache.put_form(&object, hash, 1, 1, b"late".to_vec()));
    assert_eq!((form(&object, 1), object.form_effort(1)), (Some(b"better".to_vec()), 2));
    assert_eq!(bytes_of(&object).expect("complete"), pattern(1000), "the body stays");
}

#[test]
fn only_bodies_that_may_have_forms_have_them() {
    let cache = cache();
    let object = put(&cache, "/a", b"abc");
    assert!(!object.wants_form(1, 1));
    assert!(!cache.begin_form(&object, 1, 1));
    assert!(!cache.put_form(&object, key("/a").hash(), 1, 1, b"x".to_vec()));
    object.note_plain_length(7);
    assert_eq!(object.plain_length(), None);
    let object = put_formed(&cache, "/b", 10);
    assert_eq!(object.plain_length(), None);
    object.note_plain_length(0);
    assert_eq!(object.plain_length(), Some(0));
}

#[test]
fn forms_are_charged_and_given_back_with_the_object() {
    for len in [1000, 600_000] {
        let cache = cache();
        let object = put_formed(&cache, "/a", len);
        let before = cache.stats().bytes;
        assert!(give(&cache, "/a", &object, 1, 1) && give(&cache, "/a", &object, 2, 1));
        let with = cache.stats().bytes;
        assert!(with >= before + 20_000, "{before} {with}");
        assert!(give(&cache, "/a", &object, 1, 2), "in the place of the first");
        assert_eq!(cache.stats().bytes, with);
        cache.check();
        // A sender of a form keeps only the form in memory.
        let sent = object.form(1).expect("it is there");
        assert_eq!(cache.invalidate(&key("/a")), 1);
        assert!(!give(&cache, "/a", &object, 3, 1), "it has left the index");
        drop(object);
        assert!((10_000..15_000).contains(&cache.stats().bytes), "{}", cache.stats().bytes);
        assert_eq!(&sent[..], [2; 10_000]);
        drop(sent);
        cache.clear();
        assert_eq!(cache.stats().bytes, 0);
    }
}

#[test]
fn forms_stay_over_a_confirmation() {
    for (len, forms) in [(1000, true), (1000, false), (600_000, true)] {
        let cache = cache();
        let old = put_formed(&cache, "/a", len);
        old.note_plain_length(5);
        assert!(!forms || give(&cache, "/a", &old, 1, 1));
        let flags = Flags { negotiated: true, ..Flags::default() };
        let new = NewObject { flags, ..head(None) };
        let object = begin_anew(&cache, "/a").freshen(permit(), &old, new, None);
        assert_eq!((object.form(1).is_some(), object.plain_length()), (forms, Some(5)));
        assert!(give(&cache, "/a", &object, 2, 1));
        assert_eq!(bytes_of(&object).expect("complete"), pattern(len));
        cache.check();
        drop(old);
        assert!(object.form(2).is_some());
        cache.clear();
        drop(object);
        assert_eq!(cache.stats().bytes, 0);
    }
}

#[test]
fn without_memory_there_are_no_forms() {
    let cache = Cache::new(config(MIB));
    let object = put_formed(&cache, "/a", 1000);
    assert!(cache.begin_form(&object, 1, 1));
    assert!(!cache.put_form(&object, key("/a").hash(), 1, 1, vec![0; 2 << 20]));
    assert_eq!(form(&object, 1), None);
}

#[test]
fn another_form_takes_the_place_of_a_body_in_one_step() {
    let cache = cache();
    let object = put_formed(&cache, "/a", 1000);
    assert!(!object.is_plain_asked());
    object.note_plain_length(7);
    object.note_plain_asked();
    assert_eq!((object.plain_length(), object.is_plain_asked()), (Some(7), true));
    let before = cache.stats().bytes;
    let lead = cache.begin_refresh(&key("/a"), &object).expect("no fetch is under way");
    assert!(lead.replace_form(&object, &object.renewed(), b"coded".to_vec(), 1000));
    assert!(!object.is_live());
    let stored = found(&cache, "/a").expect("it is there");
    assert_eq!(bytes_of(&stored).expect("complete"), b"coded");
    assert_eq!((stored.plain_length(), stored.is_plain_asked()), (Some(1000), false));
    assert!(stored.wants_form(1, 1), "it may have forms");
    drop(object);
    assert!(cache.stats().bytes < before);
    // An object that is invalidated meanwhile does not come back.
    let lead = cache.begin_refresh(&key("/a"), &stored).expect("no fetch is under way");
    cache.invalidate(&key("/a"));
    assert!(!lead.replace_form(&stored, &stored.renewed(), b"late".to_vec(), 1000));
    assert!(found(&cache, "/a").is_none());
}

#[test]
fn a_form_that_is_made_while_the_origin_confirms_its_body_is_put_beside_it() {
    let cache = cache();
    let object = put_formed(&cache, "/a", 200_000);
    assert!(cache.begin_form(&object, 1, 1));
    let lead = cache.begin_refresh(&key("/a"), &object).expect("no fetch is under way");
    let new = NewObject { flags: object.flags(), ..head(None) };
    let confirmed = lead.freshen(permit(), &object, new, None);
    assert!(!object.is_live() && confirmed.is_live());
    assert!(cache.put_form(&object, key("/a").hash(), 1, 1, b"coded".to_vec()));
    assert_eq!(form(&confirmed, 1), Some(b"coded".to_vec()));
    // Its replacement is another object.
    let other = put_formed(&cache, "/b", 1000);
    assert!(cache.begin_form(&other, 1, 1));
    cache.invalidate(&key("/b"));
    put_formed(&cache, "/b", 1000);
    assert!(!cache.put_form(&other, key("/b").hash(), 1, 1, b"late".to_vec()));
}
