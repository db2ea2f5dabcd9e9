//! Pages assembled from fragments, as their origin has them and as clients get them.

use rt::simulation::{Draws, random};

/// Largest fragment, which is rare, in bytes.
const LARGEST: u64 = 4 << 20;

/// An assembled page.
#[derive(Debug)]
pub(crate) struct AssembledPage {
    /// The number of its site.
    pub(crate) site: usize,
    pub(crate) path: String,
    /// The lifetime; 0 if the page is not stored.
    ttl_s: u64,
    /// Length of each of its texts in bytes.
    text: u64,
    /// The numbers of its fragments, with a text before each and one behind the last.
    fragments: Vec<usize>,
}

/// A fragment.
#[derive(Debug)]
struct Fragment {
    path: String,
    ttl_s: u64,
    bytes: u64,
}

/// The pages of a schedule, and their fragments.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<AssembledPage>,
    fragments: Vec<Fragment>,
}

/// A body and its lifetime, as the origin sends them.
pub(crate) struct OriginContent {
    pub(crate) fields: String,
    pub(crate) body: Vec<u8>,
}

/// Letters that depend on the number and on their position.
fn letters(number: u64, bytes: u64) -> Vec<u8> {
    let letter =
        |at: u64| b'a' + ((at ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 % 26;
    (0..bytes).map(letter).collect()
}

impl Pages {
    /// Draws the pages of a schedule; most have none.
    pub(crate) fn draw(draw: &mut Draws) -> Self {
        if draw.below(6) != 0 {
            return Self::default();
        }
        let fragment = |draw: &mut Draws, number| {
            let most = draw.of([1_000, 1_000, 30_000, 300_000, 1 << 20]);
            let most = if draw.below(60) == 0 { LARGEST } else { most };
            // The program compresses what begins with `z` when it is stored.
            let kind = draw.of(["f", "z"]);
            Fragment {
                path: format!("/{kind}/{number}"),
                ttl_s: draw.of([0, 1, 20]),
                bytes: most / 2 + draw.below(most / 2),
            }
        };
        let count = 1 + draw.below(6);
        let fragments: Vec<_> = (0..count).map(|number| fragment(draw, number)).collect();
        let page = |draw: &mut Draws, number| AssembledPage {
            site: draw.below(2) as usize,
            path: format!("/p/{number}"),
            ttl_s: draw.of([0, 2, 20]),
            text: draw.of([10, 3_000, 80_000]),
            fragments: (0..1 + draw.below(5)).map(|_| draw.below(count) as usize).collect(),
        };
        let pages = 1 + draw.below(2);
        let pages = (0..pages).map(|number| page(draw, number)).collect();
        Self { pages, fragments }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// A random page.
    pub(crate) fn any(&self) -> &AssembledPage {
        &self.pages[random(self.pages.len() as u64) as usize]
    }

    /// The body of `page`, with each fragment as `fragment` makes it.
    fn body(&self, page: &AssembledPage, fragment: impl Fn(&Fragment) -> Vec<u8>) -> Vec<u8> {
        let mut body = b"<p>".to_vec();
        for (at, number) in page.fragments.iter().enumerate() {
            body.extend(letters(1_000 + at as u64, page.text));
            body.extend(fragment(&self.fragments[*number]));
        }
        body.extend(letters(999, page.text));
        body
    }

    /// The origin's page of `site` or fragment at `path`.
    pub(crate) fn origin_content(&self, site: usize, path: &str) -> Option<OriginContent> {
        let lives = |ttl_s: u64| match ttl_s {
            0 => "Cache-Control: private, no-store\r\n".to_owned(),
            ttl_s => format!("Cache-Control: max-age={ttl_s}\r\n"),
        };
        if let Some(number) = self.fragments.iter().position(|one| one.path == path) {
            let Fragment { ttl_s, bytes, .. } = &self.fragments[number];
            return Some(OriginContent {
                fields: lives(*ttl_s),
                body: letters(number as u64, *bytes),
            });
        }
        let page = self.pages.iter().find(|page| page.site == site && page.path == path)?;
        let include = |fragment: &Fragment| format!("<esi:include src=\"{}\"/>", fragment.path);
        let fields = "Content-Type: text/html\r\nSurrogate-Control: content=\"ESI/1.0\"\r\n";
        Some(OriginContent {
            fields: lives(page.ttl_s) + fields,
            body: self.body(page, |fragment| include(fragment).into_bytes()),
        })
    }

    /// The page as clients get it.
    pub(crate) fn assembled(&self, page: &AssembledPage) -> Vec<u8> {
        let numbered = |path: &str| self.fragments.iter().position(|one| one.path == path);
        self.body(page, |fragment| {
            letters(numbered(&fragment.path).unwrap_or_default() as u64, fragment.bytes)
        })
    }
}
