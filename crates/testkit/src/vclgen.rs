//! A generator of random, well-typed VCL programs, with origins and requests, as scenarios of the
//! [differ](crate::differ).
//!
//! All depends on the seed alone. Programs use nothing that differs between runs (no clock, no
//! transaction numbers), they end (restarts and retries are counted), and they keep messages valid:
//! invalid ones would test framing rather than VCL.

mod action;
mod dice;
mod expr;
mod stmt;
mod traffic;
mod words;

use std::fmt::Write;

pub use dice::Dice;
use expr::EnclosingSubroutine;
use words::PATHS;

/// The scenario of `seed`, as [`crate::differ::scenario`] reads it.
pub fn scenario(seed: u64) -> String {
    let dice = &mut Dice::new(seed);
    let own_pages = dice.one_in(2);
    let keeps_bodies = dice.one_in(3);
    let program = program(dice, own_pages, keeps_bodies);
    let mut text = format!("== seed {seed}\n-- vcl\n{program}");
    for origin in ["o1", "o2"] {
        _ = writeln!(text, "-- {origin}");
        for path in PATHS {
            text.push_str(&traffic::answer(dice, path));
        }
    }
    // A body that was sent but not kept cannot be sent again. Varnish still announces it, or sends
    // it although the method has changed.
    let bodies = (keeps_bodies || !program.contains("return (restart)"))
        && !program.contains("set req.method");
    // A page of Varnish's own contains a transaction number, so its length differs.
    let ranges = own_pages;
    text.push_str("-- steps\n");
    for _ in 0..3 + dice.below(10) {
        text.push_str(&traffic::request(dice, bodies, ranges));
    }
    text
}

/// A program without version and backends, which the differ adds.
fn program(dice: &mut Dice, own_pages: bool, keeps_bodies: bool) -> String {
    let mut text = String::new();
    for vmod in ["std", "str", "cookie", "header", "var", "purge"] {
        _ = writeln!(text, "import {vmod};");
    }
    let negated = if dice.one_in(2) { "\t! \"127.0.0.1\";\n" } else { "" };
    let mask = dice.pick(&["8", "16", "31", "32"]);
    _ = write!(text, "\nacl near {{\n\t\"127.0.0.0\"/{mask};\n{negated}\t\"::1\";\n}}\n\n");
    // The builtin program would pipe it to the backend with all that follows.
    text.push_str(
        "sub vcl_recv {\n\tif (req.method == \"PURGE\") {\n\t\treturn (purge);\n\t}\n}\n\n",
    );
    if keeps_bodies {
        text.push_str("sub vcl_recv {\n\tstd.cache_req_body(1KB);\n}\n\n");
    }
    // Subroutines, each called from one place.
    let helpers = dice.below(3);
    for number in 0..helpers {
        let body = stmt::block(dice, EnclosingSubroutine::Recv, 1, &[]);
        _ = write!(text, "sub helper{number} {{\n{body}}}\n\n");
    }
    let calls: Vec<String> =
        (0..helpers).map(|number| format!("\tcall helper{number};\n")).collect();
    for scope in EnclosingSubroutine::ALL {
        if *scope != EnclosingSubroutine::Recv && dice.one_in(4) {
            continue;
        }
        let calls = if *scope == EnclosingSubroutine::Recv { &calls[..] } else { &[] };
        let body = stmt::block(dice, *scope, 2, calls);
        let end = action::ending(dice, *scope);
        _ = write!(text, "sub {} {{\n{body}{end}}}\n\n", scope.sub());
    }
    if keeps_bodies {
        // The builtin program removes the body of a fetch by GET; Varnish sends it.
        text.push_str("sub vcl_backend_fetch {\n\treturn (fetch);\n}\n\n");
    }
    if own_pages {
        for (sub, response) in [("vcl_synth", "resp"), ("vcl_backend_error", "beresp")] {
            _ = write!(
                text,
                "sub {sub} {{\n\tsynthetic(\"page \" + {response}.status);\n\t\
                 return (deliver);\n}}\n\n"
            );
        }
    }
    // Symbols that are not used otherwise are used here, because unused ones are errors.
    text.push_str(
        "sub vcl_deliver {\n\tif (client.ip ~ near) {\n\t\tset resp.http.X-Near = \"1\";\n\t}\n}\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::differ::scenario::scenarios;

    #[test]
    fn a_seed_always_makes_the_same_and_another_seed_something_else() {
        assert_eq!(scenario(7), scenario(7));
        assert_ne!(scenario(7), scenario(8));
    }

    #[test]
    fn the_differ_understands_them() {
        for seed in 0..200 {
            let text = scenario(seed);
            let read = scenarios("generated", &text, &|_| None).expect("a scenario");
            assert_eq!(read.len(), 1, "{text}");
            let vcl = &read[0].vcl;
            let count = |b: char| vcl.matches(b).count();
            assert_eq!(count('{'), count('}'), "{text}");
        }
    }
}
