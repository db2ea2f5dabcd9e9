//! Files below a root: which file a path means, opened so that nothing outside the root is ever
//! read, with the head of the response made once per file.
//!
//! [`Root::look`] says what a path means; [`Table`] is one core's memory of that, as nginx's
//! `open_file_cache`. What a file is gets decided on its open descriptor, never on its name:
//! between a check and its use a name may come to mean something else.
//!
//! This crate must never follow a link out of the root and the directories that settings add to it,
//! open anything but a regular file for reading its content, say whether something hidden is there,
//! or wait for a disk unless it was told that it may ([`Depth::Full`]).

pub mod accel;
mod config;
mod hidden;
mod look;
mod open;
mod opened;
mod page_cache;
mod root;
mod table;
mod types;

#[cfg(test)]
mod folder;

pub use config::{CacheRule, Coding, Config, Neighbour, Selector, SelectorError};
pub use hidden::{APPLICATION, Hidden, HiddenError, SOURCES, is_dotted};
pub use look::{Look, Page};
pub use open::{Depth, WouldBlock};
pub use opened::Opened;
pub use page_cache::page_cache;
pub use root::Root;
pub use table::Table;
pub use types::{OCTETS, Types, TypesError};
