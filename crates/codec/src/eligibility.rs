//! Eligibility of responses for coding: those worth coding, and those that must not be coded. The
//! result carries its reason, for `explain`. Only the head is examined, never the body: a wrong
//! type costs time, not correctness.

use std::fmt;

use message::cache_control::CacheControl;
use message::header::is_token;
use message::{HeaderBlock, HeaderId, Status};

/// Least length in bytes that is coded: Caddy's default. A head with a shorter body fits in one
/// packet in any form.
pub const LEAST_BYTES: u64 = 512;

/// Media types that are coded by default: text, and formats as compressible as text. It is the
/// union of Caddy's default and of common lists for nginx. Types that hold compressed data (images,
/// audio, video, archives, WOFF) are left out.
pub const MEDIA_TYPES: &[&str] = &[
    "text/*",
    "*+json",
    "*+text",
    "*+xml",
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/json-seq",
    "application/ndjson",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-font-opentype",
    "application/x-font-otf",
    "application/x-font-truetype",
    "application/x-font-ttf",
    "application/x-javascript",
    "application/x-mpegurl",
    "application/x-ndjson",
    "application/x-protobuf",
    "application/xml",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/sfnt",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// Reason why a response is not coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IneligibilityReason {
    /// The status has no body, or its body is bound to exact bytes (206).
    Status,
    /// The response already has a coding.
    Coded,
    /// Cache-Control has `no-transform` (RFC 9111 5.2.2.6).
    NoTransform,
    /// The response has a Content-Range: it is a part.
    Partial,
    /// A field holds a digest of the bytes (RFC 9530, Content-MD5), which coding would invalidate.
    Digest,
    /// The media type is missing, or not among those to code.
    Type,
    /// The body is shorter than the least length.
    Short,
}

impl fmt::Display for IneligibilityReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "its status excludes coding",
            Self::Coded => "it has a Content-Encoding already",
            Self::NoTransform => "its Cache-Control has no-transform",
            Self::Partial => "it is partial (Content-Range)",
            Self::Digest => "a field has a digest of its bytes",
            Self::Type => "its Content-Type is not among the types to code",
            Self::Short => "it is too short",
        })
    }
}

/// Criteria for responses that are coded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodingCriteria {
    types: Vec<Box<str>>,
    /// Least length in bytes of a body that is coded.
    pub least_bytes: u64,
}

impl Default for CodingCriteria {
    fn default() -> Self {
        let types = MEDIA_TYPES.iter().map(|pattern| Box::from(*pattern)).collect();
        Self { types, least_bytes: LEAST_BYTES }
    }
}

impl CodingCriteria {
    /// Criteria for bodies of at least `least_bytes` whose media type is one of `types`: a type
    /// (`text/css`), a family (`text/*`), a suffix (`*+json`), or all (`*`).
    ///
    /// # Errors
    /// The first type that has none of these forms.
    pub fn new<'a>(
        types: impl IntoIterator<Item = &'a str>,
        least_bytes: u64,
    ) -> Result<Self, &'a str> {
        let mut kept = Vec::new();
        for pattern in types {
            if !is_pattern(pattern) {
                return Err(pattern);
            }
            kept.push(Box::from(pattern));
        }
        Ok(Self { types: kept, least_bytes })
    }

    /// Judges a response by its head. `length` is the length of its body in bytes, if known.
    ///
    /// # Errors
    /// The reason why the response is not coded.
    pub fn judge(
        &self,
        status: Status,
        headers: &HeaderBlock,
        length: Option<u64>,
    ) -> Result<(), IneligibilityReason> {
        let refuse = |is: bool, reason| if is { Err(reason) } else { Ok(()) };
        refuse(status.has_no_body() || !is_coded(status), IneligibilityReason::Status)?;
        let coding = crate::Coding::of_content(headers.values(HeaderId::ContentEncoding));
        refuse(coding != Some(crate::Coding::Identity), IneligibilityReason::Coded)?;
        let control = CacheControl::parse(headers.values(HeaderId::CacheControl));
        refuse(control.no_transform, IneligibilityReason::NoTransform)?;
        refuse(headers.contains(HeaderId::ContentRange), IneligibilityReason::Partial)?;
        let has = |name: &&str| headers.value_named(name.as_bytes()).is_some();
        refuse(DIGESTS.iter().any(has), IneligibilityReason::Digest)?;
        let kind = headers.value(HeaderId::ContentType).map(essence).unwrap_or_default();
        refuse(!self.types.iter().any(|pattern| fits(pattern, kind)), IneligibilityReason::Type)?;
        refuse(length.is_some_and(|length| length < self.least_bytes), IneligibilityReason::Short)
    }
}

/// Fields with a digest of the bytes as they are sent.
const DIGESTS: [&str; 4] = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"];

