//! A backend request on its way out: checked, framed, sent.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use cache::Reader;
use message::{Framing, HeaderId, Method, Request, Response, Status, Version};
use origin::{BodySource, Caller, Exchange, Hold, RequestBody, SourceError, Timeouts};
use vcl::backend::Leaf;
use vcl::params::Param;

use super::counts::Count;
use super::fetch::Job;
use super::link::Connected;
use super::steps::follow_host;
use crate::interims::{Interims, Told};

/// A request's body on its way to the backend.
pub(crate) enum Upload {
    /// There is none.
    None,
    /// It has been kept, and can be sent again.
    Kept(Bytes),
    /// It comes as the client sends it, once. With `true` the client waits for a 100, which it gets
    /// when the body is first asked for.
    Stream(Reader, bool),
    /// It has been sent.
    Spent,
}

impl Upload {
    /// The body, where it has been kept.
    pub(crate) fn kept(&self) -> Option<&Bytes> {
        match self {
            Self::Kept(body) => Some(body),
            _ => None,
        }
    }

    /// Whether there is a body, sent or not.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }
}

/// What the client's connection is to the fetch.
#[derive(Clone, Default)]
pub(crate) struct Front {
    pub(crate) interims: Option<Rc<Interims>>,
    pub(crate) caller: Caller,
}

/// Why a request got no answer.
pub(crate) struct Unsent {
    /// In words.
    pub(crate) reason: String,
    /// What counts it.
    pub(crate) count: Option<Count>,
}

impl Unsent {
    fn by(leaf: &Leaf, error: &origin::Error) -> Self {
        let count = match error {
            origin::Error::QueueFull { .. } => Count::BackendBusy,
            error if error.is_before_sending() => Count::BackendFail,
            _ => Count::BackendReq,
        };
        Self { reason: format!("backend {}: {error}", leaf.name), count: Some(count) }
    }
}

impl From<String> for Unsent {
    fn from(reason: String) -> Self {
        Self { reason, count: None }
    }
}

/// Sends `job.bereq` to `leaf` and returns with the response's head.
///
/// # Errors
/// Why not, in words.
pub(crate) async fn send(job: &mut Job, leaf: &Arc<Leaf>) -> Result<Exchange, Unsent> {
    if Connected::of(leaf).is_none()
        && let Some(outside) = job.core.shared.vcl.outside()
    {
        outside.link(leaf);
    }
    let connected =
        Connected::of(leaf).ok_or_else(|| format!("backend {}: not connected", leaf.name))?;
    let origin = Arc::clone(&connected.origin);
    follow_host(&mut job.bereq);
    spell_host(&mut job.bereq);
    let (mut source, framing) = body(job)?;
    let bereq = &mut job.bereq;
    bereq.framing = framing;
    bereq.version = bereq.version.max(Version::Http11);
    make_visible(&mut bereq.target);
    if !message::header::is_token(bereq.method.token()) {
        return Err("not sent: bereq.method is no token".to_owned().into());
    }
    if !is_target(&bereq.target, &bereq.method) {
        return Err("not sent: bereq.url does not begin with a slash".to_owned().into());
    }
    if let Some(tracing) = &job.live.tracing {
        let sent = tracing.pass_on(&mut bereq.headers);
        job.note(|trace| trace.sent.set(sent));
    }
    job.core.log.note_bereq(job.trace.as_deref(), &job.bereq, &origin);
    let started_us = job.core.micros();
    job.note(|trace| trace.note_begun(started_us));
    let caller = Caller { timeouts: Some(timeouts(job, leaf)), ..job.front.caller.clone() };
    let told = &mut Told(job.front.interims.as_deref());
    let pool = job.core.pool();
    let body = match &mut source {
        Some(source) => RequestBody::Stream(Box::new(source)),
        None => RequestBody::None,
    };
    let sent = pool.send(&origin, &job.bereq, body, job.key_hash, caller, told).await;
    if sent.is_err()
        && let Some(Source::Streamed { reader, waits, begun: false }) = source
    {
        // Nobody took any of it: another try can have it.
        job.upload = Upload::Stream(reader, waits.is_some());
    }
    let exchange = sent.map_err(|error| Unsent::by(leaf, &error))?;
    let answered_us = job.core.micros();
    job.core.log.note_beresp(job.trace.as_deref(), &exchange.response);
    job.note(|trace| trace.note_answered(&exchange, answered_us));
    Ok(exchange)
}

