//! The settings of the daemon that programs see, as if it were varnishd.

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
    /// Varnish's parameters, for sites that have a VCL.
    pub params: Arc<Params>,
    /// The VCLs that `return (vcl(label))` goes on in, by label.
    pub labels: HashMap<Box<str>, Arc<Instance>>,
    /// `server.identity`
    pub identity: Arc<str>,
    /// `server.hostname`
    pub hostname: Arc<str>,
    /// The listeners, by number.
    pub endpoints: Arc<[Endpoint]>,
    /// Names of storages, `Transient` among them. One memory is behind all of them.
    pub storages: Arc<[Arc<str>]>,
    /// Those of them that are disks.
    pub disk_storages: Arc<[Arc<str>]>,
}

impl VclSettings {
    /// The storages are varnishd's own, as without flags; the host has no name.
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
