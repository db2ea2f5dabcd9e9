//! Cache-Status (RFC 9211): how this cache handled a request.
//!
//! A cache appends its member after those of caches nearer to the origin, and must never change
//! theirs.

use crate::pseudonym::{FieldStart, Pseudonym};
use crate::response::Status;
use crate::sf::write_token_or_string;

/// The reason for forwarding a request to the origin (RFC 9211 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// Policy bypasses the cache.
    Bypass,
    /// The method is not served from the cache.
    Method,
    /// No object is stored for the URI.
    UriMiss,
    /// An object is stored for the URI, but no variant that matches the request.
    VaryMiss,
    /// No object matches, for one of the two reasons above.
    Miss,
    /// An object is stored, but the request's directives forbid its use.
    Request,
    /// An object is stored, but stale.
    Stale,
    /// Only a part is stored.
    Partial,
}

impl Forward {
    /// The reason as the registered token.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// `hit` or `fwd`, which exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Answered from the store.
    Hit,
    /// Sent forward.
    Forwarded(Forward),
}

/// The member of one cache. It never contains the key, which may hold private data.
#[derive(Clone, Copy, Debug)]
pub struct CacheStatus<'a> {
    /// The name of this cache.
    pub cache: &'a Pseudonym,
    /// Hit or forwarded.
    pub handling: Handling,
    /// The origin's status, if it differs from the one sent.
    pub fwd_status: Option<Status>,
    /// The remaining lifetime, in seconds; negative if stale.
    pub ttl_secs: Option<i64>,
    /// The response was stored.
    pub stored: bool,
    /// The request was answered by the fetch of another request.
    pub collapsed: bool,
    /// Further details, such as the reason why the response was not stored.
    pub detail: Option<&'a str>,
}

impl<'a> CacheStatus<'a> {
    /// A member without any details.
    pub const fn new(cache: &'a Pseudonym, handling: Handling) -> Self {
        Self {
            cache,
            handling,
            fwd_status: None,
            ttl_secs: None,
            stored: false,
            collapsed: false,
            detail: None,
        }
    }

    /// Appends the member to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.cache.member());
        match self.handling {
            Handling::Hit => out.extend_from_slice(b"; hit"),
            Handling::Forwarded(why) => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(why.as_str().as_bytes());
            }
        }
        self.write_details(out);
    }

    /// The prepared start of the member, before its details, if there is one.
    pub fn begun(&self) -> Option<&'a FieldStart> {
        (self.handling == Handling::Hit).then(|| self.cache.hit())
    }

    /// Appends the details of the member to `out`.
    pub fn write_details(&self, out: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        if let Some(status) = self.fwd_status {
            out.extend_from_slice(b"; fwd-status=");
            out.extend_from_slice(digits.format(status.code()).as_bytes());
        }
        if let Some(ttl) = self.ttl_secs {
            out.extend_from_slice(b"; ttl=");
            out.extend_from_slice(digits.format(clamp_integer(ttl)).as_bytes());
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            write_token_or_string(detail, out);
        }
    }
}

/// Structured field integers have 15 digits at most (RFC 9651 3.3.1).
fn clamp_integer(n: i64) -> i64 {
    n.clamp(-999_999_999_999_999, 999_999_999_999_999)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sf::parse_dictionary;

    fn written(member: &CacheStatus<'_>) -> String {
        let mut out = Vec::new();
        member.write(&mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn a_hit_tells_its_ttl() {
        let name = Pseudonym::new("larder");
        let hit = CacheStatus { ttl_secs: Some(-3), ..CacheStatus::new(&name, Handling::Hit) };
        assert_eq!(written(&hit), "larder; hit; ttl=-3");
    }

    #[test]
    fn a_forwarded_request_tells_why() {
        let name = Pseudonym::new("edge 1");
        let miss = CacheStatus {
            fwd_status: Status::new(304),
            stored: true,
            collapsed: true,
            detail: Some("no-store"),
            ..CacheStatus::new(&name, Handling::Forwarded(Forward::Stale))
        };
        let expected = r#""edge 1"; fwd=stale; fwd-status=304; stored; collapsed; detail=no-store"#;
        assert_eq!(written(&miss), expected);
    }

    proptest! {
        #[test]
        fn whatever_the_detail_the_member_is_well_formed(detail: String, ttl: i64) {
            let name = Pseudonym::new("x");
            let member = CacheStatus {
                ttl_secs: Some(ttl),
                detail: Some(&detail),
                ..CacheStatus::new(&name, Handling::Forwarded(Forward::Bypass))
            };
            // A list of one token with parameters is also a dictionary of one key with parameters.
            let text = written(&member);
            prop_assert_eq!(parse_dictionary([text.as_bytes()], |_| {}), Ok(1));
        }
    }
}
