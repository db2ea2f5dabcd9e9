//! Warm URL: what is asked to warm the cache, a URL and the request fields that select a variant.
//!
//! Must never hold what identifies a visitor: no cookie, no credentials.

use message::{HeaderId, Request, Scheme, Version};

/// The most bytes of a URL with its fields. Longer ones are not warmed.
const BYTES_MAX: usize = 8 * 1024;

/// The fields with which a variant is asked for again: those of negotiation, as a class of browsers
/// sends them. All others may be a secret of one visitor, such as an API key.
const NEGOTIATION: [&str; 17] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "device-memory",
    "dnt",
    "dpr",
    "host",
    "origin",
    "save-data",
    "user-agent",
    "viewport-width",
    "width",
    "x-device",
    "x-forwarded-proto",
    "x-requested-with",
    "x-ua-device",
];
/// The beginning of further such fields: client hints and what browsers say of a fetch.
const NEGOTIATION_PREFIX: &[u8] = b"sec-";

/// Fields of requests that warm, unless the variant has another value: those of a usual browser, so
/// that the origin answers as it answers visitors.
const USUAL: [(&[u8], &[u8]); 3] = [
    (b"Accept", b"*/*"),
    (b"Accept-Encoding", b"gzip, deflate, br, zstd"),
    (b"User-Agent", b"Mozilla/5.0 (compatible; larder-warm)"),
];

/// A field that selects a variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariantField {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its value in canonical form; `None` if the request has no such field.
    pub value: Option<Box<[u8]>>,
}

/// A URL and the fields that select its variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WarmUrl {
    /// The host in lower case.
    pub host: Box<[u8]>,
    /// The target: path and query.
    pub target: Box<[u8]>,
    /// True for https.
    pub secure: bool,
    /// The port, if it is not the scheme's.
    pub port: Option<u16>,
    /// The fields that select the variant; empty for the variant of a usual browser.
    pub fields: Box<[VariantField]>,
}

impl WarmUrl {
    /// The URL of a request without its fields; `None` if it is too long.
    pub fn of_request(request: &Request) -> Option<Self> {
        let url = Self {
            host: request.host.as_slice().into(),
            target: request.target.as_slice().into(),
            secure: request.scheme == Scheme::Https,
            port: request.port,
            fields: Box::default(),
        };
        (url.bytes() <= BYTES_MAX).then_some(url)
    }

    /// The URL with the values that a variant was selected by, names in lower case; `None` if it is
    /// not to be warmed: the variant may be one visitor's, or the URL is too long.
    pub fn with_values(self, values: &[(&[u8], Option<&[u8]>)]) -> Option<Self> {
        if values.iter().any(|(name, value)| value.is_some() && !is_negotiation(name)) {
            return None;
        }
        let fields = values.iter().map(|(name, value)| VariantField {
            name: (*name).into(),
            value: value.map(Box::from),
        });
        let url = Self { fields: fields.collect(), ..self };
        (url.bytes() <= BYTES_MAX).then_some(url)
    }

    fn bytes(&self) -> usize {
        let own = |field: &VariantField| {
            field.name.len() + field.value.as_ref().map_or(0, |value| value.len())
        };
        self.host.len() + self.target.len() + self.fields.iter().map(own).sum::<usize>()
    }

    /// The request for it: a GET without cookies and credentials.
    pub(crate) fn request(&self) -> Request {
        let scheme = if self.secure { Scheme::Https } else { Scheme::Http };
        let (host, target) = (self.host.to_vec(), self.target.to_vec());
        let mut request = Request { scheme, host, port: self.port, target, ..Request::new() };
        request.version = Version::Http11;
        let mut authority = self.host.to_vec();
        if let Some(port) = self.port {
            authority.extend_from_slice(format!(":{port}").as_bytes());
        }
        request.headers.set(HeaderId::Host, &authority);
        for (name, value) in USUAL {
            request.headers.push_named(name, value);
        }
        for VariantField { name, value } in &self.fields {
            request.headers.remove_named(name);
            if let Some(value) = value {
                request.headers.push_named(name, value);
            }
        }
        request
    }
}

fn is_negotiation(name: &[u8]) -> bool {
    NEGOTIATION.iter().any(|own| own.as_bytes() == name) || name.starts_with(NEGOTIATION_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url() -> WarmUrl {
        let mut request = Request { scheme: Scheme::Https, port: Some(8443), ..Request::new() };
        request.host.extend_from_slice(b"example.org");
        request.target.extend_from_slice(b"/a?b");
        WarmUrl::of_request(&request).expect("it is short")
    }

    #[test]
    fn its_request_has_the_fields_of_its_variant_and_usual_ones() {
        let values: [(&[u8], Option<&[u8]>); 3] =
            [(b"accept-encoding", None), (b"accept-language", Some(b"de")), (b"cookie", None)];
        let request = url().with_values(&values).expect("it is nobody's own").request();
        let value = |name: &str| {
            let value = request.headers.value_named(name.as_bytes())?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        assert_eq!(value("Host").as_deref(), Some("example.org:8443"));
        assert_eq!(value("Accept-Language").as_deref(), Some("de"));
        assert_eq!((value("Accept-Encoding"), value("Cookie")), (None, None));
        assert!(value("User-Agent").is_some() && value("Accept").is_some());
        assert_eq!((request.scheme, &*request.target), (Scheme::Https, &b"/a?b"[..]));
    }

    #[test]
    fn variants_of_one_visitor_are_not_warmed() {
        for name in ["cookie", "authorization", "x-api-key", "x-forwarded-for", "range"] {
            assert_eq!(url().with_values(&[(name.as_bytes(), Some(b"1"))]), None, "{name}");
        }
        assert!(url().with_values(&[(b"sec-ch-ua-mobile", Some(b"?1"))]).is_some());
        let long = vec![b'a'; BYTES_MAX];
        assert_eq!(url().with_values(&[(b"accept", Some(&long))]), None);
    }
}
