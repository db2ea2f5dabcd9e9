//! The configuration, `larder.toml`: read with the location of every value, checked as a whole, and
//! every fault reported with its location.
//!
//! Begin reading at [`load_str`], which reads a text, and at [`Config`], the result. The keys of a
//! table are rows beside its parser (`rows`). Nothing here may act on what it reads; only
//! [`load_file`] and [`sizing::Machine::read`] read files.

mod cli;
pub mod diagnostic;
mod format_detection;
mod keys;
mod listen;
pub mod model;
mod origin_table;
mod page;
mod parse;
pub mod preset;
mod reader;
mod reference;
mod restart_settings;
mod rows;
mod shared_config;
mod site_listing;
mod site_program;
pub mod sizing;
mod suggestions;
mod varnishd;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

pub use cli::{CliOptions, from_cli};
pub use diagnostic::{Diagnostic, Severity, render};
pub use format_detection::{foreign_server, is_program};
pub use keys::{Key, Section};
pub use model::{
    AccessLog, AcmeBinding, AcmeChallenge, AcmeConfig, AdminConfig, Admission, CacheStatus,
    Certificates, CliSecret, ClientFiles, ClusterConfig, ClusterCredentials, Config,
    ConfigLocation, CrawlersConfig, DiskConfig, DiskVolume, ErrorLog, FieldSource, HealthConfig,
    Htcp, Isolation, ListenSpec, LogFormat, LogRing, LogTarget, MemoryConfig, MemorySize,
    MetricsConfig, NamedHost, NamedPath, NeighbourConfig, NeighbourTransport, OriginTls, PageFile,
    PairFiles, PlacedPath, Programs, ServiceAccount, SigningCrawler, SiteConfig, SiteTls, Tracing,
    VarnishCli, WarmConfig, WebhookConfig,
};
pub use parse::load_str;
pub use reference::{REFERENCE_INTRODUCTION, reference_markdown, reference_sections};
pub use shared_config::{NamedText, check_shared, load_shared};
pub use site_listing::{Setting, in_force, show, show_site};
pub use varnishd::{Varnishd, VolumeFlag, from_varnishd};

/// Reads the configuration in the file at `path`, as [`load_str`] does.
///
/// # Errors
/// As [`load_str`]; a file that cannot be read, or is not UTF-8, is one error.
pub fn load_file(path: &Path) -> Result<(Config, Vec<Diagnostic>), Vec<Diagnostic>> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let file = Arc::new(diagnostic::SourceText { name: name.clone(), text: String::new() });
        let message = format!("cannot read the configuration: {error}");
        let help = (error.kind() == std::io::ErrorKind::NotFound)
            .then(|| "name another: `larder check FILE`, `larder serve --config FILE`".to_owned());
        vec![Diagnostic {
            severity: Severity::Error,
            message,
            span: None,
            related: None,
            help,
            file,
        }]
    })?;
    load_str(&text, &name)
}
