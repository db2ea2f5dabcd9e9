//! Advice for authors: replacements of what newer VCL lacks, and warnings of risky but permitted
//! code. It never rejects a program.

use crate::ast::{Argument, CallExpr, Expr, ExprKind};
use crate::lower::Lowering;
use crate::lower::facts::SubFacts;
use crate::sub::Sub;

/// Error and replacement for a statement of older VCL.
pub(super) fn old_statement(word: &str) -> Option<(&'static str, &'static str)> {
    Some(match word {
        "error" => ("`error` was VCL 3", "write `return (synth(404, \"reason\"));`"),
        "remove" => ("`remove` was VCL 3", "write `unset`"),
        "purge" => ("`purge` as a statement was VCL 3", "write `return (purge);` in vcl_recv"),
        "esi" => ("`esi` was VCL 2", "write `set beresp.do_esi = true;`"),
        "log" => ("`log` was VCL 2", "write `import std;` above and `std.log(\"...\");`"),
        "rollback" => (
            "`rollback` is a function of VMOD std",
            "write `import std;` above and `std.rollback(req);`",
        ),
        "panic" => ("`panic` is not in VCL", "write `return (fail(\"why\"));`"),
        "restart" | "pass" | "pipe" | "deliver" | "fetch" | "lookup" | "hash" | "synth"
        | "retry" | "abandon" => ("an action stands in a `return`", "write `return (action);`"),
        _ => return None,
    })
}

/// Error and replacement for a function of older VCL.
pub(super) fn old_function(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "purge" | "purge_url" | "purge_hash" => {
            ("this function was VCL 2", "write `return (purge);` in vcl_recv, or `ban(...)`")
        }
        "ban_url" => (
            "`ban_url` was VCL 3",
            "write `ban(\"obj.http.url ~ \" + ...)` with the URL kept in a header of the object",
        ),
        "rollback" => (
            "`rollback` is a function of VMOD std",
            "write `import std;` above and `std.rollback(req);`",
        ),
        "error" => ("`error` was VCL 3", "write `return (synth(404, \"reason\"));`"),
        "esi" => ("`esi` was VCL 2", "write `set beresp.do_esi = true;`"),
        "log" => ("`log` was VCL 2", "write `import std;` above and `std.log(\"...\");`"),
        "strlen" | "std.strlen" => ("there is no such function", "`str.len(...)` of VMOD str"),
        _ => return None,
    })
}

/// Error and replacement for a variable of older VCL.
pub(super) fn old_name(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "req.backend" => ("`req.backend` was VCL 3", "write `req.backend_hint`"),
        "req.request" => ("`req.request` was VCL 3", "write `req.method`"),
        "bereq.request" => ("`bereq.request` was VCL 3", "write `bereq.method`"),
        "beresp.response" => ("`beresp.response` was VCL 3", "write `beresp.reason`"),
        "resp.response" => ("`resp.response` was VCL 3", "write `resp.reason`"),
        "obj.response" => ("`obj.response` was VCL 3", "write `obj.reason`"),
        "beresp.storage_hint" => {
            ("`beresp.storage_hint` was removed", "write `set beresp.storage = storage.NAME;`")
        }
        "client.port" | "server.port" => {
            ("this variable was removed", "`std.port(client.ip)` of VMOD std")
        }
        "obj.lastuse" => ("`obj.lastuse` was VCL 3", "`obj.hits` and `obj.age` may serve"),
        "obj.cacheable" | "beresp.cacheable" => {
            ("this variable was VCL 2", "write `beresp.uncacheable`")
        }
        "req.grace" => ("`req.grace` cannot be used here", "see `beresp.grace`"),
        "req.hash" => ("`req.hash` can be read only", "write `hash_data(...)`"),
        _ => return None,
    })
}

