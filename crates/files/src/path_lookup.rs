//! Path lookup: its result.

use std::sync::Arc;

use crate::config::Coding;
use crate::open_file::OpenFile;

/// The result of looking a path up.
#[derive(Clone, Debug)]
pub enum PathLookup {
    /// A file.
    Page(Arc<FileVariants>),
    /// A directory, requested without its final slash: relative links in its index would break.
    Slash,
    /// A file that may not be served: a directory without index, a link out of the root, a file
    /// that the daemon may not read.
    Forbidden,
    /// No file, or a hidden one.
    Missing,
    /// Unknown: there was no descriptor left to open it.
    Exhausted,
}

/// A file, and its precompressed forms.
#[derive(Debug)]
pub struct FileVariants {
    pub(crate) plain: Arc<OpenFile>,
    pub(crate) coded: Vec<(Coding, Arc<OpenFile>)>,
}

impl FileVariants {
    /// The available codings, in the order of the configuration.
    pub fn codings(&self) -> impl Iterator<Item = Coding> {
        self.coded.iter().map(|(coding, _)| *coding)
    }

    /// The file in `coding`, or the plain one.
    pub fn form(&self, coding: Option<Coding>) -> &Arc<OpenFile> {
        let coded = self.coded.iter().find(|(own, _)| Some(*own) == coding);
        coded.map_or(&self.plain, |(_, opened)| opened)
    }

    /// Returns true if `other` has the same files in the same state.
    fn is_same(&self, other: &Self) -> bool {
        let all = |page: &Self| -> Vec<Arc<OpenFile>> {
            let coded = page.coded.iter().map(|(_, opened)| opened);
            std::iter::once(&page.plain).chain(coded).map(Arc::clone).collect()
        };
        let (own, theirs) = (all(self), all(other));
        own.len() == theirs.len() && own.iter().zip(&theirs).all(|(a, b)| a.is_same(b))
    }
}

impl PathLookup {
    /// `before` if it is the same, so that what was made of it stays valid; otherwise `self`.
    pub(crate) fn or_as(self, before: &Self) -> Self {
        match (&self, before) {
            (Self::Page(new), Self::Page(old)) if new.is_same(old) => before.clone(),
            _ => self,
        }
    }
}
