//! Parameters as `param.show` shows them: a line, all that is known, or JSON.

use std::fmt::Write as _;

use super::{MASKED, ParamValue, Params, Spec, UNLIMITED, ValueKind};

/// Widest line of a description.
const WIDTH: usize = 62;

/// A parameter as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Its default.
    pub default: String,
    /// The smallest value.
    pub min: Option<String>,
    /// The largest.
    pub max: Option<String>,
    /// Its unit; empty for none.
    pub units: String,
    /// Its meaning.
    pub about: String,
    /// Varnish's notes on it.
    pub flags: &'static [&'static str],
    /// Its value as JSON, where that is no string.
    pub number: Option<String>,
    /// It is not of this system.
    pub absent: bool,
    /// Its value says its unit itself.
    pub bare: bool,
    /// It cannot be changed (`-r`).
    pub protected: bool,
}

impl Row {
    /// Returns true if the parameter has its default.
    pub fn is_default(&self) -> bool {
        self.value == self.default
    }

    /// Value and unit, and whether that is the default.
    fn state(&self) -> String {
        let units = match self.units.is_empty() || self.bare {
            true => String::new(),
            false => format!(" [{}]", self.units),
        };
        format!("{}{units}{}", self.value, if self.is_default() { " (default)" } else { "" })
    }

    /// It in one line; names are `width` wide.
    pub fn line(&self, width: usize) -> String {
        let Self { name, .. } = self;
        match self.absent {
            true => format!("{name:width$} -\n"),
            false => format!("{name:width$} {}\n", self.state()),
        }
    }

    /// All that is known of it.
    pub fn long(&self) -> String {
        let mut text = format!("{}\n", self.name);
        // Writing to a String cannot fail.
        if self.absent {
            text.push_str("        Not available\n");
        } else {
            _ = writeln!(text, "        Value is: {}", self.state());
            let default = Some(&self.default).filter(|_| !self.is_default());
            let rest = [
                ("Default", default),
                ("Minimum", self.min.as_ref()),
                ("Maximum", self.max.as_ref()),
            ];
            for (what, value) in rest {
                if let Some(value) = value {
                    _ = writeln!(text, "        {what} is: {value}");
                }
            }
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
        if self.protected {
            text.push_str("        NB: This parameter is protected and can not be changed.\n\n");
        }
        text
    }

    /// The notes on it, in varnishd's order.
    fn marks(&self) -> impl Iterator<Item = &'static str> {
        let last = |flag: &&&str| **flag == "build_options";
        let protected = Some("protected").filter(|_| self.protected);
        let before = self.flags.iter().filter(move |flag| !last(flag)).copied();
        before.chain(protected).chain(self.flags.iter().filter(last).copied())
    }

    /// It as a JSON object.
    pub fn json(&self) -> String {
        let string = |text: &str| serde_json::Value::from(text).to_string();
        let name = string(&self.name);
        if self.absent {
            return format!("  {{\n    \"name\": {name},\n    \"implemented\": false\n  }}");
        }
        let value = self.number.clone().unwrap_or_else(|| string(&self.value));
        let mut text = format!(
            "  {{\n    \"name\": {name},\n    \"implemented\": true,\n    \"value\": {value},\n"
        );
        let units = Some(&self.units).filter(|units| !units.is_empty());
        let (default, min, max) = (Some(&self.default), self.min.as_ref(), self.max.as_ref());
        let rest = [("units", units), ("default", default), ("minimum", min), ("maximum", max)];
        for (key, value) in rest {
            if let Some(value) = value {
                _ = writeln!(text, "    \"{key}\": {},", string(value));
            }
        }
        let flags = self.marks().map(|flag| format!("      \"{flag}\"")).collect::<Vec<_>>();
        let flags = match flags.is_empty() {
            true => "[]".to_owned(),
            false => format!("[\n{}\n    ]", flags.join(",\n")),
        };
        _ = write!(
            text,
            "    \"description\": {},\n    \"flags\": {flags}\n  }}",
            string(&self.about)
        );
        text
    }
}

impl Params {
    /// Returns a parameter as it is shown.
    pub fn row(&self, spec: &Spec) -> Row {
        let max = match spec.param {
            // It is bounded by the other one's value.
            super::Param::ThreadPoolMin => {
                Some(spell(spec.kind, &self.values[super::Param::ThreadPoolMax as usize]))
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

/// A value as it is written.
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
        (ValueKind::Mask(words), ParamValue::Bits(bits)) => listed(words, *bits, '-', "all"),
        (ValueKind::Flags(words), ParamValue::Bits(bits)) => listed(words, *bits, '+', "none"),
        (_, ParamValue::Bits(bits)) => listed(MASKED, *bits, '-', "none"),
    }
}

/// The words whose bit is set, each behind `sign`.
fn listed(words: &[&str], bits: u128, sign: char, nothing: &str) -> String {
    let set = words.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
    let set: Vec<_> = set.map(|(_, word)| format!("{sign}{word}")).collect();
    if set.is_empty() { nothing.to_owned() } else { set.join(",") }
}

/// A size in the largest unit that it is a multiple of, or of a quarter of it.
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

/// A value as JSON; none for a string.
fn json_value(kind: ValueKind, value: &ParamValue) -> Option<String> {
    match (kind, value) {
        (ValueKind::Switch, ParamValue::Number(on)) => Some((*on != 0.0).to_string()),
        (ValueKind::Seconds, ParamValue::Number(seconds)) => Some(format!("{seconds:.3}")),
        (_, ParamValue::Number(number)) => Some(number.to_string()),
        (_, ParamValue::Text(_) | ParamValue::Bits(_)) => None,
    }
}
