//! Records are read as they were written, and arbitrary bytes never make the reader panic.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::fetch_evidence::{FIELDS_MAX, REMOVED_MAX};
use fingerprint::BodyFingerprint;

fn address() -> impl Strategy<Value = Option<IpAddr>> {
    option::of(prop_oneof![
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u8; 16]>().prop_map(IpAddr::from)
    ])
}

fn phases() -> impl Strategy<Value = Phases> {
    let phase = || option::of(0..NEVER);
    (phase(), phase(), phase(), phase(), phase(), phase(), any::<u64>()).prop_map(
        |(read, policy, wait, fetch, head, reply, end)| Phases {
            read,
            policy,
            wait,
            fetch,
            head,
            reply,
            end,
        },
    )
}

/// A record's numbers with no texts.
fn numbers() -> impl Strategy<Value = Record<'static>> {
    let own = (any::<[u64; 6]>(), any::<[u32; 4]>(), any::<[u16; 2]>(), any::<u8>());
    let others = (phases(), address(), 0..Served::ALL.len(), option::of(any::<u64>()));
    (own, others, option::of(any::<i64>())).prop_map(|(own, others, ttl_s)| {
        let ([id, start_unix_ms, start_us, body_in, body_out, key], heads, small, version) = own;
        let (phases, client, served, age_s) = others;
        Record {
            id,
            start_unix_ms,
            start_us,
            phases,
            client,
            version,
            status: small[0],
            served: Served::ALL[served],
            dictionary: DictionaryUse::ALL[served],
            tries: small[1],
            suite: CipherSuite(small[0].rotate_left(5)),
            port: small[1].rotate_left(3),
            head_in: heads[0],
            head_out: heads[1],
            kind: if small[1] % 2 == 0 { Kind::Client } else { Kind::Background },
            parent: key.rotate_left(7),
            proof: ClientProof::ALL.get(usize::from(small[0] % 7)).copied(),
            origin_status: small[0].rotate_left(3),
            xid: heads[2],
            session: heads[3],
            body_in,
            body_out,
            key,
            age_s,
            ttl_s,
            ..Record::default()
        }
        .with_derived_flags()
    })
}

fn with_texts<'a>(record: Record<'a>, texts: &'a [Vec<u8>]) -> Record<'a> {
    Record {
        method: &texts[0],
        host: &texts[1],
        target: &texts[2],
        site: &texts[3],
        rule: &texts[4],
        origin: &texts[5],
        server: &texts[6],
        error: &texts[7],
        limit: &texts[8],
        not_stored: &texts[9],
        evidence: &texts[10],
        class: &texts[12],
        crawler: &texts[13],
        vcl: &texts[11],
        route: &texts[12],
        ..record
    }
}

proptest! {
    #[test]
    fn a_record_reads_back_as_it_was_written(
        record in numbers(),
        texts in vec(vec(any::<u8>(), 0..40), TEXTS + 1),
        values in vec(option::of(vec(any::<u8>(), 0..40)), 0..VALUES_MAX),
        behind in vec(any::<u8>(), 0..20),
    ) {
        let record = with_texts(record, &texts).with_derived_flags();
        let mut bytes = Vec::new();
        record.write(values.iter().map(Option::as_deref), &mut bytes);
        bytes.extend_from_slice(&behind);
        let (read, rest) = Record::read(&bytes).expect("a whole record");
        prop_assert_eq!(rest, &behind[..]);
        let found: Vec<_> = read.values.iter().map(|v| v.map(<[u8]>::to_vec)).collect();
        prop_assert_eq!(found, values);
        prop_assert_eq!(Record { values: Values::default(), ..read }, record);
    }

    #[test]
    fn no_bytes_make_it_fail(bytes in vec(any::<u8>(), 0..400)) {
        if let Some((record, rest)) = Record::read(&bytes) {
            prop_assert!(rest.len() < bytes.len());
            prop_assert!(record.values.iter().count() <= usize::from(u8::MAX));
        }
    }

    #[test]
    fn a_record_cut_short_is_none(record in numbers(), cut in 0..FIXED + 4) {
        let mut bytes = Vec::new();
        Record { target: b"/abc", ..record }.write([None::<&[u8]>; 0], &mut bytes);
        prop_assert_eq!(Record::read(&bytes[..cut]), None);
    }
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let long = vec![b'x'; TEXT_MAX + 1];
    let mut bytes = Vec::new();
    Record { target: &long, ..Record::default() }.write([Some(&long[..])], &mut bytes);
    let (record, _) = Record::read(&bytes).expect("a record");
    assert!(record.flags.has(Flags::CUT));
    assert_eq!(record.target.len(), TEXT_MAX);
    assert_eq!(record.values.iter().next().flatten().map(<[u8]>::len), Some(VALUE_MAX));
}

