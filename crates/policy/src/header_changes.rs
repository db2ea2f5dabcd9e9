//! Changes of header fields: what settings set, add, remove and replace, in requests for an origin
//! and in responses for a client.
//!
//! Values may have variables of the request. What clients put into them is checked: a value that no
//! field can have is not written.

use std::fmt;

use linear::Regex;
use message::header::{self, HeaderBlock};

use crate::headers::{FieldError, FieldName, FieldValue};
use crate::pattern::{self, PatternError};
use crate::template::{CapturedBytes, Template, TemplateError, TemplateValues, VariableSet};

/// Changes to a head, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderOps {
    ops: Vec<(FieldName, FieldChange)>,
}

/// A change of the fields of one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldChange {
    /// They are removed.
    Unset,
    /// One with this value replaces them.
    Set(FieldText),
    /// One with this value is added.
    Add(FieldText),
    /// A part of their values is replaced.
    Replace(ValueReplacement),
}

/// The value of a field, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldText {
    /// Without variables.
    Constant(FieldValue),
    /// With variables.
    Variable(Template),
}

/// A replacement in the value of a field.
#[derive(Clone, Debug)]
pub struct ValueReplacement {
    /// The text, or `~ regex`, whose first match is replaced.
    pattern: Box<str>,
    /// `None` for a text.
    regex: Option<Regex>,
    /// `$1` and so on are the groups of the regular expression.
    by: Template,
}

/// Why a change was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldChangeError {
    /// No field has such a value.
    Value(FieldError),
    /// A variable is unknown.
    Template(TemplateError),
    /// The pattern is empty or malformed.
    Pattern(PatternError),
    /// The replacement has a group that the pattern lacks.
    Group(usize),
}

impl fmt::Display for FieldChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(why) => why.fmt(f),
            Self::Template(why) => write!(f, "{why}; write `$$` for a dollar sign"),
            Self::Pattern(PatternError::Name) => f.write_str("an empty text is found everywhere"),
            Self::Pattern(why) => why.fmt(f),
            Self::Group(number) => {
                write!(f, "`${number}` stands for a group `( )` that the expression lacks")
            }
        }
    }
}

impl std::error::Error for FieldChangeError {}

impl FieldText {
    /// Reads a value; `$$` is a dollar sign.
    ///
    /// # Errors
    /// No field has such a value, or a variable is unknown.
    pub fn parse(text: &str) -> Result<Self, FieldChangeError> {
        let value = FieldValue::parse(text).map_err(FieldChangeError::Value)?;
        if !text.contains('$') {
            return Ok(Self::Constant(value));
        }
        let all = VariableSet::All;
        let template = Template::parse(text, all).map_err(FieldChangeError::Template)?;
        match template.constant() {
            Some(text) => {
                FieldValue::parse(text).map(Self::Constant).map_err(FieldChangeError::Value)
            }
            None => Ok(Self::Variable(template)),
        }
    }

    /// The template, if it has variables.
    fn template(&self) -> Option<&Template> {
        match self {
            Self::Constant(_) => None,
            Self::Variable(template) => Some(template),
        }
    }

    /// Passes the value to `take`, unless no field can have it.
    fn write(&self, values: Option<TemplateValues<'_>>, take: impl FnOnce(&[u8])) {
        match (self, values) {
            (Self::Constant(value), _) => take(value.as_bytes()),
            (Self::Variable(template), Some(values)) => {
                let mut value = Vec::new();
                template.write(values, &mut value);
                let value = value.trim_ascii();
                if header::is_value(value) {
                    take(value);
                }
            }
            (Self::Variable(_), None) => {}
        }
    }
}

impl fmt::Display for FieldText {
    /// The value as it would be written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => value.fmt(f),
            Self::Variable(template) => template.fmt(f),
        }
    }
}

impl PartialEq for ValueReplacement {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.by == other.by
    }
}

impl Eq for ValueReplacement {}

