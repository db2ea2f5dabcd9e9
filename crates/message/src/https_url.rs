//! URL of the scheme https: an origin, and a target there.

use std::fmt;

use crate::authority::AuthorityError;
use crate::https_origin::HttpsOrigin;

/// A URL of the scheme https, without user and fragment. Its target may have a secret, so that
/// texts for people show the origin only.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpsUrl {
    origin: HttpsOrigin,
    target: String,
}

impl HttpsUrl {
    /// Parses `https://host[:port][/path][?query]`, in visible ASCII.
    ///
    /// # Errors
    /// [`AuthorityError`] for anything else.
    pub fn parse(text: &[u8]) -> Result<Self, AuthorityError> {
        let text = std::str::from_utf8(text).map_err(|_| AuthorityError)?;
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"#\\\"<>".contains(&byte);
        if !text.bytes().all(is_plain) {
            return Err(AuthorityError);
        }
        let (_, rest) = text.split_once("://").ok_or(AuthorityError)?;
        let target = rest.find(['/', '?']).map_or("", |at| &rest[at..]);
        let origin = HttpsOrigin::parse(&text.as_bytes()[..text.len() - target.len()])?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { origin, target: format!("{slash}{target}") })
    }

    /// The origin.
    pub fn origin(&self) -> &HttpsOrigin {
        &self.origin
    }

    /// The path and query.
    pub fn target(&self) -> &str {
        &self.target
    }
}

/// The origin alone.
impl fmt::Debug for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/...", self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_an_origin_and_a_target() {
        for (text, origin, target) in [
            ("https://a.example", "https://a.example", "/"),
            ("HTTPS://A.Example:443/", "https://a.example", "/"),
            ("https://a.example:8443/hook?key=1", "https://a.example:8443", "/hook?key=1"),
            ("https://a.example?key=1", "https://a.example", "/?key=1"),
            ("https://[::1]/a//b", "https://[::1]", "/a//b"),
        ] {
            let url = HttpsUrl::parse(text.as_bytes()).expect(text);
            assert_eq!((url.origin().to_string().as_str(), url.target()), (origin, target));
            assert!(!format!("{url:?}").contains("key"), "{url:?}");
        }
        for text in [
            "",
            "a.example",
            "http://a.example/",
            "https://",
            "https:///a",
            "https://u:p@a.example/",
            "https://a.example/#b",
            "https://a.example/a b",
            "https://a.example/é",
        ] {
            assert!(HttpsUrl::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
