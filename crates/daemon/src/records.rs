//! Records of transactions: where they go, to the log ring and the access log.

use std::path::PathBuf;
use std::sync::Arc;

use base::counters::Counters;
use config::Config;
use flow::finish::{RecordTaker, Records};
use flow::{EvidenceRules, SharedState};
use net::AccessLog;
use observe::record::{SENT, USER};
use observe::{FieldSubscription, Pattern};

use crate::keeper::{self, OpenPurpose};
use crate::ring;

/// The sinks of records, and the fields that records keep.
pub(crate) fn records(
    config: &Config,
    folder: PathBuf,
    cores: usize,
    counters: Arc<Counters>,
    shared: &SharedState,
) -> Result<(Records, Option<AccessLog>), String> {
    let mut wanted = config.log_ring.clone();
    if let (Some(ring), Some(_)) = (&mut wanted, &config.tracing) {
        let own = ["traceparent", "tracestate", SENT];
        ring.headers.retain(|name| !own.iter().any(|own| name.eq_ignore_ascii_case(own)));
        ring.headers.extend(own.map(str::to_owned));
    }
    let ring = wanted.as_ref().and_then(|wanted| ring::start(wanted, folder, cores));
    let mut names = match &ring {
        Some(ring) => ring.names().to_vec(),
        None => Vec::new(),
    };
    let log = match &config.access_log {
        Some(log) => {
            // These are part of its lines. Readers of the ring skip fields without a name.
            for name in ["Referer", "User-Agent", USER] {
                if !names.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                    names.push(name.to_owned());
                }
            }
            let format = format(log, shared)?;
            Some(open_log(log, format, &names, counters)?)
        }
        None => None,
    };
    let taker = log.clone().map(|log| Arc::new(log) as Arc<dyn RecordTaker>);
    let evidence = wanted.filter(|own| own.evidence && ring.is_some());
    let evidence = evidence.map(|own| EvidenceRules {
        one_in: own.fingerprint_one_in,
        has_agent: names.iter().any(|name| name.eq_ignore_ascii_case("User-Agent")),
    });
    Ok((Records { ring, log: taker, names, evidence }, log))
}

/// The form of the access log's lines. The header fields in it are kept from now on.
fn format(log: &config::AccessLog, shared: &SharedState) -> Result<net::LogFormat, String> {
    let pattern = match &log.format {
        config::LogFormat::Combined => return Ok(net::LogFormat::Combined),
        config::LogFormat::Json => return Ok(net::LogFormat::Json),
        config::LogFormat::Custom { text, json } => Pattern::parse(text, *json),
    };
    let pattern = pattern.map_err(|why| format!("larder: access log: {why}"))?;
    let fields = pattern.fields();
    if !fields.is_empty() {
        shared.in_force.want_always(FieldSubscription {
            fields,
            secrets: log.secrets,
            ..FieldSubscription::default()
        });
    }
    Ok(net::LogFormat::Custom(pattern))
}

fn open_log(
    log: &config::AccessLog,
    format: net::LogFormat,
    names: &[String],
    counters: Arc<Counters>,
) -> Result<AccessLog, String> {
    let target = match &log.target {
        config::LogTarget::Stdout => net::LogTarget::Stdout,
        config::LogTarget::File(path) => {
            net::LogTarget::File(path.clone(), |path| keeper::open(path, OpenPurpose::Append))
        }
        config::LogTarget::SyslogPath(path) => {
            net::LogTarget::Syslog(net::SyslogAt::Path(path.clone()))
        }
        config::LogTarget::SyslogAddress(address) => {
            net::LogTarget::Syslog(net::SyslogAt::Address(*address))
        }
    };
    let started = AccessLog::start(target, format, names, counters);
    started.map_err(|e| format!("larder: access log: {e}"))
}
