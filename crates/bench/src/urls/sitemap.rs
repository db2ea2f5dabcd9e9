//! Sitemaps as lists: files, and the files of indexes, gzipped or not
//! (<https://www.sitemaps.org/protocol.html>).

use std::collections::HashSet;

use quick_xml::Reader;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::Event;

use super::log::unpacked;
use super::{List, ListedRequest, Maker, checked_url};

/// Most files of all indexes. An index has at most 50,000, and a site usually some ten.
const FILES_MAX: usize = 1000;
/// Largest file after decompression, as the protocol allows.
const FILE_MAX: u64 = 50 << 20;
/// Longest URL, as the protocol allows.
const URL_MAX: usize = 2048;

/// Reads a sitemap and, if it is an index, its files, which `fetch` gets by URL.
pub fn from_sitemap(
    name: &str,
    bytes: &[u8],
    fetch: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
) -> List {
    let mut maker = Maker::default();
    let mut seen = HashSet::new();
    let mut queue = Vec::new();
    read(name, bytes, &mut maker, &mut queue);
    queue.reverse();
    while let Some(url) = queue.pop() {
        if !seen.insert(url.clone()) {
            continue;
        }
        if seen.len() > FILES_MAX {
            maker.fault(&url, 0, format!("more than {FILES_MAX} files"));
            break;
        }
        match fetch(&url) {
            Ok(bytes) => {
                let mut more = Vec::new();
                read(&url, &bytes, &mut maker, &mut more);
                queue.extend(more.into_iter().rev());
            }
            Err(error) => maker.fault(&url, 0, error),
        }
    }
    maker.list()
}

