//! A backend request before it is sent: checked, framed, with its backend's origin and timeouts.

use std::sync::Arc;

use message::{Framing, HeaderId, Method, Request, Version};
use origin::{Hold, Timeouts};
use vcl::backend::Leaf;
use vcl::params::Param;

use super::fetch::ByProgram;
use super::heads::follow_host;
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
    follow_host(bereq);
    spell_host(bereq);
    if !judge.state.has_body {
        bereq.headers.remove(HeaderId::ContentLength);
        bereq.framing = Framing::None;
    } else if fetch.upload.is_spent() {
        return Err("req.body already consumed".to_owned());
    } else if !fetch.upload.is_some() {
        bereq.framing = Framing::None;
    }
    bereq.version = bereq.version.max(Version::Http11);
    make_visible(&mut bereq.target);
    if !message::header::is_token(bereq.method.token()) {
        return Err("not sent: bereq.method is no token".to_owned());
    }
    if !is_target(&bereq.target, &bereq.method) {
        return Err("not sent: bereq.url does not begin with a slash".to_owned());
    }
    let timeouts = Some(timeouts(judge, fetch, leaf));
    Ok(Target { origin, timeouts, with_body: judge.state.has_body, beside_scripts: false })
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

/// Returns true if a request can ask for `target` (RFC 9112 3.2): a path, an absolute URI, or `*`
/// for OPTIONS.
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
