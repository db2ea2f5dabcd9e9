//! Parameters: `param.show` with Varnish's parameters where programs decide, and limits and global
//! settings, by their names in larder.toml.

use base::limits::{self, Unit};
use config::{Config, Programs};
use varnishcli::{Call, Reply, Status, json_begin};
use vcl::params::{Param, Params};
use vcl::params::{Row, TABLE};

use super::reply::unknown_parameter;
use crate::state::Daemon;

/// Returns true if programs decide for any site, so that Varnish's parameters apply.
fn has_programs(config: &Config) -> bool {
    config.vcl != Programs::None || config.sites.iter().any(|site| site.program().is_some())
}

/// The longest reply (`cli_limit`), if Varnish's parameters apply.
pub(super) fn reply_limit(daemon: &Daemon) -> Option<usize> {
    let limit = || usize::try_from(daemon.vcls.params().number(Param::CliLimit)).ok();
    daemon.with_config(has_programs).then(limit).flatten()
}

/// Every parameter, sorted by name. Varnish's take precedence over limits of the same name.
fn all(daemon: &Daemon) -> Vec<Row> {
    daemon.with_config(|config| {
        let mut all = Vec::new();
        if has_programs(config) {
            let params: &Params = &daemon.vcls.params();
            all.extend(TABLE.iter().map(|spec| {
                let protected = daemon.vcls.is_protected(spec.name);
                Row { protected, ..params.row(spec) }
            }));
        }
        if config.vcl != Programs::Flags {
            let own = own(config);
            all.extend(own.into_iter().filter(|row| {
                Params::default().by_name(&row.name).is_none() || !has_programs(config)
            }));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    })
}

/// Limits and settings.
fn own(config: &Config) -> Vec<Row> {
    let mut all: Vec<_> = limits::TABLE.iter().map(|spec| limit(spec, config)).collect();
    all.extend(config::in_force(config).into_iter().map(|setting| Row {
        name: setting.name,
        value: setting.value,
        default: setting.key.default.trim_matches('"').to_owned(),
        about: setting.key.about.to_owned(),
        ..Row::default()
    }));
    all
}

fn limit(spec: &limits::LimitSpec, config: &Config) -> Row {
    let value = config.limits.value(spec.limit);
    let units = match spec.unit {
        Unit::Bytes => "bytes",
        Unit::Ms => "milliseconds",
        Unit::BytesPerSecond => "bytes per second",
        Unit::Percent => "percent",
        Unit::Count => "",
    };
    Row {
        name: spec.name.to_owned(),
        value: spec.show(value),
        default: spec.show(spec.default),
        units: units.to_owned(),
        bare: true,
        about: spec.about.to_owned(),
        number: Some(value.to_string()),
        ..Row::default()
    }
}

/// The reply to `param.show`.
pub(super) fn show(daemon: &Daemon, call: &Call) -> Reply {
    let (long, rest) = match &call.arguments[..] {
        [flag, ..] if flag == b"-l" && call.json => {
            return Reply::new(Status::Argument, "-l not permitted with param.show -j");
        }
        [flag, rest @ ..] if flag == b"-l" => (true, rest),
        rest => (false, rest),
    };
    let mut params = all(daemon);
    let width = params.iter().map(|param| param.name.len()).max().unwrap_or_default();
    let (long, rest) = match rest {
        [] => (long, None),
        [name] if name == b"changed" => {
            params.retain(|param| !param.absent && !param.is_default());
            (long, None)
        }
        // A single one is always shown in full.
        [name] => (true, Some(name)),
        _ => return Reply::new(Status::TooMany, "Too many parameters"),
    };
    if let Some(name) = rest {
        params.retain(|param| param.name.as_bytes() == name);
        if params.is_empty() {
            return unknown_parameter(name);
        }
    }
    if call.json {
        return as_json(call, &params);
    }
    let line = |param: &Row| if long { param.long() } else { param.line(width) };
    Reply::ok(params.iter().map(line).collect::<String>())
}

/// One parameter as JSON, as the reply to `param.set -j`.
pub(super) fn show_one(daemon: &Daemon, call: &Call, name: &str) -> Reply {
    let mut params = all(daemon);
    params.retain(|param| param.name == name);
    // As in varnishd, without the value.
    let words = call.words.iter().take(3).cloned().collect();
    as_json(&Call { words, ..call.clone() }, &params)
}

fn as_json(call: &Call, params: &[Row]) -> Reply {
    let begin = json_begin(2, &call.words, rt::now().unix_ms);
    let rows: Vec<_> = params.iter().map(Row::json).collect();
    Reply::ok(format!("{begin}\n{}\n]\n", rows.join(",\n")))
}
