//! Statements within the braces of a subroutine: their grammar only.

use super::{ParseResult, Parser, ReportedFault};
use crate::ast::{
    Conditional, Expr, ExprKind, Name, Return, SetOp, Statement, StatementBlock, StatementKind,
};
use crate::lex::{Token, TokenKind};

/// Operators of `set`.
const SETTERS: &[(&str, SetOp)] = &[
    ("=", SetOp::Assign),
    ("+=", SetOp::Add),
    ("-=", SetOp::Subtract),
    ("*=", SetOp::Multiply),
    ("/=", SetOp::Divide),
];

impl Parser<'_> {
    /// `{ statements }`
    pub(super) fn block(&mut self) -> ParseResult<StatementBlock> {
        self.nested(Self::statements)
    }

    fn statements(&mut self) -> ParseResult<StatementBlock> {
        let open = self.expect("{")?;
        let mut statements = Vec::new();
        loop {
            if let Some(close) = self.take("}") {
                self.notice_close(open, close);
                return Ok(StatementBlock { statements, span: open.span.to(close.span) });
            }
            if self.unclosed(open) {
                return Ok(StatementBlock { statements, span: open.span });
            }
            let start = self.at;
            match self.statement() {
                Ok(Some(kind)) => {
                    let span = self.tokens[start].span.to(self.before().span);
                    statements.push(Statement { kind, span });
                }
                Ok(None) => {}
                Err(ReportedFault) => self.leave_statement(start),
            }
        }
    }

    /// Remembers the first pair of braces whose end stands further to the left than its beginning.
    fn notice_close(&mut self, open: Token, close: Token) {
        let apart = open.span.file == close.span.file && self.begins_line(close);
        if self.depth <= 1 {
            // A subroutine that ends at the margin shows that its braces match.
            if !self.begins_line(close) || self.indent(close.span) == self.indent(open.span) {
                self.odd_close = None;
            }
        } else if apart
            && self.odd_close.is_none()
            && self.indent(close.span) < self.indent(open.span)
        {
            self.odd_close = Some((open.span, close.span));
        }
    }

    /// A statement with its `;`. `None` after a reported fault.
    fn statement(&mut self) -> ParseResult<Option<StatementKind>> {
        let token = self.token();
        match token.kind {
            TokenKind::Sign("{") => {
                return self.block().map(|block| Some(StatementKind::Block(block)));
            }
            TokenKind::Sign(";") => {
                let after_brace = self.text(self.before()) == "}";
                if let Some(entry) = self.fault("a `;` with nothing before it") {
                    entry.help(match after_brace {
                        true => "no `;` follows a `}`",
                        false => "take it out",
                    });
                }
                self.bump();
                return Ok(None);
            }
            TokenKind::Bad => {
                self.bump();
                return Ok(None);
            }
            TokenKind::Identifier => {}
            _ => return Err(self.unexpected("a statement or `}`")),
        }
        // As in Varnish, keywords of statements are compared without case, except `else`.
        let word = self.text(token);
        let lower = word.to_ascii_lowercase();
        let kind = match if lower.starts_with("els") { word } else { &*lower } {
            "if" => return self.conditional().map(Some),
            "else" | "elsif" | "elseif" | "elif" => return self.stray_else(),
            "set" => self.set()?,
            "unset" => {
                self.bump();
                StatementKind::Unset(self.name()?)
            }
            "unused" if self.peek(1).kind == TokenKind::Identifier => {
                return self.unused().map(|name| Some(StatementKind::Unused(name)));
            }
            "call" => self.call_sub()?,
            "return" => self.returning()?,
            "new" => self.new_object()?,
            "import" | "vcl" | "sub" | "acl" | "backend" | "probe"
                if self.peek(1).kind == TokenKind::Identifier =>
            {
                return Err(self.misplaced());
            }
            _ => return self.action().map(Some),
        };
        self.behind_value()?;
        self.semicolon()?;
        Ok(Some(kind))
    }

    fn misplaced(&mut self) -> ReportedFault {
        let message = format!("`{}` stands outside of subroutines", self.text(self.token()));
        if let Some(entry) = self.fault(&message) {
            entry.help("put it before the `sub`; or is a `}` missing above?");
        }
        ReportedFault
    }

    fn conditional(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        let mut arms = vec![self.arm()?];
        let mut otherwise = None;
        while !self.unclosed && self.token().kind == TokenKind::Identifier {
            match self.text(self.token()) {
                "elsif" | "elseif" | "elif" => {
                    self.bump();
                    arms.push(self.arm()?);
                }
                "else" => {
                    self.bump();
                    if self.at_keyword("if") {
                        self.bump();
                        arms.push(self.arm()?);
                        continue;
                    }
                    if !self.at_sign("{") {
                        return Err(self.unexpected("`{` or `if` after `else`"));
                    }
                    otherwise = Some(self.block()?);
                    break;
                }
                _ => break,
            }
        }
        Ok(StatementKind::If { arms, otherwise })
    }

    /// `(condition) { statements }`
    fn arm(&mut self) -> ParseResult<Conditional> {
        let start = self.token().span;
        let condition = match self.condition() {
            Ok(condition) => condition,
            // The block may have faults of its own, which are reported too.
            Err(ReportedFault) if self.leave_condition() => {
                let name = Name { text: "true".into(), span: start };
                Expr { kind: ExprKind::Name(name), span: start }
            }
            Err(ReportedFault) => return Err(ReportedFault),
        };
        if !self.at_sign("{") {
            return Err(self.unexpected("`{`"));
        }
        Ok(Conditional { condition, block: self.block()? })
    }

    fn condition(&mut self) -> ParseResult<Expr> {
        if !self.at_sign("(") {
            return Err(self.unexpected("`(` before the condition"));
        }
        self.bump();
        let condition = self.expression()?;
        self.close()?;
        Ok(condition)
    }

    /// An `else` without `if`: its parts are parsed for their own faults.
    fn stray_else(&mut self) -> ParseResult<Option<StatementKind>> {
        let word = self.token();
        let message = format!("`{}` follows no `if`", self.text(word));
        let help = match self.text(self.before()) {
            ";" => "no `;` stands between the `}` and this",
            _ => "nothing but the end of the `if`'s block stands before it; an `else` is the last",
        };
        if let Some(entry) = self.fault(&message) {
            entry.help(help);
        }
        self.bump();
        if self.at_keyword("if") {
            self.bump();
        }
        if self.at_sign("(") {
            return self.arm().map(|arm| Some(StatementKind::Block(arm.block)));
        }
        self.block().map(|block| Some(StatementKind::Block(block)))
    }

    fn set(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        let target = self.name()?;
        let TokenKind::Sign(sign) = self.token().kind else {
            return Err(self.unexpected("`=`"));
        };
        let Some((_, op)) = SETTERS.iter().find(|(name, _)| *name == sign) else {
            return Err(self.unexpected("`=`"));
        };
        self.bump();
        let value = self.expression()?;
        Ok(StatementKind::Set { target, op: *op, value })
    }

    fn call_sub(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        let name = self.name()?;
        if self.at_sign("(") {
            let help = format!("`call {};`", name.text);
            if let Some(entry) = self.fault("subroutines take no arguments") {
                entry.help(help);
            }
            return Err(ReportedFault);
        }
        Ok(StatementKind::Call(name))
    }

    /// `return` with its parentheses.
    fn returning(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        if self.at_sign(";") {
            return Ok(StatementKind::Return(None));
        }
        if self.token().kind == TokenKind::Identifier && !self.begins_line(self.token()) {
            let help = format!("`return ({});`", self.text(self.token()));
            if let Some(entry) = self.fault("the action of a `return` stands in parentheses") {
                entry.help(help);
            }
            return Err(ReportedFault);
        }
        if !self.at_sign("(") {
            return Err(self.unexpected("`(`"));
        }
        self.bump();
        if self.token().kind != TokenKind::Identifier {
            let failed = self.unexpected("an action");
            if let Some(entry) = self.last_fault() {
                entry.help("`return (pass);`; a plain `return;` goes back to the caller");
            }
            return Err(failed);
        }
        let word = self.bump();
        let verb = Name { text: self.text(word).into(), span: word.span };
        let arguments = match self.at_sign("(") {
            true => self.return_arguments()?,
            false => Vec::new(),
        };
        self.expect(")")?;
        Ok(StatementKind::Return(Some(Return { verb, arguments })))
    }

    fn return_arguments(&mut self) -> ParseResult<Vec<Expr>> {
        let open = self.bump();
        let mut arguments = Vec::new();
        if self.at_sign(")") {
            let message = "parentheses with nothing in them";
            self.report
                .error(open.span.to(self.token().span), message)
                .help("`return (verb);` without, `return (synth(404));` with arguments");
            return Err(ReportedFault);
        }
        loop {
            arguments.push(self.expression()?);
            if self.take(",").is_none() {
                self.close()?;
                return Ok(arguments);
            }
        }
    }

    fn new_object(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        let name = self.own_name("an object")?;
        self.expect("=")?;
        let class = self.name()?;
        if !self.at_sign("(") {
            let help = format!("`new {} = {}();`", name.text, class.text);
            let failed = self.unexpected("`(`");
            if let Some(entry) = self.last_fault() {
                entry.help(help);
            }
            return Err(failed);
        }
        self.operators = 0;
        let (arguments, _) = self.nested(Self::arguments)?;
        Ok(StatementKind::New { name, class, arguments })
    }

    /// A call, or an unknown statement.
    fn action(&mut self) -> ParseResult<StatementKind> {
        let name = self.name()?;
        if self.at_sign("(") {
            self.operators = 0;
            let call = self.call(name)?;
            self.semicolon()?;
            return Ok(StatementKind::Action(call));
        }
        let sets = SETTERS.iter().any(|(sign, _)| self.at_sign(sign));
        if sets && name.text.contains('.') {
            let message = "a variable is set with `set`";
            let help = format!("`set {} {} ...;`", name.text, self.text(self.token()));
            self.report.error(name.span, message).help(help);
            return Err(ReportedFault);
        }
        let start = self.at;
        if self.take(";").is_none() {
            self.leave_statement(start);
        }
        Ok(StatementKind::Unknown(name))
    }
}
