//! Formatting of parameter values as varnishd prints them. Values are never changed here.

use super::{MASKED, Param, ParamValue, Params, Row, Spec, UNLIMITED, ValueKind};

impl Params {
    /// A parameter's row for `param.show`.
    pub fn row(&self, spec: &Spec) -> Row {
        let max = match spec.param {
            // The other parameter's value is its bound.
            Param::ThreadPoolMin => {
                Some(spell(spec.kind, &self.values[Param::ThreadPoolMax as usize]))
            }
            _ => spec.max.map(str::to_owned),
        };
        let value = &self.values[spec.param as usize];
        Row {
            name: spec.name.to_owned(),
            value: spell(spec.kind, value),
            default: spell(spec.kind, &super::initial(spec)),
            min: spec.min.map(str::to_owned),
            max,
            units: spec.units.to_owned(),
            about: spec.about.to_owned(),
            flags: spec.flags,
            number: json_value(spec.kind, value),
            absent: spec.kind == ValueKind::Absent,
            bare: false,
            protected: false,
        }
    }
}

/// A value as text.
fn spell(kind: ValueKind, value: &ParamValue) -> String {
    match (kind, value) {
        (_, ParamValue::Text(text)) => text.to_string(),
        (ValueKind::Switch, ParamValue::Number(on)) => {
            (if *on != 0.0 { "on" } else { "off" }).to_owned()
        }
        (ValueKind::Seconds, ParamValue::Number(seconds)) => format!("{seconds:.3}"),
        (ValueKind::Bytes, ParamValue::Number(bytes)) => size(*bytes as u64),
        (ValueKind::Number, ParamValue::Number(UNLIMITED)) => "unlimited".to_owned(),
        (_, ParamValue::Number(number)) => number.to_string(),
        (ValueKind::Mask(names), ParamValue::Bits(bits)) => listed(names, *bits, '-', "all"),
        (ValueKind::Flags(names), ParamValue::Bits(bits)) => listed(names, *bits, '+', "none"),
        (_, ParamValue::Bits(bits)) => listed(MASKED, *bits, '-', "none"),
    }
}

/// Names whose bit is set, each with `sign`.
fn listed(names: &[&str], bits: u128, sign: char, nothing: &str) -> String {
    let set = names.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    let set: Vec<_> = set.map(|(_, name)| format!("{sign}{name}")).collect();
    if set.is_empty() { nothing.to_owned() } else { set.join(",") }
}

/// A size in the largest unit that gives a multiple of a quarter.
fn size(bytes: u64) -> String {
    if bytes == 0 || !bytes.is_multiple_of(256) {
        return format!("{bytes}b");
    }
    let mut quarters = bytes / 256;
    let mut units = "kMGTPE".chars();
    let mut unit = units.next();
    while quarters.is_multiple_of(1024)
        && let Some(larger) = units.next()
    {
        quarters /= 1024;
        unit = Some(larger);
    }
    let unit = unit.unwrap_or('E');
    match quarters % 4 {
        0 => format!("{}{unit}", quarters / 4),
        _ => format!("{:.2}{unit}", quarters as f64 / 4.0),
    }
}

/// A value in JSON; `None` for a string.
fn json_value(kind: ValueKind, value: &ParamValue) -> Option<String> {
    match (kind, value) {
        (ValueKind::Switch, ParamValue::Number(on)) => Some((*on != 0.0).to_string()),
        (ValueKind::Seconds, ParamValue::Number(seconds)) => Some(format!("{seconds:.3}")),
        (_, ParamValue::Number(number)) => Some(number.to_string()),
        (_, ParamValue::Text(_) | ParamValue::Bits(_)) => None,
    }
}
