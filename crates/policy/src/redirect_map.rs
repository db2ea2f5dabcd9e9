//! Redirect map: the redirects of a file, one in each line.
//!
//! A lookup allocates nothing. A target comes from the file alone, but for the client's query
//! behind it: nothing that a client sends chooses the host.

use std::collections::{HashMap, HashSet};
use std::fmt;

use base::HashSeed;
use message::{Request, Status, class, header, target};

use crate::hosts::SeededState;
use crate::points::Synthetic;

/// The redirects of a file.
#[derive(Debug)]
pub struct RedirectMap {
    lines: Vec<RedirectLine>,
    /// Lines for a path with any query.
    by_path: Index,
    /// Lines for a path with a query.
    by_target: Index,
    repeated: Option<RepeatedLines>,
}

/// The positions of lines by what they are for.
type Index = HashMap<Box<[u8]>, u32, SeededState>;

/// A redirect of a file.
#[derive(Debug)]
pub struct RedirectLine {
    /// The number of the line in its file, from 1 on.
    pub number: usize,
    /// Its own status.
    pub status: Option<Status>,
    /// The new URL up to its fragment.
    url: Box<[u8]>,
    /// The fragment, with its `#`.
    fragment: Box<[u8]>,
    /// The client's query follows the new URL.
    keeps_query: bool,
}

/// Lines that say again what an earlier line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedLines {
    /// The first of them, from 1 on.
    pub line: usize,
    /// The line that it repeats.
    pub earlier: usize,
    /// Their number.
    pub count: usize,
}

impl fmt::Display for RepeatedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, earlier, count } = self;
        write!(f, "line {line} says again what line {earlier} says")?;
        match count {
            1 => Ok(()),
            _ => write!(f, " ({count} lines are repeated)"),
        }
    }
}

/// The reason why a file of redirects is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectMapError {
    /// The line, from 1 on.
    pub line: usize,
    /// The reason.
    pub why: RedirectLineError,
}

/// The reason why a line is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectLineError {
    /// Not two or three words.
    Words,
    /// The status is not one of 301, 302, 303, 307, 308.
    Status,
    /// The old URL is not a path, with or without a query, that a client can send.
    Old,
    /// The new URL is neither a path nor `http://` or `https://` with a host.
    New,
    /// The new URL begins with two slashes, or a slash and a backslash: that is another host.
    Host,
    /// An earlier line has another target for this URL.
    Conflict(usize),
    /// The redirect leads back to itself, over this many further lines.
    Loop(usize),
}

impl fmt::Display for RedirectMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for RedirectMapError {}

impl fmt::Display for RedirectLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words => f.write_str("expected an old URL, a new one, and perhaps a status"),
            Self::Status => f.write_str("a redirect's status is 301, 302, 303, 307 or 308"),
            Self::Old => f.write_str(
                "the old URL is a path that begins with `/`, with or without a query: no host, no \
                 `#`, no pattern",
            ),
            Self::New => f.write_str(
                "the new URL is a path that begins with `/`, or begins with `https://` or `http://` \
                 and a host",
            ),
            Self::Host => f.write_str(
                "a new URL that begins with `//` leads to another host: write `https://` if that \
                 is meant",
            ),
            Self::Conflict(earlier) => {
                write!(f, "line {earlier} has another target for the same URL")
            }
            Self::Loop(0) => f.write_str("the redirect leads to itself"),
            Self::Loop(1) => f.write_str("a loop: the redirect leads back over another line"),
            Self::Loop(lines) => write!(f, "a loop: the redirect leads back over {lines} lines"),
        }
    }
}

/// The redirect for a request.
#[derive(Debug)]
pub struct FoundRedirect<'a> {
    /// Its line.
    pub line: &'a RedirectLine,
    /// The response.
    pub response: Synthetic,
}

