//! Datagrams in MediaWiki's form and in the RFC's.

use proptest::prelude::*;

use super::*;

/// A CLR datagram with this opcode and these flags.
fn datagram(minor: u8, code: u8, flags: u8, url: &str) -> Vec<u8> {
    let counted = |text: &str| {
        let len = u16::try_from(text.len()).expect("short");
        [&len.to_be_bytes()[..], text.as_bytes()].concat()
    };
    let specifier =
        [vec![0, 0], counted("HEAD"), counted(url), counted("HTTP/1.0"), counted("")].concat();
    let data_len = u16::try_from(8 + specifier.len()).expect("short");
    let len = 4 + data_len + 2;
    [
        &len.to_be_bytes()[..],
        &[0, minor],
        &data_len.to_be_bytes(),
        &[code, flags, 0, 0, 0, 7],
        &specifier,
        &[0, 2],
    ]
    .concat()
}

const URL: &str = "http://wiki.test/wiki/Alpha";

#[test]
fn mediawikis_datagram_is_read_although_its_bits_are_the_other_way_round() {
    let bytes = datagram(0, 4, 0, URL);
    let clear = HtcpRequest::read(&bytes).expect("CLR");
    assert_eq!((clear.method, clear.url), (&b"HEAD"[..], URL.as_bytes()));
    assert_eq!((clear.wants_answer, clear.transaction), (false, 7));
}

#[test]
fn an_answer_has_its_requests_order_of_bits() {
    for (minor, code, flags, gone, absent) in [
        (0, 0x40, 2, [0x40, 1], [0x42, 1]),
        (1, 0x40, 2, [0x40, 1], [0x42, 1]),
        (0, 0x04, 0x40, [0x04, 0x80], [0x24, 0x80]),
    ] {
        let bytes = datagram(minor, code, flags, URL);
        let clear = HtcpRequest::read(&bytes).expect("CLR");
        assert!(clear.wants_answer);
        for (was_there, [code, flags]) in [(true, gone), (false, absent)] {
            let expected = [0, 14, 0, minor, 0, 8, code, flags, 0, 0, 0, 7, 0, 2];
            assert_eq!(clear.answer(was_there), expected.to_vec());
        }
    }
}

#[test]
fn other_operations_responses_and_versions_are_distinguished() {
    for (minor, code, flags, error) in [
        (0, 0x20, 0, Error::Other),
        (0, 0x02, 0, Error::Other),
        (1, 0x01, 0, Error::Other),
        (0, 0x40, 1, Error::Other),
        (0, 0x04, 0x80, Error::Other),
        (1, 0x04, 0, Error::Other),
        (2, 0x40, 0, Error::Version),
    ] {
        let bytes = datagram(minor, code, flags, URL);
        assert_eq!(HtcpRequest::read(&bytes), Err(error), "{minor} {code:x} {flags:x}");
    }
}

