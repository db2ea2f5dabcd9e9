//! Error pages: the files of `error_pages`, read with the configuration.
//!
//! They are read before anything changes: an unreadable page is an error of the configuration, at a
//! start, a reload and a check.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use base::units;
use bytes::Bytes;
use config::{Config, Diagnostic, PageFile, SiteConfig};
use files::Types;
use flow::ErrorPage;

use crate::keeper::{self, OpenPurpose};

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
    let mut content = Vec::new();
    let read = keeper::open(&file.path, OpenPurpose::Read)
        .and_then(|open| open.take(most.saturating_add(1)).read_to_end(&mut content));
    if let Err(error) = read {
        return Err(error.to_string());
    }
    if content.len() as u64 > most {
        let most = units::Bytes(most);
        return Err(format!("the page is longer than {most} (limit: error_page_bytes)"));
    }
    Ok(content.into())
}
