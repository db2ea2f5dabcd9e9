//! Backend request before it is sent: it is checked, framed, and gets its backend's origin and
//! timeouts.

use std::sync::Arc;

use message::{Framing, HeaderId, Version};
use origin::{HolddownTimes, Timeouts};
use vcl::backend::{BackendSpec, Leaf};
use vcl::ctx::BereqState;
use vcl::params::{Param, Params};
use vcl::rules::heads;

use super::fetch::ProgramJudge;
use crate::fetch::{Fetch, FetchTarget};
use crate::state::vcl::link::BackendOrigin;

/// Prepares `fetch.request` for `leaf`.
///
/// # Errors
/// The reason for which it cannot be sent, in words.
pub(crate) fn prepare(
    judge: &ProgramJudge,
    fetch: &mut Fetch,
    leaf: &Arc<Leaf>,
) -> Result<FetchTarget, String> {
    if BackendOrigin::of(leaf).is_none()
        && let Some(host_services) = fetch.core.shared.vcl.host_services()
    {
        host_services.link(leaf);
    }
    let connected =
        BackendOrigin::of(leaf).ok_or_else(|| format!("backend {}: not connected", leaf.name))?;
    let origin = Arc::clone(&connected.origin);
    let bereq = &mut fetch.request;
    heads::follow_host(bereq);
    heads::keep_host_spelling(bereq);
    if !judge.state.has_body {
        bereq.headers.remove(HeaderId::ContentLength);
        bereq.framing = Framing::None;
    } else if fetch.upload.is_spent() {
        return Err("req.body already consumed".to_owned());
    } else if !fetch.upload.is_some() {
        bereq.framing = Framing::None;
    }
    bereq.version = bereq.version.max(Version::Http11);
    heads::escape_target(&mut bereq.target);
    if !message::header::is_token(bereq.method.token()) {
        return Err("not sent: bereq.method is no token".to_owned());
    }
    if !heads::is_target(&bereq.target, &bereq.method) {
        return Err("not sent: bereq.url does not begin with a slash".to_owned());
    }
    let params = &fetch.live.vcl.params;
    let ms = |seconds: f64| (seconds.max(0.0) * 1000.0) as u64;
    let [connect_ms, first_byte_ms, between_bytes_ms] =
        timeouts(params, &judge.state, Some(&leaf.spec)).map(ms);
    let hold = HolddownTimes {
        local_ms: ms(params.seconds(Param::BackendLocalErrorHolddown)),
        remote_ms: ms(params.seconds(Param::BackendRemoteErrorHolddown)),
    };
    // Only pipes have a total timeout; other requests have one for each phase.
    let total_ms = deadline_ms(&judge.state).unwrap_or(u64::MAX);
    let timeouts = Some(Timeouts { connect_ms, first_byte_ms, between_bytes_ms, total_ms, hold });
    Ok(FetchTarget {
        mirror: None,
        origin,
        timeouts,
        with_body: judge.state.has_body,
        beside_scripts: false,
        once: judge.state.no_retry_connect,
    })
}

/// The total timeout of a pipe in milliseconds; `None` without one.
pub(crate) fn deadline_ms(state: &BereqState) -> Option<u64> {
    state.task_deadline.filter(|seconds| *seconds > 0.0).map(|seconds| (seconds * 1000.0) as u64)
}

/// The timeouts of the fetch, or of its backend, or of the parameters, in seconds: to connect, to
/// the first byte, between bytes.
pub(crate) fn timeouts(
    params: &Params,
    state: &BereqState,
    spec: Option<&BackendSpec>,
) -> [f64; 3] {
    let of = |own: Option<f64>, backend: fn(&BackendSpec) -> Option<f64>, param| {
        own.or_else(|| backend(spec?)).unwrap_or_else(|| params.seconds(param))
    };
    [
        of(state.connect_timeout, |spec| spec.connect_timeout, Param::ConnectTimeout),
        of(state.first_byte_timeout, |spec| spec.first_byte_timeout, Param::FirstByteTimeout),
        of(
            state.between_bytes_timeout,
            |spec| spec.between_bytes_timeout,
            Param::BetweenBytesTimeout,
        ),
    ]
}
