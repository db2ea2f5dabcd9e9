//! Variables of VCL in tables, one file for each message: name, type, subroutines that may read,
//! set and unset it, and functions that do. The checker and the reference page read the tables; no
//! function here checks the subroutine.

mod backend;
mod client;
mod key;
mod names;
mod object;
mod params;
mod response;
mod session;
#[cfg(test)]
mod tests;
mod var;

pub use key::KEY_MARK;
pub(crate) use key::digest;
pub use names::{HeaderVar, StorageFact, StorageVar, header, nearest_header, storage};
pub use response::add_to_body;
pub use var::{StringGetter, Var, VariableGetter, VariableSetter, VariableUnsetter};

/// Result of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// The variable.
    Found(&'static Var),
    /// The variable exists only in other versions: from the first to the second.
    OtherVersion(u32, u32),
    /// No variable has this name; the nearest name, if one is near.
    Unknown(Option<&'static str>),
}

/// The variable `name` in VCL `version` (40 or 41).
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

/// All variables, in the manual's order.
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