/// Has Host sent as the program has left it: letter case and port are not made canonical.
fn spell_host(bereq: &mut Request) {
    if !bereq.host.is_empty()
        && let Some(spelled) = bereq.headers.value(HeaderId::Host)
    {
        bereq.host.clear();
        bereq.host.extend_from_slice(spelled.trim_ascii());
        bereq.port = None;
    }
}

/// Whether a request can ask for `target` (RFC 9112 3.2): a path, an absolute URI, or `*` for
/// OPTIONS.
fn is_target(target: &[u8], method: &Method) -> bool {
    target.starts_with(b"/")
        || [&b"http://"[..], b"https://"].iter().any(|scheme| target.starts_with(scheme))
        || (target == b"*" && *method == Method::Options)
}

/// Writes what could split the request line (a program may set any `bereq.url`) in percent-coding;
/// nothing at all becomes `/`.
fn make_visible(target: &mut Vec<u8>) {
    if target.is_empty() {
        target.push(b'/');
    }
    if target.iter().all(u8::is_ascii_graphic) {
        return;
    }
    let mut visible = Vec::with_capacity(target.len() + 16);
    for byte in target.iter() {
        match byte.is_ascii_graphic() {
            true => visible.push(*byte),
            false => visible.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
    *target = visible;
}

/// The body to send, and how it is framed.
fn body(job: &mut Job) -> Result<(Option<Source>, Framing), String> {
    if !job.state.has_body {
        job.bereq.headers.remove(HeaderId::ContentLength);
        return Ok((None, Framing::None));
    }
    match std::mem::replace(&mut job.upload, Upload::Spent) {
        Upload::None => {
            job.upload = Upload::None;
            Ok((None, Framing::None))
        }
        Upload::Kept(bytes) => {
            let framing = Framing::Length(bytes.len() as u64);
            job.upload = Upload::Kept(bytes.clone());
            Ok((Some(Source::Whole(bytes)), framing))
        }
        Upload::Stream(reader, waits) => {
            let waits = waits.then(|| job.front.interims.clone()).flatten();
            Ok((Some(Source::Streamed { reader, waits, begun: false }), job.bereq.framing))
        }
        Upload::Spent => Err("req.body already consumed".to_owned()),
    }
}

/// The fetch's own timeouts, or its backend's, or the parameters'.
fn timeouts(job: &Job, leaf: &Leaf) -> Timeouts {
    let params = &job.live.params;
    let (state, spec) = (&job.state, &leaf.spec);
    let ms = |own: Option<f64>, backend: Option<f64>, param: Param| {
        let seconds = own.or(backend).unwrap_or_else(|| params.seconds(param));
        (seconds.max(0.0) * 1000.0) as u64
    };
    Timeouts {
        connect_ms: ms(state.connect_timeout, spec.connect_timeout, Param::ConnectTimeout),
        first_byte_ms: ms(
            state.first_byte_timeout,
            spec.first_byte_timeout,
            Param::FirstByteTimeout,
        ),
        between_bytes_ms: ms(
            state.between_bytes_timeout,
            spec.between_bytes_timeout,
            Param::BetweenBytesTimeout,
        ),
        // Varnish 7.1 knows none: each step has its own.
        total_ms: u64::MAX,
        hold: Hold {
            local_ms: ms(None, None, Param::BackendLocalErrorHolddown),
            remote_ms: ms(None, None, Param::BackendRemoteErrorHolddown),
        },
    }
}

/// A request's body as the origin client pulls it.
enum Source {
    /// It is there already.
    Whole(Bytes),
    /// It comes from the client.
    Streamed {
        reader: Reader,
        /// Where the client's 100 goes, until it has got it.
        waits: Option<Rc<Interims>>,
        /// Whether some of it was asked for.
        begun: bool,
    },
}

impl BodySource for Source {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, SourceError>> {
        match self {
            Self::Whole(bytes) => {
                let all = std::mem::take(bytes);
                Poll::Ready(Ok((!all.is_empty()).then_some(all)))
            }
            Self::Streamed { reader, waits, begun } => {
                *begun = true;
                if let Some(client) = waits.take() {
                    client.put(Response::new(Status::CONTINUE));
                }
                reader.poll_next(cx).map_err(|_| SourceError("the client's body broke off"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_target_can_split_the_request_line() {
        for (target, sent) in [
            (&b"/a b"[..], &b"/a%20b"[..]),
            (b"/a\r\nX: y", b"/a%0D%0AX:%20y"),
            (b"/\xff", b"/%FF"),
            (b"", b"/"),
            (b"/plain?x=%20", b"/plain?x=%20"),
        ] {
            let mut target = target.to_vec();
            make_visible(&mut target);
            assert_eq!(target, sent);
        }
    }
}
