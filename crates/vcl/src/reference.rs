//! Reference pages of variables and VMODs in Markdown, generated from their tables only.

use std::fmt::Write;

use crate::state::value::VclMessage;
use crate::sub::{Sub, Subs, TaskSide};
use crate::types::Type;
use crate::vars::{self, StorageFact, Var};
use crate::vmod::{ArgumentType, Class, Function, Method, Module, Parameter, ParameterDefault};
use crate::vmods;

/// The page of variables.
pub fn variables_markdown() -> String {
    let mut out = String::from(
        "# VCL variables\n\n\
         `cargo xtask docs` generates this page from the table in the code. *client* means all \
         subroutines of a request (`vcl_recv` to `vcl_synth`). *backend* means the four of a \
         fetch. *all* means these, `vcl_init` and `vcl_fini`.\n",
    );
    let mut last = "";
    for var in vars::all() {
        let scope = var.name.split_once('.').map_or(var.name, |(scope, _)| scope);
        let scope = if matches!(scope, "server" | "remote" | "local") { "client" } else { scope };
        if scope != last {
            heading(&mut out, scope);
            if let Some(message) = message(scope) {
                headers_of(&mut out, scope, message);
            }
            last = scope;
        }
        variable(&mut out, var);
    }
    out.push_str("\n## storage\n\n");
    for (fact, name, about) in StorageFact::ALL {
        let _ =
            writeln!(out, "- **`storage.<name>.{name}`** ({}): {about} Read in all.", fact.kind());
    }
    out
}

fn heading(out: &mut String, scope: &str) {
    let title = match scope {
        "client" => "client, server, remote, local",
        other => other,
    };
    let _ = write!(out, "\n## {title}\n\n");
}

fn message(scope: &str) -> Option<VclMessage> {
    vars::header(&format!("{scope}.http.x")).map(|header| header.message)
}

fn headers_of(out: &mut String, scope: &str, place: VclMessage) {
    let name = format!("{scope}.http.x");
    let Some(header) = vars::header(&name).filter(|header| header.message == place) else { return };
    let _ = write!(out, "- **`{scope}.http.*`** (HEADER): The header fields, by name.");
    uses(out, header.read, header.write, header.unset);
}

fn variable(out: &mut String, var: &Var) {
    let _ = write!(out, "- **`{}`** ({}", var.name, var.kind);
    match (var.since, var.until) {
        (41, _) => out.push_str(", VCL 4.1"),
        (_, 40) => out.push_str(", VCL 4.0"),
        _ => {}
    }
    let _ = write!(out, "): {}", var.about);
    uses(out, var.read, var.write, var.unset);
}

fn uses(out: &mut String, read: Subs, write: Subs, unset: Subs) {
    for (what, subs) in [("Read", read), ("Set", write), ("Unset", unset)] {
        if subs != Subs::NONE {
            let _ = write!(out, " {what} in {}.", places(subs));
        }
    }
    out.push('\n');
}

/// A set of subroutines as text.
fn places(subs: Subs) -> String {
    if subs == Subs::ALL {
        return "all".to_string();
    }
    let mut words = Vec::new();
    let sides = [
        (Subs::CLIENT, TaskSide::Client, "client"),
        (Subs::BACKEND, TaskSide::Backend, "backend"),
        (Subs::HOUSEKEEPING, TaskSide::Housekeeping, "`vcl_init`, `vcl_fini`"),
    ];
    for (set, side, word) in sides {
        if subs.has_all(set) {
            words.push(word.to_string());
        } else {
            let some = subs.iter().filter(|sub| sub.side() == side);
            words.extend(some.map(|sub: Sub| format!("`{}`", sub.name())));
        }
    }
    words.join(", ")
}

/// The page of VMODs.
pub fn modules_markdown() -> String {
    let mut out = String::from(
        "# VMODs\n\n\
         `cargo xtask docs` generates this page from the tables in the code. All VMODs are built \
         in: `import name;` is enough, and a path after `from` is ignored. Parameters in brackets \
         are optional.\n",
    );
    for module in vmods::all() {
        describe(&mut out, module);
    }
    out
}

fn describe(out: &mut String, module: &Module) {
    let _ = write!(out, "\n## {}\n\n{}\n\n", module.name, module.about);
    for function in module.functions {
        let Function { name, about, returns, params, from, .. } = function;
        let name = format!("{}.{name}", module.name);
        call(out, &name, about, *returns, params, *from);
    }
    for refused in module.refused {
        let _ = writeln!(out, "- **`{}`** is not supported: it {}", refused.name, refused.why);
    }
    for class in module.classes {
        let Class { name, about, params, methods, .. } = class;
        let _ = write!(
            out,
            "\n### new x = {}.{name}({})\n\n{about}\n\n",
            module.name,
            parameters(params)
        );
        for method in *methods {
            let Method { name, about, returns, params, from, .. } = method;
            call(out, &format!("x.{name}"), about, *returns, params, *from);
        }
    }
}

fn call(
    out: &mut String,
    name: &str,
    about: &str,
    returns: Type,
    params: &[Parameter],
    from: Subs,
) {
    let _ = write!(out, "- **`{returns} {name}({})`**: {about}", parameters(params));
    if from != Subs::ALL {
        let _ = write!(out, " In {} only.", places(from));
    }
    out.push('\n');
}

fn parameters(params: &[Parameter]) -> String {
    params.iter().map(parameter).collect::<Vec<_>>().join(", ")
}

fn parameter(param: &Parameter) -> String {
    let kind = match param.kind {
        ArgumentType::Of(kind) => kind.name().to_string(),
        ArgumentType::Refused(kind, _) => {
            return format!("[{} {}: not supported]", kind.name(), param.name);
        }
        ArgumentType::Enum(words) => format!("ENUM {{{}}}", words.join(", ")),
    };
    let name = param.name;
    match param.default {
        None => format!("{kind} {name}"),
        Some(ParameterDefault::Absent) => format!("[{kind} {name}]"),
        Some(ParameterDefault::Str(text)) => format!("[{kind} {name} = \"{text}\"]"),
        Some(ParameterDefault::Number(number)) => format!("[{kind} {name} = {number}]"),
        Some(ParameterDefault::Bool(truth)) => format!("[{kind} {name} = {truth}]"),
        Some(ParameterDefault::Enum(value)) => format!("[{kind} {name} = {value}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_and_function_has_its_line() {
        let page = variables_markdown();
        for var in vars::all() {
            assert!(page.contains(&format!("- **`{}`** (", var.name)), "{}", var.name);
        }
        assert!(page.contains(
            "- **`beresp.ttl`** (DURATION): Time for which the object is fresh, counted from now. \
             Read in `vcl_backend_refresh`, `vcl_backend_response`, `vcl_backend_error`. Set in"
        ));
        let page = modules_markdown();
        assert!(page.contains(
            "- **`STRING std.tolower(STRING s)`**: The string in lower case. ASCII only.\n"
        ));
        assert!(page.contains("std.collect(HEADER hdr, [STRING sep = \", \"])"));
        assert!(page.contains("[BOOL pathname = true]"));
    }
}
