//! Surplus bytes after whole responses. They must never become another response, and the connection
//! must not be reused (RFC 9112 6.3 and 9.2).

use super::case::{FaultCase, FaultExpectation, case, chunked, head, kept, sized};
use crate::origin::Script;

/// A response that no client may ever get.
pub const POISON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\
                          Cache-Control: max-age=300\r\n\r\npoison";

/// Time after which the exchange has ended and its connection is idle.
const IDLE_MS: u64 = 30;

pub(super) fn cases() -> Vec<FaultCase> {
    let body = sized(4) + "body";
    let chunks = chunked() + "4\r\nbody\r\n0\r\n\r\n";
    let closing = head("Connection: close\r\nContent-Length: 4\r\n") + "body";
    let empty = "HTTP/1.1 204 No Content\r\nCache-Control: max-age=300\r\n\r\n".to_owned();
    let no_content = FaultExpectation::Whole(204, "");
    let mut cases = vec![
        kept("surplus-bytes", "body", Script::respond(body.clone() + "surplus")),
        kept("surplus-response", "body", Script::respond(body.clone() + POISON)),
        kept("surplus-then-close", "body", Script::respond(body.clone() + POISON).close()),
        kept("surplus-after-chunks", "body", Script::respond(chunks.clone() + POISON)),
        kept("surplus-after-empty-body", "", Script::respond(sized(0) + POISON)),
        kept("surplus-after-close-option", "body", Script::respond(closing + POISON).close()),
        FaultCase {
            stored: true,
            ..case("surplus-after-204", no_content, Script::respond(empty + POISON))
        },
    ];
    let idle = |sent: &str| Script::respond(sent).delay_ms(IDLE_MS);
    let later = [
        kept("surplus-while-idle", "body", idle(&body).send(POISON)),
        kept("surplus-after-chunks-while-idle", "body", idle(&chunks).send(POISON)),
        kept("close-while-idle", "body", idle(&body).close()),
        kept("reset-while-idle", "body", idle(&body).reset()),
    ];
    cases.extend(later.map(|case| FaultCase { settle_ms: 3 * IDLE_MS, ..case }));
    cases
}
