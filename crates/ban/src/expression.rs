//! Expression of a ban: conditions on a stored response, read, printed and evaluated. Evaluation
//! never fetches, allocates no regular expression and takes time linear in the subject.

use std::fmt;

use linear::{Options, Regex};

use crate::duration;
use crate::error::{Error, ErrorKind};
use crate::words::{self, ExpressionWord, quote};

/// Most bytes of one compiled regular expression.
pub const REGEX_BYTES: usize = 4 << 20;

const EQUALITY: &str = "`==`, `!=`, `~` or `!~`";
const ORDER: &str = "`==`, `!=`, `>`, `>=`, `<` or `<=`";

/// The stored response that a ban is tested against.
pub trait BanSubject {
    /// Path and query of the request that the response is stored under.
    fn url(&self) -> &[u8];
    /// Host of that request, with the port if the request named one.
    fn host(&self) -> &[u8];
    /// Status of the response.
    fn status(&self) -> u16;
    /// Age of the response when the ban was made, in milliseconds.
    fn age_ms(&self) -> u64;
    /// TTL that the response was stored with, in milliseconds.
    fn ttl_ms(&self) -> u64;
    /// Grace period that the response was stored with, in milliseconds.
    fn grace_ms(&self) -> u64;
    /// Keep period that the response was stored with, in milliseconds.
    fn keep_ms(&self) -> u64;
    /// Returns true if `test` accepts a value of the response's field `name`.
    fn any_value(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

/// The text field that a condition tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// `req.url`: path and query.
    Url,
    /// `req.http.host`.
    Host,
    /// `obj.status`: the three digits.
    Status,
    /// `obj.http.NAME`, spelled as written; names are compared without case.
    Header(String),
}

/// The duration field that a condition tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DurationField {
    Age,
    Ttl,
    Grace,
    Keep,
    LastHit,
}

/// Comparison operator between two durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOperator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
}

/// One condition of an expression.
#[derive(Clone, Debug)]
pub struct Term(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Equal { field: Field, not: bool, text: String },
    Match { field: Field, not: bool, regex: Regex },
    Compare { length: DurationField, order: ComparisonOperator, ms: f64, text: String },
}

/// The requirement of a condition on a text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRequirement {
    /// The field equals this text.
    Equal(String),
    /// The field matches this regular expression.
    Match(String),
    /// A negated condition: `!=` or `!~`.
    Not,
}

/// A ban expression: conditions that must all hold. [`Expression::of_text`] reads its `Display`
/// form again, and so does [`Expression::parse`] if no argument is empty.
#[derive(Clone, Debug)]
pub struct Expression {
    terms: Vec<Term>,
}

/// Compiles a regular expression of at most [`REGEX_BYTES`].
///
/// # Errors
/// If the expression is malformed or too large; the text gives the reason. Look-around,
/// back-references and atomic groups with several ways to match are rejected, so that matching
/// takes linear time.
pub fn regex(text: &str) -> Result<Regex, String> {
    let options = Options { program_bytes: REGEX_BYTES, ..Options::default() };
    Regex::new(text, options).map_err(|error| match error {
        linear::Error::TooLarge(_) => "too large".to_owned(),
        linear::Error::Syntax(why) => why,
    })
}

impl Term {
    /// Condition `field == text`, or `field != text` with `not`.
    pub fn equal(field: Field, not: bool, text: &str) -> Self {
        Self(Kind::Equal { field, not, text: text.to_owned() })
    }

    /// Condition `field ~ regex`, or `field !~ regex` with `not`.
    pub fn matches(field: Field, not: bool, regex: Regex) -> Self {
        Self(Kind::Match { field, not, regex })
    }

    /// The text field that the condition tests, and its requirement; `None` for a duration field.
    fn requirement(&self) -> Option<(&Field, FieldRequirement)> {
        match &self.0 {
            Kind::Equal { field, not: true, .. } | Kind::Match { field, not: true, .. } => {
                Some((field, FieldRequirement::Not))
            }
            Kind::Equal { field, text, .. } => Some((field, FieldRequirement::Equal(text.clone()))),
            Kind::Match { field, regex, .. } => {
                Some((field, FieldRequirement::Match(regex.as_str().to_owned())))
            }
            Kind::Compare { .. } => None,
        }
    }

    fn holds(&self, subject: &dyn BanSubject) -> bool {
        match &self.0 {
            Kind::Equal { field, not, text } => {
                field.any(subject, &mut |value| value == text.as_bytes()) != *not
            }
            Kind::Match { field, not: false, regex } => {
                field.any(subject, &mut |value| regex.is_match(value))
            }
            Kind::Match { field, not: true, regex } => {
                // As in Varnish, neither `~` nor `!~` holds of an absent field.
                let mut is_there = false;
                let mut matches = |value: &[u8]| {
                    is_there = true;
                    regex.is_match(value)
                };
                !field.any(subject, &mut matches) && is_there
            }
            Kind::Compare { length, order, ms, .. } => {
                length.of(subject).is_some_and(|length| order.holds(length, *ms))
            }
        }
    }
}

