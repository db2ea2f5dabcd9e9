//! Commands of SSI, carried out as nginx does: one after the other, with one level of `if`.

use std::sync::Arc;

use crate::address::{self, Rules};
use crate::document::Node;
use crate::environment::Environment;
use crate::error::Error;
use crate::fragment::{Fragment, Op};
use crate::ssi::{Condition, Encoding, Kind, Pattern, Piece, Switch, Text, encoded, formatted};

use super::{Run, bytes, of_cookies, of_query};

/// nginx's message in place of what cannot be done.
const MESSAGE: &[u8] = b"[an error occurred while processing the directive]";

/// State of a page with commands.
#[derive(Debug, Default)]
pub(super) struct Conditional {
    place: Place,
    is_off: bool,
    is_chosen: bool,
    is_used: bool,
    message: Option<Vec<u8>>,
    date: Option<Vec<u8>>,
    encoding: Option<Encoding>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    If,
    Else,
}

impl Conditional {
    pub(super) const fn is_on(&self) -> bool {
        !self.is_off
    }

    /// Tells whether the page has commands: its blocks are not addresses, as inline fragments are.
    pub(super) const fn is_used(&self) -> bool {
        self.is_used
    }
}

impl Run {
    pub(super) fn command(
        &mut self,
        command: &Kind,
        env: &dyn Environment,
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        self.ssi.is_used = true;
        // All parts of a conditional but its beginning count where nothing is sent.
        let is_part = matches!(command, Kind::Switch(switch) if !matches!(switch, Switch::If(_)));
        if self.ssi.is_off && !is_part {
            return Ok(());
        }
        let is_done = match command {
            Kind::Fault => false,
            Kind::Include { src, wait, set, stub } => {
                return self.ssi_include(src, (*wait, set, stub), env, ops);
            }
            Kind::Echo { name, default, encoding } => {
                self.echo(name, default.as_deref(), *encoding, env, ops)
            }
            Kind::Set { name, value } => {
                let value = self.text(value, env);
                self.assign(name, value);
                true
            }
            Kind::Config { message, date } => {
                self.ssi.message = message.clone().or_else(|| self.ssi.message.take());
                self.ssi.date = date.clone().or_else(|| self.ssi.date.take());
                true
            }
            Kind::Switch(switch) => self.switch(switch, env),
            Kind::Block(_) | Kind::EndBlock => true,
        };
        if !is_done {
            self.fault(ops);
        }
        Ok(())
    }

    fn fault(&self, ops: &mut Vec<Op>) {
        bytes(self.ssi.message.as_deref().unwrap_or(MESSAGE).to_vec(), ops);
    }

    /// Tells whether the part stands where it may, and has what it needs.
    fn switch(&mut self, switch: &Switch, env: &dyn Environment) -> bool {
        match (switch, self.ssi.place) {
            (Switch::If(condition), Place::Outside) => {
                let Some(holds) = self.holds(condition, env) else { return false };
                (self.ssi.place, self.ssi.is_off) = (Place::If, !holds);
                self.ssi.is_chosen = holds;
            }
            (Switch::Elif(condition), Place::If) => {
                let holds = match self.ssi.is_chosen {
                    true => Some(false),
                    false => self.holds(condition, env),
                };
                let Some(holds) = holds else { return false };
                self.ssi.is_off = !holds;
                self.ssi.is_chosen |= holds;
            }
            (Switch::Else, Place::If) => {
                (self.ssi.place, self.ssi.is_off) = (Place::Else, self.ssi.is_chosen);
            }
            (Switch::End, Place::If | Place::Else) => {
                (self.ssi.place, self.ssi.is_off) = (Place::Outside, false);
            }
            _ => return false,
        }
        true
    }

