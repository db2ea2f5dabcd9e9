//! The variables: name, type, where each may be read, set and unset, and how.
//!
//! The checker reads the table, the reference page is made from it.

use crate::ctx::Ctx;
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};

/// A variable. Headers (`req.http.*`) and storages (`storage.<name>.*`) are not in the table: there
/// are as many as there are names.
#[derive(Debug)]
pub struct Var {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Type,
    /// What it is.
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
    pub get: fn(&Ctx<'_>) -> Value,
    /// Sets it; for a type that is not a string the value has been converted already. Strings that
    /// are set come as one string.
    pub set: Option<fn(&mut Ctx<'_>, Value) -> Result<(), Failure>>,
    /// Unsets it.
    pub remove: Option<fn(&mut Ctx<'_>)>,
}
