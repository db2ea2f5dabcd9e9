//! Formats of records for people and programs: NCSA combined, JSON, and the details of one
//! transaction.
//!
//! Bytes of clients and origins must be escaped in each of them.

use std::fmt::Write as _;
use std::io::{self, Write};

use fingerprint::BodyFingerprint;
use message::date::LogDate;

use crate::heads;
use crate::record::{DictionaryUse, Flags, Kind, Record, USER};
use crate::steps;
use crate::text::{Printable, json_text, quote};

/// Positions, among a record's field values, of the fields that the formats use.
#[derive(Clone, Debug, Default)]
pub struct FieldPositions {
    names: Vec<String>,
    referer: Option<usize>,
    agent: Option<usize>,
    user: Option<usize>,
    /// True if further names are added on first use.
    open: bool,
}

impl FieldPositions {
    /// Takes the names of the values that records have.
    pub fn new(names: &[String]) -> Self {
        let at = |name: &str| names.iter().position(|own| own.eq_ignore_ascii_case(name));
        let (referer, agent, user) = (at("Referer"), at("User-Agent"), at(USER));
        Self { names: names.to_vec(), referer, agent, user, open: false }
    }

    /// Adds each field on its first use, for records whose fields are not known yet.
    pub fn open() -> Self {
        Self { open: true, ..Self::default() }
    }

    /// The names of the fields.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the position of the value of the field `name`, in any case.
    pub fn position(&self, name: &str) -> Option<usize> {
        let found = self.names.iter().position(|own| own.eq_ignore_ascii_case(name));
        found.or_else(|| self.open.then_some(0))
    }

    /// The request's Referer.
    pub fn referer<'a>(&self, record: &Record<'a>) -> Option<&'a [u8]> {
        self.referer.and_then(|at| record.values.iter().nth(at).flatten())
    }

    /// The request's User-Agent.
    pub fn agent<'a>(&self, record: &Record<'a>) -> Option<&'a [u8]> {
        self.agent.and_then(|at| record.values.iter().nth(at).flatten())
    }

    /// The user who authenticated with the scheme Basic.
    pub fn user<'a>(&self, record: &Record<'a>) -> Option<&'a [u8]> {
        self.user.and_then(|at| record.values.iter().nth(at).flatten())
    }
}

/// The protocol version as request lines have it.
pub(crate) fn version(version: u8) -> &'static str {
    match version {
        10 => "HTTP/1.0",
        20 => "HTTP/2.0",
        30 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

/// The first line of a request that could not be read, as received.
pub(crate) fn received<'a>(record: &Record<'a>) -> Option<&'a [u8]> {
    Some(record.target).filter(|line| !line.is_empty())
}

/// The client's address, or `unix:` as in nginx's log.
fn client(record: &Record<'_>) -> String {
    record.client.map_or_else(|| "unix:".to_owned(), |address| address.to_string())
}

/// Microseconds as milliseconds with three decimals.
fn ms(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}

/// Appends a line in the NCSA combined format, as nginx writes it.
pub fn combined(record: &Record<'_>, fields: &FieldPositions, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    _ = write_combined(record, fields, out);
}

fn write_combined(
    record: &Record<'_>,
    fields: &FieldPositions,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let date = LogDate::new(record.start_unix_ms / 1000);
    write!(out, "{} - ", client(record))?;
    quote(out, fields.user(record).unwrap_or(b"-"));
    write!(out, " [{}] \"", date.as_str())?;
    if record.flags.has(Flags::REFUSED) {
        quote(out, received(record).unwrap_or(b"-"));
    } else {
        quote(out, record.method);
        out.push(b' ');
        quote(out, record.target);
        write!(out, " {}", version(record.version))?;
    }
    write!(out, "\" {} {} \"", record.status, record.body_out)?;
    quote(out, fields.referer(record).unwrap_or(b"-"));
    out.extend_from_slice(b"\" \"");
    quote(out, fields.agent(record).unwrap_or(b"-"));
    out.extend_from_slice(b"\"\n");
    Ok(())
}

/// Appends a JSON object as one line: the members of a log file, or with `full` all members.
pub fn json(record: &Record<'_>, fields: &FieldPositions, full: bool, out: &mut Vec<u8>) {
    // Writing to a Vec cannot fail.
    _ = write_json(record, fields, full, out);
}

