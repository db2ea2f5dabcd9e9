//! Fuzzing entry points of the crate. Only fuzz targets and tests call them.

use std::sync::{Arc, OnceLock};

use crate::headers;
use crate::input::{CompileSettings, Input, ProgramRole};
use crate::lex::{self, TokenKind};
use crate::parse;
use crate::report::Report;
use crate::shared::database;
use crate::source::{NoFiles, SourceFile, SourceSpan, Sources};
use crate::state::program::{Instance, Program};
use crate::sub::Sub;
use crate::testing::{NOW, RecordingEnvironment, SubroutineFixture};

/// Any bytes give tokens in order, without overlap and within the file; the content of a string
/// lies within its token. Each bad token has been reported.
pub fn lexer(data: &[u8]) {
    let file = SourceFile { name: "fuzz.vcl".into(), text: data.into(), included_at: None };
    let mut report = Report::default();
    let tokens = lex::tokens(0, &file, &mut report);
    let mut last = 0;
    for token in &tokens {
        let SourceSpan { start, end, .. } = token.span;
        assert!(last <= start && start < end && end as usize <= data.len());
        last = end;
        let bytes = &data[start as usize..end as usize];
        match token.kind {
            TokenKind::Str => assert!(lex::string(bytes).len() + 2 <= bytes.len()),
            TokenKind::Blob => assert!(lex::decode(&bytes[1..bytes.len() - 1]).is_some()),
            TokenKind::Bad => assert!(report.has_errors()),
            _ => {}
        }
    }
    let mut sources = Sources::default();
    sources.add(file);
    assert_eq!(report.render(&sources).is_empty(), report.is_empty());
}

/// Any program is parsed, or rejected with an error; parsing it again gives an equal result.
pub fn parser(data: &[u8]) {
    let read = || {
        let (mut sources, mut report) = (Sources::default(), Report::default());
        let rules = CompileSettings {
            storages: &[],
            labels: &[],
            include_depth: 3,
            unused_is_error: true,
            role: ProgramRole::Whole,
        };
        let input = Input { name: "fuzz.vcl", text: data, loader: &NoFiles, rules };
        let ast = parse::parse(&input, &mut sources, &mut report);
        assert!(ast.is_some() || report.has_errors());
        (format!("{ast:?}"), report.render(&sources))
    };
    assert_eq!(read(), read());
}

/// Any program is rejected with an error, or runs: each of its subroutines ends within its step
/// budget.
pub fn program(data: &[u8]) {
    program_as(data, ProgramRole::Whole);
    program_as(data, ProgramRole::Extra);
}

fn program_as(data: &[u8], role: ProgramRole) {
    let rules = CompileSettings {
        storages: &["s0"],
        labels: &["other"],
        include_depth: 3,
        unused_is_error: true,
        role,
    };
    let input = Input { name: "fuzz.vcl", text: data, loader: &NoFiles, rules };
    let program = match Program::compile(&input) {
        Ok(compiled) => compiled.program,
        Err(message) => return assert!(!message.is_empty()),
    };
    let Ok(instance) = program.start(&RecordingEnvironment::default(), NOW) else { return };
    let mut fixture = SubroutineFixture::with(Arc::clone(&instance));
    for sub in Sub::ALL {
        fixture.task.steps = 1000;
        fixture.run(*sub);
    }
    instance.stop(&fixture.environment, NOW);
}

/// A program that applies all string operations to two headers.
const STRINGS: &str = r#"vcl 4.1;
import std;
backend default none;
sub vcl_recv {
    set req.http.joined = req.http.a + req.http.b + 1 + 5s + now;
    set req.http.lower = req.http.a.lower() + req.http.b.upper();
    set req.http.first = regsub(req.http.a, "([a-z]+)-?(\d*)", "[\2\1\0\9\\]");
    set req.http.all = regsuball(req.http.a, "(^|[^a-z])b*", req.http.b);
    set req.http.behind = regsuball(req.http.a, "(?<=a)b|(.)\1?$", "<\1>");
    if (req.http.a ~ "^(?i)x.*y$" || req.http.a == req.http.b || req.http.a < req.http.b) {
        set req.url = req.url + req.http.a;
    }
    set req.http.sorted = std.querysort(req.http.a);
    set req.http.number = std.integer(req.http.a, 0) + std.real(req.http.b, 0.0);
    set req.http.time = std.time(req.http.a, now) + std.duration(req.http.b, 0s);
    set req.method = req.http.b;
    return (synth(200, req.http.a));
}
"#;

/// Whatever two headers hold, the program ends, and no header that it sets contains a line end.
pub fn strings(data: &[u8]) {
    static PROGRAM: OnceLock<Arc<Instance>> = OnceLock::new();
    work(PROGRAM.get_or_init(|| started(STRINGS)), Sub::Recv, data);
}

