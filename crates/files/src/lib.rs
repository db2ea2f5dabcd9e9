//! Files below a root: looks a path up, opens the file so that nothing outside the root is ever
//! read, and makes the head of its response once. Every decision about a file is made on its open
//! descriptor, since a name may change its meaning between check and use.
//!
//! This crate must never follow a link out of the root and the directories that settings add to it,
//! open anything but a regular file for reading, reveal the existence of a hidden file, or wait for
//! a disk without permission ([`Depth::Full`]).
//!
//! Begin with [`Root::look`], then [`OpenFileCache`], which is one core's cache of lookups (nginx's
//! `open_file_cache`), and `accel` for X-Accel-Redirect.

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