impl ValueReplacement {
    /// Reads a replacement: of a text, or of what `~ regex` (`~* regex` without regard to case)
    /// matches.
    ///
    /// # Errors
    /// The pattern is empty or malformed, or the replacement has what it cannot have.
    pub fn parse(pattern: &str, by: &str) -> Result<Self, FieldChangeError> {
        let regex = match pattern.as_bytes() {
            [b'~', b'*', ..] => Some(pattern::regex(pattern[2..].trim(), true)),
            [b'~', ..] => Some(pattern::regex(pattern[1..].trim(), false)),
            [] => return Err(FieldChangeError::Pattern(PatternError::Name)),
            _ => None,
        };
        let regex = regex.transpose().map_err(FieldChangeError::Pattern)?;
        // Blanks at its ends are within the value.
        FieldValue::parse(by.trim()).map_err(FieldChangeError::Value)?;
        let by = Template::parse(by, VariableSet::All).map_err(FieldChangeError::Template)?;
        let groups = regex.as_ref().map_or(0, |own| own.room().group_info().all_group_len() - 1);
        if by.captures() > groups {
            return Err(FieldChangeError::Group(by.captures()));
        }
        Ok(Self { pattern: pattern.into(), regex, by })
    }

    /// The value with its first match replaced; `None` without a match.
    fn replaced(&self, value: &[u8], values: TemplateValues<'_>) -> Option<Vec<u8>> {
        let mut groups: CapturedBytes<'_> = CapturedBytes::new();
        let (start, end) = match &self.regex {
            None => {
                let start = memchr::memmem::find(value, self.pattern.as_bytes())?;
                (start, start + self.pattern.len())
            }
            Some(regex) => {
                let mut found = regex.room();
                regex.groups(value, 0, &mut found);
                let whole = found.get_group(0)?;
                let group = |at| found.get_group(at).map_or(&b""[..], |g| &value[g.start..g.end]);
                groups.extend((1..found.group_len()).map(group));
                (whole.start, whole.end)
            }
        };
        let mut new = value[..start].to_vec();
        self.by.write(TemplateValues { captures: &groups, ..values }, &mut new);
        new.extend_from_slice(&value[end..]);
        let new = new.trim_ascii();
        header::is_value(new).then(|| new.to_vec())
    }

    fn apply(&self, name: &FieldName, values: TemplateValues<'_>, block: &mut HeaderBlock) {
        let old: Vec<Vec<u8>> = name.values(block).map(<[u8]>::to_vec).collect();
        let new: Vec<Option<Vec<u8>>> =
            old.iter().map(|value| self.replaced(value, values)).collect();
        if new.iter().all(Option::is_none) {
            return;
        }
        block.remove_named(name.as_bytes());
        for (old, new) in old.into_iter().zip(new) {
            block.push_named(name.as_bytes(), &new.unwrap_or(old));
        }
    }
}

