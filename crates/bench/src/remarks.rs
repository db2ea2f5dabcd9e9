//! Remarks of the tool on its own figures: cases in which they mislead. Published comparisons of
//! caches have missed each of them.

use crate::result::{Axis, Point, Round, RunRemark, Series};

/// Share of the threads' time from which the generator may be the bottleneck.
const BUSY: f64 = 0.9;
/// Lateness of an open loop's requests at the 99th percentile, in microseconds, from which there is
/// a remark.
const LATE_US: u64 = 1000;
/// Share of due requests that an open loop may leave unsent.
const MISSED: f64 = 0.02;
/// Share of cached responses below which the target does not count as a cache.
const CACHED: f64 = 0.5;
/// Values that must lie beyond a percentile for it to be more than chance.
const BEYOND: f64 = 10.0;
/// Share of a measurement that its slowest response may take.
const SLOWEST: f64 = 0.25;
/// Share of the machine's time that its host may give to others.
const STEAL: f64 = 0.02;
/// Distance of the slowest round from the fastest one, as a share of the median.
const SPREAD: f64 = 0.15;
/// Rounds from which the spread is meaningful.
const SPREAD_ROUNDS: usize = 3;
/// Share by which the mean lengths of two sides may differ.
const UNEQUAL: f64 = 0.01;
/// New connections per request by which two sides may differ.
const REUSE: f64 = 0.1;

/// Remarks on one series.
pub fn of_series(series: &Series, connections_besides: u64) -> Vec<RunRemark> {
    let rounds = || series.points.iter().flat_map(|point| &point.rounds);
    let sums = Round::merged(rounds());
    let mut all = Vec::new();
    all.extend(generator(series));
    all.extend(nothing(series));
    all.extend(failures(&sums));
    all.extend(not_pages(&sums));
    all.extend(not_cached(&sums));
    all.extend(lengths(&sums));
    all.extend(too_short(series));
    all.extend(noise(series));
    if let Some(held) = rounds().map(|round| round.background).min()
        && held < connections_besides
    {
        all.push(verdict("background-lost", format!(
            "of {connections_besides} connections besides the load only {held} were open at the end: the server closed or rejected the others"
        )));
    }
    all
}

