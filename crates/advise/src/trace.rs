//! Trace: the visits in order, each with what the present settings make of it. Detectors look for
//! their findings in it.

use message::Request;
use message::store::StorePlan;
use observe::record::Served;
use policy::SettingLocation;

use crate::reception::{Course, Reception, receive};
use crate::replay::{Figures, Replayed, replay_with};
use crate::sample::{Samples, shows_response};
use crate::settings::Settings;
use crate::visit::Visit;

/// A visit, received by the present settings.
#[derive(Debug)]
pub(crate) struct Seen<'t> {
    /// The visit.
    pub(crate) visit: &'t Visit,
    /// Index of its site.
    pub(crate) site: usize,
    /// Number of its route; 0 for the site's own settings.
    pub(crate) route: u32,
    /// The rule that decided.
    pub(crate) rule: String,
    /// The location of the rule's setting; `None` without one.
    pub(crate) place: Option<SettingLocation>,
    /// The next step.
    pub(crate) course: Course,
    /// The request has personal fields.
    pub(crate) is_personal: bool,
    /// The request in canonical form.
    pub(crate) request: Request,
    /// The plan for the origin's response, if the visit shows one.
    pub(crate) plan: Option<StorePlan>,
    /// The way in which the present settings serve it; `None` if no client asked.
    pub(crate) replayed: Option<Replayed>,
}

/// The visits, their responses, and the replay under the present settings.
#[derive(Debug)]
pub(crate) struct Trace<'t> {
    /// The present settings.
    pub(crate) settings: &'t Settings,
    /// Requests of clients, in order.
    pub(crate) clients: Vec<&'t Visit>,
    /// All visits that a site's policy receives, in order; fetches without a client, too.
    pub(crate) seen: Vec<Seen<'t>>,
    /// The origin's responses.
    pub(crate) samples: Samples<'t>,
    /// Figures of the replay.
    pub(crate) figures: Figures,
}

impl<'t> Trace<'t> {
    /// The trace of `visits`, which are in the order of their times.
    pub(crate) fn new(visits: &'t [Visit], settings: &'t Settings) -> Self {
        let samples = Samples::of(visits.iter());
        let clients: Vec<&Visit> = visits.iter().filter(|visit| is_of_client(visit)).collect();
        let mut served = Vec::with_capacity(clients.len());
        let figures =
            replay_with(&clients, &samples, settings, |_, replayed| served.push(replayed));
        let mut served = served.into_iter();
        let seen = visits.iter().filter_map(|visit| {
            let replayed = if is_of_client(visit) { served.next() } else { None };
            let reception = receive(settings, visit)?;
            Some(Seen::new(visit, reception, &samples, replayed))
        });
        let seen = seen.collect();
        Self { settings, clients, seen, samples, figures }
    }

    /// Requests of clients.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Seen<'t>> {
        self.seen.iter().filter(|seen| seen.replayed.is_some())
    }
}

/// Returns true if a client sent the request.
fn is_of_client(visit: &Visit) -> bool {
    !matches!(visit.served, Some(Served::Refresh | Served::Peer))
}

impl<'t> Seen<'t> {
    fn new(
        visit: &'t Visit,
        reception: Reception<'_>,
        samples: &Samples<'_>,
        replayed: Option<Replayed>,
    ) -> Self {
        let plan = shows_response(visit).then(|| reception.judge(&samples.find(visit)).plan);
        let Reception { site, policy, request, notes, course } = reception;
        let rule = policy.rule_name(notes.rule).to_owned();
        Self {
            visit,
            site,
            route: notes.route,
            place: policy.place(&notes, &rule).cloned(),
            rule,
            course,
            is_personal: notes.personal,
            request,
            plan,
            replayed,
        }
    }

    /// Returns true if the visit shows a whole response of its origin.
    pub(crate) fn has_response(&self) -> bool {
        self.plan.is_some()
    }

    /// Returns true if a client waited for the origin, under the present settings.
    pub(crate) fn is_fetched(&self) -> bool {
        matches!(self.replayed, Some(Replayed::Miss | Replayed::Pass))
    }

    /// The family of its path.
    pub(crate) fn family(&self) -> String {
        family(self.request.path())
    }
}

/// Suffixes of files that change by a new name.
const STATIC: [&str; 22] = [
    "avif", "bmp", "css", "eot", "gif", "ico", "jpeg", "jpg", "js", "map", "mjs", "mp3", "mp4",
    "otf", "pdf", "png", "svg", "ttf", "webm", "webp", "woff", "woff2",
];

/// The suffix of a static file; `None` for other paths.
pub(crate) fn static_suffix(path: &[u8]) -> Option<&'static str> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let at = name.iter().rposition(|byte| *byte == b'.')?;
    STATIC.into_iter().find(|suffix| name[at + 1..].eq_ignore_ascii_case(suffix.as_bytes()))
}

/// The family of a path, as a route's `path` names it: the suffix of static files, the path itself,
/// or the folders of deeper paths, at most two. A folder with a digit in its name is one of many.
pub(crate) fn family(path: &[u8]) -> String {
    if let Some(suffix) = static_suffix(path) {
        return format!("*.{suffix}");
    }
    let inner = path.strip_prefix(b"/").unwrap_or(path);
    let has_digit = |name: &[u8]| name.iter().any(u8::is_ascii_digit);
    // A page's name may end with a slash.
    let names: Vec<&[u8]> =
        inner.strip_suffix(b"/").unwrap_or(inner).split(|byte| *byte == b'/').collect();
    match names[..] {
        [b"", ..] => path.escape_ascii().to_string(),
        [name] if name == inner => path.escape_ascii().to_string(),
        [first, second, _, ..] if !second.is_empty() && !has_digit(second) => {
            format!("/{}/{}/*", first.escape_ascii(), second.escape_ascii())
        }
        [first, ..] => format!("/{}/*", first.escape_ascii()),
        [] => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_a_suffix_folders_or_a_path() {
        for (path, expected) in [
            ("/a/b.css", "*.css"),
            ("/a/b.CSS", "*.css"),
            ("/blog/1", "/blog/*"),
            ("/blog/", "/blog/*"),
            ("/blog", "/blog"),
            ("/", "/"),
            ("//x", "//x"),
            ("/a.b/c", "/a.b/*"),
            ("/v1/products/7", "/v1/products/*"),
            ("/v1/products/7/parts/1", "/v1/products/*"),
            ("/v1/products/", "/v1/*"),
            ("/blog/a-day-in-autumn/", "/blog/*"),
            ("/blog/2026/autumn", "/blog/*"),
            ("/blog//autumn", "/blog/*"),
        ] {
            assert_eq!(family(path.as_bytes()), expected, "{path}");
        }
    }
}
