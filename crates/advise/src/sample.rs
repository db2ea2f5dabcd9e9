//! Samples: what the visits show of the origin's responses, found for requests that a replay sends
//! to the origin and the past answered from a cache.

use std::collections::HashMap;

use message::Response;
use observe::record::Served;

use crate::reception::response;
use crate::visit::Visit;

/// An origin's response at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample<'v> {
    /// Unix time at which it arrived, in milliseconds.
    pub(crate) at_ms: u64,
    status: u16,
    fields: &'v [(String, Vec<u8>)],
    /// Bytes of its body.
    pub(crate) body_bytes: u64,
}

impl<'v> Sample<'v> {
    /// The response to the visit itself; without fields if the source has none.
    pub(crate) fn of(visit: &'v Visit) -> Self {
        Self {
            at_ms: visit.at_ms + visit.fetch_us.unwrap_or(0) / 1000,
            // A client that left, or that has the page already, tells nothing of the origin.
            status: if matches!(visit.status, 304 | 499) { 200 } else { visit.status },
            fields: visit.response.as_deref().unwrap_or_default(),
            body_bytes: visit.body_bytes,
        }
    }

    /// Returns true if both have one status; a part of a page is like the page.
    fn is_like(&self, other: &Self) -> bool {
        let whole = |status| if matches!(status, 206 | 416) { 200 } else { status };
        whole(self.status) == whole(other.status)
    }

    /// Its head.
    pub(crate) fn head(&self) -> Response {
        response(self.status, self.fields)
    }
}

/// Returns true if the visit shows a whole response of its origin.
pub(crate) fn shows_response(visit: &Visit) -> bool {
    let is_confirmation = visit.served == Some(Served::Revalidated);
    let is_part = matches!(visit.status, 206 | 304 | 416 | 499);
    visit.response.is_some() && visit.method == "GET" && !is_confirmation && !is_part
}

/// The samples of all visits, by host and target.
#[derive(Debug, Default)]
pub(crate) struct Samples<'v> {
    by_target: HashMap<(&'v str, &'v [u8]), Vec<Sample<'v>>>,
    by_path: HashMap<(&'v str, &'v [u8]), Vec<Sample<'v>>>,
    /// Times at the origin of each path, in microseconds.
    times_us: HashMap<(&'v str, &'v [u8]), Vec<u64>>,
    usual_us: u64,
}

impl<'v> Samples<'v> {
    /// The samples of `visits`, which are in the order of their times.
    pub(crate) fn of(visits: impl Iterator<Item = &'v Visit> + Clone) -> Self {
        let mut samples = Self::default();
        let mut all_us = Vec::new();
        for visit in visits {
            let (host, path) = (&visit.host[..], visit.path());
            if let Some(us) = visit.fetch_us {
                samples.times_us.entry((host, path)).or_default().push(us);
                all_us.push(us);
            }
            if shows_response(visit) {
                let sample = Sample::of(visit);
                samples.by_target.entry((host, &visit.target)).or_default().push(sample);
                samples.by_path.entry((host, path)).or_default().push(sample);
            }
        }
        samples.times_us.values_mut().for_each(|times| times.sort_unstable());
        all_us.sort_unstable();
        samples.usual_us = middle(&all_us);
        samples
    }

    /// The response that the origin would give to the visit: its own, or the latest to a request
    /// for its URL, or for its path; failing these, one without fields.
    pub(crate) fn find<'a>(&self, visit: &'a Visit) -> Sample<'a>
    where
        'v: 'a,
    {
        if shows_response(visit) {
            return Sample::of(visit);
        }
        let host = &visit.host[..];
        let target = self.by_target.get(&(host, &visit.target[..]));
        let path = || self.by_path.get(&(host, visit.path()));
        let own = Sample::of(visit);
        let found = target.or_else(path).and_then(|all| latest(all, visit.at_ms));
        // A page that is missing or broken at one time is another response than the page.
        found.copied().filter(|sample| visit.status == 0 || sample.is_like(&own)).unwrap_or(own)
    }

    /// Microseconds that the origin would take for the visit: its own time, or the middle of those
    /// of its path, or of all.
    pub(crate) fn time_us(&self, visit: &Visit) -> u64 {
        let of_path = || self.times_us.get(&(&visit.host[..], visit.path()));
        visit.fetch_us.or_else(|| of_path().map(|times| middle(times))).unwrap_or(self.usual_us)
    }
}

/// The latest sample at `at_ms`, or the first after it.
fn latest<'s, 'v>(samples: &'s [Sample<'v>], at_ms: u64) -> Option<&'s Sample<'v>> {
    let after = samples.partition_point(|sample| sample.at_ms <= at_ms);
    samples.get(after.saturating_sub(1))
}

fn middle(sorted: &[u64]) -> u64 {
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}
