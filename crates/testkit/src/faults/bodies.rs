//! Bodies that end too early, stall, or violate the chunked coding.

use super::case::{FaultCase, FaultExpectation, case, chunked, head, kept, sized};
use crate::origin::Script;

use FaultExpectation::Incomplete;

/// Time after which earlier bytes have been read and delivered.
const PASSED_ON_MS: u64 = 30;

/// Larger than all socket buffers and windows on the way.
const LARGE: usize = 6 << 20;

pub(super) fn cases() -> Vec<FaultCase> {
    let mut cases = short_lengths();
    cases.extend(cut_chunks());
    cases.extend(bad_chunks());
    cases.extend(unsaid_length());
    cases
}

/// Bodies shorter than `Content-Length`.
fn short_lengths() -> Vec<FaultCase> {
    let part = sized(100) + &"x".repeat(50);
    let one_short = sized(50) + &"x".repeat(49);
    let error = "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nfour";
    let zipped = head("Content-Encoding: gzip\r\nContent-Length: 40\r\n") + "\x1f";
    let half_large = sized(LARGE) + &"x".repeat(LARGE / 2);
    let old = sized(9).replacen("HTTP/1.1", "HTTP/1.0", 1) + "four";
    vec![
        case("short-close", Incomplete, Script::respond(&*part).close()),
        case("short-reset", Incomplete, Script::respond(&*part).delay_ms(PASSED_ON_MS).reset()),
        case("short-reset-at-once", Incomplete, Script::respond(&*part).reset()),
        case("short-stall", Incomplete, Script::respond(&*part).hang()),
        case("short-by-one", Incomplete, Script::respond(one_short).close()),
        case("no-body-close", Incomplete, Script::respond(sized(100)).close()),
        case("no-body-late-close", Incomplete, {
            Script::respond(sized(100)).delay_ms(PASSED_ON_MS).close()
        }),
        case("no-body-reset", Incomplete, Script::respond(sized(9)).delay_ms(PASSED_ON_MS).reset()),
        case("short-half-close", Incomplete, {
            Script::respond(&*part).then(crate::origin::Action::FinishSending).hang()
        }),
        case("short-trickle", Incomplete, {
            Script::respond(sized(100)).trickle("x".repeat(40), 1).reset()
        }),
        case("short-large", Incomplete, Script::respond(&*half_large).close()),
        case("short-large-reset", Incomplete, {
            Script::respond(half_large).delay_ms(PASSED_ON_MS).reset()
        }),
        case("short-error-page", Incomplete, Script::respond(error).close()),
        case("short-gzip", Incomplete, Script::respond(zipped).close()),
        case("short-http-1.0", Incomplete, Script::respond(old).close()),
        kept("body-byte-by-byte", "slow body", Script::respond(sized(9)).trickle("slow body", 1)),
    ]
}

/// Chunked bodies cut at every kind of position.
fn cut_chunks() -> Vec<FaultCase> {
    let places = [
        ("before-size", ""),
        ("within-size", "1"),
        ("after-size", "5\r\n"),
        ("within-data", "5\r\nhel"),
        ("before-data-end", "5\r\nhello"),
        ("within-data-end", "5\r\nhello\r"),
        ("before-last", "5\r\nhello\r\n"),
        ("within-last", "5\r\nhello\r\n0"),
        ("before-trailers", "5\r\nhello\r\n0\r\n"),
        ("within-trailers", "5\r\nhello\r\n0\r\nX-Sum: 1\r\n"),
        ("within-final-line", "5\r\nhello\r\n0\r\n\r"),
    ];
    let mut cases = Vec::new();
    for (place, bytes) in places {
        let sent = Script::respond(chunked() + bytes);
        cases.push(case(format!("chunks-close-{place}"), Incomplete, sent.clone().close()));
        let later = sent.delay_ms(PASSED_ON_MS).reset();
        cases.push(case(format!("chunks-reset-{place}"), Incomplete, later));
    }
    let stalled = Script::respond(chunked() + "5\r\nhello\r\n").hang();
    cases.push(case("chunks-stall", Incomplete, stalled));
    cases
}

/// Chunks that violate RFC 9112 7.1.
fn bad_chunks() -> Vec<FaultCase> {
    let bodies = [
        ("size-letters", "xyz\r\nhello\r\n0\r\n\r\n"),
        ("size-prefixed", "0x5\r\nhello\r\n0\r\n\r\n"),
        ("size-negative", "-5\r\nhello\r\n0\r\n\r\n"),
        ("size-plus", "+5\r\nhello\r\n0\r\n\r\n"),
        ("size-underscore", "0_5\r\nhello\r\n0\r\n\r\n"),
        ("size-empty", "\r\nhello\r\n0\r\n\r\n"),
        ("size-overflow", "10000000000000005\r\nhello\r\n0\r\n\r\n"),
        ("size-bare-lf", "5\nhello\r\n0\r\n\r\n"),
        ("size-bare-cr", "5\rhello\r\n0\r\n\r\n"),
        ("data-too-long", "5\r\nhello!\r\n0\r\n\r\n"),
        ("data-end-bare-lf", "5\r\nhello\n0\r\n\r\n"),
        ("data-end-missing", "5\r\nhello0\r\n\r\n"),
        ("trailer-no-field", "5\r\nhello\r\n0\r\nnonsense\r\n\r\n"),
        ("trailer-nul", "5\r\nhello\r\n0\r\nX: \0\r\n\r\n"),
        ("extension-nul", "5;a=\0\r\nhello\r\n0\r\n\r\n"),
    ];
    let mut cases: Vec<FaultCase> = bodies
        .iter()
        .map(|(name, body)| {
            case(format!("chunk-{name}"), Incomplete, Script::respond(chunked() + body).hang())
        })
        .collect();
    let late = Script::respond(chunked() + "5\r\nhello\r\n").delay_ms(PASSED_ON_MS).send("zz\r\n");
    cases.push(case("chunk-bad-later", Incomplete, late.hang()));
    let endless_extension = Script::respond(chunked() + "5;").repeat("x".repeat(1_000), 5_000);
    cases.push(case("chunk-extension-endless", Incomplete, endless_extension.close()));
    let endless_trailers = Script::respond(chunked() + "0\r\n").repeat("X-T: 1\r\n", 100_000);
    cases.push(case("chunk-trailers-endless", Incomplete, endless_trailers.close()));
    cases
}

/// Bodies that end with the connection. They are whole only after an orderly close, and must not be
/// stored: a cut body would look alike (RFC 9112 8).
fn unsaid_length() -> Vec<FaultCase> {
    let said = head("Connection: close\r\n") + "until the end";
    let old = head("").replacen("HTTP/1.1", "HTTP/1.0", 1) + "until the end";
    let whole = FaultExpectation::Whole(200, "until the end");
    vec![
        case("unsaid-reset", Incomplete, Script::respond(&*said).delay_ms(PASSED_ON_MS).reset()),
        case("unsaid-stall", Incomplete, Script::respond(&*said).hang()),
        case("unsaid-close", whole, Script::respond(said).delay_ms(PASSED_ON_MS).close()),
        case("unsaid-http-1.0", whole, Script::respond(old).close()),
    ]
}
