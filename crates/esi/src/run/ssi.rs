//! SSI commands, executed in order as nginx does. A command that fails never fails the page.

use crate::address::{self, AddressRules};
use crate::environment::{Environment, of_cookies, of_query};
use crate::fragment::Fragment;
use crate::ssi::{
    ConditionalPart, Encoding, Kind, Pattern, SsiCondition, SsiText, SsiTextPart, encoded,
    formatted,
};

use super::values::Values;

/// nginx's message in place of a command that fails.
const MESSAGE: &[u8] = b"[an error occurred while processing the directive]";

/// State of the commands: conditional, message, date format and encoding.
#[derive(Debug, Default)]
pub(super) struct CommandContext {
    position: ConditionalPosition,
    is_off: bool,
    is_chosen: bool,
    is_used: bool,
    message: Option<Vec<u8>>,
    date: Option<Vec<u8>>,
    encoding: Option<Encoding>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConditionalPosition {
    #[default]
    Outside,
    If,
    Else,
}

/// The result of a command.
#[derive(Debug)]
pub(super) enum Outcome<'c> {
    /// Bytes replace the command.
    Bytes(Vec<u8>),
    /// A fragment replaces the command; the block of this name is its stub.
    Include { fragment: Fragment, block: Option<&'c [u8]> },
}

impl CommandContext {
    pub(super) const fn is_on(&self) -> bool {
        !self.is_off
    }

    /// Returns true if the page has commands. The names of its blocks are then no addresses, unlike
    /// those of inline fragments.
    pub(super) const fn is_used(&self) -> bool {
        self.is_used
    }

    /// The message in place of a command that fails.
    pub(super) fn message(&self) -> Vec<u8> {
        self.message.as_deref().unwrap_or(MESSAGE).to_vec()
    }

