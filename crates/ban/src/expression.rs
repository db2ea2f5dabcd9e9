//! Conditions on stored responses.

use std::fmt;

use linear::{Options, Regex};

use crate::duration;
use crate::error::{Error, ErrorKind};
use crate::words::{self, ExpressionWord, quote};

/// Bytes a compiled regular expression may take.
pub const REGEX_BYTES: usize = 4 << 20;

const EQUALITY: &str = "`==`, `!=`, `~` or `!~`";
const ORDER: &str = "`==`, `!=`, `>`, `>=`, `<` or `<=`";

/// Facts about a stored response.
pub trait BanSubject {
    /// Path and query of the request it was stored under.
    fn url(&self) -> &[u8];
    /// The host of that request, with the port if it had one.
    fn host(&self) -> &[u8];
    /// Its status.
    fn status(&self) -> u16;
    /// Its age when the ban was made, in milliseconds.
    fn age_ms(&self) -> u64;
    /// The time that the response was to be fresh when it was stored, in milliseconds.
    fn ttl_ms(&self) -> u64;
    /// The time that the response is served stale while it is fetched anew, in milliseconds.
    fn grace_ms(&self) -> u64;
    /// The time that the response is kept beyond grace, for when the origin fails, in milliseconds.
    fn keep_ms(&self) -> u64;
    /// Returns true if `test` accepts a value of the field `name` of the response's head.
    fn any_value(&self, name: &str, test: &mut dyn FnMut(&[u8]) -> bool) -> bool;
}

/// The text that a condition looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// `req.url`: path and query.
    Url,
    /// `req.http.host`.
    Host,
    /// `obj.status`: the three digits.
    Status,
    /// `obj.http.NAME`, in the letters it was written in; they mean the same in either case.
    Header(String),
}

/// The number that a condition looks at: a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DurationField {
    Age,
    Ttl,
    Grace,
    Keep,
    LastHit,
}

/// The comparison of two numbers.
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

/// One condition.
#[derive(Clone, Debug)]
pub struct Term(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Equal { field: Field, not: bool, text: String },
    Match { field: Field, not: bool, regex: Regex },
    Compare { length: DurationField, order: ComparisonOperator, ms: f64, text: String },
}

/// The demand that a condition makes of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRequirement {
    /// That it is this.
    Equal(String),
    /// That this regular expression matches.
    Match(String),
    /// That something does not hold.
    Not,
}

/// Conditions that must all hold. Its text is what [`Expression::of_text`] reads again, and
/// [`Expression::parse`] where no argument is empty.
#[derive(Clone, Debug)]
pub struct Expression {
    terms: Vec<Term>,
}

/// Compiles a regular expression, which may take [`REGEX_BYTES`].
///
/// # Errors
/// When it is malformed or too large; the text says how. Look-around, back-references and atomic
/// groups with several ways to match are malformed here: matching takes time in proportion to what
/// is matched, whatever the expression.
pub fn regex(text: &str) -> Result<Regex, String> {
    let options = Options { program_bytes: REGEX_BYTES, ..Options::default() };
    Regex::new(text, options).map_err(|error| match error {
        linear::Error::TooLarge(_) => "too large".to_owned(),
        linear::Error::Syntax(why) => why,
    })
}

impl Term {
    /// `field == text`, or `!=`.
    pub fn equal(field: Field, not: bool, text: &str) -> Self {
        Self(Kind::Equal { field, not, text: text.to_owned() })
    }

    /// `field ~ regex`, or `!~`.
    pub fn matches(field: Field, not: bool, regex: Regex) -> Self {
        Self(Kind::Match { field, not, regex })
    }

    /// The text that the condition looks at, and what it wants of it; `None` for one on a number.
    fn wanted(&self) -> Option<(&Field, FieldRequirement)> {
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

    fn holds(&self, facts: &dyn BanSubject) -> bool {
        match &self.0 {
            Kind::Equal { field, not, text } => {
                field.any(facts, &mut |value| value == text.as_bytes()) != *not
            }
            Kind::Match { field, not: false, regex } => {
                field.any(facts, &mut |value| regex.is_match(value))
            }
            Kind::Match { field, not: true, regex } => {
                // Of what is not there neither holds, as in Varnish.
                let mut is_there = false;
                let mut matches = |value: &[u8]| {
                    is_there = true;
                    regex.is_match(value)
                };
                !field.any(facts, &mut matches) && is_there
            }
            Kind::Compare { length, order, ms, .. } => {
                length.of(facts).is_some_and(|length| order.holds(length, *ms))
            }
        }
    }
}

impl Expression {
    /// All of `terms` must hold; without any, every response is meant.
    pub fn all(terms: Vec<Term>) -> Self {
        Self { terms }
    }

