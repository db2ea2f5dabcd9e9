//! Parameters of an SSI command as they come byte by byte, and the command that they make. An
//! unknown or repeated parameter never passes.

use super::command::{ConditionalPart, Kind};
use super::condition::SsiCondition;
use super::state::{SsiState, bad};
use super::text::{Encoding, SsiText};

/// Name and parameters of the command that is being read.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    name: Vec<u8>,
    list: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Parameters {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.list.clear();
    }

    /// Takes a byte of a command, and returns the next state.
    pub(super) fn step(&mut self, state: SsiState, byte: u8) -> SsiState {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match (state, byte) {
            (SsiState::Begun | SsiState::Between | SsiState::Named | SsiState::Equals, _)
                if is_space =>
            {
                state
            }
            (SsiState::Begun | SsiState::Name, b'a'..=b'z') => {
                self.name.push(byte);
                SsiState::Name
            }
            (SsiState::Name | SsiState::Quoted, _) if is_space => SsiState::Between,
            (SsiState::Name | SsiState::Between | SsiState::Quoted, b'-') => SsiState::End(1),
            (SsiState::Between, b'a'..=b'z') => {
                self.list.push((vec![byte], Vec::new()));
                SsiState::Parameter
            }
            (SsiState::Parameter, b'a'..=b'z' | b'_') => {
                self.last(|(name, _)| name.push(byte));
                SsiState::Parameter
            }
            (SsiState::Parameter, _) if is_space => SsiState::Named,
            (SsiState::Parameter | SsiState::Named, b'=') => SsiState::Equals,
            (SsiState::Equals, b'"' | b'\'') => SsiState::Value(byte),
            (SsiState::Value(quote), _) if byte == quote => SsiState::Quoted,
            (SsiState::Value(quote), _) => {
                self.last(|(_, value)| value.push(byte));
                if byte == b'\\' { SsiState::Escaped(quote) } else { state }
            }
            (SsiState::Escaped(quote), _) => {
                self.last(|(_, value)| value.push(byte));
                SsiState::Value(quote)
            }
            (SsiState::End(1), b'-') => SsiState::End(2),
            // This byte may already begin the end of a malformed command.
            (SsiState::Parameter | SsiState::Named | SsiState::Equals, b'-') => SsiState::Bad(1),
            _ => bad(state, byte),
        }
    }

    fn last(&mut self, act: impl FnOnce(&mut (Vec<u8>, Vec<u8>))) {
        if let Some(last) = self.list.last_mut() {
            act(last);
        }
    }

    /// The command in place of a malformed one.
    pub(super) fn fault(&self) -> Kind {
        match &self.name[..] {
            b"elif" | b"else" | b"endif" => Kind::Conditional(ConditionalPart::Bad),
            _ => Kind::Fault,
        }
    }

    /// The command, if its name is known and it has exactly its parameters.
    pub(super) fn command(&mut self) -> Kind {
        let command = self.read().filter(|_| self.list.is_empty());
        command.unwrap_or_else(|| self.fault())
    }

    fn read(&mut self) -> Option<Kind> {
        Some(match &self.name[..] {
            b"include" => self.include()?,
            b"echo" => {
                let encoding = match self.take(b"encoding").as_deref() {
                    Some(b"none") => Some(Encoding::Plain),
                    Some(b"url") => Some(Encoding::Url),
                    Some(b"entity") => Some(Encoding::Entity),
                    _ => None,
                };
                let (name, default) = (self.take(b"var")?, self.take(b"default"));
                Kind::Echo { name: name.to_ascii_lowercase(), default, encoding }
            }
            b"set" => {
                let (name, value) = (self.take(b"var")?, self.take(b"value")?);
                Kind::Set { name: name.to_ascii_lowercase(), value: SsiText::read(&value)? }
            }
            b"config" => {
                Kind::Config { message: self.take(b"errmsg"), date: self.take(b"timefmt") }
            }
            b"if" => Kind::Conditional(ConditionalPart::If(self.condition()?)),
            b"elif" => Kind::Conditional(ConditionalPart::Elif(self.condition()?)),
            b"else" => Kind::Conditional(ConditionalPart::Else),
            b"endif" => Kind::Conditional(ConditionalPart::End),
            b"block" => Kind::Block(self.take(b"name")?),
            b"endblock" => Kind::EndBlock,
            _ => return None,
        })
    }

    fn include(&mut self) -> Option<Kind> {
        let ((Some(src), None) | (None, Some(src))) = (self.take(b"virtual"), self.take(b"file"))
        else {
            return None;
        };
        let wait = match self.take(b"wait").as_deref() {
            None | Some(b"no") => false,
            Some(b"yes") => true,
            Some(_) => return None,
        };
        let set = self.take(b"set").map(|name| name.to_ascii_lowercase());
        Some(Kind::Include { src: SsiText::read(&src)?, wait, set, stub: self.take(b"stub") })
    }

    fn condition(&mut self) -> Option<SsiCondition> {
        SsiCondition::read(&self.take(b"expr")?)
    }

    fn take(&mut self, name: &[u8]) -> Option<Vec<u8>> {
        let index = self.list.iter().position(|(own, _)| own == name)?;
        Some(self.list.swap_remove(index).1)
    }
}
