//! Tests of parts that join a stored set, and of their caching fields.

use super::*;

/// The first part may be stored. A later one has a cookie or forbids it.
#[tokio::test]
async fn a_part_that_may_not_be_stored_is_not_kept_and_ends_its_set() {
    let public = "Cache-Control: public, max-age=300\r\n";
    for policy in BOTH {
        for new in [
            "Cache-Control: public, max-age=300\r\nSet-Cookie: session=of-alice\r\n",
            "Cache-Control: private, max-age=300\r\n",
            "Cache-Control: no-store\r\n",
            "Cache-Control: public, max-age=300\r\nVary: *\r\n",
        ] {
            let case = format!("{policy:?} {new:?}");
            let cinema = Cinema::small(policy).await;
            cinema.film.say(public);
            let (near, far) = (10..20, 9 * SLICE + 10..9 * SLICE + 20);
            assert_part(&cinema.part(near.clone()).await, near.clone(), 1, LENGTH, &case);
            eventually("a set", async || cinema.metric("slice_sets_total").await == 1).await;
            cinema.film.say(new);
            // The client has a head by then, so that the end of the set truncates its body.
            let fields = format!("Range: bytes={}-{}\r\n", far.start, far.end - 1);
            let seen = cinema.seen("GET", &fields).await;
            assert!(seen.complete().is_none_or(|reply| reply.status != 206), "{case}: {seen:?}");
            eventually("its end", async || cinema.metric("slice_sets_changed_total").await == 1)
                .await;
            cinema.film.say(public);
            let before = cinema.film.asked().len();
            assert_part(&cinema.part(far.clone()).await, far.clone(), 1, LENGTH, &case);
            assert!(cinema.film.asked().len() > before, "{case}: it was kept");
        }
    }
}

/// A cookie beside every part changes nothing.
#[tokio::test]
async fn parts_that_say_what_the_first_one_said_are_kept() {
    let cinema = Cinema::small_that(Policy::Declared, "cache = { drop_set_cookie = true }\n").await;
    cinema.film.say("Cache-Control: public, max-age=300\r\nSet-Cookie: session=new\r\n");
    for _ in 0..2 {
        for range in [10..20, 9 * SLICE + 10..9 * SLICE + 20] {
            let part = cinema.part(range.clone()).await;
            assert_part(&part, range, 1, LENGTH, "a part");
            assert_eq!(part.field("set-cookie"), None);
        }
    }
    assert_eq!(cinema.film.asked().len(), 2, "{:?}", cinema.ranges());
}

#[tokio::test]
async fn contradictory_answers_to_the_first_range_are_not_believed() {
    use testkit::large_file::RangeManner::*;
    for manner in [WrongStart, TooLong, NoContentRange, TwoContentRanges, NoEtag, Weak, Promises] {
        let cinema = Cinema::small(Policy::Declared).await;
        cinema.film.set_manner(manner);
        let range = 9 * SLICE + 50..9 * SLICE + 4050;
        assert_part(&cinema.part(range.clone()).await, range, 1, LENGTH, &format!("{manner:?}"));
        assert!(cinema.ask("").await.body == LargeFile::bytes(1, 0..LENGTH), "{manner:?}");
    }
}
