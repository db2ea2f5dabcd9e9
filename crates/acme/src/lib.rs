//! Certificates from an ACME authority (RFC 8555) such as Let's Encrypt, OCSP staples (RFC 6960),
//! and other documents that are fetched beside the cores.
//!
//! It must never serve a connection, change a file in use, or delete one: a file that it cannot
//! read is set aside. It runs beside the cores, never on one.
//!
//! Begin with [`run()`], which gets and renews a certificate for every name of a
//! [`CertificatePlan`]; the listeners take the files ([`Storage::certificate`]) and answer the
//! challenges ([`ChallengeResponder`]). [`CertificatePeers`] is for several daemons with the same
//! names, and [`staple()`] fetches the staples. [`fetch_document`] is for other small documents,
//! and [`Webhook`] sends small messages.

mod certificate_peers;
mod challenge_responder;
mod client;
mod document;
mod order;
mod plan;
mod renewals;
mod report;
mod schedule;
mod shared_certificates;
mod staple;
mod storage;
mod webhook;

pub use crate::certificate_peers::{
    CertificatePeers, ChallengeAnswer, OrderPermission, PendingFuture, SharedEntry,
};
pub use crate::challenge_responder::ChallengeResponder;
pub use crate::document::{
    DocumentBounds, DocumentError, DocumentSource, RemoteDocument, fetch_document,
};
pub use crate::plan::{Authority, Binding, Bounds, CertificatePlan, Challenge};
pub use crate::renewals::run;
pub use crate::report::{Event, OrderFailure};
pub use crate::staple::{StapleBounds, StapleEvent, StapleFallback, StaplePlan, staple};
pub use crate::storage::Storage;
pub use crate::webhook::{Webhook, WebhookError};
