//! Error pages: the files of `error_pages`, read with the configuration.
//!
//! They are read before anything changes: an unreadable page is an error of the configuration, at a
//! start, a reload and a check.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use bytes::Bytes;
use config::{Config, Diagnostic, PageFile, SiteConfig};
use files::Types;
use flow::ErrorPage;

use crate::keeper;

/// The content of every named file, by its path.
#[derive(Debug, Default)]
pub(crate) struct PageFiles(BTreeMap<PathBuf, Bytes>);

impl PageFiles {
    /// Reads every file that `config` names; unusable ones are reported in `found`.
    pub(crate) fn read(config: &Config, found: &mut Vec<Diagnostic>) -> Self {
        let mut read = BTreeMap::new();
        for file in config.sites.iter().flat_map(|site| &site.error_pages) {
            if read.contains_key(&file.path) {
                continue;
            }
            match content(file, config.limits.error_page_bytes) {
                Ok(content) => _ = read.insert(file.path.clone(), content),
                Err(why) => {
                    found.push(file.place.error(format!("{}: {why}", file.path.display())));
                }
            }
        }
        Self(read)
    }

    /// The pages of a site.
    pub(crate) fn of(&self, site: &SiteConfig) -> Vec<ErrorPage> {
        let types = Types::default();
        let page = |file: &PageFile| {
            let content = self.0.get(&file.path)?.clone();
            let kind = types.of(file.path.as_os_str().as_bytes());
            Some(ErrorPage { status: file.status, kind, content })
        };
        site.error_pages.iter().filter_map(page).collect()
    }
}

fn content(file: &PageFile, most: u64) -> Result<Bytes, String> {
    keeper::read_bounded(&file.path, "error_page_bytes", most).map(Bytes::from)
}