fn write_json(
    record: &Record<'_>,
    fields: &FieldPositions,
    full: bool,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let Record { start_unix_ms: start, status, body_out, .. } = record;
    let (secs, millis) = (start / 1000, start % 1000);
    write!(out, "{{\"time\":{secs}.{millis:03},\"client\":\"{}\"", client(record))?;
    write!(out, ",\"status\":{status},\"bytes\":{body_out}")?;
    write!(out, ",\"ms\":{},\"ttfb_ms\":{}", ms(record.phases.end), ms(record.ttfb_us()))?;
    text(out, "cache", record.served.word().as_bytes())?;
    let target = if record.flags.has(Flags::REFUSED) { "received" } else { "target" };
    let evidence = if record.not_stored.is_empty() { "stored_by" } else { "not_stored_by" };
    for (name, value) in [
        ("method", record.method),
        ("host", record.host),
        (target, record.target),
        ("user", fields.user(record).unwrap_or_default()),
        ("referer", fields.referer(record).unwrap_or_default()),
        ("agent", fields.agent(record).unwrap_or_default()),
        ("site", record.site),
        ("rule", record.rule),
        ("route", record.route),
        ("origin", record.origin),
        ("server", record.server),
        ("not_stored", record.not_stored),
        (evidence, record.evidence),
        ("dictionary", record.dictionary.word().as_bytes()),
        ("error", record.error),
        ("limit", record.limit),
        ("class", record.class),
        ("crawler", record.crawler),
        ("proof", record.proof_word()),
    ] {
        if !value.is_empty() {
            text(out, name, value)?;
        }
    }
    steps::json_of_log(record.vcl, out)?;
    if full {
        rest_of_json(record, fields, out)?;
    }
    out.extend_from_slice(b"}\n");
    Ok(())
}

fn rest_of_json(record: &Record<'_>, fields: &FieldPositions, out: &mut Vec<u8>) -> io::Result<()> {
    let Record { id, flags, head_in, head_out, body_in, tries, .. } = record;
    write!(out, ",\"id\":\"{id:x}\",\"version\":\"{}\"", version(record.version))?;
    for (name, flag) in [
        ("tls", Flags::TLS),
        ("cut_off", Flags::CUT_OFF),
        ("tunnel", Flags::TUNNEL),
        ("stored", Flags::STORED),
        ("reused", Flags::REUSED),
    ] {
        write!(out, ",\"{name}\":{}", flags.has(flag))?;
    }
    write!(out, ",\"head_in\":{head_in},\"body_in\":{body_in},\"head_out\":{head_out}")?;
    write!(out, ",\"tries\":{tries},\"key\":\"{:016x}\"", record.key)?;
    if let Some(age) = record.age_s {
        write!(out, ",\"age\":{age}")?;
    }
    if let Some(ttl) = record.ttl_s {
        write!(out, ",\"ttl\":{ttl}")?;
    }
    if record.xid != 0 {
        write!(out, ",\"xid\":{},\"session\":{}", record.xid, record.session)?;
    }
    write!(out, ",\"kind\":\"{}\"", record.kind.word())?;
    if record.parent != 0 {
        write!(out, ",\"parent\":\"{}\"", parent(record))?;
    }
    if record.origin_status != 0 {
        write!(out, ",\"origin_status\":{}", record.origin_status)?;
    }
    steps::json(record.vcl, out)?;
    if let Some(evidence) = record.fetch_evidence() {
        if !evidence.removed.is_empty() {
            text(out, "removed_parameters", evidence.removed)?;
        }
        if let Some(BodyFingerprint(hash)) = evidence.fingerprint {
            write!(out, ",\"fingerprint\":\"{hash:016x}\"")?;
        }
    }
    heads::json(record.heads(), out)?;
    out.extend_from_slice(b",\"phases_us\":{");
    for (name, us) in phases(record) {
        write!(out, "\"{name}\":{us},")?;
    }
    write!(out, "\"end\":{}}},\"headers\":{{", record.phases.end)?;
    let values = fields.names.iter().zip(record.values.iter());
    for (n, (name, value)) in values.filter_map(|(n, v)| Some((n, v?))).enumerate() {
        let comma = if n == 0 { "" } else { "," };
        write!(out, "{comma}\"{name}\":\"")?;
        json_text(out, value);
        out.push(b'"');
    }
    out.push(b'}');
    Ok(())
}

