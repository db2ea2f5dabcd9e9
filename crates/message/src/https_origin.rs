//! Origin of the scheme https (RFC 6454 6.2): a host and a port, in one spelling.

use std::fmt;

use crate::authority::{AuthorityError, parse_authority};
use crate::request::Scheme;

/// An origin of the scheme https.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HttpsOrigin {
    host: String,
    port: Option<u16>,
}

impl HttpsOrigin {
    /// Parses `https://host[:port]`, perhaps with a final `/`.
    ///
    /// # Errors
    /// [`AuthorityError`] for anything else.
    pub fn parse(text: &[u8]) -> Result<Self, AuthorityError> {
        let (scheme, rest) = text.split_at_checked(8).ok_or(AuthorityError)?;
        if !scheme.eq_ignore_ascii_case(b"https://") {
            return Err(AuthorityError);
        }
        let mut host = Vec::new();
        let authority = rest.strip_suffix(b"/").unwrap_or(rest);
        let port = parse_authority(authority, Scheme::Https, &mut host)?;
        let host = String::from_utf8(host).map_err(|_| AuthorityError)?;
        Ok(Self { host, port })
    }

    /// The host in lower case; an IPv6 literal has its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, unless it is 443.
    pub fn port(&self) -> Option<u16> {
        self.port
    }
}

impl fmt::Display for HttpsOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_one_spelling() {
        for (text, spelt) in [
            ("https://a.example", "https://a.example"),
            ("HTTPS://A.Example.:443/", "https://a.example"),
            ("https://[0:0::1]:8443", "https://[::1]:8443"),
        ] {
            let origin = HttpsOrigin::parse(text.as_bytes()).expect("an origin");
            assert_eq!(origin.to_string(), spelt);
            assert_eq!(HttpsOrigin::parse(spelt.as_bytes()), Ok(origin));
        }
        for text in ["", "a.example", "http://a.example", "https://", "https://a.example/b"] {
            assert!(HttpsOrigin::parse(text.as_bytes()).is_err(), "{text}");
        }
        for text in ["https://u@a.example", "https://a.example//", "https://a.example?b"] {
            assert!(HttpsOrigin::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
