//! Extra: the subroutines, actions, variables and modules that a program beside a site's settings
//! may use. All that the settings decide, or that would have no effect beside them, is refused with
//! the setting to use; nothing is silently ignored.

use crate::ast::Name;
use crate::input::ProgramRole;
use crate::lower::Lowering;
use crate::source::SourceSpan;
use crate::sub::{ActionKind, Sub, Subs};

/// Subroutines that an extra may have, each with the actions that it may return.
const SUBS: &[(Sub, &[ActionKind])] = &[
    (Sub::Recv, &[ActionKind::Fail, ActionKind::Hash, ActionKind::Pass, ActionKind::Synth]),
    (Sub::Hash, &[ActionKind::Fail, ActionKind::Lookup]),
    (Sub::BackendFetch, &[ActionKind::Fail, ActionKind::Fetch]),
    (Sub::BackendResponse, &[ActionKind::Deliver, ActionKind::Fail]),
    (Sub::Deliver, &[ActionKind::Deliver, ActionKind::Fail]),
    (Sub::Synth, &[ActionKind::Deliver, ActionKind::Fail]),
    (Sub::Init, &[ActionKind::Fail, ActionKind::Ok]),
    (Sub::Fini, &[ActionKind::Ok]),
];

/// Variables that an extra may set. It may also set and unset all fields that a program may.
const SETTABLE: &[&str] = &[
    "bereq.trace",
    "bereq.url",
    "beresp.grace",
    "beresp.ttl",
    "beresp.uncacheable",
    "client.identity",
    "req.trace",
    "req.url",
    "resp.body",
    "resp.reason",
    "resp.status",
];

/// Variables that an extra cannot use at all, as the settings decide them, each with what does. A
/// name with a dot at its end stands for all that begin with it.
const DECIDED: &[(&str, &str)] = &[
    ("bereq.backend", ORIGIN),
    ("bereq.between_bytes_timeout", TIMES),
    ("bereq.body", WHOLE),
    ("bereq.connect_timeout", TIMES),
    ("bereq.filters", WHOLE),
    ("bereq.first_byte_timeout", TIMES),
    ("bereq.hash", WHOLE),
    ("bereq.is_hitmiss", WHOLE),
    ("bereq.is_hitpass", WHOLE),
    ("bereq.retry_connect", WHOLE),
    ("beresp.backend", ORIGIN),
    ("beresp.backend.", ORIGIN),
    ("beresp.body", ERRORS),
    ("beresp.do_esi", INCLUDES),
    ("beresp.do_gunzip", COMPRESS),
    ("beresp.do_gzip", COMPRESS),
    ("beresp.do_stream", WHOLE),
    ("beresp.filters", COMPRESS),
    ("beresp.storage", STORE),
    ("beresp.storage_hint", STORE),
    ("beresp.transit_buffer", WHOLE),
    ("beresp.was_304", WHOLE),
    ("obj.can_esi", INCLUDES),
    ("obj.storage", STORE),
    ("req.backend_hint", ORIGIN),
    ("req.esi", INCLUDES),
    ("req.filters", WHOLE),
    ("req.grace", WHOLE),
    ("req.hash", WHOLE),
    ("req.hash_always_miss", WHOLE),
    ("req.hash_ignore_busy", WHOLE),
    ("req.hash_ignore_vary", WHOLE),
    ("req.is_hitmiss", WHOLE),
    ("req.is_hitpass", WHOLE),
    ("req.max_age", WHOLE),
    ("req.storage", WHOLE),
    ("req.ttl", WHOLE),
    ("resp.do_esi", INCLUDES),
    ("resp.filters", COMPRESS),
    ("resp.is_streaming", WHOLE),
    ("sess.idle_send_timeout", WHOLE),
    ("sess.send_timeout", WHOLE),
    ("sess.timeout_idle", WHOLE),
    ("sess.timeout_linger", WHOLE),
];

/// Modules that an extra cannot import, each with what stands for it.
const MODULES: &[(&str, &str)] = &[
    ("bodyaccess", WHOLE),
    ("directors", ORIGIN),
    ("dynamic", ORIGIN),
    ("h2", WHOLE),
    ("purge", PURGE),
    ("saintmode", ORIGIN),
    ("xkey", PURGE),
];

/// Functions of VMOD std that an extra cannot call.
const FUNCTIONS: &[(&str, &str)] = &[
    ("cache_req_body", WHOLE),
    ("late_100_continue", WHOLE),
    ("rollback", "keep the former value in a field of your own, and set it again"),
];

