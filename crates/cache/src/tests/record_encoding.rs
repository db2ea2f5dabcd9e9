//! The encoding of records.

use base::Now;
use codec::Coding;
use proptest::prelude::*;

use super::*;

fn readings() -> impl Strategy<Value = Now> {
    (0..1_u64 << 40, 1_u64 << 40..1 << 43).prop_map(|(mono_ms, unix_ms)| Now { mono_ms, unix_ms })
}

fn records() -> impl Strategy<Value = Record> {
    let bytes = |most| proptest::collection::vec(any::<u8>(), 0..most);
    let times = (-5_000_000..5_000_000_i64, 0..5_000_000_u64, any::<u32>(), any::<u32>());
    let names = proptest::option::of((bytes(20), bytes(40)));
    let parts = (bytes(30), bytes(60), bytes(20), proptest::collection::vec(any::<u64>(), 0..4));
    (parts, names, times, any::<u16>(), any::<u32>()).prop_map(
        |((key, head, note, tags), names, (born_ms, lifetime_ms, grace, date), marks, passed)| {
            let new = NewObject {
                etag: Some((3, 5)).filter(|_| head.len() > 8),
                head: head.into(),
                note: note.into(),
                tags: Tags::new(tags),
                born_ms,
                lifetime_ms,
                grace_ms: u64::from(grace),
                date: Some(u64::from(date)),
                flags: Flags {
                    coding: Coding::ALL[usize::from(marks & 3)],
                    http10: marks & 2 == 0,
                    ..Flags::default()
                },
                ..super::head(None)
            };
            let vary = names.as_ref().map(|(spec, signature)| Variant { spec, signature });
            Record::new(&new, &key, vary, passed)
        },
    )
}

/// All fields of a record except its times.
fn all_fields(record: &Record) -> impl PartialEq + std::fmt::Debug {
    let vary = record.vary().map(|vary| (vary.spec.to_vec(), vary.signature.to_vec()));
    let parts = (record.key().to_vec(), vary, record.tags(), record.note().to_vec());
    let head = (record.status(), record.head().to_vec(), record.etag().map(<[u8]>::to_vec));
    let dates = (record.last_modified(), record.date(), record.flags(), record.passed());
    let errors = (record.stale_if_error_ms(), record.stale_if_unreachable_ms());
    let spans = (record.lifetime_ms(), record.grace_ms(), errors);
    (parts, head, dates, spans)
}

proptest! {
    #[test]
    fn a_record_is_the_same_in_another_process_and_older_by_the_time_between(
        record in records(),
        soft_ms in proptest::option::of(-1_000_000..1_000_000_i64),
        (before, after) in (readings(), readings()),
    ) {
        if let Some(soft_ms) = soft_ms {
            record.expire(soft_ms);
        }
        let mut bytes = Vec::new();
        record.encode(before, &mut bytes);
        let read = Record::decode(&bytes, after).expect("it was written");
        prop_assert_eq!(all_fields(&read), all_fields(&record));
        // The zero of the wall clock for both.
        let (here, there) = (before.unix_at(0), after.unix_at(0));
        let ahead_ms = (read.born_ms() + there) - (record.born_ms() + here);
        prop_assert!(ahead_ms == 0 || read.born_ms() == after.mono_ms as i64 && ahead_ms < 0);
        prop_assert_eq!(
            read.fresh_until_ms() - read.born_ms(),
            record.fresh_until_ms() - record.born_ms()
        );
        let mut again = Vec::new();
        read.encode(after, &mut again);
        prop_assert!(ahead_ms != 0 || again == bytes);
    }

    /// Changed or cut bytes decode to `None`, or to a record whose fields can all be read.
    #[test]
    fn no_bytes_make_a_record_that_is_not_sound(
        record in records(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..8),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let now = Now { mono_ms: 1 << 30, unix_ms: 1 << 41 };
        let mut bytes = Vec::new();
        record.encode(now, &mut bytes);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Some(read) = Record::decode(&bytes, now) {
            prop_assert_eq!(all_fields(&read), all_fields(&read));
            prop_assert!(read.born_ms() <= now.mono_ms as i64);
        }
    }
}