/// The transaction that caused this one: `xid` under VCL, else `id`.
fn parent(record: &Record<'_>) -> String {
    match record.xid {
        0 => format!("{:x}", record.parent),
        _ => record.parent.to_string(),
    }
}

fn text(out: &mut Vec<u8>, name: &str, value: &[u8]) -> io::Result<()> {
    write!(out, ",\"{name}\":\"")?;
    json_text(out, value);
    out.push(b'"');
    Ok(())
}

/// The phases that the transaction has reached, in their order.
fn phases(record: &Record<'_>) -> Vec<(&'static str, u32)> {
    let p = &record.phases;
    let all = [
        ("read", p.read),
        ("policy", p.policy),
        ("wait", p.wait),
        ("fetch", p.fetch),
        ("head", p.head),
        ("reply", p.reply),
    ];
    let mut found: Vec<_> = all.into_iter().filter_map(|(name, us)| Some((name, us?))).collect();
    found.sort_by_key(|(_, us)| *us);
    found
}

/// Describes a phase.
fn about(phase: &str) -> &'static str {
    match phase {
        "read" => "request's head read",
        "policy" => "policy and cache lookup done",
        "wait" => "waiting for another request's fetch",
        "fetch" => "fetch started",
        "head" => "origin's head received",
        _ => "response ready",
    }
}

/// Appends all details of a transaction as several lines, as `varnishlog -g request` groups them.
pub fn detail(record: &Record<'_>, fields: &FieldPositions, out: &mut String) {
    // Writing to a String cannot fail.
    _ = write_detail(record, fields, out);
}

/// The method and URL of the request, or the text that could not be read.
fn request(record: &Record<'_>) -> String {
    let target = Printable(record.target);
    if record.flags.has(Flags::REFUSED) {
        let colon = if record.target.is_empty() { "" } else { ": " };
        return format!("could not be read{colon}{target}");
    }
    let scheme = if record.flags.has(Flags::TLS) { "https" } else { "http" };
    let (method, address) = (Printable(record.method), record.address());
    format!("{method} {scheme}://{}", Printable(&address))
}

fn write_detail(
    record: &Record<'_>,
    fields: &FieldPositions,
    out: &mut String,
) -> Result<(), std::fmt::Error> {
    let date = LogDate::new(record.start_unix_ms / 1000);
    let (served, status) = (record.served.word(), record.status);
    writeln!(out, "* {:x}  {}  {served} {status}", record.id, date.as_str())?;
    let mut line = |name: &str, value: String| writeln!(out, "-   {name:<10} {value}");
    line("request", request(record))?;
    let Record { head_out, body_out, .. } = record;
    let (name, who) = cause(record);
    line(name, who)?;
    for (name, value) in fields.names.iter().zip(record.values.iter()) {
        if let Some(value) = value {
            line("field", format!("{name}: {}", Printable(value)))?;
        }
    }
    if !record.site.is_empty() {
        line("site", site(record))?;
    }
    if record.xid != 0 {
        line("xid", format!("{}  session {}", record.xid, record.session))?;
    }
    for (name, text) in steps::steps(record.vcl).map(steps::VclTraceLine::line) {
        line(&name, text)?;
    }
    for (name, text) in heads::fields(record.heads()).map(heads::Field::line) {
        line(name, text)?;
    }
    if let Some(print) = record.fetch_evidence().and_then(|evidence| evidence.fingerprint) {
        line("print", format!("{:016x}", print.0))?;
    }
    line("cache", cache(record))?;
    if !record.origin.is_empty() {
        line("origin", origin(record))?;
    }
    if !record.class.is_empty() {
        let (class, crawler) = (Printable(record.class), Printable(record.crawler));
        let proof = Printable(record.proof_word());
        line("class", format!("{class} {crawler} {proof}").trim_end().to_owned())?;
    }
    for (name, value) in [("error", record.error), ("limit", record.limit)] {
        if !value.is_empty() {
            line(name, Printable(value).to_string())?;
        }
    }
    if record.dictionary != DictionaryUse::NotNamed {
        line("dictionary", record.dictionary.to_string())?;
    }
    let cut = if record.flags.has(Flags::CUT_OFF) { ", cut off" } else { "" };
    if record.is_client() {
        line("response", format!("{status}  {head_out} + {body_out} bytes{cut}"))?;
    } else {
        line("answer", format!("{status}  {body_out} bytes of body"))?;
    }
    let mut before = 0;
    for (name, us) in phases(record) {
        let us = u64::from(us);
        let (at, took) = (ms(us), ms(us.saturating_sub(before)));
        line("time", format!("{at:>12} ms  +{took:>11}  {}", about(name)))?;
        before = us;
    }
    let end = record.phases.end;
    let (at, took) = (ms(end), ms(end.saturating_sub(before)));
    let last = if record.is_client() { "sent" } else { "over" };
    line("time", format!("{at:>12} ms  +{took:>11}  {last}"))?;
    out.push('\n');
    Ok(())
}

