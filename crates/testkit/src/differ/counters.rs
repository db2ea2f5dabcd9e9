//! Counters of a server by Varnish's names, read from `varnishstat -j`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Counters by name.
pub(super) type Counters = BTreeMap<String, i64>;

/// Parses the counters.
///
/// # Errors
/// Text that is no such JSON.
pub(super) fn read(text: &str) -> Result<Counters, String> {
    let all: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let counters = all["counters"].as_object().ok_or("no counters")?;
    let value = |counter: &Value| counter["value"].as_i64();
    Ok(counters.iter().filter_map(|(name, one)| Some((name.clone(), value(one)?))).collect())
}

/// Reads the counters of the varnishd whose working folder is `folder`.
pub(super) fn of_varnish(folder: &Path) -> Result<Counters, String> {
    let stat = Command::new("varnishstat").arg("-n").arg(folder).arg("-j").output();
    let stat = stat.map_err(|error| format!("varnishstat: {error}"))?;
    read(&String::from_utf8_lossy(&stat.stdout))
}

/// The value of counter `name`: one of `MAIN`, or of a backend of the VCL `program`.
pub(super) fn value(counters: &Counters, program: &str, name: &str) -> Option<i64> {
    let full = match name.strip_prefix("VBE.") {
        Some(rest) => format!("VBE.{program}.{rest}"),
        None => format!("MAIN.{name}"),
    };
    counters.get(&full).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_their_short_names() {
        let text = r#"{"version": 1, "counters": {
            "MAIN.cache_hit": {"description": "", "flag": "c", "format": "i", "value": 7},
            "VBE.v1.o1.req": {"value": 1},
            "VBE.v2.o1.req": {"value": 2},
            "VBE.v2.o2.req": {"value": 4}
        }}"#;
        let counters = read(text).expect("counters");
        assert_eq!(value(&counters, "v2", "cache_hit"), Some(7));
        assert_eq!(value(&counters, "v2", "VBE.o1.req"), Some(2));
        assert_eq!(value(&counters, "v2", "cache_miss"), None);
        assert!(read("{}").is_err());
    }
}
