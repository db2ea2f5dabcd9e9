//! Conversion between types at compile time, as in Varnish. No conversion happens that Varnish
//! rejects.

use bytes::Bytes;

use crate::lower::Lowering;
use crate::run::{Cond, StringTerm, Term, append_plain};
use crate::source::SourceSpan;
use crate::state::value::Value;
use crate::text::address;
use crate::types::Type;

/// Compiled expression with its type.
#[derive(Debug)]
pub(super) struct TypedTerm {
    pub(super) expr: Term,
    pub(super) ty: Type,
    pub(super) span: SourceSpan,
    /// True for a literal number: a whole one is accepted as a REAL.
    pub(super) literal: bool,
}

impl TypedTerm {
    pub(super) fn new(expr: Term, ty: Type, span: SourceSpan) -> Self {
        Self { expr, ty, span, literal: false }
    }

    pub(super) fn text(text: StringTerm, span: SourceSpan) -> Self {
        Self::new(Term::Text(Box::new(text)), Type::String, span)
    }

    pub(super) fn cond(cond: Cond, span: SourceSpan) -> Self {
        Self::new(Term::Cond(Box::new(cond)), Type::Bool, span)
    }

    pub(super) fn literal(value: Value, ty: Type, span: SourceSpan) -> Self {
        Self { literal: true, ..Self::new(Term::Const(value), ty, span) }
    }

    /// The string, if it is a constant.
    pub(super) fn const_str(&self) -> Option<&Bytes> {
        match &self.expr {
            Term::Text(text) => match &**text {
                StringTerm::Const(bytes) => Some(bytes),
                _ => None,
            },
            _ => None,
        }
    }

    /// The value, if it is a constant other than a string.
    pub(super) fn const_value(&self) -> Option<&Value> {
        match &self.expr {
            Term::Const(value) => Some(value),
            _ => None,
        }
    }
}

impl Lowering<'_> {
    /// Converts `typed` to `wanted`; reports an error if that is impossible.
    pub(super) fn convert(&mut self, typed: TypedTerm, wanted: Type) -> Option<Term> {
        if typed.ty == wanted {
            return Some(typed.expr);
        }
        match wanted {
            Type::String => return self.text_of(typed).map(|text| Term::Text(Box::new(text))),
            Type::Bool => return self.condition_of(typed).map(|cond| Term::Cond(Box::new(cond))),
            Type::Real if typed.literal => {
                if let Some(Value::Int(n)) = typed.const_value() {
                    return Some(Term::Const(Value::Real(*n as f64)));
                }
            }
            Type::Ip => {
                if let Some(text) = typed.const_str().cloned() {
                    return self.address(&text, typed.span);
                }
            }
            Type::Body if matches!(typed.ty, Type::Blob) => return Some(typed.expr),
            Type::Body => return self.text_of(typed).map(|text| Term::Text(Box::new(text))),
            _ => {}
        }
        self.mismatch(&typed, wanted);
        None
    }

    /// Converts `typed` to a string. As in Varnish, each type with a text form can be converted.
    pub(super) fn text_of(&mut self, typed: TypedTerm) -> Option<StringTerm> {
        match (typed.ty, typed.expr) {
            (Type::String, Term::Text(text)) => Some(*text),
            (Type::Acl, Term::Const(Value::Acl(number))) => {
                Some(StringTerm::Const(self.name_of_acl(number)))
            }
            (
                Type::Probe
                | Type::Sub
                | Type::Void
                | Type::Http
                | Type::Regex
                | Type::Body
                | Type::Instance(_),
                expr,
            ) => {
                let typed = TypedTerm::new(expr, typed.ty, typed.span);
                self.mismatch(&typed, Type::String);
                None
            }
            (_, Term::Const(value)) if shows_as_it_is(&value) => {
                let mut out = Vec::new();
                // As in Varnish, a number too large for a string fails at run time.
                Some(match append_plain(&value, &mut out) {
                    Ok(()) => StringTerm::Const(out.into()),
                    Err(_) => StringTerm::Shown(Box::new(Term::Const(value))),
                })
            }
            (_, expr) => Some(StringTerm::Shown(Box::new(expr))),
        }
    }

    /// Converts `typed` to a condition.
    pub(super) fn condition_of(&mut self, typed: TypedTerm) -> Option<Cond> {
        match typed.ty {
            Type::Bool => Some(match typed.expr {
                Term::Cond(cond) => *cond,
                Term::Const(Value::Bool(known)) => Cond::Const(known),
                other => Cond::Value(other),
            }),
            Type::String => self.text_of(typed).map(|text| match text {
                StringTerm::Const(_) => Cond::Const(true),
                text => Cond::Is(text),
            }),
            Type::Int | Type::Duration | Type::Backend => Some(Cond::Value(typed.expr)),
            _ => {
                self.mismatch(&typed, Type::Bool);
                None
            }
        }
    }

    /// Reports an unexpected type.
    pub(super) fn mismatch(&mut self, typed: &TypedTerm, wanted: Type) {
        if typed.ty == Type::Void {
            self.report
                .error(typed.span, "this function returns nothing")
                .expected(format!("a value of type {wanted}"));
            return;
        }
        let message = format!("this is {}, not {}", article(typed.ty), article(wanted));
        let unquoted = typed.const_str().and_then(|text| unquoted(text, wanted));
        let entry = self.report.error(typed.span, message).expected(wanted.name());
        if let Some(text) = unquoted {
            entry.help(format!("write it without quotes: `{text}`"));
        } else if let Some(help) = advice(typed.ty, wanted) {
            entry.help(help);
        }
    }

    /// A constant address.
    fn address(&mut self, text: &[u8], span: SourceSpan) -> Option<Term> {
        let host = String::from_utf8_lossy(text);
        match address::constant(&host, |name| self.input.loader.resolve(name)) {
            Ok(address) => Some(Term::Const(Value::Ip(Some(address)))),
            Err(reason) => {
                self.report.error(span, format!("`{host}` has no address: {reason}"));
                None
            }
        }
    }
}

