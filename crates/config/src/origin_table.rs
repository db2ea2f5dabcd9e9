//! The origin table: origins found while a configuration is read, and what the current site
//! references.

use std::ops::Range;

use base::Limits;
use origin::OriginConfig;
use policy::rules::Settings;

use crate::model::{OriginTls, PlacedPath};

/// The origins found so far.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The limits, as defaults of origins.
    pub(crate) limits: Limits,
    pub(crate) known: Vec<OriginEntry>,
    /// References of the current site.
    pub(crate) site: SiteReferences,
}

/// An origin.
#[derive(Debug)]
pub(crate) struct OriginEntry {
    pub(crate) config: OriginConfig,
    pub(crate) tls: Option<OriginTls>,
    /// The span of its name, if it has one.
    pub(crate) name: Option<Range<usize>>,
    pub(crate) used: bool,
    /// Its scripts run everywhere by its own setting (`no_scripts = false`).
    pub(crate) runs_everywhere: bool,
    /// The values that stand for its servers in a cookie, where they have their own.
    pub(crate) ids: Vec<Option<String>>,
    /// The cookie that brings clients back to a server.
    pub(crate) sticky: Option<StickyDraft>,
    /// It sets its own timeout for heads.
    pub(crate) times_heads: bool,
}

/// The cookie of `[origin.sticky]`.
#[derive(Clone, Debug)]
pub(crate) struct StickyDraft {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) domain: Option<String>,
    pub(crate) max_age_ms: Option<u64>,
    pub(crate) secure: Option<bool>,
    pub(crate) same_site: &'static str,
}

/// References in the settings of one site.
#[derive(Debug, Default)]
pub(crate) struct SiteReferences {
    /// Origins, as indices into all.
    pub(crate) indices: Vec<usize>,
    /// Roots of files.
    pub(crate) roots: Vec<files::Config>,
    /// User files.
    pub(crate) users: Vec<PlacedPath>,
    /// Files of redirects.
    pub(crate) redirect_maps: Vec<PlacedPath>,
}

impl OriginEntry {
    pub(crate) fn new(config: OriginConfig) -> Self {
        Self {
            config,
            tls: None,
            name: None,
            used: false,
            runs_everywhere: false,
            ids: Vec::new(),
            sticky: None,
            times_heads: false,
        }
    }
}

impl Origins {
    /// The origin of this index in the site's list.
    pub(crate) fn of_site(&self, index: u32) -> Option<&OriginEntry> {
        let index = usize::try_from(index).ok().and_then(|at| self.site.indices.get(at))?;
        self.known.get(*index)
    }

    /// Removes a preset's timeout for heads from the settings if the origin sets its own.
    pub(crate) fn keep_times(&self, settings: &mut Settings) {
        if self.of_site(settings.origin).is_some_and(|known| known.times_heads) {
            settings.first_byte_ms = None;
        }
    }

    /// Suffixes of the scripts that the site's origins run.
    pub(crate) fn script_ends(&self) -> Vec<String> {
        let configs = self.site.indices.iter().filter_map(|index| self.known.get(*index));
        let scripts = configs.filter_map(|known| known.config.scripts.as_ref());
        scripts.flat_map(|scripts| scripts.rules.suffixes.iter().cloned()).collect()
    }

    /// Adds directories without scripts, as presets name them, to the site's origins; not to one
    /// with `no_scripts = false`.
    pub(crate) fn exclude_script_directories(&mut self, directories: &[String]) {
        for index in &self.site.indices {
            let known = self.known.get_mut(*index).filter(|known| !known.runs_everywhere);
            if let Some(scripts) = known.and_then(|known| known.config.scripts.as_mut()) {
                scripts.rules.bar(directories);
            }
        }
    }
}
