//! Command of SSI, parsed. It is executed by `run::ssi`, never here.

use crate::address::{self, AddressRules};
use crate::fragment::Fragment;

use super::condition::SsiCondition;
use super::text::{Encoding, SsiText};

/// A command of SSI.
#[derive(Clone, Debug, PartialEq)]
pub struct Command(pub(crate) Kind);

/// Kind of command, with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Faulty: a message takes its place.
    Fault,
    Include {
        src: SsiText,
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
        value: SsiText,
    },
    Config {
        message: Option<Vec<u8>>,
        date: Option<Vec<u8>>,
    },
    /// A part of a conditional.
    Conditional(ConditionalPart),
    Block(Vec<u8>),
    EndBlock,
}

/// Parts of a conditional.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConditionalPart {
    If(SsiCondition),
    Elif(SsiCondition),
    Else,
    End,
    /// A part other than `if` that is faulty.
    Bad,
}

impl Kind {
    pub(super) const fn has_pattern(&self) -> bool {
        matches!(
            self,
            Self::Conditional(
                ConditionalPart::If(SsiCondition::Match { .. })
                    | ConditionalPart::Elif(SsiCondition::Match { .. })
            )
        )
    }

    /// Returns true if the command is faulty whatever the request.
    pub(super) const fn is_fault(&self) -> bool {
        matches!(self, Self::Fault | Self::Conditional(ConditionalPart::Bad))
    }

    fn memory(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::capacity);
        size_of::<Self>()
            + match self {
                Self::Include { src, set, stub, .. } => src.memory() + length(set) + length(stub),
                Self::Echo { name, default, .. } => name.capacity() + length(default),
                Self::Set { name, value } => name.capacity() + value.memory(),
                Self::Config { message, date } => length(message) + length(date),
                Self::Conditional(ConditionalPart::If(test) | ConditionalPart::Elif(test)) => {
                    test.memory()
                }
                Self::Block(name) => name.capacity(),
                _ => 0,
            }
    }
}

impl Kind {
    /// The fragment of an include whose address has no variables.
    pub(super) fn plain(&self) -> Option<Fragment> {
        let Self::Include { src, wait: false, set: None, stub: None } = self else { return None };
        let src = address::ssi(src.literal()?)?;
        Some(Fragment { src, rules: AddressRules::Ssi, ..Fragment::default() })
    }
}

impl Command {
    /// Bytes on the heap.
    pub(crate) fn memory(&self) -> usize {
        self.0.memory()
    }
}