/// The site of the transaction, with the rule and the route that decided.
fn site(record: &Record<'_>) -> String {
    let part = |name: &str, value: &[u8]| match value {
        b"" => String::new(),
        _ => format!("  {name}: {}", Printable(value)),
    };
    let (rule, route) = (part("rule", record.rule), part("route", record.route));
    format!("{}{rule}{route}", Printable(record.site))
}

/// The cause of the transaction: its client, or another transaction.
fn cause(record: &Record<'_>) -> (&'static str, String) {
    let Record { head_in, body_in, .. } = record;
    let protocol = version(record.version);
    match (record.is_client(), record.xid) {
        (true, _) => {
            ("client", format!("{}  {protocol}  {head_in} + {body_in} bytes", client(record)))
        }
        (_, xid) => {
            let which = if xid == 0 { "" } else { "with xid " };
            let what = match record.kind {
                Kind::Fragment => "which includes this fragment",
                Kind::Background | Kind::Warm | Kind::Client => "no client waited",
            };
            ("caused by", format!("request {which}{}, {what}", parent(record)))
        }
    }
}

fn cache(record: &Record<'_>) -> String {
    let mut text = record.served.word().to_owned();
    let mut add = |more: std::fmt::Arguments<'_>| {
        // Writing to a String cannot fail.
        _ = text.write_fmt(more);
    };
    if record.key != 0 {
        add(format_args!("  key {:016x}", record.key));
    }
    if let Some(age) = record.age_s {
        add(format_args!("  age {age} s"));
    }
    match record.ttl_s {
        Some(ttl @ 0..) => add(format_args!("  fresh for {ttl} s")),
        Some(ttl) => add(format_args!("  stale for {} s", ttl.unsigned_abs())),
        None => {}
    }
    if record.flags.has(Flags::STORED) {
        add(format_args!("  stored"));
    }
    if !record.not_stored.is_empty() {
        add(format_args!("  not stored: {}", Printable(record.not_stored)));
    }
    if !record.evidence.is_empty() {
        add(format_args!(" ({})", Printable(record.evidence)));
    }
    text
}

