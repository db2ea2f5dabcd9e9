//! The collector of traces: the server and the fields of each request to it, read with the
//! configuration.
//!
//! The fields' values are secrets. Nothing here may print them.

use std::fmt;

use base::Limits;
use config::{Diagnostic, FieldSource, PlacedPath, Tracing};
use message::{Framing, HeaderId, Method, Request, Scheme};
use origin::{Address, OriginConfig, TlsConfig};
use policy::headers::{FieldName, FieldValue};
use tls::Upstream;

use crate::keeper;

/// The media type of requests and responses.
pub(crate) const PROTOBUF: &str = "application/x-protobuf";
/// Shortest string that is treated as a secret: shorter ones occur in ordinary text.
const SECRET_BYTES: usize = 6;

/// A collector of traces.
#[derive(PartialEq, Eq)]
pub(crate) struct Collector {
    /// The origin that the collector is reached by.
    pub(crate) origin: OriginConfig,
    /// Request bodies are gzip-coded.
    pub(crate) gzip: bool,
    request: Head,
    fields: Vec<(FieldName, FieldValue)>,
}

/// The start of each request's head.
#[derive(PartialEq, Eq)]
struct Head {
    scheme: Scheme,
    host: String,
    port: Option<u16>,
    target: String,
}

impl fmt::Debug for Collector {
    /// Omits the fields.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collector").field("origin", &self.origin).finish_non_exhaustive()
    }
}

impl Collector {
    /// Reads the collector of `tracing`; `upstream` has the trust for TLS.
    ///
    /// # Errors
    /// A file cannot be used.
    pub(crate) fn read(
        tracing: &Tracing,
        upstream: Option<Upstream>,
        limits: &Limits,
    ) -> Result<Self, Box<Diagnostic>> {
        let server = tracing.server.clone();
        let (scheme, usual_port) = match server.tls {
            true => (Scheme::Https, 443),
            false => (Scheme::Http, 80),
        };
        let (host, port) = match &server.address {
            Address::Tcp { host, port } if host.contains(':') => (format!("[{host}]"), Some(*port)),
            Address::Tcp { host, port } => (host.clone(), Some(*port)),
            // The configuration's reader produces no such endpoint.
            Address::Fixed { name, .. } => (name.clone(), None),
            Address::Unix(_) => ("localhost".to_owned(), None),
        };
        let request = Head {
            scheme,
            host,
            port: port.filter(|port| *port != usual_port),
            target: format!("{}{}", tracing.path, Tracing::END),
        };
        let mut fields = Vec::new();
        for (name, source) in &tracing.headers {
            let value = match source {
                FieldSource::Text(value) => value.clone(),
                FieldSource::File(file) => in_file(file)?,
            };
            fields.push((name.clone(), value));
        }
        let mut origin = OriginConfig::with_limits("the collector of traces", vec![server], limits);
        // The exporter decides when to retry.
        (origin.retries, origin.eject.failures) = (0, 0);
        origin.tls = upstream.map(|upstream| TlsConfig { upstream, name: None });
        Ok(Self { origin, gzip: tracing.gzip, request, fields })
    }

    /// The head of a request with a body of this length.
    pub(crate) fn request(&self, length: usize, is_gzip: bool) -> Request {
        let mut request = Request::new();
        request.method = Method::Post;
        request.scheme = self.request.scheme;
        request.host = self.request.host.clone().into_bytes();
        request.port = self.request.port;
        request.target = self.request.target.clone().into_bytes();
        request.framing = Framing::Length(length as u64);
        let headers = &mut request.headers;
        let agent = concat!("larder/", env!("CARGO_PKG_VERSION"));
        headers.push(HeaderId::UserAgent, agent.as_bytes());
        headers.push(HeaderId::ContentType, PROTOBUF.as_bytes());
        if is_gzip {
            headers.push(HeaderId::ContentEncoding, b"gzip");
        }
        for (name, value) in &self.fields {
            headers.set_named(name.as_bytes(), value.as_bytes());
        }
        request
    }

