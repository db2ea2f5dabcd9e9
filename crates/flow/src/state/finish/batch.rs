//! Record batch: collected records, and the fields whose values they contain.

use std::borrow::Cow;

use message::trace_context::FIELD;
use message::{HeaderBlock, HeaderId};
use observe::record::{SENT, USER};

/// The number and end of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TransactionEnd {
    pub(crate) id: u64,
    pub(crate) end_us: u64,
}

#[derive(Debug, Default)]
pub(crate) struct RecordBatch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: u32,
    /// A buffer for the text about a program.
    pub(crate) room: Vec<u8>,
}

/// A field, by its fastest access.
#[derive(Debug)]
pub(crate) enum Name {
    Known(HeaderId),
    Other(Box<[u8]>),
    /// The `traceparent` of the request; two such fields count as none.
    Brought,
    /// The `traceparent` sent to the origin.
    Sent,
    /// The authenticated user.
    User,
}

impl Name {
    pub(crate) fn of(name: &str) -> Self {
        match HeaderId::of(name.as_bytes()) {
            HeaderId::Other if name == SENT => Self::Sent,
            HeaderId::Other if name == USER => Self::User,
            HeaderId::Other if name.as_bytes() == FIELD => Self::Brought,
            HeaderId::Other => Self::Other(name.as_bytes().into()),
            known => Self::Known(known),
        }
    }

    pub(crate) fn value<'a>(&self, headers: &'a HeaderBlock) -> Option<Cow<'a, [u8]>> {
        let value = match self {
            Self::Known(id) => headers.value(*id),
            Self::Other(name) => headers.value_named(name),
            Self::Brought => {
                let mut values = headers.values_named(FIELD);
                values.next().filter(|_| values.next().is_none())
            }
            Self::Sent => None,
            Self::User => {
                let credentials = headers.value(HeaderId::Authorization)?;
                return observe::basic_user(credentials).map(Cow::Owned);
            }
        };
        value.map(Cow::Borrowed)
    }
}
