//! The variables: name, type, where each may be read, set and unset, and how.
//!
//! The checker reads the table, the reference page is made from it. Each message has its own file.
//! Nothing here knows which subroutine runs: where a variable may be used is the table's to say and
//! the checker's to hold.

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
