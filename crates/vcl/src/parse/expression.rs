//! Expressions with Varnish's precedence: `||`, `&&`, `!`, comparisons, `+ -`, `* / %`, `-`. Depth
//! and number of operators are always limited.

use super::{MAX_OPERATORS, ParseResult, Parser, ReportedFault};
use crate::ast::{Argument, BinaryOp, CallExpr, Expr, ExprKind, Name};
use crate::lex::{self, TokenKind};
use crate::source::SourceSpan;

/// Operators by sign.
type Operators = &'static [(&'static str, BinaryOp)];

const COMPARISONS: Operators = &[
    ("==", BinaryOp::Equal),
    ("!=", BinaryOp::NotEqual),
    ("<", BinaryOp::Less),
    (">", BinaryOp::Greater),
    ("<=", BinaryOp::LessEqual),
    (">=", BinaryOp::GreaterEqual),
    ("~", BinaryOp::Match),
    ("!~", BinaryOp::NoMatch),
];
const SUMS: Operators = &[("+", BinaryOp::Add), ("-", BinaryOp::Subtract)];
const PRODUCTS: Operators =
    &[("*", BinaryOp::Multiply), ("/", BinaryOp::Divide), ("%", BinaryOp::Modulo)];

impl Parser<'_> {
    /// A whole expression.
    pub(super) fn expression(&mut self) -> ParseResult<Expr> {
        self.operators = 0;
        self.any()
    }

    fn any(&mut self) -> ParseResult<Expr> {
        self.row("||", BinaryOp::Or, Self::all)
    }

    fn all(&mut self) -> ParseResult<Expr> {
        self.row("&&", BinaryOp::And, Self::negation)
    }

    /// Operands separated by `sign`, as a balanced tree.
    fn row(
        &mut self,
        sign: &str,
        op: BinaryOp,
        operand: fn(&mut Self) -> ParseResult<Expr>,
    ) -> ParseResult<Expr> {
        let first = operand(self)?;
        if !self.at_sign(sign) {
            return Ok(first);
        }
        let mut rest = Vec::new();
        while let Some(token) = self.take(sign) {
            rest.push(Operand { sign: token.span, expr: operand(self)? });
        }
        Ok(balanced(op, first, rest))
    }

    fn negation(&mut self) -> ParseResult<Expr> {
        let Some(not) = self.take("!") else { return self.comparison() };
        let inner = self.comparison()?;
        let span = not.span.to(inner.span);
        Ok(Expr { kind: ExprKind::Not(Box::new(inner)), span })
    }

    fn comparison(&mut self) -> ParseResult<Expr> {
        let left = self.sum()?;
        let Some((op, span)) = self.operator(COMPARISONS)? else { return Ok(left) };
        let right = self.sum()?;
        Ok(binary(left, op, span, right))
    }

    fn sum(&mut self) -> ParseResult<Expr> {
        let mut left = self.product()?;
        while let Some((op, span)) = self.operator(SUMS)? {
            let right = self.product()?;
            left = binary(left, op, span, right);
        }
        Ok(left)
    }

    fn product(&mut self) -> ParseResult<Expr> {
        let mut left = self.operand()?;
        while let Some((op, span)) = self.operator(PRODUCTS)? {
            let right = self.operand()?;
            left = binary(left, op, span, right);
        }
        Ok(left)
    }

    /// An operator of `table`, if it comes next.
    fn operator(&mut self, table: Operators) -> ParseResult<Option<(BinaryOp, SourceSpan)>> {
        let token = self.token();
        let TokenKind::Sign(sign) = token.kind else { return Ok(None) };
        let Some((_, op)) = table.iter().find(|(name, _)| *name == sign) else {
            return Ok(None);
        };
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let message = format!("an expression of more than {MAX_OPERATORS} operators");
            self.report
                .error(token.span, message)
                .help("long texts stand in one long string, many names in an ACL or pattern");
            return Err(ReportedFault);
        }
        self.bump();
        Ok(Some((*op, token.span)))
    }

    /// An operand without operators, with its methods.
    fn operand(&mut self) -> ParseResult<Expr> {
        self.nested(|parser| {
            let mut expr = parser.primary()?;
            while parser.at_sign(".") {
                expr = parser.method(expr)?;
            }
            Ok(expr)
        })
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        let token = self.token();
        let span = token.span;
        match token.kind {
            TokenKind::Str => {
                self.bump();
                let text = lex::string(self.bytes(span)).into();
                Ok(Expr { kind: ExprKind::String(text), span })
            }
            TokenKind::Int | TokenKind::Real => self.number(),
            TokenKind::Blob => self.literal_blob(),
            TokenKind::Identifier => self.named(),
            TokenKind::Sign("-") => {
                self.bump();
                let inner = self.operand()?;
                let span = span.to(inner.span);
                Ok(Expr { kind: ExprKind::Negative(Box::new(inner)), span })
            }
            TokenKind::Sign("(") => {
                self.bump();
                let inner = self.any()?;
                let close = self.close()?;
                let span = span.to(close);
                Ok(Expr { kind: ExprKind::Parens(Box::new(inner)), span })
            }
            _ => Err(self.no_operand()),
        }
    }

    fn no_operand(&mut self) -> ReportedFault {
        let failed = self.unexpected("a value");
        if self.at_sign(".")
            && let Some(entry) = self.last_fault()
        {
            entry.help("a number begins with a digit: `0.5`");
        }
        failed
    }

    /// A name, or a call.
    fn named(&mut self) -> ParseResult<Expr> {
        let name = self.name()?;
        if self.at_sign("(") {
            let call = self.call(name)?;
            let span = call.span;
            return Ok(Expr { kind: ExprKind::Call(call), span });
        }
        let span = name.span;
        Ok(Expr { kind: ExprKind::Name(name), span })
    }

    /// `.name(arguments)` behind a value.
    fn method(&mut self, object: Expr) -> ParseResult<Expr> {
        self.bump();
        let word = self.token();
        if word.kind != TokenKind::Identifier {
            let failed = self.unexpected("the name of a method");
            let numbers = matches!(object.kind, ExprKind::Real(_)) && word.kind == TokenKind::Int;
            if let Some(entry) = self.last_fault() {
                match (numbers, word.kind) {
                    (true, _) => {
                        entry.help("addresses stand in quotes: `std.ip(\"192.0.2.1\", ...)`")
                    }
                    (_, TokenKind::Str) => entry.help("`+` joins strings"),
                    _ => entry,
                };
            }
            return Err(failed);
        }
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            self.report.error(word.span, "an expression of too many calls");
            return Err(ReportedFault);
        }
        self.bump();
        let name = Name { text: self.text(word).to_ascii_lowercase().into(), span: word.span };
        if !self.at_sign("(") {
            return Err(self.unexpected("`(`: a method is called"));
        }
        let call = self.call(name)?;
        let span = object.span.to(call.span);
        Ok(Expr { kind: ExprKind::Method { object: Box::new(object), call }, span })
    }

    /// `(arguments)` behind a name.
    pub(super) fn call(&mut self, name: Name) -> ParseResult<CallExpr> {
        let (arguments, close) = self.nested(Self::arguments)?;
        let span = name.span.to(close);
        Ok(CallExpr { name, arguments, span })
    }

    pub(super) fn arguments(&mut self) -> ParseResult<(Vec<Argument>, SourceSpan)> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        loop {
            if let Some(close) = self.take(")") {
                return Ok((arguments, close.span));
            }
            arguments.push(self.argument()?);
            if self.take(",").is_none() {
                let close = self.close()?;
                return Ok((arguments, close));
            }
        }
    }

    fn argument(&mut self) -> ParseResult<Argument> {
        let named =
            self.token().kind == TokenKind::Identifier && self.peek(1).kind == TokenKind::Sign("=");
        let name = match named {
            true => {
                let word = self.bump();
                self.bump();
                Some(Name { text: self.text(word).into(), span: word.span })
            }
            false => None,
        };
        Ok(Argument { name, value: self.any()? })
    }

    /// The `)` behind a value.
    pub(super) fn close(&mut self) -> ParseResult<SourceSpan> {
        self.behind_value()?;
        self.expect(")").map(|token| token.span)
    }

    /// Reports a second value in place of an operator.
    pub(super) fn behind_value(&mut self) -> ParseResult<()> {
        let (token, before) = (self.token(), self.before());
        let value =
            |kind| matches!(kind, TokenKind::Str | TokenKind::Identifier | TokenKind::Sign(")"));
        let joined = match token.kind {
            TokenKind::Str => true,
            TokenKind::Identifier => !self.begins_line(token) && before.kind == TokenKind::Str,
            _ => false,
        };
        if !joined || !value(before.kind) {
            return Ok(());
        }
        let word = token.kind == TokenKind::Identifier && matches!(self.text(token), "and" | "or");
        if word {
            return Err(self.unexpected("an operator"));
        }
        if let Some(entry) = self.fault("two strings side by side") {
            entry.expected("`+`").help("`+` joins strings; only older Varnish joined them without");
        }
        Err(ReportedFault)
    }
}

fn binary(left: Expr, op: BinaryOp, op_span: SourceSpan, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    let (left, right) = (Box::new(left), Box::new(right));
    Expr { kind: ExprKind::Binary { left, op, op_span, right }, span }
}

/// An operand with the operator before it.
struct Operand {
    sign: SourceSpan,
    expr: Expr,
}

/// A tree of logarithmic height. `&&` and `||` are associative, so the order of evaluation does not
/// change.
fn balanced(op: BinaryOp, first: Expr, mut rest: Vec<Operand>) -> Expr {
    if rest.is_empty() {
        return first;
    }
    let mut right = rest.split_off(rest.len() / 2);
    let Operand { sign, expr: middle } = right.remove(0);
    let right = balanced(op, middle, right);
    binary(balanced(op, first, rest), op, sign, right)
}