/// Returns true for statuses whose body may be coded: all final ones with a body, except 206 and
/// 416.
const fn is_coded(status: Status) -> bool {
    !status.is_interim() && !matches!(status.code(), 205 | 206 | 416)
}

/// A media type without its parameters (RFC 9110 8.3.1).
fn essence(content_type: &[u8]) -> &[u8] {
    content_type.split(|b| *b == b';').next().unwrap_or_default().trim_ascii()
}

fn is_pattern(pattern: &str) -> bool {
    let token = |text: &str| is_token(text.as_bytes());
    match pattern.split_once('/') {
        Some((kind, "*")) => token(kind) && !kind.contains('*'),
        Some((kind, subtype)) => token(kind) && token(subtype) && !pattern.contains('*'),
        None => pattern == "*" || pattern.strip_prefix("*+").is_some_and(token),
    }
}

fn fits(pattern: &str, kind: &[u8]) -> bool {
    let pattern = pattern.as_bytes();
    let same = |part: Option<&[u8]>, own: &[u8]| part.is_some_and(|p| p.eq_ignore_ascii_case(own));
    match pattern {
        b"*" => true,
        [b'*', suffix @ ..] => {
            same(kind.len().checked_sub(suffix.len()).map(|at| &kind[at..]), suffix)
        }
        [start @ .., b'*'] => same(kind.get(..start.len()), start),
        _ => kind.eq_ignore_ascii_case(pattern),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");

    fn judge(
        status: u16,
        fields: &[(&str, &str)],
        length: Option<u64>,
    ) -> Result<(), IneligibilityReason> {
        let mut headers = HeaderBlock::new();
        for (name, value) in fields {
            headers.push_named(name.as_bytes(), value.as_bytes());
        }
        CodingCriteria::default().judge(Status::new(status).expect("a status"), &headers, length)
    }

    fn of_type(value: &str) -> Result<(), IneligibilityReason> {
        judge(200, &[("Content-Type", value)], None)
    }

    #[test]
    fn pages_and_their_errors_are_coded() {
        for status in [200, 203, 301, 403, 404, 410, 500, 503] {
            assert_eq!(judge(status, &[TEXT], Some(10_000)), Ok(()), "{status}");
        }
        for status in [100, 101, 204, 205, 206, 304, 416] {
            assert_eq!(judge(status, &[TEXT], None), Err(IneligibilityReason::Status), "{status}");
        }
    }

    #[test]
    fn each_reason_is_reported() {
        let with = |name, value| judge(200, &[TEXT, (name, value)], None);
        assert_eq!(with("Content-Encoding", "gzip"), Err(IneligibilityReason::Coded));
        assert_eq!(with("Content-Encoding", "unheard-of"), Err(IneligibilityReason::Coded));
        assert_eq!(with("Content-Encoding", "identity"), Ok(()));
        assert_eq!(
            with("Cache-Control", "max-age=1, No-Transform"),
            Err(IneligibilityReason::NoTransform)
        );
        assert_eq!(with("Content-Range", "bytes 0-1/2"), Err(IneligibilityReason::Partial));
        for name in DIGESTS {
            assert_eq!(with(name, "x"), Err(IneligibilityReason::Digest), "{name}");
        }
        assert_eq!(judge(200, &[], None), Err(IneligibilityReason::Type));
        assert_eq!(judge(200, &[TEXT], Some(LEAST_BYTES - 1)), Err(IneligibilityReason::Short));
        assert_eq!(judge(200, &[TEXT], Some(LEAST_BYTES)), Ok(()));
    }

    #[test]
    fn compressible_content_is_recognised_by_its_type() {
        for kind in [
            "TEXT/CSS",
            "text/event-stream",
            "application/json",
            "application/ld+json ;x=1",
            "image/svg+xml",
            "application/wasm",
            "font/ttf",
            "font/otf",
        ] {
            assert_eq!(of_type(kind), Ok(()), "{kind}");
        }
        for kind in [
            "",
            "text",
            "image/png",
            "font/woff2",
            "video/mp4",
            "application/octet-stream",
            "application/zip",
            "application/xhtml",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ] {
            assert_eq!(of_type(kind), Err(IneligibilityReason::Type), "{kind}");
        }
    }

    #[test]
    fn patterns_are_of_four_kinds() {
        for pattern in ["*", "text/*", "*+json", "image/svg+xml"] {
            assert!(CodingCriteria::new([pattern], 0).is_ok(), "{pattern}");
        }
        for pattern in ["", "text", "*/*", "te*/x", "text/c*", "text/css; x", "*json", "/x", "x/"] {
            assert_eq!(CodingCriteria::new([pattern], 0), Err(pattern));
        }
        assert_eq!(
            CodingCriteria::new(MEDIA_TYPES.iter().copied(), LEAST_BYTES),
            Ok(CodingCriteria::default())
        );
        assert!(fits("*", b""));
    }
}
