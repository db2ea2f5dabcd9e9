//! Random VCL programs that are well typed, and requests for them: what two implementations of the
//! language are held against each other with.
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

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenRequest {
    /// GET, HEAD, POST.
    pub method: &'static str,
    /// Path and query.
    pub url: String,
    /// Headers, Host not among them.
    pub headers: Vec<(&'static str, String)>,
    /// Body; empty for none.
    pub body: String,
}

/// Names of headers that programs and requests use.
pub(crate) const HEADERS: &[&str] = &["X-A", "X-B", "X-C", "x-lower", "X-Long-Name"];
/// Paths that programs and origins know.
pub const PATHS: &[&str] = &["/a", "/b", "/c", "/dir/x.html", "/img/y.png", "/none"];
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

/// The program that `dice` throws, with `backend` in place of its backend declaration.
pub fn program(dice: &mut Dice, backend: &str) -> String {
    let mut text = format!("vcl 4.1;\nimport std;\nimport str;\n\n{backend}\n");
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

/// The requests that `dice` throws.
pub fn requests(dice: &mut Dice) -> Vec<GenRequest> {
    let count = 3 + dice.below(8);
    (0..count).map(|_| request(dice)).collect()
}

fn request(dice: &mut Dice) -> GenRequest {
    let method = dice.pick(&["GET", "GET", "GET", "GET", "HEAD", "POST", "DELETE"]);
    let mut url = dice.pick(PATHS).to_owned();
    if dice.one_in(3) {
        url.push_str(dice.pick(&["?b=2&a=1", "?", "?utm_x=1&id=4", "?a=1&a=0", "?x"]));
    }
    let mut headers = Vec::new();
    for name in HEADERS {
        if dice.one_in(2) {
            headers.push((*name, dice.pick(VALUES).to_owned()));
        }
    }
    if dice.one_in(4) {
        headers.push(("Cookie", dice.pick(&["a=1", "sid=42; a=1", "_ga=1"]).to_owned()));
    }
    if dice.one_in(6) {
        headers.push(("Range", dice.pick(&["bytes=0-3", "bytes=2-", "bytes=-2"]).to_owned()));
    }
    if dice.one_in(6) {
        headers.push(("If-None-Match", dice.pick(&["\"e\"", "W/\"e\"", "\"other\""]).to_owned()));
    }
    let body = if method == "POST" {
        dice.pick(&["", "body", "a=1&b=2"]).to_owned()
    } else {
        String::new()
    };
    GenRequest { method, url, headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_always_makes_the_same_and_another_seed_something_else() {
        let make = |seed| program(&mut Dice::new(seed), "backend default none;");
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
        let requests = |seed| requests(&mut Dice::new(seed));
        assert_eq!(requests(7), requests(7));
    }

    #[test]
    fn braces_and_parentheses_are_balanced() {
        for seed in 0..200 {
            let text = program(&mut Dice::new(seed), "backend default none;");
            let count = |b: char| text.matches(b).count();
            assert_eq!(count('{'), count('}'), "{text}");
        }
    }
}
