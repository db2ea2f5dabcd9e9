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
mod hidden_names;
mod open_file;
mod open_file_cache;
mod page_cache;
mod path_lookup;
mod path_open;
mod root;
mod types;

#[cfg(test)]
mod folder;

pub use config::{CacheRule, Coding, Config, PrecompressedFile, Selector, SelectorError};
pub use hidden_names::{APPLICATION, HiddenError, HiddenNames, SOURCES, is_dotted};
pub use open_file::OpenFile;
pub use open_file_cache::OpenFileCache;
pub use page_cache::page_cache;
pub use path_lookup::{FileVariants, PathLookup};
pub use path_open::{Depth, WouldBlock};
pub use root::Root;
pub use types::{OCTETS, Types, TypesError};