impl RedirectMap {
    /// Reads lines of `old new [status]`. Empty lines and what follows a `#` between blanks are
    /// ignored, and a `;` at the end of a line, as nginx's files have it.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &[u8]) -> Result<Self, RedirectMapError> {
        let index = || Index::with_hasher(SeededState(HashSeed::random()));
        let (by_path, by_target) = (index(), index());
        let mut map = Self { lines: Vec::new(), by_path, by_target, repeated: None };
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            map.add(at + 1, line).map_err(|why| RedirectMapError { line: at + 1, why })?;
        }
        Ok(map)
    }

    /// Adds the redirect of a line, if there is one.
    fn add(&mut self, number: usize, line: &[u8]) -> Result<(), RedirectLineError> {
        let line = line.trim_ascii_end();
        let line = line.strip_suffix(b";").unwrap_or(line);
        let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = words.take_while(|word| !word.starts_with(b"#")).collect();
        let (old, new, status) = match words[..] {
            [] => return Ok(()),
            [old, new] => (old, new, None),
            [old, new, status] => (old, new, Some(status_of(status)?)),
            _ => return Err(RedirectLineError::Words),
        };
        let old = old_of(old).ok_or(RedirectLineError::Old)?;
        let has_query = old.contains(&b'?');
        let mut own = new_of(new)?;
        (own.number, own.status) = (number, status);
        own.keeps_query &= !has_query;
        let index = if has_query { &mut self.by_target } else { &mut self.by_path };
        let place = u32::try_from(self.lines.len()).map_err(|_| RedirectLineError::Words)?;
        if let Some(earlier) = index.get(&*old).map(|at| &self.lines[*at as usize]) {
            if !own.says_as(earlier) {
                return Err(RedirectLineError::Conflict(earlier.number));
            }
            let first = RepeatedLines { line: number, earlier: earlier.number, count: 0 };
            self.repeated.get_or_insert(first).count += 1;
            return Ok(());
        }
        index.insert(old, place);
        self.lines.push(own);
        Ok(())
    }

    /// The number of redirects.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if there is no redirect.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines that say again what others say, if there are any.
    pub fn repeated(&self) -> Option<RepeatedLines> {
        self.repeated
    }

    /// Looks for redirects that lead back to themselves; a URL with one of `hosts` is one of the
    /// site.
    ///
    /// # Errors
    /// The first line of a loop.
    pub fn refuse_loops(&self, hosts: &[String]) -> Result<(), RedirectMapError> {
        // Targets from which every walk is known to end.
        let mut done: HashSet<Vec<u8>> = HashSet::new();
        let mut found: Option<RedirectMapError> = None;
        for first in self.by_path.keys().chain(self.by_target.keys()) {
            let (mut steps, mut places) = (Vec::new(), HashMap::new());
            let mut target = first.to_vec();
            while let Some(line) = self.position(&target).filter(|_| !done.contains(&target)) {
                let next = self.next(line, &target, hosts);
                if let Some(start) = places.insert(target, steps.len()) {
                    let ring = self.loop_of(&steps[start..]);
                    found = found.filter(|earlier| earlier.line < ring.line).or(Some(ring));
                    break;
                }
                steps.push(line);
                let Some(next) = next else { break };
                target = next;
            }
            done.extend(places.into_keys());
        }
        found.map_or(Ok(()), Err)
    }

    /// The error for a loop of these lines.
    fn loop_of(&self, ring: &[usize]) -> RedirectMapError {
        let line = ring.iter().map(|at| self.lines[*at].number).min().unwrap_or_default();
        RedirectMapError { line, why: RedirectLineError::Loop(ring.len() - 1) }
    }

    /// The target on this site that the line at `at` leads a request for `target` to.
    fn next(&self, at: usize, target: &[u8], hosts: &[String]) -> Option<Vec<u8>> {
        let RedirectLine { url, keeps_query, .. } = &self.lines[at];
        let query = memchr::memchr(b'?', target).filter(|_| *keeps_query);
        let query = query.map_or(&b""[..], |end| &target[end..]);
        if url.starts_with(b"/") {
            return Some([url, query].concat());
        }
        let (host, rest) = split_host(url)?;
        let is_own = hosts.iter().any(|own| own.as_bytes().eq_ignore_ascii_case(host));
        let slash: &[u8] = if rest.starts_with(b"/") { b"" } else { b"/" };
        is_own.then(|| [slash, rest, query].concat())
    }

    fn position(&self, target: &[u8]) -> Option<usize> {
        let end = memchr::memchr(b'?', target);
        let whole = end.and_then(|_| self.by_target.get(target));
        let found = whole.or_else(|| self.by_path.get(&target[..end.unwrap_or(target.len())]));
        found.map(|at| *at as usize)
    }

    /// The redirect for `request`, whose status is `status` if the line has none. Its path must
    /// have the [spelling](target::canonical) that all have.
    pub fn find(&self, request: &Request, status: Status) -> Option<FoundRedirect<'_>> {
        let line = &self.lines[self.position(&request.target)?];
        let query = &request.target[request.path().len()..];
        let query = if line.keeps_query { query } else { b"" };
        let location = [&line.url, query, &line.fragment].concat();
        header::is_value(&location).then(|| FoundRedirect {
            line,
            response: Synthetic {
                status: line.status.unwrap_or(status),
                fields: vec![(b"Location".to_vec(), location)],
                body: Vec::new(),
                close: false,
            },
        })
    }
}

