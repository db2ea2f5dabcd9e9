//! Statements of subroutines, lowered to compiled form. Blocks never nest deeper than the limit.

use crate::ast::{
    CallExpr, Conditional, Expr, Name, SetOp, Statement, StatementBlock, StatementKind,
};
use crate::lower::Lowering;
use crate::lower::operators::joined;
use crate::lower::symbols::SymbolKind;
use crate::run::{self, Arith, ArithOp, Arm, CompiledStatement, HeaderCleanup, Op, StringTerm};
use crate::source::{SourceSpan, StatementNumber};
use crate::state::value::VclMessage;
use crate::sub::{Sub, Subs};
use crate::types::Type;
use crate::vars::{self, Var};

/// Most nested blocks; execution recurses into them.
const DEPTH_MAX: u32 = 100;

/// Appends `step`, merged with the statement before it where possible.
fn add(steps: &mut Vec<CompiledStatement>, step: CompiledStatement) {
    let CompiledStatement { op: Op::SetHeader(set), at } = &step else {
        return steps.push(step);
    };
    let Some(clean) = HeaderCleanup::of(&set.0, &set.1, *at) else { return steps.push(step) };
    let left = match steps.last_mut() {
        Some(CompiledStatement { op: Op::Clean(before), .. }) => before.join(clean),
        _ => Some(clean),
    };
    if let Some(clean) = left {
        steps.push(CompiledStatement { op: Op::Clean(Box::new(clean)), at: step.at });
    }
}

