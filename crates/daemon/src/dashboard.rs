//! The dashboard: a page with its modules, built into the binary, and the stream of figures for it.
//!
//! The page loads nothing from elsewhere. It holds no data, so it needs no token: its figures come
//! from the API, for which its reader types a token in.

use std::sync::Arc;

use admin::{AdminRequest, AdminResponse, Body};
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use tokio::sync::mpsc;

use crate::documents;
use crate::live::{LiveFigures, Viewer, event};
use crate::state::Daemon;

/// A file: path, media type, bytes.
type File = (&'static str, &'static str, &'static [u8]);

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

macro_rules! files {
    ($($path:literal $kind:ident $file:literal;)*) => {
        &[$(($path, $kind, include_bytes!(concat!("../dashboard/", $file))),)*]
    };
}

const FILES: &[File] = files! {
    "/" HTML "index.html";
    "/app.css" STYLE "app.css";
    "/app.js" SCRIPT "app.js";
    "/advice.js" SCRIPT "advice.js";
    "/api.js" SCRIPT "api.js";
    "/board.js" SCRIPT "board.js";
    "/charts.js" SCRIPT "charts.js";
    "/cluster.js" SCRIPT "cluster.js";
    "/config.js" SCRIPT "config.js";
    "/dom.js" SCRIPT "dom.js";
    "/explain.js" SCRIPT "explain.js";
    "/format.js" SCRIPT "format.js";
    "/history.js" SCRIPT "history.js";
    "/icon.svg" IMAGE "icon.svg";
    "/news.js" SCRIPT "news.js";
    "/origins.js" SCRIPT "origins.js";
    "/purge.js" SCRIPT "purge.js";
    "/sites.js" SCRIPT "sites.js";
    "/tables.js" SCRIPT "tables.js";
    "/uplot-license.txt" TEXT "vendor/uplot.LICENSE";
    "/uplot.css" STYLE "vendor/uplot.css";
    "/uplot.js" SCRIPT "vendor/uplot.js";
};

/// Events in flight to one viewer; a slower viewer misses newer ones.
const UNDER_WAY: usize = 4;

/// The file at `path`.
pub(crate) fn file(path: &str) -> AdminResponse {
    match FILES.iter().find(|(own, ..)| *own == path) {
        Some((_, content_type, bytes)) => {
            AdminResponse { status: StatusCode::OK, content_type, body: Body::Static(bytes) }
        }
        None => AdminResponse::refusal(StatusCode::NOT_FOUND, "the dashboard has no such file"),
    }
}

/// Streams figures as server-sent events until the viewer leaves: first a greeting
/// with the viewer's role, then the history, then one event a second; of one site if one is named.
pub(crate) fn live(
    daemon: &Daemon,
    live: &Arc<LiveFigures>,
    asked: &AdminRequest,
) -> AdminResponse {
    let now = daemon.shared.live();
    let (caller, site) = (asked.caller, asked.parameter("site"));
    if site.is_some_and(|site| !now.sites.listed.iter().any(|own| *own.name == *site)) {
        return AdminResponse::refusal(
            StatusCode::NOT_FOUND,
            "no site has this name: its first host is",
        );
    }
    let Some(viewer) = live.view(site.map(str::to_owned), now.limits.dashboard_viewers) else {
        let why = "no more dashboards may be open (limit: dashboard_viewers)";
        return AdminResponse::refusal(StatusCode::SERVICE_UNAVAILABLE, why);
    };
    let hello = json!({
        "role": caller.role.map(admin::Role::word),
        "version": env!("CARGO_PKG_VERSION"),
        "docs": documents::is_there(daemon.documents()),
        "host": rustix::system::uname().nodename().to_string_lossy(),
    });
    let (events, sent) = mpsc::channel(UNDER_WAY);
    rt::spawn(send(viewer, event("hello", &hello), events));
    AdminResponse {
        status: StatusCode::OK,
        content_type: "text/event-stream",
        body: Body::Stream(sent),
    }
}

async fn send(mut viewer: Viewer, hello: Bytes, events: mpsc::Sender<Bytes>) {
    for first in [hello, viewer.history()] {
        if events.send(first).await.is_err() {
            return;
        }
    }
    loop {
        let next = tokio::select! {
            next = viewer.next() => next,
            () = events.closed() => return,
        };
        let Some(next) = next else { return };
        if events.send(next).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use admin::Operation;
    use admin::routes::{Content, RouteAccess, TABLE};

    use super::*;

    /// The modules of our own. A library that draws gets only numbers.
    fn own() -> impl Iterator<Item = (&'static str, &'static str)> {
        let own = FILES.iter().filter(|(path, ..)| !path.starts_with("/uplot"));
        own.map(|(path, _, bytes)| (*path, std::str::from_utf8(bytes).expect("text")))
    }

    #[test]
    fn every_file_has_a_route_that_needs_nothing_and_every_route_a_file() {
        let routes: Vec<_> =
            TABLE.iter().filter(|route| route.operation == Operation::Dashboard).collect();
        assert_eq!(routes.len(), FILES.len());
        for route in routes {
            assert_eq!(route.needs, RouteAccess::Public);
            let Content::Other(kind) = route.gives else { panic!("{}", route.path) };
            let answer = file(route.path);
            assert_eq!((answer.status, answer.content_type), (StatusCode::OK, kind));
            assert!(answer.body.bytes().is_some_and(|bytes| !bytes.is_empty()));
        }
    }

    #[test]
    fn nothing_is_ever_inserted_as_markup_and_no_text_ever_run() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "setHTML",
            "parseHTML",
            "srcdoc",
            "javascript:",
            "eval(",
            "new Function",
            "import(",
            "setTimeout('",
            "setTimeout(\"",
            "cssText",
        ];
        for (path, text) in own() {
            for way in ways {
                assert!(!text.contains(way), "{path}: {way}");
            }
        }
    }

    #[test]
    fn only_one_place_makes_elements() {
        for (path, text) in own().filter(|(path, _)| *path != "/dom.js") {
            assert!(!text.contains("createElement"), "{path}");
        }
    }

    #[test]
    fn the_page_has_no_script_and_no_style_of_its_own() {
        let (_, page) = own().find(|(path, _)| *path == "/").expect("a page");
        assert!(!page.contains("<style") && !page.contains("style="));
        let handler = |word: &&str| word.starts_with("on") && word.contains('=');
        assert_eq!(page.split_whitespace().find(handler), None);
        for script in page.split("<script").skip(1) {
            let (attributes, rest) = script.split_once('>').expect("an end");
            assert!(attributes.contains("src=\"/") && rest.starts_with("</script>"), "{script}");
        }
    }

    #[test]
    fn nothing_is_asked_for_elsewhere() {
        for (path, text) in own().filter(|(path, _)| *path != "/icon.svg") {
            for (at, _) in text.match_indices("//") {
                let before = text[..at].trim_end();
                let example = text[at..].starts_with("//example.com") || before.ends_with("}:");
                let comment =
                    text[..at].rsplit('\n').next().is_some_and(|line| line.trim().is_empty());
                assert!(example || comment, "{path}: {}", &text[at..].lines().next().unwrap_or(""));
            }
        }
    }

    #[test]
    fn every_help_link_leads_to_a_page_of_the_documentation() {
        let tree = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let (_, page) = own().find(|(path, _)| *path == "/").expect("a page");
        let links: Vec<_> = page.split("href=\"/docs/").skip(1).collect();
        assert_eq!(links.len(), page.matches("class=\"help\"").count());
        for link in links {
            let link = link.split(['"', '#']).next().expect("a link");
            let source = match link.strip_suffix(".html") {
                Some(name) => tree.join(format!("{name}.md")),
                None => tree.join(link).join("README.md"),
            };
            assert!(source.is_file(), "{link}");
        }
    }

    #[test]
    fn every_import_is_a_file_that_is_there() {
        for (path, text) in own() {
            for part in text.split(" from './").skip(1) {
                let name = part.split('\'').next().expect("a name");
                let there = FILES.iter().any(|(own, ..)| own[1..] == *name);
                assert!(there, "{path} imports {name}");
            }
        }
    }
}
