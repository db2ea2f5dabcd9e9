//! Classes of clients: the crawler, tool or browser that a User-Agent names, and the proof for it
//! by the client's address.
//!
//! It must never open a socket or a file: lists come as text, and what DNS says comes as a note in
//! [`AddressProofs`]. Finding a class allocates nothing and waits for nothing.
//!
//! Begin with [`CrawlerList`], the text of a list, and [`Crawlers`], which finds the class of a
//! request in it.

mod addresses;
mod crawlers;
mod list;
mod proofs;
mod robots;

pub use addresses::{AddressList, AddressListError};
pub use crawlers::Crawlers;
pub use list::{CrawlerList, ListError, ListFault};
pub use proofs::{AddressProofs, DnsVerdict};
