//! Tests of the parser: trees of valid programs, messages about faulty ones.

mod properties;

use super::*;
use crate::ast::{BinaryOp, Expr, ExprKind, StatementKind};
use crate::input::{CompileSettings, ProgramRole};
use crate::source::{Loader, NoFiles};

const RULES: CompileSettings<'static> = CompileSettings {
    storages: &[],
    labels: &[],
    include_depth: 5,
    unused_is_error: true,
    role: ProgramRole::Whole,
};

/// Parses `text`; returns the tree and the messages.
fn read_with(text: &[u8], loader: &dyn Loader) -> (Option<Ast>, String) {
    let (mut sources, mut report) = (Sources::default(), Report::default());
    let input = Input { name: "test.vcl", text, loader, rules: RULES };
    let ast = parse(&input, &mut sources, &mut report);
    (ast, report.render(&sources))
}

fn read(text: &str) -> (Option<Ast>, String) {
    read_with(text.as_bytes(), &NoFiles)
}

fn right(text: &str) -> Ast {
    let (ast, messages) = read(text);
    assert_eq!(messages, "", "{text}");
    ast.expect("something was read")
}

fn recv(statements: &str) -> String {
    format!("vcl 4.1;\nsub vcl_recv {{\n{statements}\n}}\n")
}

/// The first line of each message about `statements`.
fn faults(statements: &str) -> Vec<String> {
    heads(&recv(statements))
}

fn heads(text: &str) -> Vec<String> {
    let messages = read(text).1;
    let heads = messages.lines().filter_map(|line| line.strip_prefix("error: "));
    heads.map(str::to_owned).collect()
}

/// An expression with all parentheses written out.
fn shape(text: &str) -> String {
    let ast = right(&recv(&format!("set req.http.x = {text};")));
    let Some(Declaration::Sub { body, .. }) = ast.items.first() else { panic!("{ast:?}") };
    let StatementKind::Set { value, .. } = &body.statements[0].kind else { panic!("{body:?}") };
    show(value)
}

fn show(expr: &Expr) -> String {
    let call = |call: &crate::ast::CallExpr| {
        let show = |a: &crate::ast::Argument| match &a.name {
            Some(name) => format!("{}={}", name.text, show(&a.value)),
            None => show(&a.value),
        };
        let arguments: Vec<_> = call.arguments.iter().map(show).collect();
        format!("{}({})", call.name.text, arguments.join(", "))
    };
    match &expr.kind {
        ExprKind::String(s) => format!("{:?}", String::from_utf8_lossy(s)),
        ExprKind::Int(n) => n.to_string(),
        ExprKind::Real(n) => format!("{n:?}"),
        ExprKind::Duration(n) => format!("{n:?}s"),
        ExprKind::Minutes(n) => format!("{n:?}m"),
        ExprKind::Bytes(n) => format!("{n}B"),
        ExprKind::Blob(bytes) => format!("{bytes:?}"),
        ExprKind::Negative(x) => format!("-{}", show(x)),
        ExprKind::Not(x) => format!("!({})", show(x)),
        ExprKind::Name(name) => name.text.to_string(),
        ExprKind::Call(c) => call(c),
        ExprKind::Method { object, call: c } => format!("{}.{}", show(object), call(c)),
        ExprKind::Parens(x) => format!("[{}]", show(x)),
        ExprKind::Binary { left, op, right, .. } => {
            let op = match op {
                BinaryOp::Or => "||",
                BinaryOp::And => "&&",
                BinaryOp::Equal => "==",
                BinaryOp::NotEqual => "!=",
                BinaryOp::Less => "<",
                BinaryOp::Greater => ">",
                BinaryOp::LessEqual => "<=",
                BinaryOp::GreaterEqual => ">=",
                BinaryOp::Match => "~",
                BinaryOp::NoMatch => "!~",
                BinaryOp::Add => "+",
                BinaryOp::Subtract => "-",
                BinaryOp::Multiply => "*",
                BinaryOp::Divide => "/",
                BinaryOp::Modulo => "%",
            };
            format!("({} {op} {})", show(left), show(right))
        }
    }
}

