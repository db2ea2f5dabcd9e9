//! Origin of a site, with the directories that its settings name.

use std::sync::Arc;

use files::Root;
use files::accel::Accel;
use origin::{Origin, TryFilesEntry};

/// An origin that a site may select.
pub struct SiteOrigin {
    /// The origin.
    pub origin: Arc<Origin>,
    /// The files beside its scripts or in front of its HTTP servers, if its rules look for files.
    pub(crate) front_files: Option<Arc<Root>>,
    /// The pages that plugins write below its root.
    pub(crate) pages: Option<Arc<Root>>,
    /// The actions that its X-Accel-* and X-Sendfile fields may order.
    pub(crate) accel: Option<Accel>,
}

impl SiteOrigin {
    /// The origin with the directories in its settings.
    pub fn new(origin: &Arc<Origin>) -> Self {
        let scripts = origin.config().scripts.as_ref();
        let files = match scripts {
            Some(scripts) if !scripts.rules.tries.contains(&TryFilesEntry::Path) => None,
            Some(scripts) => scripts.files.as_ref(),
            None => origin.config().files.as_ref(),
        };
        let root = |config: &files::Config| Root::new(config.clone());
        let roots = |all: &[files::Config]| all.iter().map(root).collect();
        Self {
            origin: Arc::clone(origin),
            front_files: files.map(root),
            pages: scripts.map(|scripts| files::page_cache(&scripts.root)),
            accel: origin.config().accel.as_ref().map(|accel| Accel {
                expires: accel.expires,
                redirects: roots(&accel.redirects),
                sendfile: roots(&accel.sendfile),
            }),
        }
    }
}
