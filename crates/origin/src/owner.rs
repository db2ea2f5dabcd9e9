//! Owners of connections: NTLM and Negotiate log a user in to a connection, not to a request (RFC
//! 4559 6; RFC 9110 3.3 calls it a fault of those schemes), so an origin takes every later request
//! on it for that user's. As in HAProxy, such a connection must never carry requests of another
//! client connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use message::{HeaderBlock, HeaderId, Request, Response, list};

/// A client's connection, as owner of connections to origins, which end after it.
#[derive(Clone, Debug, Default)]
pub struct Owner(Arc<AtomicBool>);

/// A reference from an owned connection to its owner.
#[derive(Clone, Debug)]
pub(crate) struct OwnerHold(Weak<AtomicBool>);

impl Owner {
    /// Returns true if its client has logged in to a connection: requests without credentials may
    /// then be that user's.
    pub fn has_logged_in(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes `self` the owner of the connection that `request` was sent over.
    pub(crate) fn hold(&self, request: &Request) -> OwnerHold {
        if logs_in(&request.headers) {
            self.0.store(true, Ordering::Relaxed);
        }
        OwnerHold(Arc::downgrade(&self.0))
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Owner {}

impl OwnerHold {
    /// Returns true if it refers to `owner`.
    pub(crate) fn is_of(&self, owner: &Owner) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&owner.0))
    }

    /// Returns true if its owner still exists.
    pub(crate) fn lasts(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// Returns true if a request with `headers` logs its user in to its connection.
pub fn logs_in(headers: &HeaderBlock) -> bool {
    names_scheme(headers, [HeaderId::Authorization, HeaderId::ProxyAuthorization])
}

/// Returns true if the connection of `request` and `response` belongs to one client from now on.
pub(crate) fn is_taken(request: &Request, response: &Response) -> bool {
    logs_in(&request.headers)
        || names_scheme(&response.headers, [HeaderId::WwwAuthenticate, HeaderId::ProxyAuthenticate])
}

/// Returns true if one of these fields names a scheme that authenticates connections. If the name
/// is part of another scheme's parameter, a connection is owned needlessly, which costs little.
fn names_scheme(headers: &HeaderBlock, ids: [HeaderId; 2]) -> bool {
    if !headers.contains_any(&ids) {
        return false;
    }
    let values = ids.into_iter().flat_map(|id| headers.values(id));
    values.flat_map(|value| value.split(|b| *b == b',')).any(|part| {
        let part = list::trim(part);
        let end = part.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(part.len());
        is_of_connections(&part[..end])
    })
}

/// Returns true if `scheme` authenticates connections: NTLM, Negotiate (SPNEGO) with its forms, and
/// Kerberos, which some proxies name.
fn is_of_connections(scheme: &[u8]) -> bool {
    let begins =
        |start: &[u8]| scheme.get(..start.len()).is_some_and(|s| s.eq_ignore_ascii_case(start));
    begins(b"NTLM") || begins(b"Nego") || scheme.eq_ignore_ascii_case(b"Kerberos")
}

#[cfg(test)]
mod tests {
    use message::Status;

    use super::*;

    #[test]
    fn a_connection_is_taken_by_either_side_s_word() {
        for (asked, answered, taken) in [
            (&[][..], &[][..], false),
            (&[("Authorization", "Basic eA==")], &[("WWW-Authenticate", "Basic realm=x")], false),
            (&[("Authorization", "NTLM TlRM")], &[], true),
            (&[("authorization", "negotiate YII")], &[], true),
            (&[("Proxy-Authorization", "Negotiate x")], &[], true),
            (&[], &[("WWW-Authenticate", "NTLM")], true),
            (&[], &[("WWW-Authenticate", "Basic realm=\"a, b\", Negotiate")], true),
            (&[], &[("WWW-Authenticate", "Basic realm=x"), ("WWW-Authenticate", "NTLM x")], true),
            (&[], &[("Proxy-Authenticate", "Kerberos")], true),
            (&[], &[("X-NTLM", "NTLM")], false),
        ] {
            let (mut request, mut response) = (Request::new(), Response::new(Status::OK));
            let of = |headers: &mut HeaderBlock, fields: &[(&str, &str)]| {
                for (name, value) in fields {
                    headers.push_named(name.as_bytes(), value.as_bytes());
                }
            };
            of(&mut request.headers, asked);
            of(&mut response.headers, answered);
            assert_eq!(is_taken(&request, &response), taken, "{asked:?} {answered:?}");
        }
    }

    #[test]
    fn a_hold_is_one_owner_s_and_ends_with_it() {
        let (owner, other) = (Owner::default(), Owner::default());
        let hold = owner.hold(&Request::new());
        assert!(hold.is_of(&owner) && !hold.is_of(&other));
        assert!(!owner.has_logged_in(), "it was asked to, and has not done so");
        drop(owner);
        assert!(!hold.lasts());
    }
}
