//! Differences between the responses of two servers to the same requests: statuses, fields and
//! bodies. No redirect is followed, and nothing is asked but what the list names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use message::{Method, Response};

use crate::load::{ExchangeBounds, ExchangeServer, WholeResponse};
use crate::settings::Tls;
use crate::target::TargetServer;

/// Fields that differ between any two servers, or from second to second. A length is that of a
/// body, which is compared itself.
const IGNORED: [&str; 14] = [
    "accept-ranges",
    "age",
    "alt-svc",
    "cache-status",
    "connection",
    "content-length",
    "date",
    "expires",
    "keep-alive",
    "server",
    "transfer-encoding",
    "via",
    "x-cache",
    "x-powered-by",
];

/// Requests of a list.
const REQUESTS_MAX: usize = 100_000;
/// Bytes of a body that are kept; a longer one is a failure.
const BODY_MAX: usize = 32 << 20;
/// Letters of a value that are shown.
const SHOWN: usize = 120;

/// A request that both servers get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedRequest {
    method: String,
    /// The host that is asked for; `None` for that of the settings.
    host: Option<String>,
    path: String,
    fields: Vec<(String, String)>,
}

/// Two servers, and how they are asked.
#[derive(Clone, Debug)]
pub struct DiffSettings {
    /// The server whose responses are right.
    pub old: TargetServer,
    /// The other.
    pub new: TargetServer,
    /// The host of requests that name none; by default each server's own.
    pub host: Option<String>,
    /// Names of fields that are not compared, beside those that always differ.
    pub ignored: Vec<String>,
    /// Requests that are under way at once.
    pub at_once: usize,
    /// Time for each response.
    pub patience: Duration,
    /// Trust in certificates.
    pub tls: Tls,
}

/// A comparison that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffReport {
    /// Requests with the differences of their responses, if there are any.
    pub requests: Vec<DiffEntry>,
}

/// A request, and how its responses differ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffEntry {
    /// Method and URL.
    pub request: String,
    /// Each difference, in one line.
    pub differences: Vec<String>,
}

/// Reads a list: a path or URL on each line, with a method before it where that is not GET. Lines
/// below that begin with a blank are fields, `Name: value`. Behind `#` is a comment.
///
/// # Errors
/// A line that cannot be read, by its number, or too many of them.
pub fn requests(text: &str) -> Result<Vec<ComparedRequest>, String> {
    let mut all: Vec<ComparedRequest> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(at, line)| (at + 1, line)) {
        let is_field = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            return Err(format!("line {number}: a control character"));
        }
        if is_field {
            let request =
                all.last_mut().ok_or_else(|| format!("line {number}: a field of no request"))?;
            request.fields.push(field(line).map_err(|why| format!("line {number}: {why}"))?);
            continue;
        }
        if all.len() == REQUESTS_MAX {
            return Err(format!("line {number}: more than {REQUESTS_MAX} requests"));
        }
        all.push(request(line).map_err(|why| format!("line {number}: {why}"))?);
    }
    if all.is_empty() { Err("the list has no requests".to_owned()) } else { Ok(all) }
}

fn field(line: &str) -> Result<(String, String), String> {
    let wrong = || "a field is written `Name: value`".to_owned();
    let (name, value) = line.split_once(':').ok_or_else(wrong)?;
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(wrong());
    }
    if ["content-length", "transfer-encoding", "connection"]
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
    {
        return Err(format!("`{name}` is a matter of the connection"));
    }
    Ok((name.to_owned(), value.trim().to_owned()))
}

fn request(line: &str) -> Result<ComparedRequest, String> {
    let (method, target) = match line.split_once(char::is_whitespace) {
        Some((method, target)) => (method, target.trim()),
        None => ("GET", line),
    };
    let is_method =
        !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    if !is_method || target.contains(char::is_whitespace) {
        return Err("a request is a path or URL, perhaps behind a method in capitals".to_owned());
    }
    let (host, path) = if target.starts_with('/') {
        (None, target.split('#').next().unwrap_or(target).to_owned())
    } else {
        let (server, path) = TargetServer::parse(target)?;
        (Some(server.authority()), path)
    };
    Ok(ComparedRequest { method: method.to_owned(), host, path, fields: Vec::new() })
}

/// Asks both servers, and compares their responses.
///
/// # Errors
/// A server that has no address, or a runtime that cannot be started.
pub fn compare(
    settings: &DiffSettings,
    requests: &[ComparedRequest],
) -> Result<DiffReport, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start a runtime: {error}"))?;
    let [old, new] =
        [&settings.old, &settings.new].map(|own| ExchangeServer::new(own, &settings.tls));
    let (old, new) = (old?, new?);
    let mut report = DiffReport::default();
    for some in requests.chunks(settings.at_once.max(1)) {
        report.requests.extend(runtime.block_on(entries(settings, &old, &new, some)));
    }
    Ok(report)
}

