//! Heads: missing, incomplete, not HTTP/1.1, too large, or with contradictory framing.

use super::case::{FaultCase, FaultExpectation, case, chunked, head, kept, sized};
use crate::origin::Script;

const BAD_GATEWAY: FaultExpectation = FaultExpectation::Error(502);
const TIMEOUT: FaultExpectation = FaultExpectation::Error(504);

pub(super) fn cases() -> Vec<FaultCase> {
    let mut cases = absent();
    cases.extend(malformed());
    cases.extend(contradictory());
    cases.extend(too_large());
    cases.extend(interim());
    cases
}

/// The connection ends or stalls before a complete head.
fn absent() -> Vec<FaultCase> {
    let half = "HTTP/1.1 200 OK\r\nCache-Control: max-age=300\r\nContent-Le";
    vec![
        case("close-at-once", BAD_GATEWAY, Script::default().close()),
        case("reset-at-once", BAD_GATEWAY, Script::default().reset()),
        case(
            "close-after-status-line",
            BAD_GATEWAY,
            Script::respond("HTTP/1.1 200 OK\r\n").close(),
        ),
        case("close-within-status-line", BAD_GATEWAY, Script::respond("HTTP/1.1 2").close()),
        case("close-within-head", BAD_GATEWAY, Script::respond(half).close()),
        case("reset-within-head", BAD_GATEWAY, Script::respond(half).delay_ms(20).reset()),
        case("silence", TIMEOUT, Script::default().hang()),
        case("silence-within-head", TIMEOUT, Script::respond(half).hang()),
        kept("head-byte-by-byte", "slow", Script::default().trickle(sized(4), 1).send("slow")),
    ]
}

/// Bytes that are no response.
fn malformed() -> Vec<FaultCase> {
    let tail = "Cache-Control: max-age=300\r\nContent-Length: 2\r\n\r\nno";
    let heads: &[(&str, &[u8])] = &[
        ("garbage", b"\x01\x02\x03 nonsense\r\n\r\n"),
        ("http-0.9", b"<html>hello</html>\n"),
        ("tls-alert", b"\x15\x03\x01\x00\x02\x02\x28\x15\x03\x01\x00\x02\x02\x28\r\n\r\n"),
        ("ssh-banner", b"SSH-2.0-OpenSSH_9.2p1\r\n\r\n"),
        ("request-as-response", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        ("empty-lines", b"\r\n\r\n\r\n\r\n"),
    ];
    let lines = [
        ("version-2", "HTTP/2.0 200 OK"),
        ("version-12", "HTTP/1.12 200 OK"),
        ("version-lower-case", "http/1.1 200 OK"),
        ("status-two-digits", "HTTP/1.1 20 OK"),
        ("status-four-digits", "HTTP/1.1 2000 OK"),
        ("status-letters", "HTTP/1.1 2OO OK"),
        ("status-zero", "HTTP/1.1 000 OK"),
        ("status-glued", "HTTP/1.1 200OK"),
        ("control-in-reason", "HTTP/1.1 200 O\0K"),
    ];
    let fields = [
        ("nul-in-value", "X: a\0b"),
        ("bare-cr-in-value", "X: a\rContent-Length: 0"),
        ("field-without-colon", "nonsense"),
        ("field-without-name", ": nonsense"),
        ("name-no-token", "X(y): z"),
    ];
    let mut cases: Vec<FaultCase> = heads
        .iter()
        .map(|(name, bytes)| case(*name, BAD_GATEWAY, Script::respond(*bytes).close()))
        .collect();
    cases.extend(
        lines.map(|(name, line)| {
            case(name, BAD_GATEWAY, Script::respond(format!("{line}\r\n{tail}")))
        }),
    );
    cases.extend(fields.map(|(name, field)| {
        case(name, BAD_GATEWAY, Script::respond(format!("HTTP/1.1 200 OK\r\n{field}\r\n{tail}")))
    }));
    cases
}

/// Contradictory lengths and codings (RFC 9112 6.3).
fn contradictory() -> Vec<FaultCase> {
    let with_body = "5\r\nhello\r\n0\r\n\r\n";
    let fields = [
        ("length-and-coding", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        ("coding-and-length", "Transfer-Encoding: chunked\r\nContent-Length: 15\r\n"),
        ("two-lengths", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        ("length-list", "Content-Length: 5, 6\r\n"),
        ("length-negative", "Content-Length: -5\r\n"),
        ("length-plus", "Content-Length: +5\r\n"),
        ("length-hex", "Content-Length: 0x5\r\n"),
        ("length-letters", "Content-Length: five\r\n"),
        ("length-empty", "Content-Length:\r\n"),
        ("length-fraction", "Content-Length: 5.0\r\n"),
        ("length-spaced", "Content-Length: 1 5\r\n"),
        ("length-overflow", "Content-Length: 18446744073709551621\r\n"),
        ("coding-unknown", "Transfer-Encoding: rot13\r\n"),
        ("coding-identity", "Transfer-Encoding: identity\r\n"),
        ("coding-gzip-only", "Transfer-Encoding: gzip\r\n"),
        ("coding-twice-chunked", "Transfer-Encoding: chunked, chunked\r\n"),
        ("coding-chunked-first", "Transfer-Encoding: chunked, gzip\r\n"),
        ("coding-lookalike", "Transfer-Encoding: xchunked\r\n"),
        ("coding-two-lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
    ];
    let mut cases: Vec<FaultCase> = fields
        .iter()
        .map(|(name, fields)| {
            case(*name, BAD_GATEWAY, Script::respond(head(fields) + with_body).close())
        })
        .collect();
    let old = chunked().replacen("HTTP/1.1", "HTTP/1.0", 1) + with_body;
    cases.push(case("coding-in-http-1.0", BAD_GATEWAY, Script::respond(old).close()));
    cases
}

/// Heads beyond `header_bytes` and `header_count`.
fn too_large() -> Vec<FaultCase> {
    let field = |size: usize| format!("X-Large: {}\r\n", "x".repeat(size));
    let large = head(&(field(40 * 1024) + "Content-Length: 0\r\n"));
    let many = head(&(field(1).repeat(5_000) + "Content-Length: 0\r\n"));
    let endless = Script::respond("HTTP/1.1 200 OK\r\n").repeat(field(1_000), 20_000).close();
    vec![
        case("head-too-large", BAD_GATEWAY, Script::respond(large)),
        case("too-many-fields", BAD_GATEWAY, Script::respond(many)),
        case("head-without-end", BAD_GATEWAY, endless),
    ]
}

/// Interim responses: few are valid, floods and unrequested upgrades are not.
fn interim() -> Vec<FaultCase> {
    let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    let carry_on = "HTTP/1.1 100 Continue\r\n\r\n";
    let switch = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nx";
    vec![
        case("flood-of-100", BAD_GATEWAY, Script::default().repeat(carry_on, 20_000).close()),
        case("flood-of-103", BAD_GATEWAY, Script::default().repeat(hint, 20_000).close()),
        case("interim-then-close", BAD_GATEWAY, Script::respond(hint).close()),
        case("interim-then-silence", TIMEOUT, Script::respond(hint).hang()),
        case("switch-unasked", BAD_GATEWAY, Script::respond(switch).hang()),
        kept("one-hint", "body", Script::respond(hint).delay_ms(5).send(sized(4) + "body")),
    ]
}
