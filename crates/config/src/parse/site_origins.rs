//! The origins, the files and the users that the settings of one site name.

use std::path::PathBuf;

use policy::rules::Settings;

use super::origins::Origins;
use crate::model;
use crate::reader::{Item, Reader};

/// The origins of one site, among all.
#[derive(Debug)]
pub(super) struct SiteOrigins<'o, 'l> {
    all: &'o mut Origins<'l>,
    indices: Vec<usize>,
    roots: Vec<files::Config>,
    /// Files of users, and where they are named.
    users: Vec<(PathBuf, model::Place)>,
}

impl<'o, 'l> SiteOrigins<'o, 'l> {
    pub(super) fn new(all: &'o mut Origins<'l>) -> Self {
        Self { all, indices: Vec::new(), roots: Vec::new(), users: Vec::new() }
    }

    /// The index in the site's list of the origin that `item` names.
    pub(super) fn find(&mut self, r: &mut Reader, item: &Item<'_>) -> Option<u32> {
        let index = self.all.find(r, item)?;
        let at = self.indices.iter().position(|i| *i == index).unwrap_or_else(|| {
            self.indices.push(index);
            self.indices.len() - 1
        });
        u32::try_from(at).ok()
    }

    /// The index among all origins of the one that `item` names; it need not answer for the site.
    pub(super) fn find_any(&mut self, r: &mut Reader, item: &Item<'_>) -> Option<usize> {
        let index = self.all.find(r, item)?;
        if self.all.runs_scripts(index) {
            r.error(item.span.clone(), "a FastCGI server answers no questions over HTTP");
            return None;
        }
        Some(index)
    }

    pub(super) fn note_users(&mut self, file: PathBuf, place: model::Place) {
        self.users.push((file, place));
    }

    /// Returns true if the origin of this index in the site's list is a FastCGI one.
    pub(super) fn runs_scripts(&self, index: u32) -> bool {
        let index = usize::try_from(index).ok().and_then(|at| self.indices.get(at));
        index.is_some_and(|index| self.all.runs_scripts(*index))
    }

    /// Takes a preset's time for heads out of settings whose origin has its own.
    pub(super) fn keep_times(&self, settings: &mut Settings) {
        let index = usize::try_from(settings.origin).ok().and_then(|at| self.indices.get(at));
        if index.is_some_and(|index| self.all.times_heads(*index)) {
            settings.first_byte_ms = None;
        }
    }

    /// Ends of the names of the scripts that these origins run.
    pub(super) fn script_ends(&self) -> Vec<String> {
        let configs = self.indices.iter().filter_map(|index| self.all.config(*index));
        let scripts = configs.filter_map(|config| config.scripts.as_ref());
        scripts.flat_map(|scripts| scripts.rules.suffixes.iter().cloned()).collect()
    }

    /// The index in the site's list of a root of files.
    pub(super) fn root(&mut self, root: files::Config) -> Option<u32> {
        self.roots.push(root);
        u32::try_from(self.roots.len() - 1).ok()
    }

    /// The origins, as indices into all, the roots of files, and the files of users.
    pub(super) fn into_parts(
        self,
    ) -> (Vec<usize>, Vec<files::Config>, Vec<(PathBuf, model::Place)>) {
        (self.indices, self.roots, self.users)
    }
}
