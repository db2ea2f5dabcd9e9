//! Classes of clients: the crawler, tool or browser that a User-Agent names, and the proof for it
//! by the client's address or by a signature of its request.
//!
//! It must never open a socket or a file: lists and keys come as text, and what DNS says comes as a
//! note in [`AddressProofs`]. Finding a class allocates nothing and waits for nothing, except for
//! requests that a trusted agent may have signed.
//!
//! Begin with [`CrawlerList`], the text of a list, and [`Crawlers`], which finds the class of a
//! request in it.

mod addresses;
mod crawlers;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod key_directory;
mod list;
mod proofs;
mod robots;
mod signature_base;
mod structured_text;
mod web_bot_auth;

pub use addresses::{AddressList, AddressListError};
pub use crawlers::Crawlers;
pub use key_directory::{KeyDirectory, KeyDirectoryError};
pub use list::{CrawlerList, ListError, ListFault};
pub use proofs::{AddressProofs, DnsVerdict};
pub use web_bot_auth::{
    FetchedKeys, OpenReason, SignatureContext, SignatureFault, SignatureVerdict, TrustedAgent,
};