fn shows_as_it_is(value: &Value) -> bool {
    !matches!(value, Value::Header(_) | Value::Backend(_) | Value::Stevedore(_))
}

pub(super) fn article(ty: Type) -> String {
    let an = matches!(ty, Type::Acl | Type::Int | Type::Ip | Type::Enum | Type::Instance(_));
    format!("{} {ty}", if an { "an" } else { "a" })
}

/// The constant, if it should be written without quotes.
fn unquoted(text: &[u8], wanted: Type) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?;
    let number = || text.strip_suffix(|c: char| c.is_ascii_alphabetic()).unwrap_or(text);
    let is_so = match wanted {
        Type::Int => text.parse::<i64>().is_ok(),
        Type::Real => text.parse::<f64>().is_ok(),
        Type::Duration => number() != text && number().parse::<f64>().is_ok(),
        Type::Acl => !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric()),
        _ => false,
    };
    is_so.then_some(text)
}

/// Advice for a `found` in place of a `wanted`.
fn advice(found: Type, wanted: Type) -> Option<&'static str> {
    Some(match (found, wanted) {
        (Type::Int | Type::Real, Type::Duration) => {
            "durations have a unit: `30s`, `5m`, `1h`, `2d`, `1w`, `1y`, `100ms`"
        }
        (Type::Int | Type::Real, Type::Bytes) => "sizes have a unit: `100B`, `10KB`, `1MB`",
        (Type::String, Type::Int) => "`std.integer(string, fallback)` makes an INT of a STRING",
        (Type::String, Type::Real) => "`std.real(string, fallback)` makes a REAL of a STRING",
        (Type::String, Type::Duration) => {
            "`std.duration(string, fallback)` makes a DURATION of a STRING"
        }
        (Type::String, Type::Bytes) => "`std.bytes(string, fallback)` makes BYTES of a STRING",
        (Type::String, Type::Time) => "`std.time(string, fallback)` makes a TIME of a STRING",
        (Type::String, Type::Ip) => "`std.ip(string, fallback)` makes an IP of a STRING",
        (Type::String, Type::Backend) => "backends are named without quotes",
        (Type::Acl, Type::Regex) => {
            "an ACL is matched with an address: `std.ip(string, fallback) ~ name`"
        }
        (Type::Int, Type::Real) => "`std.real(integer = ...)` makes a REAL of an INT",
        (Type::Real | Type::Time | Type::Bytes, Type::Bool) => "compare it with something",
        (Type::String, Type::Regex) => {
            "patterns are constants: to match one string against another, write `x == y` or use \
             a VMOD such as `str`"
        }
        _ => return None,
    })
}