impl fmt::Display for ValueReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` becomes `{}`", self.pattern, self.by)
    }
}

impl HeaderOps {
    /// Replaces all fields called `name` by one; overrides earlier changes of that field.
    pub fn set(&mut self, name: FieldName, value: FieldText) {
        self.instead(name, FieldChange::Set(value));
    }

    /// Removes all fields called `name`; overrides earlier changes of that field.
    pub fn unset(&mut self, name: FieldName) {
        self.instead(name, FieldChange::Unset);
    }

    /// Adds a field called `name`.
    pub fn add(&mut self, name: FieldName, value: FieldText) {
        self.ops.push((name, FieldChange::Add(value)));
    }

    /// Replaces a part of the values of fields called `name`.
    pub fn replace(&mut self, name: FieldName, replacement: ValueReplacement) {
        self.ops.push((name, FieldChange::Replace(replacement)));
    }

    fn instead(&mut self, name: FieldName, change: FieldChange) {
        self.ops.retain(|(earlier, _)| !earlier.is(&name));
        self.ops.push((name, change));
    }

    /// Returns true if there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Returns true if a field called `name` is changed.
    pub(crate) fn speak_of(&self, name: &[u8]) -> bool {
        self.ops.iter().any(|(changed, _)| changed.is_spelt(name))
    }

    /// The changes.
    pub fn iter(&self) -> impl Iterator<Item = (&FieldName, &FieldChange)> {
        self.ops.iter().map(|(name, change)| (name, change))
    }

    /// Returns true if [`HeaderOps::apply`] needs values.
    pub(crate) fn need_values(&self) -> bool {
        self.ops.iter().any(|(_, change)| match change {
            FieldChange::Unset => false,
            FieldChange::Set(text) | FieldChange::Add(text) => text.template().is_some(),
            FieldChange::Replace(_) => true,
        })
    }

    /// The highest number of a part of the path that a value has; 0 without one.
    pub fn captures(&self) -> usize {
        let numbers = self.ops.iter().map(|(_, change)| match change {
            FieldChange::Set(text) | FieldChange::Add(text) => {
                text.template().map_or(0, Template::captures)
            }
            // Its captures are those of its own pattern.
            FieldChange::Unset | FieldChange::Replace(_) => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// Returns true if the value of the field called `name` depends on more of the request than its
    /// URL, which every key contains.
    pub(crate) fn tell_visitor(&self, name: &[u8]) -> bool {
        self.ops.iter().filter(|(own, _)| own.is_spelt(name)).any(|(_, change)| match change {
            FieldChange::Unset => false,
            FieldChange::Set(text) | FieldChange::Add(text) => {
                text.template().is_some_and(Template::tells_visitor)
            }
            FieldChange::Replace(own) => own.by.tells_visitor(),
        })
    }

    /// Applies the changes. Values are needed for some only; a change that lacks them is left out.
    pub fn apply(&self, block: &mut HeaderBlock, values: Option<TemplateValues<'_>>) {
        for (name, change) in &self.ops {
            let name_bytes = name.as_bytes();
            match change {
                FieldChange::Unset => block.remove_named(name_bytes),
                FieldChange::Set(text) => {
                    block.remove_named(name_bytes);
                    text.write(values, |value| block.push_named(name_bytes, value));
                }
                FieldChange::Add(text) => {
                    text.write(values, |value| block.push_named(name_bytes, value));
                }
                FieldChange::Replace(own) => {
                    if let Some(values) = values {
                        own.apply(name, values, block);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use message::{HeaderId, Request};
    use proptest::prelude::*;

    use super::*;

    fn name(text: &str) -> FieldName {
        FieldName::parse(text).expect("a name")
    }

    fn value(text: &str) -> FieldText {
        FieldText::parse(text).expect("a value")
    }

    /// The fields of a block after changes, in lines.
    fn changed(ops: &HeaderOps, fields: &[(&str, &str)], request: &Request) -> Vec<String> {
        let mut block = HeaderBlock::new();
        for (name, value) in fields {
            block.push_named(name.as_bytes(), value.as_bytes());
        }
        let captures: &[&[u8]] = &[b"one"];
        ops.apply(&mut block, Some(TemplateValues { request, client: None, captures }));
        let line = |field: header::Field<'_>| {
            format!("{}: {}", field.name.escape_ascii(), field.value.escape_ascii())
        };
        block.iter().map(line).collect()
    }

    #[test]
    fn the_last_change_of_a_field_counts() {
        let mut ops = HeaderOps::default();
        ops.set(name("X-A"), value("1"));
        ops.unset(name("x-a"));
        ops.unset(name("Server"));
        ops.set(name("SERVER"), value("larder"));
        let mut block = HeaderBlock::new();
        block.push_named(b"X-a", b"0");
        block.push(HeaderId::Server, b"Apache");
        block.push(HeaderId::Server, b"again");
        ops.apply(&mut block, None);
        let fields: Vec<_> = block.iter().map(|f| (f.name, f.value)).collect();
        assert_eq!(fields, [(&b"SERVER"[..], &b"larder"[..])]);
    }

    #[test]
    fn what_is_added_stands_beside_what_is_there() {
        let mut ops = HeaderOps::default();
        ops.add(name("Link"), value("<a>"));
        ops.add(name("Link"), value("<b>"));
        let lines = changed(&ops, &[("Link", "<0>")], &Request::new());
        assert_eq!(lines, ["Link: <0>", "Link: <a>", "Link: <b>"]);
        ops.set(name("link"), value("<c>"));
        assert_eq!(changed(&ops, &[("Link", "<0>")], &Request::new()), ["link: <c>"]);
    }

    #[test]
    fn a_part_of_a_value_is_replaced_once_in_each_field() {
        for (pattern, by, from, to) in [
            ("http://", "https://", "http://a/?http://", "https://a/?http://"),
            ("~ ^http://([^/]+)(.*)$", "https://$1:8443$2", "http://a/b", "https://a:8443/b"),
            ("~* ; *domain=[^;]*", "", "a=b; Domain=x.test; Path=/", "a=b; Path=/"),
            ("~ ^(/.*)$", "https://$host$1", "/b", "https://a.test/b"),
            ("b", "$$1", "abc", "a$1c"),
            ("x", "y", "abc", "abc"),
        ] {
            let mut ops = HeaderOps::default();
            let replacement = ValueReplacement::parse(pattern, by).expect("a replacement");
            ops.replace(name("Location"), replacement);
            let mut request = Request::new();
            request.host.extend_from_slice(b"a.test");
            let lines = changed(&ops, &[("location", from), ("X", from)], &request);
            let line = lines.iter().find(|line| line.to_ascii_lowercase().starts_with("location"));
            assert_eq!(line.expect("it").split_once(": ").expect("a field").1, to, "{pattern}");
        }
    }

    #[test]
    fn a_change_that_cannot_be_meant_is_refused() {
        for (text, why) in [
            ("$unknown", "unknown variable `$unknown`"),
            ("${host", "`${` without `}`"),
            ("a\nb", "a field value has no control characters"),
        ] {
            let error = FieldText::parse(text).expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(value("US$$5"), FieldText::Constant(FieldValue::parse("US$5").expect("one")));
        for (pattern, by, why) in [
            ("", "a", "an empty text"),
            ("~ (", "a", "unclosed group"),
            ("a", "$1", "`$1` stands for a group"),
            ("~ (a)", "$2", "`$2` stands for a group"),
            ("a", "$x", "unknown variable `$x`"),
        ] {
            let error = ValueReplacement::parse(pattern, by).expect_err(pattern).to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn what_depends_on_more_than_the_url_is_known() {
        for (text, tells) in
            [("a", false), ("$path$args$1$scheme", false), ("$client", true), ("${http.X}", true)]
        {
            let mut ops = HeaderOps::default();
            ops.set(name("X-A"), value(text));
            assert_eq!(ops.tell_visitor(b"x_a"), tells, "{text}");
            assert!(!ops.tell_visitor(b"x-b"));
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_client_sends_makes_a_second_field(
            sent in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let mut ops = HeaderOps::default();
            ops.set(name("X-A"), value("<${http.X}>"));
            ops.add(name("X-A"), value("${http.X}$1"));
            ops.replace(name("X-A"), ValueReplacement::parse("<", "${http.X}").expect("one"));
            let mut request = Request::new();
            request.headers.push_named(b"X", &sent);
            let mut block = HeaderBlock::new();
            let captures: &[&[u8]] = &[&sent];
            let values = TemplateValues { request: &request, client: None, captures };
            ops.apply(&mut block, Some(values));
            prop_assert!(block.iter().all(|f| header::is_value(f.value)
                && f.value.trim_ascii().len() == f.value.len()));
            prop_assert!(block.len() <= 2);
        }
    }
}
