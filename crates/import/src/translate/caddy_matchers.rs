//! Matchers of a Caddyfile as predicates: paths, methods, fields, parameters and addresses.

use super::predicate::{Atom, NameKind, Predicate};
use crate::syntax::Directive;

/// The matcher of a directive: a path or a name.
pub(crate) fn matched(own: &Directive) -> Option<&str> {
    let first = own.args.first().map(String::as_str)?;
    let is_path = first.starts_with('/');
    let is_only = own.args.len() == 1;
    match own.name.as_str() {
        // A single path is the argument itself.
        "root" | "rewrite" | "redir" | "uri" | "log" | "tls" if is_path && is_only => None,
        "php_fastcgi" | "reverse_proxy" | "respond" | "redir" | "handle" | "handle_path"
        | "route" | "file_server" | "basic_auth" | "basicauth" | "header" | "encode"
        | "rewrite" | "root" | "request_body" | "forward_auth" | "error" | "abort" | "uri" => {
            let is_code = own.name == "redir"
                && own
                    .args
                    .get(1)
                    .is_some_and(|own| own.parse::<u16>().is_ok() || own == "permanent");
            (is_path && !is_code || first.starts_with('@')).then_some(first)
        }
        _ => None,
    }
}

/// The predicate of a named matcher.
pub(crate) fn matcher(own: &Directive) -> Predicate {
    if let Some(name) = own.args.first() {
        return condition(name, &own.args[1..]).with(&[own.id]);
    }
    let all = own.children().iter().map(|own| match own.name.as_str() {
        "not" => match own.args.split_first() {
            Some((name, args)) => condition(name, args).not(),
            None => own
                .children()
                .iter()
                .map(|own| condition(&own.name, &own.args))
                .fold(Predicate::always(), |all, one| all.and(&one))
                .not(),
        },
        name => condition(name, &own.args),
    });
    all.fold(Predicate::always(), |all, one| all.and(&one)).with(&[own.id])
}

fn condition(name: &str, args: &[String]) -> Predicate {
    let named = |kind, value: &str, key: &str| match value {
        "*" => Predicate::named(kind, key, vec!["*".to_owned()]),
        value => Predicate::named(kind, key, vec![value.to_owned()]),
    };
    match (name, args) {
        ("path", [_, ..]) => Predicate::of(Atom::Path(args.to_vec())),
        ("path_regexp", [.., own])
            if linear::Regex::new(own, linear::Options::default()).is_ok() =>
        {
            Predicate::of(Atom::Path(vec![format!("~ {own}")]))
        }
        ("method", [_, ..]) => Predicate::methods(args.iter().map(|own| own.to_ascii_uppercase())),
        ("remote_ip" | "client_ip", [_, ..])
            if args.iter().all(|own| own != "private_ranges" && own != "forwarded") =>
        {
            Predicate::of(Atom::Client(args.to_vec()))
        }
        ("remote_ip" | "client_ip", [own]) if own == "private_ranges" => {
            let nets =
                ["192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8", "127.0.0.1/8", "fd00::/8", "::1"];
            Predicate::of(Atom::Client(nets.map(str::to_owned).to_vec()))
        }
        ("header", [key, value]) if !key.starts_with('!') => named(NameKind::Header, value, key),
        ("header", [key]) if key.starts_with('!') => Predicate::absent(NameKind::Header, &key[1..]),
        ("query", pairs) if !pairs.is_empty() => {
            let one = |pair: &String| match pair.split_once('=') {
                Some((key, value)) => named(NameKind::Query, value, key),
                None => Predicate::unknown(),
            };
            pairs.iter().map(one).fold(Predicate::never(), |all, one| all.or(&one))
        }
        ("not", [inner, rest @ ..]) => condition(inner, rest).not(),
        _ => Predicate::unknown(),
    }
}