impl RedirectLine {
    fn says_as(&self, other: &Self) -> bool {
        let parts = |line: &Self| (line.url.clone(), line.fragment.clone(), line.keeps_query);
        self.status == other.status && parts(self) == parts(other)
    }
}

fn status_of(word: &[u8]) -> Result<Status, RedirectLineError> {
    let code = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    let code = code.filter(|code| matches!(code, 301 | 302 | 303 | 307 | 308));
    code.and_then(Status::new).ok_or(RedirectLineError::Status)
}

/// The target that requests for an old URL have.
fn old_of(word: &[u8]) -> Option<Box<[u8]>> {
    let spelt = spelt(word)?;
    let path = spelt.split(|byte| *byte == b'?').next().unwrap_or_default();
    let is_sent = spelt.starts_with(b"/") && memchr::memmem::find(path, b"%00").is_none();
    is_sent.then(|| spelt.into())
}

/// The redirect to a new URL.
fn new_of(word: &[u8]) -> Result<RedirectLine, RedirectLineError> {
    let end = memchr::memchr(b'#', word).unwrap_or(word.len());
    let (url, fragment) = word.split_at(end);
    let url = match url {
        [b'/', b'/' | b'\\', ..] => return Err(RedirectLineError::Host),
        [b'/', ..] => spelt(url).ok_or(RedirectLineError::New)?,
        _ => {
            let (host, path) = split_host(url).ok_or(RedirectLineError::New)?;
            let is_host =
                |byte: &u8| class::is(*byte, class::HOST) || matches!(byte, b':' | b'[' | b']');
            if host.is_empty() || !host.iter().all(is_host) {
                return Err(RedirectLineError::New);
            }
            let path = spelt(path).ok_or(RedirectLineError::New)?;
            [&url[..url.len() - path_len(url)], &path].concat()
        }
    };
    let mut escaped = Vec::new();
    target::push(fragment, &mut escaped);
    if !escaped.iter().all(u8::is_ascii_graphic) {
        return Err(RedirectLineError::New);
    }
    // A question mark at the end says that there is no query, as in nginx's `rewrite`.
    let keeps_query = !url.contains(&b'?');
    let url = url.strip_suffix(b"?").map(<[u8]>::to_vec).unwrap_or(url);
    let (url, fragment) = (url.into(), escaped.into());
    Ok(RedirectLine { number: 0, status: None, url, fragment, keeps_query })
}

/// The host of an absolute URL, and what follows it; `None` for another URL.
fn split_host(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let scheme = |name: &[u8]| {
        let (begin, rest) = url.split_at_checked(name.len())?;
        begin.eq_ignore_ascii_case(name).then_some(rest)
    };
    let rest = scheme(b"https://").or_else(|| scheme(b"http://"))?;
    Some(rest.split_at(memchr::memchr2(b'/', b'?', rest).unwrap_or(rest.len())))
}

/// The length of what follows the host of an absolute URL.
fn path_len(url: &[u8]) -> usize {
    split_host(url).map_or(0, |(_, rest)| rest.len())
}

/// A path, with or without a query, in the one spelling that requests have; `None` if it has bytes
/// that no target has.
fn spelt(word: &[u8]) -> Option<Vec<u8>> {
    let mut request = Request::new();
    request.target.clear();
    target::push(word, &mut request.target);
    if !class::all(&request.target, class::TARGET) {
        return None;
    }
    target::canonical(&mut request);
    Some(request.target)
}

#[cfg(test)]
mod tests;
