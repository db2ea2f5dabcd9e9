//! Selection: the part of a response that a request's conditions and ranges select (RFC 9110 13.2.2
//! and 14.2), whatever the source of the response.

use bytes::Bytes;
use cache::Record;
use message::conditional::{self, Outcome};
use message::date::parse_http_date;
use message::range::{self, RangePlan, Ranges};
use message::{HeaderBlock, HeaderId, Method, Request, Status};
use vcl::rules::ranges;

use crate::state::body::ReplyBody;
use crate::state::reply::Reply;
use crate::state::request_context::RequestContext;

/// Fields that may select something else than the whole response.
pub(crate) const SELECTORS: [HeaderId; 3] =
    [HeaderId::IfNoneMatch, HeaderId::IfModifiedSince, HeaderId::Range];

/// Values that conditions are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'a> {
    pub(crate) etag: Option<&'a [u8]>,
    /// Last-Modified, in unix seconds.
    pub(crate) modified: Option<u64>,
    /// The Last-Modified that the client gets, for If-Range.
    pub(crate) shown: Option<u64>,
    /// Date, in unix seconds.
    pub(crate) date: Option<u64>,
}

impl<'a> Validators<'a> {
    /// The validators of a stored response.
    pub(crate) fn of(object: &'a Record) -> Self {
        let modified = object.last_modified();
        Self { etag: object.etag(), modified, shown: modified, date: object.date() }
    }
}

/// Rules for reading conditions and ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConditionRules {
    /// RFC 9110 13.2.2 and 14.2: at most this many ranges, of a GET; a malformed field is ignored.
    Rfc(u64),
    /// Varnish: conditions and ranges apply to a 200. A date after `now_s` is no condition. One
    /// range, of a GET or HEAD, if `ranges` are on; others are not satisfiable.
    Varnish { now_s: u64, ranges: bool },
}

impl ConditionRules {
    /// Returns true if the conditions of `request` apply to a response of `status`.
    fn judge(self, request: &Request, status: Status) -> bool {
        match self {
            Self::Rfc(_) => true,
            Self::Varnish { now_s, .. } => {
                status == Status::OK && !asks_for_the_future(&request.headers, now_s)
            }
        }
    }

    fn read_ranges(self, method: &Method) -> bool {
        match self {
            Self::Rfc(_) => *method == Method::Get,
            Self::Varnish { ranges, .. } => ranges && matches!(method, Method::Get | Method::Head),
        }
    }

    fn plan(self, wanted: &[u8], length: u64) -> RangePlan {
        match self {
            Self::Rfc(most) => range::plan(wanted, length, most as usize),
            Self::Varnish { .. } => ranges::parse_range(wanted, length)
                .map_or(RangePlan::NotSatisfiable, |range| {
                    RangePlan::Ranges(Ranges::from_iter([range]))
                }),
        }
    }
}

/// Returns true if the only condition is a time in the future.
fn asks_for_the_future(headers: &HeaderBlock, now_s: u64) -> bool {
    let since = headers.value(HeaderId::IfModifiedSince);
    !headers.contains(HeaderId::IfNoneMatch)
        && since.and_then(|since| parse_http_date(since, now_s)).is_some_and(|since| since > now_s)
}

/// The conditions and ranges of a request.
#[derive(Clone, Copy)]
pub(crate) struct Selection<'a> {
    pub(crate) request: &'a Request,
    /// The client's method, whatever was sent to the origin.
    pub(crate) method: &'a Method,
    pub(crate) rules: ConditionRules,
}

impl<'a> Selection<'a> {
    /// The selection of `ctx`, under a declared policy.
    pub(crate) fn of(ctx: &RequestContext<'a>) -> Self {
        let rules = ConditionRules::Rfc(ctx.live.limits.ranges);
        Self { request: ctx.request, method: &ctx.request.method, rules }
    }

    /// Turns a reply with a whole body into the answer to the request. Conditions come first; then
    /// `give` sets the form of the body, and ranges cut it. `validators` are of that form, `is_had`
    /// returns true if the client has another form, and `kind` returns the Content-Type of the
    /// whole.
    pub(crate) fn select(
        self,
        validators: &Validators<'_>,
        is_had: impl FnOnce() -> bool,
        give: impl FnOnce(&mut ReplyBody),
        kind: impl FnOnce() -> Option<Vec<u8>>,
        reply: &mut Reply,
    ) {
        let Validators { etag, modified, shown, date } = *validators;
        let (request, status) = (self.request, reply.status);
        // Conditions on anything but a 2xx are ignored (RFC 9110 13.2.1), whatever the form.
        let is_judged = self.rules.judge(request, status) && status.code() / 100 == 2;
        let outcome = || conditional::evaluate(request, etag, modified, date, status);
        if is_judged && (outcome() == Outcome::NotModified || is_had()) {
            reply.status = Status::NOT_MODIFIED;
            reply.body = ReplyBody::None;
            return;
        }
        give(&mut reply.body);
        if status == Status::OK
            && self.rules.read_ranges(self.method)
            && conditional::if_range_matches(&request.headers, etag, shown, date)
        {
            self.cut(kind, reply);
        }
    }

    /// Narrows the reply to the requested ranges, ignoring conditions.
    pub(crate) fn cut(self, kind: impl FnOnce() -> Option<Vec<u8>>, reply: &mut Reply) {
        if let Some(wanted) = self.request.headers.value(HeaderId::Range)
            && let Some(length) = reply.body.declared_length()
        {
            narrow(self.rules.plan(wanted, length), length, kind, reply);
        }
    }
}

/// Narrows the reply, whose body has `length` bytes.
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
