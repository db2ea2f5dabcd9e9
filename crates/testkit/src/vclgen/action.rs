//! Actions of generated VCL programs: `return` statements, restarts and retries counted.

use super::Dice;
use super::expr::EnclosingSubroutine;

/// A `return` at the end of a block, with restarts and retries counted.
pub(crate) fn action(dice: &mut Dice, scope: EnclosingSubroutine) -> String {
    let restart = "if (req.restarts < 2) {\n\treturn (restart);\n\t}";
    let retry = "if (bereq.retries < 1) {\n\treturn (retry);\n\t}";
    let choice = match scope {
        EnclosingSubroutine::Recv => dice.pick(&[
            "return (hash);",
            "return (pass);",
            "return (synth(404));",
            "return (synth(200, \"Well\"));",
            "return (purge);",
            "return (fail);",
            "if (client.ip ~ near) {\n\treturn (synth(405));\n\t}",
            restart,
        ]),
        EnclosingSubroutine::Hash => "return (lookup);",
        EnclosingSubroutine::Hit => {
            dice.pick(&["return (deliver);", "return (pass);", "return (synth(410));", restart])
        }
        EnclosingSubroutine::Miss => {
            dice.pick(&["return (fetch);", "return (pass);", "return (synth(410));", restart])
        }
        EnclosingSubroutine::Pass => {
            dice.pick(&["return (fetch);", "return (synth(403, \"No\"));", restart])
        }
        EnclosingSubroutine::Deliver => {
            dice.pick(&["return (deliver);", "return (synth(500, \"Late\"));", restart])
        }
        EnclosingSubroutine::Purge => dice.pick(&["return (synth(200, \"Purged\"));", restart]),
        EnclosingSubroutine::Synth => dice.pick(&["return (deliver);", restart]),
        EnclosingSubroutine::Fetch => {
            dice.pick(&["return (fetch);", "return (abandon);", "return (error(503, \"Own\"));"])
        }
        // Not `pass(10s)`: its mark has no fields here that a ban could test.
        EnclosingSubroutine::Response => dice.pick(&[
            "return (deliver);",
            "return (abandon);",
            "return (error(502));",
            "set beresp.uncacheable = true;\n\treturn (deliver);",
            retry,
        ]),
        EnclosingSubroutine::Error => dice.pick(&["return (deliver);", "return (abandon);", retry]),
    };
    format!("\t{choice}\n")
}

/// The last `return` of a subroutine, mostly as the builtin program has it.
pub(crate) fn ending(dice: &mut Dice, scope: EnclosingSubroutine) -> String {
    if dice.one_in(4) { action(dice, scope) } else { String::new() }
}
