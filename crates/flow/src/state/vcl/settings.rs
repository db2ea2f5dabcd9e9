//! VCL settings: the daemon's settings as programs see them, with varnishd's names.

use std::collections::HashMap;
use std::sync::Arc;

use vcl::params::Params;
use vcl::program::Instance;

/// A listener as programs see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// `local.socket`: its name.
    pub socket: Arc<str>,
    /// `local.endpoint`: its address as configured.
    pub endpoint: Arc<str>,
}

/// The settings that programs see.
pub struct VclSettings {
    /// Varnish's parameters, for sites with a program.
    pub params: Arc<Params>,
    /// The programs that `return (vcl(label))` switches to, by label.
    pub labels: HashMap<Box<str>, Arc<Instance>>,
    /// `server.identity`
    pub identity: Arc<str>,
    /// `server.hostname`
    pub hostname: Arc<str>,
    /// The listeners, by number.
    pub endpoints: Arc<[Endpoint]>,
    /// Names of storages, `Transient` included. All share one memory.
    pub storages: Arc<[Arc<str>]>,
    /// The names of those that are disks.
    pub disk_storages: Arc<[Arc<str>]>,
}

impl VclSettings {
    /// Settings without flags: varnishd's default storages, and no host name.
    pub fn new(params: &Params) -> Self {
        Self {
            params: Arc::new(params.clone()),
            labels: HashMap::new(),
            identity: "".into(),
            hostname: "".into(),
            endpoints: Arc::default(),
            storages: ["s0", "Transient"].map(Into::into).into(),
            disk_storages: Arc::default(),
        }
    }
}
