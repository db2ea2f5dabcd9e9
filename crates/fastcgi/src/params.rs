//! Parameters of a request: nginx's `fastcgi_params`, the script, the header fields, and those that
//! settings add.
//!
//! Only fields whose names have letters, digits and `-` alone are passed: `Remote_User` must not
//! pose as `Remote-User`. `Proxy` is never passed: some programs read HTTP_PROXY as their proxy
//! (httpoxy, CVE-2016-5385).

use std::fmt;
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};

use message::header::Field;
use message::{Framing, HeaderId, Request, Scheme, Version};

use crate::encode::ParamsWriter;

/// The values of parameters that are not in the request itself.
#[derive(Clone, Copy, Debug)]
pub struct Environment<'a> {
    /// The script.
    pub script: Script<'a>,
    /// The client's address; `None` for a client without address.
    pub client: Option<IpAddr>,
    /// The client's port; `None` if only a proxy's is known.
    pub client_port: Option<u16>,
    /// The address of this server that received the request.
    pub server: Option<SocketAddr>,
    /// SERVER_SOFTWARE.
    pub software: &'a str,
    /// Parameters that settings add.
    pub added: &'a [AddedParameter],
}

/// A parameter that settings add, which no request decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedParameter {
    name: Box<str>,
    value: Box<str>,
}

/// The reason why a parameter cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterError {
    /// The name has other characters than letters, digits and `_`, or begins with a digit.
    Name,
    /// The request decides about the parameter.
    Reserved,
    /// The value contains a null byte.
    Value,
}

impl fmt::Display for ParameterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Name => "a parameter's name has letters, digits and `_`, such as `PHP_VALUE`",
            Self::Reserved => "Larder sets this parameter from the request",
            Self::Value => "the value contains a null byte",
        })
    }
}

impl std::error::Error for ParameterError {}

/// Parameters that the request decides, besides those of header fields (`HTTP_*`).
const RESERVED: [&str; 25] = [
    "AUTH_TYPE",
    "CONTENT_LENGTH",
    "CONTENT_TYPE",
    "DOCUMENT_ROOT",
    "DOCUMENT_URI",
    "GATEWAY_INTERFACE",
    "HTTPS",
    "PATH_INFO",
    "PATH_TRANSLATED",
    "QUERY_STRING",
    "REDIRECT_STATUS",
    "REMOTE_ADDR",
    "REMOTE_HOST",
    "REMOTE_PORT",
    "REMOTE_USER",
    "REQUEST_METHOD",
    "REQUEST_SCHEME",
    "REQUEST_URI",
    "SCRIPT_FILENAME",
    "SCRIPT_NAME",
    "SERVER_ADDR",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "SERVER_SOFTWARE",
];

