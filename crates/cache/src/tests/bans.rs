//! Bans: invalidation by what a response is, instead of by key.

use super::*;

fn tags(tags: &[u64]) -> Tags {
    Tags::new(tags.to_vec())
}

fn tagged(cache: &Arc<Cache>, name: &str, of: &[u64]) -> Arc<Object> {
    let new = NewObject { tags: tags(of), ..head(Some(0)) };
    let filling = begin_anew(cache, name).store(permit(), new, None);
    let object = Arc::clone(filling.object());
    assert!(filling.finish());
    object
}

fn by_tags(of: &[u64]) -> BanSelector {
    BanSelector { tags: Some(tags(of)), test: None }
}

fn by_test(test: impl Test + 'static) -> BanSelector {
    BanSelector { tags: None, test: Some(Arc::new(test)) }
}

fn ban(which: BanSelector) -> NewBan {
    NewBan { text: format!("{which:?}").into(), which, ..NewBan::default() }
}

fn soft(which: BanSelector, now_ms: u64) -> NewBan {
    NewBan { soft: true, now_ms, ..ban(which) }
}

fn sweep(cache: &Cache) {
    cache.sweep(u32::MAX, 0, &mut || ());
}

/// Matches objects whose key contains this text.
#[derive(Debug)]
struct Holds(&'static str);

impl Test for Holds {
    fn matches(&self, object: &Record) -> bool {
        object.key().windows(self.0.len()).any(|part| part == self.0.as_bytes())
    }
}

#[test]
fn the_newest_of_all_variants_is_the_last_that_is_not_banned() {
    let cache = cache();
    assert!(cache.newest(&key("a")).is_none());
    let first = put_variant(&cache, "a", head(None), "spec", "1");
    let new = NewObject { tags: tags(&[7]), ..head(None) };
    let last = put_variant(&cache, "a", new, "spec", "2");
    let newest = |cache: &Cache| cache.newest(&key("a")).expect("stored");
    assert!(Arc::ptr_eq(&newest(&cache), &last) && last.hits() == 1);
    cache.ban(ban(by_tags(&[7])));
    assert!(Arc::ptr_eq(&newest(&cache), &first) && first.hits() == 1);
    assert!(!last.is_live() && last.hits() == 1);
}

#[test]
fn a_tag_bans_what_carries_it_and_nothing_else() {
    let cache = cache();
    tagged(&cache, "a", &[1, 2]);
    tagged(&cache, "b", &[2, 3]);
    tagged(&cache, "c", &[3]);
    put(&cache, "plain", b"body");
    let made = cache.ban(ban(by_tags(&[1, 2, 9])));
    assert!(found(&cache, "a").is_none() && found(&cache, "b").is_none());
    assert!(found(&cache, "c").is_some() && found(&cache, "plain").is_some());
    assert_eq!(made.objects(), 2);
    assert_eq!((cache.stats().objects, cache.stats().invalidated, cache.stats().bans), (2, 2, 1));
    // The ban does not apply to later responses.
    tagged(&cache, "a", &[1, 2]);
    assert!(found(&cache, "a").is_some());
    cache.check();
}

#[test]
fn an_object_keeps_key_variant_and_head_beside_its_tags() {
    let cache = cache();
    let new = NewObject { tags: tags(&[7, 8, 9]), ..head(None) };
    let object = put_variant(&cache, "key", new, "accept", "text");
    assert_eq!(object.head(), &*head(None).head);
    assert_eq!(
        object.vary().map(|vary| (vary.spec, vary.signature)),
        Some((&b"accept"[..], &b"text"[..]))
    );
    assert_eq!((object.key(), object.tags().len()), (key("key").bytes(), 3));
    assert_eq!(object.etag(), Some(&b"\"x\""[..]));
}

#[test]
fn a_sweep_tests_unrequested_objects_and_frees_their_memory() {
    let cache = cache();
    for n in 0..3000 {
        tagged(&cache, &format!("page {n}"), &[n % 3]);
    }
    let full = cache.stats().bytes;
    assert!(!cache.has_untested());
    let tagged = cache.ban(ban(by_tags(&[1])));
    let by_key = cache.ban(ban(by_test(Holds("page 17"))));
    assert!(cache.has_untested() && cache.stats().objects == 3000);
    let mut pauses = 0;
    cache.sweep(by_key.number(), 0, &mut || pauses += 1);
    assert!(!cache.has_untested());
    // 17, 170 to 179 and 1700 to 1799: a third of them by tag already.
    assert_eq!((tagged.objects(), by_key.objects()), (1000, 111 - 36));
    assert_eq!(cache.stats().objects, 2000 - 75);
    assert!(cache.stats().bytes < full * 3 / 4);
    assert!(cache.bans().iter().all(|listed| listed.over));
    cache.check();
    cache.clear();
    drop((tagged, by_key));
    // The bans themselves are still in memory.
    let bans = cache.stats().bytes;
    cache.sweep(u32::MAX, 1_000_000, &mut || ());
    assert!(bans > 0 && cache.stats().bytes == 0 && cache.bans().is_empty());
}

#[test]
fn a_serving_thread_sweeps_no_more_than_its_limit() {
    let cache = cache();
    for n in 0..20_000 {
        tagged(&cache, &format!("page {n}"), &[n % 2]);
    }
    let made = cache.ban_at_once(ban(by_tags(&[1])));
    assert!(!cache.sweep_first(1_000, &mut |_| ()));
    let counted = made.objects();
    assert!((1..5_000).contains(&counted), "{counted}");
    // An object that the sweep did not reach is banned nevertheless, and left to the next sweep.
    assert!(cache.has_untested() && found(&cache, "page 19999").is_none());
    sweep(&cache);
    assert_eq!(made.objects(), 10_000);
    // A small store is counted as a whole.
    let rest = cache.ban_at_once(ban(by_tags(&[0])));
    assert!(cache.sweep_first(1_000_000, &mut |_| ()) && !cache.has_untested());
    assert_eq!((rest.objects(), cache.stats().objects), (10_000, 0));
    cache.check();
}

#[test]
fn a_thread_that_others_wait_for_completes_no_bans_before_it_makes_one() {
    let cache = cache();
    let bans_max = cache.config().bans_max as u64;
    tagged(&cache, "kept", &[0]);
    for n in 1..=bans_max + 10 {
        cache.ban_at_once(ban(by_tags(&[n])));
    }
    assert!(cache.has_untested() && cache.bans().len() as u64 == bans_max + 10);
    sweep(&cache);
    cache.ban_at_once(ban(by_tags(&[1])));
    assert!(cache.bans().len() as u64 <= bans_max / 2 + 1 && found(&cache, "kept").is_some());
}

#[test]
fn a_ban_wins_over_a_fetch_that_began_before_it() {
    let cache = cache();
    let early = begin_anew(&cache, "key");
    let FetchDecision::Wait(ticket) = begin(&cache, "key") else { panic!("one fetches already") };
    cache.ban(ban(by_tags(&[5])));
    sweep(&cache);
    let filling = early.store(permit(), NewObject { tags: tags(&[5]), ..head(Some(0)) }, None);
    assert!(!filling.stored());
    assert!(filling.finish());
    assert!(found(&cache, "key").is_none());
    // The waiters see that the response is not for later requests.
    let WaiterOutcome::Ready(object) = block_on(ticket) else { panic!("an answer") };
    assert!(!cache.may_use(&object));
    // Another fetch of that time gives a response that the ban does not match.
    tagged(&cache, "key", &[6]);
    assert!(found(&cache, "key").is_some());
    cache.check();
}

#[test]
fn a_fetch_older_than_all_bans_that_are_remembered_is_not_stored() {
    let cache = cache();
    let early = begin_anew(&cache, "key");
    cache.ban(ban(by_tags(&[5])));
    cache.sweep(u32::MAX, 100_000, &mut || ());
    assert!(cache.bans().is_empty());
    let filling = early.store(permit(), head(Some(0)), None);
    assert!(!filling.stored());
    drop(filling);
    tagged(&cache, "key", &[5]);
    assert!(found(&cache, "key").is_some());
}

#[test]
fn a_confirmation_of_what_was_banned_meanwhile_is_not_stored() {
    let cache = cache();
    let old = tagged(&cache, "key", &[5]);
    let lead = cache.begin_refresh(&key("key"), &old).expect("no refresh is under way");
    cache.ban(ban(by_tags(&[5])));
    // The 304 has no tags.
    let new = lead.freshen(permit(), &old, head(None), None);
    assert!(!new.is_live());
    assert!(found(&cache, "key").is_none());
    cache.check();
}

#[test]
fn a_soft_ban_leaves_its_objects_stale() {
    let cache = cache();
    let old = tagged(&cache, "key", &[5]);
    let other = tagged(&cache, "other", &[6]);
    let lead = begin_anew(&cache, "coming");
    let made = cache.ban(soft(by_tags(&[5]), 300));
    assert!(found(&cache, "key").is_some_and(|object| Arc::ptr_eq(&object, &old)));
    assert!(!old.is_fresh(300) && old.is_fresh(299) && other.is_fresh(300));
    assert_eq!((old.stale_ms(400), old.grace_ms()), (100, 5000));
    let filling = lead.store(permit(), NewObject { tags: tags(&[5]), ..head(Some(0)) }, None);
    assert!(filling.stored());
    assert!(!filling.object().is_fresh(300));
    assert!(filling.finish());
    sweep(&cache);
    // Only objects that were stored before the ban.
    assert_eq!((made.objects(), cache.stats().invalidated), (1, 0));
}

#[test]
fn tags_and_a_test_must_both_hold() {
    let cache = cache();
    tagged(&cache, "one", &[1]);
    tagged(&cache, "two", &[1]);
    tagged(&cache, "one more", &[2]);
    let which = BanSelector { tags: Some(tags(&[1])), ..by_test(Holds("one")) };
    cache.ban(ban(which));
    let there = ["one", "two", "one more"].map(|name| found(&cache, name).is_some());
    assert_eq!(there, [false, true, true]);
}

#[test]
fn all_of_it_may_be_banned_softly_and_hard() {
    let cache = cache();
    let object = put(&cache, "key", b"body");
    cache.ban(soft(BanSelector::default(), 5));
    assert!(found(&cache, "key").is_some() && !object.is_fresh(5));
    cache.ban(ban(BanSelector::default()));
    assert!(matches!(begin(&cache, "key"), FetchDecision::Lead(_)));
    assert_eq!(cache.stats().objects, 0);
}

#[test]
fn a_ban_with_an_equal_text_replaces_the_older_one() {
    let cache = cache();
    tagged(&cache, "key", &[1]);
    let old = cache.ban(ban(by_tags(&[1])));
    cache.ban(soft(by_tags(&[1]), 0));
    let new = cache.ban(ban(by_tags(&[1])));
    let listed = cache.bans();
    let is_soft: Vec<_> = listed.iter().map(|l| (l.ban.number(), l.ban.is_soft())).collect();
    assert_eq!(is_soft, [(2, true), (3, false)]);
    sweep(&cache);
    assert_eq!((old.objects(), new.objects()), (0, 1));
}

#[test]
fn bans_may_be_numbered_from_outside_and_never_go_back() {
    let cache = cache();
    let numbered = |number, tag| NewBan { number, ..ban(by_tags(&[tag])) };
    tagged(&cache, "one", &[1]);
    assert_eq!(cache.ban(numbered(7, 9)).number(), 7);
    tagged(&cache, "two", &[2]);
    // The objects have passed ban 7. A ban from an older position of the log is in force all the
    // same.
    assert_eq!(cache.ban(numbered(3, 1)).number(), 8);
    assert_eq!(cache.ban(numbered(100, 2)).number(), 100);
    assert_eq!(cache.ban(ban(by_tags(&[9]))).number(), 101);
    assert_eq!([found(&cache, "one").is_some(), found(&cache, "two").is_some()], [false; 2]);
    tagged(&cache, "three", &[9]);
    sweep(&cache);
    assert!(found(&cache, "three").is_some(), "it came after all of them");
    assert!(cache.bans().iter().all(|listed| listed.over));
    cache.check();
}

#[test]
fn what_makes_a_ban_again_is_kept_with_it_and_paid_for() {
    let cache = cache();
    let before = cache.stats().bytes;
    let data = vec![7; 10_000];
    let made = cache.ban(NewBan { data: data.clone().into(), ..ban(by_tags(&[1])) });
    assert_eq!(made.data(), data);
    assert!(cache.stats().bytes >= before + 10_000);
}

#[test]
fn the_list_is_bounded_and_the_oldest_are_completed_first() {
    let cache = Cache::new(Config { bans_max: 10, ..config(64 * MIB) });
    for n in 0..50 {
        tagged(&cache, &n.to_string(), &[n]);
    }
    for n in 0..45 {
        cache.ban(ban(by_tags(&[n])));
        assert!(cache.bans().len() <= 10);
    }
    for n in 0..50 {
        assert_eq!(found(&cache, &n.to_string()).is_some(), n >= 45, "{n}");
    }
    cache.check();
}

#[test]
fn bans_pass_over_objects_that_were_stored_after_them() {
    let cache = cache();
    #[derive(Debug)]
    struct Never;
    impl Test for Never {
        fn matches(&self, _: &Record) -> bool {
            panic!("nothing is older than it")
        }
    }
    cache.ban(ban(by_test(Never)));
    put(&cache, "key", b"");
    assert!(found(&cache, "key").is_some());
    sweep(&cache);
}
