//! The API of the daemon's state: origins, operator's orders for servers, and the configuration.

use std::collections::BTreeMap;

use admin::{AdminRequest, AdminResponse};
use base::limits;
use base::tally::{Outcome, SiteSums};
use flow::WouldBe;
use http::StatusCode;
use origin::{HealthOverride, ServerStatus};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::said;
use super::store::ApiRefusal;
use crate::live::finding_row;
use crate::servers::server;
use crate::state::Daemon;

/// The request body of an operator's order for servers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerOrderBody {
    origin: String,
    #[serde(default, deserialize_with = "said")]
    server: Option<String>,
    order: String,
}

/// The request body: a configuration to check.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConfigCheckBody {
    toml: String,
}

impl Daemon {
    pub(super) fn status(&self, asked: &AdminRequest) -> AdminResponse {
        let store = self.shared.cache.stats();
        let hits: Map<_, _> = limits::TABLE
            .iter()
            .map(|spec| (spec.name, self.shared.limit_hits(spec.limit)))
            .filter(|(_, hits)| *hits > 0)
            .map(|(name, hits)| (name.to_owned(), hits.into()))
            .collect();
        let (sites, origins) =
            self.with_config(|config| (config.sites.len(), config.origins.len()));
        AdminResponse::json(&json!({
            "version": env!("CARGO_PKG_VERSION"),
            "role": asked.caller.role.map(admin::Role::word),
            "uptime_seconds": self.uptime().as_secs(),
            "config_file": self.config_file(),
            "waits_for_restart": self.with_config(|config| self.waits_for_restart(config)),
            "dashboard": {
                "addresses": self.open_consoles(),
                "tokens": self.with_config(|config| super::tokens_folder(&config.admin)),
            },
            "cores": self.cores(),
            "sites": sites,
            "origins": origins,
            "cache": {
                "objects": store.objects,
                "bytes": store.bytes,
                "budget_bytes": store.budget,
                "evictions": store.evictions,
                "bans": self.shared.cache.bans().len(),
            },
            "limit_hits": hits,
        }))
    }

    pub(super) fn sites(&self) -> AdminResponse {
        let sums = self.shared.tallies.sum();
        let sites = self.with_config(|config| {
            let site = |site: &config::SiteConfig| {
                let name = site.hosts.first().cloned().unwrap_or_default();
                let row = sums.sites.iter().find(|(own, _)| **own == name).map(|(_, row)| row);
                let requests: Map<_, _> = Outcome::ALL
                    .iter()
                    .map(|outcome| {
                        let count = row.map_or(0, |row| row.requests[*outcome as usize]);
                        (outcome.word().to_owned(), count.into())
                    })
                    .collect();
                let origins: Vec<_> =
                    site.origins.iter().map(|at| config.origins[*at].name.as_str()).collect();
                json!({
                    "name": name,
                    "hosts": site.hosts,
                    "presets": site.presets,
                    "origins": origins,
                    "requests": requests,
                    "errors": row.map_or(0, SiteSums::errors),
                    "observed": self.observed(&name),
                    "differing": self.differing(&name),
                    "rules": config::show_site(config, site),
                })
            };
            config.sites.iter().map(site).collect::<Vec<_>>()
        });
        AdminResponse::json(&json!({ "sites": sites }))
    }

    /// The requests of a site that only observes, by the outcomes that they would have; null for
    /// other sites.
    fn observed(&self, site: &str) -> Value {
        let live = self.shared.live();
        let own = live.sites.listed.iter().find(|own| *own.name == *site);
        let observing = own.and_then(|own| own.verification.as_ref());
        let Some(observing) = observing.filter(|own| own.observes()) else {
            return Value::Null;
        };
        let counts = WouldBe::ALL.iter().zip(observing.observations());
        counts.map(|((_, name), count)| ((*name).to_owned(), json!(count))).collect()
    }