const ORIGIN: &str = "`origin` of the site or of a [[site.route]] says which servers are asked";
const TIMES: &str = "the timeouts stand in the [[origin]], and `first_byte_timeout` in the site";
const INCLUDES: &str = "`[site.includes]` says which pages are assembled";
const COMPRESS: &str = "`compress` of the site says which bodies are compressed";
const STORE: &str = "`cache.store` of the site says where a response is stored";
const ERRORS: &str = "`error_pages` of the site has the pages for errors";
const PURGE: &str = "`[site.purge]` says who may purge, and how";
const WHOLE: &str = "a program without settings beside it can do this: it decides alone, and \
                     declares its backends";

/// The help that `table` has for `name`.
fn help_for(table: &'static [(&'static str, &'static str)], name: &str) -> Option<&'static str> {
    let is_it = |of: &str| of == name || of.ends_with('.') && name.starts_with(of);
    table.iter().find(|(of, _)| is_it(of)).map(|(_, help)| *help)
}

/// The actions that `sub` may return.
pub(super) fn actions(sub: Sub, role: ProgramRole) -> &'static [ActionKind] {
    let beside = || SUBS.iter().find(|(of, _)| *of == sub).map_or(&[][..], |(_, actions)| actions);
    match role {
        ProgramRole::Whole => sub.actions(),
        ProgramRole::Extra => beside(),
    }
}

