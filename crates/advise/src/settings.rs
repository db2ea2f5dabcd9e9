//! Settings: the text of a configuration with what it means, so that a change of the text is a
//! change of the policies.
//!
//! The text is read by crate `config` alone. Nothing here may keep a meaning of its own.

use base::HashSeed;
use config::sizing::Machine;
use config::{Config, Diagnostic, Programs, load_str};
use policy::{Declared, HostTable};

use crate::edit::route_count;

/// A configuration: its text, and the policies that it makes.
#[derive(Debug)]
pub struct Settings {
    /// Name of the file, for people.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The text's meaning.
    pub config: Config,
    /// The machine that the daemon runs on.
    pub machine: Machine,
    policies: Vec<Declared>,
    hosts: HostTable<usize>,
}

impl Settings {
    /// Reads the text of the configuration called `file`.
    ///
    /// # Errors
    /// Those of [`load_str`].
    pub fn read(file: &str, text: &str, machine: Machine) -> Result<Self, Vec<Diagnostic>> {
        let (config, _) = load_str(text, file)?;
        let mut hosts = HostTable::new(HashSeed::random());
        let mut policies = Vec::new();
        for (at, site) in config.sites.iter().enumerate() {
            policies.push(Declared::new(site.rules.clone()));
            for host in &site.hosts {
                let inserted = hosts.insert(host, at);
                debug_assert!(inserted.is_ok(), "hosts were checked as the text was read: {host}");
            }
        }
        let (file, text) = (file.to_owned(), text.to_owned());
        Ok(Self { file, text, config, machine, policies, hosts })
    }

    /// The text of a configuration for an access log alone: one site for all hosts.
    pub fn plain_text(preset: Option<&str>) -> String {
        let preset = preset.map(|name| format!("preset = \"{name}\"\n")).unwrap_or_default();
        format!("[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:8080\"\n{preset}")
    }

    /// These settings with another text.
    ///
    /// # Errors
    /// Those of [`load_str`].
    pub fn with_text(&self, text: &str) -> Result<Self, Vec<Diagnostic>> {
        Self::read(&self.file, text, self.machine)
    }

    /// Index of the site of `host`, which is in canonical form.
    pub fn site_of(&self, host: &[u8]) -> Option<usize> {
        self.hosts.find(host).copied()
    }

    /// The policy of the site with this index.
    pub fn policy(&self, site: usize) -> &Declared {
        &self.policies[site]
    }

    /// The first host of the site with this index, by which people know it.
    pub fn site_name(&self, site: usize) -> &str {
        self.config.sites[site].hosts.first().map_or("", String::as_str)
    }

    /// Number of routes that the text itself has for the site with this index. They come before
    /// those of presets.
    pub(crate) fn own_routes(&self, site: usize) -> usize {
        route_count(&self.text, site)
    }

    /// Returns true if a VCL program decides for the site with this index: settings do not.
    pub fn has_program(&self, site: usize) -> bool {
        let has_own = self.config.sites[site].vcl.is_some();
        has_own || self.config.vcl != Programs::None
    }

    /// Bytes for stored responses.
    pub fn budget_bytes(&self) -> u64 {
        self.machine.cache_bytes(self.config.memory.size)
    }
}
