//! The source of the configuration: a file, larder's flags, or varnishd's.

use std::path::PathBuf;

use config::{CliOptions, Config};
use net::Sharing;

use crate::config_bundle::{self, ConfigBundle};
use crate::config_file::{load, load_shared, render};
use crate::{account, varnishd};

/// The options of the daemon's command line.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The configuration's source.
    pub settings: ConfigSource,
    /// The admin socket's path.
    pub admin_socket: PathBuf,
    /// The log ring's folder; it overrides the configuration.
    pub log_ring: Option<PathBuf>,
    /// The user to run as.
    pub user: account::RunAs,
    /// Socket of the keeper; without one, a daemon started by root starts its own.
    pub keeper: Option<PathBuf>,
    /// The file with the process id.
    pub pid_file: Option<PathBuf>,
    /// Permits other daemons to listen on the same addresses.
    pub sharing: Sharing,
    /// The daemon replaces the one at the other end of its standard input.
    pub takes_over: bool,
}

/// A file or flags, read again at every reload.
#[derive(Clone, Debug)]
pub enum ConfigSource {
    /// `larder.toml`.
    File(PathBuf),
    /// larder's flags.
    Flags(CliOptions),
    /// varnishd's flags.
    Varnishd(Box<varnishd::Flags>),
}

impl DaemonOptions {
    /// Reads the configuration for the start, with the last one that all nodes shared; warnings go
    /// to standard error.
    ///
    /// # Errors
    /// The faults of the configuration, rendered.
    pub fn config(&self) -> Result<Config, String> {
        let ConfigSource::File(path) = &self.settings else { return self.config_with(None) };
        let (config, _) = load(path)?;
        let sharing = config.cluster.as_ref().filter(|own| own.shares_configuration);
        let Some(sharing) = sharing else { return self.config_with(None) };
        let kept = ConfigBundle::kept(&config_bundle::folder(sharing.storage.as_deref()));
        let kept = kept.unwrap_or_else(|why| {
            base::tell!(Warn, "larder: the shared configuration cannot be read: {why}");
            None
        });
        self.config_with(kept.as_ref())
    }

    /// Reads the configuration, with what all nodes share; warnings go to standard error.
    ///
    /// # Errors
    /// The faults of the configuration, rendered.
    pub(crate) fn config_with(&self, shared: Option<&ConfigBundle>) -> Result<Config, String> {
        match &self.settings {
            ConfigSource::File(path) => {
                let (config, warnings) = match shared {
                    Some(shared) => load_shared(path, shared)?,
                    None => load(path)?,
                };
                if !warnings.is_empty() {
                    base::tell!(Warn, "{warnings}");
                }
                Ok(config)
            }
            ConfigSource::Flags(options) => {
                config::from_cli(options).map_err(|problems| render(&problems))
            }
            ConfigSource::Varnishd(flags) => flags.config(),
        }
    }
}
