//! What is accepted and what is not, held against what Varnish said of the same.

use crate::testing::compile;

/// Each line's verdict (`yes`, `no`) and the rest.
fn verdicts(table: &'static str) -> impl Iterator<Item = (bool, &'static str)> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (verdict, rest) = line.split_once(' ').unwrap_or((line, ""));
        (verdict == "yes", rest.trim_start())
    })
}

/// Compiles each program and fails with those on which Varnish disagrees.
fn agree(programs: impl Iterator<Item = (bool, String, String)>) {
    let mut wrong = Vec::new();
    for (accepted, label, program) in programs {
        match compile(&program) {
            Ok(_) if accepted => {}
            Err(_) if !accepted => {}
            Ok(_) => wrong.push(format!("accepted, Varnish refuses it: {label}")),
            Err(said) => wrong.push(format!("refused, Varnish takes it: {label}\n{said}")),
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn statements_are_accepted_as_varnish_accepts_them() {
    const AROUND: &str = "vcl 4.1; import std;\n\
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
        let program = format!("vcl 4.1; import std;\n{rest}");
        (accepted, rest.to_string(), program)
    }));
}
