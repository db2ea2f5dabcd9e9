//! The gates of sites, and the memory of who was let in.

pub(crate) mod check;
mod gate_cache;
mod gates;
mod memory;
pub(crate) mod parked_request;
mod queue;
mod site_admission;
mod user;
mod verified_passwords;

pub(crate) use self::gate_cache::{ForwardAuthFields, GateAdmission, Proof};
pub use self::gates::Gates;
pub(crate) use self::gates::{
    ClientIdentity, ForwardAuthGate, PasswordGate, RouteGates, digest_of,
};
pub(crate) use self::memory::GateMemory;
pub(crate) use self::queue::NoPlace;
pub(crate) use self::site_admission::SiteAdmission;
pub(crate) use self::user::User;
pub(crate) use self::verified_passwords::RightPasswords;
