//! `larder disk export`: writes every record to files of its own.
//!
//! `index.jsonl` has a line for each record: its number, which names its files, `NUMBER.head` and
//! `NUMBER.body`; its hash; when it expires; its length; `whole`, false if a part of the body could
//! not be read; and the response's URL, status, fields and times. These are null, and `NUMBER.head`
//! is the raw head, if this version cannot parse the head.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base::clock::System;
use bytes::Bytes;
use disk::tools::{self, ExportedRecord};
use flow::tier::RecordView;
use serde_json::json;

use super::inspection::{clock, open};

/// Exports all records of the volumes at `paths` to files in `to`.
///
/// # Errors
/// A message for standard error.
pub(super) fn run(paths: &[PathBuf], to: &Path) -> Result<(), String> {
    // Before anything is written.
    let volumes: Vec<_> = paths.iter().map(|path| open(path)).collect::<Result<_, _>>()?;
    let failed = |error: io::Error| format!("larder: {}: {error}", to.display());
    let mut files = ExportFolder::new(to).map_err(failed)?;
    for vfs in &volumes {
        let mut fault = None;
        let volume = vfs.name();
        let brought = tools::export(vfs, &clock(), |record, body| {
            if fault.is_none() {
                fault = files.add(&volume, &record, body).err();
            }
        });
        let (_, missed) = brought.map_err(|error| format!("larder: {error}"))?;
        files.missed += missed;
        if let Some(error) = fault {
            return Err(failed(error));
        }
    }
    let ExportFolder { mut index, number, cut, missed, .. } = files;
    index.flush().map_err(failed)?;
    base::show!("{}: {number} records", to.display());
    match (cut, missed) {
        (0, 0) => Ok(()),
        (cut, missed) => Err(format!(
            "larder: {cut} of them are cut off where they are damaged, and {missed} more are \
             damaged from their beginning"
        )),
    }
}

/// The folder that is written to.
struct ExportFolder<'a> {
    to: &'a Path,
    index: BufWriter<File>,
    /// The number of records so far.
    number: u64,
    /// Records with a truncated body.
    cut: u64,
    /// Records that could not be read at all.
    missed: u64,
}

impl<'a> ExportFolder<'a> {
    fn new(to: &'a Path) -> io::Result<Self> {
        match DirBuilder::new().mode(0o700).create(to) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if std::fs::read_dir(to)?.next().is_some() {
                    return Err(io::Error::other("it is not empty"));
                }
            }
            made => made?,
        }
        let index = BufWriter::new(private(&to.join("index.jsonl"))?);
        Ok(Self { to, index, number: 0, cut: 0, missed: 0 })
    }

    fn add(
        &mut self,
        volume: &str,
        record: &ExportedRecord,
        body: &mut dyn FnMut() -> Option<Bytes>,
    ) -> io::Result<()> {
        let number = self.number;
        let shown = RecordView::of(&record.head, System.now());
        let head = shown.as_ref().map_or(&*record.head, |shown| &shown.head);
        private(&self.to.join(format!("{number}.head")))?.write_all(head)?;
        let mut file = private(&self.to.join(format!("{number}.body")))?;
        let mut written = 0;
        while let Some(piece) = body() {
            file.write_all(&piece)?;
            written += piece.len() as u64;
        }
        let whole = written == record.length;
        let expires_ms = Some(record.found.expires_ms).filter(|ms| *ms != u64::MAX);
        let line = json!({
            "number": number,
            "volume": volume,
            "hash": format!("{:016x}", record.found.hash),
            "expires_ms": expires_ms,
            "length": record.length,
            "whole": whole,
            "url": shown.as_ref().map(|shown| &shown.url),
            "status": shown.as_ref().map(|shown| shown.status),
            "fields": shown.as_ref().map(|shown| &shown.fields),
            "born_ms": shown.as_ref().map(|shown| shown.born_ms),
            "fresh_until_ms": shown.as_ref().map(|shown| shown.fresh_until_ms),
            "sliced": shown.as_ref().map(|shown| shown.is_sliced),
        });
        writeln!(self.index, "{line}")?;
        self.number += 1;
        self.cut += u64::from(!whole);
        Ok(())
    }
}

/// Creates a file that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}