/// A program that applies the parsers of VMODs to two headers.
const MODULES: &str = r#"vcl 4.1;
import accept; import blob; import cookie; import digest; import header; import querystring;
import re2; import str; import vtc;
backend default none;
sub vcl_init {
    new choice = accept.rule("en"); choice.add("de"); choice.add("gzip");
    new drop = querystring.filter(sort=true, uniq=true);
    drop.add_glob("utm_*[a-c]?"); drop.add_regex("^fb"); drop.add_string("sid");
    new word = re2.regex("(?P<first>[a-z]+)-?(\d*)"); new empty = re2.regex("a?", utf8=true);
    new words = re2.set(case_sensitive=false);
    words.add("^a", string="a"); words.add("b$", save=true); words.add("[^c]");
}
sub vcl_hit { set req.http.digest = digest.base64_decode(req.http.a); }
sub vcl_miss { set req.http.digest = digest.base64url_nopad_decode(req.http.b); }
sub vcl_pass {
    set req.http.found = "" + re2.match(req.http.a, req.http.b, max_mem=10000) + re2.backref(0);
    set req.http.all = re2.suball(req.http.a, req.http.b, "<\0>", max_mem=10000, utf8=true);
}
sub vcl_recv {
    cookie.parse(req.http.a);
    cookie.filter(req.http.b);
    cookie.set(req.http.b, req.http.a);
    cookie.keep_re("a");
    set req.http.cookie = cookie.get_string();
    set req.http.choice = choice.filter(req.http.a);
    set req.http.dropped = drop.apply(req.http.a) + drop.apply(req.http.b, mode=keep);
    set req.http.glob = querystring.globfilter(req.http.a, req.http.b);
    set req.http.taken = str.take(req.http.a, 3, -5) + str.split(req.http.a, -1, req.http.b);
    header.append(req.http.more, req.http.a);
    header.append(header.dyn(req, req.http.b), "x");
    header.regsub(req, "(e)?: ", req.http.b, true);
    set req.http.hex = blob.transcode(HEX, BASE64, encoded=req.http.b);
    set req.http.url = blob.transcode(URL, BASE64CF, encoded=req.http.a);
    set req.http.plain = blob.transcode(BASE64, IDENTITY, encoded=req.http.b);
    set req.http.hash = digest.hash_sha256(req.http.a) + digest.hash_haval256(req.http.b)
        + digest.hmac_md5(req.http.a, req.http.b) + digest.base64_hex(req.http.a)
        + digest.base64url_nopad(req.http.b);
    set req.http.word = word.sub(req.http.a, req.http.b) + empty.suball(req.http.b, req.http.a);
    set req.http.quoted = re2.quotemeta(req.http.a);
    if (re2.match(re2.quotemeta(req.http.a), req.http.b + req.http.a)) {
        set req.http.same = re2.backref(0);
    }
    if (words.match(req.http.b)) {
        set req.http.which = "" + words.which(FIRST) + words.nmatches();
    }
    words.hdr_filter(req);
    set req.http.size = vtc.typesize(req.http.a);
    set req.http.proxy = blob.encode(HEX,
        blob=vtc.proxy_header(v2, client.ip, server.ip, req.http.b));
}
"#;

/// Whatever two headers hold, each call of a VMOD ends or fails.
pub fn modules(data: &[u8]) {
    static PROGRAM: OnceLock<Arc<Instance>> = OnceLock::new();
    let instance = PROGRAM.get_or_init(|| started(MODULES));
    for sub in [Sub::Recv, Sub::Miss, Sub::Pass, Sub::Hit] {
        work(instance, sub, data);
    }
}

/// Metadata of a database with one node and records of 24 bits.
const DATABASE: &[u8] = b"\xab\xcd\xefMaxMind.com\xe9\x4anode_count\xc1\x01\x4brecord_size\xa1\x18\
    \x4aip_version\xa1\x06\x4ddatabase_type\x44Fuzz\x49languages\x00\x04\
    \x5bbinary_format_major_version\xa1\x02\x5bbinary_format_minor_version\xa0\
    \x4bbuild_epoch\x01\x02\x01\x4bdescription\xe0";

/// A lookup in any database ends. The first bytes are the path; the rest is a file, or the data
/// that all addresses lead to.
pub fn database(data: &[u8]) {
    let (path, data) = data.split_at(data.len().min(16));
    let path = String::from_utf8_lossy(path);
    // Both records of the node lead to the data, behind 16 zero bytes.
    let around = [&[0, 0, 17, 0, 0, 17][..], &[0; 16], data, DATABASE].concat();
    assert!(database::look(around.into(), &path));
    database::look(data.to_vec().into(), &path);
}

fn started(program: &str) -> Arc<Instance> {
    let program = crate::testing::compile(program).expect("it is right");
    program.start(&RecordingEnvironment::default(), NOW).expect("there is nothing to fail")
}

/// Runs a subroutine with half of `data` in each of two headers, and checks the headers that it
/// sets.
fn work(instance: &Arc<Instance>, sub: Sub, data: &[u8]) {
    let mut fixture = SubroutineFixture::with(Arc::clone(instance));
    let (a, b) = data.split_at(data.len() / 2);
    for (name, value) in [("a", a), ("b", b)] {
        if headers::is_valid(value) {
            fixture.req.headers.push_named(name.as_bytes(), value);
        }
    }
    fixture.run(sub);
    let set = |bytes: &[u8]| assert!(!bytes.iter().any(|b| matches!(b, b'\r' | b'\n' | 0)));
    set(&fixture.req.target);
    set(fixture.req.method.token());
    for field in fixture.req.headers.iter() {
        set(field.name);
        set(field.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_headers_hold_the_program_ends() {
        for data in [&b""[..], b"xY", b"a=1&b=2&a=0\xff\xfe--12..", b"\\0\\1aab-12bb 5s 1m"] {
            strings(data);
        }
    }

    #[test]
    fn whatever_the_headers_hold_the_modules_end() {
        for data in [&b""[..], b"a=1; b", b"/?utm_x&a=%zz&&sid=4[]", b"de;q=0.5,,x\xff: y*[a-"] {
            modules(data);
        }
    }

    #[test]
    fn whatever_a_database_holds_lookups_end() {
        // A map whose value is a pointer to the map.
        let circle = b"a/a/a/a         \xe1\x41a\x20\x00";
        for data in [&b""[..], circle, b"/               \x20\x00"] {
            database(data);
        }
    }

    #[test]
    fn programs_are_refused_or_run() {
        program(b"vcl 4.1; backend b { .host = \"127.0.0.1\"; } sub vcl_recv { call x; } sub x {}");
        program(b"vcl 4.1; nonsense");
    }
}
