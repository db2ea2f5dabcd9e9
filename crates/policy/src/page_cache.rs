//! Page cache of an application's plugin: the path of a page on the disk.
//!
//! Used after the cache and before the application, and only for requests that the cache may answer
//! without cookies. The path comes from the canonical request, and is opened below the
//! application's root like any other file, so it must never lead elsewhere.

use message::{HeaderId, Request, Scheme};

use crate::points::PageCache;

/// The path, below the application's root, of the page for `request`; `None` if the plugin writes
/// none for it.
pub fn place(plugin: PageCache, request: &Request) -> Option<Vec<u8>> {
    let headers = &request.headers;
    let personal = headers.contains(HeaderId::Cookie) || headers.contains(HeaderId::Authorization);
    let (host, path) = (&*request.host, request.path());
    if personal || !is_name(host) {
        return None;
    }
    let secure = if request.scheme == Scheme::Https { "-https" } else { "" };
    let below = |folder: &str, file: &str| {
        // Both plugins write for addresses with a final slash only; WordPress redirects others.
        let whole = request.query().is_none() && path.ends_with(b"/");
        whole.then(|| [folder.as_bytes(), host, path, file.as_bytes()].concat())
    };
    match plugin {
        PageCache::WpSuperCache => {
            below("/wp-content/cache/supercache/", &format!("index{secure}.html"))
        }
        PageCache::WpRocket => {
            let mobile = if is_mobile(request) { "-mobile" } else { "" };
            below("/wp-content/cache/wp-rocket/", &format!("index{mobile}{secure}.html"))
        }
        PageCache::Boost => {
            let query = request.query().unwrap_or_default();
            // A slash in it would be another folder.
            let plain = !query.contains(&b'/') && request.scheme == Scheme::Http;
            plain.then(|| [b"/cache/normal/", host, path, b"_", query, b".html"].concat())
        }
    }
}

/// Returns true if a host can be the name of a folder: not an address in brackets, and without
/// bytes that are special to a file system.
fn is_name(host: &[u8]) -> bool {
    let good = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    !host.is_empty() && !host.starts_with(b".") && host.iter().all(good)
}

/// Returns true if WP Rocket has a separate page for this browser (its `rocket-nginx` has this
/// test).
fn is_mobile(request: &Request) -> bool {
    let agent = request.headers.value(HeaderId::UserAgent).unwrap_or_default();
    ["Mobi", "Android", "iPad", "Kindle", "Silk/", "Opera Mini", "BlackBerry", "webOS"]
        .iter()
        .any(|word| memchr::memmem::find(agent, word.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(scheme: Scheme, host: &str, target: &str) -> Request {
        let mut request = Request::new();
        request.scheme = scheme;
        request.host.extend_from_slice(host.as_bytes());
        request.target.extend_from_slice(target.as_bytes());
        request
    }

    fn placed(plugin: PageCache, scheme: Scheme, host: &str, target: &str) -> String {
        let place = place(plugin, &request(scheme, host, target)).unwrap_or_default();
        String::from_utf8(place).expect("text")
    }

    #[test]
    fn each_plugin_has_its_own_layout() {
        use PageCache::{Boost, WpRocket, WpSuperCache};
        use Scheme::{Http, Https};
        for (plugin, scheme, target, expected) in [
            (WpSuperCache, Http, "/", "/wp-content/cache/supercache/a.test/index.html"),
            (WpSuperCache, Https, "/x/", "/wp-content/cache/supercache/a.test/x/index-https.html"),
            (WpSuperCache, Https, "/x", ""),
            (WpSuperCache, Https, "/x/?a=b", ""),
            (WpRocket, Https, "/x/", "/wp-content/cache/wp-rocket/a.test/x/index-https.html"),
            (WpRocket, Http, "/", "/wp-content/cache/wp-rocket/a.test/index.html"),
            (Boost, Http, "/", "/cache/normal/a.test/_.html"),
            (Boost, Http, "/node/1", "/cache/normal/a.test/node/1_.html"),
            (Boost, Http, "/node/1?page=2", "/cache/normal/a.test/node/1_page=2.html"),
            (Boost, Http, "/node/1?/../x", ""),
            (Boost, Https, "/node/1", ""),
        ] {
            assert_eq!(placed(plugin, scheme, "a.test", target), expected, "{plugin:?} {target}");
        }
        let mut mobile = request(Https, "a.test", "/");
        mobile.headers.push(HeaderId::UserAgent, b"Mozilla/5.0 (iPhone) Mobile/15E148");
        let place = place(WpRocket, &mobile).expect("a place");
        assert!(place.ends_with(b"/index-mobile-https.html"));
    }

    #[test]
    fn hosts_that_are_no_names_and_visitors_with_a_name_have_no_page() {
        for host in ["", "..", ".", "a/b", "[::1]", ".a", "a\\b", "a%2f"] {
            assert_eq!(placed(PageCache::WpSuperCache, Scheme::Http, host, "/"), "", "{host}");
        }
        for id in [HeaderId::Cookie, HeaderId::Authorization] {
            let mut known = request(Scheme::Http, "a.test", "/");
            known.headers.push(id, b"x");
            assert_eq!(place(PageCache::WpSuperCache, &known), None);
        }
    }
}
