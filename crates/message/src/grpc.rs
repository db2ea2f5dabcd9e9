//! gRPC over HTTP/2: the parts of its requests and of its failures that an intermediary must know
//! (gRPC's `PROTOCOL-HTTP2` and `http-grpc-status-mapping`).

use base::Limit;

use crate::header::{HeaderBlock, HeaderId};
use crate::request::{Method, Request};
use crate::response::Status;

/// The field with a call's deadline.
pub const TIMEOUT: &[u8] = b"grpc-timeout";

/// A status code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GrpcStatus {
    /// UNKNOWN
    Unknown = 2,
    /// DEADLINE_EXCEEDED
    DeadlineExceeded = 4,
    /// PERMISSION_DENIED
    PermissionDenied = 7,
    /// RESOURCE_EXHAUSTED
    ResourceExhausted = 8,
    /// UNIMPLEMENTED
    Unimplemented = 12,
    /// INTERNAL
    Internal = 13,
    /// UNAVAILABLE: the call may be tried again.
    Unavailable = 14,
    /// UNAUTHENTICATED
    Unauthenticated = 16,
}

impl GrpcStatus {
    /// The status for a failure that HTTP would report by `status`, because of `limit` if a limit
    /// was reached. Failures of clients follow gRPC's mapping; those of limits and deadlines, which
    /// it does not distinguish, have statuses of their own.
    pub fn of_failure(status: Status, limit: Option<Limit>) -> Self {
        match (status.code(), limit) {
            (504, Some(Limit::ConnectTimeout)) => Self::Unavailable,
            (408 | 504, _) => Self::DeadlineExceeded,
            (413 | 429 | 431, _) => Self::ResourceExhausted,
            (502 | 503, _) => Self::Unavailable,
            (400 | 500, _) => Self::Internal,
            (401, _) => Self::Unauthenticated,
            (403, _) => Self::PermissionDenied,
            (404 | 405 | 421 | 501, _) => Self::Unimplemented,
            _ => Self::Unknown,
        }
    }
}

/// Returns true if `request` is a call of gRPC: a POST whose Content-Type is `application/grpc`,
/// perhaps with the coding of its messages. gRPC-Web is not: its responses end in their bodies.
pub fn is_call(request: &Request) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let has_type = |value: &[u8]| {
        value.split_at_checked(TYPE.len()).is_some_and(|(name, rest)| {
            name.eq_ignore_ascii_case(TYPE) && matches!(rest, [] | [b'+' | b';', ..])
        })
    };
    request.method == Method::Post
        && request.headers.value(HeaderId::ContentType).is_some_and(has_type)
}

/// The time that `request` may take as a call, in milliseconds, rounded up; `None` for
/// another request, or without a valid `grpc-timeout` (`1*8DIGIT` and a unit: H, M, S, m, u or n).
pub fn timeout_ms(request: &Request) -> Option<u64> {
    if !is_call(request) {
        return None;
    }
    read_timeout_ms(&request.headers)
}

fn read_timeout_ms(headers: &HeaderBlock) -> Option<u64> {
    let (unit, digits) = headers.value_named(TIMEOUT)?.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(match unit {
        b'H' => number * 3_600_000,
        b'M' => number * 60_000,
        b'S' => number * 1_000,
        b'm' => number,
        b'u' => number.div_ceil(1_000),
        b'n' => number.div_ceil(1_000_000),
        _ => return None,
    })
}

/// Writes `text` as the value of `grpc-message`: visible ASCII except `%`, and spaces, as they are,
/// every other byte escaped.
pub fn write_message(text: &str, out: &mut Vec<u8>) {
    for byte in text.bytes() {
        match byte {
            b'%' | 0..=0x1f | 0x7f..=0xff => {
                out.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(name: &str, value: &str) -> HeaderBlock {
        let mut headers = HeaderBlock::new();
        headers.push_named(name.as_bytes(), value.as_bytes());
        headers
    }

    #[test]
    fn a_call_is_known_by_its_type() {
        for (value, is) in [
            ("application/grpc", true),
            ("Application/gRPC+proto", true),
            ("application/grpc; charset=x", true),
            ("application/grpc-web", false),
            ("application/grpc-web+proto", false),
            ("application/grp", false),
            ("text/html", false),
            ("", false),
        ] {
            let mut request = Request::new();
            request.headers = with("Content-Type", value);
            request.headers.push_named(TIMEOUT, b"2S");
            assert!(!is_call(&request), "a GET");
            assert_eq!(timeout_ms(&request), None);
            request.method = Method::Post;
            assert_eq!(is_call(&request), is, "{value}");
            assert_eq!(timeout_ms(&request), is.then_some(2_000));
        }
        assert!(!is_call(&Request::new()));
    }

    #[test]
    fn deadlines_have_up_to_eight_digits_and_a_unit() {
        for (value, ms) in [
            ("1H", Some(3_600_000)),
            ("2M", Some(120_000)),
            ("3S", Some(3_000)),
            ("40m", Some(40)),
            ("1500u", Some(2)),
            ("1n", Some(1)),
            ("0n", Some(0)),
            ("99999999H", Some(99_999_999 * 3_600_000)),
            ("123456789S", None),
            ("S", None),
            ("1", None),
            ("1s", None),
            ("-1S", None),
            ("1.5S", None),
            ("", None),
        ] {
            assert_eq!(read_timeout_ms(&with("grpc-timeout", value)), ms, "{value}");
        }
    }

    #[test]
    fn failures_have_the_status_that_clients_act_on() {
        let of =
            |code, limit| GrpcStatus::of_failure(Status::new(code).expect("a status"), limit) as u8;
        assert_eq!([502, 503, 504].map(|code| of(code, None)), [14, 14, 4]);
        assert_eq!(of(504, Some(Limit::ConnectTimeout)), 14);
        assert_eq!([429, 413, 431].map(|code| of(code, None)), [8; 3]);
        assert_eq!([401, 403, 404, 421, 418].map(|code| of(code, None)), [16, 7, 12, 12, 2]);
    }

    proptest! {
        #[test]
        fn messages_are_visible_and_come_back(text: String) {
            let mut out = Vec::new();
            write_message(&text, &mut out);
            prop_assert!(out.iter().all(|b| matches!(b, b' '..=b'~')));
            let mut back = Vec::new();
            let mut rest = &out[..];
            while let Some((first, after)) = rest.split_first() {
                rest = after;
                match first {
                    b'%' => {
                        let hex = std::str::from_utf8(&after[..2]).expect("two digits");
                        back.push(u8::from_str_radix(hex, 16).expect("hexadecimal"));
                        rest = &after[2..];
                    }
                    plain => back.push(*plain),
                }
            }
            prop_assert_eq!(back, text.into_bytes());
        }
    }
}
