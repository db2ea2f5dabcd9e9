//! Gate state: the authentication checks of sites, and the cache of their grants.

pub(crate) mod check;
mod gate_cache;
mod gates;
mod memory;
pub(crate) mod parked_request;
mod queue;
mod site_admission;
mod user;
mod verified_passwords;

pub(crate) use self::gate_cache::{AuthGrant, AuthResult, ForwardAuthFields};
pub use self::gates::SiteAuthChecks;
pub(crate) use self::gates::{
    BasicAuthCheck, ClientIdentity, ForwardAuthCheck, RouteAuthChecks, digest_of,
};
pub(crate) use self::memory::AuthMemory;
pub(crate) use self::queue::QueueRefusal;
pub(crate) use self::site_admission::SiteAdmission;
pub(crate) use self::user::User;
pub(crate) use self::verified_passwords::VerifiedPasswords;