impl Lowering<'_> {
    /// Returns true while a part of an extra is lowered, not what stands behind it.
    pub(super) fn is_extra(&self) -> bool {
        self.role() == ProgramRole::Extra
    }

    /// The role of the part that is lowered: what stands behind a program may do anything.
    pub(super) fn role(&self) -> ProgramRole {
        match self.in_builtin {
            true => ProgramRole::Whole,
            false => self.input.rules.role,
        }
    }

    /// Reports `what`, which an extra cannot have.
    fn refuse_in_extra(&mut self, span: SourceSpan, what: &str, help: &str) {
        self.report.error(span, format!("{what} beside a site's settings")).help(help);
    }

    /// Reports a backend or probe of an extra.
    pub(super) fn check_backend(&mut self, name: &Name, keyword: &str) {
        if self.is_extra() {
            self.refuse_in_extra(name.span, &format!("{keyword} `{}`", name.text), ORIGIN);
        }
    }

    /// Reports a subroutine of Varnish's that an extra cannot have.
    pub(super) fn check_step(&mut self, name: &Name) {
        let named = |sub: &Sub| sub.name() == &*name.text;
        if !self.is_extra() || SUBS.iter().any(|(sub, _)| named(sub)) {
            return;
        }
        let Some(sub) = Sub::ALL.iter().find(|sub| named(sub)) else { return };
        let names: Vec<_> = SUBS.iter().map(|(sub, _)| sub.name()).collect();
        let help = if *sub == Sub::BackendError { ERRORS } else { WHOLE };
        let note = format!("beside settings there are {}", names.join(", "));
        self.refuse_in_extra(name.span, sub.name(), help);
        if let Some(entry) = self.report.last() {
            entry.note(note);
        }
    }

    /// Reports a module that an extra cannot import.
    pub(super) fn check_module(&mut self, module: &Name) {
        if let Some(help) = help_for(MODULES, &module.text).filter(|_| self.is_extra()) {
            self.refuse_in_extra(module.span, &format!("VMOD `{}`", module.text), help);
        }
    }

    /// Reports a function of VMOD std that an extra cannot call.
    pub(super) fn check_std(&mut self, function: &str, name: &Name) {
        if let Some(help) = help_for(FUNCTIONS, function).filter(|_| self.is_extra()) {
            self.refuse_in_extra(name.span, &format!("`{}`", name.text), help);
        }
    }

    /// Reports a variable that an extra cannot use.
    pub(super) fn check_variable(&mut self, name: &Name) {
        if let Some(help) = help_for(DECIDED, &name.text).filter(|_| self.is_extra()) {
            self.refuse_in_extra(name.span, &format!("`{}`", name.text), help);
        }
    }

    /// Reports a variable that an extra can read, but not set or unset. Returns the subroutines in
    /// which it may, of those in which a program may.
    pub(super) fn settable(&mut self, name: &Name, places: Subs) -> Subs {
        let is_decided = help_for(DECIDED, &name.text).is_some();
        if !self.is_extra() || is_decided {
            return places;
        }
        match &*name.text {
            // The status of what the settings deliver is part of what they have decided.
            "resp.status" | "resp.reason" => Sub::Synth.only(),
            // The declared steps take it up behind vcl_recv, and no other subroutine.
            "req.url" => Sub::Recv.only(),
            other if SETTABLE.contains(&other) => places,
            other => {
                let what = format!("`{other}` cannot be set");
                self.refuse_in_extra(name.span, &what, WHOLE);
                places
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{compile_all, compile_as};
    use crate::vars::{self, Lookup};
    use crate::vmods;

    /// The messages about an extra, or "".
    fn said(text: &str) -> String {
        match compile_as(&format!("vcl 4.1;\n{text}"), ProgramRole::Extra) {
            Ok(compiled) => compiled.warnings,
            Err(errors) => errors,
        }
    }

    #[test]
    fn tables_name_what_is_there() {
        for (name, _) in DECIDED {
            let known = |version| matches!(vars::find(name, version), Lookup::Found(_));
            assert!(name.ends_with('.') || known(40) || known(41), "{name}");
        }
        for name in SETTABLE {
            assert!(matches!(vars::find(name, 41), Lookup::Found(var) if var.set.is_some()));
        }
        assert!(MODULES.iter().all(|(name, _)| vmods::find(name).is_some()));
        let std = vmods::find("std").expect("a module");
        let is_there = |name: &str| std.functions.iter().any(|function| function.name == name);
        assert!(FUNCTIONS.iter().all(|(name, _)| is_there(name)));
        for (sub, actions) in SUBS {
            assert!(actions.iter().all(|action| sub.actions().contains(action)), "{sub:?}");
        }
    }

    #[test]
    fn each_subroutine_of_an_extra_may_stand_alone() {
        for (sub, _) in SUBS {
            let text = format!("sub {} {{ }}", sub.name());
            assert_eq!(said(&text), "", "{text}");
        }
        assert_eq!(
            said(
                "acl own { \"10.0.0.0\"/8; }\nsub vcl_recv { if (client.ip ~ own) { return (pass); } }"
            ),
            ""
        );
    }

    #[test]
    fn what_settings_decide_is_refused_with_the_setting() {
        for (text, message, help) in [
            ("backend a none;", "backend `a` beside a site's settings", "`origin`"),
            ("probe p { }", "probe `p` beside a site's settings", "`origin`"),
            ("sub vcl_hit { }", "vcl_hit beside a site's settings", "decides alone"),
            ("sub vcl_backend_error { }", "vcl_backend_error beside", "`error_pages`"),
            ("import directors;", "VMOD `directors` beside", "`origin`"),
            ("import xkey;", "VMOD `xkey` beside", "`[site.purge]`"),
            (
                "import std; sub vcl_recv { std.rollback(req); }",
                "`std.rollback` beside",
                "a field of your own",
            ),
            ("sub vcl_recv { set req.grace = 1s; }", "`req.grace` beside", "decides alone"),
            ("sub vcl_recv { set req.method = \"GET\"; }", "`req.method` cannot be set", ""),
            (
                "sub vcl_backend_response { set beresp.do_esi = true; }",
                "`beresp.do_esi` beside",
                "`[site.includes]`",
            ),
            (
                "sub vcl_backend_response { set beresp.http.b = beresp.backend.name; }",
                "`beresp.backend.name` beside",
                "`origin`",
            ),
            (
                "sub vcl_deliver { set resp.status = 404; }",
                "`resp.status` cannot be set in vcl_deliver",
                "it works in vcl_synth only",
            ),
            (
                "sub vcl_hash { set req.url = \"/\"; }",
                "`req.url` cannot be set in vcl_hash",
                "it works in vcl_recv only",
            ),
        ] {
            let said = said(text);
            assert!(said.contains(message) && said.contains(help), "{text}: {said}");
            assert!(said.contains("test.vcl:2"), "{said}");
        }
    }

    #[test]
    fn actions_that_leave_the_declared_course_are_refused() {
        for (sub, action) in [
            ("vcl_recv", "pipe"),
            ("vcl_recv", "purge"),
            ("vcl_recv", "restart"),
            ("vcl_recv", "vcl(other)"),
            ("vcl_deliver", "restart"),
            ("vcl_deliver", "synth(404)"),
            ("vcl_synth", "restart"),
            ("vcl_backend_fetch", "abandon"),
            ("vcl_backend_response", "retry"),
            ("vcl_backend_response", "pass(1m)"),
        ] {
            let said = said(&format!("sub {sub} {{ return ({action}); }}"));
            let verb = action.split('(').next().unwrap_or_default();
            let message = format!("`{verb}` cannot be returned in {sub}");
            assert!(said.contains(&message), "{said}");
            assert!(said.contains("beside a site's settings"), "{said}");
        }
    }

    #[test]
    fn an_extra_has_no_builtin_behind_it() {
        let text = "vcl 4.1;\nsub vcl_recv { call vcl_req_cookie; }";
        let errors = compile_as(text, ProgramRole::Extra).expect_err("no such part");
        assert!(errors.contains("there is no subroutine `vcl_req_cookie`"), "{errors}");
        assert!(compile_all("vcl 4.1;\nsub vcl_recv { }").is_err(), "a whole one needs a backend");
    }
}