    /// The pages of a site that were seen to differ by visitor (`verify`), the latest last.
    fn differing(&self, site: &str) -> Vec<Value> {
        let live = self.shared.live();
        let own = live.sites.listed.iter().find(|own| *own.name == *site);
        let verification = own.and_then(|own| own.verification.as_ref());
        verification.map_or_else(Vec::new, |own| own.findings().iter().map(finding_row).collect())
    }

    /// Lists the origins and their servers, or only the origin `only`.
    pub(super) fn origins(&self, only: Option<&str>) -> AdminResponse {
        let mut origins: BTreeMap<String, Vec<ServerStatus>> = BTreeMap::new();
        for (name, status) in self.servers() {
            origins.entry(name).or_default().push(status);
        }
        let origins: Vec<Value> = origins
            .iter()
            .filter(|(name, _)| only.is_none_or(|only| only == name.as_str()))
            .map(|(name, servers)| {
                json!({
                    "name": name,
                    "healthy": servers.iter().any(|server| server.healthy),
                    "servers": servers.iter().map(server).collect::<Vec<_>>(),
                })
            })
            .collect();
        AdminResponse::json(&json!({ "origins": origins }))
    }

    /// Applies an operator's order to servers.
    pub(super) fn order(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let ServerOrderBody { origin, server, order } = super::body(asked.body)?;
        let Some((_, order)) = HealthOverride::WORDS.into_iter().find(|(word, _)| *word == order)
        else {
            let words = HealthOverride::WORDS.map(|(word, _)| word).join(", ");
            let why = format!("`order` is one of {words}");
            return Err((StatusCode::BAD_REQUEST, why));
        };
        if self.order_servers(&origin, server.as_deref(), order) {
            return Ok(self.origins(Some(&origin)));
        }
        let names: Vec<_> = self
            .servers()
            .iter()
            .map(|(origin, server)| format!("`{}` of `{origin}`", server.name))
            .collect();
        let what = server.map_or_else(String::new, |server| format!(" with a server `{server}`"));
        let why = format!("there is no origin `{origin}`{what}: there are {}", names.join(", "));
        Err((StatusCode::NOT_FOUND, why))
    }

    pub(super) fn parameters(&self) -> AdminResponse {
        let live = self.shared.live();
        let parameters: Vec<Value> = limits::TABLE
            .iter()
            .map(|spec| {
                let value = live.limits.value(spec.limit);
                json!({
                    "name": spec.name,
                    "value": spec.show(value),
                    "default": spec.show(spec.default),
                    "is_default": value == spec.default,
                    "hits": self.shared.limit_hits(spec.limit),
                    "about": spec.about,
                })
            })
            .collect();
        AdminResponse::json(&json!({ "parameters": parameters }))
    }

    pub(super) fn config(&self) -> AdminResponse {
        let sites = self.with_config(|config| {
            let sites = config.sites.iter().map(|site| config::show_site(config, site));
            sites.collect::<Vec<_>>().join("\n")
        });
        AdminResponse::json(&json!({ "file": self.config_file(), "sites": sites }))
    }

    /// Reports what is wrong with a configuration. Nothing is put in force.
    pub(super) fn check(&self, asked: AdminRequest) -> Result<AdminResponse, ApiRefusal> {
        let read = if asked.body.is_null() {
            let plain = |said: String| super::plain(&said);
            self.check_own().map(|(config, said)| (config, plain(said))).map_err(plain)
        } else {
            let ConfigCheckBody { toml } = super::body(asked.body)?;
            // The files it names are not read: a message about one would reveal its content.
            match config::load_str(&toml, "larder.toml") {
                Ok((config, warnings)) => Ok((config, config::render(&warnings, false))),
                Err(problems) => Err(config::render(&problems, false)),
            }
        };
        let (good, said, stays) = match read {
            Ok((config, said)) => (true, said, self.waits_for_restart(&config)),
            Err(said) => (false, said, Vec::new()),
        };
        Ok(AdminResponse::json(&json!({ "good": good, "said": said, "stays": stays })))
    }
}
