//! VSL: a transaction as records of Varnish's log (vsl(7)), in their order. Tags about Varnish's
//! internals are missing.

use std::borrow::Cow;

use crate::heads::{self, HeadSide};
use crate::record::Record;
use crate::steps::{self, VclTraceLine};
use crate::view::TransactionView;

/// A record of Varnish's log: tag and text.
pub type VslLine<'a> = (&'static str, Cow<'a, [u8]>);

/// Tags of a head: the parts of its first line, and its fields.
struct HeadTags {
    side: HeadSide,
    first: [&'static str; 3],
    field: &'static str,
}

const REQ: HeadTags = HeadTags {
    side: HeadSide::Req,
    first: ["ReqMethod", "ReqURL", "ReqProtocol"],
    field: "ReqHeader",
};
const RESP: HeadTags = HeadTags {
    side: HeadSide::Resp,
    first: ["RespProtocol", "RespStatus", "RespReason"],
    field: "RespHeader",
};
const BEREQ: HeadTags = HeadTags {
    side: HeadSide::Bereq,
    first: ["BereqMethod", "BereqURL", "BereqProtocol"],
    field: "BereqHeader",
};
const BERESP: HeadTags = HeadTags {
    side: HeadSide::Beresp,
    first: ["BerespProtocol", "BerespStatus", "BerespReason"],
    field: "BerespHeader",
};

/// Returns the records of a transaction, from the client's or the backend's view.
pub fn lines<'a>(record: &Record<'a>, view: TransactionView) -> Vec<VslLine<'a>> {
    let mut lines = Vec::new();
    match view {
        TransactionView::Client => client(record, &mut lines),
        TransactionView::Backend => backend(record, &mut lines),
    }
    lines
}

/// Returns the first record of `tag` whose text begins with `prefix` and a colon, if a prefix is
/// given; or only its field number `field`, counted from 1 (varnishncsa's
/// `%{VSL:tag:prefix[field]}x`).
pub fn find<'a>(
    lines: &[VslLine<'a>],
    tag: &str,
    prefix: Option<&[u8]>,
    field: Option<usize>,
) -> Option<Vec<u8>> {
    let of_tag = lines.iter().filter(|(own, _)| own.eq_ignore_ascii_case(tag));
    let mut texts = of_tag.filter_map(|(_, text)| match prefix {
        None => Some(&text[..]),
        Some(prefix) => {
            let (own, rest) = text.split_at_checked(prefix.len())?;
            let rest = rest.strip_prefix(b":")?;
            own.eq_ignore_ascii_case(prefix).then(|| rest.trim_ascii())
        }
    });
    let text = texts.next()?;
    match field {
        None => Some(text.to_vec()),
        Some(number) => {
            let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.nth(number.checked_sub(1)?).map(<[u8]>::to_vec)
        }
    }
}

/// Tags that Larder's transactions have.
pub const TAGS: &[&str] = &[
    "Begin",
    "ReqStart",
    "Timestamp",
    "ReqMethod",
    "ReqURL",
    "ReqProtocol",
    "ReqHeader",
    "VCL_call",
    "VCL_return",
    "VCL_Log",
    "VCL_Error",
    "VCL_acl",
    "VCL_trace",
    "FetchError",
    "ESI_xmlerror",
    "Debug",
    "RespProtocol",
    "RespStatus",
    "RespReason",
    "RespHeader",
    "ReqAcct",
    "BereqMethod",
    "BereqURL",
    "BereqProtocol",
    "BereqHeader",
    "BackendOpen",
    "BerespProtocol",
    "BerespStatus",
    "BerespReason",
    "BerespHeader",
    "End",
];

/// Tags of Varnish's log that Larder does not have.
pub const OTHERS: &[&str] = &[
    "Backend_health",
    "BackendClose",
    "BackendReuse",
    "BackendStart",
    "BereqAcct",
    "BereqLost",
    "BereqUnset",
    "BerespLost",
    "BerespUnset",
    "BogoHeader",
    "CLI",
    "Error",
    "ExpBan",
    "ExpKill",
    "Fetch_Body",
    "Filters",
    "Gzip",
    "H2RxBody",
    "H2RxHdr",
    "H2TxBody",
    "H2TxHdr",
    "Hash",
    "Hit",
    "HitMiss",
    "HitPass",
    "HttpGarbage",
    "Length",
    "Link",
    "LostHeader",
    "Notice",
    "ObjHeader",
    "ObjProtocol",
    "ObjReason",
    "ObjStatus",
    "PipeAcct",
    "Proxy",
    "ProxyGarbage",
    "ReqLost",
    "ReqUnset",
    "RespLost",
    "RespUnset",
    "SessClose",
    "SessError",
    "SessOpen",
    "Storage",
    "TTL",
    "VCL_use",
    "VSL",
    "VdpAcct",
    "VfpAcct",
    "Witness",
    "WorkThread",
];

/// The head that a tag belongs to; `None` for tags of no head.
pub fn side(tag: &str) -> Option<HeadSide> {
    let heads = [&REQ, &RESP, &BEREQ, &BERESP];
    let is = |own: &str| own.eq_ignore_ascii_case(tag);
    let of = |head: &&&HeadTags| is(head.field) || head.first.iter().any(|own| is(own));
    heads.iter().find(of).map(|head| head.side)
}