    /// Executes a command.
    pub(super) fn command<'c>(
        &mut self,
        command: &'c Kind,
        values: &mut Values,
        env: &dyn Environment,
    ) -> Outcome<'c> {
        self.is_used = true;
        // Where the output is switched off, the parts of a conditional other than its beginning
        // still count.
        let is_part =
            matches!(command, Kind::Conditional(part) if !matches!(part, ConditionalPart::If(_)));
        if self.is_off && !is_part {
            return Outcome::Bytes(Vec::new());
        }
        let done = match command {
            Kind::Fault => None,
            Kind::Include { src, wait, set, stub } => {
                return match address::ssi(&self.text(src, values, env)) {
                    Some(src) => {
                        let (wait, set, rules) = (*wait, set.clone(), AddressRules::Ssi);
                        let fragment = Fragment { src, wait, set, rules, ..Fragment::default() };
                        Outcome::Include { fragment, block: stub.as_deref() }
                    }
                    None => Outcome::Bytes(self.message()),
                };
            }
            Kind::Echo { name, default, encoding } => {
                self.echo(name, default.as_deref(), *encoding, values, env)
            }
            Kind::Set { name, value } => {
                let value = self.text(value, values, env);
                values.assign(name, value);
                Some(Vec::new())
            }
            Kind::Config { message, date } => {
                self.message = message.clone().or_else(|| self.message.take());
                self.date = date.clone().or_else(|| self.date.take());
                Some(Vec::new())
            }
            Kind::Conditional(part) => self.conditional(part, values, env).then(Vec::new),
            Kind::Block(_) | Kind::EndBlock => Some(Vec::new()),
        };
        Outcome::Bytes(done.unwrap_or_else(|| self.message()))
    }

    /// Executes a part of a conditional. Returns true if it is allowed here and has its condition.
    fn conditional(
        &mut self,
        part: &ConditionalPart,
        values: &mut Values,
        env: &dyn Environment,
    ) -> bool {
        match (part, self.position) {
            (ConditionalPart::If(condition), ConditionalPosition::Outside) => {
                let Some(holds) = self.holds(condition, values, env) else { return false };
                (self.position, self.is_off) = (ConditionalPosition::If, !holds);
                self.is_chosen = holds;
            }
            (ConditionalPart::Elif(condition), ConditionalPosition::If) => {
                let holds = match self.is_chosen {
                    true => Some(false),
                    false => self.holds(condition, values, env),
                };
                let Some(holds) = holds else { return false };
                self.is_off = !holds;
                self.is_chosen |= holds;
            }
            (ConditionalPart::Else, ConditionalPosition::If) => {
                (self.position, self.is_off) = (ConditionalPosition::Else, self.is_chosen);
            }
            (ConditionalPart::End, ConditionalPosition::If | ConditionalPosition::Else) => {
                (self.position, self.is_off) = (ConditionalPosition::Outside, false);
            }
            _ => return false,
        }
        true
    }

    /// Returns true if a condition holds; `None` if its expression has variables and turns out
    /// malformed.
    fn holds(
        &self,
        condition: &SsiCondition,
        values: &mut Values,
        env: &dyn Environment,
    ) -> Option<bool> {
        Some(match condition {
            SsiCondition::Is(text) => !self.text(text, values, env).is_empty(),
            SsiCondition::Compare { left, right, is_equal } => {
                (self.text(left, values, env) == self.text(right, values, env)) == *is_equal
            }
            SsiCondition::Match { left, pattern, is_match } => {
                let subject = self.text(left, values, env);
                let is_found = match pattern {
                    Pattern::Fixed(pattern) => finds(pattern, &subject, values),
                    Pattern::Open(text) => {
                        let pattern = Pattern::compiled(&self.text(text, values, env))?;
                        finds(&pattern, &subject, values)
                    }
                };
                is_found == *is_match
            }
        })
    }

    fn echo(
        &mut self,
        name: &[u8],
        default: Option<&[u8]>,
        encoding: Option<Encoding>,
        values: &Values,
        env: &dyn Environment,
    ) -> Option<Vec<u8>> {
        self.encoding = encoding.or(self.encoding);
        let is_date = matches!(name, b"date_local" | b"date_gmt");
        if is_date && self.date.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
        let value = self.variable(name, values, env);
        let value = value.as_deref().or(default).unwrap_or(b"(none)");
        Some(encoded(value, self.encoding.unwrap_or(Encoding::Entity)))
    }

    fn text(&self, text: &SsiText, values: &Values, env: &dyn Environment) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &text.0 {
            match piece {
                SsiTextPart::Literal(bytes) => out.extend_from_slice(bytes),
                SsiTextPart::Variable(name) => {
                    out.extend(self.variable(name, values, env).unwrap_or_default());
                }
            }
            if out.len() > values.most_bytes() {
                out.truncate(values.most_bytes());
                break;
            }
        }
        out
    }

    /// The value of a variable; its name is in lower case.
    fn variable(&self, name: &[u8], values: &Values, env: &dyn Environment) -> Option<Vec<u8>> {
        if let Some(value) = values.get(name) {
            return Some(value.clone());
        }
        match name {
            b"date_local" | b"date_gmt" => {
                return Some(formatted(self.date.as_deref(), env.unix_seconds()));
            }
            b"uri" | b"document_uri" => return Some(env.path().to_vec()),
            b"args" | b"query_string" => {
                return Some(env.query().to_vec()).filter(|query| !query.is_empty());
            }
            b"request_uri" if env.query().is_empty() => return Some(env.path().to_vec()),
            b"request_uri" => return Some([env.path(), b"?", env.query()].concat()),
            b"is_args" if env.query().is_empty() => return Some(Vec::new()),
            b"is_args" => return Some(b"?".to_vec()),
            b"host" => return Some(env.host().to_vec()),
            b"request_method" => return Some(b"GET".to_vec()),
            _ => {}
        }
        if let Some(name) = name.strip_prefix(b"arg_") {
            return of_query(env.query(), name, true).map(<[u8]>::to_vec);
        }
        if let Some(name) = name.strip_prefix(b"cookie_") {
            return of_cookies(&env.header(b"cookie")?, name);
        }
        if let Some(name) = name.strip_prefix(b"http_")
            && !name.contains(&b'-')
        {
            let dash = |byte: &u8| if *byte == b'_' { b'-' } else { *byte };
            let name: Vec<u8> = name.iter().map(dash).collect();
            return env.header(&name).map(std::borrow::Cow::into_owned);
        }
        env.variable(name).map(std::borrow::Cow::into_owned)
    }
}

/// Returns true if the pattern matches. Its groups become variables.
fn finds(pattern: &linear::Regex, subject: &[u8], values: &mut Values) -> bool {
    let mut groups = pattern.room();
    pattern.groups(subject, 0, &mut groups);
    let Some(id) = groups.pattern() else { return false };
    for (index, name) in groups.group_info().pattern_names(id).enumerate().skip(1) {
        let value = groups.get_group(index).map(|span| &subject[span.start..span.end]);
        let number = index.to_string();
        let names = [Some(number), name.map(str::to_ascii_lowercase)];
        for name in names.into_iter().flatten() {
            match value {
                Some(value) => values.assign(name.as_bytes(), value.to_vec()),
                None => values.remove(name.as_bytes()),
            }
        }
    }
    true
}
