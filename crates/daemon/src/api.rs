//! The API: the daemon's responses to its admin listener.

mod advice;
mod cluster;
mod evidence;
mod log;
mod state;
mod store;
mod warm;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use admin::{
    AdminRequest, AdminResponse, Api, Audit, Body, Listeners, Operation, Settings, Socket,
};
use base::{Counter, Limit, Limits};
use bytes::Bytes;
use config::AdminConfig;
use http::StatusCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::live::LiveFigures;
use crate::ports::Port;
use crate::state::Daemon;
use crate::{dashboard, documents, explain, metrics, readiness};

/// The open admin socket, the tokens of `[admin]`, and the rules for requests to them.
pub(crate) struct Console {
    pub(crate) listeners: Listeners,
    settings: Settings,
}

/// Opens the admin socket. A failure is logged. Call within the helper runtime.
pub(crate) fn bind(config: &AdminConfig, socket: &Path) -> Result<Console, String> {
    let audit = Audit::new(config.audit.as_deref()).map_err(|error| {
        let file = config.audit.iter().map(|path| path.display().to_string()).collect::<String>();
        format!("larder: the audit log cannot be written: {file}: {error}")
    })?;
    let socket = Socket { path: socket.to_owned(), mode: config.socket_mode };
    let folder = config.listen.as_ref().map(|_| tokens_folder(config));
    let (listeners, problems) = Listeners::bind(&socket, folder.as_deref());
    for problem in problems {
        base::tell!(Error, "larder: {problem}");
    }
    let settings =
        Settings { hosts: config.hosts.clone(), open_metrics: config.open_metrics, audit };
    Ok(Console { listeners, settings })
}

/// The folder of tokens: the configured one, or else the service manager's state directory.
pub(crate) fn tokens_folder(config: &AdminConfig) -> PathBuf {
    if let Some(folder) = &config.tokens {
        return folder.clone();
    }
    let state = std::env::var_os("STATE_DIRECTORY");
    let first = state.as_ref().and_then(|all| std::env::split_paths(all).next());
    let first = first.filter(|folder| folder.is_absolute());
    first.unwrap_or_else(|| PathBuf::from("/var/lib/larder")).join("admin")
}

/// The daemon as the admin listener calls it, with live figures for dashboards.
struct AdminService {
    daemon: Arc<Daemon>,
    live: Arc<LiveFigures>,
}

/// Starts to answer on the socket, on its `ports`, and on those for health and metrics.
pub(crate) fn serve(
    daemon: &Arc<Daemon>,
    live: Arc<LiveFigures>,
    console: Console,
    [ports, health, metrics]: [Vec<Port>; 3],
) {
    let Console { listeners, settings } = console;
    let face = Arc::new(AdminService { daemon: Arc::clone(daemon), live });
    for port in health {
        let face = Arc::clone(&face);
        port.hold(&daemon.missing, move |socket| {
            let listener = TcpListener::from_std(socket.into())?;
            rt::spawn(admin::serve_health(face, listener));
            Ok(())
        });
    }
    if let Some(terms) = daemon.metrics_authentication() {
        for port in metrics {
            let (face, terms) = (Arc::clone(&face), terms.clone());
            port.hold(&daemon.missing, move |socket| {
                let listener = TcpListener::from_std(socket.into())?;
                rt::spawn(admin::serve_metrics(face, listener, terms));
                Ok(())
            });
        }
    }
    // Without tokens no client could be admitted.
    let Some(console) = listeners.serve(face, settings, &daemon.admin_addresses) else { return };
    for port in ports {
        let console = console.clone();
        port.hold(&daemon.missing, move |socket| {
            console.serve(TcpListener::from_std(socket.into())?)
        });
    }
}

impl Api for AdminService {
    fn limits(&self) -> Limits {
        self.daemon.shared.live().limits.clone()
    }

    fn count(&self, counter: Counter) {
        self.daemon.admin_counts.lock().inc(counter);
    }

    fn count_limit(&self, limit: Limit) {
        self.daemon.admin_counts.lock().limit(limit);
    }

