//! Cache-Status (RFC 9211): what this cache did with a request, for whoever reads the response.
//!
//! A cache appends its member after those of the caches nearer to the origin and changes none of
//! them.

use crate::pseudonym::{FieldStart, Pseudonym};
use crate::response::Status;
use crate::sf::write_token_or_string;

/// Why a request went forward to the origin (RFC 9211 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Forward {
    /// Policy sent it past the cache.
    Bypass,
    /// Its method is not served from the cache.
    Method,
    /// Nothing stored for its URI.
    UriMiss,
    /// Something stored for its URI, but no variant for its fields.
    VaryMiss,
    /// Nothing stored, for one of the two reasons above.
    Miss,
    /// Stored, but the request's directives forbade its use.
    Request,
    /// Stored, but stale.
    Stale,
    /// Stored in part.
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

/// `hit` or `fwd`: one excludes the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Answered from the store.
    Hit,
    /// Sent forward.
    Forwarded(Forward),
}

/// One cache's member. The key is never told: it may hold what the client should not see.
#[derive(Clone, Copy, Debug)]
pub struct CacheStatus<'a> {
    /// Name of this cache.
    pub cache: &'a Pseudonym,
    /// Hit or forwarded.
    pub handling: Handling,
    /// The status the origin answered with; worth telling when it is not the one sent.
    pub fwd_status: Option<Status>,
    /// The lifetime that was left, in seconds; negative when stale.
    pub ttl_secs: Option<i64>,
    /// The response was stored.
    pub stored: bool,
    /// The request was answered by another one's fetch.
    pub collapsed: bool,
    /// Anything else, such as why the response was not stored.
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

    /// The field with the beginning of the member, before its details, if that is prepared.
    pub fn begun(&self) -> Option<&'a FieldStart> {
        (self.handling == Handling::Hit).then(|| self.cache.hit())
    }

    /// Appends to `out` what follows that.
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
