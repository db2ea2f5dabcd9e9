//! The part of a response that a request's conditions and ranges select (RFC 9110 13.2.2 and 14.2),
//! whatever the response is from.

use bytes::Bytes;
use cache::Record;
use message::conditional::{self, Outcome};
use message::range::{self, RangePlan, Ranges};
use message::{HeaderId, Method, Request, Status};
use vcl::rules::ranges;

use crate::state::body::ReplyBody;
use crate::state::reply::Reply;

/// Fields that may make a reply another than the whole response.
pub(crate) const SELECTORS: [HeaderId; 3] =
    [HeaderId::IfNoneMatch, HeaderId::IfModifiedSince, HeaderId::Range];

/// Values that conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'a> {
    pub(crate) etag: Option<&'a [u8]>,
    /// Last-Modified, in unix seconds.
    pub(crate) modified: Option<u64>,
    /// The Last-Modified that the client sees, for If-Range.
    pub(crate) shown: Option<u64>,
    /// Date, in unix seconds.
    pub(crate) date: Option<u64>,
}

impl<'a> Validators<'a> {
    /// Those that a stored response is kept with.
    pub(crate) fn of(object: &'a Record) -> Self {
        let modified = object.last_modified();
        Self { etag: object.etag(), modified, shown: modified, date: object.date() }
    }
}

/// Rules of reading a Range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rules {
    /// RFC 9110 14.2: so many ranges at most, of a GET; a malformed field is ignored.
    Rfc(u64),
    /// As Varnish: one range, of a GET or HEAD; anything else is not satisfiable.
    Varnish,
    /// Ranges are ignored.
    Off,
}

impl Rules {
    fn reads(self, method: &Method) -> bool {
        match self {
            Self::Rfc(_) => *method == Method::Get,
            Self::Varnish => matches!(method, Method::Get | Method::Head),
            Self::Off => false,
        }
    }

    fn plan(self, wanted: &[u8], length: u64) -> RangePlan {
        match self {
            Self::Rfc(most) => range::plan(wanted, length, most as usize),
            Self::Varnish => ranges::one(wanted, length)
                .map_or(RangePlan::NotSatisfiable, |range| {
                    RangePlan::Ranges(Ranges::from_iter([range]))
                }),
            Self::Off => RangePlan::Whole,
        }
    }
}

/// Makes the reply a 304 if `request` says that the client has the response.
pub(crate) fn condition(request: &Request, validators: &Validators<'_>, reply: &mut Reply) {
    let Validators { etag, modified, date, .. } = *validators;
    let outcome = conditional::evaluate(request, etag, modified, date, reply.status);
    if outcome == Outcome::NotModified {
        reply.status = Status::NOT_MODIFIED;
        reply.body = ReplyBody::None;
    }
}

/// Narrows a 200 to the ranges that `request` asks for. `method` is the client's; `kind` returns
/// the Content-Type of the whole.
pub(crate) fn ranges(
    request: &Request,
    method: &Method,
    validators: &Validators<'_>,
    rules: Rules,
    kind: impl FnOnce() -> Option<Vec<u8>>,
    reply: &mut Reply,
) {
    let Validators { etag, shown, date, .. } = *validators;
    if reply.status == Status::OK
        && rules.reads(method)
        && conditional::if_range_matches(&request.headers, etag, shown, date)
    {
        cut(request, rules, kind, reply);
    }
}

/// Narrows the reply to the ranges that `request` asks for, whatever its conditions.
pub(crate) fn cut(
    request: &Request,
    rules: Rules,
    kind: impl FnOnce() -> Option<Vec<u8>>,
    reply: &mut Reply,
) {
    if let Some(wanted) = request.headers.value(HeaderId::Range)
        && let Some(length) = reply.body.told_length()
    {
        narrow(rules.plan(wanted, length), length, kind, reply);
    }
}

/// Narrows the reply with a body of `length` bytes.
fn narrow(plan: RangePlan, length: u64, kind: impl FnOnce() -> Option<Vec<u8>>, reply: &mut Reply) {
    match plan {
        RangePlan::Whole => {}
        RangePlan::TooMany => reply.too_many_ranges = true,
        RangePlan::NotSatisfiable => {
            reply.status = Status::RANGE_NOT_SATISFIABLE;
            reply.change().content_range = Some(format!("bytes */{length}").into());
            reply.body = Bytes::new().into();
        }
        RangePlan::Ranges(ranges) => {
            if let [one] = ranges.as_slice() {
                let text = format!("bytes {}-{}/{length}", one.start, one.end - 1);
                reply.change().content_range = Some(text.into());
                reply.body.narrow(one);
            } else {
                let kind = kind();
                let kind = reply.body.narrow_to_parts(&ranges, kind.as_deref(), length);
                if kind.is_none() {
                    return;
                }
                reply.change().content_type = kind;
            }
            reply.status = Status::PARTIAL_CONTENT;
        }
    }
}
