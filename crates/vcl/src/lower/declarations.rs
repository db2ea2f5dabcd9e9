//! Declarations: each name is unique and permitted, and each declaration is used. No statement is
//! lowered here.

use crate::ast::{Declaration, Name};
use crate::lower::facts::SubFacts;
use crate::lower::symbols::{SymbolKind, folded};
use crate::lower::{Lowering, advice};
use crate::vmods;

impl Lowering<'_> {
    /// Declares the names of `items`. Modules and probes are known only behind their declarations.
    pub(super) fn declare(&mut self, items: &[Declaration]) {
        for item in items {
            match item {
                Declaration::Import { .. } | Declaration::Probe { .. } | Declaration::Unused(_) => {
                }
                Declaration::Acl(acl) => {
                    let number = self.symbols.acls;
                    self.declare_one(&acl.name, SymbolKind::Acl(number));
                }
                Declaration::Backend { name, .. } => {
                    let number = self.symbols.backends;
                    self.declare_one(name, SymbolKind::Backend(number));
                }
                Declaration::Sub { name, .. } => self.declare_sub(name),
            }
        }
    }

    /// Declares a new name. The name of an object is declared by its `new`.
    pub(super) fn declare_one(&mut self, name: &Name, kind: SymbolKind) -> bool {
        let reserved =
            folded(&name.text).starts_with("vcl_") && !matches!(kind, SymbolKind::Sub(_));
        let reason = not_allowed(&name.text)
            .or_else(|| reserved.then_some("names that begin with `vcl_` are reserved"))
            .or_else(|| misplaced_default(&name.text, kind));
        if let Some(reason) = reason {
            self.report.error(name.span, format!("`{}` cannot be a name", name.text)).note(reason);
        }
        if let Some(first) = self.symbols.get(&name.text) {
            let keyword = first.kind.keyword();
            let span = first.span;
            self.report
                .error(name.span, format!("`{}` is declared twice", name.text))
                .here(format!("declared again, as {}", kind.keyword()))
                .label(span, format!("first declared here, as {keyword}"));
            return false;
        }
        self.symbols.put(&name.text, kind, name.span);
        true
    }

    /// `import module;`
    pub(super) fn import(&mut self, module: &Name, alias: Option<&Name>) {
        let Some(found) = vmods::find(&module.text) else {
            self.report
                .error(module.span, format!("there is no VMOD `{}`", module.text))
                .did_you_mean(&module.text, vmods::all().iter().map(|module| module.name))
                .note("VMODs are built in; none can be loaded");
            self.missing.insert(alias.unwrap_or(module).text.clone());
            return;
        };
        self.check_module(module);
        if found.name == "xkey" {
            self.parts.uses.xkey = true;
        }
        let name = alias.unwrap_or(module);
        // As in Varnish, an import may be repeated.
        let again = self.symbols.get(&name.text).is_some_and(
            |first| matches!(first.kind, SymbolKind::Module(module) if module.name == found.name),
        );
        if !again {
            self.declare_one(name, SymbolKind::Module(found));
        }
    }

    fn declare_sub(&mut self, name: &Name) {
        let is_step = name.text.starts_with("vcl_");
        self.check_step(name);
        if is_step && self.symbols.sub(&name.text).is_some() {
            return;
        }
        if is_step && !self.steps_of_builtin.contains(&name.text) {
            let known: Vec<&str> = self.steps_of_builtin.iter().map(|step| &**step).collect();
            let entry = self
                .report
                .error(name.span, format!("there is no subroutine `{}`", name.text))
                .note("names that begin with `vcl_` are those of the subroutines Varnish calls");
            match advice::old_sub(&name.text) {
                Some(help) => entry.help(help),
                None => entry.did_you_mean(&name.text, known),
            };
        }
        let number = self.facts.len() as u32;
        if self.declare_one(name, SymbolKind::Sub(number)) {
            self.facts.push(SubFacts::of(&name.text, name.span));
            self.bodies.push(Vec::new());
        }
    }

    /// `unused name;`: the name may stay unused.
    pub(super) fn mark_unused(&mut self, name: &Name) {
        if self.symbols.take(&name.text).is_none() && !self.missing.contains(&name.text) {
            let names: Vec<&str> = self.symbols.names(|_| true).collect();
            self.report
                .error(name.span, format!("`{}` is not declared", name.text))
                .did_you_mean(&name.text, names);
        }
    }

    /// Reports unused declarations, as Varnish does (`vcc_err_unref`).
    pub(super) fn unused(&mut self) {
        for (name, symbol) in self.symbols.all() {
            let counts = match symbol.kind {
                SymbolKind::Acl(_) | SymbolKind::Probe(_) | SymbolKind::Backend(_) => true,
                SymbolKind::Sub(_) => !name.starts_with("vcl_"),
                SymbolKind::Module(_) | SymbolKind::Object(..) => false,
            };
            if counts && !symbol.used {
                let keyword = symbol.kind.keyword();
                let what = format!("{keyword} `{name}` is never used");
                if self.input.rules.unused_is_error {
                    self.report.error(symbol.span, what).help(format!(
                        "remove it, use it, or say `unused {name};`: Varnish refuses an unused \
                         {keyword}, too"
                    ));
                } else {
                    self.report.warning(symbol.span, what);
                }
            }
        }
    }
}

/// Only backends, and probes by their own rule, may be named `default`.
fn misplaced_default(name: &str, kind: SymbolKind) -> Option<&'static str> {
    let misplaced = name != "default" || !matches!(kind, SymbolKind::Backend(_));
    let misplaced = misplaced && folded(name) == "default";
    misplaced.then_some("`default` is the name of a backend or a probe")
}

/// The reason why `name` is not permitted.
fn not_allowed(name: &str) -> Option<&'static str> {
    const TAKEN: &[&str] = &[
        "acl",
        "backend",
        "ban",
        "bereq",
        "beresp",
        "call",
        "else",
        "elseif",
        "elsif",
        "false",
        "hash_data",
        "if",
        "import",
        "include",
        "new",
        "now",
        "probe",
        "regsub",
        "regsuball",
        "req",
        "req_top",
        "resp",
        "return",
        "set",
        "sub",
        "synthetic",
        "true",
        "unset",
        "vcl",
    ];
    if name.contains('.') {
        return Some("a declared name has no dots");
    }
    TAKEN.contains(&&*folded(name)).then_some("the language reserves it")
}
