//! The variables: name, type, where each may be read, set and unset, and how.
//!
//! The checker reads the table, the reference page is made from it. Each message has its own file.
//! Nothing here knows which subroutine runs: where a variable may be used is the table's to say and
//! the checker's to hold.

mod backend;
mod client;
mod names;
mod object;
mod params;
mod response;
mod session;
#[cfg(test)]
mod tests;

pub use names::{HeaderVar, StorageFact, StorageVar, header, nearest_header, storage};
pub use response::add_to_body;

use base::key_fields;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::ctx::Ctx;
use crate::sub::Subs;
use crate::types::Type;
use crate::value::{Failure, Value};

/// Reads a variable.
pub type Get = fn(&Ctx<'_>) -> Value;
/// Reads a string where it lies.
pub type Borrow = for<'c> fn(&'c Ctx<'_>) -> Option<&'c [u8]>;
/// Sets a variable.
pub type Set = fn(&mut Ctx<'_>, Value) -> Result<(), Failure>;
/// Unsets a variable.
pub type Remove = fn(&mut Ctx<'_>);

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
    pub get: Get,
    /// Of a string that lies in a message: its bytes, which spares the copy that `get` makes.
    pub borrow: Option<Borrow>,
    /// Sets it; for a type that is not a string the value has been converted already. Strings that
    /// are set come as one string.
    pub set: Option<Set>,
    /// Unsets it.
    pub remove: Option<Remove>,
}

impl Var {
    /// One that can be read.
    const fn read(
        name: &'static str,
        kind: Type,
        read: Subs,
        get: Get,
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
    const fn text(
        name: &'static str,
        read: Subs,
        get: Get,
        borrow: Borrow,
        about: &'static str,
    ) -> Self {
        let mut var = Self::read(name, Type::String, read, get, about);
        var.borrow = Some(borrow);
        var
    }

    /// It can be set, too.
    const fn set(mut self, write: Subs, set: Set) -> Self {
        self.write = write;
        self.set = Some(set);
        self
    }

    /// It can be unset, too.
    const fn unset(mut self, unset: Subs, remove: Remove) -> Self {
        self.unset = unset;
        self.remove = Some(remove);
        self
    }

    /// VCL 4.1 has it no longer.
    const fn until_40(mut self) -> Self {
        self.until = 40;
        self
    }

    /// VCL 4.0 does not have it yet.
    const fn since_41(mut self) -> Self {
        self.since = 41;
        self
    }
}

/// A string variable of a message: the getter is made of the borrowing one.
macro_rules! text {
    ($name:literal, $read:expr, $borrow:expr, $about:expr $(,)?) => {
        $crate::vars::Var::text(
            $name,
            $read,
            |ctx| {
                let borrow: $crate::vars::Borrow = $borrow;
                $crate::vars::string(borrow(ctx))
            },
            $borrow,
            $about,
        )
    };
}
use text;

/// A string value with these bytes.
fn string(bytes: Option<&[u8]>) -> Value {
    Value::String(bytes.map(Bytes::copy_from_slice))
}

/// The number of a transaction.
fn number(n: u64) -> Value {
    Value::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

/// A parameter's value in its base unit; 0 where the world has none.
fn param(ctx: &Ctx<'_>, name: &str) -> f64 {
    ctx.world.param(name).unwrap_or_default()
}

/// The first field of every key that a program makes: it keeps them apart from all others. What
/// `hash_data` is given follows.
pub const KEY_MARK: &[u8] = b"vcl";

/// The SHA-256 of what `hash_data` was given, as Varnish has it: each string with a zero byte after
/// it.
pub(crate) fn digest(key: &[u8]) -> Bytes {
    let mut sum = Sha256::new();
    // The mark is ours.
    for field in key_fields(key).skip(1) {
        sum.update(field);
        sum.update([0]);
    }
    Bytes::copy_from_slice(&sum.finalize())
}

/// The failure of a setter that has nothing to set. The checker lets no program come to that.
fn missing(what: &str) -> Failure {
    Failure::new(format!("{what} cannot be used here"))
}

/// The result of looking a name up.
#[derive(Debug)]
pub enum Lookup {
    /// The variable.
    Found(&'static Var),
    /// There is one of that name, in other versions: from the first to the second.
    OtherVersion(u32, u32),
    /// No such variable; the one whose name is nearest, if one is near.
    Unknown(Option<&'static str>),
}

/// The variable `name` of VCL `version` (40 or 41).
pub fn find(name: &str, version: u32) -> Lookup {
    let mut other = None;
    for var in all().filter(|var| var.name.eq_ignore_ascii_case(name)) {
        if (var.since..=var.until).contains(&version) {
            return Lookup::Found(var);
        }
        other = Some((var.since, var.until));
    }
    match other {
        Some((since, until)) => Lookup::OtherVersion(since, until),
        None => Lookup::Unknown(names::nearest(name, all().map(|var| var.name))),
    }
}

/// All variables in the order of the manual.
pub fn all() -> impl Iterator<Item = &'static Var> {
    const TABLES: [&[Var]; 11] = [
        session::CONNECTION,
        client::REQ,
        client::REQ_TOP,
        backend::BEREQ,
        response::BERESP,
        object::OBJ_STALE,
        object::OBJ,
        response::RESP,
        session::SPECIAL,
        session::SESS,
        params::PARAM,
    ];
    TABLES.into_iter().flatten()
}
