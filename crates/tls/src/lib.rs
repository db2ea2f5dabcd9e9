//! TLS: certificates, handshakes and sessions (rustls), without I/O: bytes in, bytes out.
//!
//! It must never touch a socket or a file: its callers pass received bytes, and send the output. A
//! certificate is never shown for a name that it does not cover, except the default.
//!
//! Begin with [`ServerContext`], which all handshakes share, [`Handshake`] and [`Session`]. For
//! connections to origins, begin with [`Upstream`].

mod auth;
mod certificate;
mod challenge;
mod choice;
mod error;
mod handshake;
mod handshake_explanations;
mod identity;
mod keyring;
mod ocsp;
mod pair;
mod provider;
mod roster;
mod server;
mod session;
mod tickets;
mod upstream;

pub use auth::{AuthMode, ClientAuth};
pub use challenge::Challenges;
pub use choice::Choice;
pub use error::{HandshakeError, MaterialError};
pub use handshake::Handshake;
pub use handshake_explanations::explained;
pub use identity::Identity;
pub use keyring::{NoTicketKeys, TicketKeys};
pub use ocsp::{Inquiry, Staple, StapleError};
pub use pair::CertificateKeyPair;
pub use roster::{Fingerprint, Roster};
pub use server::{Domain, DomainFinder, ServerContext};
pub use session::{Session, SessionTerms};
pub use upstream::{Upstream, UpstreamPeer};
