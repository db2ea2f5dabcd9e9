//! Row of `param.show`: one line, all details, or JSON. It never looks a value up.

use std::fmt::Write as _;

/// Widest line of a description.
const WIDTH: usize = 62;

/// A parameter with its texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The default.
    pub default: String,
    /// The smallest value.
    pub min: Option<String>,
    /// The largest value.
    pub max: Option<String>,
    /// The unit; empty if none.
    pub units: String,
    /// Description.
    pub about: String,
    /// Varnish's flags.
    pub flags: &'static [&'static str],
    /// The value in JSON; `None` for a string.
    pub number: Option<String>,
    /// True if the parameter does not exist on this system.
    pub absent: bool,
    /// True if the value includes its unit.
    pub bare: bool,
    /// True if the parameter is protected (`-r`).
    pub protected: bool,
}

impl Row {
    /// Returns true if the parameter has its default.
    pub fn is_default(&self) -> bool {
        self.value == self.default
    }

    /// Value and unit, and a mark of the default.
    fn state(&self) -> String {
        let units = match self.units.is_empty() || self.bare {
            true => String::new(),
            false => format!(" [{}]", self.units),
        };
        format!("{}{units}{}", self.value, if self.is_default() { " (default)" } else { "" })
    }

    /// One line; names are `width` wide.
    pub fn line(&self, width: usize) -> String {
        let Self { name, .. } = self;
        match self.absent {
            true => format!("{name:width$} -\n"),
            false => format!("{name:width$} {}\n", self.state()),
        }
    }

    /// All details.
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

    /// Flags in varnishd's order.
    fn marks(&self) -> impl Iterator<Item = &'static str> {
        let last = |flag: &&&str| **flag == "build_options";
        let protected = Some("protected").filter(|_| self.protected);
        let before = self.flags.iter().filter(move |flag| !last(flag)).copied();
        before.chain(protected).chain(self.flags.iter().filter(last).copied())
    }

    /// A JSON object.
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
