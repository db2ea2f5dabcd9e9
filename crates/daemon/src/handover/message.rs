//! Messages of a handover, and their bytes.

use super::fields::{FieldWriter, Fields};

/// The introduction of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Introduction {
    /// Its process id.
    pub(crate) pid: u32,
    /// Its version.
    pub(crate) version: String,
}

/// The disk cache of the old process, which the new one opens later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskOffer {
    /// The folders of its volumes.
    pub(crate) volumes: Vec<String>,
    /// The number that its hashes of keys begin with.
    pub(crate) seed: u64,
}

/// The offer of the old process. Its descriptors follow, each in a message of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) from: Introduction,
    /// The secrets of session tickets.
    pub(crate) ticket_keys: Vec<u8>,
    /// `None` without a disk cache.
    pub(crate) disk: Option<DiskOffer>,
}

/// The purpose of descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Listeners for clients, by the address in the configuration: one for each core.
    Listener,
    /// A socket of the service manager, by its name.
    Given,
    /// A port for operators and their tools, by its name and address.
    Port,
    /// The admin socket.
    AdminSocket,
    /// The lock of the log ring in this folder.
    RingLock,
    /// The connection to the keeper.
    Keeper,
    /// A purpose that this version does not know.
    Unknown,
}

impl Role {
    const NUMBERED: [(u64, Self); 6] = [
        (1, Self::Listener),
        (2, Self::Given),
        (3, Self::Port),
        (4, Self::AdminSocket),
        (5, Self::RingLock),
        (6, Self::Keeper),
    ];

    fn number(self) -> u64 {
        let found = Self::NUMBERED.into_iter().find(|(_, own)| *own == self);
        found.map_or(0, |(number, _)| number)
    }

    fn of(number: u64) -> Self {
        let found = Self::NUMBERED.into_iter().find(|(own, _)| *own == number);
        found.map_or(Self::Unknown, |(_, role)| role)
    }
}

/// The announcement of descriptors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SocketOffer {
    pub(crate) role: Role,
    pub(crate) name: String,
    /// The number of descriptors that the message carries.
    pub(crate) count: usize,
    /// They belong to those of the message before.
    pub(crate) is_more: bool,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HandoverMessage {
    /// From the old process: what it has.
    Offer(Offer),
    /// From the old process: descriptors.
    Sockets(SocketOffer),
    /// From the old process: there are no more descriptors.
    Offered,
    /// From the new process: it could serve now.
    Ready(Introduction),
    /// From the new process: it cannot serve, for this reason.
    Failed(String),
    /// From the old process: it has released what only one process may have.
    Begin,
    /// From the new process: it accepts connections.
    Serving,
    /// An invalidation, with a number for the answer.
    Purge { number: u64, record: Vec<u8> },
    /// The answer: the invalidation is in force, apart from a failure.
    Purged { number: u64, failure: String },
    /// A message of a later version.
    Unknown,
}

