//! Fields between nodes: `Larder-Peer`, and `Larder-Record` with a stored response.
//!
//! They are valid only on connections between nodes, and ignored on all others.

use std::net::IpAddr;

use base::Now;
use cache::Record;
use data_encoding::BASE64_NOPAD as BASE64;
use message::{ClientClass, Scheme};

use crate::state::peers::InvalidationPosition;

/// The field of a question, and of an answer without a response.
pub(super) const PEER: &[u8] = b"Larder-Peer";
/// The field that describes a stored response, whose content is the body.
pub(super) const RECORD: &[u8] = b"Larder-Record";
/// Longest record that is sent; the owner does not share a longer one.
pub(super) const RECORD_BYTES: usize = 12 << 10;

/// The version of these fields. A node answers no other.
const VERSION: u64 = 4;

/// The beginning of the word for what a VCL has added to the key.
const ADDED_KEY: &str = "vcl:";

/// The facts of a node's question to an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerQuestion {
    /// The node's position in the cluster's stream.
    pub applied: InvalidationPosition,
    /// The client; `None` if it has no address.
    pub client: Option<IpAddr>,
    /// The client's scheme.
    pub scheme: Scheme,
    /// The client's class; `None` if the site uses no classes. The owner could not find it anew: a
    /// signature is for the request as it was sent, and counts once.
    pub class: Option<ClientClass>,
    /// The fields that the VCL beside the site's settings has added to the key; `None` if it has
    /// not received the request. The owner could not find them anew: the request has changed.
    pub added_key: Option<Box<[u8]>>,
}

impl PeerQuestion {
    pub(super) fn write(&self) -> String {
        let Self { applied, client, scheme, class, added_key } = self;
        let InvalidationPosition { epoch, sequence, stored_ns } = applied;
        let stored_ns = stored_ns.map_or_else(|| "-".to_owned(), |stored_ns| stored_ns.to_string());
        let scheme = if *scheme == Scheme::Https { "https" } else { "http" };
        let client = client.map_or_else(|| "-".to_owned(), |client| client.to_string());
        let class = class.map_or("-", ClientClass::word);
        let added_key = added_key.as_ref();
        let added_key = added_key
            .map_or_else(|| "-".to_owned(), |key| format!("{ADDED_KEY}{}", BASE64.encode(key)));
        format!("{VERSION} {epoch} {sequence} {stored_ns} {client} {scheme} {class} {added_key}")
    }
}

/// Parses a question; `None` if it is malformed or of another version.
pub fn read_question(value: &[u8]) -> Option<PeerQuestion> {
    let mut words = str::from_utf8(value).ok()?.split(' ');
    let number = |word: &str| Some(word).filter(|word| !word.starts_with('+'))?.parse().ok();
    let mut next = || words.next().and_then(number);
    let [version, epoch, sequence] = [next()?, next()?, next()?];
    let stored_ns = match words.next()? {
        "-" => None,
        stored_ns => Some(number(stored_ns)?),
    };
    let client = match words.next()? {
        "-" => None,
        client => Some(client.parse().ok()?),
    };
    let scheme = match words.next()? {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let class = match words.next()? {
        "-" => None,
        class => Some(ClientClass::of_word(class)?),
    };
    let added_key = match words.next()? {
        "-" => None,
        key => Some(BASE64.decode(key.strip_prefix(ADDED_KEY)?.as_bytes()).ok()?.into()),
    };
    let applied = InvalidationPosition { epoch, sequence, stored_ns };
    let is_all = version == VERSION && words.next().is_none();
    is_all.then_some(PeerQuestion { applied, client, scheme, class, added_key })
}

/// A clock that two nodes share whatever theirs show: now is 1970.
fn relative(now: Now) -> Now {
    Now { unix_ms: 0, ..now }
}

/// The record as a field value; `None` if it is too long.
pub(super) fn write_record(record: &Record, now: Now) -> Option<String> {
    let mut bytes = Vec::new();
    record.encode(relative(now), &mut bytes);
    (bytes.len() <= RECORD_BYTES).then(|| BASE64.encode(&bytes))
}

/// Parses a record. `asked` is the time of the question: the record's age starts then.
pub(super) fn read_record(value: &[u8], asked: Now) -> Option<Record> {
    Record::decode(&BASE64.decode(value).ok()?, relative(asked))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn questions_are_written_and_read() {
        let (ai, key) = (Some(ClientClass::Ai), Some(&b"\x01a"[..]));
        for (stored_ns, client, scheme, class, added, text) in [
            (None, None, Scheme::Http, None, None, "4 7 9 - - http - -"),
            (
                Some(5),
                Some("192.0.2.1"),
                Scheme::Https,
                None,
                key,
                "4 7 9 5 192.0.2.1 https - vcl:AWE",
            ),
            (
                Some(0),
                Some("2001:db8::1"),
                Scheme::Http,
                ai,
                Some(&[][..]),
                "4 7 9 0 2001:db8::1 http ai vcl:",
            ),
        ] {
            let applied = InvalidationPosition { epoch: 7, sequence: 9, stored_ns };
            let client = client.map(|client| client.parse().expect("an address"));
            let added_key = added.map(Into::into);
            let question = PeerQuestion { applied, client, scheme, class, added_key };
            assert_eq!(question.write(), text);
            assert_eq!(read_question(text.as_bytes()), Some(question));
        }
        for wrong in [
            "",
            "4",
            "4 7 9 - - http - - ",
            "4 7 9 - -  http - -",
            // Without an added key, as in version 3.
            "3 7 9 - - http -",
            "4 7 9 - - http -",
            "3 7 9 - - http - -",
            "5 7 9 - - http - -",
            "4 7 9 - - ftp - -",
            "4 7 9 - - http bot -",
            "4 7 9 - - http - AWE",
            "4 7 9 - - http - vcl:A",
            "4 -7 9 - - http - -",
            "4 7 +9 - - http - -",
            "4 7 9 +5 - http - -",
            "4 7 9 x - http - -",
            "4 7 9 - host http - -",
            "4 7 18446744073709551616 - - http - -",
            "4 7 9 - - http - - x",
        ] {
            assert_eq!(read_question(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(read_question(b"4 7 9 - - http - -\xff"), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_is_a_question_or_none(
            bytes in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            if let Some(question) = read_question(&bytes) {
                prop_assert_eq!(read_question(question.write().as_bytes()), Some(question));
            }
            let now = Now { mono_ms: 5, unix_ms: 6 };
            prop_assert!(read_record(&bytes, now).is_none());
        }
    }
}
