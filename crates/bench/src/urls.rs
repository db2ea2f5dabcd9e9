//! URLs and requests to send, as lists from several sources: command line, files, logs, sitemaps,
//! generated lists. A source must count each line that it could not read, so that no list is
//! silently short.

mod file;
mod log;
mod makelist;
mod order;
mod sitemap;

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

pub use file::from_text;
pub use log::from_log;
pub use makelist::{MakeError, Makelist, Share, Sizes, Totals};
pub use order::{Picks, RequestOrder};
pub use sitemap::from_sitemap;

/// Unread lines that are kept with their text; further ones are only counted.
const FAULTS_KEPT: usize = 20;

/// Most requests of a list, so that their numbers fit four bytes and a mistake does not fill the
/// memory.
const SEQUENCE_MAX: usize = 100_000_000;

/// A request of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListedRequest {
    /// Method.
    pub method: String,
    /// Absolute URL, or a path for every target.
    pub url: String,
    /// Body.
    pub body: Body,
}

/// The body of a request of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Body {
    /// No body.
    #[default]
    None,
    /// A text.
    Text(String),
    /// The bytes of a file.
    File(PathBuf),
}

impl ListedRequest {
    /// Makes a GET of `url`.
    pub fn get(url: &str) -> Self {
        Self { method: "GET".to_owned(), url: url.to_owned(), body: Body::None }
    }
}

/// A list of requests with their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// The distinct requests.
    asks: Vec<ListedRequest>,
    /// Numbers of `asks` in the source's order, with repetitions.
    sequence: Vec<u32>,
    /// Times of the requests of `sequence`, in microseconds since the first; empty if the source
    /// has no times.
    due: Vec<u64>,
    /// Lines that could not be read.
    pub faults: UnreadLines,
}

impl List {
    /// The distinct requests.
    pub fn asks(&self) -> &[ListedRequest] {
        &self.asks
    }

    /// Numbers of [`asks`](Self::asks) in the source's order, with repetitions.
    pub fn sequence(&self) -> &[u32] {
        &self.sequence
    }

    /// Times of the requests of [`sequence`](Self::sequence), in microseconds since the first;
    /// empty if the source has no times.
    pub fn due(&self) -> &[u64] {
        &self.due
    }

    /// Replaces the URLs by their paths, for requests to other servers.
    #[must_use]
    pub fn into_paths(mut self) -> Self {
        for ask in &mut self.asks {
            if let Ok((_, path)) = crate::target::TargetServer::parse(&ask.url) {
                ask.url = path;
            }
        }
        self
    }

    /// Requests in one pass through the list.
    pub fn len(&self) -> usize {
        self.sequence.len()
    }

    /// Returns true if there are no requests.
    pub fn is_empty(&self) -> bool {
        self.sequence.is_empty()
    }

    /// Makes a list of these requests, in order.
    pub fn from_asks(asks: impl IntoIterator<Item = ListedRequest>) -> Self {
        let mut maker = Maker::default();
        for (mut ask, line) in asks.into_iter().zip(1..) {
            match checked_url(&ask.url).map(str::to_owned) {
                Ok(url) => {
                    ask.url = url;
                    maker.add(ask, 1);
                }
                Err(what) => maker.fault("command line", line, format!("{}: {what}", ask.url)),
            }
        }
        maker.list()
    }

    /// Makes a list of GETs of these URLs.
    pub fn from_urls<T: AsRef<str>>(urls: &[T]) -> Self {
        Self::from_asks(urls.iter().map(|url| ListedRequest::get(url.as_ref())))
    }
}

/// Lines that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnreadLines {
    /// The first unread lines.
    pub first: Vec<UnreadLine>,
    /// The number of unread lines.
    pub unread: u64,
}

impl UnreadLines {
    fn add(&mut self, fault: UnreadLine) {
        self.unread += 1;
        if self.first.len() < FAULTS_KEPT {
            self.first.push(fault);
        }
    }
}

impl fmt::Display for UnreadLines {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.first {
            writeln!(out, "{fault}")?;
        }
        let more = self.unread.saturating_sub(self.first.len() as u64);
        if more > 0 {
            writeln!(out, "{more} more lines could not be read")?;
        }
        Ok(())
    }
}

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadLine {
    /// File or URL.
    pub source: String,
    /// Line number, from 1; 0 for the whole source.
    pub line: u64,
    /// The reason.
    pub what: String,
}

impl fmt::Display for UnreadLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.source, self.what),
            line => write!(out, "{}:{line}: {}", self.source, self.what),
        }
    }
}

/// A list under construction.
#[derive(Debug, Default)]
struct Maker {
    list: List,
    known: HashMap<ListedRequest, u32>,
    weights: Vec<u64>,
}

impl Maker {
    /// Returns the number of a request, which is added if it is new.
    fn number(&mut self, ask: ListedRequest) -> u32 {
        if let Some(number) = self.known.get(&ask) {
            return *number;
        }
        // A sequence has far fewer than four billion requests.
        let number = u32::try_from(self.list.asks.len()).unwrap_or(u32::MAX);
        self.list.asks.push(ask.clone());
        self.weights.push(0);
        self.known.insert(ask, number);
        number
    }

    /// Adds a request that occurs `weight` times per pass.
    fn add(&mut self, ask: ListedRequest, weight: u64) {
        let number = self.number(ask);
        if let Some(own) = self.weights.get_mut(number as usize) {
            *own = own.saturating_add(weight);
        }
    }

    fn fault(&mut self, source: &str, line: u64, what: impl Into<String>) {
        self.list.faults.add(UnreadLine { source: source.to_owned(), line, what: what.into() });
    }

    /// Returns the list. A weighted request is spread over the pass; those of weight 1 keep their
    /// order.
    fn list(mut self) -> List {
        let total: u128 = self.weights.iter().map(|weight| u128::from(*weight)).sum();
        // For a list that would be too long, weights are scaled down.
        let scale = (total / SEQUENCE_MAX as u128 + 1) as u64;
        let mut places: Vec<(f64, u32)> = Vec::new();
        for (weight, number) in self.weights.iter().zip(0u32..) {
            let times = weight.div_ceil(scale);
            places.extend((0..times).map(|nth| ((nth as f64 + 0.5) / times as f64, number)));
        }
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.list.sequence = places.into_iter().map(|(_, number)| number).collect();
        self.list
    }
}

/// Checks that a URL can be requested: absolute with http or https and a host, or a path. Removes
/// the fragment.
fn checked_url(text: &str) -> Result<&str, &'static str> {
    let text = text.split('#').next().unwrap_or_default();
    if text.is_empty() {
        return Err("no URL");
    }
    if text.bytes().any(|b| b <= b' ' || b == 0x7f) {
        return Err("a URL has no blanks or control characters");
    }
    if text.starts_with('/') {
        return Ok(text);
    }
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| {
        text.get(..scheme.len())
            .filter(|own| own.eq_ignore_ascii_case(scheme))
            .and_then(|_| text.get(scheme.len()..))
    });
    match rest {
        None => Err("a URL begins with http://, https:// or /"),
        Some(rest) if rest.starts_with(['/', '?', ':']) || rest.is_empty() => {
            Err("a URL has a host")
        }
        Some(_) => Ok(text),
    }
}

#[cfg(test)]
mod tests;
