//! Entry points for fuzzing: arbitrary bytes are read, printed, read again and translated. They
//! panic when a promise does not hold; nothing else calls them but tests.

use crate::{Error, Source, parse, print, read_text, say_same, translate};

/// Reads `data` as a configuration of nginx. What is printed of it must be read as the same, and
/// every directive must be answered.
pub fn nginx(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let directives = match parse("nginx.conf", text) {
        Ok(directives) => directives,
        Err(error) => {
            assert!(matches!(error, Error::Syntax { .. } | Error::Limit { .. }), "{error}");
            return;
        }
    };
    let printed = print(&directives);
    let again = parse("nginx.conf", &printed).expect("what was printed is well-formed");
    assert!(say_same(&directives, &again), "{printed}");
    let mut count = 0;
    directives.iter().for_each(|own| own.visit(&mut |_| count += 1));
    let translated = translate(&Source::nginx(directives)).expect("a valid result");
    assert_eq!(translated.report.counts().total(), count);
}

/// Reads `data` as a Caddyfile, as lines of Squid, and as flags of varnishd. Every directive must
/// be answered.
pub fn others(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for (name, start) in [
        ("Caddyfile", ""),
        ("squid.conf", "http_port 80 accel\ncache_peer a parent 80 0 originserver\n"),
        ("varnish.service", "ExecStart=/usr/sbin/varnishd -a :80 -b a:1 "),
    ] {
        let Ok(source) = read_text(name, &format!("{start}{text}"), None) else { continue };
        let translated = translate(&source).expect("a valid result");
        assert_eq!(translated.report.counts().total(), source.count);
    }
}
