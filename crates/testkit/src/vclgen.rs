//! Random VCL programs that are well typed, with origins and requests for them, as scenarios of the
//! [differ](crate::differ): what two implementations of the language are held against each other
//! with.
//!
//! Everything that is made depends on the seed alone. Programs use nothing that differs from run to
//! run (no clock, no transaction numbers), end (restarts and retries are counted), and keep
//! messages valid: a program that writes nonsense to a request line would tell more about framing
//! than about VCL.

mod dice;
mod expr;
mod stmt;

use std::fmt::Write;

pub use dice::Dice;
use expr::Scope;

/// Names of headers that programs and requests use.
pub(crate) const HEADERS: &[&str] = &["X-A", "X-B", "X-C", "x-lower", "X-Long-Name"];
/// Paths that programs and origins know.
pub(crate) const PATHS: &[&str] = &["/a", "/b", "/c", "/dir/x.html", "/img/y.png", "/none"];
const VALUES: &[&str] = &[
    "1",
    "0",
    "abc",
    "ABC",
    "a b",
    "a=1; b=2; c=3",
    "12.5",
    "1h",
    "-7",
    "x,y,x",
    "q=0.5",
    "\"q\"",
    "aaa",
    "../..",
    "%20",
    "trailing;",
];

/// The scenario of `seed`, as [`crate::differ::scenario`] reads it.
pub fn scenario(seed: u64) -> String {
    let dice = &mut Dice::new(seed);
    let mut text = format!("== seed {seed}\n-- vcl\n{}-- o1\n", program(dice));
    for path in PATHS {
        text.push_str(&answer(dice, path));
    }
    text.push_str("-- steps\n");
    for _ in 0..3 + dice.below(8) {
        text.push_str(&request(dice));
    }
    text
}

/// A program: the differ adds version and backend.
fn program(dice: &mut Dice) -> String {
    let mut text = "import std;\nimport str;\n\n".to_owned();
    let negated = if dice.one_in(2) { "\t! \"127.0.0.1\";\n" } else { "" };
    let mask = dice.pick(&["8", "16", "31", "32"]);
    _ = write!(text, "acl near {{\n\t\"127.0.0.0\"/{mask};\n{negated}\t\"::1\";\n}}\n\n");
    // Subroutines of one's own, each called from one place.
    let helpers = dice.below(3);
    for number in 0..helpers {
        let body = stmt::block(dice, Scope::Recv, 1, &[]);
        _ = write!(text, "sub helper{number} {{\n{body}}}\n\n");
    }
    let calls: Vec<String> =
        (0..helpers).map(|number| format!("\tcall helper{number};\n")).collect();
    for scope in Scope::ALL {
        if *scope != Scope::Recv && dice.one_in(4) {
            continue;
        }
        let calls = if *scope == Scope::Recv { &calls[..] } else { &[] };
        let body = stmt::block(dice, *scope, 2, calls);
        let end = stmt::ending(dice, *scope);
        _ = write!(text, "sub {} {{\n{body}{end}}}\n\n", scope.sub());
    }
    // Whatever is not used otherwise is used here: unused symbols are errors.
    text.push_str(
        "sub vcl_deliver {\n\tif (client.ip ~ near) {\n\t\tset resp.http.X-Near = \"1\";\n\t}\n}\n",
    );
    text
}

/// What the origin says at `path`.
fn answer(dice: &mut Dice, path: &str) -> String {
    let status = match path {
        "/none" => "404 Not Found",
        _ => dice.pick(&[
            "200 OK",
            "200 OK",
            "200 OK",
            "301 Moved",
            "500 Own Words",
            "204 No Content",
        ]),
    };
    let mut text = format!("{path}\n    {status}\n");
    let mut add = |line: &str| _ = writeln!(text, "    {line}");
    add(dice.pick(&[
        "Cache-Control: max-age=100",
        "Cache-Control: s-maxage=50, max-age=0",
        "Cache-Control: private",
        "Cache-Control: max-age=0",
        "X-Plain: 1",
        "Expires: Wed, 11 Jan 1984 05:00:00 GMT",
    ]));
    if dice.one_in(3) {
        add(dice.pick(&["Vary: X-A", "Vary: X-B, X-C", "Vary: *", "Vary: Cookie"]));
    }
    if dice.one_in(4) {
        add("Set-Cookie: sid=1; path=/");
    }
    if dice.one_in(3) {
        add("ETag: \"e\"");
    }
    for name in HEADERS {
        if dice.one_in(3) {
            add(&format!("{name}: {}", dice.pick(VALUES)));
        }
    }
    if !status.starts_with("204") {
        text.push_str("\n    body %n of %t\n");
    }
    text
}

fn request(dice: &mut Dice) -> String {
    let method = dice.pick(&["GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE"]);
    let query = match dice.below(3) {
        0 => dice.pick(&["?b=2&a=1", "?", "?utm_x=1&id=4", "?a=1&a=0", "?x"]),
        _ => "",
    };
    let mut text = format!("{method} {}{query}\n", dice.pick(PATHS));
    let mut add = |name: &str, value: &str| _ = writeln!(text, "    {name}: {value}");
    for name in HEADERS {
        if dice.one_in(2) {
            add(name, dice.pick(VALUES));
        }
    }
    if dice.one_in(4) {
        add("Cookie", dice.pick(&["a=1", "sid=42; a=1", "_ga=1"]));
    }
    // No ranges: error pages hold transaction numbers, and so differ in length.
    if dice.one_in(6) {
        add("If-None-Match", dice.pick(&["\"e\"", "W/\"e\"", "\"other\""]));
    }
    if method == "POST" && dice.one_in(2) {
        text.push_str("\n    a=1&b=2\n");
    }
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