impl AddedParameter {
    /// The parameter `name` with this value.
    ///
    /// # Errors
    /// If a name is not permitted, or the value cannot be a parameter's.
    pub fn new(name: &str, value: &str) -> Result<Self, ParameterError> {
        let is_of_name = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        if !name.bytes().all(is_of_name) || !name.starts_with(|c: char| !c.is_ascii_digit()) {
            return Err(ParameterError::Name);
        }
        let upper = name.to_ascii_uppercase();
        if upper.starts_with("HTTP_") || RESERVED.contains(&&*upper) {
            return Err(ParameterError::Reserved);
        }
        if value.contains('\0') {
            return Err(ParameterError::Value);
        }
        Ok(Self { name: name.into(), value: value.into() })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A script and the path info.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Script<'a> {
    /// The document root, without a final slash.
    pub root: &'a [u8],
    /// The script's path below the root, beginning with a slash.
    pub name: &'a [u8],
    /// The rest of the request's path after the script; empty, or beginning with a slash.
    pub path_info: &'a [u8],
}

/// Appends the records with all parameters of `request`, and the empty one that ends them.
///
/// A body must have a known length, since CGI cannot mark its end otherwise.
pub fn write(out: &mut Vec<u8>, request: &Request, env: &Environment<'_>) {
    debug_assert!(
        matches!(request.framing, Framing::None | Framing::Length(_)),
        "a body's length is known before it is sent"
    );
    let mut params = ParamsWriter::new(out);
    of_script(&mut params, &env.script);
    of_request(&mut params, request);
    of_connection(&mut params, request, env);
    of_fields(&mut params, request);
    for AddedParameter { name, value } in env.added {
        params.add(name.as_bytes(), value.as_bytes());
    }
    params.finish();
}

fn of_script(params: &mut ParamsWriter<'_>, script: &Script<'_>) {
    params.add(b"SCRIPT_FILENAME", &[script.root, script.name].concat());
    params.add(b"SCRIPT_NAME", script.name);
    params.add(b"DOCUMENT_URI", &[script.name, script.path_info].concat());
    params.add(b"DOCUMENT_ROOT", script.root);
    params.add(b"PATH_INFO", script.path_info);
    if !script.path_info.is_empty() {
        params.add(b"PATH_TRANSLATED", &[script.root, script.path_info].concat());
    }
    // PHP with cgi.force_redirect runs nothing without this.
    params.add(b"REDIRECT_STATUS", b"200");
}

fn of_request(params: &mut ParamsWriter<'_>, request: &Request) {
    params.add(b"REQUEST_METHOD", request.method.token());
    params.add(b"REQUEST_URI", &request.target);
    params.add(b"QUERY_STRING", request.query().unwrap_or_default());
    params.add(b"SERVER_PROTOCOL", protocol(request.version));
    params.add(b"CONTENT_TYPE", request.headers.value(HeaderId::ContentType).unwrap_or_default());
    let mut digits = itoa::Buffer::new();
    params.add(
        b"CONTENT_LENGTH",
        match request.framing {
            Framing::Length(length) => digits.format(length).as_bytes(),
            _ => b"",
        },
    );
}

/// The version of the client's request, as nginx writes it.
fn protocol(version: Version) -> &'static [u8] {
    match version {
        Version::Http10 => b"HTTP/1.0",
        Version::Http11 => b"HTTP/1.1",
        Version::Http2 => b"HTTP/2.0",
    }
}

/// SERVER_NAME and SERVER_PORT are those that the client requested (RFC 3875 4.1.14, 4.1.15), which
/// is correct behind a proxy that ends TLS, and is in the cache key.
fn of_connection(params: &mut ParamsWriter<'_>, request: &Request, env: &Environment<'_>) {
    let mut text = Vec::with_capacity(48);
    let mut digits = itoa::Buffer::new();
    params.add(b"GATEWAY_INTERFACE", b"CGI/1.1");
    params.add(b"SERVER_SOFTWARE", env.software.as_bytes());
    params.add(b"REQUEST_SCHEME", request.scheme.as_str().as_bytes());
    if request.scheme == Scheme::Https {
        params.add(b"HTTPS", b"on");
    }
    params.add(b"SERVER_NAME", &request.host);
    let port = request.port.unwrap_or_else(|| request.scheme.default_port());
    params.add(b"SERVER_PORT", digits.format(port).as_bytes());
    if let Some(server) = env.server {
        write_address(&mut text, server.ip().to_canonical());
        params.add(b"SERVER_ADDR", &text);
    }
    match env.client {
        Some(client) => {
            write_address(&mut text, client.to_canonical());
            params.add(b"REMOTE_ADDR", &text);
        }
        // As in nginx for clients on unix sockets: scripts need the variable (RFC 3875 4.1.8), and
        // no address would be correct.
        None => params.add(b"REMOTE_ADDR", b"unix:"),
    }
    if let Some(port) = env.client_port {
        params.add(b"REMOTE_PORT", digits.format(port).as_bytes());
    }
}

/// Replaces `text` by an address in its usual form. The formatter is slow for a value that every
/// request has twice.
fn write_address(text: &mut Vec<u8>, address: IpAddr) {
    text.clear();
    match address {
        IpAddr::V4(address) => {
            for (at, part) in address.octets().into_iter().enumerate() {
                if at > 0 {
                    text.push(b'.');
                }
                text.extend_from_slice(itoa::Buffer::new().format(part).as_bytes());
            }
        }
        IpAddr::V6(address) => {
            write!(text, "{address}").expect("a vector takes whatever is written to it");
        }
    }
}

