//! TLS: certificates and what is made of them, and sessions as bytes in and bytes out.
//!
//! The one place that knows rustls. It never touches a socket or a file: whoever uses it hands over
//! what was read, and sends what comes out.

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
