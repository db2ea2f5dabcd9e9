//! `param.show`: limits and the settings of the whole daemon, by their names in larder.toml.

use std::fmt::Write as _;

use base::clock::System;
use base::limits::{self, Unit};
use config::{CacheStatus, Config, MemorySize};
use policy::Profile;
use varnishcli::{Call, Reply, Status, json_begin, json_string};

use super::answers::unknown_parameter;
use crate::serve::Daemon;

/// Widest line of a description.
const WIDTH: usize = 64;

struct Param {
    name: String,
    value: String,
    default: String,
    unit: &'static str,
    about: String,
    /// The value is a number, for JSON.
    number: Option<u64>,
}

impl Param {
    fn setting(name: &str, value: impl ToString, default: &str, about: &str) -> Self {
        Self {
            name: name.to_owned(),
            value: value.to_string(),
            default: default.to_owned(),
            unit: "",
            about: about.to_owned(),
            number: None,
        }
    }

    fn is_default(&self) -> bool {
        self.value == self.default
    }

    /// Value, and whether that is the default.
    fn state(&self) -> String {
        format!("{}{}", self.value, if self.is_default() { " (default)" } else { "" })
    }

    /// All that is known of it.
    fn long(&self) -> String {
        let mut text = format!("{}\n        Value is: {}\n", self.name, self.state());
        // Writing to a String cannot fail.
        if !self.is_default() {
            _ = writeln!(text, "        Default is: {}", self.default);
        }
        let mut line = String::new();
        for word in self.about.split_whitespace() {
            if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
                _ = write!(text, "\n        {line}");
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        _ = write!(text, "\n        {line}\n\n");
        text
    }

    fn json(&self) -> String {
        let string = |text: &str| json_string(text.as_bytes());
        let value = self.number.map_or_else(|| string(&self.value), |number| number.to_string());
        let mut text = format!(
            "  {{\n    \"name\": {},\n    \"implemented\": true,\n    \"value\": {value},\n",
            string(&self.name)
        );
        if !self.unit.is_empty() {
            _ = writeln!(text, "    \"units\": \"{}\",", self.unit);
        }
        _ = write!(
            text,
            "    \"default\": {},\n    \"description\": {},\n    \"flags\": []\n  }}",
            string(&self.default),
            string(&self.about)
        );
        text
    }
}

/// Every parameter, in the order of the names.
fn all(config: &Config) -> Vec<Param> {
    let mut all: Vec<_> = limits::TABLE.iter().map(|spec| limit(spec, config)).collect();
    let workers = config.workers.map_or_else(|| "auto".to_owned(), |workers| workers.to_string());
    let memory = match config.memory.size {
        MemorySize::Auto => "auto".to_owned(),
        MemorySize::Bytes(bytes) => base::units::Bytes(bytes).to_string(),
        MemorySize::Percent(percent) => format!("{percent}%"),
    };
    let cache_status = match config.cache_status {
        CacheStatus::Off => "off",
        CacheStatus::On => "on",
        CacheStatus::Detail => "detail",
    };
    let profile = match config.profile {
        Profile::Safe => "safe",
        Profile::Rfc => "rfc",
    };
    for (name, value, default) in [
        ("workers", workers.as_str(), "auto"),
        ("memory.size", &memory, "auto"),
        ("profile", profile, "safe"),
        ("http2", if config.http2 { "true" } else { "false" }, "true"),
        ("x_cache", if config.x_cache { "true" } else { "false" }, "false"),
        ("cache_status", cache_status, "on"),
        ("via", &config.via, "larder"),
    ] {
        let about = config::about(name);
        all.push(Param::setting(name, value, default, about));
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn limit(spec: &limits::Spec, config: &Config) -> Param {
    let value = config.limits.value(spec.limit);
    Param {
        name: spec.name.to_owned(),
        value: spec.show(value),
        default: spec.show(spec.default),
        unit: match spec.unit {
            Unit::Bytes => "bytes",
            Unit::Ms => "milliseconds",
            Unit::BytesPerSecond => "bytes per second",
            Unit::Percent => "percent",
            Unit::Count => "",
        },
        about: spec.about.to_owned(),
        number: Some(value),
    }
}

/// The answer to `param.show`.
pub(super) fn show(daemon: &Daemon, call: &Call) -> Reply {
    let (long, rest) = match &call.arguments[..] {
        [flag, ..] if flag == b"-l" && call.json => {
            return Reply::new(Status::Argument, "-l not permitted with param.show -j");
        }
        [flag, rest @ ..] if flag == b"-l" => (true, rest),
        rest => (false, rest),
    };
    let mut params = daemon.with_config(all);
    let (long, rest) = match rest {
        [] => (long, None),
        [name] if name == b"changed" => {
            params.retain(|param| !param.is_default());
            (long, None)
        }
        // One alone is always shown in full.
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
        let begin = json_begin(2, &call.words, System.now().unix_ms);
        let rows: Vec<_> = params.iter().map(Param::json).collect();
        return Reply::ok(format!("{begin}\n{}\n]\n", rows.join(",\n")));
    }
    let width = params.iter().map(|param| param.name.len()).max().unwrap_or_default();
    let line = |param: &Param| match long {
        true => param.long(),
        false => format!("{:width$} {}\n", param.name, param.state()),
    };
    Reply::ok(params.iter().map(line).collect::<String>())
}
