//! Operators: the operand types that Varnish permits, and folding of constants. A folded value
//! always equals the one at run time.

use std::sync::Arc;

use bytes::Bytes;

use crate::ast::{self, BinaryOp, ExprKind};
use crate::lower::Lowering;
use crate::lower::conversion::TypedTerm;
use crate::lower::expr::negated;
use crate::run::{Arith, ArithOp, Cond, OrderingOperator, Sides, StringTerm, Term, calculate};
use crate::source::SourceSpan;
use crate::state::value::Value;
use crate::types::Type;

impl Lowering<'_> {
    pub(super) fn binary(
        &mut self,
        left: &ast::Expr,
        op: BinaryOp,
        op_span: SourceSpan,
        right: &ast::Expr,
        whole: &ast::Expr,
        wanted: Type,
    ) -> Option<TypedTerm> {
        let span = whole.span;
        match op {
            BinaryOp::And => self.logic(left, right, span, Cond::All),
            BinaryOp::Or => self.logic(left, right, span, Cond::Any),
            BinaryOp::Equal | BinaryOp::NotEqual => {
                let cond = self.equality(left, op_span, right, span, wanted)?;
                Some(TypedTerm::cond(flip(cond, op == BinaryOp::NotEqual), span))
            }
            BinaryOp::Match | BinaryOp::NoMatch => {
                let cond = self.matching(left, op_span, right, wanted)?;
                Some(TypedTerm::cond(flip(cond, op == BinaryOp::NoMatch), span))
            }
            BinaryOp::Less => {
                self.order(left, OrderingOperator::Less, op_span, right, span, wanted)
            }
            BinaryOp::Greater => {
                self.order(left, OrderingOperator::Greater, op_span, right, span, wanted)
            }
            BinaryOp::LessEqual => {
                self.order(left, OrderingOperator::LessEqual, op_span, right, span, wanted)
            }
            BinaryOp::GreaterEqual => {
                self.order(left, OrderingOperator::GreaterEqual, op_span, right, span, wanted)
            }
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Modulo => self.chain(whole, wanted),
        }
    }

    /// Lowers `&&` or `||`: a chain becomes one list.
    fn logic(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        span: SourceSpan,
        make: fn(Box<[Cond]>) -> Cond,
    ) -> Option<TypedTerm> {
        let left = self.condition(left);
        let right = self.condition(right);
        let is_and = matches!(make(Box::default()), Cond::All(_));
        let mut parts = Vec::new();
        for part in [left?, right?] {
            match part {
                Cond::All(inner) if is_and => parts.extend(inner),
                Cond::Any(inner) if !is_and => parts.extend(inner),
                part => parts.push(part),
            }
        }
        Some(TypedTerm::cond(make(parts.into()), span))
    }

    fn equality(
        &mut self,
        left: &ast::Expr,
        op_span: SourceSpan,
        right: &ast::Expr,
        span: SourceSpan,
        wanted: Type,
    ) -> Option<Cond> {
        let has_xid = is_xid(left) || is_xid(right);
        let left = self.expr(left, wanted)?;
        let comparable = matches!(
            left.ty,
            Type::Acl
                | Type::Backend
                | Type::Bool
                | Type::Bytes
                | Type::Duration
                | Type::Int
                | Type::Ip
                | Type::Probe
                | Type::Real
                | Type::Stevedore
                | Type::String
                | Type::Time
        );
        if !comparable {
            self.no_operator("==", left.ty, op_span);
            return None;
        }
        let right = self.expr(right, left.ty)?;
        let is_text = |typed: &TypedTerm| typed.ty == Type::String;
        if is_text(&left) && is_text(&right) || has_xid && (is_text(&left) || is_text(&right)) {
            let (left, right) = (self.text_of(left)?, self.text_of(right)?);
            return Some(Cond::Same(Box::new(Sides { left, right })));
        }
        let (left, right) = self.alike(left, right, span)?;
        Some(Cond::Equal(Box::new(Sides { left, right })))
    }

    fn order(
        &mut self,
        left: &ast::Expr,
        order: OrderingOperator,
        op_span: SourceSpan,
        right: &ast::Expr,
        span: SourceSpan,
        wanted: Type,
    ) -> Option<TypedTerm> {
        let left = self.expr(left, wanted)?;
        let has_order = matches!(
            left.ty,
            Type::Bytes | Type::Duration | Type::Int | Type::Real | Type::String | Type::Time
        );
        if !has_order {
            self.no_operator(sign(order), left.ty, op_span);
            return None;
        }
        let right = self.expr(right, left.ty)?;
        if left.ty == Type::String && right.ty == Type::String {
            let (left, right) = (self.text_of(left)?, self.text_of(right)?);
            return Some(TypedTerm::cond(
                Cond::TextOrder(order, Box::new(Sides { left, right })),
                span,
            ));
        }
        let (left, right) = self.alike(left, right, span)?;
        Some(TypedTerm::cond(Cond::Order(order, Box::new(Sides { left, right })), span))
    }

    /// Lowers both operands of a comparison to one type.
    fn alike(
        &mut self,
        left: TypedTerm,
        right: TypedTerm,
        span: SourceSpan,
    ) -> Option<(Term, Term)> {
        let wanted = left.ty;
        let becomes = wanted == right.ty
            || (wanted == Type::Real && right.ty == Type::Int && right.literal)
            || (wanted == Type::Ip && right.const_str().is_some());
        if becomes {
            return Some((left.expr, self.convert(right, wanted)?));
        }
        let entry = self
            .report
            .error(span, format!("cannot compare {} with {}", left.ty, right.ty))
            .label(left.span, format!("this is {}", left.ty))
            .label(right.span, format!("this is {}", right.ty));
        if right.ty == Type::Int && matches!(wanted, Type::Duration) {
            entry.help("durations have a unit: `5s`");
        } else if right.ty == Type::Int && wanted == Type::String {
            entry.help("put the number in quotes, or make one of the string: `std.integer(...)`");
        } else if right.ty == Type::Int && wanted == Type::Bytes {
            entry.help("sizes have a unit: `10KB`");
        } else if wanted == Type::Int && right.ty == Type::String {
            entry.help("write the number without quotes");
        }
        None
    }

    fn matching(
        &mut self,
        left: &ast::Expr,
        op_span: SourceSpan,
        right: &ast::Expr,
        wanted: Type,
    ) -> Option<Cond> {
        let left = self.expr(left, wanted)?;
        match left.ty {
            Type::String => {
                let text = self.text_of(left);
                let number = self.pattern(right)?;
                let regex = Arc::clone(&self.parts.regexes[number as usize]);
                Some(Cond::Match(text?, regex))
            }
            Type::Ip => {
                let right = self.expr(right, Type::Acl)?;
                match right.const_value() {
                    Some(Value::Acl(number)) => Some(Cond::Acl(left.expr, *number)),
                    _ => {
                        self.mismatch(&right, Type::Acl);
                        None
                    }
                }
            }
            other => {
                self.no_operator("~", other, op_span);
                None
            }
        }
    }

    fn no_operator(&mut self, sign: &str, ty: Type, span: SourceSpan) {
        let entry = self.report.error(span, format!("`{sign}` does not go with {ty}"));
        match sign {
            "~" => entry.note("`~` matches a STRING with a pattern, or an IP with an acl"),
            "==" => entry,
            _ => entry.note("numbers, durations, times and strings have an order"),
        };
    }

    pub(super) fn negative(
        &mut self,
        inner: &ast::Expr,
        span: SourceSpan,
        wanted: Type,
    ) -> Option<TypedTerm> {
        let number = matches!(
            wanted,
            Type::Bytes | Type::Duration | Type::Int | Type::Real | Type::String | Type::Time
        );
        if !number {
            self.report.error(span, "`-` cannot begin an expression here").expected(wanted.name());
            return None;
        }
        let typed = self.expr(inner, wanted)?;
        let zero = match typed.ty {
            Type::Int => Value::Int(0),
            // Subtraction from `-0.0`, so that `-x` of `0.0` is `-0.0`.
            Type::Real => Value::Real(-0.0),
            Type::Duration => Value::Duration(-0.0),
            other => {
                self.report.error(span, format!("`-` does not go with {other}"));
                return None;
            }
        };
        let (ty, literal) = (typed.ty, typed.literal);
        let expr = self.folded(ArithOp::Subtract, Term::Const(zero), typed.expr, span)?;
        Some(TypedTerm { literal, ..TypedTerm::new(expr, ty, span) })
    }

    /// Lowers a chain of `+`, `-`, `*`, `/`, `%` without recursion, since chains may be long.
    fn chain(&mut self, chain: &ast::Expr, wanted: Type) -> Option<TypedTerm> {
        let mut links = Vec::new();
        let mut first = chain;
        while let ExprKind::Binary { left, op, op_span, right } = &first.kind {
            let Some(op) = arith_op(*op) else { break };
            links.push((op, *op_span, &**right, first.span));
            first = left;
        }
        let mut typed = self.expr(first, wanted)?;
        for (op, op_span, right, span) in links.into_iter().rev() {
            typed = self.arith(typed, op, op_span, right, span, wanted)?;
        }
        Some(typed)
    }

    fn arith(
        &mut self,
        left: TypedTerm,
        op: ArithOp,
        op_span: SourceSpan,
        right: &ast::Expr,
        span: SourceSpan,
        wanted: Type,
    ) -> Option<TypedTerm> {
        let second = match left.ty {
            Type::String => Type::String,
            Type::Time | Type::Duration => Type::Duration,
            Type::Bytes if op == ArithOp::Add || op == ArithOp::Subtract => Type::Bytes,
            Type::Int | Type::Real => left.ty,
            _ => wanted,
        };
        let right = self.expr(right, second)?;
        if let Some(ty) = result(op, left.ty, right.ty) {
            let expr = self.folded(op, left.expr, right.expr, span)?;
            return Some(TypedTerm::new(expr, ty, span));
        }
        let strings = left.ty == Type::String || wanted == Type::String;
        let strings = strings || wanted == Type::Regex && right.ty == Type::String;
        // A string is accepted where an address is expected, and addresses are not added.
        if op == ArithOp::Add && strings && wanted != Type::Ip {
            let (left, right) = (self.text_of(left), self.text_of(right));
            return Some(TypedTerm::text(joined(left?, right?), span));
        }
        let sign = op.sign();
        let entry = self
            .report
            .error(op_span, format!("`{sign}` does not go with {} and {}", left.ty, right.ty))
            .label(left.span, format!("this is {}", left.ty))
            .label(right.span, format!("this is {}", right.ty));
        if wanted == Type::Ip && left.ty == Type::String {
            entry.help("an address is written as one string: `\"192.0.2.1\"`");
        } else if let (Type::Time | Type::Duration, Type::Int) = (left.ty, right.ty) {
            entry.help("durations have a unit: `5s`");
        } else if result(op, right.ty, left.ty).is_some() && op == ArithOp::Multiply {
            entry.help("write the operands the other way round");
        }
        None
    }

    /// The operation, or its value if both operands are constants.
    fn folded(&mut self, op: ArithOp, left: Term, right: Term, span: SourceSpan) -> Option<Term> {
        if let (Term::Const(a), Term::Const(b)) = (&left, &right) {
            return match calculate(op, a, b) {
                Ok(value) => Some(Term::Const(value)),
                // As in Varnish, arithmetic on REALs fails at run time.
                Err(_) if !matches!((a, b), (Value::Int(_), Value::Int(_))) => {
                    Some(Term::Arith(Box::new(Arith { op, left, right })))
                }
                Err(failure) => {
                    self.report.error(span, failure.into_reason());
                    None
                }
            };
        }
        Some(Term::Arith(Box::new(Arith { op, left, right })))
    }
}

