//! Metrics of a server in the text format of Prometheus (0.0.4).

use std::time::Duration;

use crate::result::Usage;

/// The metrics of one moment; `None` for those that the server does not export.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerMetrics {
    /// CPU time.
    pub(crate) cpu: Option<Duration>,
    /// Resident memory in bytes.
    pub(crate) resident_bytes: Option<u64>,
    /// Requests to origins.
    pub(crate) origin_requests: Option<u64>,
    /// Requests answered from the cache, and requests looked up or passed.
    pub(crate) hits: Option<u64>,
    pub(crate) requests: Option<u64>,
}

/// Names of the metrics of Larder and of Varnish's exporter.
const ORIGIN: [&str; 2] = ["larder_origin_requests_total", "varnish_main_backend_req"];
const HITS: [&str; 4] = [
    "larder_hits_total",
    "larder_stale_hits_total",
    "larder_stale_on_error_total",
    "varnish_main_cache_hit",
];
const OTHERS: [&str; 7] = [
    "larder_revalidated_answers_total",
    "larder_misses_total",
    "larder_hit_for_miss_total",
    "larder_collapsed_total",
    "larder_passes_total",
    "varnish_main_cache_miss",
    "varnish_main_s_pass",
];

impl ServerMetrics {
    /// Parses a page; unknown metrics and invalid lines are skipped.
    pub(crate) fn read(page: &str) -> Self {
        let mut metrics = Self::default();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let Some((name, value)) = sample(line) else {
                continue;
            };
            let add = |sum: &mut Option<u64>| {
                *sum = Some(sum.unwrap_or_default().saturating_add(value as u64));
            };
            match name {
                "process_cpu_seconds_total" => {
                    metrics.cpu = Duration::try_from_secs_f64(value).ok();
                }
                "process_resident_memory_bytes" => metrics.resident_bytes = Some(value as u64),
                name if ORIGIN.contains(&name) => add(&mut metrics.origin_requests),
                name if HITS.contains(&name) => {
                    add(&mut metrics.hits);
                    add(&mut metrics.requests);
                }
                name if OTHERS.contains(&name) => add(&mut metrics.requests),
                _ => {}
            }
        }
        metrics
    }

    /// The resources that the server used; `None` if it does not export them.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let cpu_us = u64::try_from(self.cpu?.as_micros()).unwrap_or(u64::MAX);
        Some(Usage { cpu_us, resident_bytes: self.resident_bytes.unwrap_or_default() })
    }
}

/// The name and value of a sample, without its labels.
fn sample(line: &str) -> Option<(&str, f64)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let value = match rest.rsplit_once('}') {
        Some((_, value)) => value,
        None => rest,
    };
    let value = value.split_whitespace().next()?.parse::<f64>().ok()?;
    value.is_finite().then_some((name, value))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn figures_are_found_among_others() {
        let page = "# HELP larder_hits_total x\n# TYPE larder_hits_total counter\n\
                    larder_hits_total 10\nlarder_stale_hits_total 2\nlarder_misses_total 3\n\
                    larder_origin_requests_total{a=\"}\"} 4 1700000000\n\
                    larder_origin_requests_total{a=\"b c\"} 1\n\
                    process_cpu_seconds_total 1.5\nprocess_resident_memory_bytes 2.1e+07\n\
                    larder_passes_total NaN\nnonsense\n";
        let metrics = ServerMetrics::read(page);
        assert_eq!((metrics.hits, metrics.requests), (Some(12), Some(15)));
        assert_eq!(metrics.origin_requests, Some(5));
        let usage = Usage { cpu_us: 1_500_000, resident_bytes: 21_000_000 };
        assert_eq!(metrics.usage(), Some(usage));
        assert_eq!(ServerMetrics::read("go_goroutines 7\n"), ServerMetrics::default());
    }

    proptest! {
        #[test]
        fn no_page_panics(page in "(larder_hits_total|process_cpu_seconds_total|\\PC{0,9}|[ {}\"\n]){0,20}") {
            let _ = ServerMetrics::read(&page);
        }
    }
}