impl Lowering<'_> {
    /// Lowers `sub name { ... }`, and appends it to the subroutine of that name.
    pub(super) fn sub(&mut self, name: &Name, body: &StatementBlock) {
        let Some(symbol) = self.symbols.get(&name.text) else { return };
        let SymbolKind::Sub(number) = symbol.kind else { return };
        if symbol.span != name.span && !name.text.starts_with("vcl_") {
            // A duplicate declaration, which has been reported.
            return;
        }
        self.current = number as usize;
        let steps = self.steps(body);
        let facts = &mut self.facts[self.current];
        if !self.in_builtin {
            facts.own |= !steps.is_empty();
            if facts.ends.is_none() && ends(&steps) {
                facts.ends = steps.last().map(|step| self.parts.spans[step.at.index()]);
            }
        }
        self.bodies[self.current].extend(steps);
    }

    fn steps(&mut self, block: &StatementBlock) -> Vec<CompiledStatement> {
        if self.depth >= DEPTH_MAX {
            self.report.error(block.span, "these blocks are nested too deeply");
            return Vec::new();
        }
        self.depth += 1;
        let facts = &mut self.facts[self.current];
        facts.blocks = facts.blocks.max(self.depth);
        let mut steps = Vec::with_capacity(block.statements.len());
        for step in block.statements.iter().filter_map(|statement| self.statement(statement)) {
            add(&mut steps, step);
        }
        self.depth -= 1;
        steps
    }

    fn statement(&mut self, statement: &Statement) -> Option<CompiledStatement> {
        let span = statement.span;
        self.calls_sub = false;
        let op = match &statement.kind {
            StatementKind::Block(block) => Op::Block(self.steps(block).into()),
            StatementKind::If { arms, otherwise } => self.branches(arms, otherwise.as_ref())?,
            StatementKind::Set { target, op, value } => self.set(target, *op, value, span)?,
            StatementKind::Unset(target) => self.unset(target)?,
            StatementKind::Call(name) => self.call(name)?,
            StatementKind::Return(verdict) => self.verdict(verdict.as_ref(), span)?,
            StatementKind::New { name, class, arguments } => {
                self.new_object(name, class, arguments, span)?
            }
            StatementKind::Action(call) => self.action(call)?,
            StatementKind::Unused(name) => {
                self.mark_unused(name);
                return None;
            }
            StatementKind::Unknown(name) => {
                self.unknown_statement(name);
                return None;
            }
        };
        let op = match op {
            Op::Block(_) | Op::If(..) | Op::Return(_) => op,
            op if self.calls_sub => Op::Ending(Box::new(op)),
            op => op,
        };
        let at = StatementNumber::nth(self.parts.spans.len());
        self.parts.spans.push(span);
        Some(CompiledStatement { op, at })
    }

    fn branches(&mut self, arms: &[Conditional], otherwise: Option<&StatementBlock>) -> Option<Op> {
        let mut lowered = Vec::new();
        let mut right = true;
        for Conditional { condition, block } in arms {
            let condition = self.condition(condition);
            let body = self.steps(block).into();
            match condition {
                Some(condition) => lowered.push(Arm { condition, body }),
                None => right = false,
            }
        }
        let otherwise = otherwise.map(|block| self.steps(block)).unwrap_or_default();
        right.then(|| Op::If(lowered.into(), otherwise.into()))
    }

    fn set(&mut self, target: &Name, op: SetOp, value: &Expr, span: SourceSpan) -> Option<Op> {
        if let Some(header) = vars::header(&target.text) {
            let what = || format!("`{}` cannot be set", target.text);
            self.may_be_set(header.write, target)?;
            self.restrict(header.write, target.span, what);
            let name = self.header(header.message, header.name, target.span);
            let text = self.string(value);
            self.only_adds(op, Type::String, span)?;
            let (header, text) = (name?, text?);
            let text = match op {
                SetOp::Assign => text,
                _ => joined(StringTerm::Header(header.clone()), text),
            };
            return Some(Op::SetHeader(Box::new((header, text))));
        }
        if let Some(kind) = self.symbols.get(&target.text).map(|symbol| symbol.kind) {
            self.report
                .error(
                    target.span,
                    format!("`{}` is {}, which cannot be set", target.text, kind.with_article()),
                )
                .expected("a variable");
            return None;
        }
        if vars::storage(&target.text).is_some() || target.text.starts_with("storage.") {
            self.report.error(target.span, format!("`{}` cannot be set", target.text));
            return None;
        }
        let var = self.variable(target, Type::Void)?;
        self.may_be_set(var.write, target)?;
        let places = self.settable(target, var.write);
        self.restrict(places, target.span, || format!("`{}` cannot be set", target.text));
        self.set_var(var, op, value, span)
    }

    fn may_be_set(&mut self, write: Subs, target: &Name) -> Option<()> {
        if write != Subs::NONE {
            return Some(());
        }
        let entry = self.report.error(target.span, format!("`{}` cannot be set", target.text));
        if let Some(help) = super::advice::instead_of_setting(&target.text) {
            entry.help(help);
        }
        None
    }

    /// Checks the operator of a `set` against the type: numbers and times take all, STRING and BODY
    /// `=` and `+=`, other types only `=`.
    fn only_adds(&mut self, op: SetOp, ty: Type, span: SourceSpan) -> Option<()> {
        let allowed = match ty {
            Type::String | Type::Body => matches!(op, SetOp::Assign | SetOp::Add),
            Type::Int | Type::Real | Type::Duration | Type::Bytes | Type::Time => true,
            _ => op == SetOp::Assign,
        };
        if !allowed {
            self.report.error(span, format!("`{}` does not go with {ty}", sign(op)));
        }
        allowed.then_some(())
    }

    fn set_var(
        &mut self,
        var: &'static Var,
        op: SetOp,
        value: &Expr,
        span: SourceSpan,
    ) -> Option<Op> {
        let set = var.set?;
        self.only_adds(op, var.kind, span)?;
        if var.kind == Type::Body {
            let typed = self.expr(value, Type::Body)?;
            let value = self.convert(typed, Type::Body)?;
            let message =
                if var.name.starts_with("beresp") { VclMessage::Beresp } else { VclMessage::Resp };
            return Some(match op {
                SetOp::Assign => Op::SetBody(set, value),
                _ => Op::AddToBody(message, value),
            });
        }
        if op == SetOp::Assign {
            return self.value(value, var.kind).map(|value| Op::Set(set, value));
        }
        self.restrict(var.read, span, || format!("`{}` cannot be read", var.name));
        let current = run::Term::Var(var.get);
        if var.kind == Type::String {
            let text = self.string(value)?;
            let text = joined(StringTerm::Shown(Box::new(current)), text);
            return Some(Op::Set(set, run::Term::Text(Box::new(text))));
        }
        let arith = match op {
            SetOp::Assign | SetOp::Add => ArithOp::Add,
            SetOp::Subtract => ArithOp::Subtract,
            SetOp::Multiply => ArithOp::Multiply,
            SetOp::Divide => ArithOp::Divide,
        };
        let scales = matches!(op, SetOp::Multiply | SetOp::Divide);
        let wanted = match var.kind {
            Type::Time => Type::Duration,
            Type::Duration | Type::Bytes | Type::Real if scales => Type::Real,
            other => other,
        };
        let right = self.value(value, wanted)?;
        let arith = Arith { op: arith, left: current, right };
        Some(Op::Set(set, run::Term::Arith(Box::new(arith))))
    }

    fn unset(&mut self, target: &Name) -> Option<Op> {
        if let Some(header) = vars::header(&target.text) {
            if header.unset == Subs::NONE {
                self.report.error(target.span, format!("`{}` cannot be unset", target.text));
                return None;
            }
            self.restrict(header.unset, target.span, || {
                format!("`{}` cannot be unset", target.text)
            });
            let header = self.header(header.message, header.name, target.span)?;
            return Some(Op::UnsetHeader(header));
        }
        let var = self.variable(target, Type::Void)?;
        let Some(remove) = var.remove else {
            self.report
                .error(target.span, format!("`{}` cannot be unset", target.text))
                .note("headers can be unset, and a few variables");
            return None;
        };
        let places = self.settable(target, var.unset);
        self.restrict(places, target.span, || format!("`{}` cannot be unset", target.text));
        Some(Op::Unset(remove))
    }

    fn call(&mut self, name: &Name) -> Option<Op> {
        let kind = self.symbols.get(&name.text).map(|symbol| symbol.kind);
        match kind {
            Some(SymbolKind::Sub(number)) => {
                self.symbols.take(&name.text);
                self.calls(number, name.span);
                Some(Op::Call(number))
            }
            Some(other) => {
                self.report
                    .error(name.span, format!("`{}` is {}", name.text, other.with_article()))
                    .expected("the name of a subroutine");
                None
            }
            None => {
                let names: Vec<&str> =
                    self.symbols.names(|kind| matches!(kind, SymbolKind::Sub(_))).collect();
                self.report
                    .error(name.span, format!("there is no subroutine `{}`", name.text))
                    .did_you_mean(&name.text, names);
                None
            }
        }
    }

    /// A call as a statement.
    fn action(&mut self, call: &CallExpr) -> Option<Op> {
        match &*call.name.text {
            "hash_data" => {
                self.restrict(Sub::Hash.only(), call.name.span, || {
                    "`hash_data` cannot be called".to_string()
                });
                self.warn_of_partial_key(call);
                self.one_string(call).map(Op::HashData)
            }
            "ban" => self.one_string(call).map(Op::Ban),
            "synthetic" => self.synthetic(call),
            "regsub" | "regsuball" => {
                self.report
                    .error(call.span, format!("the string that `{}` makes is lost", call.name.text))
                    .help("assign it: `set x = regsub(...);`");
                None
            }
            _ => {
                let typed = self.call_expr(call)?;
                Some(Op::Do(typed.expr))
            }
        }
    }

    fn one_string(&mut self, call: &CallExpr) -> Option<StringTerm> {
        let only = self.one(call)?;
        self.string(only)
    }

    fn one<'e>(&mut self, call: &'e CallExpr) -> Option<&'e Expr> {
        match &call.arguments[..] {
            [only] if only.name.is_none() => Some(&only.value),
            _ => {
                self.report.error(call.span, format!("`{}` takes one string", call.name.text));
                None
            }
        }
    }

    /// `synthetic(...)`: appends to the body of the response. As in Varnish, an absent string is
    /// `(null)`.
    fn synthetic(&mut self, call: &CallExpr) -> Option<Op> {
        let places = Sub::Synth.only().and(Sub::BackendError.only());
        self.restrict(places, call.name.span, || "`synthetic` cannot be called".to_string());
        let text = self.one_string(call)?;
        let or_null = |part| match part {
            StringTerm::Const(_) => part,
            other => StringTerm::OrNull(Box::new(other)),
        };
        let text = match text {
            StringTerm::Join(parts) => StringTerm::Join(parts.into_iter().map(or_null).collect()),
            one => or_null(one),
        };
        Some(Op::Synthetic(run::Term::Text(Box::new(text))))
    }

    fn unknown_statement(&mut self, name: &Name) {
        if let Some((what, help)) = super::advice::old_statement(&name.text) {
            self.report.error(name.span, what).help(help);
            return;
        }
        const WORDS: &[&str] = &[
            "set",
            "unset",
            "unused",
            "call",
            "return",
            "new",
            "if",
            "else",
            "elseif",
            "elsif",
            "ban",
            "hash_data",
            "synthetic",
            "import",
            "include",
        ];
        let is_symbol = self.symbols.get(&name.text).map(|symbol| symbol.kind);
        let entry = self.report.error(name.span, format!("`{}` is no statement", name.text));
        match is_symbol {
            Some(SymbolKind::Sub(_)) => entry.help(format!("write `call {};`", name.text)),
            _ => entry.did_you_mean(&name.text, WORDS.iter().copied()),
        };
    }
}

/// Returns true if these statements never reach their end.
fn ends(steps: &[CompiledStatement]) -> bool {
    steps.iter().any(|step| match &step.op {
        Op::Return(verdict) => !matches!(verdict, run::Verdict::Back),
        Op::Block(inner) => ends(inner),
        Op::If(arms, otherwise) => {
            !otherwise.is_empty() && ends(otherwise) && arms.iter().all(|arm| ends(&arm.body))
        }
        _ => false,
    })
}

fn sign(op: SetOp) -> &'static str {
    match op {
        SetOp::Assign => "=",
        SetOp::Add => "+=",
        SetOp::Subtract => "-=",
        SetOp::Multiply => "*=",
        SetOp::Divide => "/=",
    }
}
