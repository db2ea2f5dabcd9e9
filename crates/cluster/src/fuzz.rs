//! The entry points of the fuzz targets.

use crate::entry::{ENTRY_BYTES, ENTRY_INVALIDATIONS, Entry, EntryId};
use crate::members::{CARD_BYTES, Card, EntryAcknowledgement, is_name};
use crate::position::SavedPosition;
use crate::seal::{SealKeyring, UnsealedBytes};
use crate::secret_store::{ByteBounds, ReceiptOutcome, ReceivedSecret, Secret, SecretStore};

/// Decodes or rejects any bytes. A decoded entry must be within its limits, and survive encoding
/// and decoding without growth.
pub fn entry(data: &[u8]) {
    let identity = String::from_utf8_lossy(data);
    if let Some(id) = EntryId::read(&identity) {
        assert_eq!(EntryId::read(&id.to_string()), Some(id));
    }
    match Entry::decode(data) {
        Ok(read) => {
            assert!(data.len() <= ENTRY_BYTES && read.invalidations.len() <= ENTRY_INVALIDATIONS);
            let held: usize = read.invalidations.iter().map(Vec::len).sum();
            assert!(held + read.node.len() < data.len(), "it holds what came, and no more");
            let written = read.encode().expect("what was read is small enough to be written");
            assert!(written.len() <= data.len(), "numbers are written in their shortest form");
            assert_eq!(Entry::decode(&written), Ok(read));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Decodes or rejects any bytes as the card of a node. A decoded card must survive encoding and
/// decoding.
pub fn card(data: &[u8]) {
    // The subject's last part, and the message behind it.
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (name, bytes) = (String::from_utf8_lossy(&data[..at]), data.get(at + 1..));
    let bytes = bytes.unwrap_or_default();
    if let Some(read) = Card::decode(&name, bytes) {
        assert!(read.name == name && is_name(&name));
        assert!(read.version.len() <= CARD_BYTES, "it holds what came, and no more");
        let written = read.encode();
        // Unknown fields are dropped, and absent ones added.
        if written.len() <= CARD_BYTES {
            assert_eq!(Card::decode(&name, &written), Some(read));
        }
    }
}

/// Decodes or rejects any bytes. A decoded acknowledgement must survive encoding and decoding.
pub fn word(data: &[u8]) {
    if let Some(read) = EntryAcknowledgement::decode(data) {
        assert!(is_name(&read.name));
        assert_eq!(EntryAcknowledgement::decode(&read.encode()), Some(read));
    }
}

/// Decodes or rejects any bytes, also with a correct checksum. A decoded position must survive
/// encoding and decoding.
pub fn saved(data: &[u8]) {
    for bytes in [data.to_vec(), SavedPosition::summed(data.to_vec())] {
        if let Some(read) = SavedPosition::decode(&bytes) {
            let written = read.encode();
            assert!(written.len() <= bytes.len(), "numbers are written in their shortest form");
            assert_eq!(SavedPosition::decode(&written), Some(read));
        }
    }
}

/// Opens or rejects any bytes, as they are and sealed with the operator's secret. A decoded secret
/// must survive encoding and decoding, and the store must stay within its limits.
pub fn secret(data: &[u8]) {
    let operators: &[u8] = b"a secret that only this fuzz target has";
    let seal = SealKeyring::new([operators], "fuzz").expect("it is long enough");
    // The entry's name, and the message behind it.
    let at = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (name, bytes) = (String::from_utf8_lossy(&data[..at]), data.get(at + 1..));
    let (name, bytes) = (&*name, bytes.unwrap_or_default());
    assert!(seal.open(name, bytes).is_err(), "no other node has the secret");
    if let Some(read) = Secret::decode(bytes) {
        assert!(is_name(&read.node));
        let written = read.encode();
        assert!(written.len() <= bytes.len(), "numbers are written in their shortest form");
        assert_eq!(Secret::decode(&written), Some(read));
    }
    let sealed = seal.seal(name, 7, bytes).expect("random bytes");
    let opened = UnsealedBytes { version: 7, bytes: bytes.to_vec() };
    assert_eq!(seal.open(name, &sealed), Ok(opened));
    assert!(seal.open("another", &sealed).is_err() || name == "another");
    let bounds = ByteBounds { most: 4_096, large: "", large_most: 0 };
    let mut store = SecretStore::new("n1".to_owned(), 1, 2, bounds);
    for (revision, bytes) in [(1, bytes), (2, &sealed), (3, bytes), (4, &sealed)] {
        let came = ReceivedSecret { name, sealed_as: name, revision, bytes, now_ms: revision };
        let heard = store.receive(came, &seal);
        let taken = store.get(name).and_then(|slot| slot.accepted.clone());
        match heard {
            ReceiptOutcome::Accepted(secret) => assert_eq!(taken, Some(secret)),
            ReceiptOutcome::Known => assert!(taken.is_some()),
            ReceiptOutcome::Refused(why) => assert!(!why.is_empty()),
            ReceiptOutcome::TooMuch(_) => assert!(store.reached(name, bytes.len()).is_some()),
        }
        assert!(store.all().count() <= 2);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Level;
    use crate::position::{Epoch, Position, Stamp};

    type Target = fn(&[u8]);

    /// Valid bytes of each kind, so that similar ones are explored.
    fn written() -> [(Target, Vec<u8>); 5] {
        let id = EntryId { run: 0xabc, number: 7 };
        let (node, invalidations) = ("n1".to_owned(), vec![b"one".to_vec(), Vec::new()]);
        let stamp = Some(Stamp { id: Some(id), stored_ns: 5 });
        let position = Position { epoch: Epoch(3), sequence: 4, stamp };
        let own = Card { name: "n1".into(), run: 1, version: "1.0".into(), ..Card::default() };
        let entry_bytes = Entry { id, node, level: Level::All, invalidations }.encode();
        [
            (entry, entry_bytes.expect("small")),
            (card, [b"n1\0".to_vec(), own.encode()].concat()),
            (word, EntryAcknowledgement { name: "n1".into(), run: 1, number: 2 }.encode()),
            (saved, SavedPosition { position, doubted_unix_ms: 5 }.encode()[8..].to_vec()),
            (secret, [b"tickets\0".to_vec(), own_secret().encode()].concat()),
        ]
    }

    fn own_secret() -> Secret {
        Secret { node: "n1".into(), run: 1, number: 2, value: b"a key".to_vec() }
    }

    proptest! {
        #[test]
        fn bytes_near_valid_ones_are_handled(
            at: prop::sample::Index,
            bytes in prop::collection::vec(any::<u8>(), 0..12),
            is_over: bool,
        ) {
            for (target, mut data) in written() {
                let at = at.index(data.len());
                let end = if is_over { (at + bytes.len()).min(data.len()) } else { at };
                data.splice(at..end, bytes.iter().copied());
                target(&data);
                target(&bytes);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_at_all() {
        let [(_, entry), (_, card), (_, word), (_, saved), (_, secret)] = written();
        assert!(Entry::decode(&entry).is_ok() && Card::decode("n1", &card[3..]).is_some());
        assert!(
            EntryAcknowledgement::decode(&word).is_some()
                && SavedPosition::decode(&SavedPosition::summed(saved)).is_some()
        );
        assert_eq!(Secret::decode(&secret[b"tickets\0".len()..]), Some(own_secret()));
    }
}