impl Expression {
    /// Expression of `terms`, which must all hold. Without terms it selects every response.
    pub fn all(terms: Vec<Term>) -> Self {
        Self { terms }
    }

    /// Reads an expression from a command line. Blanks separate words, quotes enclose a word with
    /// blanks, and backslashes are escapes, as in Varnish's CLI.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(&words::split(text)?, text.len(), filled)
    }

    /// Reads the `Display` form of an expression. Unlike [`Expression::parse`] it accepts empty
    /// arguments and an expression without conditions.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub fn of_text(text: &str) -> Result<Self, Error> {
        match text {
            "" => Ok(Self::all(Vec::new())),
            text => Self::read(&words::split(text)?, text.len(), any),
        }
    }

    /// Reads an expression of a VCL program (`ban()`, `std.ban()`): blanks separate words; quotes
    /// and backslashes are ordinary bytes.
    ///
    /// # Errors
    /// The first word that is wrong.
    pub fn of_program(text: &str) -> Result<Self, Error> {
        Self::read(&words::blanks(text), text.len(), filled)
    }

    /// Reads an expression that is already split into words. Quotes and backslashes in the words
    /// are ordinary bytes.
    ///
    /// # Errors
    /// The error of the first word that is wrong.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ErrorKind> {
        let word = |text: &str| ExpressionWord { at: 0, text: text.to_owned() };
        let words: Vec<_> = words.into_iter().map(word).collect();
        Self::read(&words, 0, filled).map_err(|error| error.kind)
    }

    /// Reads conditions from `words`. `end` is the offset of the text's end for errors, and
    /// `argument` checks each argument.
    fn read(words: &[ExpressionWord], end: usize, argument: Check) -> Result<Self, Error> {
        let mut words = words.iter();
        let mut terms = Vec::new();
        loop {
            terms.push(term(&mut words, end, terms.is_empty(), argument)?);
            match words.next() {
                None => return Ok(Self { terms }),
                Some(and) if and.text == "&&" => {}
                Some(other) => return Err(error(other, ErrorKind::And(other.text.clone()))),
            }
        }
    }

    /// The text that `ban.list` shows: without quotes.
    pub fn listed(&self) -> String {
        let terms = self.terms.iter().map(|term| term.text(&|argument| argument.to_owned()));
        terms.collect::<Vec<_>>().join(" && ")
    }

    /// Returns true if the expression selects the response.
    pub fn matches(&self, subject: &dyn BanSubject) -> bool {
        self.terms.iter().all(|term| term.holds(subject))
    }

    /// Returns true if the expression has no conditions and so selects every response.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The text fields that the conditions test, with their requirements; `None` if a condition
    /// tests a duration.
    pub fn requirements(&self) -> Option<Vec<(&Field, FieldRequirement)>> {
        self.terms.iter().map(Term::requirement).collect()
    }

    /// Removes the conditions on the header fields that `of` selects, and returns their names and
    /// requirements. The caller has to test them itself.
    pub fn take_headers(&mut self, of: impl Fn(&str) -> bool) -> Vec<(String, FieldRequirement)> {
        let mut taken = Vec::new();
        self.terms.retain(|term| {
            let Some((Field::Header(name), wanted)) = term.requirement() else { return true };
            if !of(name) {
                return true;
            }
            taken.push((name.clone(), wanted));
            false
        });
        taken
    }
}

fn error(word: &ExpressionWord, kind: ErrorKind) -> Error {
    Error { at: word.at, kind }
}

/// The subject of a comparison: a text field or a duration field.
enum ComparisonSubject {
    Text(Field),
    Length(DurationField),
}

/// Check of an argument, which returns the argument if it is accepted.
type Check = fn(&ExpressionWord) -> Result<&ExpressionWord, Error>;

/// Reads one condition from `words`; `end` is the offset of the text's end.
fn term<'a>(
    words: &mut impl Iterator<Item = &'a ExpressionWord>,
    end: usize,
    first: bool,
    check: Check,
) -> Result<Term, Error> {
    let missing = |kind| Error { at: end, kind };
    let name = words.next().ok_or_else(|| match first {
        true => missing(ErrorKind::Empty),
        false => missing(ErrorKind::Field(String::new())),
    })?;
    let what = what(name)?;
    let expected = if matches!(what, ComparisonSubject::Text(_)) { EQUALITY } else { ORDER };
    let no_operator = |found: String| ErrorKind::Operator { found, expected };
    let operator = words.next().ok_or_else(|| missing(no_operator(String::new())))?;
    let wrong = || error(operator, no_operator(operator.text.clone()));
    let argument = words.next().ok_or_else(|| missing(ErrorKind::Argument));
    let kind = match (what, operator.text.as_str()) {
        (ComparisonSubject::Text(field), sign @ ("==" | "!=")) => {
            let text = check(argument?)?.text.clone();
            Kind::Equal { field, not: sign == "!=", text }
        }
        (ComparisonSubject::Text(field), sign @ ("~" | "!~")) => {
            let argument = check(argument?)?;
            let regex = regex(&argument.text).map_err(|w| error(argument, ErrorKind::Regex(w)))?;
            Kind::Match { field, not: sign == "!~", regex }
        }
        (ComparisonSubject::Text(_), _) => return Err(wrong()),
        (ComparisonSubject::Length(length), sign) => {
            let order = ComparisonOperator::of(sign).ok_or_else(wrong)?;
            let argument = filled(argument?)?;
            let text = argument.text.clone();
            let ms = duration::parse_ms(&text)
                .ok_or_else(|| error(argument, ErrorKind::Duration(text.clone())))?;
            Kind::Compare { length, order, ms, text }
        }
    };
    Ok(Term(kind))
}

