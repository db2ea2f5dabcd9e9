//! Texts of settings with variables in them: `/new/$1`, `https://$host$path`.
//!
//! A template says which variables it has, so that a setting refuses those that it has no value
//! for. What is put in their place comes from clients: the code that uses the text checks it.

use std::fmt;

use message::Request;
use smallvec::SmallVec;

use crate::headers::FieldName;
use crate::peer::ConnectionPeer;

/// Bytes of path that a pattern's stars or groups stand for, in their order.
pub type CapturedBytes<'a> = SmallVec<[&'a [u8]; 4]>;

/// A text with variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<TemplatePiece>);

/// A piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplatePiece {
    Text(String),
    Variable(Variable),
}

/// Something of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `$host`: the host, and its port if one was named.
    Host,
    /// `$path`: the path.
    Path,
    /// `$query`: the query with its question mark; empty without one.
    Query,
    /// `$args`: the query without it.
    Args,
    /// `$scheme`: `http` or `https`.
    Scheme,
    /// `$client`: the address of the client.
    Client,
    /// `$1` to `$9`: what a star or a group of the route's path stands for.
    Capture(usize),
    /// `${http.Name}`: a field of the request.
    Field(FieldName),
}

/// The variables that a setting has values for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableSet {
    /// Parts of the URL, and captures: what is in every key.
    Url,
    /// These, the client, and fields.
    All,
}

/// Why a template could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// There is no such variable, and these are there.
    Variable(String, VariableSet),
    /// `${` without a `}`.
    Open,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name, known) => {
                write!(f, "unknown variable `${name}` (there are $host, $path, $query, $args, ")?;
                if *known == VariableSet::All {
                    f.write_str("$scheme, $client, ${http.Name} for a field, ")?;
                }
                f.write_str("$1-$9 and $$)")
            }
            Self::Open => f.write_str("`${` without `}`"),
        }
    }
}

impl std::error::Error for TemplateError {}

/// The values of variables.
#[derive(Clone, Copy, Debug)]
pub struct TemplateValues<'a> {
    /// The client's request.
    pub request: &'a Request,
    /// On whose behalf it is made.
    pub client: Option<ConnectionPeer>,
    /// The parts of the path that the pattern of its route stands for.
    pub captures: &'a [&'a [u8]],
}

impl Template {
    /// Reads a template; `$$` is a dollar sign.
    ///
    /// # Errors
    /// It has a variable that is not in `known`.
    pub fn parse(text: &str, known: VariableSet) -> Result<Self, TemplateError> {
        let (mut pieces, mut rest) = (Vec::new(), text);
        let mut plain = String::new();
        while let Some(at) = rest.find('$') {
            plain.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                plain.push('$');
                rest = after;
                continue;
            }
            let (name, after) = name_of(rest)?;
            let variable = Variable::named(name, known)
                .ok_or_else(|| TemplateError::Variable(name.to_owned(), known))?;
            if !plain.is_empty() {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(TemplatePiece::Variable(variable));
            rest = after;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(TemplatePiece::Text(plain));
        }
        Ok(Self(pieces))
    }

    /// Its pieces.
    pub(crate) fn pieces(&self) -> &[TemplatePiece] {
        &self.0
    }

    /// The text, if there are no variables.
    pub fn constant(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [TemplatePiece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The highest number of a capture; 0 without one.
    pub fn captures(&self) -> usize {
        let numbers = self.0.iter().map(|piece| match piece {
            TemplatePiece::Variable(Variable::Capture(number)) => *number,
            TemplatePiece::Text(_) | TemplatePiece::Variable(_) => 0,
        });
        numbers.max().unwrap_or(0)
    }

    /// Returns true if a value depends on more of the request than its URL, which is in every key.
    pub(crate) fn tells_visitor(&self) -> bool {
        self.0.iter().any(|piece| match piece {
            TemplatePiece::Variable(Variable::Client | Variable::Field(_)) => true,
            TemplatePiece::Text(_) | TemplatePiece::Variable(_) => false,
        })
    }

    /// Appends the text with values in the place of variables; one without a value is empty.
    pub fn write(&self, values: TemplateValues<'_>, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => out.extend_from_slice(text.as_bytes()),
                TemplatePiece::Variable(variable) => variable.write(values, out),
            }
        }
    }
}

impl fmt::Display for Template {
    /// The template as it would be written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = self.0.iter().peekable();
        while let Some(piece) = pieces.next() {
            let TemplatePiece::Variable(variable) = piece else {
                let TemplatePiece::Text(text) = piece else { continue };
                f.write_str(&text.replace('$', "$$"))?;
                continue;
            };
            let goes_on = pieces.peek().is_some_and(|next| match next {
                TemplatePiece::Text(text) => text.starts_with(is_of_name),
                TemplatePiece::Variable(_) => false,
            });
            let name = variable.to_string();
            // A capture is one digit, whatever follows.
            let is_closed = matches!(variable, Variable::Capture(_));
            match variable {
                Variable::Field(_) => write!(f, "${{{name}}}")?,
                _ if goes_on && !is_closed => write!(f, "${{{name}}}")?,
                _ => write!(f, "${name}")?,
            }
        }
        Ok(())
    }
}