#[test]
fn operators_bind_as_in_varnish() {
    assert_eq!(shape("1 + 2 * 3 - 4"), "((1 + (2 * 3)) - 4)");
    assert_eq!(shape("a || b && !c == d"), "(a || (b && !((c == d))))");
    assert_eq!(shape("(a || b) && c ~ \"x\" + \"y\""), "([(a || b)] && (c ~ (\"x\" + \"y\")))");
    assert_eq!(shape("5 - -1"), "(5 - -1)");
    assert_eq!(shape("-a % 2"), "(-a % 2)");
    assert_eq!(shape("a || b || c || d"), "((a || b) || (c || d))");
    assert_eq!(shape("now - 1d < b"), "((now - 86400.0s) < b)");
}

#[test]
fn calls_and_methods_are_distinguished() {
    assert_eq!(shape("std.tolower(s = \"A\", x,)"), "std.tolower(s=\"A\", x)");
    assert_eq!(shape("\"A\".lower().upper()"), "\"A\".lower().upper()");
    assert_eq!(shape("(a + b).upper()"), "[(a + b)].upper()");
    assert_eq!(shape("req.http.x.lower()"), "req.http.x.lower()");
    assert_eq!(shape("req.http.\"a.b\".lower()"), "req.http.a.b.lower()");
    assert_eq!(shape("regsub(a, \"b\", {\"c\"}).lower()"), "regsub(a, \"b\", \"c\").lower()");
}

#[test]
fn literals_have_their_units() {
    assert_eq!(shape("1ms"), "0.001s");
    assert_eq!(shape("1.5 /* x */ h"), "5400.0s");
    assert_eq!(shape("1y"), "31536000.0s");
    assert_eq!(shape("10kB"), "10240B");
    assert_eq!(shape("1.5MB"), "1572864B");
    assert_eq!(shape("1M"), "1048576B");
    assert_eq!(shape("1m"), "1.0m");
    assert_eq!(shape("123456789012345"), "123456789012345");
    assert_eq!(shape("1."), "1.0");
    assert_eq!(shape(":SGk=:"), "[72, 105]");
    assert_eq!(shape("\"\"\"a\"b\"\"\""), "\"a\\\"b\"");
}

#[test]
fn numbers_beyond_structured_fields_are_refused() {
    assert_eq!(faults("set a = 1234567890123456;"), ["a whole number of more than 15 digits"]);
    assert_eq!(faults("set a = 1.1234;").len(), 1);
    assert_eq!(faults("set a = 1234567890123.1;").len(), 1);
    assert_eq!(faults("set a = 1e5;"), ["`e5` is no unit"]);
    assert_eq!(faults("set a = 1S;"), ["`S` is no unit"]);
}

