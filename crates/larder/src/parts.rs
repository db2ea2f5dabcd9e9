//! The parts of the program that the demo build leaves out: there, `left_out.rs` stands here.

use std::path::Path;

pub(crate) use manual::Shell;
pub(crate) use tools::{HistArgs, TopArgs, hist, top};

pub(crate) use crate::bench::{BenchArgs, run as bench};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Prints the completions for `shell`; a reader that has seen enough is no failure.
pub(crate) fn complete(command: &clap::Command, shell: Shell) -> Result<(), String> {
    crate::preset::print(&String::from_utf8_lossy(&manual::completions(command, shell)))
}

/// Writes the man pages and the shells' completions below `folder`.
pub(crate) fn manual(command: &clap::Command, date: &str, folder: &Path) -> Result<(), String> {
    manual::write(command, date, folder)
        .map_err(|error| format!("larder: {}: {error}", folder.display()))
}
