//! Variable as a row of a table, and helpers that getters and setters share.

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;

/// Reads a variable.
pub type VariableGetter = fn(&Ctx<'_>) -> Value;
/// Borrows a string.
pub type StringGetter = for<'c> fn(&'c Ctx<'_>) -> Option<&'c [u8]>;
/// Sets a variable.
pub type VariableSetter = fn(&mut Ctx<'_>, Value) -> Result<(), ProgramFailure>;
/// Unsets a variable.
pub type VariableUnsetter = fn(&mut Ctx<'_>);

/// A row of the table. Headers (`req.http.*`) and storages (`storage.<name>.*`) are not listed:
/// their names are free.
#[derive(Debug)]
pub struct Var {
    /// Name of the variable.
    pub name: &'static str,
    /// Type of the variable.
    pub kind: Type,
    /// Description.
    pub about: &'static str,
    /// First version of VCL with this variable: 40 or 41.
    pub since: u32,
    /// Last version of VCL with this variable.
    pub until: u32,
    /// Subroutines that may read it.
    pub read: Subs,
    /// Subroutines that may set it.
    pub write: Subs,
    /// Subroutines that may unset it.
    pub unset: Subs,
    /// Function that reads it.
    pub get: VariableGetter,
    /// Function that borrows a string from a message, without the copy of `get`.
    pub borrow: Option<StringGetter>,
    /// Function that sets it. Values of types other than STRING are already converted; strings are
    /// already concatenated.
    pub set: Option<VariableSetter>,
    /// Function that unsets it.
    pub remove: Option<VariableUnsetter>,
}

impl Var {
    /// A variable that can be read.
    pub(super) const fn read(
        name: &'static str,
        kind: Type,
        read: Subs,
        get: VariableGetter,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            about,
            since: 40,
            until: 41,
            read,
            write: Subs::NONE,
            unset: Subs::NONE,
            get,
            borrow: None,
            set: None,
            remove: None,
        }
    }

    /// A STRING that can be borrowed.
    pub(super) const fn text(
        name: &'static str,
        read: Subs,
        get: VariableGetter,
        borrow: StringGetter,
        about: &'static str,
    ) -> Self {
        let mut var = Self::read(name, Type::String, read, get, about);
        var.borrow = Some(borrow);
        var
    }

    /// The variable with a setter.
    pub(super) const fn set(mut self, write: Subs, set: VariableSetter) -> Self {
        self.write = write;
        self.set = Some(set);
        self
    }

    /// The variable with an unsetter.
    pub(super) const fn unset(mut self, unset: Subs, remove: VariableUnsetter) -> Self {
        self.unset = unset;
        self.remove = Some(remove);
        self
    }

    /// The variable, absent from VCL 4.1.
    pub(super) const fn until_40(mut self) -> Self {
        self.until = 40;
        self
    }

    /// The variable, absent from VCL 4.0.
    pub(super) const fn since_41(mut self) -> Self {
        self.since = 41;
        self
    }
}

/// A STRING variable of a message: one expression makes both getters.
macro_rules! text {
    ($name:literal, $read:expr, $borrow:expr, $about:expr $(,)?) => {
        $crate::vars::var::Var::text(
            $name,
            $read,
            |ctx| {
                let borrow: $crate::vars::var::StringGetter = $borrow;
                $crate::vars::var::string(borrow(ctx))
            },
            $borrow,
            $about,
        )
    };
}
pub(super) use text;

/// A string value with these bytes.
pub(super) fn string(bytes: Option<&[u8]>) -> Value {
    Value::String(bytes.map(Bytes::copy_from_slice))
}

/// The number of a transaction.
pub(super) fn number(n: u64) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Value of a parameter in its base unit; 0 if the environment does not know it.
pub(super) fn param(ctx: &Ctx<'_>, name: &str) -> f64 {
    ctx.environment.param(name).unwrap_or_default()
}

/// The failure of a setter without its message. The checker permits no such program.
pub(super) fn missing(what: &str) -> ProgramFailure {
    ProgramFailure::new(format!("{what} cannot be used here"))
}
