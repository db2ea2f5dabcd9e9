//! Parameters of varnishd: current values by name, parsed, bounded and printed as varnishd does.
//! What a value means is decided only by the code that reads it.

mod formatting;
mod row;
mod table;

use std::fmt;

pub use row::Row;
pub use table::{DEBUG, EXPERIMENTAL, FEATURES, MASKED, Param, Spec, TABLE, TAGS, ValueKind};

/// Position of `trace` among the flags of `feature`.
const TRACE: usize = FEATURES.len() - 1;

/// The whole number that is printed as `unlimited`.
const UNLIMITED: f64 = u32::MAX as f64;

/// A value.
#[derive(Clone, Debug, PartialEq)]
enum ParamValue {
    /// Number, switch (0 or 1) or seconds.
    Number(f64),
    Text(Box<str>),
    /// Flags or a mask: one bit for each name in order; set for a flag that is on or a masked name.
    Bits(u128),
}

/// Error of setting a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Unknown parameter.
    Unknown(String),
    /// The parameter does not exist on this system.
    Absent(&'static str),
    /// The value is rejected.
    Value {
        /// The parameter.
        name: &'static str,
        /// The value.
        value: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for Error {
    /// varnishd's message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "Unknown parameter \"{name}\"."),
            Self::Absent(name) => {
                write!(f, "parameter \"{name}\" is not available on this platform.")
            }
            Self::Value { name, value, why } => {
                write!(f, "{why}\n\n(attempting to set param '{name}' to '{value}')")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Current values of all parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Values in the order of the table.
    values: Vec<ParamValue>,
}

impl Default for Params {
    fn default() -> Self {
        let mut params = Self { values: vec![ParamValue::Number(0.0); TABLE.len()] };
        for spec in TABLE {
            params.values[spec.param as usize] = initial(spec);
        }
        params
    }
}

/// Default of a parameter. Tests of the table ensure that each default can be parsed.
fn initial(spec: &Spec) -> ParamValue {
    match spec.kind {
        ValueKind::Absent | ValueKind::Text | ValueKind::Pool => {
            ParamValue::Text(spec.default.into())
        }
        ValueKind::Mask(names) => {
            ParamValue::Bits(MASKED.iter().fold(0, |bits, name| bits | bit(names, name)))
        }
        ValueKind::Flags(names) => {
            ParamValue::Bits(switched(names, spec.default, 0).unwrap_or_default())
        }
        kind => ParamValue::Number(number(kind, spec.default).unwrap_or_default()),
    }
}

impl Params {
    /// Sets a parameter from text.
    ///
    /// # Errors
    /// The reason why the value is rejected; the old value stays.
    pub fn set(&mut self, name: &str, text: &str) -> Result<&'static Spec, Error> {
        let spec = Spec::find(name).ok_or_else(|| Error::Unknown(name.to_owned()))?;
        if spec.kind == ValueKind::Absent {
            return Err(Error::Absent(spec.name));
        }
        let value = self.read(spec, text).map_err(|why| Error::Value {
            name: spec.name,
            value: text.to_owned(),
            why,
        })?;
        self.values[spec.param as usize] = value;
        Ok(spec)
    }

    /// Resets a parameter to its default.
    ///
    /// # Errors
    /// If the name is unknown.
    pub fn reset(&mut self, name: &str) -> Result<&'static Spec, Error> {
        let spec = Spec::find(name).ok_or_else(|| Error::Unknown(name.to_owned()))?;
        self.values[spec.param as usize] = initial(spec);
        Ok(spec)
    }

    fn read(&self, spec: &Spec, text: &str) -> Result<ParamValue, String> {
        match spec.kind {
            ValueKind::Absent | ValueKind::Text => Ok(ParamValue::Text(text.into())),
            ValueKind::Pool => pool(text).map(|()| ParamValue::Text(text.into())),
            ValueKind::Flags(names) => {
                if text == "default" {
                    return Ok(initial(spec));
                }
                let what = if spec.param == Param::Feature { "feature" } else { spec.name };
                let bits = self.bits(spec.param);
                switched(names, text, bits)
                    .map_err(|item| format!("Unknown {what} bit ({item})"))
                    .map(ParamValue::Bits)
            }
            ValueKind::Mask(_) if text == "default" => Ok(initial(spec)),
            ValueKind::Mask(names) => {
                masked(names, text, self.bits(spec.param)).map(ParamValue::Bits)
            }
            kind => {
                let value = number(kind, text)?;
                self.hold(spec, value)?;
                Ok(ParamValue::Number(value))
            }
        }
    }

    /// Checks a number against its bounds.
    fn hold(&self, spec: &Spec, value: f64) -> Result<(), String> {
        let (least, most) = match spec.kind {
            ValueKind::Seconds => ("greater or equal to", "less than or equal to"),
            ValueKind::Real => ("greater or equal to", "less than or equal to"),
            _ => ("at least", "no more than"),
        };
        let of = |text: &str| number(spec.kind, text).unwrap_or_default();
        if let Some(min) = spec.min.filter(|min| value < of(min)) {
            return Err(format!("Must be {least} {min}"));
        }
        if let Some(max) = spec.max.filter(|max| value > of(max)) {
            return Err(format!("Must be {most} {max}"));
        }
        // Each of the two is a bound of the other.
        let (least, most) = (Param::ThreadPoolMin, Param::ThreadPoolMax);
        if spec.param == least && value > self.value(most) {
            return Err(format!("Must be no more than {} (thread_pool_max)", self.value(most)));
        }
        if spec.param == most && value < self.value(least) {
            return Err(format!("Must be at least {} (thread_pool_min)", self.value(least)));
        }
        Ok(())
    }

    /// Value of a number, a switch (0 or 1) or a time in seconds; 0 for other kinds.
    pub fn value(&self, param: Param) -> f64 {
        match self.values[param as usize] {
            ParamValue::Number(number) => number,
            ParamValue::Text(_) | ParamValue::Bits(_) => 0.0,
        }
    }

    /// Value of a time, in seconds.
    pub fn seconds(&self, param: Param) -> f64 {
        self.value(param)
    }

    /// Value of a whole number or a number of bytes.
    pub fn number(&self, param: Param) -> u64 {
        self.value(param) as u64
    }

    /// Returns true if a switch is on.
    pub fn is_on(&self, param: Param) -> bool {
        self.value(param) != 0.0
    }

    /// Value of a text parameter; empty for other kinds.
    pub fn text(&self, param: Param) -> &str {
        match &self.values[param as usize] {
            ParamValue::Text(text) => text,
            ParamValue::Number(_) | ParamValue::Bits(_) => "",
        }
    }

    /// Returns true if a flag of `feature` is on.
    pub fn has_feature(&self, flag: &str) -> bool {
        self.bits(Param::Feature) & bit(FEATURES, flag) != 0
    }

    /// Returns true if the flag `trace` of `feature` is on. Each request calls this, so no name is
    /// searched.
    pub fn is_traced(&self) -> bool {
        self.bits(Param::Feature) >> TRACE & 1 == 1
    }

    /// Numeric value by name, in seconds, bytes or as it is; `None` for other kinds.
    pub fn by_name(&self, name: &str) -> Option<f64> {
        let spec = Spec::find(name)?;
        match self.values[spec.param as usize] {
            ParamValue::Number(number) => Some(number),
            ParamValue::Text(_) | ParamValue::Bits(_) => None,
        }
    }

    /// Returns true if a parameter has its default.
    pub fn is_default(&self, spec: &Spec) -> bool {
        self.values[spec.param as usize] == initial(spec)
    }

    fn bits(&self, param: Param) -> u128 {
        match self.values[param as usize] {
            ParamValue::Bits(bits) => bits,
            ParamValue::Number(_) | ParamValue::Text(_) => 0,
        }
    }
}

/// Bit of a name in the list; 0 for an unknown name.
fn bit(names: &[&str], name: &str) -> u128 {
    let at = names.iter().position(|own| own.eq_ignore_ascii_case(name));
    at.map_or(0, |at| 1 << at)
}

/// Switches flags on (`+name`) and off (`-name`). The error is an unknown name.
fn switched<'a>(names: &[&str], text: &'a str, mut bits: u128) -> Result<u128, &'a str> {
    for item in text.split(',').map(str::trim) {
        if item == "none" {
            bits = 0;
            continue;
        }
        let (on, name) = match item.split_at_checked(1) {
            Some(("+", name)) => (true, name),
            Some(("-", name)) => (false, name),
            _ => return Err(item),
        };
        let bit = bit(names, name);
        if bit == 0 {
            return Err(item);
        }
        bits = if on { bits | bit } else { bits & !bit };
    }
    Ok(bits)
}

