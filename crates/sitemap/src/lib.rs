//! Sitemaps (<https://www.sitemaps.org/protocol.html>): the pages that one names, or the further
//! sitemaps of an index, each with its line.
//!
//! Knows no network, no file and no compression. It must never take a page's picture or film for a
//! page.

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;

use std::fmt;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

/// The longest URL, as the protocol allows. A longer one is given cut, and longer than this.
pub const URL_BYTES_MAX: usize = 2048;
/// The deepest element that is read. The protocol has four levels.
const DEPTH_MAX: usize = 64;

/// A location in a sitemap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location<'a> {
    /// A page.
    Page(&'a str),
    /// A further sitemap, in an index.
    Sitemap(&'a str),
}

/// The reason why a sitemap cannot be read on, with its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, counted from 1.
    pub line: u64,
    /// The reason.
    pub reason: ErrorReason,
}

/// The reason why a sitemap cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorReason {
    /// It is not in UTF-8, which the protocol demands.
    Encoding,
    /// It is no well-formed XML.
    Xml(String),
    /// Its elements are nested too deep.
    Depth,
    /// There is no element of a sitemap.
    NoSitemap,
}

impl fmt::Display for ErrorReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding => f.write_str("not UTF-8"),
            Self::Xml(why) => f.write_str(why),
            Self::Depth => write!(f, "elements nested deeper than {DEPTH_MAX}"),
            Self::NoSitemap => {
                f.write_str("no sitemap: there is neither <urlset> nor <sitemapindex>")
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for Error {}

/// Reads a sitemap without compression. Each location goes to `sink` with its line, in order.
///
/// # Errors
/// The reason why it cannot be read on, after the locations before it.
pub fn read(xml: &[u8], sink: &mut dyn FnMut(u64, Location<'_>)) -> Result<(), Error> {
    let text = std::str::from_utf8(xml).map_err(|error| Error {
        line: Lines::of(xml).at(error.valid_up_to() as u64),
        reason: ErrorReason::Encoding,
    })?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let (mut lines, mut place) = (Lines::of(xml), Vec::new());
    let mut location = String::new();
    let mut is_sitemap = false;
    loop {
        let event = reader.read_event().map_err(|error| Error {
            line: Lines::of(xml).at(reader.error_position()),
            reason: ErrorReason::Xml(error.to_string()),
        })?;
        match event {
            Event::Start(start) => {
                place.push(Element::of(start.local_name().as_ref()));
                location.clear();
                if place.len() > DEPTH_MAX {
                    let line = lines.at(reader.buffer_position());
                    return Err(Error { line, reason: ErrorReason::Depth });
                }
            }
            Event::Text(part) => push(&mut location, &part),
            Event::CData(part) => push(&mut location, &part),
            Event::GeneralRef(name) => {
                let number = name.resolve_char_ref().ok().flatten().map(String::from);
                let named = number.or_else(|| resolve_predefined_entity(&name).map(str::to_owned));
                push(&mut location, &named.unwrap_or_else(|| format!("&{};", &*name)));
            }
            Event::End(_) => {
                match place.as_slice() {
                    [.., Element::Url, Element::Loc] => {
                        let line = lines.at(reader.buffer_position());
                        sink(line, Location::Page(location.trim()));
                    }
                    [.., Element::Sitemap, Element::Loc] => {
                        let line = lines.at(reader.buffer_position());
                        sink(line, Location::Sitemap(location.trim()));
                    }
                    [.., Element::Root] => is_sitemap = true,
                    _ => {}
                }
                place.pop();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match is_sitemap {
        true => Ok(()),
        false => Err(Error { line: 1, reason: ErrorReason::NoSitemap }),
    }
}

/// An element by its local name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Element {
    /// `urlset` or `sitemapindex`.
    Root,
    Url,
    Sitemap,
    Loc,
    Other,
}

impl Element {
    fn of(name: &str) -> Self {
        match name {
            "urlset" | "sitemapindex" => Self::Root,
            "url" => Self::Url,
            "sitemap" => Self::Sitemap,
            "loc" => Self::Loc,
            _ => Self::Other,
        }
    }
}

/// Appends to `location` up to somewhat more than the longest URL.
fn push(location: &mut String, part: &str) {
    if location.len() <= URL_BYTES_MAX {
        location.push_str(part);
    }
}

/// The lines of a text, for offsets that ascend.
struct Lines<'a> {
    rest: &'a [u8],
    offset: u64,
    line: u64,
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self { rest: text, offset: 0, line: 1 }
    }

    /// The line of an offset, which is not below an earlier one.
    fn at(&mut self, offset: u64) -> u64 {
        let passed = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let (before, rest) = self.rest.split_at(passed.min(self.rest.len()));
        self.line += memchr::memchr_iter(b'\n', before).count() as u64;
        self.offset += before.len() as u64;
        self.rest = rest;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locations(xml: &[u8]) -> (Vec<(u64, String)>, Result<(), Error>) {
        let mut found = Vec::new();
        let result = read(xml, &mut |line, location| {
            found.push(match location {
                Location::Page(url) => (line, url.to_owned()),
                Location::Sitemap(url) => (line, format!("index {url}")),
            });
        });
        (found, result)
    }

    #[test]
    fn pages_are_read_with_their_entities_and_pictures_left() {
        let xml = "<?xml version='1.0' encoding='UTF-8'?>
<!-- made by hand -->
<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:image='http://a.test/i'>
 <url><loc>http://a.test/?p=1&amp;q=2</loc><lastmod>2026-01-01</lastmod>
  <image:image><image:loc>http://a.test/picture.png</image:loc></image:image></url>
 <url><loc><![CDATA[ http://a.test/two ]]></loc></url>
 <url><loc>http://a.test/&#x33;</loc></url>
</urlset>";
        let (found, result) = locations(xml.as_bytes());
        let wanted =
            [(4, "http://a.test/?p=1&q=2"), (6, "http://a.test/two"), (7, "http://a.test/3")];
        let found: Vec<_> = found.iter().map(|(line, url)| (*line, url.as_str())).collect();
        assert_eq!((found.as_slice(), result), (wanted.as_slice(), Ok(())));
    }

    #[test]
    fn an_index_names_sitemaps() {
        let xml = "\u{feff}<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap>\n
          <sitemap><loc> http://a.test/2.xml </loc></sitemap></sitemapindex>";
        let (found, result) = locations(xml.as_bytes());
        let found: Vec<_> = found.iter().map(|(_, url)| url.as_str()).collect();
        assert_eq!(found, ["index http://a.test/1.xml", "index http://a.test/2.xml"]);
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn broken_ones_are_reported_by_their_line() {
        for (xml, line, reason) in [
            (&b"<urlset>\n<url>\n</loc></urlset>"[..], 3, None),
            (b"<html></html>", 1, Some(ErrorReason::NoSitemap)),
            (b"", 1, Some(ErrorReason::NoSitemap)),
            (b"plain\n", 1, Some(ErrorReason::NoSitemap)),
            (b"<urlset>\n\xff", 2, Some(ErrorReason::Encoding)),
        ] {
            let error = locations(xml).1.expect_err("it is broken");
            assert_eq!(error.line, line, "{error}");
            assert!(reason.is_none_or(|reason| reason == error.reason), "{error}");
        }
        let deep = "<a>".repeat(DEPTH_MAX + 1);
        let error = locations(deep.as_bytes()).1.expect_err("it is deep");
        assert_eq!(error.reason, ErrorReason::Depth);
    }

    #[test]
    fn a_long_location_is_cut_and_recognisable() {
        let xml = format!("<urlset><url><loc>{}</loc></url></urlset>", "&amp;".repeat(9_000));
        let (found, _) = locations(xml.as_bytes());
        assert_eq!(found[0].1.len(), URL_BYTES_MAX + 1);
    }
}