    /// Tells whether a condition holds; `None` if its expression, which has variables, is not one.
    fn holds(&mut self, condition: &Condition, env: &dyn Environment) -> Option<bool> {
        Some(match condition {
            Condition::Is(text) => !self.text(text, env).is_empty(),
            Condition::Compare { left, right, is_equal } => {
                (self.text(left, env) == self.text(right, env)) == *is_equal
            }
            Condition::Match { left, pattern, is_match } => {
                let subject = self.text(left, env);
                let is_found = match pattern {
                    Pattern::Fixed(pattern) => self.finds(pattern, &subject),
                    Pattern::Open(text) => {
                        let pattern = Pattern::compiled(&self.text(text, env))?;
                        self.finds(&pattern, &subject)
                    }
                };
                is_found == *is_match
            }
        })
    }

    /// Tells whether there is a match. Its groups become variables.
    fn finds(&mut self, pattern: &linear::Regex, subject: &[u8]) -> bool {
        let mut groups = pattern.room();
        pattern.groups(subject, 0, &mut groups);
        let Some(id) = groups.pattern() else { return false };
        for (index, name) in groups.group_info().pattern_names(id).enumerate().skip(1) {
            let value = groups.get_group(index).map(|span| &subject[span.start..span.end]);
            let number = index.to_string();
            let names = [Some(number), name.map(str::to_ascii_lowercase)];
            for name in names.into_iter().flatten() {
                match value {
                    Some(value) => self.assign(name.as_bytes(), value.to_vec()),
                    None => drop(self.values.all.remove(name.as_bytes())),
                }
            }
        }
        true
    }

    fn echo(
        &mut self,
        name: &[u8],
        default: Option<&[u8]>,
        encoding: Option<Encoding>,
        env: &dyn Environment,
        ops: &mut Vec<Op>,
    ) -> bool {
        self.ssi.encoding = encoding.or(self.ssi.encoding);
        let is_date = matches!(name, b"date_local" | b"date_gmt");
        if is_date && self.ssi.date.as_ref().is_some_and(Vec::is_empty) {
            return false;
        }
        let value = self.variable(name, env);
        let value = value.as_deref().or(default).unwrap_or(b"(none)");
        bytes(encoded(value, self.ssi.encoding.unwrap_or(Encoding::Entity)), ops);
        true
    }

    fn ssi_include(
        &mut self,
        src: &Text,
        (wait, set, stub): (bool, &Option<Vec<u8>>, &Option<Vec<u8>>),
        env: &dyn Environment,
        ops: &mut Vec<Op>,
    ) -> Result<(), Error> {
        let block: Option<Option<Arc<[Node]>>> =
            stub.as_ref().map(|name| self.inlines.get(&name[..]).map(Arc::clone));
        let (Some(src), None | Some(Some(_))) = (address::ssi(&self.text(src, env)), &block) else {
            self.fault(ops);
            return Ok(());
        };
        // A stub's own includes have none: so no stub is within itself.
        let stub = match block.flatten() {
            Some(nodes) if self.depth == 0 => {
                self.depth += 1;
                let mut stub = Vec::new();
                let done = self.all(&nodes, env, &mut stub);
                self.depth -= 1;
                done?;
                Some(stub)
            }
            _ => None,
        };
        let (set, rules) = (set.clone(), Rules::Ssi);
        let fragment = Fragment { src, stub, wait, set, rules, ..Fragment::default() };
        ops.push(Op::Include(Box::new(fragment)));
        Ok(())
    }

    fn text(&self, text: &Text, env: &dyn Environment) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &text.0 {
            match piece {
                Piece::Literal(bytes) => out.extend_from_slice(bytes),
                Piece::Variable(name) => out.extend(self.variable(name, env).unwrap_or_default()),
            }
            if out.len() > self.limits.value_bytes {
                out.truncate(self.limits.value_bytes);
                break;
            }
        }
        out
    }

    /// The value of a variable, whose name is in lower case.
    fn variable(&self, name: &[u8], env: &dyn Environment) -> Option<Vec<u8>> {
        if let Some(value) = self.values.all.get(name) {
            return Some(value.clone());
        }
        match name {
            b"date_local" | b"date_gmt" => {
                return Some(formatted(self.ssi.date.as_deref(), env.unix_seconds()));
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
            b"request_method" => return Some(env.method().to_vec()),
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
