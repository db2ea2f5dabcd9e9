//! Returns of subroutines.

use super::Dice;
use super::expr::Scope;

/// A `return` that may end a block, restarts and retries counted.
pub(crate) fn action(dice: &mut Dice, scope: Scope) -> String {
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
            "if (client.ip ~ near) {\n\treturn (synth(405));\n\t}",
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
        Scope::Purge => dice.pick(&["return (synth(200, \"Purged\"));", restart]),
        Scope::Synth => dice.pick(&["return (deliver);", restart]),
        Scope::Fetch => {
            dice.pick(&["return (fetch);", "return (abandon);", "return (error(503, \"Own\"));"])
        }
        // Not `pass(10s)`: what it leaves behind has no fields here that a ban could ask for.
        Scope::Response => dice.pick(&[
            "return (deliver);",
            "return (abandon);",
            "return (error(502));",
            "set beresp.uncacheable = true;\n\treturn (deliver);",
            retry,
        ]),
        Scope::Error => dice.pick(&["return (deliver);", "return (abandon);", retry]),
    };
    format!("\t{choice}\n")
}

/// The end of a subroutine: mostly the builtin's way.
pub(crate) fn ending(dice: &mut Dice, scope: Scope) -> String {
    if dice.one_in(4) { action(dice, scope) } else { String::new() }
}