/// Reads one file: its pages into `maker`, further files into `files`.
fn read(source: &str, bytes: &[u8], maker: &mut Maker, files: &mut Vec<String>) {
    let unpacked = match unpacked(bytes, FILE_MAX) {
        Ok(unpacked) => unpacked,
        Err(error) => return maker.fault(source, 0, error),
    };
    let bytes = unpacked.as_deref().unwrap_or(bytes);
    let xml = match std::str::from_utf8(bytes) {
        Ok(xml) => xml.trim_start_matches('\u{feff}'),
        Err(error) => {
            let at = error.valid_up_to() as u64;
            return maker.fault(source, line(bytes, at), "not UTF-8");
        }
    };
    let mut reader = Reader::from_str(xml);
    let mut place: Vec<String> = Vec::new();
    let mut text = String::new();
    let mut found = false;
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let at = reader.error_position();
                return maker.fault(source, line(bytes, at), error.to_string());
            }
        };
        match event {
            Event::Start(start) => {
                place.push(start.local_name().as_ref().to_owned());
                text.clear();
            }
            Event::Text(part) => push(&mut text, &part),
            Event::CData(part) => push(&mut text, &part),
            Event::GeneralRef(name) => {
                let number = name.resolve_char_ref().ok().flatten().map(String::from);
                let named = number.or_else(|| resolve_predefined_entity(&name).map(str::to_owned));
                push(&mut text, &named.unwrap_or_else(|| format!("&{};", &*name)));
            }
            Event::End(_) => {
                let own: Vec<_> = place.iter().rev().take(2).map(String::as_str).collect();
                let number = line(bytes, reader.buffer_position());
                match own.as_slice() {
                    ["loc", "url"] => page(source, number, text.trim(), maker),
                    ["loc", "sitemap"] => files.push(text.trim().to_owned()),
                    _ => {}
                }
                found |= matches!(own.as_slice(), ["urlset" | "sitemapindex"]);
                place.pop();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if !found {
        maker.fault(source, 1, "no sitemap: there is neither <urlset> nor <sitemapindex>");
    }
}

fn page(source: &str, number: u64, url: &str, maker: &mut Maker) {
    if url.len() > URL_MAX {
        return maker.fault(source, number, format!("a URL of more than {URL_MAX} bytes"));
    }
    match checked_url(url) {
        Ok(url) => maker.add(ListedRequest::get(url), 1),
        Err(what) => maker.fault(source, number, what),
    }
}

/// Appends to `text` up to somewhat more than the longest URL.
fn push(text: &mut String, part: &str) {
    if text.len() <= URL_MAX {
        text.push_str(part);
    }
}

/// The line number of an offset.
fn line(bytes: &[u8], at: u64) -> u64 {
    let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let before = bytes.get(..at).unwrap_or_default();
    before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: &str = "<?xml version='1.0' encoding='UTF-8'?>
<!-- made by hand -->
<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:image='http://www.google.com/i'>
 <url><loc>http://a.test/?p=1&amp;q=2</loc><lastmod>2026-01-01</lastmod>
  <image:image><image:loc>http://a.test/picture.png</image:loc></image:image></url>
 <url><loc><![CDATA[ http://a.test/two ]]></loc></url>
 <url><loc>http://a.test/&#x33;</loc></url>
 <url><loc>ftp://a.test/</loc></url>
</urlset>";

    fn urls(list: &List) -> Vec<&str> {
        list.asks().iter().map(|ask| ask.url.as_str()).collect()
    }

    fn nothing(url: &str) -> Result<Vec<u8>, String> {
        Err(format!("{url} was asked for"))
    }

    #[test]
    fn pages_are_read_with_their_entities_and_pictures_left() {
        let list = from_sitemap("s.xml", PAGES.as_bytes(), &mut nothing);
        assert_eq!(urls(&list), ["http://a.test/?p=1&q=2", "http://a.test/two", "http://a.test/3"]);
        assert_eq!(list.faults.first.len(), 1);
        assert_eq!((list.faults.first[0].line, list.faults.first[0].source.as_str()), (8, "s.xml"));
    }

    #[test]
    fn an_index_is_followed_once_and_missing_files_are_reported() {
        let index = "<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap>
          <sitemap><loc>http://a.test/gone.xml</loc></sitemap>
          <sitemap><loc>http://a.test/1.xml</loc></sitemap></sitemapindex>";
        let mut asked = Vec::new();
        let mut fetch = |url: &str| {
            asked.push(url.to_owned());
            match url {
                "http://a.test/1.xml" => Ok(PAGES.into()),
                _ => Err("404".to_owned()),
            }
        };
        let list = from_sitemap("index", index.as_bytes(), &mut fetch);
        assert_eq!(list.len(), 3);
        assert_eq!(asked, ["http://a.test/1.xml", "http://a.test/gone.xml"]);
        assert!(list.faults.to_string().contains("http://a.test/gone.xml: 404"), "{}", list.faults);
    }

    #[test]
    fn an_index_that_names_itself_ends() {
        let index = b"<sitemapindex><sitemap><loc>http://a.test/i</loc></sitemap></sitemapindex>";
        let list = from_sitemap("i", index, &mut |_| Ok(index.to_vec()));
        assert!(list.is_empty());
        let mut count = 0;
        let list = from_sitemap("i", index, &mut |_| {
            count += 1;
            let next = format!(
                "<sitemapindex><sitemap><loc>http://a.test/{count}</loc></sitemap></sitemapindex>"
            );
            Ok(next.into_bytes())
        });
        assert_eq!((count, list.faults.unread), (FILES_MAX, 1));
    }

    #[test]
    fn broken_files_are_reported_by_their_line() {
        let list = from_sitemap("s", b"<urlset>\n<url>\n</loc></urlset>", &mut nothing);
        assert_eq!(list.faults.first.first().map(|fault| fault.line), Some(3), "{:?}", list.faults);
        for other in [&b"<html></html>"[..], b"", b"plain", b"\x1f\x8bbroken", b"<a><b></a>"] {
            let list = from_sitemap("s", other, &mut nothing);
            assert_eq!(list.faults.unread, 1, "{other:?}: {:?}", list.faults);
        }
    }
}
