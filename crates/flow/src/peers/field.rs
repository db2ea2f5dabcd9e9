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
const VERSION: u64 = 3;

/// The facts of a node's question to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

impl PeerQuestion {
    pub(super) fn write(&self) -> String {
        let Self { applied, client, scheme, class } = self;
        let InvalidationPosition { epoch, sequence, stored_ns } = applied;
        let stored_ns = stored_ns.map_or_else(|| "-".to_owned(), |stored_ns| stored_ns.to_string());
        let scheme = if *scheme == Scheme::Https { "https" } else { "http" };
        let client = client.map_or_else(|| "-".to_owned(), |client| client.to_string());
        let class = class.map_or("-", ClientClass::word);
        format!("{VERSION} {epoch} {sequence} {stored_ns} {client} {scheme} {class}")
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
    let applied = InvalidationPosition { epoch, sequence, stored_ns };
    let is_all = version == VERSION && words.next().is_none();
    is_all.then_some(PeerQuestion { applied, client, scheme, class })
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
        let ai = Some(ClientClass::Ai);
        for (stored_ns, client, scheme, class, text) in [
            (None, None, Scheme::Http, None, "3 7 9 - - http -"),
            (Some(5), Some("192.0.2.1"), Scheme::Https, None, "3 7 9 5 192.0.2.1 https -"),
            (Some(0), Some("2001:db8::1"), Scheme::Http, ai, "3 7 9 0 2001:db8::1 http ai"),
        ] {
            let applied = InvalidationPosition { epoch: 7, sequence: 9, stored_ns };
            let client = client.map(|client| client.parse().expect("an address"));
            let question = PeerQuestion { applied, client, scheme, class };
            assert_eq!(question.write(), text);
            assert_eq!(read_question(text.as_bytes()), Some(question));
        }
        for wrong in [
            "",
            "3",
            "3 7 9 - - http - ",
            "3 7 9 - -  http -",
            // Without a class, as in version 2.
            "2 7 9 - - http",
            "3 7 9 - - http",
            "2 7 9 - - http -",
            "4 7 9 - - http -",
            "3 7 9 - - ftp -",
            "3 7 9 - - http bot",
            "3 -7 9 - - http -",
            "3 7 +9 - - http -",
            "3 7 9 +5 - http -",
            "3 7 9 x - http -",
            "3 7 9 - host http -",
            "3 7 18446744073709551616 - - http -",
            "3 7 9 - - http - x",
        ] {
            assert_eq!(read_question(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(read_question(b"3 7 9 - - http -\xff"), None);
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
