//! Arguments of calls: functions of the language and of VMODs, methods of objects and types, each
//! argument checked against its parameter. No call with a wrong argument is lowered.

use crate::ast::{self, Argument, CallExpr, ExprKind, Name};
use crate::lower::Lowering;
use crate::lower::conversion::TypedTerm;
use crate::lower::symbols::SymbolKind;
use crate::run::{FunctionInvocation, MethodInvocation, StringTerm, Term};
use crate::source::SourceSpan;
use crate::state::value::Value;
use crate::types::Type;
use crate::vmod::{self, Parameter};

impl Lowering<'_> {
    /// Lowers a call whose value is used.
    pub(super) fn call_expr(&mut self, call: &CallExpr) -> Option<TypedTerm> {
        match &*call.name.text {
            "regsub" => return self.regsub(call, false),
            "regsuball" => return self.regsub(call, true),
            "hash_data" | "ban" | "synthetic" => {
                self.report
                    .error(call.span, format!("`{}` returns nothing", call.name.text))
                    .help("it is a statement of its own");
                return None;
            }
            _ => {}
        }
        let Some((head, last)) = call.name.text.rsplit_once('.') else {
            self.unknown_function(call);
            return None;
        };
        match self.symbols.get(head).map(|symbol| symbol.kind) {
            Some(SymbolKind::Module(module)) => self.function(module, last, call),
            Some(SymbolKind::Object(number, class)) => self.method(number, class, last, call),
            _ => self.method_of_type(head, last, call),
        }
    }

    /// `module.function(...)`
    fn function(
        &mut self,
        module: &'static vmod::Module,
        name: &str,
        call: &CallExpr,
    ) -> Option<TypedTerm> {
        let Some(function) = function_of(module, name) else {
            let is_class = module.classes.iter().any(|class| class.name.eq_ignore_ascii_case(name));
            let entry = self
                .report
                .error(call.name.span, format!("VMOD `{}` has no function `{name}`", module.name));
            if is_class {
                entry.help(format!(
                    "`{name}` is a class: write `new x = {}();` in vcl_init",
                    call.name.text
                ));
            } else if let Some(refused) =
                module.refused.iter().find(|refused| refused.name.eq_ignore_ascii_case(name))
            {
                entry.note(format!("Varnish's module has this function. Here it {}", refused.why));
            } else {
                entry.did_you_mean(name, module.functions.iter().map(|function| function.name));
            }
            return None;
        };
        self.restrict_call(function.from, &call.name);
        match module.name {
            "std" => {
                self.check_std(function.name, &call.name);
                self.std_uses(function.name, call);
            }
            "tcp" => self.parts.uses.socket = true,
            _ => {}
        }
        let arguments = self.arguments(function.params, &call.arguments, call)?;
        let invoke = FunctionInvocation { call: function.call, from: function.from, arguments };
        let expr = Term::Call(Box::new(invoke));
        Some(returned(expr, function.returns, call.span))
    }

    /// Records uses of `std` that the program's runner has to prepare for.
    fn std_uses(&mut self, name: &str, call: &CallExpr) {
        match name {
            "rollback" => self.parts.uses.rollback = true,
            "set_ip_tos" => self.parts.uses.socket = true,
            "cache_req_body" => {
                let asked = call.arguments.first().and_then(|first| match first.value.kind {
                    ExprKind::Bytes(bytes) => u64::try_from(bytes).ok(),
                    // Where BYTES are expected, `1m` is a megabyte.
                    ExprKind::Minutes(n) => Some((n * 1_048_576.0) as u64),
                    _ => None,
                });
                let most = self.parts.uses.body.unwrap_or(0).max(asked.unwrap_or(u64::MAX));
                self.parts.uses.body = Some(most);
            }
            _ => {}
        }
    }

    /// `object.method(...)`
    fn method(
        &mut self,
        number: u32,
        class: &'static vmod::Class,
        name: &str,
        call: &CallExpr,
    ) -> Option<TypedTerm> {
        let Some(method) = class.methods.iter().find(|m| m.name.eq_ignore_ascii_case(name)) else {
            let entry = self
                .report
                .error(call.name.span, format!("a `{}` has no method `{name}`", class.name));
            if let Some(refused) = crate::vmods::refused_method(class, name) {
                entry.note(format!("Varnish's module has this method. Here it {}", refused.why));
            } else {
                let names = || class.methods.iter().map(|method| method.name);
                entry.note(format!("its methods: {}", listed(names()))).did_you_mean(name, names());
            }
            return None;
        };
        if let Some((object, _)) = call.name.text.rsplit_once('.') {
            self.symbols.take(object);
        }
        self.restrict_call(method.from, &call.name);
        let arguments = self.arguments(method.params, &call.arguments, call)?;
        let invoke =
            MethodInvocation { call: method.call, from: method.from, object: number, arguments };
        Some(returned(Term::Method(Box::new(invoke)), method.returns, call.span))
    }

    /// Method of a value such as `value.lower()`; `head` is a name.
    fn method_of_type(&mut self, head: &str, last: &str, call: &CallExpr) -> Option<TypedTerm> {
        if !METHODS.contains(&last) {
            self.unknown_function(call);
            return None;
        }
        let end = call.name.span.start + head.len() as u32;
        let span = SourceSpan { end, ..call.name.span };
        let name = Name { text: head.into(), span };
        let wanted = if last == "resolve" { Type::Backend } else { Type::String };
        let object = self.expr(&ast::Expr { kind: ExprKind::Name(name), span }, wanted)?;
        self.apply_method(object, last, call)
    }

    /// Method of an expression such as `(expression).lower()`.
    pub(super) fn method_call(&mut self, object: &ast::Expr, call: &CallExpr) -> Option<TypedTerm> {
        let wanted = if &*call.name.text == "resolve" { Type::Backend } else { Type::String };
        let object = self.expr(object, wanted)?;
        self.apply_method(object, &call.name.text, call)
    }

    fn apply_method(
        &mut self,
        object: TypedTerm,
        name: &str,
        call: &CallExpr,
    ) -> Option<TypedTerm> {
        let typed = match (object.ty, name) {
            (Type::String, "lower" | "upper") => {
                let inner = Box::new(self.text_of(object)?);
                let text = if name == "lower" {
                    StringTerm::Lower(inner)
                } else {
                    StringTerm::Upper(inner)
                };
                TypedTerm::text(text, call.span)
            }
            (Type::Backend, "resolve") => {
                TypedTerm::new(Term::Resolve(Box::new(object.expr)), Type::Backend, call.span)
            }
            (ty, _) => {
                self.report
                    .error(call.name.span, format!("a value of type {ty} has no `{name}`"))
                    .note("STRING has lower() and upper(), BACKEND has resolve()");
                return None;
            }
        };
        self.no_arguments(call)?;
        Some(typed)
    }

    fn no_arguments(&mut self, call: &CallExpr) -> Option<()> {
        if call.arguments.is_empty() {
            return Some(());
        }
        self.report.error(call.span, "this method takes no arguments");
        None
    }

    /// Reports a call of an unknown function.
    pub(super) fn unknown_function(&mut self, call: &CallExpr) {
        let text = &*call.name.text;
        let module = text.split('.').next().unwrap_or(text);
        if self.missing.contains(module) {
            return;
        }
        if let Some((what, help)) = super::advice::old_function(text) {
            self.report.error(call.name.span, what).help(help);
            return;
        }

        let is_vmod = text.contains('.') && crate::vmods::find(module).is_some();
        let known = self.symbols.get(module).is_some();
        let in_std = crate::vmods::find("std")
            .is_some_and(|std| std.functions.iter().any(|function| function.name == text));
        let mut names: Vec<&str> = vec!["regsub", "regsuball", "hash_data", "ban", "synthetic"];
        names.extend(self.symbols.names(|kind| matches!(kind, SymbolKind::Module(_))));
        let entry = self.report.error(call.name.span, format!("there is no function `{text}`"));
        if is_vmod && !known {
            entry.help(format!("write `import {module};` above"));
        } else if in_std {
            entry.help(format!("`import std;` above, and `std.{text}(...)`"));
        } else {
            entry.did_you_mean(module, names);
        }
    }

    /// Lowers the arguments of a call, one for each parameter.
    pub(super) fn arguments(
        &mut self,
        params: &'static [Parameter],
        given: &[Argument],
        call: &CallExpr,
    ) -> Option<Box<[Term]>> {
        let mut values: Vec<Option<Option<Term>>> = params.iter().map(|_| None).collect();
        let mut named = false;
        let mut right = true;
        for (at, argument) in given.iter().enumerate() {
            let position = match &argument.name {
                None if named => {
                    self.report
                        .error(argument.value.span, "an argument without a name")
                        .note("after one that is named, all must be named");
                    return None;
                }
                None if at >= params.len() => {
                    self.too_many(params, given, call);
                    return None;
                }
                None => at,
                Some(name) => {
                    named = true;
                    match params.iter().position(|param| param.name == &*name.text) {
                        Some(position) => position,
                        None => {
                            self.no_parameter(name, params);
                            right = false;
                            continue;
                        }
                    }
                }
            };
            let param = &params[position];
            if values[position].is_some() {
                let span = argument.name.as_ref().map_or(argument.value.span, |name| name.span);
                self.report.error(span, format!("`{}` is given twice", param.name));
                right = false;
                continue;
            }
            values[position] = Some(self.argument(param, &argument.value));
        }
        let mut all = Vec::with_capacity(params.len());
        for (param, value) in params.iter().zip(values) {
            match value {
                Some(value) => all.push(value),
                None => all.push(self.default_argument(param, call)),
            }
        }
        let all: Option<Vec<Term>> = all.into_iter().collect();
        all.filter(|_| right).map(Vec::into)
    }

    fn argument(&mut self, param: &'static Parameter, e: &ast::Expr) -> Option<Term> {
        match param.kind {
            vmod::ArgumentType::Enum(values) => {
                let ExprKind::Name(name) = &e.kind else {
                    self.report
                        .error(e.span, "a value of an enumeration is expected here")
                        .expected(values.join(", "));
                    return None;
                };
                let Some(value) = values.iter().find(|value| **value == &*name.text) else {
                    self.report
                        .error(e.span, format!("`{}` is no value of this enumeration", name.text))
                        .expected(values.join(", "))
                        .did_you_mean(&name.text, values.iter().copied());
                    return None;
                };
                Some(Term::Const(Value::Enum(value)))
            }
            vmod::ArgumentType::Refused(ty, why) => {
                let is_false = matches!(&e.kind, ExprKind::Name(name) if &*name.text == "false");
                if ty == Type::Bool && is_false {
                    return Some(Term::Const(Value::Bool(false)));
                }
                let what = format!("`{}` is not supported here", param.name);
                self.report.error(e.span, what).note(why);
                None
            }
            vmod::ArgumentType::Of(Type::Regex) => {
                self.pattern(e).map(|number| Term::Const(Value::Regex(number)))
            }
            vmod::ArgumentType::Of(ty) => self.value(e, ty),
        }
    }

    fn default_argument(&mut self, param: &'static Parameter, call: &CallExpr) -> Option<Term> {
        let value = match (param.default, param.kind) {
            (None, _) => {
                let message = match param.name {
                    "" => "an argument is missing".to_owned(),
                    name => format!("argument `{name}` is missing"),
                };
                self.report
                    .error(call.span, message)
                    .note(format!("it is {}", kind_name(param.kind)));
                return None;
            }
            (Some(vmod::ParameterDefault::Absent), _) => Value::Void,
            (Some(vmod::ParameterDefault::Str(text)), _) => Value::String(Some(text.into())),
            (Some(vmod::ParameterDefault::Bool(known)), _) => Value::Bool(known),
            (Some(vmod::ParameterDefault::Enum(value)), _) => Value::Enum(value),
            (Some(vmod::ParameterDefault::Number(n)), vmod::ArgumentType::Of(ty)) => match ty {
                Type::Int => Value::Int(n as i64),
                Type::Bytes => Value::Bytes(n as i64),
                Type::Duration => Value::Duration(n),
                Type::Time => Value::Time(n),
                _ => Value::Real(n),
            },
            (Some(vmod::ParameterDefault::Number(n)), _) => Value::Real(n),
        };
        Some(match value {
            Value::String(Some(bytes)) => Term::Text(Box::new(StringTerm::Const(bytes))),
            value => Term::Const(value),
        })
    }

    fn too_many(&mut self, params: &[Parameter], given: &[Argument], call: &CallExpr) {
        let most = params.len();
        let what = match most {
            0 => "takes no arguments".to_string(),
            1 => "takes 1 argument".to_string(),
            n => format!("takes {n} arguments"),
        };
        self.report
            .error(given[most].value.span, format!("`{}` {what}", call.name.text))
            .here("one too many");
    }

    fn no_parameter(&mut self, name: &Name, params: &[Parameter]) {
        let names: Vec<&str> = params.iter().map(|param| param.name).collect();
        let entry = self
            .report
            .error(name.span, format!("there is no argument `{}`", name.text))
            .did_you_mean(&name.text, names.iter().copied());
        if !names.is_empty() {
            entry.note(format!("its arguments: {}", names.join(", ")));
        }
    }

    /// `new name = class(...)`
    pub(super) fn new_object(
        &mut self,
        name: &Name,
        class: &Name,
        arguments: &[Argument],
        span: SourceSpan,
    ) -> Option<crate::run::Op> {
        let init = crate::sub::Sub::Init.only();
        self.restrict(init, name.span, || "objects cannot be made".to_string());
        let found = class.text.split_once('.').and_then(|(module, last)| {
            match self.symbols.get(module)?.kind {
                SymbolKind::Module(module) => Some((module, last)),
                _ => None,
            }
        });
        let Some((module, last)) = found else {
            self.missing.insert(name.text.clone());
            let (module, _) = class.text.split_once('.').unwrap_or((&class.text, ""));
            if self.missing.contains(module) {
                return None;
            }
            let entry =
                self.report.error(class.span, format!("there is no class `{}`", class.text));
            if crate::vmods::find(module).is_some() {
                entry.help(format!("write `import {module};` above"));
            }
            return None;
        };
        let Some(class_found) = module.classes.iter().find(|c| c.name.eq_ignore_ascii_case(last))
        else {
            self.report
                .error(class.span, format!("VMOD `{}` has no class `{last}`", module.name))
                .did_you_mean(last, module.classes.iter().map(|class| class.name));
            if module.functions.iter().any(|function| function.name == last)
                && let Some(entry) = self.report.last()
            {
                entry.note("it is a function, and makes no object");
            }
            self.missing.insert(name.text.clone());
            return None;
        };
        let number = self.parts.objects.len() as u32;
        let is_new = self.declare_one(name, SymbolKind::Object(number, class_found));
        if is_new {
            self.parts.objects.push(name.text.clone());
        }
        let call = CallExpr { name: class.clone(), arguments: Vec::new(), span };
        let arguments = self.arguments(class_found.params, arguments, &call)?;
        let new = crate::run::NewStatement {
            name: name.text.clone(),
            number,
            construct: class_found.construct,
            arguments,
        };
        is_new.then(|| crate::run::Op::New(Box::new(new)))
    }
}

/// Joins names for a sentence.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

/// Methods of types.
const METHODS: &[&str] = &["lower", "upper", "resolve"];

fn returned(expr: Term, ty: Type, span: SourceSpan) -> TypedTerm {
    match ty {
        Type::String => TypedTerm::text(StringTerm::Shown(Box::new(expr)), span),
        ty => TypedTerm::new(expr, ty, span),
    }
}

fn kind_name(kind: vmod::ArgumentType) -> String {
    match kind {
        vmod::ArgumentType::Of(ty) | vmod::ArgumentType::Refused(ty, _) => format!("of type {ty}"),
        vmod::ArgumentType::Enum(values) => format!("one of {}", values.join(", ")),
    }
}

/// Function `name` of `module`, compared without case.
fn function_of(module: &'static vmod::Module, name: &str) -> Option<&'static vmod::Function> {
    module.functions.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}
