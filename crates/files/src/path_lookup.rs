//! The meaning of a path.

use std::sync::Arc;

use crate::config::Coding;
use crate::open_file::OpenFile;

/// The meaning of a path.
#[derive(Clone, Debug)]
pub enum PathLookup {
    /// This file.
    Page(Arc<FileVariants>),
    /// A directory, asked for without the slash at its end: links in its index would lead nowhere.
    Slash,
    /// Something that is not for anybody: a directory without index, a link out of the root, a file
    /// that the daemon may not read.
    Forbidden,
    /// Nothing, or nothing that is shown.
    Missing,
    /// There may be a file, but no descriptor was left to open it.
    Exhausted,
}

/// A file, and its neighbours that hold the same compressed.
#[derive(Debug)]
pub struct FileVariants {
    pub(crate) plain: Arc<OpenFile>,
    pub(crate) coded: Vec<(Coding, Arc<OpenFile>)>,
}

impl FileVariants {
    /// The codings that it is there in, in the order of the configuration.
    pub fn codings(&self) -> impl Iterator<Item = Coding> {
        self.coded.iter().map(|(coding, _)| *coding)
    }

    /// The file in `coding`, or the plain one.
    pub fn form(&self, coding: Option<Coding>) -> &Arc<OpenFile> {
        let coded = self.coded.iter().find(|(own, _)| Some(*own) == coding);
        coded.map_or(&self.plain, |(_, opened)| opened)
    }

    /// Returns true if nothing has changed from `other` to this.
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
    /// `self`, unless `before` says the same: then that, so that what is made of it stays good.
    pub(crate) fn or_as(self, before: &Self) -> Self {
        match (&self, before) {
            (Self::Page(new), Self::Page(old)) if new.is_same(old) => before.clone(),
            _ => self,
        }
    }
}
