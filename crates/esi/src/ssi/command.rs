//! Commands.

use crate::address::{self, Rules};
use crate::fragment::Fragment;

use super::condition::Condition;
use super::text::{Encoding, Text};

/// A command of SSI.
#[derive(Clone, Debug, PartialEq)]
pub struct Command(pub(crate) Kind);

/// The command itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// It cannot be carried out: a message takes its place.
    Fault,
    Include {
        src: Text,
        wait: bool,
        set: Option<Vec<u8>>,
        stub: Option<Vec<u8>>,
    },
    Echo {
        name: Vec<u8>,
        default: Option<Vec<u8>>,
        encoding: Option<Encoding>,
    },
    Set {
        name: Vec<u8>,
        value: Text,
    },
    Config {
        message: Option<Vec<u8>>,
        date: Option<Vec<u8>>,
    },
    /// A part of a conditional.
    Switch(Switch),
    Block(Vec<u8>),
    EndBlock,
}

/// Parts of a conditional.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Switch {
    If(Condition),
    Elif(Condition),
    Else,
    End,
    /// Any but the first that cannot be carried out.
    Bad,
}

impl Kind {
    pub(super) const fn has_pattern(&self) -> bool {
        matches!(
            self,
            Self::Switch(
                Switch::If(Condition::Match { .. }) | Switch::Elif(Condition::Match { .. })
            )
        )
    }

    /// Tells whether it is at fault, whatever the request.
    pub(super) const fn is_fault(&self) -> bool {
        matches!(self, Self::Fault | Self::Switch(Switch::Bad))
    }

    fn memory(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::capacity);
        size_of::<Self>()
            + match self {
                Self::Include { src, set, stub, .. } => src.memory() + length(set) + length(stub),
                Self::Echo { name, default, .. } => name.capacity() + length(default),
                Self::Set { name, value } => name.capacity() + value.memory(),
                Self::Config { message, date } => length(message) + length(date),
                Self::Switch(Switch::If(test) | Switch::Elif(test)) => test.memory(),
                Self::Block(name) => name.capacity(),
                _ => 0,
            }
    }
}

impl Kind {
    /// The fragment of an include that is the same for every request.
    pub(super) fn plain(&self) -> Option<Fragment> {
        let Self::Include { src, wait: false, set: None, stub: None } = self else { return None };
        let src = address::ssi(src.literal()?)?;
        Some(Fragment { src, rules: Rules::Ssi, ..Fragment::default() })
    }
}

impl Command {
    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory()
    }
}