/// The responses to some requests, all at once.
async fn entries(
    settings: &DiffSettings,
    old: &ExchangeServer,
    new: &ExchangeServer,
    requests: &[ComparedRequest],
) -> Vec<DiffEntry> {
    let mut running: Vec<_> =
        requests.iter().map(|own| Box::pin(entry(settings, old, new, own))).collect();
    let mut done: Vec<Option<DiffEntry>> = vec![None; running.len()];
    std::future::poll_fn(|cx| {
        for (at, own) in running.iter_mut().enumerate() {
            if done[at].is_none()
                && let std::task::Poll::Ready(entry) = own.as_mut().poll(cx)
            {
                done[at] = Some(entry);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

async fn entry(
    settings: &DiffSettings,
    old: &ExchangeServer,
    new: &ExchangeServer,
    request: &ComparedRequest,
) -> DiffEntry {
    let host = request.host.as_ref().or(settings.host.as_ref());
    let method = Method::from_token(request.method.as_bytes());
    let bounds = ExchangeBounds { time: settings.patience, body_bytes: BODY_MAX };
    let bytes = |server: &TargetServer| {
        written(request, host.cloned().unwrap_or_else(|| server.authority()).as_str())
    };
    // One after the other: a cache behind both is asked by one at a time.
    let one = old.ask(&bytes(&settings.old), &method, bounds).await;
    let other = new.ask(&bytes(&settings.new), &method, bounds).await;
    let differences = match (one, other) {
        (Ok(one), Ok(other)) => settings.differences(&one, &other),
        (one, other) => [(&settings.old, one.err()), (&settings.new, other.err())]
            .into_iter()
            .filter_map(|(server, error)| Some(format!("{server}: {}", error?)))
            .collect(),
    };
    let place = host.map_or_else(String::new, |host| format!("{host} "));
    DiffEntry { request: format!("{} {place}{}", request.method, request.path), differences }
}

/// The bytes of a request.
fn written(request: &ComparedRequest, host: &str) -> Vec<u8> {
    let mut text = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    let own = |name: &str| request.fields.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let usual = [
        ("Host", host),
        ("User-Agent", concat!("larder-bench/", env!("CARGO_PKG_VERSION"))),
        ("Accept", "*/*"),
    ];
    for (name, value) in usual.into_iter().filter(|(name, _)| !own(name)) {
        _ = write!(text, "{name}: {value}\r\n");
    }
    for (name, value) in &request.fields {
        _ = write!(text, "{name}: {value}\r\n");
    }
    if !matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS") {
        text.push_str("Content-Length: 0\r\n");
    }
    text.push_str("Connection: close\r\n\r\n");
    text.into_bytes()
}

impl DiffSettings {
    fn differences(&self, one: &WholeResponse, other: &WholeResponse) -> Vec<String> {
        let mut all = Vec::new();
        let statuses = [one, other].map(|own| own.head.status.code());
        if statuses[0] != statuses[1] {
            all.push(format!("status: {} | {}", statuses[0], statuses[1]));
        }
        let fields = [self.fields(&one.head, &self.old), self.fields(&other.head, &self.new)];
        let names: std::collections::BTreeSet<&String> =
            fields.iter().flat_map(BTreeMap::keys).collect();
        for name in names {
            let values = [0, 1].map(|at: usize| fields[at].get(name));
            if values[0] != values[1] {
                let [one, other] = values.map(|values| match values {
                    None => "(none)".to_owned(),
                    Some(values) => shown(&values.join(", ")),
                });
                all.push(format!("{name}: {one} | {other}"));
            }
        }
        all.extend(body_difference(&one.body, &other.body));
        all
    }

    /// The fields that are compared. The server's own name is taken out of `Location`, and
    /// the value out of a cookie.
    fn fields(&self, head: &Response, server: &TargetServer) -> BTreeMap<String, Vec<String>> {
        let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for field in head.headers.iter() {
            let name = String::from_utf8_lossy(field.name).to_ascii_lowercase();
            let is_ignored = IGNORED.contains(&name.as_str())
                || self.ignored.iter().any(|own| own.eq_ignore_ascii_case(&name));
            if is_ignored {
                continue;
            }
            let mut value = String::from_utf8_lossy(field.value).into_owned();
            if name == "location" {
                let own = format!("{}://{}", server.scheme(), server.authority());
                let hosts = self.host.iter().map(|host| format!("{}://{host}", server.scheme()));
                for start in hosts.chain([own]) {
                    if let Some(rest) =
                        value.strip_prefix(&start).filter(|rest| rest.starts_with('/'))
                    {
                        value = rest.to_owned();
                        break;
                    }
                }
            }
            if name == "set-cookie" {
                let (pair, rest) = value.split_once(';').unwrap_or((&value, ""));
                let name = pair.split('=').next().unwrap_or(pair);
                value = format!("{name}=...;{rest}");
            }
            fields.entry(name).or_default().push(value);
        }
        fields.values_mut().for_each(|values| values.sort_unstable());
        fields
    }
}

/// The first line in which bodies differ.
fn body_difference(one: &[u8], other: &[u8]) -> Option<String> {
    if one == other {
        return None;
    }
    let mut lines = [one, other].map(|body| body.split(|b| *b == b'\n'));
    let [first, second] = &mut lines;
    let mut number = 0_usize;
    loop {
        number += 1;
        let pair = [first.next(), second.next()];
        if pair[0] != pair[1] || pair[0].is_none() {
            let [own, theirs] = pair.map(|line| match line {
                None => "(end)".to_owned(),
                Some(line) => shown(&String::from_utf8_lossy(line)),
            });
            let sizes = [one.len(), other.len()];
            return Some(format!(
                "body: {} | {} bytes, line {number}: {own} | {theirs}",
                sizes[0], sizes[1]
            ));
        }
    }
}

fn shown(text: &str) -> String {
    let clean = text.escape_debug().to_string();
    let short: String = clean.chars().take(SHOWN).collect();
    let more = if short.len() < clean.len() { "..." } else { "" };
    format!("`{short}{more}`")
}

impl DiffReport {
    /// Number of requests whose responses differ.
    pub fn differing(&self) -> usize {
        self.requests.iter().filter(|own| !own.differences.is_empty()).count()
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for DiffEntry { request, differences } in &self.requests {
            if differences.is_empty() {
                continue;
            }
            _ = writeln!(text, "{request}");
            differences.iter().for_each(|line| _ = writeln!(text, "    {line}"));
        }
        let (all, differing) = (self.requests.len(), self.differing());
        let word = if all == 1 { "request" } else { "requests" };
        _ = writeln!(text, "{all} {word}: {} the same, {differing} differ", all - differing);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_paths_urls_methods_and_fields() {
        let text = "# pages\n/\nHEAD /a?b=c\n\thttp-x: 1\n  X-Y:  z \n\nhttps://a.test:8443/x#y\n";
        let all = requests(text).expect("well-formed");
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].method.as_str(), all[0].path.as_str()), ("GET", "/"));
        assert_eq!(all[1].method, "HEAD");
        let fields = [("http-x", "1"), ("X-Y", "z")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(all[1].fields, fields);
        assert_eq!(all[2].host.as_deref(), Some("a.test:8443"));
        assert_eq!(all[2].path, "/x");
        for (text, fault) in [
            ("", "no requests"),
            ("  X: y\n", "line 1: a field of no request"),
            ("/\n  X y\n", "line 2: a field is written"),
            ("/\n  Connection: close\n", "line 2: `Connection` is a matter"),
            ("/a b\n", "line 1: a request is"),
            ("get /\n", "line 1: a request is"),
            ("a.test/x\n", "begins with http://"),
        ] {
            let error = requests(text).expect_err(text);
            assert!(error.contains(fault), "{text}: {error}");
        }
    }

    #[test]
    fn bodies_differ_at_a_line() {
        assert_eq!(body_difference(b"a\nb\n", b"a\nb\n"), None);
        assert_eq!(
            body_difference(b"a\nb\nc", b"a\nx\nc").as_deref(),
            Some("body: 5 | 5 bytes, line 2: `b` | `x`")
        );
        assert_eq!(
            body_difference(b"a", b"a\n").as_deref(),
            Some("body: 1 | 2 bytes, line 2: (end) | ``")
        );
    }

    #[test]
    fn a_request_is_written_with_its_own_fields_in_place_of_usual_ones() {
        let all = requests("POST /x\n  host: b\n").expect("well-formed");
        let text = String::from_utf8(written(&all[0], "a")).expect("text");
        assert!(text.starts_with("POST /x HTTP/1.1\r\nUser-Agent: larder-bench/"), "{text}");
        assert!(text.contains("\r\nhost: b\r\n") && !text.contains("Host: a"), "{text}");
        assert!(text.ends_with("Content-Length: 0\r\nConnection: close\r\n\r\n"), "{text}");
    }
}
