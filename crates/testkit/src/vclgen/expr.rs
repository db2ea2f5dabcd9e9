//! Expressions of generated VCL programs, by type.

use super::dice::Dice;
use super::words::{HEADERS, PATHS, VALUES};

/// The subroutine that an expression or statement stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EnclosingSubroutine {
    Recv,
    Hash,
    Hit,
    Miss,
    Pass,
    Purge,
    Deliver,
    Synth,
    Fetch,
    Response,
    Error,
}

impl EnclosingSubroutine {
    pub(crate) const ALL: &'static [Self] = &[
        Self::Recv,
        Self::Hash,
        Self::Hit,
        Self::Miss,
        Self::Pass,
        Self::Purge,
        Self::Fetch,
        Self::Response,
        Self::Error,
        Self::Deliver,
        Self::Synth,
    ];

    pub(crate) fn sub(self) -> &'static str {
        match self {
            Self::Recv => "vcl_recv",
            Self::Hash => "vcl_hash",
            Self::Hit => "vcl_hit",
            Self::Miss => "vcl_miss",
            Self::Pass => "vcl_pass",
            Self::Purge => "vcl_purge",
            Self::Deliver => "vcl_deliver",
            Self::Synth => "vcl_synth",
            Self::Fetch => "vcl_backend_fetch",
            Self::Response => "vcl_backend_response",
            Self::Error => "vcl_backend_error",
        }
    }

    /// Returns true if `req` is available.
    pub(crate) fn is_client(self) -> bool {
        !matches!(self, Self::Fetch | Self::Response | Self::Error)
    }

    /// The available request.
    pub(crate) fn request(self) -> &'static str {
        if self.is_client() { "req" } else { "bereq" }
    }

    /// The available response.
    pub(crate) fn response(self) -> Option<&'static str> {
        match self {
            Self::Deliver | Self::Synth => Some("resp"),
            Self::Response | Self::Error => Some("beresp"),
            _ => None,
        }
    }

    /// The messages whose headers are writable.
    pub(crate) fn writable(self) -> &'static [&'static str] {
        match self {
            Self::Deliver | Self::Synth => &["req", "resp"],
            Self::Response | Self::Error => &["bereq", "beresp"],
            Self::Fetch => &["bereq"],
            _ => &["req"],
        }
    }
}

const PATTERNS: &[&str] = &[
    "a",
    "^a",
    "b$",
    "[0-9]+",
    "(?i)ABC",
    "^$",
    ".",
    "x|y",
    "(a)(b)?",
    "^/([a-z]+)",
    "\\.(png|html)$",
    "a{2,3}",
    "[^;]+;",
    "\\d",
    "\\s",
    "(?i)^(x-)?a",
    "=([^;&]*)",
    "a(?=b)",
    "(?<!a)b",
    "^(.)\\1",
];
const REPLACEMENTS: &[&str] = &["", "X", "\\1", "<\\0>", "\\2\\1", "a\\\\b", "-"];

/// A string literal.
fn literal(dice: &mut Dice) -> String {
    let value = dice.pick(VALUES);
    if value.contains('"') { format!("{{\"{value}\"}}") } else { format!("\"{value}\"") }
}

/// A pattern as a literal.
pub(crate) fn pattern(dice: &mut Dice) -> String {
    format!("\"{}\"", dice.pick(PATTERNS))
}

/// A readable header.
pub(crate) fn header(dice: &mut Dice, scope: EnclosingSubroutine) -> String {
    let place = match scope.response() {
        Some(response) if dice.one_in(2) => response,
        _ => scope.request(),
    };
    format!("{place}.http.{}", dice.pick(HEADERS))
}

/// A STRING.
pub(crate) fn string(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
    let request = scope.request();
    if depth == 0 || dice.one_in(3) {
        return match dice.below(6) {
            0 => format!("{request}.url"),
            1 => format!("{request}.method"),
            2 | 3 => header(dice, scope),
            _ => literal(dice),
        };
    }
    let inner = |dice: &mut Dice| string(dice, scope, depth - 1);
    match dice.below(21) {
        14 => format!("({}).upper()", inner(dice)),
        15 => format!("({}).lower()", inner(dice)),
        16 => format!("str.take({}, {}, {})", inner(dice), 1 + dice.below(6), dice.below(3)),
        17 => format!("\"<\" + std.time({}, std.real2time(1000.0, now)) + \">\"", moment(dice)),
        18 => format!("\"<\" + str.contains({}, {}) + \">\"", inner(dice), literal(dice)),
        // In Varnish, a port without an address is an address of the machine.
        19 => {
            let address = string(dice, scope, 0);
            format!("\"\" + std.ip({address}, \"127.0.0.1\", resolve=false)")
        }
        20 => format!("\"<\" + {} + \">\"", bytes(dice)),
        12 => format!("str.reverse({})", inner(dice)),
        // Varnish's module reads beyond the text if it has fewer words.
        13 => {
            let words = dice.pick(&["x,y,x", "a,b;,c"]);
            format!("str.split(\"{words}\", {}, \",\")", 1 + dice.below(3))
        }
        0 | 1 => {
            format!("regsub({}, {}, \"{}\")", inner(dice), pattern(dice), dice.pick(REPLACEMENTS))
        }
        2 => format!(
            "regsuball({}, {}, \"{}\")",
            inner(dice),
            pattern(dice),
            dice.pick(REPLACEMENTS)
        ),
        3 => format!("std.tolower({})", inner(dice)),
        4 => format!("std.toupper({})", inner(dice)),
        5 => format!("std.querysort({})", inner(dice)),
        6 => format!("{} + {}", inner(dice), inner(dice)),
        7 => format!("\"<\" + {} + \">\"", int(dice, scope, depth - 1)),
        8 => format!("\"<\" + {} + \">\"", duration(dice, depth - 1)),
        9 => format!("\"<\" + {} + \">\"", real(dice, scope, depth - 1)),
        10 => format!("{} + client.ip", inner(dice)),
        _ => format!("std.strstr({}, {})", inner(dice), literal(dice)),
    }
}