#[test]
fn every_fault_is_reported_once() {
    let text = "\
set req.http.a == \"1\";
set req.http.b = \"x\" \"y\";
if (req.url = \"/\") { set c; }
unset req.http.d
call foo();
return hash;
set req.http.e = 'x';
set req.http.f = @;
else { esi; }
set req.http.ok = \"1\";
";
    assert_eq!(
        faults(text),
        [
            "expected `=`, found `==`",
            "two strings side by side",
            "expected `)`, found `=`",
            "expected `=`, found `;`",
            "a `;` is missing",
            "subroutines take no arguments",
            "the action of a `return` stands in parentheses",
            "single quotes make no string",
            "`@` means nothing in VCL",
            "`else` follows no `if`",
        ]
    );
}

#[test]
fn a_missing_brace_is_reported_at_the_next_declaration() {
    let text = "vcl 4.1;\nsub vcl_recv {\n  if (a) {\n    unset b;\n}\n\nsub vcl_hash {\n}\n";
    let (ast, messages) = read(text);
    assert_eq!(heads(text), ["a `}` is missing before this `sub`"]);
    assert!(messages.contains("further to the left"), "{messages}");
    assert_eq!(ast.expect("a tree").items.len(), 2);
    assert_eq!(heads("vcl 4.1; sub a { if (b) {"), ["a `}` is missing at the end of the file"]);
    assert_eq!(heads("vcl 4.1; sub a { } }\nbackend b none;"), ["this `}` closes nothing"]);
}

#[test]
fn deep_nesting_is_refused_and_long_rows_are_not() {
    for text in ["(".repeat(100_000), "- ".repeat(100_000), "a(".repeat(50_000)] {
        assert!(!faults(&format!("set a = {text};")).is_empty());
    }
    assert!(!heads(&format!("vcl 4.1; sub a {}", "{".repeat(100_000))).is_empty());
    assert!(!heads(&format!("vcl 4.1; sub a {{ {}", "if (a) {".repeat(100_000))).is_empty());
    assert!(!heads(&format!("vcl 4.1; backend b {}", "{ .probe = ".repeat(100_000))).is_empty());
    assert!(!faults(&format!("set a = b{};", ".lower()".repeat(10_000))).is_empty());
    assert_eq!(faults(&format!("set a = {}a;", "a || ".repeat(50_000))).len(), 0);
    assert_eq!(faults(&format!("set a = {}a;", "a + ".repeat(1_000))).len(), 0);
    assert_eq!(faults(&format!("set a = {}a;", "a + ".repeat(1_001))).len(), 1);
    assert_eq!(faults(&"if (a) {} else ".repeat(5_000)).len(), 1);
}

#[test]
fn header_names_with_dots_stand_in_quotes() {
    right(&recv("set req.http.\"a.b\" = req.http.\"0\"; unset req . http . x;"));
    assert_eq!(faults("unset req.http.a.b;"), ["a header's name with dots stands in quotes"]);
    assert_eq!(faults("set a = req.http.a.lower;"), ["a method is called with parentheses"]);
    assert_eq!(faults("set a = req.http;"), ["a header's name is missing"]);
    assert_eq!(faults("set req.http.\"a b\" = c;"), ["no header can have this name"]);
    assert_eq!(faults("set req.\"url\" = c;"), ["only the name of a header stands in quotes"]);
    assert_eq!(faults("set a = req.http.\"b\"();"), ["a header cannot be called"]);
}

#[test]
fn declarations_are_read() {
    let ast = right(
        "vcl 4.0; import std; import directors as d from \"x.so\";
        acl a +log -pedantic { \"::1\"; ! \"10.0.0.0\"/8; (!\"x\"); !(\"y\"/24); }
        probe p { .request = \"GET / HTTP/1.1\" \"Host: x\"; .interval = 2s; }
        backend b { .host = \"127.0.0.1\"; .port = \"80\"; .probe = p; .preamble = :AAAA:; }
        backend c { .path = {\"/run/x\"}; .probe = { .url = \"/\"; } .max_connections = 7; }
        backend none none;
        sub vcl_recv { if (a) { } elseif (b) { } elif (c) { } else if (d) { } else { } }
        sub vcl_recv { { return (synth(404, \"x\")); } return; new x = d.hash(); ban(\"x\"); }",
    );
    assert_eq!(ast.version, 40);
    assert_eq!(ast.items.len(), 9);
    let Declaration::Acl(acl) = &ast.items[2] else { panic!("{:?}", ast.items[2]) };
    let negated: Vec<_> = acl.entries.iter().map(|e| (e.negated, e.optional)).collect();
    assert_eq!(negated, [(false, false), (true, false), (true, true), (true, true)]);
    assert_eq!(acl.entries[3].mask.map(|(bits, _)| bits), Some(24));
}

#[test]
fn a_mask_may_stand_in_the_quotes() {
    let ast = right("vcl 4.1; acl a { \"10.0.0.0/8\"; {\"::/0\"}; }");
    let Declaration::Acl(acl) = &ast.items[0] else { panic!("{ast:?}") };
    let read: Vec<_> = acl.entries.iter().map(|e| (&*e.host.0, e.mask.map(|m| m.0))).collect();
    assert_eq!(read, [("10.0.0.0", Some(8)), ("::", Some(0))]);
    let messages = read_with(b"vcl 4.1; acl a { \"::/x\"; \"::/0\"/0; \"\xff\"; }", &NoFiles).1;
    assert!(messages.contains("--> test.vcl:1:22"), "{messages}");
    assert_eq!(messages.matches("error:").count(), 3, "{messages}");
}

#[test]
fn what_no_declaration_is_gets_advice() {
    let all = |text: &str| read(text).1;
    assert!(all("vcl 4.1; director d round-robin { { .backend = a; } }").contains("directors;"));
    assert!(all("vcl 4.1; bakend b none;").contains("did you mean `backend`?"));
    assert!(all("vcl 4.1; set a = b;").contains("within a subroutine"));
    assert!(all("vcl 4.1; sub a { };").contains("no `;` follows"));
    assert!(all("vcl 4.1; import \"std\";").contains("`import std;`"));
    assert!(all("vcl 5.0;").contains("VCL 5.0 is not known"));
    assert!(all("vcl 4;").contains("expected `4.0` or `4.1`"));
    assert!(all("backend b none;").contains("put `vcl 4.1;` before"));
    assert!(all("vcl 4.1; C{ syslog(1); }C backend b none;").contains("std.syslog"));
    assert!(all("").contains("does not begin with its version"));
}

/// Files by name.
struct Files(&'static [(&'static str, &'static str)]);

impl Loader for Files {
    fn load(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        let found = self.0.iter().find(|(n, _)| *n == name).ok_or("there is none")?;
        Ok((name.to_owned(), found.1.as_bytes().to_vec()))
    }

    fn glob(&self, pattern: &str, _: &str) -> Result<Vec<String>, String> {
        let start = pattern.trim_end_matches('*');
        let names = self.0.iter().map(|(n, _)| (*n).to_owned());
        Ok(names.filter(|n| n.starts_with(start)).collect())
    }
}

const FILES: Files = Files(&[
    ("sub", "vcl 4.0; sub a { set b = c; }"),
    ("statement", "set b = c;"),
    ("part", "\"x\""),
    ("loop", "include \"loop\";"),
    ("bad", "sub d { set; }"),
    ("high", "vcl 4.1;"),
]);

fn including(text: &str) -> (Option<Ast>, String) {
    read_with(text.as_bytes(), &FILES)
}

#[test]
fn files_are_included_anywhere() {
    let text =
        "vcl 4.1; include \"sub\"; sub e { include \"statement\"; set f = include \"part\"; ; }";
    let (ast, messages) = including(text);
    assert_eq!(messages, "");
    assert_eq!(ast.expect("a tree").items.len(), 2);
    let (ast, messages) = including("vcl 4.1; sub e { include +glob \"st*\"; }");
    assert_eq!((messages.as_str(), ast.is_some()), ("", true));
}

#[test]
fn faults_of_includes_say_from_where() {
    let messages = |text: &str| including(text).1;
    assert!(messages("vcl 4.1;\ninclude \"bad\";").contains("included at test.vcl:2:1"));
    assert!(messages("vcl 4.1; include \"loop\";").contains("includes itself"));
    assert!(messages("vcl 4.1; include \"gone\";").contains("cannot read `gone`: there is none"));
    assert!(messages("vcl 4.1; include +glob \"x*\";").contains("no file matches"));
    assert!(messages("vcl 4.1; include +foo \"sub\";").contains("unknown flag"));
    assert!(messages("vcl 4.1; include \"sub\"").contains("without its `;`"));
    assert!(messages("vcl 4.1; include;").contains("without a file name"));
    assert!(messages("vcl 4.0; include \"high\";").contains("VCL 4.1 in a program of VCL 4.0"));
}

/// A loader whose files each include a new one.
struct Endless;

impl Loader for Endless {
    fn load(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        Ok((format!("{name}x"), format!("include \"{name}x\";").into_bytes()))
    }

    fn glob(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
        Err("no patterns".to_owned())
    }
}

/// A loader whose files are too large.
struct Large;

impl Loader for Large {
    fn load(&self, name: &str, _: &str) -> Result<(String, Vec<u8>), String> {
        Ok((name.to_owned(), vec![b' '; MAX_PROGRAM / 4]))
    }

    fn glob(&self, _: &str, _: &str) -> Result<Vec<String>, String> {
        Err("no patterns".to_owned())
    }
}

#[test]
fn includes_have_limits() {
    let messages = read_with(b"vcl 4.1; include \"a\";", &Endless).1;
    assert!(messages.contains("more than 5 files include each other"), "{messages}");
    let many = format!("vcl 4.1; {}", "include \"a\"; ".repeat(6));
    let messages = read_with(many.as_bytes(), &Large).1;
    assert_eq!(messages.matches("the program is too long").count(), 1, "{messages}");
}

#[test]
fn the_builtin_program_has_no_fault_and_every_sub_of_varnish() {
    let (mut sources, mut report) = (Sources::default(), Report::default());
    let input = Input { name: "b", text: BUILTIN.as_bytes(), loader: &NoFiles, rules: RULES };
    parse(&input, &mut sources, &mut report).expect("the builtin program");
    assert_eq!(report.render(&sources), "");
    let items = parse_builtin(&mut sources, ProgramRole::Whole);
    assert_eq!(items.len(), 41);
    assert_eq!(&*sources.files()[1].name, BUILTIN_NAME);
    assert!(items.iter().all(|i| matches!(i, Declaration::Sub { name, .. }
        if name.text.starts_with("vcl_"))));
}