/// Masks (`-name`) and unmasks (`+name`) names.
fn masked(names: &[&str], text: &str, mut bits: u128) -> Result<u128, String> {
    for item in text.split(',').map(str::trim) {
        let unknown = || format!("Unknown VSL tag ({item})");
        let (mask, name) = match item.split_at_checked(1) {
            Some(("-", name)) => (true, name),
            Some(("+", name)) => (false, name),
            _ => return Err(unknown()),
        };
        let bit = bit(names, name);
        if bit == 0 {
            return Err(unknown());
        }
        bits = if mask { bits | bit } else { bits & !bit };
    }
    Ok(bits)
}

/// Parses a number of a kind. As in Varnish 7.2 a time may have one of VCL's units; otherwise it is
/// in seconds.
fn number(kind: ValueKind, text: &str) -> Result<f64, String> {
    let text = text.trim();
    match kind {
        ValueKind::Switch => match text {
            "on" | "yes" | "true" | "enable" => Ok(1.0),
            "off" | "no" | "false" | "disable" => Ok(0.0),
            _ => Err("use \"on\" or \"off\"".to_owned()),
        },
        ValueKind::Bytes => bytes(text),
        ValueKind::Number if text == "unlimited" || text == "-1" => Ok(UNLIMITED),
        ValueKind::Number => match text.parse::<u32>() {
            Ok(number) => Ok(f64::from(number)),
            Err(_) => Err(format!("Not a number ({text})")),
        },
        ValueKind::Seconds if text.ends_with(|c: char| c.is_ascii_alphabetic()) => {
            let seconds = crate::text::number::duration(text.as_bytes());
            seconds.ok_or_else(|| format!("Invalid number ({text})"))
        }
        _ => {
            let digits = text;
            let plain = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-'));
            match digits.parse::<f64>() {
                Ok(number) if plain && number.is_finite() => Ok(number),
                _ => Err(format!("Invalid number ({text})")),
            }
        }
    }
}

/// Parses a size such as `80k`, `0.25G` or `255b`.
///
/// # Errors
/// varnishd's message about the size.
pub fn bytes(text: &str) -> Result<f64, String> {
    let fault = |why: &str| {
        format!("Could not convert to bytes.\n{why}\n  Try something like '80k' or '120M'")
    };
    let digits = text.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| fault("Could not convert to bytes"))?;
    let unit = unit.trim().trim_end_matches(['b', 'B']).to_ascii_lowercase();
    let power = match unit.as_str() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return Err(fault("Unknown BYTES unit of measurement ([KMGTP][B])")),
    };
    Ok((number * 1024_f64.powi(power)).round())
}

/// Checks the three numbers of a pool.
fn pool(text: &str) -> Result<(), String> {
    let fields: Vec<_> = text.split([',', ' ']).filter(|field| !field.is_empty()).collect();
    let [least, most, age] = fields[..] else {
        return Err("Three fields required: min_pool, max_pool and max_age".to_owned());
    };
    for field in [least, most] {
        number(ValueKind::Number, field)?;
    }
    number(ValueKind::Seconds, age).map(|_| ())
}

#[cfg(test)]
mod tests;