impl HandoverMessage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let introduced = |kind, of: &Introduction| {
            FieldWriter::new(kind).number(1, of.pid.into()).text(2, &of.version)
        };
        let fields = match self {
            Self::Offer(Offer { from, ticket_keys, disk }) => {
                let mut fields = introduced(1, from).bytes(3, ticket_keys);
                if let Some(disk) = disk {
                    fields = fields.number(4, disk.seed);
                    for volume in &disk.volumes {
                        fields = fields.text(5, volume);
                    }
                }
                fields
            }
            Self::Sockets(SocketOffer { role, name, count, is_more }) => FieldWriter::new(2)
                .number(1, role.number())
                .text(2, name)
                .number(3, *count as u64)
                .number(4, u64::from(*is_more)),
            Self::Offered => FieldWriter::new(3),
            Self::Ready(from) => introduced(4, from),
            Self::Failed(why) => FieldWriter::new(5).text(1, why),
            Self::Begin => FieldWriter::new(6),
            Self::Serving => FieldWriter::new(7),
            Self::Purge { number, record } => {
                FieldWriter::new(8).number(1, *number).bytes(2, record)
            }
            Self::Purged { number, failure } => {
                FieldWriter::new(9).number(1, *number).text(2, failure)
            }
            Self::Unknown => FieldWriter::new(0),
        };
        fields.into_bytes()
    }

    /// The message in `bytes`; `None` if they are no message.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let fields = Fields::read(rest)?;
        let introduction = || Introduction {
            pid: u32::try_from(fields.number(1)).unwrap_or(0),
            version: fields.text(2),
        };
        let number = fields.number(1);
        Some(match kind {
            1 => {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                let volumes: Vec<_> = fields.all(5).map(text).collect();
                let disk = DiskOffer { volumes, seed: fields.number(4) };
                let disk = (!disk.volumes.is_empty()).then_some(disk);
                let ticket_keys = fields.bytes(3).to_vec();
                Self::Offer(Offer { from: introduction(), ticket_keys, disk })
            }
            2 => Self::Sockets(SocketOffer {
                role: Role::of(number),
                name: fields.text(2),
                count: usize::try_from(fields.number(3)).unwrap_or(usize::MAX),
                is_more: fields.number(4) > 0,
            }),
            3 => Self::Offered,
            4 => Self::Ready(introduction()),
            5 => Self::Failed(fields.text(1)),
            6 => Self::Begin,
            7 => Self::Serving,
            8 => Self::Purge { number, record: fields.bytes(2).to_vec() },
            9 => Self::Purged { number, failure: fields.text(2) },
            _ => Self::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = HandoverMessage> {
        let introduction =
            (any::<u32>(), ".{0,20}").prop_map(|(pid, version)| Introduction { pid, version });
        let bytes = proptest::collection::vec(any::<u8>(), 0..50);
        let disk = proptest::option::of(
            (proptest::collection::vec(".{0,20}", 1..4), any::<u64>())
                .prop_map(|(volumes, seed)| DiskOffer { volumes, seed }),
        );
        let offer = (introduction.clone(), bytes.clone(), disk).prop_map(|(from, keys, disk)| {
            HandoverMessage::Offer(Offer { from, ticket_keys: keys, disk })
        });
        let role = proptest::sample::select(Role::NUMBERED.map(|(_, role)| role).to_vec());
        let sockets = (role, ".{0,20}", 0..300_usize, any::<bool>()).prop_map(
            |(role, name, count, is_more)| {
                HandoverMessage::Sockets(SocketOffer { role, name, count, is_more })
            },
        );
        prop_oneof![
            offer,
            sockets,
            Just(HandoverMessage::Offered),
            introduction.prop_map(HandoverMessage::Ready),
            ".{0,50}".prop_map(HandoverMessage::Failed),
            Just(HandoverMessage::Begin),
            Just(HandoverMessage::Serving),
            (any::<u64>(), bytes)
                .prop_map(|(number, record)| HandoverMessage::Purge { number, record }),
            (any::<u64>(), ".{0,50}")
                .prop_map(|(number, failure)| HandoverMessage::Purged { number, failure }),
        ]
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written_with_fields_of_later_versions(
            message in messages(),
            later in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut bytes = message.encode();
            prop_assert_eq!(HandoverMessage::decode(&bytes), Some(message.clone()));
            bytes.push(200);
            bytes.extend_from_slice(&(later.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&later);
            prop_assert_eq!(HandoverMessage::decode(&bytes), Some(message));
            bytes.pop();
            prop_assert!(later.is_empty() || HandoverMessage::decode(&bytes).is_none());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(message) = HandoverMessage::decode(&bytes) {
                prop_assert_eq!(HandoverMessage::decode(&message.encode()), Some(message));
            }
        }
    }

    #[test]
    fn kinds_and_purposes_of_later_versions_are_skipped() {
        assert_eq!(HandoverMessage::decode(&[99]), Some(HandoverMessage::Unknown));
        let later = FieldWriter::new(2).number(1, 99).text(2, "udp").number(3, 1).into_bytes();
        let Some(HandoverMessage::Sockets(offer)) = HandoverMessage::decode(&later) else {
            panic!("sockets")
        };
        assert_eq!((offer.role, offer.count), (Role::Unknown, 1));
    }
}