/// A text for conversion to TIME.
fn moment(dice: &mut Dice) -> &'static str {
    dice.pick(&["\"Mon, 02 Feb 2026 10:00:00 GMT\"", "\"2026-02-02T10:00:00\"", "\"77\"", "\"x\""])
}

/// A BYTES.
fn bytes(dice: &mut Dice) -> &'static str {
    dice.pick(&["std.bytes(\"12k\", 1B)", "std.bytes(\"x\", 2.5KB)", "std.bytes(real=1.5)"])
}

/// An INT, small enough for sums.
pub(crate) fn int(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
    if depth == 0 || dice.one_in(3) {
        return dice.below(100).to_string();
    }
    match dice.below(7) {
        0 => format!("str.count({})", string(dice, scope, depth - 1)),
        1 => format!("std.integer({}, 5)", string(dice, scope, depth - 1)),
        2 => format!("({} + {})", int(dice, scope, depth - 1), int(dice, scope, depth - 1)),
        3 => format!("({} - {})", int(dice, scope, depth - 1), int(dice, scope, depth - 1)),
        4 => format!("({} % {})", int(dice, scope, depth - 1), 1 + dice.below(9)),
        5 => format!("({} / {})", int(dice, scope, depth - 1), 1 + dice.below(9)),
        _ if scope.is_client() => "req.restarts".to_owned(),
        _ => "bereq.retries".to_owned(),
    }
}

/// A REAL.
pub(crate) fn real(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
    if depth == 0 || dice.one_in(2) {
        return dice.pick(&["0.5", "1.0", "3.14", "100.001", "0.0"]).to_owned();
    }
    match dice.below(3) {
        0 => format!("std.real({}, 2.5)", string(dice, scope, depth - 1)),
        1 => format!("({} + {})", real(dice, scope, depth - 1), real(dice, scope, depth - 1)),
        _ => format!("({} * 2.0)", real(dice, scope, depth - 1)),
    }
}

/// A DURATION.
pub(crate) fn duration(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || dice.one_in(2) {
        return dice.pick(&["0s", "1s", "2.5m", "10ms", "1h", "3d", "1w"]).to_owned();
    }
    match dice.below(3) {
        0 => format!("({} + {})", duration(dice, depth - 1), duration(dice, depth - 1)),
        1 => format!("({} * 2.0)", duration(dice, depth - 1)),
        _ => format!("std.duration({}, 7s)", literal(dice)),
    }
}

/// A BOOL.
pub(crate) fn boolean(dice: &mut Dice, scope: EnclosingSubroutine, depth: usize) -> String {
    if depth > 0 && dice.one_in(3) {
        let (left, right) = (boolean(dice, scope, depth - 1), boolean(dice, scope, depth - 1));
        return match dice.below(3) {
            0 => format!("({left} && {right})"),
            1 => format!("({left} || {right})"),
            _ => format!("!({left})"),
        };
    }
    match dice.below(14) {
        11 => format!("std.fnmatch({}, {})", literal(dice), string(dice, scope, 1)),
        12 => format!("std.ip({}, \"127.0.0.1\", resolve=false) ~ near", string(dice, scope, 0)),
        13 => match scope {
            EnclosingSubroutine::Hit => {
                format!("obj.ttl > {}", dice.pick(&["21s", "83s", "147s", "1007s"]))
            }
            EnclosingSubroutine::Deliver => format!("obj.hits > {}", dice.below(3)),
            EnclosingSubroutine::Response => {
                format!("beresp.ttl > {}", dice.pick(&["0s", "21s", "83s", "147s"]))
            }
            EnclosingSubroutine::Fetch | EnclosingSubroutine::Error => {
                "bereq.uncacheable".to_owned()
            }
            _ => "std.healthy(req.backend_hint)".to_owned(),
        },
        10 => {
            let how = dice.pick(&["startswith", "endswith", "contains"]);
            format!("str.{how}({}, {})", string(dice, scope, 1), literal(dice))
        }
        0 | 1 => header(dice, scope),
        2 => format!("!{}", header(dice, scope)),
        3 => format!("{} ~ {}", header(dice, scope), pattern(dice)),
        4 => format!("{}.url ~ {}", scope.request(), pattern(dice)),
        5 => format!("{} !~ {}", header(dice, scope), pattern(dice)),
        6 => format!("{} == {}", string(dice, scope, 1), literal(dice)),
        7 => format!("{}.url == \"{}\"", scope.request(), dice.pick(PATHS)),
        8 => {
            let op = dice.pick(&["<", ">", "<=", ">=", "==", "!="]);
            format!("{} {op} {}", int(dice, scope, 1), int(dice, scope, 1))
        }
        _ => match scope.response() {
            Some(response) => format!("{response}.status == {}", dice.pick(&["200", "404", "503"])),
            None => format!("{}.method == \"GET\"", scope.request()),
        },
    }
}
