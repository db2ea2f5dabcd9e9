//! Statements.

use std::fmt::Write;

use super::expr::{self, Scope};
use super::{Dice, HEADERS, PATHS};

/// Statements, `depth` levels of `if` deep, with `calls` among them.
pub(crate) fn block(dice: &mut Dice, scope: Scope, depth: usize, calls: &[String]) -> String {
    let mut text = String::new();
    let count = 1 + dice.below(4);
    for _ in 0..count {
        let one = statement(dice, scope, depth);
        text.push_str(&one);
    }
    for call in calls {
        text.push_str(call);
    }
    text
}

fn statement(dice: &mut Dice, scope: Scope, depth: usize) -> String {
    let tab = "\t";
    if depth > 0 && dice.one_in(3) {
        return condition(dice, scope, depth);
    }
    let place = dice.pick(scope.writable());
    let name = dice.pick(HEADERS);
    match (dice.below(9), scope) {
        (0..=2, _) => {
            format!("{tab}set {place}.http.{name} = {};\n", expr::string(dice, scope, 2))
        }
        (3, _) => format!("{tab}unset {place}.http.{name};\n"),
        (4, _) => format!("{tab}std.collect({place}.http.{name});\n"),
        (5, Scope::Recv) => format!("{tab}set req.url = \"{}\";\n", dice.pick(PATHS)),
        (5, Scope::Fetch) => format!("{tab}set bereq.url = \"{}\";\n", dice.pick(PATHS)),
        (5 | 6, Scope::Hash) => format!("{tab}hash_data({});\n", expr::string(dice, scope, 1)),
        (5, Scope::Response | Scope::Error) => {
            let ttl = dice.pick(&["0s", "1h", "100s", "-1s"]);
            format!("{tab}set beresp.ttl = {ttl};\n")
        }
        (6, Scope::Response) => format!("{tab}set beresp.uncacheable = true;\n"),
        (6, Scope::Error) => {
            format!("{tab}set beresp.body = {};\n", expr::string(dice, scope, 2))
        }
        (6, Scope::Synth) => format!("{tab}synthetic({});\n", expr::string(dice, scope, 2)),
        (7, Scope::Deliver | Scope::Synth) => {
            format!("{tab}set resp.status = {};\n", dice.pick(&["200", "404", "418", "503"]))
        }
        (7, Scope::Response) => {
            format!("{tab}set beresp.status = {};\n", dice.pick(&["200", "404", "410"]))
        }
        (7, Scope::Recv) => format!("{tab}set req.hash_always_miss = true;\n"),
        _ => {
            let value = expr::string(dice, scope, 2);
            format!("{tab}set {place}.http.{name} = {value};\n")
        }
    }
}

fn condition(dice: &mut Dice, scope: Scope, depth: usize) -> String {
    let mut text = format!("\tif ({}) {{\n", expr::boolean(dice, scope, 2));
    text.push_str(&inner(dice, scope, depth));
    if dice.one_in(3) {
        let word = dice.pick(&["elseif", "elsif", "else if"]);
        _ = writeln!(text, "\t}} {word} ({}) {{", expr::boolean(dice, scope, 1));
        text.push_str(&inner(dice, scope, depth));
    }
    if dice.one_in(2) {
        text.push_str("\t} else {\n");
        text.push_str(&inner(dice, scope, depth));
    }
    text.push_str("\t}\n");
    text
}

fn inner(dice: &mut Dice, scope: Scope, depth: usize) -> String {
    let mut text = block(dice, scope, depth - 1, &[]);
    if dice.one_in(4) {
        text.push_str(&action(dice, scope));
    }
    text
}

/// A `return` that may end a block, restarts and retries counted.
fn action(dice: &mut Dice, scope: Scope) -> String {
    let restart = "if (req.restarts < 2) {\n\treturn (restart);\n\t}";
    let retry = "if (bereq.retries < 1) {\n\treturn (retry);\n\t}";
    let choice = match scope {
        Scope::Recv => dice.pick(&[
            "return (hash);",
            "return (pass);",
            "return (synth(404));",
            "return (synth(200, \"Well\"));",
            "return (purge);",
            "return (fail);",
            restart,
        ]),
        Scope::Hash => "return (lookup);",
        Scope::Hit => {
            dice.pick(&["return (deliver);", "return (pass);", "return (synth(410));", restart])
        }
        Scope::Miss => {
            dice.pick(&["return (fetch);", "return (pass);", "return (synth(410));", restart])
        }
        Scope::Pass => dice.pick(&["return (fetch);", "return (synth(403, \"No\"));", restart]),
        Scope::Deliver => {
            dice.pick(&["return (deliver);", "return (synth(500, \"Late\"));", restart])
        }
        Scope::Synth => dice.pick(&["return (deliver);", restart]),
        Scope::Fetch => {
            dice.pick(&["return (fetch);", "return (abandon);", "return (error(503, \"Own\"));"])
        }
        Scope::Response => dice.pick(&[
            "return (deliver);",
            "return (abandon);",
            "return (error(502));",
            "return (pass(10s));",
            retry,
        ]),
        Scope::Error => dice.pick(&["return (deliver);", "return (abandon);", retry]),
    };
    format!("\t{choice}\n")
}

/// What a subroutine ends with: mostly the builtin's way.
pub(crate) fn ending(dice: &mut Dice, scope: Scope) -> String {
    if dice.one_in(4) { action(dice, scope) } else { String::new() }
}
