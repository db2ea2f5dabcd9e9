//! Routes that requests for one URL are divided among, by a field, a cookie or an address: what is
//! stored for one route must not answer a request of another.
//!
//! A route that has such conditions has a mark in the keys of its requests, made from all settings
//! that have a say in what an origin is asked and what is stored. Where the route that the URL
//! alone leads to has the same settings, there is no mark: a route that only has a limit of its own
//! shares what is stored. The mark is made from what the settings say and not from their place in
//! the file, so that it means the same after a reload, and on the disk after a restart.

use sha2::{Digest, Sha256};

use crate::decision_steps::SettingLocations;
use crate::header_changes::HeaderOps;
use crate::response_rules::ResponseRule;
use crate::rules::{BrowserCaching, RouteRules, ServeMode, Settings};

/// The mark of settings in keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StorageClass(u64);

impl StorageClass {
    /// That of a site's own settings.
    pub(super) fn of_site(settings: &Settings) -> Self {
        Self::of(&[said(settings), String::new()])
    }

    /// That of a route.
    pub(super) fn of_route(route: &RouteRules) -> Self {
        let settings = &route.settings;
        // The same text stands for other URLs behind another pattern.
        let has_parts = settings.rewrite.is_some() || settings.request_headers.captures() > 0;
        let paths = match has_parts {
            true => format!("{:?}", route.scope.paths),
            false => String::new(),
        };
        Self::of(&[said(&route.settings), paths])
    }

    fn of(parts: &[String]) -> Self {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        let first = *digest.finalize().first_chunk().unwrap_or(&[0; 8]);
        // Nothing is the mark of requests without one.
        Self(u64::from_le_bytes(first) | 1)
    }

    /// The mark as a number; never 0, which stands for no mark.
    pub(super) fn number(self) -> u64 {
        self.0
    }
}

/// Settings in words, without those that neither the origin nor the store learns of.
fn said(settings: &Settings) -> String {
    let about_storing = settings.response_rules.iter().filter(|rule| rule.is_about_storing());
    let stored = Settings {
        // Its place in the site's list is another after a reload; its name is not.
        origin: 0,
        // Which server of the origin answers changes nothing.
        sticky: None,
        // The responses of a mirror are dropped.
        mirror: None,
        // A redirect is answered before the store and the origin have a say.
        redirects: None,
        access_log: true,
        serve: ServeMode::default(),
        rate: None,
        concurrent: None,
        response_headers: HeaderOps::default(),
        response_rules: about_storing
            .map(|rule| ResponseRule { headers: HeaderOps::default(), ..rule.clone() })
            .collect(),
        browsers: BrowserCaching::default(),
        // A comparison changes nothing that is stored.
        verify_one_in: None,
        intercepted: Vec::new(),
        places: SettingLocations::default(),
        ..settings.clone()
    };
    format!("{stored:?}")
}