fn verdict(name: &str, text: String) -> RunRemark {
    RunRemark { name: name.to_owned(), text }
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// Remark that the generator was the bottleneck.
fn generator(series: &Series) -> Option<RunRemark> {
    let open = matches!(series.axis, Axis::Rate);
    // Threads of other loads poll for responses while idle; they show an overload by lateness.
    let closed = matches!(series.axis, Axis::Connections);
    for point in &series.points {
        for round in &point.rounds {
            let time = round.elapsed_us.saturating_mul(round.generator_threads);
            let busy = round.generator_cpu_us as f64 / time.max(1) as f64;
            if closed && time > 0 && busy > BUSY {
                return Some(verdict(
                    "generator-limit",
                    format!(
                        "at {} this tool used {} of its {} threads: it was the limit, not the server; give it more threads or a machine of its own",
                        point.x,
                        percent(busy),
                        round.generator_threads
                    ),
                ));
            }
            let late = round.lateness.as_ref().map_or(0, |lateness| lateness.p99);
            if late > LATE_US {
                return Some(verdict(
                    "generator-limit",
                    format!(
                        "at {} one request of a hundred was sent {late} us late or more although a connection was free: this machine cannot keep the rate",
                        point.x
                    ),
                ));
            }
            let due = point.x * round.seconds();
            let begun = (round.attempted + round.unfinished) as f64;
            if open && begun < due * (1.0 - MISSED) - 2.0 {
                return Some(verdict(
                    "generator-limit",
                    format!(
                        "of {due:.0} requests due at {} a second only {begun:.0} were begun: this machine cannot make the rate",
                        point.x
                    ),
                ));
            }
        }
    }
    None
}

/// Remark that nothing was measured.
fn nothing(series: &Series) -> Option<RunRemark> {
    let rounds = || series.points.iter().flat_map(|point| &point.rounds);
    let empty = rounds().filter(|round| round.completed == 0).count();
    (empty > 0).then(|| {
        verdict(
            "no-response",
            format!("{empty} of {} rounds got no response at all", rounds().count()),
        )
    })
}

/// Remark on failed requests.
fn failures(all: &Round) -> Option<RunRemark> {
    let (failed, attempted) = (all.failed(), all.attempted);
    let kinds: Vec<_> = all.errors.keys().map(String::as_str).collect();
    (failed > 0).then(|| {
        verdict("failures", format!(
            "{failed} of {attempted} requests got no response ({}): latencies are those of the others",
            kinds.join(", ")
        ))
    })
}

/// Remark on responses that were errors or redirects.
fn not_pages(all: &Round) -> Option<RunRemark> {
    let redirects = all.with_status(300, 303) + all.with_status(305, 399);
    let errors = all.with_status(400, u16::MAX);
    let completed = all.completed;
    match (errors, redirects) {
        (0, 0) => None,
        (0, _) => Some(verdict(
            "redirects",
            format!(
                "{redirects} of {completed} responses were redirects: what was measured is the redirect, not the page"
            ),
        )),
        (_, _) => {
            let statuses: Vec<_> =
                all.statuses.range(400..).map(|(status, _)| status.to_string()).collect();
            Some(verdict(
                "error-responses",
                format!(
                    "{errors} of {completed} responses were errors ({}): they cost a server different work than pages",
                    statuses.join(", ")
                ),
            ))
        }
    }
}

/// Remark that the target did not cache.
fn not_cached(all: &Round) -> Option<RunRemark> {
    let share = all.hit_share().filter(|share| *share < CACHED)?;
    let most = all.miss_reasons.iter().max_by_key(|(_, count)| **count);
    let why = most.map_or_else(String::new, |(reason, _)| format!("; most often: {reason}"));
    Some(verdict(
        "not-cached",
        format!(
            "{} of the responses came from a cache: the target was mostly not caching{why}",
            percent(share)
        ),
    ))
}

/// Remark on different lengths of responses to one request.
fn lengths(all: &Round) -> Option<RunRemark> {
    let (differ, completed) = (all.lengths_differ, all.completed);
    (differ > 0).then(|| {
        verdict("lengths-differ", format!(
            "{differ} of {completed} responses had another length than the first one to the same request: not all clients got the same page"
        ))
    })
}

/// Remark that the run was too short for its percentiles.
fn too_short(series: &Series) -> Option<RunRemark> {
    for point in &series.points {
        for round in &point.rounds {
            let needed = (BEYOND / 0.01).round() as u64;
            if round.completed > 0 && round.completed < needed {
                return Some(verdict(
                    "too-short",
                    format!(
                        "at {} a round had {} responses: p99 needs {needed}, and p99.9 ten times as many",
                        point.x, round.completed
                    ),
                ));
            }
            let slowest = round.last_byte.as_ref().map_or(0, |latency| latency.max);
            if slowest as f64 > round.elapsed_us as f64 * SLOWEST {
                return Some(verdict(
                    "too-short",
                    format!(
                        "at {} the slowest response took {:.1} s of a round of {:.1} s: measure longer",
                        point.x,
                        slowest as f64 / 1e6,
                        round.elapsed_us as f64 / 1e6
                    ),
                ));
            }
        }
    }
    None
}

/// Remark on noise of the machine.
fn noise(series: &Series) -> Option<RunRemark> {
    let steal = series
        .points
        .iter()
        .flat_map(|point| &point.rounds)
        .map(|round| round.steal)
        .fold(0.0, f64::max);
    if steal > STEAL {
        return Some(verdict(
            "noisy",
            format!(
                "up to {} of the machine's time went to its neighbours (steal)",
                percent(steal)
            ),
        ));
    }
    series.points.iter().find_map(spread)
}

fn spread(point: &Point) -> Option<RunRemark> {
    let mut rates: Vec<f64> = point.rounds.iter().map(Round::rate).collect();
    rates.sort_by(f64::total_cmp);
    let (least, most) = (*rates.first()?, *rates.last()?);
    let median = *rates.get(rates.len() / 2)?;
    let spread = (most - least) / median;
    (rates.len() >= SPREAD_ROUNDS && spread > SPREAD).then(|| {
        verdict(
            "noisy",
            format!(
                "at {} the rounds are {} apart: differences below that mean nothing",
                point.x,
                percent(spread)
            ),
        )
    })
}

/// Remarks on compared sides, each with its rounds.
pub fn of_sides(sides: &[(String, Vec<Round>)]) -> Vec<RunRemark> {
    let mut all = Vec::new();
    let Some(((first, rounds), others)) = sides.split_first() else {
        return all;
    };
    let own = TypicalResponse::of(rounds);
    for (name, rounds) in others {
        let other = TypicalResponse::of(rounds);
        let mut differences = Vec::new();
        if own.encoding != other.encoding {
            let shown = |encoding: &str| match encoding {
                "" => "none".to_owned(),
                other => other.to_owned(),
            };
            differences.push(format!(
                "encodings ({} and {})",
                shown(&own.encoding),
                shown(&other.encoding)
            ));
        }
        if (own.length - other.length).abs() > own.length.max(other.length) * UNEQUAL {
            differences
                .push(format!("mean lengths ({:.0} and {:.0} bytes)", own.length, other.length));
        }
        if own.status != other.status {
            differences.push(format!("statuses ({} and {})", own.status, other.status));
        }
        if (own.connects - other.connects).abs() > REUSE {
            differences.push(format!(
                "connections ({:.2} and {:.2} new ones a request)",
                own.connects, other.connects
            ));
        }
        if !differences.is_empty() {
            all.push(verdict(
                "unequal-sides",
                format!(
                    "{first} and {name} did not send equal responses: {}",
                    differences.join(", ")
                ),
            ));
        }
    }
    all
}

/// The kind of response that a side mostly sent.
struct TypicalResponse {
    encoding: String,
    status: u16,
    length: f64,
    connects: f64,
}

impl TypicalResponse {
    fn of(rounds: &[Round]) -> Self {
        let all = Round::merged(rounds);
        let encoding = all.encodings.iter().max_by_key(|(_, count)| **count);
        let status = all.statuses.iter().max_by_key(|(_, count)| **count);
        let lengths = all.body_lengths.iter();
        let bytes: f64 = lengths.map(|(length, count)| *length as f64 * *count as f64).sum();
        let counted: u64 = all.body_lengths.values().sum();
        Self {
            encoding: encoding.map(|(name, _)| name.clone()).unwrap_or_default(),
            status: status.map(|(status, _)| *status).unwrap_or_default(),
            length: bytes / counted.max(1) as f64,
            connects: all.connections as f64 / all.attempted.max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests;