/// Result type of `left op right` by Varnish's table; `None` if the operator does not apply.
fn result(op: ArithOp, left: Type, right: Type) -> Option<Type> {
    use Type::{Bytes, Duration, Int, Real, Time};
    Some(match (op, left, right) {
        (_, Int, Int) => Int,
        (ArithOp::Modulo, ..) => return None,
        (ArithOp::Add | ArithOp::Subtract, Int, Real) => Real,
        (_, Real, Int | Real) => Real,
        (ArithOp::Add | ArithOp::Subtract, Duration, Duration) => Duration,
        (ArithOp::Multiply | ArithOp::Divide, Duration, Int | Real) => Duration,
        (ArithOp::Add | ArithOp::Subtract, Bytes, Bytes) => Bytes,
        (ArithOp::Multiply | ArithOp::Divide, Bytes, Int | Real) => Bytes,
        (ArithOp::Add | ArithOp::Subtract, Time, Duration) => Time,
        (ArithOp::Subtract, Time, Time) => Duration,
        _ => return None,
    })
}

/// Concatenation of two strings; adjacent constants are joined.
pub(super) fn joined(left: StringTerm, right: StringTerm) -> StringTerm {
    let mut parts = match left {
        StringTerm::Join(parts) => parts,
        one => vec![one],
    };
    let more = match right {
        StringTerm::Join(parts) => parts,
        one => vec![one],
    };
    for part in more {
        match (parts.last_mut(), part) {
            (Some(StringTerm::Const(before)), StringTerm::Const(after)) => {
                *before = Bytes::from([&before[..], &after[..]].concat());
            }
            (_, part) => parts.push(part),
        }
    }
    match &parts[..] {
        [StringTerm::Const(only)] => StringTerm::Const(only.clone()),
        _ => StringTerm::Join(parts),
    }
}

fn arith_op(op: BinaryOp) -> Option<ArithOp> {
    Some(match op {
        BinaryOp::Add => ArithOp::Add,
        BinaryOp::Subtract => ArithOp::Subtract,
        BinaryOp::Multiply => ArithOp::Multiply,
        BinaryOp::Divide => ArithOp::Divide,
        BinaryOp::Modulo => ArithOp::Modulo,
        _ => return None,
    })
}

fn flip(cond: Cond, is_flipped: bool) -> Cond {
    if is_flipped { negated(cond) } else { cond }
}

fn sign(order: OrderingOperator) -> &'static str {
    match order {
        OrderingOperator::Less => "<",
        OrderingOperator::Greater => ">",
        OrderingOperator::LessEqual => "<=",
        OrderingOperator::GreaterEqual => ">=",
    }
}

/// Returns true for the number of a transaction or session: INT since Varnish 7.2, STRING before.
/// Older programs compare it with a STRING.
fn is_xid(expr: &ast::Expr) -> bool {
    matches!(&expr.kind, ast::ExprKind::Name(name) if name.text.ends_with(".xid"))
}
