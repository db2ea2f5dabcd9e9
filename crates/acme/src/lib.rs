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

mod certificate_peers;
mod challenge_responder;
mod client;
mod order;
mod plan;
mod renewals;
mod report;
mod schedule;
mod shared_certificates;
mod staple;
mod storage;

pub use crate::certificate_peers::{
    CertificatePeers, ChallengeAnswer, OrderPermission, PendingFuture, SharedEntry,
};
pub use crate::challenge_responder::ChallengeResponder;
pub use crate::plan::{Authority, Binding, Bounds, CertificatePlan, Challenge};
pub use crate::renewals::run;
pub use crate::report::{Event, OrderFailure};
pub use crate::staple::{StapleBounds, StapleEvent, StapleFallback, StaplePlan, staple};
pub use crate::storage::Storage;
