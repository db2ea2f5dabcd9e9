//! The names a program gives: modules, access lists, probes, backends, subroutines, objects.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::source::SourceSpan;
use crate::vmod::{Class, Module};

/// The meaning of a name.
#[derive(Clone, Copy, Debug)]
pub(super) enum SymbolKind {
    Acl(u32),
    Backend(u32),
    Probe(u32),
    Sub(u32),
    Module(&'static Module),
    Object(u32, &'static Class),
}

impl SymbolKind {
    /// The kind with its article, for a sentence.
    pub(super) fn a_word(self) -> &'static str {
        match self {
            Self::Acl(_) => "an ACL",
            Self::Backend(_) => "a backend",
            Self::Probe(_) => "a probe",
            Self::Sub(_) => "a subroutine",
            Self::Module(_) => "a VMOD",
            Self::Object(..) => "an object",
        }
    }

    /// The word that declares it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Acl(_) => "acl",
            Self::Backend(_) => "backend",
            Self::Probe(_) => "probe",
            Self::Sub(_) => "sub",
            Self::Module(_) => "vmod",
            Self::Object(..) => "object",
        }
    }
}

/// A name.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) kind: SymbolKind,
    pub(super) span: SourceSpan,
    pub(super) used: bool,
}

/// All names.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// By the name in small letters: their case does not count, as in Varnish.
    by_name: HashMap<Box<str>, Symbol>,
    /// The names in the order of the program.
    order: Vec<Box<str>>,
    /// The number of access lists.
    pub(super) acls: u32,
    /// The number of backends.
    pub(super) backends: u32,
}

impl Symbols {
    /// The symbol `name`. It does not count as used.
    pub(super) fn get(&self, name: &str) -> Option<&Symbol> {
        self.by_name.get(&*folded(name))
    }

    /// The meaning of `name`, which counts as used from now on.
    pub(super) fn take(&mut self, name: &str) -> Option<SymbolKind> {
        let symbol = self.by_name.get_mut(&*folded(name))?;
        symbol.used = true;
        Some(symbol.kind)
    }

    /// The number of a subroutine.
    pub(super) fn sub(&self, name: &str) -> Option<u32> {
        match self.get(name)?.kind {
            SymbolKind::Sub(number) => Some(number),
            _ => None,
        }
    }

    /// The names that stand for what `is` says.
    pub(super) fn names(&self, is: impl Fn(SymbolKind) -> bool) -> impl Iterator<Item = &str> {
        self.order
            .iter()
            .filter(move |name| is(self.by_name[&*folded(name)].kind))
            .map(|name| &**name)
    }

    /// All of them in the order of the program.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Symbol)> {
        self.order.iter().map(|name| (&**name, &self.by_name[&*folded(name)]))
    }

    /// Adds a name that is new.
    pub(super) fn put(&mut self, name: &str, kind: SymbolKind, span: SourceSpan) {
        match kind {
            SymbolKind::Acl(_) => self.acls += 1,
            SymbolKind::Backend(_) => self.backends += 1,
            _ => {}
        }
        self.order.push(name.into());
        self.by_name.insert(folded(name).into(), Symbol { kind, span, used: false });
    }
}

/// `name` in small letters.
pub(super) fn folded(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}
