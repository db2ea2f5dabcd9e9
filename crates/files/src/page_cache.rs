//! Page cache on the disk: the root of pages that a plugin of an application has written.

use std::path::Path;
use std::sync::Arc;

use crate::config::{CacheRule, Coding, Config, PrecompressedFile, Selector};
use crate::hidden_names::HiddenNames;
use crate::root::Root;

/// The lifetime of such a page in browsers, as in WP Super Cache's own rules.
const LIFETIME: &str = "max-age=3, must-revalidate";

/// The root of the pages that plugins write below `scripts`, an application's root.
pub fn page_cache(scripts: &Path) -> Arc<Root> {
    let mut config = Config::new(scripts.to_path_buf());
    config.directories = false;
    // Plugins choose the names, and no other file can be requested here.
    config.hide = HiddenNames::default();
    config.precompressed = [".gz", "_gzip"]
        .map(|suffix| PrecompressedFile { coding: Coding::Gzip, suffix: suffix.to_owned() })
        .into();
    let all = Selector::parse("*").expect("a star is a pattern of names");
    config.cache_control = vec![CacheRule { files: all, value: LIFETIME.to_owned() }];
    config.types.set_charset("utf-8").expect("a token");
    // Users who are logged in get other pages.
    config.vary = vec!["Cookie".to_owned()];
    Root::new(config)
}