    async fn answer(&self, operation: Operation, asked: AdminRequest) -> AdminResponse {
        let daemon = &*self.daemon;
        let answered = match operation {
            Operation::Health => Ok(AdminResponse::text(StatusCode::OK, "ok\n")),
            Operation::Ready => Ok(match readiness::reasons(daemon) {
                reasons if reasons.is_empty() => {
                    let without = readiness::without(daemon);
                    AdminResponse::text(StatusCode::OK, format!("ready\n{without}"))
                }
                reasons => AdminResponse::text(StatusCode::SERVICE_UNAVAILABLE, reasons),
            }),
            Operation::Cluster => Ok(daemon.cluster_status()),
            Operation::Stand => daemon.apply_node_order(asked).await,
            Operation::Configuration => Ok(daemon.shared_configuration()),
            Operation::RollOut => daemon.roll_out(asked).await,
            Operation::RollBack => daemon.roll_back(asked).await,
            Operation::Metrics => Ok(AdminResponse {
                status: StatusCode::OK,
                content_type: "text/plain; version=0.0.4",
                body: Body::Full(Bytes::from(metrics::page(daemon))),
            }),
            Operation::Stats => Ok(AdminResponse::json(&metrics::json(daemon))),
            Operation::Ring => Ok(daemon.ring_place()),
            Operation::ReloadText => Ok(match daemon.reload() {
                Ok(said) => AdminResponse::text(StatusCode::OK, format!("{said}\n")),
                Err(problems) => AdminResponse::text(
                    StatusCode::UNPROCESSABLE_ENTITY,
                    format!("{problems}\nthe running configuration stays\n"),
                ),
            }),
            Operation::Reload => Ok(match daemon.reload() {
                Ok(reloaded) => {
                    let said = reloaded.to_string();
                    AdminResponse::json(
                        &json!({ "good": true, "said": said, "stays": reloaded.stays }),
                    )
                }
                Err(problems) => {
                    let said = json!({ "good": false, "said": plain(&problems), "stays": [] });
                    AdminResponse::json_of(StatusCode::UNPROCESSABLE_ENTITY, &said)
                }
            }),
            Operation::Status => Ok(daemon.status(&asked)),
            Operation::Sites => Ok(daemon.sites()),
            Operation::Origins => Ok(daemon.origins(None)),
            Operation::Order => daemon.order(asked),
            Operation::Objects => daemon.objects(asked).await,
            Operation::Bans => Ok(daemon.bans()),
            Operation::Purge => daemon.purge(asked).await,
            Operation::Advice => daemon.advice().await,
            Operation::Evidence => Ok(daemon.evidence().await),
            Operation::Warm => self.daemon.warm(asked),
            Operation::Warming => Ok(daemon.warming()),
            Operation::Config => Ok(daemon.config()),
            Operation::Check => daemon.check(asked),
            Operation::Parameters => Ok(daemon.parameters()),
            Operation::Watch => daemon.watch(asked),
            Operation::Explain => Ok(explain::answer(daemon, &asked.body).await),
            Operation::Dashboard => Ok(dashboard::file(&asked.path)),
            Operation::Documentation => Ok(documents::page(daemon.documents(), &asked.path).await),
            Operation::Live => Ok(dashboard::live(daemon, &self.live, &asked)),
            // The listener answers this operation itself.
            Operation::Describe => Ok(AdminResponse::json(&admin::document())),
        };
        answered.unwrap_or_else(|(status, why)| AdminResponse::refusal(status, &why))
    }
}

/// Reads a value that may be absent; a present one is not `null`.
fn said<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Removes the colours that text has where the daemon runs in a terminal.
fn plain(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    plain
}

/// Parses a body into the wanted type.
fn body<T: DeserializeOwned>(body: Value) -> Result<T, (StatusCode, String)> {
    serde_json::from_value(body).map_err(|error| {
        (StatusCode::BAD_REQUEST, format!("{error}: /api/v1/openapi.json has the schema"))
    })
}

impl Daemon {
    /// The folder of the log ring.
    fn ring_place(&self) -> AdminResponse {
        match &self.ring {
            Some(ring) => {
                let folder = ring.folder().to_string_lossy();
                AdminResponse::json(&json!({ "folder": folder, "size": ring.size() }))
            }
            None => {
                AdminResponse::refusal(StatusCode::NOT_FOUND, "the log ring is off: see `log_ring`")
            }
        }
    }
}
