//! Common probes for every preset: poisoning (P1-P19) and deception (P8).

use super::{MARK, Probe, Rule};

/// Fields that an application behind a proxy may believe, and any client can send.
const FORGED: &[&str] = &[
    "X-Forwarded-Host",
    "X-Forwarded-Server",
    "X-Forwarded-Scheme",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X-Forwarded-Prefix",
    "X-Host",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-HTTP-Method-Override",
    "Forwarded",
];

/// Endings that make a private path look like a file: from P8.
const DISGUISES: &[&str] = &[
    "",
    "/x.css",
    "/x.js",
    ";x.css",
    "%2fx.css",
    "%3fx.css",
    "%3f.css",
    "%23.css",
    "%23x.css",
    "%3bx.css",
    "%00.css",
    "%0a.css",
    "%20x.css",
    ".css",
    "$x.css",
    ".ico",
    "/..%2fx.js",
    "/.%2fx.css",
    "//x.css",
    "/x.css?v=1",
];

/// Poisoning, P1 to P19. `cookies` is the rule for an unknown cookie, where the origin says
/// `Vary: Cookie`.
pub(crate) fn poisoning(cookies: Rule) -> Vec<Probe> {
    use Rule::{Apart, Clean};
    let mut probes: Vec<Probe> =
        FORGED.iter().map(|name| Probe::get("/p1", format!("{name}: {MARK}\r\n"), Clean)).collect();
    let big = "b".repeat(9000);
    probes.extend([
        Probe::get("/p1?both", format!("x_forwarded_host: {MARK}\r\n"), Clean),
        Probe::get("/p2", format!("Cookie: theme={MARK}\r\n"), cookies)
            .answered("Vary: Cookie\r\n"),
        Probe::get("/p3", "", Apart).sent_by("GET", MARK),
        Probe::get(format!("/p4?x=1&utm_source={MARK};x=2"), "", Clean).then("/p4?x=1"),
        Probe::get(format!("/p4?utm_source=a&x=1;x={MARK}"), "", Clean).then("/p4?x=1"),
        Probe::get(format!("/p5%3fx={MARK}"), "", Apart).then("/p5?x=1"),
        Probe::get(format!("/p5%26{MARK}"), "", Apart).then("/p5"),
        Probe::get(format!("/a/..%2fp7%2f{MARK}"), "", Apart).then("/p7"),
        Probe::get("/a/../p7", "", Apart).then("/p7"),
        Probe::get("//p7", "", Apart).then("/p7"),
        Probe::get("/p9", format!("X-Big: {MARK}{big}\r\n"), Apart),
        Probe::get("/p10", format!("X-Meta: {MARK}\x07\r\n"), Apart),
        Probe::get("/p11", "", Apart).sent_by("POST", MARK),
        Probe::get("/p11", "", Apart).sent_by("PUT", MARK),
        Probe::get("/p11", "", Apart).sent_by("DELETE", MARK),
        Probe::get("/p11", "", Apart).sent_by("SEARCH", MARK),
        Probe::get("/p12", "", Apart).answered("Vary: *\r\n"),
        Probe::get("/p14", format!("Authorization: Basic {MARK}\r\n"), Apart),
        Probe::get("/p14", format!("Authorization: Bearer {MARK}\r\n"), Apart)
            .answered("Vary: Authorization\r\n"),
        Probe::get("/p15", "Range: bytes=0-1\r\n", Clean),
        Probe::get("/p15", "Range: bytes=9000-\r\n", Clean),
        Probe::get("/p18", format!("Accept-Encoding: {MARK}\r\n"), Clean),
        Probe::get("/p19", format!("Connection: Upgrade\r\nUpgrade: {MARK}\r\n"), Clean),
    ]);
    probes
}

/// P13: answers that open a session.
pub(crate) fn set_cookie(targets: &[&str]) -> Vec<Probe> {
    let opened = "Set-Cookie: sid={n}; Path=/\r\n";
    targets.iter().map(|t| Probe::get(*t, "", Rule::Apart).answered(opened)).collect()
}

/// P8: every private path in every disguise, by a visitor with `cookie`, and by one whom the origin
/// identifies by means that no cache sees.
pub(crate) fn deception(private: &[&str], cookie: &str) -> Vec<Probe> {
    let mut probes = Vec::new();
    for path in private {
        for disguise in DISGUISES {
            let target = format!("{path}{disguise}");
            let known = format!("Cookie: {cookie}={MARK}\r\n");
            probes.push(Probe::get(&target, known, Rule::Apart));
            probes.push(Probe::get(&target, "", Rule::Apart));
        }
        for start in ["/assets/..%2f", "/robots.txt/..%2f", "/x/%2e%2e/", "/./"] {
            let target = format!("{start}{}", path.trim_start_matches('/'));
            probes.push(Probe::get(target, "", Rule::Apart));
        }
    }
    probes
}

/// Deception where no path is known to be private: by a visitor with `cookie` alone. The
/// first is not disguised.
pub(crate) fn deception_by_session(cookie: &str, rule: Rule) -> Vec<Probe> {
    let known = format!("Cookie: {cookie}={MARK}\r\n");
    let targets = DISGUISES.iter().map(|disguise| format!("/account{disguise}"));
    targets.map(|target| Probe::get(target, known.clone(), rule)).collect()
}
