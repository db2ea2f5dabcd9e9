//! A parameter as `param.show` shows it: a line, all that is known, or JSON.

use std::fmt::Write as _;

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
