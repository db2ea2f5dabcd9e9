//! Certificates from an authority that speaks ACME (RFC 8555): Let's Encrypt and its kin. And word
//! of authorities that certificates are good, for handshakes to show ([`staple()`], RFC 6960).
//!
//! [`run()`] sees to it that every name of a [`Plan`] has a certificate in the plan's storage, and
//! a newer one before that expires. Whoever serves takes the files from there
//! ([`Storage::certificate`]) and answers the authority's questions ([`Answers`]). Where several
//! daemons serve the same names, one orders for all ([`Commons`]).
//!
//! It never serves, never touches what is in use, and deletes nothing: a file it cannot read is put
//! aside. It runs beside the cores, never on one.

mod answers;
mod client;
mod commons;
mod order;
mod plan;
mod report;
mod run;
mod schedule;
mod share;
mod staple;
mod storage;

pub use crate::answers::Answers;
pub use crate::commons::{Common, Commons, Pending, Question, Turn};
pub use crate::plan::{Authority, Binding, Bounds, Challenge, Plan};
pub use crate::report::{Event, Failure};
pub use crate::run::run;
pub use crate::staple::{Shown, StapleBounds, StapleEvent, Stapling, staple};
pub use crate::storage::Storage;