/// The replacement of a subroutine of older VCL.
pub(super) fn old_sub(name: &str) -> Option<&'static str> {
    Some(match name {
        "vcl_fetch" => {
            "`vcl_fetch` was VCL 3: `vcl_backend_response`, which has `bereq`, not `req`"
        }
        "vcl_error" => {
            "`vcl_error` was VCL 3: `vcl_synth` for synthetic responses, `vcl_backend_error` for \
             failed fetches"
        }
        "vcl_timeout" | "vcl_discard" | "vcl_prefetch" => "it was VCL 2, and nothing replaces it",
        _ => return None,
    })
}

/// The replacement in VCL 4.1 of a variable of 4.0.
pub(super) fn replacement_of_variable(name: &str) -> Option<&'static str> {
    Some(match name {
        "req.esi" => "write `resp.do_esi` in vcl_deliver",
        "beresp.backend.ip" => "`beresp.backend` gives the backend's name",
        "beresp.storage_hint" => "write `set beresp.storage = storage.NAME;`",
        _ => return None,
    })
}

/// Alternative to setting a read-only variable.
pub(super) fn instead_of_setting(name: &str) -> Option<&'static str> {
    if name.starts_with("obj.") {
        return Some("a stored object does not change: set `beresp` in vcl_backend_response");
    }
    Some(match name {
        "req.hash" => "`hash_data(...)` adds to the key, in vcl_hash",
        "client.ip" => "set `client.identity`",
        _ => return None,
    })
}

/// The replacement of a verb of older VCL.
pub(super) fn old_verb(word: &str) -> Option<&'static str> {
    Some(match word {
        "error" => "write `return (synth(404, \"reason\"));`",
        "hit_for_pass" => {
            "write `set beresp.uncacheable = true; return (deliver);`, or `return (pass(2m));`"
        }
        "discard" | "keep" => "these were VCL 2",
        _ => return None,
    })
}

impl Lowering<'_> {
    /// Warns of a `return` that skips safety checks of the builtin VCL.
    pub(super) fn warn_of_skipped_checks(&mut self) {
        let mut warnings = Vec::new();
        for (sub, what) in SAFETY {
            let Some(number) = self.symbols.sub(sub.name()) else { continue };
            let facts: &SubFacts = &self.facts[number as usize];
            if let Some(span) = facts.ends {
                warnings.push((span, format!("{} always returns by itself", sub.name()), *what));
            }
        }
        for (span, message, what) in warnings {
            self.report.advice(span, message).note(what);
        }
    }
}

impl Lowering<'_> {
    /// Warns of a key that has only part of a field or URL that the backend gets in full.
    pub(super) fn warn_of_partial_key(&mut self, hash_data: &CallExpr) {
        let [Argument { value: Expr { kind: ExprKind::Call(call), .. }, .. }] =
            &hash_data.arguments[..]
        else {
            return;
        };
        if !matches!(&*call.name.text, "regsub" | "regsuball") {
            return;
        }
        if let [Argument { value: Expr { kind: ExprKind::Name(name), .. }, .. }, ..] =
            &call.arguments[..]
            && name.text.starts_with("req.")
        {
            self.report
                .advice(call.span, format!("the key has a part of `{}` only", name.text))
                .note("the backend still gets all of it, and its response may depend on the rest")
                .help(format!("strip it in vcl_recv: `set {} = ...;`", name.text));
        }
    }
}

/// Safety checks of the builtin VCL, by subroutine.
const SAFETY: &[(Sub, &str)] = &[
    (
        Sub::Recv,
        "the builtin vcl_recv is never reached: it passes requests with Authorization or Cookie \
         and methods other than GET and HEAD, and refuses requests without Host",
    ),
    (
        Sub::Hash,
        "the builtin vcl_hash is never reached: it adds the URL and the host to the key; add them \
         here, or one site's pages are served for another's",
    ),
    (
        Sub::BackendResponse,
        "the builtin vcl_backend_response is never reached: it keeps what has Set-Cookie, \
         `Cache-Control: private` or `Vary: *` out of the cache",
    ),
];