fn origin(record: &Record<'_>) -> String {
    let (origin, server) = (Printable(record.origin), Printable(record.server));
    if record.server.is_empty() {
        return format!("{origin}  no answer");
    }
    let status = match record.origin_status {
        0 => String::new(),
        status => format!("  status {status}"),
    };
    let how = if record.flags.has(Flags::REUSED) { "kept connection" } else { "new connection" };
    let tries = record.tries;
    let plural = if tries == 1 { "try" } else { "tries" };
    format!("{origin}  {server}{status}  {how}, {tries} {plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Phases, Served};

    const VALUES: [Option<&[u8]>; 3] = [Some(b"http://a/\""), Some(b"curl/8 \x1b[m"), None];

    fn fields() -> FieldPositions {
        FieldPositions::new(&["Referer", "user-agent", "X-Id"].map(str::to_owned))
    }

    fn record() -> Record<'static> {
        Record {
            id: 0x1_0000_0000_0007,
            start_unix_ms: 1_795_600_000_250,
            status: 200,
            version: 11,
            served: Served::Miss,
            client: Some([192, 0, 2, 1].into()),
            method: b"GET",
            host: b"example.com",
            target: b"/a\"b?c=1",
            site: b"example.com",
            rule: b"default",
            origin: b"app",
            server: b"http://127.0.0.1:8080",
            tries: 1,
            body_out: 5,
            key: 0xabc,
            age_s: Some(0),
            ttl_s: Some(-3),
            not_stored: b"no-store",
            evidence: b"Cache-Control: no-store",
            dictionary: DictionaryUse::Unknown,
            vcl: b"VCL_Log \x1b[m\nrecv a.vcl:3 pass",
            xid: 32_771,
            session: 32_770,
            phases: Phases {
                read: Some(10),
                policy: Some(20),
                fetch: Some(30),
                head: Some(1_500),
                reply: Some(1_600),
                end: 2_001,
                ..Phases::default()
            },
            ..Record::default()
        }
        .with_derived_flags()
    }

    fn shown(record: &Record<'_>, show: impl Fn(&Record<'_>, &mut Vec<u8>)) -> String {
        let (mut bytes, mut out) = (Vec::new(), Vec::new());
        record.write(VALUES, &mut bytes);
        let (record, _) = Record::read(&bytes).expect("a record");
        show(&record, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn combined_is_what_nginx_writes() {
        let line = shown(&record(), |r, out| combined(r, &fields(), out));
        assert_eq!(
            line,
            "192.0.2.1 - - [25/Nov/2026:09:46:40 +0000] \"GET /a\\x22b?c=1 HTTP/1.1\" 200 5 \
             \"http://a/\\x22\" \"curl/8 \\x1B[m\"\n"
        );
        let refused =
            Record { client: None, flags: Flags::REFUSED, status: 400, ..Record::default() };
        let mut out = Vec::new();
        combined(&refused, &FieldPositions::default(), &mut out);
        let line = String::from_utf8(out).expect("text");
        assert_eq!(line, "unix: - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
    }

    #[test]
    fn json_says_what_is_there() {
        let read = |full| -> serde_json::Value {
            let line = shown(&record(), |r, out| json(r, &fields(), full, out));
            assert!(line.ends_with("}\n"));
            serde_json::from_str(&line).expect("JSON")
        };
        let brief = read(false);
        assert_eq!(brief["time"], 1_795_600_000.25);
        assert_eq!((&brief["ms"], &brief["ttfb_ms"]), (&2.001.into(), &1.6.into()));
        assert_eq!((&brief["cache"], &brief["agent"]), (&"MISS".into(), &"curl/8 \x1b[m".into()));
        assert_eq!((brief.get("error"), brief.get("vcl")), (None, None));
        assert_eq!(brief["vcl_log"], serde_json::json!(["\x1b[m"]));
        let full = read(true);
        assert_eq!(full["phases_us"]["head"], 1500);
        assert_eq!(full["phases_us"].get("wait"), None);
        assert_eq!(full["headers"]["Referer"], "http://a/\"");
        assert_eq!((&full["xid"], &full["session"]), (&32_771.into(), &32_770.into()));
        assert_eq!(
            (&full["vcl"][1]["return"], &full["vcl"][1]["at"]),
            (&"pass".into(), &"a.vcl:3".into())
        );
        assert_eq!((&full["ttl"], &full["tls"]), (&(-3).into(), &false.into()));
        assert_eq!(full["dictionary"], "unknown");
    }

    #[test]
    fn detail_has_a_line_for_each_thing_and_times_in_order() {
        let text = shown(&record(), |r, out| {
            let mut text = String::new();
            detail(r, &fields(), &mut text);
            out.extend_from_slice(text.as_bytes());
        });
        for line in [
            "* 1000000000007  25/Nov/2026:09:46:40 +0000  MISS 200\n",
            "-   request    GET http://example.com/a\"b?c=1\n",
            "-   field      user-agent: curl/8 \\x1B[m\n",
            "-   xid        32771  session 32770\n\
             -   VCL_Log    \\x1B[m\n-   vcl        recv  a.vcl:3  pass\n",
            "-   cache      MISS  key 0000000000000abc  age 0 s  stale for 3 s  \
             not stored: no-store (Cache-Control: no-store)\n",
            "-   origin     app  http://127.0.0.1:8080  new connection, 1 try\n",
            "-   dictionary unknown: No stored response is known by this hash.\n",
            "-   time              1.500 ms  +      1.470  origin's head received\n",
            "-   time              2.001 ms  +      0.401  sent\n",
        ] {
            assert!(text.contains(line), "no {line:?} in\n{text}");
        }
    }
}