#[test]
fn lengths_that_do_not_fit_are_malformed() {
    let whole = datagram(0, 4, 0, URL);
    for len in 0..whole.len() {
        assert_eq!(HtcpRequest::read(&whole[..len]), Err(Error::Malformed), "{len}");
    }
    // The lengths: of all, of the data, of method, URL, version and fields, of AUTH.
    for at in [1, 5, 15, 21, 50, 60, whole.len() - 1] {
        for change in [1, 255] {
            let mut bytes = whole.clone();
            bytes[at] = bytes[at].wrapping_add(change);
            assert_eq!(HtcpRequest::read(&bytes), Err(Error::Malformed), "{at} {change}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..80)) {
        crate::fuzz::htcp_datagram(&data);
    }

    #[test]
    fn nearly_whole_datagrams_are_read_or_refused(at in 0..70usize, byte in any::<u8>()) {
        let mut bytes = datagram(0, 4, 0, URL);
        if let Some(slot) = bytes.get_mut(at) {
            *slot = byte;
        }
        crate::fuzz::htcp_datagram(&bytes);
    }
}

#[test]
fn sent_datagrams_are_read_and_responses_are_distinguished() {
    let datagram = clear(b"http://example.org/a", 77).expect("it fits");
    let read = HtcpRequest::read(&datagram).expect("a clear");
    assert_eq!((read.method, read.url), (&b"GET"[..], &b"http://example.org/a"[..]));
    assert!(read.wants_answer);
    assert_eq!(cleared(&read.answer(true)), Some((77, true)));
    assert_eq!(cleared(&read.answer(false)), Some((77, true)), "it was not there");
    // Squid's order of bits is read as well.
    let squids = HtcpRequest { bits: Bits::Squid, minor: 0, ..read };
    assert_eq!(cleared(&squids.answer(true)), Some((77, true)));
    let mut refused = read.answer(true);
    refused[6] |= 1;
    assert_eq!(cleared(&refused), Some((77, false)), "1: it has kept it");
    assert_eq!(cleared(&datagram), None, "a question is no answer");
    assert_eq!(cleared(b""), None);
    assert!(clear(&[b'a'; 70_000], 1).is_none());
}

proptest::proptest! {
    #[test]
    fn any_datagram_is_an_answer_or_none(bytes in proptest::collection::vec(0u8..=255, 0..40)) {
        _ = cleared(&bytes);
        let whole = [&[0, 2 + bytes.len() as u8], &bytes[..]].concat();
        _ = cleared(&whole);
        crate::fuzz::htcp_datagram(&whole);
    }
}

/// A TST in Squid's form, in either order of bits.
fn test(minor: u8, code: u8, flags: u8, url: &str, fields: &str) -> Vec<u8> {
    let counted = |text: &str| {
        let len = u16::try_from(text.len()).expect("short");
        [&len.to_be_bytes()[..], text.as_bytes()].concat()
    };
    let specifier = [counted("GET"), counted(url), counted("1/1"), counted(fields)].concat();
    let data_len = u16::try_from(8 + specifier.len()).expect("short");
    let (len, data) = ((4 + data_len + 2).to_be_bytes(), data_len.to_be_bytes());
    [&len[..], &[0, minor], &data, &[code, flags, 0, 0, 0, 7], &specifier, &[0, 2]].concat()
}

#[test]
fn a_test_has_fields_and_is_answered_with_details_or_without() {
    for (minor, code, flags, answers) in
        [(1, 0x10, 2, [[0x10, 1], [0x11, 1]]), (0, 0x01, 0x40, [[0x01, 0x80], [0x11, 0x80]])]
    {
        let bytes = test(minor, code, flags, URL, "Accept: */*\r\n");
        let question = HtcpRequest::read(&bytes).expect("TST");
        assert_eq!(question.operation, Operation::Test);
        assert_eq!((question.url, question.fields), (URL.as_bytes(), &b"Accept: */*\r\n"[..]));
        let [[code, flags], [lacks, _]] = answers;
        let is_there = [&[0, 20, 0, minor, 0, 14, code, flags, 0, 0, 0, 7][..], &[0; 6], &[0, 2]];
        assert_eq!(question.answer(true), is_there.concat());
        let is_not = [&[0, 16, 0, minor, 0, 10, lacks, flags, 0, 0, 0, 7][..], &[0; 2], &[0, 2]];
        assert_eq!(question.answer(false), is_not.concat());
        for len in 0..bytes.len() {
            assert_eq!(HtcpRequest::read(&bytes[..len]), Err(Error::Malformed), "{len}");
        }
    }
}

/// The response of Squid 5.7 if it has the object.
const SQUIDS_YES: &[u8] = b"\0\x72\0\x01\0\x6c\x10\x01\0\0\0\x4d\0\x08Age: 2\r\n\0\x56\
    Expires: Sat, 28 Nov 2026 08:42:58 GMT\r\nLast-Modified: Sat, 28 Nov 2026 08:32:58 GMT\r\n\
    \0\0\0\x02";
/// Its response if it has not.
const SQUIDS_NO: &[u8] = b"\0\x14\0\x01\0\x0e\x11\x01\0\0\0\x4d\0\0\0\0\0\0\0\x02";

#[test]
fn responses_to_a_test_are_hits_or_misses() {
    assert_eq!(tested(SQUIDS_YES), Some((77, true)));
    assert_eq!(tested(SQUIDS_NO), Some((77, false)));
    // A response about the whole message: it is rejected, or not understood.
    let mut refused = SQUIDS_YES.to_vec();
    refused[7] |= 2;
    assert_eq!(tested(&refused), Some((77, false)));
    assert_eq!(cleared(SQUIDS_YES), None, "another operation");
    for len in 0..SQUIDS_NO.len() {
        assert_eq!(tested(&SQUIDS_NO[..len]), None, "{len}");
    }
    let datagram = super::test(b"GET", URL.as_bytes(), b"Accept: */*\r\n", 9).expect("it fits");
    assert_eq!(tested(&datagram), None, "a question is no answer");
    assert_eq!(super::test(b"GET", &[b'a'; 9000], b"", 9), None, "Squid would not read it");
}

proptest! {
    #[test]
    fn a_test_is_read_as_it_was_written_and_answered_in_either_order_of_bits(
        url in "http://[a-z]{1,9}/[a-z?=]{0,40}",
        fields in "([A-Z][a-z]{0,9}: [ -~]{0,20}\r\n){0,5}",
        transaction: u32,
        has: bool,
    ) {
        let datagram = super::test(b"GET", url.as_bytes(), fields.as_bytes(), transaction);
        let datagram = datagram.expect("it fits");
        let read = HtcpRequest::read(&datagram).expect("a test");
        prop_assert_eq!(read.operation, Operation::Test);
        prop_assert_eq!((read.method, read.url), (&b"GET"[..], url.as_bytes()));
        prop_assert_eq!((read.fields, read.transaction), (fields.as_bytes(), transaction));
        prop_assert!(read.wants_answer);
        prop_assert_eq!(tested(&read.answer(has)), Some((transaction, has)));
        let squids = HtcpRequest { bits: Bits::Squid, minor: 0, ..read };
        prop_assert_eq!(tested(&squids.answer(has)), Some((transaction, has)));
    }
}
