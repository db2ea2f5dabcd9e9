//! Whole answers with something behind them: never another response, never on a connection used
//! again (RFC 9112 6.3 and 9.2).

use super::{Expected, FaultCase, case, chunked, kept, sized};
use crate::origin::Script;

/// What must never reach any client.
pub const POISON: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\
                          Cache-Control: max-age=300\r\n\r\npoison";

/// Long enough for the exchange before it to have ended and its connection to lie idle.
const IDLE_MS: u64 = 30;

pub(super) fn cases() -> Vec<FaultCase> {
    let body = sized(4) + "body";
    let chunks = chunked() + "4\r\nbody\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 204 No Content\r\nCache-Control: max-age=300\r\n\r\n";
    let closing = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{}", &body[17..]);
    let head = FaultCase {
        method: "HEAD",
        ..case("surplus-after-head-request", Expected::Whole(200, ""), Script::respond(&*body))
    };
    let no_content = FaultCase {
        stored: true,
        ..case(
            "surplus-after-204",
            Expected::Whole(204, ""),
            Script::respond(empty.to_owned() + POISON),
        )
    };
    vec![
        kept("surplus-bytes", "body", Script::respond(body.clone() + "surplus")),
        kept("surplus-response", "body", Script::respond(body.clone() + POISON)),
        kept("surplus-then-close", "body", Script::respond(body.clone() + POISON).close()),
        kept("surplus-while-idle", "body", Script::respond(&*body).delay_ms(IDLE_MS).send(POISON)),
        kept("surplus-after-chunks", "body", Script::respond(chunks.clone() + POISON)),
        kept("surplus-after-chunks-while-idle", "body", {
            Script::respond(chunks).delay_ms(IDLE_MS).send(POISON)
        }),
        kept("surplus-after-empty-body", "", Script::respond(sized(0) + POISON)),
        kept("surplus-after-close-option", "body", Script::respond(closing + POISON).close()),
        kept("close-while-idle", "body", Script::respond(&*body).delay_ms(IDLE_MS).close()),
        kept("reset-while-idle", "body", Script::respond(body).delay_ms(IDLE_MS).reset()),
        head,
        no_content,
    ]
}
