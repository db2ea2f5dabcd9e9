//! Expressions of the syntax tree, lowered to terms: literals, names, calls. They never nest deeper
//! than the limit.

use std::sync::Arc;

use bytes::Bytes;

use crate::ast::{self, ExprKind, Name};
use crate::lower::Lowering;
use crate::lower::conversion::{TypedTerm, article};
use crate::lower::symbols::SymbolKind;
use crate::run::{Cond, Regsub, StringTerm, Term};
use crate::source::SourceSpan;
use crate::state::value::{Header, Value};
use crate::types::Type;
use crate::vars::{self, Lookup, StorageVar, Var};
use crate::vmod::Class;

/// Most nested expressions; execution recurses into them.
const DEPTH_MAX: u32 = 200;

/// `1m` where BYTES are expected.
const MEGABYTE: f64 = 1_048_576.0;

impl Lowering<'_> {
    /// Lowers `e`. `wanted` is the type that its place expects; it selects the meaning of some
    /// names, but the result is not converted to it. `None` after a reported error.
    pub(super) fn expr(&mut self, e: &ast::Expr, wanted: Type) -> Option<TypedTerm> {
        if self.depth >= DEPTH_MAX {
            self.report.error(e.span, "this expression is nested too deeply");
            return None;
        }
        self.depth += 1;
        let typed = self.expr_of(e, wanted);
        self.depth -= 1;
        typed
    }

    fn expr_of(&mut self, e: &ast::Expr, wanted: Type) -> Option<TypedTerm> {
        let span = e.span;
        Some(match &e.kind {
            ExprKind::String(bytes) => {
                TypedTerm::text(StringTerm::Const(Bytes::copy_from_slice(bytes)), span)
            }
            ExprKind::Int(n) if wanted == Type::Real => {
                TypedTerm::literal(Value::Real(*n as f64), Type::Real, span)
            }
            ExprKind::Int(n) => TypedTerm::literal(Value::Int(*n), Type::Int, span),
            ExprKind::Real(n) => TypedTerm::literal(Value::Real(*n), Type::Real, span),
            ExprKind::Minutes(n) if wanted == Type::Bytes => {
                TypedTerm::literal(Value::Bytes((n * MEGABYTE) as i64), Type::Bytes, span)
            }
            ExprKind::Minutes(n) => {
                TypedTerm::literal(Value::Duration(n * 60.0), Type::Duration, span)
            }
            ExprKind::Duration(n) => TypedTerm::literal(Value::Duration(*n), Type::Duration, span),
            ExprKind::Bytes(n) if wanted == Type::Bytes => {
                TypedTerm::literal(Value::Bytes(*n), Type::Bytes, span)
            }
            ExprKind::Bytes(_) => {
                self.report
                    .error(span, format!("this is a size, not {}", article(wanted)))
                    .note("sizes can be written only where a value of type BYTES is wanted");
                return None;
            }
            ExprKind::Parens(inner) => {
                let typed = self.expr(inner, wanted)?;
                TypedTerm { span, literal: false, ..typed }
            }
            ExprKind::Negative(inner) => self.negative(inner, span, wanted)?,
            ExprKind::Not(inner) => self.not(inner, span)?,
            ExprKind::Name(name) => self.name(name, wanted)?,
            ExprKind::Blob(bytes) => {
                let value = Value::Blob(Some(Bytes::copy_from_slice(bytes)));
                TypedTerm::new(Term::Const(value), Type::Blob, span)
            }
            ExprKind::Call(call) => self.call_expr(call)?,
            ExprKind::Method { object, call } => self.method_call(object, call)?,
            ExprKind::Binary { left, op, op_span, right } => {
                self.binary(left, *op, *op_span, right, e, wanted)?
            }
        })
    }

    /// Lowers `e`, converted to `wanted`.
    pub(super) fn value(&mut self, e: &ast::Expr, wanted: Type) -> Option<Term> {
        let typed = self.expr(e, wanted)?;
        self.convert(typed, wanted)
    }

    /// Lowers `e`, converted to a string.
    pub(super) fn string(&mut self, e: &ast::Expr) -> Option<StringTerm> {
        let typed = self.expr(e, Type::String)?;
        self.text_of(typed)
    }

    /// Lowers `e`, converted to a condition.
    pub(super) fn condition(&mut self, e: &ast::Expr) -> Option<Cond> {
        let typed = self.expr(e, Type::Bool)?;
        self.condition_of(typed)
    }

    fn not(&mut self, inner: &ast::Expr, span: SourceSpan) -> Option<TypedTerm> {
        let cond = self.condition(inner)?;
        Some(TypedTerm::cond(negated(cond), span))
    }

    fn name(&mut self, name: &Name, wanted: Type) -> Option<TypedTerm> {
        let span = name.span;
        match &*name.text.to_ascii_lowercase() {
            "true" => {
                return Some(TypedTerm::new(Term::Const(Value::Bool(true)), Type::Bool, span));
            }
            "false" => {
                return Some(TypedTerm::new(Term::Const(Value::Bool(false)), Type::Bool, span));
            }
            "default" if wanted == Type::Backend => {
                return Some(TypedTerm::new(Term::DefaultBackend, Type::Backend, span));
            }
            "default" => {
                self.report
                    .error(span, "`default` stands only where a backend is wanted")
                    .note("it is the backend that the program begins with");
                return None;
            }
            _ => {}
        }
        if let Some(typed) = self.symbol(name, wanted) {
            return typed;
        }
        if let Some(var) = vars::storage(&name.text) {
            return self.storage_fact(&var, span);
        }
        if let Some(storage) = name.text.strip_prefix("storage.") {
            return self.storage(storage, span);
        }
        if let Some(var) = vars::header(&name.text) {
            self.restrict(var.read, span, || format!("`{}` cannot be read", name.text));
            let header = self.header(var.message, var.name, span)?;
            return Some(match wanted {
                Type::Header => {
                    TypedTerm::new(Term::Const(Value::Header(header)), Type::Header, span)
                }
                _ => TypedTerm::text(StringTerm::Header(header), span),
            });
        }
        let var = self.variable(name, wanted)?;
        if var.kind == Type::Body {
            self.report
                .error(span, format!("`{}` can only be set", name.text))
                .note("VCL reads no bodies");
            return None;
        }
        self.restrict(var.read, span, || format!("`{}` cannot be read", name.text));
        Some(match var.borrow {
            Some(borrow) => TypedTerm::text(StringTerm::Borrowed(borrow), span),
            None if var.kind == Type::String => {
                TypedTerm::text(StringTerm::Shown(Box::new(Term::Var(var.get))), span)
            }
            None => TypedTerm::new(Term::Var(var.get), var.kind, span),
        })
    }

    /// Value of a declared name.
    fn symbol(&mut self, name: &Name, wanted: Type) -> Option<Option<TypedTerm>> {
        let kind = self.symbols.get(&name.text)?.kind;
        let (expr, ty) = match kind {
            SymbolKind::Acl(number) => (Term::Const(Value::Acl(number)), Type::Acl),
            // As in Varnish, a probe is its name where a string is expected.
            SymbolKind::Probe(_) if wanted == Type::String => {
                self.symbols.take(&name.text);
                let text = StringTerm::Const(name.text.to_string().into());
                return Some(Some(TypedTerm::text(text, name.span)));
            }
            SymbolKind::Probe(number) => (Term::Const(Value::Probe(number)), Type::Probe),
            SymbolKind::Backend(number) => (Term::Backend(number), Type::Backend),
            SymbolKind::Sub(number) if wanted == Type::Sub => {
                self.symbols.take(&name.text);
                self.calls(number, name.span);
                self.calls_sub = true;
                (Term::Const(Value::Sub(number)), Type::Sub)
            }
            SymbolKind::Sub(_) => {
                self.report
                    .error(name.span, format!("`{}` is a subroutine, not a value", name.text))
                    .help(format!("`call {};` calls it", name.text));
                return Some(None);
            }
            SymbolKind::Module(_) | SymbolKind::Object(..) => {
                let described = kind.with_article();
                let entry = self
                    .report
                    .error(name.span, format!("`{}` is {described}, not a value", name.text))
                    .expected(format!("a function: `{}.name(...)`", name.text));
                let picks = |class: &Class| class.methods.iter().any(|m| m.name == "backend");
                if matches!(kind, SymbolKind::Object(_, class) if picks(class)) {
                    entry.help(format!("`{}.backend()` is the backend it picks", name.text));
                }
                return Some(None);
            }
        };
        self.symbols.take(&name.text);
        Some(Some(TypedTerm::new(expr, ty, name.span)))
    }

    /// The variable `name`; reports an unknown one.
    pub(super) fn variable(&mut self, name: &Name, wanted: Type) -> Option<&'static Var> {
        let version = if self.in_builtin { 41 } else { self.version };
        match vars::find(&name.text, version) {
            Lookup::Found(var) => {
                self.check_variable(name);
                self.uses_var(var.name);
                Some(var)
            }
            Lookup::OtherVersion(_, until) => {
                let entry = self
                    .report
                    .error(name.span, format!("`{}` is not in VCL {}", name.text, shown(version)));
                if until < version {
                    entry.note("it is in VCL 4.0 only");
                    if let Some(help) = super::advice::replacement_of_variable(&name.text) {
                        entry.help(help);
                    }
                } else {
                    entry.help("begin the program with `vcl 4.1;`");
                }
                None
            }
            Lookup::Unknown(near) => {
                self.unknown_name(name, wanted, near);
                None
            }
        }
    }

    fn unknown_name(&mut self, name: &Name, wanted: Type, near: Option<&'static str>) {
        let text = &*name.text;
        if let Some((what, help)) = super::advice::old_name(text) {
            self.report.error(name.span, what).help(help);
            return;
        }
        if self.is_function(text) {
            self.report
                .error(name.span, format!("`{text}` is a function, not a value"))
                .help(format!("it is called: `{text}(...)`"));
            return;
        }
        let what = match wanted {
            Type::Backend => format!("there is no backend `{text}`"),
            Type::Acl => format!("there is no acl `{text}`"),
            Type::Probe => format!("there is no probe `{text}`"),
            Type::Sub => format!("there is no subroutine `{text}`"),
            _ if text.contains('.') => format!("there is no variable `{text}`"),
            _ => format!("`{text}` is not known"),
        };
        let candidates: Vec<&str> = match wanted {
            Type::Backend => self.symbols.names(|k| matches!(k, SymbolKind::Backend(_))).collect(),
            Type::Acl => self.symbols.names(|k| matches!(k, SymbolKind::Acl(_))).collect(),
            Type::Probe => self.symbols.names(|k| matches!(k, SymbolKind::Probe(_))).collect(),
            Type::Sub => self.symbols.names(|k| matches!(k, SymbolKind::Sub(_))).collect(),
            _ => self.symbols.names(|_| true).chain(near).collect(),
        };
        let entry = self.report.error(name.span, what);
        match crate::vars::nearest_header(text) {
            Some(header) => entry.help(format!("did you mean `{header}`?")),
            None => entry.did_you_mean(text, candidates),
        };
        if matches!(wanted, Type::String) && !text.contains('.') {
            entry.note("strings stand in double quotes");
        }
    }

    /// Returns true if `name` is a function: `regsub`, `regsuball`, or one of an imported module.
    fn is_function(&self, name: &str) -> bool {
        let Some((module, function)) = name.split_once('.') else {
            return matches!(name, "regsub" | "regsuball");
        };
        match self.symbols.get(module).map(|symbol| symbol.kind) {
            Some(SymbolKind::Module(module)) => module.functions.iter().any(|f| f.name == function),
            _ => false,
        }
    }

    /// The header `name` of a message, with its name checked.
    pub(super) fn header(
        &mut self,
        message: crate::state::value::VclMessage,
        name: &str,
        span: SourceSpan,
    ) -> Option<Header> {
        self.touches(message);
        if let Err(reason) = crate::headers::check_name(name) {
            self.report.error(span, format!("no header can be called `{name}`")).note(reason);
            return None;
        }
        Some(Header::new(message, name))
    }

    fn storage(&mut self, name: &str, span: SourceSpan) -> Option<TypedTerm> {
        let name = self.storage_called(name, span)?;
        let value = Value::Stevedore(Some(name));
        Some(TypedTerm::new(Term::Const(value), Type::Stevedore, span))
    }

    fn storage_fact(&mut self, var: &StorageVar<'_>, span: SourceSpan) -> Option<TypedTerm> {
        let storage = self.storage_called(var.storage, span)?;
        self.restrict(StorageVar::READ, span, || {
            format!("`storage.{}` cannot be read", var.storage)
        });
        let expr = Term::Storage(var.fact, storage);
        Some(TypedTerm::new(expr, var.fact.kind(), span))
    }

    /// The storage named `name`, compared without case.
    fn storage_called(&mut self, name: &str, span: SourceSpan) -> Option<Arc<str>> {
        let storages = self.input.rules.storages;
        if let Some(called) = storages.iter().find(|called| called.eq_ignore_ascii_case(name)) {
            return Some(Arc::from(*called));
        }
        self.report
            .error(span, format!("there is no storage `{name}`"))
            .did_you_mean(name, storages.iter().copied())
            .note(format!("storages: {}", storages.join(", ")));
        None
    }

    /// Number of a pattern, which has to be constant.
    pub(super) fn pattern(&mut self, e: &ast::Expr) -> Option<u32> {
        let typed = self.expr(e, Type::Regex)?;
        let Some(text) = typed.const_str().cloned() else {
            self.mismatch(&typed, Type::Regex);
            return None;
        };
        let Ok(pattern) = std::str::from_utf8(&text) else {
            self.report.error(e.span, "a pattern must be UTF-8");
            return None;
        };
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let number = match crate::regex::Regex::new(pattern, crate::regex::Limits::default()) {
            Ok(regex) => {
                self.parts.regexes.push(Arc::new(regex));
                Some(self.parts.regexes.len() as u32 - 1)
            }
            Err(error) => {
                self.report
                    .error(e.span, format!("this pattern is wrong: {}", error.message))
                    .here(format!("at byte {} of the pattern", error.at));
                None
            }
        };
        self.patterns.insert(pattern.into(), number);
        number
    }

    /// `regsub(...)` and `regsuball(...)`.
    pub(super) fn regsub(&mut self, call: &ast::CallExpr, all: bool) -> Option<TypedTerm> {
        for argument in &call.arguments {
            if let Some(name) = &argument.name {
                self.report.error(name.span, "the arguments of this function have no names");
                return None;
            }
        }
        let [subject, pattern, replacement] = &call.arguments[..] else {
            let found = call.arguments.len();
            self.report
                .error(call.span, format!("`{}` takes 3 arguments, not {found}", call.name.text))
                .expected("a string, a pattern and its replacement");
            return None;
        };
        let subject = self.string(&subject.value);
        let number = self.pattern(&pattern.value);
        let replacement = self.string(&replacement.value);
        let regex = Arc::clone(&self.parts.regexes[number? as usize]);
        let regsub = Regsub { subject: subject?, regex, replacement: replacement?, all };
        Some(TypedTerm::text(StringTerm::Regsub(Box::new(regsub)), call.span))
    }

    pub(super) fn name_of_acl(&self, number: u32) -> Bytes {
        self.name_of(|kind| matches!(kind, SymbolKind::Acl(other) if other == number))
    }

    fn name_of(&self, is: impl Fn(SymbolKind) -> bool) -> Bytes {
        let mut names = self.symbols.names(is);
        names.next().map_or_else(Bytes::new, |name| name.to_string().into())
    }
}

/// `!cond`
pub(super) fn negated(cond: Cond) -> Cond {
    match cond {
        Cond::Const(known) => Cond::Const(!known),
        Cond::Not(inner) => *inner,
        cond => Cond::Not(Box::new(cond)),
    }
}

/// `4.1` of 41.
pub(super) fn shown(version: u32) -> String {
    format!("{}.{}", version / 10, version % 10)
}
