//! Tests of programs that are accepted or rejected, compared with Varnish's verdicts.

use crate::report::MAX_ENTRIES;
use crate::testing::compile;

/// The verdict (`yes`, `no`) and the rest of each line.
fn verdicts(table: &'static str) -> impl Iterator<Item = (bool, &'static str)> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (verdict, rest) = line.split_once(' ').unwrap_or((line, ""));
        (verdict == "yes", rest.trim_start())
    })
}

/// Compiles each program, and fails with those on which Varnish disagrees.
fn agree(programs: impl Iterator<Item = (bool, String, String)>) {
    let mut wrong = Vec::new();
    for (accepted, label, program) in programs {
        match compile(&program) {
            Ok(_) if accepted => {}
            Err(_) if !accepted => {}
            Ok(_) => wrong.push(format!("accepted, Varnish refuses it: {label}")),
            Err(messages) => wrong.push(format!("refused, Varnish takes it: {label}\n{messages}")),
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn statements_are_accepted_as_varnish_accepts_them() {
    const AROUND: &str = "vcl 4.1; import std; import blob; import directors;\n\
        backend bb { .host = \"127.0.0.1\"; } acl aa { \"10.0.0.1\"; }\n\
        sub vcl_deliver { if (client.ip ~ aa) {} }\n";
    agree(verdicts(include_str!("oracle/statements.txt")).map(|(accepted, rest)| {
        let (sub, statement) = rest.split_once(' ').expect("a subroutine and a statement");
        (accepted, rest.to_string(), format!("{AROUND}sub {sub} {{ {statement} }}"))
    }));
}

#[test]
fn programs_are_accepted_as_varnish_accepts_them() {
    agree(verdicts(include_str!("oracle/programs.txt")).map(|(accepted, rest)| {
        let program = format!("vcl 4.1; import std; import blob; import directors;\n{rest}");
        (accepted, rest.to_string(), program)
    }));
}

/// An expression of each type.
const OF_TYPE: &[(&str, &str)] = &[
    ("BACKEND", "req.backend_hint"),
    ("BLOB", "req.hash"),
    ("BOOL", "req.hash_ignore_busy"),
    ("BYTES", "storage.Transient.free_space"),
    ("DURATION", "req.ttl"),
    ("INT", "req.restarts"),
    ("IP", "client.ip"),
    ("REAL", "std.random(1, 2)"),
    ("STRING", "req.url"),
    ("TIME", "now"),
    ("ACL", "aa"),
    ("PROBE", "pp"),
    ("STEV", "storage.Transient"),
    ("SUB", "ss"),
];

#[test]
fn operators_go_with_the_types_that_varnish_has_them_go_with() {
    // Operators and types without a line in the table are rejected by both.
    let table: Vec<Vec<&str>> = include_str!("oracle/operators.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
        .collect();
    let verdict = |left: &str, op: &str, right: &str, at: usize| {
        table.iter().any(|line| line[..3] == [left, op, right] && line[at] == "yes")
    };
    let mut statements = Vec::new();
    for (left, a) in OF_TYPE {
        for (right, b) in OF_TYPE {
            for op in ["+", "-", "*", "/", "%", "==", "<", "~"] {
                let of_both =
                    [format!("if ({a} {op} {b}) {{}}"), format!("set req.http.x = {a} {op} {b};")];
                for (at, statement) in of_both.into_iter().enumerate() {
                    statements.push((verdict(left, op, right, at + 3), statement));
                }
            }
        }
    }
    assert_eq!(statements.len(), OF_TYPE.len() * OF_TYPE.len() * 8 * 2);
    // An error has its line, so one program can hold many statements.
    let wrong: Vec<String> = statements.chunks(MAX_ENTRIES - 1).flat_map(misjudged).collect();
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// The `statements` with an unexpected verdict.
fn misjudged(statements: &[(bool, String)]) -> Vec<String> {
    let lines: Vec<&str> = statements.iter().map(|(_, statement)| &**statement).collect();
    let program = format!(
        "vcl 4.1; import std; probe pp {{}} backend bb {{ .host = \"127.0.0.1\"; .probe = pp; }} \
         acl aa {{ \"10.0.0.1\"; }} sub ss {{}} sub vcl_hit {{ if (client.ip ~ aa) {{ call ss; }}\n\
         {}\n}}",
        lines.join("\n")
    );
    let messages = compile(&program).err().unwrap_or_default();
    let at_line = |line: &str| {
        line.trim_start().strip_prefix("--> test.vcl:")?.split(':').next()?.parse().ok()
    };
    let faulty: Vec<usize> = messages.lines().filter_map(at_line).collect();
    let differs = |(at, (accepted, statement)): (usize, &(bool, String))| {
        // The first line holds the declarations.
        let is_faulty = faulty.contains(&(at + 2));
        (is_faulty == *accepted).then(|| format!("refused {is_faulty}: {statement}"))
    };
    let mut wrong: Vec<String> = statements.iter().enumerate().filter_map(differs).collect();
    if faulty.iter().any(|line| !(2..statements.len() + 2).contains(line)) {
        wrong.push(messages);
    }
    wrong
}

#[test]
fn subroutines_that_go_too_deep_are_refused() {
    let chain = |length: u32| {
        let subs = (1..length).map(|n| format!("sub s{n} {{ call s{}; }}", n + 1));
        let subs: String = subs.collect();
        compile(&format!(
            "vcl 4.1; backend default none; sub vcl_recv {{ call s1; }} {subs} sub s{length} {{}}"
        ))
    };
    chain(100).expect("that is not deep");
    let messages = chain(300).expect_err("that is");
    assert!(messages.contains("too deep"), "{messages}");
}

#[test]
fn what_a_program_does_is_known() {
    use crate::sub::{Sub, Subs};
    let uses = |text: &str| {
        compile(&format!("vcl 4.1; backend default none; {text}")).expect(text).uses().clone()
    };
    let plain = uses("");
    assert_eq!(plain.own, Subs::NONE);
    assert!(!plain.head.has(Sub::Deliver) && plain.head.has(Sub::Synth));
    let own = uses("sub vcl_deliver { call x; } sub x { set resp.http.A = obj.hits; }");
    assert!(own.own.has(Sub::Deliver) && own.head.has(Sub::Deliver) && !own.own.has(Sub::Hit));
    assert!(uses("sub vcl_req_cookie { set req.http.x = \"1\"; }").own.has(Sub::Recv));
    assert!(uses("sub vcl_deliver { set resp.status = 204; }").head.has(Sub::Deliver));
    assert!(!uses("sub vcl_deliver { set req.http.x = obj.hits; }").head.has(Sub::Deliver));
    assert!(uses("sub vcl_deliver { return (restart); }").restart);
    assert!(uses("import std; sub vcl_recv { std.rollback(req); }").rollback);
    assert!(uses("import std; sub vcl_recv { std.set_ip_tos(8); }").socket);
    assert!(uses("import tcp; sub vcl_recv { tcp.dump_info(); }").socket);
    assert!(!uses("import std; sub vcl_recv { std.log(\"\"); }").socket);
    let body = uses("import std; sub vcl_recv { std.cache_req_body(5KB); }").body;
    assert_eq!(body, Some(5120));
    assert_eq!(uses("sub vcl_recv { return (vcl(other)); }").labels, ["other".into()]);
}

#[test]
fn returns_behind_which_no_safety_is_left_are_warned_of() {
    let warnings = |text: &str| {
        let text = format!("vcl 4.1; backend default none; {text}");
        crate::testing::compile_all(&text).expect("it is right").warnings
    };
    assert_eq!(warnings("sub vcl_recv { if (req.url) { return (pass); } }"), "");
    let always = warnings("sub vcl_recv { if (req.url) { return (pass); } return (hash); }");
    assert!(always.contains("vcl_recv always returns by itself"), "{always}");
    let part = warnings("sub vcl_hash { hash_data(regsub(req.url, \"a\", \"\")); }");
    assert!(part.contains("the key has a part of `req.url` only"), "{part}");
}

#[test]
fn a_typo_is_reported_once_with_the_nearest_name() {
    let messages = |text: &str| {
        compile(&format!("vcl 4.1; backend default none; {text}")).expect_err("it is wrong")
    };
    for (slip, meant) in [
        ("sub vcl_recv { set req.htp.X = \"1\"; }", "req.http.X"),
        ("sub vcl_recv { if (rex.http.Host) { return (pass); } }", "req.http.Host"),
        ("sub vcl_deliver { unset resp.httpp.Via; }", "resp.http.Via"),
    ] {
        let message = messages(slip);
        assert!(message.contains(&format!("did you mean `{meant}`?")), "{message}");
    }
    for (old, instead) in [
        ("sub vcl_fetch { }", "`vcl_fetch` was VCL 3"),
        ("sub vcl_recv { return (hit_for_pass); }", "write `set beresp.uncacheable"),
        ("sub vcl_hit { return (discard); }", "these were VCL 2"),
    ] {
        let message = messages(old);
        assert!(message.contains(instead) && !message.contains("did you mean"), "{message}");
    }
}

/// Additions to the language in Varnish 7.2 to 9.0, from the release notes.
#[test]
fn the_language_of_later_releases_is_taken() {
    const STATEMENTS: &[(&str, &[&str])] = &[
        (
            "vcl_recv",
            &[
                "if (req.xid > 1000 && sess.xid != req.xid) { set req.http.a = req.xid + 1; }",
                "set req.http.a = \"x\" + req.xid; std.log(req.xid);",
                "set req.grace = 1s; unset req.grace; unset req.ttl; unset req.max_age;",
                "set req.max_age = 5s; set req.ttl = req.max_age;",
                "unset sess.timeout_idle; unset sess.timeout_linger;",
                "unset sess.idle_send_timeout; unset sess.send_timeout;",
                "set req.trace = !req.trace; set req.filters = \"\";",
                "if (std.now() > now) { set req.http.a = std.timed_call(own); }",
                "if (std.timed_call(own) > 1s) { std.log(\"slow\"); }",
                "set req.http.a = param.default_ttl + \" \" + param.transit_buffer;",
                "if (param.max_retries > 2) { return (fail(\"many\")); }",
                "set req.http.a = math.sqrt(2.0); if (h2.is()) { set req.http.a = tls.version(); }",
                "unused extra;",
            ],
        ),
        ("vcl_synth", &["set resp.http.a = req.hash;", "set resp.http.a += \"more\";"]),
        (
            "vcl_pipe",
            &[
                "set bereq.http.a = req.hash; set bereq.task_deadline = 5s;",
                "unset bereq.task_deadline; unset bereq.connect_timeout;",
            ],
        ),
        (
            "vcl_backend_fetch",
            &[
                "unset bereq.first_byte_timeout; unset bereq.between_bytes_timeout;",
                "unset bereq.connect_timeout; set bereq.trace = true;",
                "set bereq.filters = \"\"; set bereq.retry_connect = false;",
                "set bereq.http.a = bereq.xid * 2;",
            ],
        ),
        (
            "vcl_backend_refresh",
            &[
                "if (obj_stale.is_valid && obj_stale.status == 200) { return (merge); }",
                "set beresp.http.a = obj_stale.http.b + obj_stale.age + obj_stale.ttl;",
                "set beresp.http.a = obj_stale.grace + obj_stale.keep + \" \" + obj_stale.hits;",
                "set beresp.http.a = obj_stale.can_esi + \" \" + obj_stale.uncacheable;",
                "set beresp.http.a = obj_stale.proto + obj_stale.reason + obj_stale.storage;",
                "if (obj_stale.time < now) { return (obj_stale); } return (beresp);",
                "std.rfc_ttl(); set beresp.ttl = 5s; return (retry);",
                "return (error(503, \"no\"));",
                "return (abandon);",
                "return (fail(\"why\"));",
            ],
        ),
        ("vcl_backend_response", &["set beresp.transit_buffer = 1MB; std.rfc_ttl();"]),
        ("vcl_beresp_range", &["return (deliver);"]),
        ("vcl_refresh_valid", &["return;"]),
    ];
    for version in ["4.0", "4.1"] {
        for (sub, statements) in STATEMENTS {
            for statement in *statements {
                if version == "4.0" && statement.contains("sess.xid") {
                    continue;
                }
                let text = format!(
                    "vcl {version}; import std; import math; import h2; import tls; \
                     acl extra +log +fold(-report) {{ \"192.0.2.0\"/24; }} \
                     probe idle {{ .expect_close = false; }} unused idle; \
                     backend proxy {{ .host = \"127.0.0.1\"; }} \
                     backend default {{ .host = \"192.0.2.1:443\"; .via = proxy; \
                     .authority = \"a.test\"; .wait_limit = 3; .wait_timeout = 1.5s; }} \
                     sub own {{ return; }} unused own; unused extra; \
                     sub {sub} {{ {statement} }}"
                );
                if let Err(messages) = compile(&text) {
                    panic!("{version}: {sub}: {statement}\n{messages}");
                }
            }
        }
    }
}

#[test]
fn what_later_releases_refuse_is_refused() {
    for (text, wanted) in [
        ("sub vcl_recv { if (req.xid ~ \"1\") { } }", "`~` does not go with INT"),
        ("sub vcl_recv { return (merge); }", "`merge` cannot be returned in vcl_recv"),
        ("sub vcl_backend_response { set beresp.http.a = obj_stale.ttl; }", "cannot be read"),
        ("sub vcl_backend_refresh { return (deliver); }", "`deliver` cannot be returned"),
        ("sub vcl_recv { set param.default_ttl = 1s; }", "cannot be set"),
        ("sub vcl_recv { std.rfc_ttl(); }", "always fails"),
        ("unused nothing;", "`nothing` is not declared"),
        ("acl a +log(-report) { }", "`log` has no flag `report`"),
        (
            "backend a { .host = \"127.0.0.1\"; .via = default; } \
             backend b { .host = \"127.0.0.2\"; .via = a; }",
            "`a` has a `.via` of its own",
        ),
        ("backend a { .path = \"/x\"; .via = default; }", "cannot be reached through another"),
        ("backend a { .host = \"127.0.0.1\"; .authority = \"1.2.3.4\"; }", "is no authority"),
        ("backend a { .path = \"@\"; }", "must be absolute"),
        ("probe p { .expect_close = 1; }", "wrong kind"),
    ] {
        let text =
            format!("vcl 4.1; import std; backend default {{ .host = \"127.0.0.1\"; }} {text}");
        let messages = match crate::testing::compile_all(&text) {
            Ok(compiled) => compiled.warnings,
            Err(messages) => messages,
        };
        assert!(messages.contains(wanted), "{text}\n{messages}");
    }
}