/// Rejects an empty argument: as a regular expression it would match every response.
fn filled(argument: &ExpressionWord) -> Result<&ExpressionWord, Error> {
    if argument.text.is_empty() { Err(error(argument, ErrorKind::Argument)) } else { Ok(argument) }
}

fn any(argument: &ExpressionWord) -> Result<&ExpressionWord, Error> {
    Ok(argument)
}

fn what(word: &ExpressionWord) -> Result<ComparisonSubject, Error> {
    let name = word.text.as_str();
    Ok(match name {
        "req.url" => ComparisonSubject::Text(Field::Url),
        "obj.status" => ComparisonSubject::Text(Field::Status),
        "obj.age" => ComparisonSubject::Length(DurationField::Age),
        "obj.ttl" => ComparisonSubject::Length(DurationField::Ttl),
        "obj.grace" => ComparisonSubject::Length(DurationField::Grace),
        "obj.keep" => ComparisonSubject::Length(DurationField::Keep),
        "obj.last_hit" => ComparisonSubject::Length(DurationField::LastHit),
        _ => match (name.strip_prefix("obj.http."), name.strip_prefix("req.http.")) {
            (Some(name), _) => ComparisonSubject::Text(Field::Header(name.to_owned())),
            (None, Some(host)) if host.eq_ignore_ascii_case("host") => {
                ComparisonSubject::Text(Field::Host)
            }
            (None, Some(_)) => {
                return Err(error(word, ErrorKind::RequestField(name.to_owned())));
            }
            (None, None) => return Err(error(word, ErrorKind::Field(name.to_owned()))),
        },
    })
}

impl Field {
    fn any(&self, subject: &dyn BanSubject, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        match self {
            Self::Url => test(subject.url()),
            Self::Host => test(subject.host()),
            Self::Status => test(subject.status().to_string().as_bytes()),
            Self::Header(name) => subject.any_value(name, test),
        }
    }
}

impl DurationField {
    /// The duration of the response; `None` if it is not recorded, and then no comparison holds.
    fn of(self, subject: &dyn BanSubject) -> Option<u64> {
        match self {
            Self::Age => Some(subject.age_ms()),
            Self::Ttl => Some(subject.ttl_ms()),
            Self::Grace => Some(subject.grace_ms()),
            Self::Keep => Some(subject.keep_ms()),
            // The time of the last hit is not recorded: recording it would make each hit slower.
            Self::LastHit => None,
        }
    }
}

impl ComparisonOperator {
    fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            _ => return None,
        })
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
        }
    }

    /// Durations are far below the range in which a float loses integers.
    fn holds(self, value_ms: u64, than_ms: f64) -> bool {
        let value_ms = value_ms as f64;
        match self {
            Self::Equal => value_ms == than_ms,
            Self::NotEqual => value_ms != than_ms,
            Self::Greater => value_ms > than_ms,
            Self::GreaterOrEqual => value_ms >= than_ms,
            Self::Less => value_ms < than_ms,
            Self::LessOrEqual => value_ms <= than_ms,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url => f.write_str("req.url"),
            Self::Host => f.write_str("req.http.host"),
            Self::Status => f.write_str("obj.status"),
            Self::Header(name) => write!(f, "obj.http.{name}"),
        }
    }
}

impl Term {
    /// The condition as text; `write` prints field and argument.
    fn text(&self, write: &dyn Fn(&str) -> String) -> String {
        // `Expression::of_words` accepts any text as a field's name.
        let field = |field: &Field| write(&field.to_string());
        match &self.0 {
            Kind::Equal { field: of, not, text } => {
                format!("{} {} {}", field(of), if *not { "!=" } else { "==" }, write(text))
            }
            Kind::Match { field: of, not, regex } => {
                format!("{} {} {}", field(of), if *not { "!~" } else { "~" }, write(regex.as_str()))
            }
            Kind::Compare { length, order, text, .. } => {
                let name = match length {
                    DurationField::Age => "age",
                    DurationField::Ttl => "ttl",
                    DurationField::Grace => "grace",
                    DurationField::Keep => "keep",
                    DurationField::LastHit => "last_hit",
                };
                format!("obj.{name} {} {text}", order.sign())
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&quote))
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            write!(f, "{}{term}", if at > 0 { " && " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