fn client<'a>(record: &Record<'a>, lines: &mut Vec<VslLine<'a>>) {
    lines.push(("Begin", own(format!("req {} rxreq", record.session))));
    moment(lines, record, "Start", 0);
    moment(lines, record, "Req", 0);
    if let Some(client) = record.client {
        lines.push(("ReqStart", own(format!("{client} 0 a0"))));
    }
    request(record, &REQ, lines);
    steps_of(record, lines, |sub| !sub.starts_with(b"backend_"));
    response(record, &RESP, record.status, lines);
    moment(lines, record, "Resp", record.phases.end);
    let (head_in, head_out) = (u64::from(record.head_in), u64::from(record.head_out));
    let acct = [
        head_in,
        record.body_in,
        head_in + record.body_in,
        head_out,
        record.body_out,
        head_out + record.body_out,
    ];
    let acct: Vec<String> = acct.iter().map(u64::to_string).collect();
    lines.push(("ReqAcct", own(acct.join(" "))));
    lines.push(("End", b""[..].into()));
}

fn backend<'a>(record: &Record<'a>, lines: &mut Vec<VslLine<'a>>) {
    let (sent, head) = (record.phases.fetch.map(u64::from), record.phases.head.map(u64::from));
    lines.push(("Begin", own(format!("bereq {} fetch", record.xid))));
    moment(lines, record, "Start", sent.unwrap_or_default());
    request(record, &BEREQ, lines);
    steps_of(record, lines, |sub| sub.starts_with(b"backend_"));
    if !record.server.is_empty() {
        lines.push(("BackendOpen", record.server.into()));
    }
    if let Some(head) = head {
        moment(lines, record, "Beresp", head);
    }
    response(record, &BERESP, record.origin_status, lines);
    moment(lines, record, "BerespBody", record.phases.end);
    lines.push(("End", b""[..].into()));
}

/// Appends `Timestamp label: absolute, since the start, since the last timestamp`.
fn moment(lines: &mut Vec<VslLine<'_>>, record: &Record<'_>, label: &str, at_us: u64) {
    let unix_us = record.start_unix_ms * 1000 + at_us;
    let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let text = format!("{label}: {} {} {}", seconds(unix_us), seconds(at_us), seconds(at_us));
    lines.push(("Timestamp", own(text)));
}

fn request<'a>(record: &Record<'a>, tags: &HeadTags, lines: &mut Vec<VslLine<'a>>) {
    let [method, url, protocol] = tags.first;
    let line = first_line(record, tags.side);
    let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
    let mut word = |or: &'a [u8]| words.next().filter(|_| line.is_some()).unwrap_or(or);
    lines.push((method, word(record.method).into()));
    lines.push((url, word(record.target).into()));
    lines.push((protocol, word(crate::format::version(record.version).as_bytes()).into()));
    fields(record, tags, lines);
}

fn response<'a>(record: &Record<'a>, tags: &HeadTags, status: u16, lines: &mut Vec<VslLine<'a>>) {
    let [protocol, code, reason] = tags.first;
    lines.push((protocol, b"HTTP/1.1"[..].into()));
    lines.push((code, own(status.to_string())));
    let line = first_line(record, tags.side).unwrap_or_default();
    if let Some(at) = memchr::memchr(b' ', line) {
        lines.push((reason, line[at + 1..].into()));
    }
    fields(record, tags, lines);
}

fn first_line<'a>(record: &Record<'a>, side: HeadSide) -> Option<&'a [u8]> {
    let mut own = heads::fields(record.heads()).filter(|field| field.side == side);
    own.find(|field| field.name.is_empty()).map(|field| field.value)
}

fn fields<'a>(record: &Record<'a>, tags: &HeadTags, lines: &mut Vec<VslLine<'a>>) {
    let own = heads::fields(record.heads()).filter(|field| field.side == tags.side);
    for field in own.filter(|field| !field.name.is_empty()) {
        lines.push((tags.field, [field.name, b": ", field.value].concat().into()));
    }
}

/// Appends the trace of those subroutines that `is` selects.
fn steps_of<'a>(record: &Record<'a>, lines: &mut Vec<VslLine<'a>>, is: impl Fn(&[u8]) -> bool) {
    // A subroutine's log lines come before it.
    let mut logged = Vec::new();
    for step in steps::steps(record.vcl) {
        match step {
            VclTraceLine::Logged { tag, text } => {
                let known = TAGS.iter().find(|own| own.as_bytes() == tag);
                logged.extend(known.map(|tag| (*tag, Cow::Borrowed(text))));
            }
            VclTraceLine::Ran { sub, verb, .. } => {
                let logged = std::mem::take(&mut logged);
                if is(sub) {
                    lines.push(("VCL_call", sub.to_ascii_uppercase().into()));
                    lines.extend(logged);
                    lines.push(("VCL_return", verb.into()));
                }
            }
        }
    }
    lines.extend(logged);
}

fn own<'a>(text: String) -> Cow<'a, [u8]> {
    text.into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_found_by_tag_prefix_and_word() {
        let lines: Vec<VslLine<'_>> = vec![
            ("VCL_Log", b"a: one two"[..].into()),
            ("VCL_Log", b"b:three"[..].into()),
            ("Timestamp", b"Resp: 5.0 1.5 0.5"[..].into()),
        ];
        let of = |tag, prefix: Option<&str>, field| {
            let found = find(&lines, tag, prefix.map(str::as_bytes), field)?;
            Some(String::from_utf8_lossy(&found).into_owned())
        };
        for (tag, prefix, field, wanted) in [
            ("VCL_Log", None, None, Some("a: one two")),
            ("vcl_log", Some("B"), None, Some("three")),
            ("VCL_Log", Some("a"), Some(2), Some("two")),
            ("Timestamp", Some("Resp"), Some(2), Some("1.5")),
            ("Timestamp", Some("Resp"), Some(9), None),
            ("Timestamp", Some("Re"), None, None),
            ("Hit", None, None, None),
        ] {
            assert_eq!(of(tag, prefix, field).as_deref(), wanted, "{tag} {prefix:?} {field:?}");
        }
    }
}
