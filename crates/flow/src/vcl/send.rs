//! A backend request before it is sent: checked, framed, with its backend's origin and timeouts.

use std::sync::Arc;

use message::{Framing, HeaderId, Version};
use origin::{Hold, Timeouts};
use vcl::backend::Leaf;
use vcl::params::Param;
use vcl::rules::heads;

use super::fetch::ByProgram;
use super::link::Connected;
use crate::fetch::{Fetch, Target};

/// Makes `fetch.request` one that `leaf` can be sent.
///
/// # Errors
/// Why it cannot be sent, in words.
pub(crate) fn prepare(
    judge: &ByProgram,
    fetch: &mut Fetch,
    leaf: &Arc<Leaf>,
) -> Result<Target, String> {
    if Connected::of(leaf).is_none()
        && let Some(outside) = fetch.core.shared.vcl.outside()
    {
        outside.link(leaf);
    }
    let connected =
        Connected::of(leaf).ok_or_else(|| format!("backend {}: not connected", leaf.name))?;
    let origin = Arc::clone(&connected.origin);
    let bereq = &mut fetch.request;
    heads::follow_host(bereq);
    heads::spell_host(bereq);
    if !judge.state.has_body {
        bereq.headers.remove(HeaderId::ContentLength);
        bereq.framing = Framing::None;
    } else if fetch.upload.is_spent() {
        return Err("req.body already consumed".to_owned());
    } else if !fetch.upload.is_some() {
        bereq.framing = Framing::None;
    }
    bereq.version = bereq.version.max(Version::Http11);
    heads::make_visible(&mut bereq.target);
    if !message::header::is_token(bereq.method.token()) {
        return Err("not sent: bereq.method is no token".to_owned());
    }
    if !heads::is_target(&bereq.target, &bereq.method) {
        return Err("not sent: bereq.url does not begin with a slash".to_owned());
    }
    let timeouts = Some(timeouts(judge, fetch, leaf));
    Ok(Target { origin, timeouts, with_body: judge.state.has_body, beside_scripts: false })
}

/// The fetch's own timeouts, or its backend's, or the parameters'.
fn timeouts(judge: &ByProgram, fetch: &Fetch, leaf: &Leaf) -> Timeouts {
    let params = &fetch.live.params;
    let (state, spec) = (&judge.state, &leaf.spec);
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
