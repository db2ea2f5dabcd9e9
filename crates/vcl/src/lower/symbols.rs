//! Symbols of a program: modules, access lists, probes, backends, subroutines, objects. A name
//! never has two meanings.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::source::SourceSpan;
use crate::vmod::{Class, Module};

/// Kind of a symbol.
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
    /// The kind with its article, for messages.
    pub(super) fn with_article(self) -> &'static str {
        match self {
            Self::Acl(_) => "an ACL",
            Self::Backend(_) => "a backend",
            Self::Probe(_) => "a probe",
            Self::Sub(_) => "a subroutine",
            Self::Module(_) => "a VMOD",
            Self::Object(..) => "an object",
        }
    }

    /// The keyword that declares the kind.
    pub(super) fn keyword(self) -> &'static str {
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

/// A declared name.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) kind: SymbolKind,
    pub(super) span: SourceSpan,
    pub(super) used: bool,
}

/// All declared names.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    /// By lower-case name: as in Varnish, names are compared without case.
    by_name: HashMap<Box<str>, Symbol>,
    /// Names in the order of declaration.
    order: Vec<Box<str>>,
    /// Number of access lists.
    pub(super) acls: u32,
    /// Number of backends.
    pub(super) backends: u32,
}

impl Symbols {
    /// The symbol `name`, without counting as a use.
    pub(super) fn get(&self, name: &str) -> Option<&Symbol> {
        self.by_name.get(&*folded(name))
    }

    /// The kind of `name`; counts as a use.
    pub(super) fn take(&mut self, name: &str) -> Option<SymbolKind> {
        let symbol = self.by_name.get_mut(&*folded(name))?;
        symbol.used = true;
        Some(symbol.kind)
    }

    /// Number of a subroutine.
    pub(super) fn sub(&self, name: &str) -> Option<u32> {
        match self.get(name)?.kind {
            SymbolKind::Sub(number) => Some(number),
            _ => None,
        }
    }

    /// Names of the kinds that `is` accepts.
    pub(super) fn names(&self, is: impl Fn(SymbolKind) -> bool) -> impl Iterator<Item = &str> {
        self.order
            .iter()
            .filter(move |name| is(self.by_name[&*folded(name)].kind))
            .map(|name| &**name)
    }

    /// All symbols in the order of declaration.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &Symbol)> {
        self.order.iter().map(|name| (&**name, &self.by_name[&*folded(name)]))
    }

    /// Adds a new name.
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

/// `name` in lower case.
pub(super) fn folded(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}
