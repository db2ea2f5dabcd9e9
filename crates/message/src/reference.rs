//! References in responses, Location and Content-Location, to other resources of the same origin.

use crate::request::Request;

/// The request for `reference`, a Location or Content-Location of a response to `request`; `None`
/// if it is on another origin.
pub fn same_origin(request: &Request, reference: &[u8]) -> Option<Request> {
    let reference = reference.split(|b| *b == b'#').next()?;
    let rest = match reference.strip_prefix(b"/") {
        Some(rest) if !rest.starts_with(b"/") => reference,
        _ => absolute(request, reference)?,
    };
    let mut other = Request::new();
    other.scheme = request.scheme;
    other.host.clone_from(&request.host);
    other.port = request.port;
    other.headers = request.headers.clone();
    if rest.starts_with(b"/") {
        other.target.extend_from_slice(rest);
    } else {
        // Relative to the last segment of the target's path (RFC 3986 5.2.3).
        let path = request.path();
        let base = path.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
        other.target.extend_from_slice(&path[..base]);
        other.target.extend_from_slice(rest);
    }
    other.target.iter().all(u8::is_ascii_graphic).then_some(other)
}

/// Returns the part of an absolute reference after its authority, if the authority is the request's
/// own; a relative reference is returned as it is.
fn absolute<'a>(request: &Request, reference: &'a [u8]) -> Option<&'a [u8]> {
    let after_scheme = match memchr::memmem::find(reference, b"://") {
        Some(at) if reference[..at].eq_ignore_ascii_case(request.scheme.as_str().as_bytes()) => {
            &reference[at + 3..]
        }
        Some(_) => return None,
        None => match reference.strip_prefix(b"//") {
            Some(rest) => rest,
            None => return Some(reference),
        },
    };
    let end = after_scheme.iter().position(|b| *b == b'/').unwrap_or(after_scheme.len());
    let (authority, target) = after_scheme.split_at(end);
    let mut own = request.host.clone();
    if let Some(port) = request.port {
        own.extend_from_slice(format!(":{port}").as_bytes());
    }
    let same = authority.eq_ignore_ascii_case(&own);
    same.then_some(if target.is_empty() { b"/" } else { target })
}
