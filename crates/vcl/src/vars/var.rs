//! A variable as the table has it, and what the getters and setters of several messages share.

use bytes::Bytes;

use crate::failure::ProgramFailure;
use crate::state::ctx::Ctx;
use crate::state::value::Value;
use crate::sub::Subs;
use crate::types::Type;

/// Reads a variable.
pub type VariableGetter = fn(&Ctx<'_>) -> Value;
/// Reads a string where it lies.
pub type StringGetter = for<'c> fn(&'c Ctx<'_>) -> Option<&'c [u8]>;
/// Sets a variable.
pub type VariableSetter = fn(&mut Ctx<'_>, Value) -> Result<(), ProgramFailure>;
/// Unsets a variable.
pub type VariableUnsetter = fn(&mut Ctx<'_>);

/// A variable. Headers (`req.http.*`) and storages (`storage.<name>.*`) are not in the table: there
/// are as many as there are names.
#[derive(Debug)]
pub struct Var {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// Its description.
    pub about: &'static str,
    /// The first version of VCL that has it: 40 or 41.
    pub since: u32,
    /// The last version that has it.
    pub until: u32,
    /// Where it may be read.
    pub read: Subs,
    /// Where it may be set.
    pub write: Subs,
    /// Where it may be unset.
    pub unset: Subs,
    /// Reads it.
    pub get: VariableGetter,
    /// Of a string that lies in a message: its bytes, which spares the copy that `get` makes.
    pub borrow: Option<StringGetter>,
    /// Sets it; for a type that is not a string the value has been converted already. Strings that
    /// are set come as one string.
    pub set: Option<VariableSetter>,
    /// Unsets it.
    pub remove: Option<VariableUnsetter>,
}

impl Var {
    /// One that can be read.
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

    /// A string that lies somewhere.
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

    /// It can be set, too.
    pub(super) const fn set(mut self, write: Subs, set: VariableSetter) -> Self {
        self.write = write;
        self.set = Some(set);
        self
    }

    /// It can be unset, too.
    pub(super) const fn unset(mut self, unset: Subs, remove: VariableUnsetter) -> Self {
        self.unset = unset;
        self.remove = Some(remove);
        self
    }

    /// VCL 4.1 has it no longer.
    pub(super) const fn until_40(mut self) -> Self {
        self.until = 40;
        self
    }

    /// VCL 4.0 does not have it yet.
    pub(super) const fn since_41(mut self) -> Self {
        self.since = 41;
        self
    }
}

/// A string variable of a message: the getter is made of the borrowing one.
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

/// A parameter's value in its base unit; 0 where the world has none.
pub(super) fn param(ctx: &Ctx<'_>, name: &str) -> f64 {
    ctx.world.param(name).unwrap_or_default()
}

/// The failure of a setter that has nothing to set. The checker lets no program come to that.
pub(super) fn missing(what: &str) -> ProgramFailure {
    ProgramFailure::new(format!("{what} cannot be used here"))
}
