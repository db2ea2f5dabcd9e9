//! Where the configuration comes from: a file, our flags, or varnishd's.

use std::path::PathBuf;

use config::{CliOptions, Config};
use net::Sharing;

use crate::config_bundle::{self, ConfigBundle};
use crate::config_file::{load, load_shared, render};
use crate::{account, varnishd};

/// Where the configuration comes from; asked again at every reload.
#[derive(Clone, Debug)]
pub struct DaemonOptions {
    /// The configuration, or what takes its place.
    pub settings: ConfigSource,
    /// The admin socket's path.
    pub admin_socket: PathBuf,
    /// The log ring's folder; it goes before what the configuration says.
    pub log_ring: Option<PathBuf>,
    /// As whom it is to run.
    pub user: account::RunAs,
    /// Socket of the process that opens what only root may read; without one, a daemon that root
    /// has started starts its own.
    pub keeper: Option<PathBuf>,
    /// The file with the process id.
    pub pid_file: Option<PathBuf>,
    /// Tells whether other daemons may listen on the same addresses.
    pub sharing: Sharing,
}

/// A file, or what the command line said.
#[derive(Clone, Debug)]
pub enum ConfigSource {
    /// `larder.toml`.
    File(PathBuf),
    /// Our own flags.
    Flags(CliOptions),
    /// varnishd's.
    Varnishd(Box<varnishd::Flags>),
}

impl DaemonOptions {
    /// Reads the configuration that the daemon starts with, with what all nodes shared when it
    /// ended; warnings go to standard error.
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
            base::tell!(Warn, "larder: what all nodes share is not known: {why}");
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