#[test]
fn the_longest_record_is_as_long_as_it_says() {
    let long = vec![b'x'; TEXT_MAX + 1];
    let texts = vec![long.clone(); TEXTS + 1];
    let mut bytes = Vec::new();
    let values = std::iter::repeat_n(Some(&long[..]), VALUES_MAX + 3);
    with_texts(Record::default(), &texts).write(values, &mut bytes);
    let evidence = FetchEvidence {
        fingerprint: Some(BodyFingerprint(1)),
        removed: &long[..REMOVED_MAX],
        fields: &long[..FIELDS_MAX],
    };
    add_evidence(&mut bytes, 0, &evidence);
    add_heads(&mut bytes, 0, &vec![b'x'; HEADS_MAX], false);
    assert_eq!(bytes.len(), RECORD_MAX);
}

#[test]
fn heads_follow_a_record_and_damaged_ones_are_detected() {
    let mut bytes = Vec::new();
    Record::default().write([Some(&b"a"[..]), None], &mut bytes);
    let (at, without) = (bytes.len(), bytes.clone());
    Record { status: 404, route: b"shop", ..Record::default() }
        .write([Some(&b"b"[..])], &mut bytes);
    add_heads(&mut bytes, at, b"heads", true);
    let (first, rest) = Record::read(&bytes).expect("a record");
    let (second, end) = Record::read(rest).expect("another");
    assert_eq!((first.heads(), first.flags.has(Flags::HEADS)), (&b""[..], false));
    assert_eq!((second.heads(), second.status, end), (&b"heads"[..], 404, &b""[..]));
    assert_eq!((first.route, second.route), (&b""[..], &b"shop"[..]));
    assert_eq!(second.values.iter().collect::<Vec<_>>(), [Some(&b"b"[..])]);
    assert!(second.flags.has(Flags::HEADS) && second.flags.has(Flags::CUT));
    let mut damaged = [&without[..], b"x"].concat();
    damaged[..4].copy_from_slice(&(without.len() as u32 + 1).to_le_bytes());
    assert!(Record::read(&damaged).is_none());
}

#[test]
fn evidence_follows_a_record_with_or_without_heads() {
    let fingerprint = Some(BodyFingerprint(7));
    let evidence = FetchEvidence { fingerprint, removed: b"utm_source=x", fields: b"fields" };
    let mut bytes = Vec::new();
    Record { route: b"shop", ..Record::default() }.write([None::<&[u8]>], &mut bytes);
    assert_eq!(Record::read(&bytes).expect("a record").0.fetch_evidence(), None);
    add_evidence(&mut bytes, 0, &evidence);
    let (record, _) = Record::read(&bytes).expect("a record");
    assert_eq!((record.fetch_evidence(), record.heads()), (Some(evidence), &b""[..]));
    add_heads(&mut bytes, 0, b"heads", false);
    let (record, rest) = Record::read(&bytes).expect("a record");
    assert_eq!((record.fetch_evidence(), record.heads()), (Some(evidence), &b"heads"[..]));
    assert_eq!((record.route, rest), (&b"shop"[..], &b""[..]));
    let end = bytes.len() - b"headsfields".len() - 1;
    bytes.truncate(end);
    bytes[..4].copy_from_slice(&(end as u32).to_le_bytes());
    assert!(Record::read(&bytes).is_none(), "damaged");
}

#[test]
fn every_way_of_serving_has_a_word_of_its_own() {
    let mut words: Vec<_> = Served::ALL.iter().map(|served| served.word()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), Served::ALL.len());
}