    /// `text` without strings that occur in secrets: a collector may repeat them.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (_, value) in &self.fields {
            let value = String::from_utf8_lossy(value.as_bytes());
            let words = value.split_ascii_whitespace().filter(|word| word.len() >= SECRET_BYTES);
            for word in words {
                text = text.replace(word, "...");
            }
        }
        text
    }
}

/// The value in a file: its single line.
fn in_file(file: &PlacedPath) -> Result<FieldValue, Box<Diagnostic>> {
    let error = |why: &dyn fmt::Display| Box::new(file.error(why));
    let bytes = keeper::read_secret(&file.path).map_err(|why| error(&why))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| error(&"it is not text"))?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err(error(&"it is empty"));
    }
    FieldValue::parse(line).map_err(|why| error(&why))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use h1::encode;

    use super::*;

    fn collector(table: &str) -> Result<Collector, String> {
        let text = format!(
            "[tracing]\n{table}\n[[site]]\nhost = \"*\"\norigin = \"http://127.0.0.1:1\"\n"
        );
        let (config, _) = config::load_str(&text, "larder.toml").expect("a configuration");
        let tracing = config.tracing.as_ref().expect("a collector");
        let collector = Collector::read(tracing, None, &config.limits);
        collector.map_err(|problem| problem.message)
    }

    #[test]
    fn a_request_says_what_it_is_and_has_the_fields_of_the_configuration() {
        let head = |table: &str, is_gzip| {
            let mut out = Vec::new();
            let collector = collector(table).expect("a collector");
            encode::request_head(&mut out, &collector.request(7, is_gzip));
            String::from_utf8(out).expect("text")
        };
        let agent = concat!("User-Agent: larder/", env!("CARGO_PKG_VERSION"), "\r\n");
        let table = "endpoint = \"https://otlp.test/a\"\nheaders = { api-key = \"hush\" }";
        assert_eq!(
            head(table, true),
            format!(
                "POST /a/v1/traces HTTP/1.1\r\nHost: otlp.test\r\n{agent}\
                 Content-Type: application/x-protobuf\r\nContent-Encoding: gzip\r\n\
                 api-key: hush\r\nContent-Length: 7\r\n\r\n"
            )
        );
        let table = "endpoint = \"http://[::1]\"\nheaders = { user-agent = \"own\" }";
        assert_eq!(
            head(table, false),
            "POST /v1/traces HTTP/1.1\r\nHost: [::1]:4318\r\n\
             Content-Type: application/x-protobuf\r\nuser-agent: own\r\n\
             Content-Length: 7\r\n\r\n"
        );
    }

    #[test]
    fn a_value_in_a_file_is_its_line_and_not_for_everyone() {
        let file = std::env::temp_dir().join(format!("larder-field-{}", std::process::id()));
        let table = format!(
            "endpoint = \"https://a\"\nheaders = {{ authorization = {{ file = {file:?} }} }}"
        );
        let read = |text: &str, mode: u32| {
            fs::write(&file, text).expect("written");
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
            collector(&table)
        };
        let good = read("Bearer hush-hush\r\n", 0o640).expect("a collector");
        assert_eq!(good.fields[0].1.as_bytes(), b"Bearer hush-hush");
        assert!(!format!("{good:?}").contains("hush"));
        assert_eq!(good.without_secrets("no `hush-hush`"), "no `...`");
        assert!(good == read("Bearer hush-hush", 0o400).expect("the same"));
        for (text, mode, why) in [
            ("Bearer hush\n", 0o644, "everyone may read it"),
            ("Bearer hush\nX: y\n", 0o600, "no control characters (no line break)"),
            ("\n", 0o600, "it is empty"),
        ] {
            let told = read(text, mode).expect_err("it is refused");
            let named = told.starts_with(&format!("{}: ", file.display()));
            assert!(named && told.contains(why) && !told.contains("hush"), "{told}");
        }
        fs::remove_file(&file).expect("removed");
        assert!(collector(&table).expect_err("no file").contains("No such file"));
    }
}
