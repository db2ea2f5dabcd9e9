//! Sitemaps as lists: files, and the files of indexes, gzipped or not
//! (<https://www.sitemaps.org/protocol.html>).

use std::collections::HashSet;

use sitemap::{Location, URL_BYTES_MAX};

use super::log::unpacked;
use super::{List, ListedRequest, Maker, checked_url};

/// Most files of all indexes. An index has at most 50,000, and a site usually some ten.
const FILES_MAX: usize = 1000;
/// Largest file after decompression, as the protocol allows.
const FILE_MAX: u64 = 50 << 20;

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
    let read = sitemap::read(bytes, &mut |line, location| match location {
        Location::Page(url) => page(source, line, url, maker),
        Location::Sitemap(url) => files.push(url.to_owned()),
    });
    if let Err(error) = read {
        maker.fault(source, error.line, error.reason.to_string());
    }
}

fn page(source: &str, number: u64, url: &str, maker: &mut Maker) {
    if url.len() > URL_BYTES_MAX {
        return maker.fault(source, number, format!("a URL of more than {URL_BYTES_MAX} bytes"));
    }
    match checked_url(url) {
        Ok(url) => maker.add(ListedRequest::get(url), 1),
        Err(what) => maker.fault(source, number, what),
    }
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
