//! Statements of generated VCL programs. None may depend on the time or on chance.

use std::fmt::Write;

use super::action::action;
use super::dice::Dice;
use super::expr::{self, EnclosingSubroutine};
use super::words::{HEADERS, PATHS};

/// Statements, `depth` levels of `if` deep, with `calls` among them.
pub(crate) fn block(
    dice: &mut Dice,
    scope: EnclosingSubroutine,
    depth: usize,
    calls: &[String],
) -> String {
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

fn statement(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
    let tab = "\t";
    if depth > 0 && dice.one_in(3) {
        return condition(dice, scope, depth);
    }
    if dice.one_in(4) {
        return special(dice, scope);
    }
    let place = dice.pick(scope.writable());
    let name = dice.pick(HEADERS);
    match (dice.below(9), scope) {
        (0..=2, _) => {
            format!("{tab}set {place}.http.{name} = {};\n", expr::string(dice, scope, 2))
        }
        (3, _) => format!("{tab}unset {place}.http.{name};\n"),
        (4, _) => format!("{tab}std.collect({place}.http.{name});\n"),
        (5, EnclosingSubroutine::Recv) => format!("{tab}set req.url = \"{}\";\n", dice.pick(PATHS)),
        (5, EnclosingSubroutine::Fetch) => {
            format!("{tab}set bereq.url = \"{}\";\n", dice.pick(PATHS))
        }
        (5 | 6, EnclosingSubroutine::Hash) => {
            format!("{tab}hash_data({});\n", expr::string(dice, scope, 1))
        }
        (5, EnclosingSubroutine::Response | EnclosingSubroutine::Error) => {
            let ttl = dice.pick(&["0s", "1h", "100s", "-1s"]);
            format!("{tab}set beresp.ttl = {ttl};\n")
        }
        (6, EnclosingSubroutine::Response) => format!("{tab}set beresp.uncacheable = true;\n"),
        (6, EnclosingSubroutine::Error) => {
            format!("{tab}set beresp.body = {};\n", expr::string(dice, scope, 2))
        }
        (6, EnclosingSubroutine::Synth) => {
            format!("{tab}synthetic({});\n", expr::string(dice, scope, 2))
        }
        (7, EnclosingSubroutine::Deliver | EnclosingSubroutine::Synth) => {
            format!("{tab}set resp.status = {};\n", dice.pick(&["200", "404", "418", "503", "301"]))
        }
        (7, EnclosingSubroutine::Response) => {
            format!("{tab}set beresp.status = {};\n", dice.pick(&["200", "404", "410"]))
        }
        (7, EnclosingSubroutine::Recv) => format!("{tab}set req.hash_always_miss = true;\n"),
        _ => {
            let value = expr::string(dice, scope, 2);
            format!("{tab}set {place}.http.{name} = {value};\n")
        }
    }
}

/// Statements beyond the program's own headers.
fn special(dice: &mut Dice, scope: EnclosingSubroutine) -> String {
    let tab = "\t";
    if dice.one_in(3) {
        return modules(dice, scope);
    }
    let fixed = match scope {
        EnclosingSubroutine::Recv => dice.pick(RECV),
        EnclosingSubroutine::Hash => "hash_data(req.http.Cookie);",
        EnclosingSubroutine::Hit => dice.pick(HIT),
        EnclosingSubroutine::Miss | EnclosingSubroutine::Pass | EnclosingSubroutine::Purge => {
            dice.pick(LATER)
        }
        EnclosingSubroutine::Fetch => dice.pick(FETCH),
        EnclosingSubroutine::Response => return response(dice),
        EnclosingSubroutine::Error => dice.pick(ERROR),
        EnclosingSubroutine::Deliver => dice.pick(DELIVER),
        EnclosingSubroutine::Synth => dice.pick(SYNTH),
    };
    format!("{tab}{fixed}\n")
}

// The statements of `special`.

// Not `std.rollback(req)`: afterwards modules with state of the request crash Varnish.
const RECV: &[&str] = &[
    "unset req.http.Cookie;",
    "unset req.http.Cookie;",
    "set req.http.Cookie = \"b=2; a=1\";",
    "unset req.http.Authorization;",
    "set req.hash_ignore_busy = true;",
    "set req.hash_ignore_vary = true;",
    "set req.grace = 0s;",
    "set req.backend_hint = o2;",
    "set req.method = \"GET\";",
    "ban(\"obj.http.X-A == abc\");",
    "ban(\"obj.status == 404 && obj.http.X-B ~ a\");",
    "set req.url = regsub(req.url, \"\\?.*$\", \"\");",
    "set req.url = std.querysort(req.url);",
    "set req.url = req.url + \"?\";",
];

// Not `purge.soft(0s, ...)`: a request that does it and restarts gets neither the fresh nor the
// stale object from Varnish.
const HIT: &[&str] = &[
    "purge.hard();",
    "set req.http.X-A = \"<\" + obj.hits + \">\";",
    "set req.http.X-B = obj.status;",
    "set req.http.X-C = obj.http.X-C;",
];

const LATER: &[&str] = &[
    "set req.http.Cookie = \"c=3\";",
    "unset req.http.Accept-Encoding;",
    "set req.backend_hint = o2;",
    "set req.http.X-B = req.restarts;",
];

const FETCH: &[&str] = &[
    "set bereq.backend = o2;",
    "unset bereq.http.Cookie;",
    "set bereq.http.Cookie = \"d=4\";",
    "set bereq.http.X-B = \"<\" + bereq.uncacheable + bereq.is_bgfetch + \">\";",
    "set bereq.http.X-C = bereq.backend;",
];

const ERROR: &[&str] = &[
    "set beresp.reason = \"Own\";",
    "set beresp.status = 404;",
    "set beresp.grace = 1h;",
    "set beresp.http.Content-Type = \"text/plain\";",
    "set beresp.http.Vary = \"X-A\";",
    "set beresp.http.X-B = bereq.uncacheable;",
];

const DELIVER: &[&str] = &[
    "set resp.http.X-Hits = obj.hits;",
    "unset resp.http.Via;",
    "unset resp.http.X-Varnish;",
    "unset resp.http.Age;",
    "unset resp.http.ETag;",
    "unset resp.http.Set-Cookie;",
    "set resp.reason = \"Own\";",
    "set resp.http.Cache-Control = \"no-store\";",
    "set resp.http.X-B = obj.uncacheable;",
    "set resp.http.X-C = \"<\" + obj.grace + obj.keep + \">\";",
    "set resp.status = 204;",
    "set resp.status = 304;",
    "set resp.http.ETag = {\"\"e\"\"};",
];

const SYNTH: &[&str] = &[
    "set resp.http.Location = \"/a\";",
    "set resp.http.Content-Type = \"text/plain\";",
    "set resp.reason = \"Own\";",
    "set resp.body = req.url;",
    "set resp.body += \"more\";",
    "set resp.http.X-B = resp.reason;",
    "unset resp.http.Server;",
];

/// Statements of `vcl_backend_response`. No lifetime ends during a scenario, and none is cut to
/// zero: a stale object would be fetched in the background at some time.
fn response(dice: &mut Dice) -> String {
    let fixed = dice.pick(&[
        "set beresp.ttl = beresp.ttl * 2;",
        "set beresp.ttl = beresp.ttl + 10s;",
        "set beresp.ttl = beresp.ttl / 2;",
        "set beresp.grace = 0s;",
        "set beresp.grace = beresp.grace + 1h;",
        "set beresp.keep = 1d;",
        "set beresp.do_stream = false;",
        "set beresp.reason = \"Own\";",
        "unset beresp.http.Set-Cookie;",
        "unset beresp.http.Set-Cookie;",
        "unset beresp.http.Vary;",
        "set beresp.http.Vary = \"X-A\";",
        "unset beresp.http.Cache-Control;",
        "set beresp.http.Cache-Control = \"max-age=7\";",
        "unset beresp.http.ETag;",
        "set beresp.http.ETag = {\"\"e\"\"};",
        "set beresp.http.X-A = \"<\" + beresp.ttl + \">\";",
        "set beresp.http.X-B = \"<\" + beresp.grace + beresp.keep + \">\";",
        "set beresp.http.X-C = beresp.was_304 + \" \" + beresp.uncacheable;",
        "set beresp.http.x-lower = beresp.backend.name + bereq.uncacheable;",
        "set beresp.ttl = 1h;\n\tunset beresp.http.Set-Cookie;\n\treturn (deliver);",
    ]);
    format!("\t{fixed}\n")
}

/// Statements of VMODs.
fn modules(dice: &mut Dice, scope: EnclosingSubroutine) -> String {
    let place = dice.pick(scope.writable());
    let (name, other) = (dice.pick(HEADERS), dice.pick(HEADERS));
    let value = expr::string(dice, scope, 1);
    let request = scope.writable()[0];
    // Fields that no response varies on may have several lines.
    let many = |name| if place == request { "X-C" } else { name };
    let statement = match dice.below(12) {
        0 => format!("cookie.parse({request}.http.Cookie);"),
        1 => format!("set {place}.http.{name} = cookie.get(\"a\");"),
        2 => "cookie.set(\"z\", \"26\");".to_owned(),
        3 => format!("set {place}.http.{name} = cookie.get_string();"),
        4 => {
            let how = dice.pick(&["delete", "keep", "filter"]);
            format!("cookie.parse(\"a=1; sid=2; _ga=3\");\n\tcookie.{how}(\"a,_ga\");")
        }
        5 => format!("header.append({place}.http.{}, {value});", many(name)),
        6 => format!("header.remove({place}.http.{name}, {});", expr::pattern(dice)),
        7 => format!(
            "set {place}.http.{other} = header.get({place}.http.{name}, {});",
            expr::pattern(dice)
        ),
        // Varnish copies a field onto itself until its workspace is full.
        8 if name != many(other) => {
            format!("header.copy({place}.http.{name}, {place}.http.{});", many(other))
        }
        9 => format!("var.set(\"k\", {value});"),
        10 => format!("set {place}.http.{name} = var.get(\"k\");"),
        _ => format!("std.collect({place}.http.{name}, \"; \");"),
    };
    format!("\t{statement}\n")
}

fn condition(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
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

fn inner(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
    let mut text = block(dice, scope, depth - 1, &[]);
    if dice.one_in(4) {
        text.push_str(&action(dice, scope));
    }
    text
}
