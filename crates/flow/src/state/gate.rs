//! The gates of sites, and the memory of who was let in.

pub(crate) mod check;
mod entering;
mod gates;
mod known;
mod memory;
pub(crate) mod parked;
mod queue;
mod right;
mod user;

pub(crate) use self::entering::Entering;
pub use self::gates::Gates;
pub(crate) use self::gates::{Guest, PasswordGate, RouteGates, WordGate, digest_of};
pub(crate) use self::known::{Admitted, Proof, Told};
pub(crate) use self::memory::GateMemory;
pub(crate) use self::queue::NoPlace;
pub(crate) use self::right::RightPasswords;
pub(crate) use self::user::User;