fn of_fields(params: &mut ParamsWriter<'_>, request: &Request) {
    if !request.host.is_empty() {
        let mut host = request.host.clone();
        if let Some(port) = request.port {
            host.push(b':');
            host.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
        }
        params.add_field(b"Host", std::iter::once(&host[..]), b"");
    }
    let headers = &request.headers;
    for (at, field) in headers.iter().enumerate() {
        let same = |other: &Field<'_>| other.name.eq_ignore_ascii_case(field.name);
        let is_later = at > 0 && headers.iter().take(at).any(|earlier| same(&earlier));
        if is_later || !is_passed(&field) {
            continue;
        }
        let separator: &[u8] = if field.id == HeaderId::Cookie { b"; " } else { b", " };
        let values = headers.iter().filter(same).map(|field| field.value);
        params.add_field(field.name, values, separator);
    }
}

/// Returns true if a field becomes a variable.
fn is_passed(field: &Field<'_>) -> bool {
    // The first two have variables of their own; Host is the canonical one.
    let elsewhere = matches!(
        field.id,
        HeaderId::ContentLength | HeaderId::ContentType | HeaderId::Host | HeaderId::Expect
    );
    !elsewhere
        && !field.id.is_hop_by_hop()
        && field.name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'-')
        && !field.name.eq_ignore_ascii_case(b"proxy")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use message::Method;
    use proptest::prelude::*;

    use super::*;
    use crate::encode::tests::params;

    const ENV: Environment<'static> = Environment {
        script: Script { root: b"/srv/www", name: b"/index.php", path_info: b"" },
        client: None,
        client_port: None,
        server: None,
        software: "larder",
        added: &[],
    };

    fn written(request: &Request, env: &Environment<'_>) -> BTreeMap<String, String> {
        let mut out = Vec::new();
        write(&mut out, request, env);
        let pairs = params(&out);
        let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
        let count = pairs.len();
        let map: BTreeMap<_, _> = pairs.into_iter().map(|(n, v)| (text(n), text(v))).collect();
        assert_eq!(map.len(), count, "no parameter comes twice");
        map
    }

    fn request(fields: &[(&str, &str)]) -> Request {
        let mut request = Request::new();
        request.target = b"/shop/cart?id=1&x".to_vec();
        request.host = b"example.com".to_vec();
        for (name, value) in fields {
            request.headers.push_named(name.as_bytes(), value.as_bytes());
        }
        request
    }

    #[test]
    fn settings_add_parameters_and_replace_none() {
        let added = [
            AddedParameter::new("PHP_VALUE", "memory_limit=256M\nmax_execution_time=600"),
            AddedParameter::new("front_controller_active", "true"),
        ]
        .map(|own| own.expect("a parameter"));
        let found = written(&request(&[]), &Environment { added: &added, ..ENV });
        assert_eq!(found["PHP_VALUE"], "memory_limit=256M\nmax_execution_time=600");
        assert_eq!(found["front_controller_active"], "true");
        for name in written(&request(&[("X-A", "1")]), &ENV).keys() {
            assert_eq!(AddedParameter::new(name, "x"), Err(ParameterError::Reserved), "{name}");
        }
        for (name, value, why) in [
            ("", "x", ParameterError::Name),
            ("1A", "x", ParameterError::Name),
            ("A-B", "x", ParameterError::Name),
            ("http_proxy", "x", ParameterError::Reserved),
            ("https", "on", ParameterError::Reserved),
            ("A", "\0", ParameterError::Value),
        ] {
            assert_eq!(AddedParameter::new(name, value), Err(why), "{name}");
        }
    }

    #[test]
    fn every_parameter_of_nginx_is_there() {
        let mut request = request(&[("Content-Type", "text/plain"), ("User-Agent", "curl")]);
        request.method = Method::Post;
        request.framing = Framing::Length(12);
        request.scheme = Scheme::Https;
        let env = Environment {
            script: Script { root: b"/srv/www", name: b"/index.php", path_info: b"/a b" },
            client: Some([192, 0, 2, 1].into()),
            client_port: Some(4711),
            server: Some(([127, 0, 0, 1], 8443).into()),
            ..ENV
        };
        let found = written(&request, &env);
        let expected = [
            ("CONTENT_LENGTH", "12"),
            ("CONTENT_TYPE", "text/plain"),
            ("DOCUMENT_ROOT", "/srv/www"),
            ("DOCUMENT_URI", "/index.php/a b"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("HTTPS", "on"),
            ("HTTP_HOST", "example.com"),
            ("HTTP_USER_AGENT", "curl"),
            ("PATH_INFO", "/a b"),
            ("PATH_TRANSLATED", "/srv/www/a b"),
            ("QUERY_STRING", "id=1&x"),
            ("REDIRECT_STATUS", "200"),
            ("REMOTE_ADDR", "192.0.2.1"),
            ("REMOTE_PORT", "4711"),
            ("REQUEST_METHOD", "POST"),
            ("REQUEST_SCHEME", "https"),
            ("REQUEST_URI", "/shop/cart?id=1&x"),
            ("SCRIPT_FILENAME", "/srv/www/index.php"),
            ("SCRIPT_NAME", "/index.php"),
            ("SERVER_ADDR", "127.0.0.1"),
            ("SERVER_NAME", "example.com"),
            ("SERVER_PORT", "443"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_SOFTWARE", "larder"),
        ];
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn scripts_are_told_the_version_the_client_spoke() {
        for (version, expected) in [
            (Version::Http10, "HTTP/1.0"),
            (Version::Http11, "HTTP/1.1"),
            (Version::Http2, "HTTP/2.0"),
        ] {
            let request = Request { version, ..request(&[]) };
            assert_eq!(written(&request, &ENV)["SERVER_PROTOCOL"], expected);
        }
    }

    #[test]
    fn plain_http_says_nothing_of_https() {
        let mut request = request(&[]);
        request.port = Some(8080);
        let found = written(&request, &ENV);
        assert!(!found.contains_key("HTTPS") && !found.contains_key("PATH_TRANSLATED"));
        assert_eq!(found["SERVER_PORT"], "8080");
        assert_eq!(found["HTTP_HOST"], "example.com:8080");
        assert_eq!((&found["CONTENT_LENGTH"][..], &found["CONTENT_TYPE"][..]), ("", ""));
    }

    #[test]
    fn t28_twins_and_httpoxy_never_become_variables() {
        let found = written(
            &request(&[
                ("Remote-User", "honest"),
                ("Remote_User", "forged"),
                ("X.Real-IP", "forged"),
                ("X-Real!IP", "forged"),
                ("Proxy", "http://evil"),
                ("PROXY", "http://evil"),
                ("Connection", "close"),
                ("Transfer-Encoding", "chunked"),
                ("Expect", "100-continue"),
                ("Content_Type", "forged"),
                ("Host", "forged"),
            ]),
            &ENV,
        );
        let http: Vec<_> = found.iter().filter(|(name, _)| name.starts_with("HTTP_")).collect();
        let pair = |n: &str, v: &str| (n.to_owned(), v.to_owned());
        let expected = [pair("HTTP_HOST", "example.com"), pair("HTTP_REMOTE_USER", "honest")];
        assert_eq!(http, expected.iter().map(|(n, v)| (n, v)).collect::<Vec<_>>());
    }

    #[test]
    fn repeated_fields_are_joined() {
        let found = written(
            &request(&[
                ("Accept", "text/html"),
                ("Cookie", "a=1"),
                ("ACCEPT", "*/*"),
                ("cookie", "b=2"),
                ("X-Empty", ""),
            ]),
            &ENV,
        );
        assert_eq!(found["HTTP_ACCEPT"], "text/html, */*");
        assert_eq!(found["HTTP_COOKIE"], "a=1; b=2");
        assert_eq!(found["HTTP_X_EMPTY"], "");
    }

    proptest! {
        #[test]
        fn each_variable_has_one_source(
            names in prop::collection::vec("[RrXx][Ee_.-][Mm1-]{1,2}", 0..12),
        ) {
            let fields: Vec<_> = names.iter().map(|name| (name.as_str(), "v")).collect();
            let found = written(&request(&fields), &ENV);
            let plain = |name: &&String| !name.contains(['_', '.']);
            let mut expected: Vec<_> = names.iter().filter(plain)
                .map(|name| format!("HTTP_{}", name.to_uppercase().replace('-', "_")))
                .collect();
            expected.push("HTTP_HOST".to_owned());
            expected.sort();
            expected.dedup();
            let http: Vec<_> = found.into_keys().filter(|name| name.starts_with("HTTP_")).collect();
            prop_assert_eq!(http, expected);
        }
    }
}