    /// Reads an expression. Words are parted by blanks; a word that holds blanks stands in quotes,
    /// and a backslash is written twice, as on Varnish's command line.
    ///
    /// # Errors
    /// At the first word that is wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(&words::split(text)?, text.len(), filled)
    }

    /// Reads an expression as its `Display` writes it. Unlike [`Expression::parse`] this takes all
    /// that may have been built: empty arguments, and no condition at all.
    ///
    /// # Errors
    /// At the first word that is wrong.
    pub fn of_text(text: &str) -> Result<Self, Error> {
        match text {
            "" => Ok(Self::all(Vec::new())),
            text => Self::read(&words::split(text)?, text.len(), any),
        }
    }

    /// Reads an expression as a program writes it (`ban()`, `std.ban()`): words are parted by
    /// blanks, and a backslash or a quote is one.
    ///
    /// # Errors
    /// At the first word that is wrong.
    pub fn of_program(text: &str) -> Result<Self, Error> {
        Self::read(&words::blanks(text), text.len(), filled)
    }

    /// Reads an expression that was cut into words elsewhere. The words are taken as they are:
    /// quotes and backslashes have no special meaning.
    ///
    /// # Errors
    /// The fault of the first word that is wrong.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, ErrorKind> {
        let word = |text: &str| ExpressionWord { at: 0, text: text.to_owned() };
        let words: Vec<_> = words.into_iter().map(word).collect();
        Self::read(&words, 0, filled).map_err(|error| error.kind)
    }

    /// `end` is where the text ends, and `argument` says which arguments are taken.
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

    /// The text as Varnish lists it: nothing is quoted.
    pub fn listed(&self) -> String {
        let terms = self.terms.iter().map(|term| term.text(&|argument| argument.to_owned()));
        terms.collect::<Vec<_>>().join(" && ")
    }

    /// Returns true if the expression selects the response with these facts.
    pub fn matches(&self, facts: &dyn BanSubject) -> bool {
        self.terms.iter().all(|term| term.holds(facts))
    }

    /// Returns true if there are no conditions, so that every response is selected.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The texts that the conditions look at, and what they want of them; `None` if one is on a
    /// number.
    pub fn wanted(&self) -> Option<Vec<(&Field, FieldRequirement)>> {
        self.terms.iter().map(Term::wanted).collect()
    }

    /// Takes the conditions on some fields of heads out, for whoever knows better what they mean:
    /// the fields' names, and what is wanted of them.
    pub fn take_headers(&mut self, of: impl Fn(&str) -> bool) -> Vec<(String, FieldRequirement)> {
        let mut taken = Vec::new();
        self.terms.retain(|term| {
            let Some((Field::Header(name), wanted)) = term.wanted() else { return true };
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

/// The subject of a comparison: a text or a duration.
enum ComparisonSubject {
    Text(Field),
    Length(DurationField),
}

/// Looks at an argument, and gives it back if it may be one.
type Check = fn(&ExpressionWord) -> Result<&ExpressionWord, Error>;

/// Reads one condition, the first or another; `end` is where the text ends.
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

/// An empty argument is a slip: as an expression it would match everything.
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
    fn any(&self, facts: &dyn BanSubject, test: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        match self {
            Self::Url => test(facts.url()),
            Self::Host => test(facts.host()),
            Self::Status => test(facts.status().to_string().as_bytes()),
            Self::Header(name) => facts.any_value(name, test),
        }
    }
}

impl DurationField {
    /// `None` for what is not known of a response: nothing holds of that.
    fn of(self, facts: &dyn BanSubject) -> Option<u64> {
        match self {
            Self::Age => Some(facts.age_ms()),
            Self::Ttl => Some(facts.ttl_ms()),
            Self::Grace => Some(facts.grace_ms()),
            Self::Keep => Some(facts.keep_ms()),
            // A hit writes down no time: it would cost every hit something.
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

    /// Durations are far below what a float counts one by one.
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
    /// Its text, with field and argument written by `write`.
    fn text(&self, write: &dyn Fn(&str) -> String) -> String {
        // Words cut elsewhere may have put anything into a field's name.
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