/// The name of a variable at the start of `text`, behind its dollar, and what follows it.
fn name_of(text: &str) -> Result<(&str, &str), TemplateError> {
    if let Some(inner) = text.strip_prefix('{') {
        return inner.split_once('}').ok_or(TemplateError::Open);
    }
    let end = match text.as_bytes() {
        [b'0'..=b'9', ..] => 1,
        _ => text.find(|c| !is_of_name(c)).unwrap_or(text.len()),
    };
    Ok(text.split_at(end))
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Variable {
    fn named(name: &str, known: VariableSet) -> Option<Self> {
        if let [digit @ b'1'..=b'9'] = name.as_bytes() {
            return Some(Self::Capture(usize::from(digit - b'0')));
        }
        let of_url = match name {
            "host" => Some(Self::Host),
            "path" => Some(Self::Path),
            "query" => Some(Self::Query),
            "args" => Some(Self::Args),
            _ => None,
        };
        let further = || match name {
            "scheme" => Some(Self::Scheme),
            "client" => Some(Self::Client),
            _ => FieldName::parse(name.strip_prefix("http.")?).ok().map(Self::Field),
        };
        of_url.or_else(|| (known == VariableSet::All).then(further).flatten())
    }

    /// Appends its value.
    pub(crate) fn write(&self, values: TemplateValues<'_>, out: &mut Vec<u8>) {
        let request = values.request;
        match self {
            Self::Host => {
                out.extend_from_slice(&request.host);
                if let Some(port) = request.port {
                    out.extend_from_slice(format!(":{port}").as_bytes());
                }
            }
            Self::Path => out.extend_from_slice(request.path()),
            Self::Query => {
                if let Some(query) = request.query() {
                    out.push(b'?');
                    out.extend_from_slice(query);
                }
            }
            Self::Args => out.extend_from_slice(request.query().unwrap_or_default()),
            Self::Scheme => out.extend_from_slice(request.scheme.as_str().as_bytes()),
            Self::Client => {
                if let Some(client) = values.client {
                    out.extend_from_slice(client.to_string().as_bytes());
                }
            }
            Self::Capture(number) => {
                let captured = number.checked_sub(1).and_then(|at| values.captures.get(at));
                out.extend_from_slice(captured.copied().unwrap_or_default());
            }
            Self::Field(name) => {
                for (at, value) in name.values(&request.headers).enumerate() {
                    if at > 0 {
                        out.extend_from_slice(b", ");
                    }
                    out.extend_from_slice(value);
                }
            }
        }
    }
}

impl fmt::Display for Variable {
    /// Its name, without the dollar.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Path => f.write_str("path"),
            Self::Query => f.write_str("query"),
            Self::Args => f.write_str("args"),
            Self::Scheme => f.write_str("scheme"),
            Self::Client => f.write_str("client"),
            Self::Capture(number) => write!(f, "{number}"),
            Self::Field(name) => write!(f, "http.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use message::Scheme;
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut request = Request::new();
        request.scheme = Scheme::Https;
        request.host.extend_from_slice(b"a.test");
        request.port = Some(8443);
        request.target.extend_from_slice(b"/a/b?c=d");
        request.headers.push_named(b"X-Name", b"one");
        request.headers.push_named(b"x-name", b"two");
        let client = Some(ConnectionPeer::Host(IpAddr::from([192, 0, 2, 1])));
        let values = TemplateValues { request: &request, client, captures: &[b"first", b"second"] };
        let mut out = Vec::new();
        Template::parse(text, VariableSet::All).expect("a template").write(values, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn variables_stand_for_parts_of_the_request() {
        for (text, expected) in [
            ("$scheme://$host$path$query", "https://a.test:8443/a/b?c=d"),
            ("/x?$args&y", "/x?c=d&y"),
            ("${path}_${1}2$2$3.", "/a/b_first2second."),
            ("$12", "first2"),
            ("$client and ${http.X-Name}${http.X-Other}", "192.0.2.1 and one, two"),
            ("5 $$", "5 $"),
            ("", ""),
        ] {
            assert_eq!(written(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_variable_is_refused() {
        let error = |text, known| Template::parse(text, known).expect_err("no template");
        let unknown = |name: &str, known| TemplateError::Variable(name.to_owned(), known);
        let (url, all) = (VariableSet::Url, VariableSet::All);
        assert_eq!(error("$uri", all), unknown("uri", all));
        assert_eq!(error("$", all), unknown("", all));
        assert_eq!(error("$0", all), unknown("0", all));
        assert_eq!(error("${http.X Y}", all), unknown("http.X Y", all));
        assert_eq!(error("${path", url), TemplateError::Open);
        // They are in no key.
        assert_eq!(error("$client", url), unknown("client", url));
        assert_eq!(error("${http.X-A}", url), unknown("http.X-A", url));
    }

    proptest! {
        #[test]
        fn a_template_that_is_shown_is_the_same_template(
            text in "[$a1{}_/p]{0,12}|(\\$path|[$]host|x|1|[$]2|[$]\\{http[.]A\\}){0,5}",
        ) {
            if let Ok(template) = Template::parse(&text, VariableSet::All) {
                let again = Template::parse(&template.to_string(), VariableSet::All);
                prop_assert_eq!(again, Ok(template));
            }
        }
    }
}
