//! Visitor statistics of a site from access logs: visitors in all and at once, sessions, request
//! rates, and the hit ratio.
//!
//! A user is a client's address with its User-Agent. A session is a series of a user's requests
//! without a pause longer than the gap, half an hour by default. Users at once have requests in one
//! window, five minutes by default. Lines should be in order of time; a slightly late line does no
//! harm.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use base::tally::{Outcome, hit_ratio};

use crate::access::Line;

const DAY_S: u64 = 86_400;
/// Most keys of a table; further keys are not counted.
const KEYS_MAX: usize = 200_000;

/// Rules that divide requests into sessions.
#[derive(Clone, Copy, Debug)]
pub struct SessionRules {
    /// The longest pause within a session, in seconds.
    pub gap_s: u64,
    /// The length of a window, in seconds. Users with requests in one window count as users at
    /// once.
    pub window_s: u64,
}

impl Default for SessionRules {
    fn default() -> Self {
        Self { gap_s: 30 * 60, window_s: 5 * 60 }
    }
}

/// The maximum of a count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// The count.
    pub count: u64,
    /// The second at which it was first reached, by the log's own clock.
    pub at: u64,
}

impl Peak {
    /// Keeps the larger count, and of equal ones the earlier.
    fn raise(&mut self, count: u64, at: u64) {
        if count > self.count || (count == self.count && at < self.at) {
            *self = Self { count, at };
        }
    }
}

/// The counts of a period: a day, a month, or the whole log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PeriodCounts {
    /// Requests.
    pub requests: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// Responses with a 5xx status.
    pub errors: u64,
    /// Responses that the hit ratio counts as hits.
    pub hits: u64,
    /// Responses that the hit ratio counts at all.
    pub judged: u64,
    /// Distinct users.
    pub users: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Most users within one window, and the window's beginning (by the log's own clock).
    pub users_at_once: Peak,
    /// Most sessions open at once, and the time.
    pub sessions_at_once: Peak,
    /// Most requests in one second, and the time.
    pub peak: Peak,
    /// Seconds from the first request to the last, inclusive.
    pub seconds: u64,
}

impl PeriodCounts {
    /// Average requests per second.
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds.max(1) as f64
    }

    /// The hit ratio, as [`base::tally::hit_ratio`] defines it; `None` if the log has no cache
    /// results.
    pub fn hit_ratio(&self) -> Option<f64> {
        hit_ratio(|outcome| match outcome {
            Outcome::Hit => self.hits as f64,
            Outcome::Miss => self.judged.saturating_sub(self.hits) as f64,
            _ => 0.0,
        })
    }
}

/// The statistics of the logs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The whole log.
    pub all: PeriodCounts,
    /// Days, by their beginning in seconds since 1970 by the log's own clock.
    pub days: Vec<(u64, PeriodCounts)>,
    /// Months, such as `2026-11`.
    pub months: Vec<(String, PeriodCounts)>,
    /// Lines that could not be read.
    pub unread: u64,
}

/// A session, by the log's own clock.
#[derive(Clone, Copy, Debug)]
struct Session {
    begin: u64,
    end: u64,
}

#[derive(Debug, Default)]
struct Day {
    requests: u64,
    bytes: u64,
    errors: u64,
    hits: u64,
    judged: u64,
    first: u64,
    last: u64,
    users: HashSet<u64>,
    seconds: HashMap<u64, u64>,
    windows: HashMap<u64, HashSet<u64>>,
}

/// The sums over all lines.
#[derive(Debug)]
pub struct VisitorStatistics {
    rules: SessionRules,
    open: HashMap<u64, Session>,
    sessions: Vec<Session>,
    days: BTreeMap<u64, Day>,
    unread: u64,
    targets: HashMap<String, u64>,
    agents: HashMap<String, u64>,
    statuses: BTreeMap<u16, u64>,
}

impl VisitorStatistics {
    /// Makes empty sums.
    pub fn new(rules: SessionRules) -> Self {
        Self {
            rules: SessionRules {
                gap_s: rules.gap_s.max(1),
                window_s: rules.window_s.clamp(1, DAY_S),
            },
            open: HashMap::new(),
            sessions: Vec::new(),
            days: BTreeMap::new(),
            unread: 0,
            targets: HashMap::new(),
            agents: HashMap::new(),
            statuses: BTreeMap::new(),
        }
    }

    /// Counts a line of an unknown format.
    pub fn unread(&mut self) {
        self.unread += 1;
    }

    /// Counts a line.
    pub fn add(&mut self, line: &Line) {
        let at = line.unix_s.saturating_add_signed(line.zone_s);
        let user = user(line);
        self.visit(user, at);
        let day = self.days.entry(at / DAY_S * DAY_S).or_default();
        if day.requests == 0 {
            (day.first, day.last) = (at, at);
        }
        (day.first, day.last) = (day.first.min(at), day.last.max(at));
        day.requests += 1;
        day.bytes += line.bytes;
        day.errors += u64::from(line.status >= 500);
        day.judged += u64::from(line.hit.is_some());
        day.hits += u64::from(line.hit == Some(true));
        day.users.insert(user);
        *day.seconds.entry(at).or_default() += 1;
        let window = at / self.rules.window_s * self.rules.window_s;
        day.windows.entry(window).or_default().insert(user);
        let path = line.target.split('?').next().unwrap_or_default();
        count(&mut self.targets, path);
        count(&mut self.agents, &line.agent);
        *self.statuses.entry(line.status).or_default() += 1;
    }

    fn visit(&mut self, user: u64, at: u64) {
        let session = self.open.entry(user).or_insert(Session { begin: at, end: at });
        if at > session.end.saturating_add(self.rules.gap_s) {
            self.sessions.push(*session);
            *session = Session { begin: at, end: at };
        }
        session.begin = session.begin.min(at);
        session.end = session.end.max(at);
    }

    /// The most frequent paths.
    pub fn targets(&self, count: usize) -> Vec<(String, u64)> {
        most(&self.targets, count)
    }

    /// The most frequent User-Agents.
    pub fn agents(&self, count: usize) -> Vec<(String, u64)> {
        most(&self.agents, count)
    }

    /// The number of responses by status.
    pub fn statuses(&self) -> Vec<(u16, u64)> {
        self.statuses.iter().map(|(status, count)| (*status, *count)).collect()
    }

    /// The totals of all lines, of each day and of each month.
    pub fn report(&self) -> Report {
        let mut sessions = self.sessions.clone();
        sessions.extend(self.open.values());
        let group = |days: &[(&u64, &Day)], from: u64, to: u64| span(days, &sessions, from, to);
        let all: Vec<_> = self.days.iter().collect();
        let days = all
            .iter()
            .map(|(start, day)| (**start, group(&[(*start, *day)], **start, **start + DAY_S)));
        let mut months: BTreeMap<String, Vec<(&u64, &Day)>> = BTreeMap::new();
        for (start, day) in &self.days {
            months.entry(month(*start)).or_default().push((start, day));
        }
        let months = months.into_iter().map(|(name, days)| {
            let ends = days.first().zip(days.last()).map_or((0, 0), |(a, b)| (*a.0, *b.0));
            (name, group(&days, ends.0, ends.1 + DAY_S))
        });
        Report {
            all: group(&all, 0, u64::MAX),
            days: days.collect(),
            months: months.collect(),
            unread: self.unread,
        }
    }
}

/// Sums up `days`, and those of `sessions` that overlap `from` to `to`.
fn span(days: &[(&u64, &Day)], sessions: &[Session], from: u64, to: u64) -> PeriodCounts {
    let mut span = PeriodCounts::default();
    let mut users: HashSet<u64> = HashSet::new();
    let (mut first, mut last) = (u64::MAX, 0);
    for (_, day) in days {
        span.requests += day.requests;
        span.bytes += day.bytes;
        span.errors += day.errors;
        span.hits += day.hits;
        span.judged += day.judged;
        users.extend(&day.users);
        (first, last) = (first.min(day.first), last.max(day.last));
        for (at, users) in &day.windows {
            span.users_at_once.raise(users.len() as u64, *at);
        }
        for (at, count) in &day.seconds {
            span.peak.raise(*count, *at);
        }
    }
    span.users = users.len() as u64;
    span.seconds = last.saturating_sub(first) + u64::from(!days.is_empty());
    let inside = |session: &&Session| session.begin < to && session.end >= from;
    span.sessions = sessions.iter().filter(|s| (from..to).contains(&s.begin)).count() as u64;
    // Beginnings and ends of sessions in order; at one second beginnings come first.
    let mut turns: Vec<(u64, i64)> = Vec::new();
    for session in sessions.iter().filter(inside) {
        turns.push((session.begin.max(from), -1));
        turns.push((session.end.min(to - 1), 1));
    }
    turns.sort_unstable();
    let mut open = 0_u64;
    for (at, turn) in turns {
        if turn < 0 {
            open += 1;
            span.sessions_at_once.raise(open, at);
        } else {
            open -= 1;
        }
    }
    span
}

fn user(line: &Line) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one((&line.client, &line.agent))
}

fn count(table: &mut HashMap<String, u64>, key: &str) {
    if let Some(count) = table.get_mut(key) {
        *count += 1;
    } else if table.len() < KEYS_MAX {
        table.insert(key.to_owned(), 1);
    }
}

fn most(table: &HashMap<String, u64>, count: usize) -> Vec<(String, u64)> {
    let mut rows: Vec<_> = table.iter().map(|(key, count)| (key.clone(), *count)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows.truncate(count);
    rows
}

/// Formats seconds since 1970 as `2026-11`.
fn month(unix_s: u64) -> String {
    day(unix_s)[..7].to_owned()
}

/// Formats seconds since 1970 as `2026-11-22`.
pub fn day(unix_s: u64) -> String {
    let (year, month, day) = message::date::civil((unix_s / DAY_S).cast_signed());
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats seconds since 1970 as `08:49:37`.
pub fn clock(unix_s: u64) -> String {
    let s = unix_s % DAY_S;
    format!("{:02}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Midnight of a day in November 2026.
    const DAY: u64 = 1_795_564_800;

    fn line(client: &str, at: u64) -> Line {
        Line {
            client: client.to_owned(),
            unix_s: DAY + at,
            target: "/page?x=1".to_owned(),
            status: 200,
            bytes: 10,
            hit: Some(at.is_multiple_of(2)),
            ..Line::default()
        }
    }

    fn report(lines: &[(&str, u64)]) -> Report {
        let mut visits = VisitorStatistics::new(SessionRules::default());
        lines.iter().for_each(|(client, at)| visits.add(&line(client, *at)));
        visits.report()
    }

    #[test]
    fn a_long_pause_begins_a_session() {
        let report = report(&[("a", 0), ("a", 1800), ("a", 3601), ("b", 3601)]);
        assert_eq!((report.all.users, report.all.sessions), (2, 3));
        // The first session of `a` ends when the second begins.
        assert_eq!(report.all.sessions_at_once, Peak { count: 2, at: DAY + 3601 });
    }

    #[test]
    fn users_at_once_share_a_window() {
        let report =
            report(&[("a", 0), ("b", 299), ("c", 300), ("d", 400), ("e", 500), ("c", 501)]);
        assert_eq!(report.all.users_at_once, Peak { count: 3, at: DAY + 300 });
        assert_eq!(report.all.users, 5);
        // Single requests of different users with gaps of half an hour: only c overlaps.
        assert_eq!(report.all.sessions_at_once, Peak { count: 2, at: DAY + 400 });
    }

    #[test]
    fn rates_and_hits_are_reported() {
        let report = report(&[("a", 0), ("a", 2), ("a", 2), ("a", 9)]);
        let all = &report.all;
        assert_eq!((all.peak, all.seconds), (Peak { count: 2, at: DAY + 2 }, 10));
        assert!((all.rate() - 0.4).abs() < 1e-9);
        assert_eq!(all.hit_ratio(), Some(0.75));
        assert_eq!(all.bytes, 40);
        assert_eq!(PeriodCounts::default().hit_ratio(), None);
    }

    #[test]
    fn days_and_months_are_the_logs_own() {
        let mut visits = VisitorStatistics::new(SessionRules::default());
        let late = Line { zone_s: -7200, ..line("a", 3600) };
        visits.add(&late);
        visits.add(&line("b", 10 * DAY_S));
        let report = visits.report();
        let days: Vec<_> = report.days.iter().map(|(at, _)| day(*at)).collect();
        assert_eq!(days, ["2026-11-24", "2026-12-05"]);
        let months: Vec<_> = report.months.iter().map(|(m, s)| (m.as_str(), s.users)).collect();
        assert_eq!(months, [("2026-11", 1), ("2026-12", 1)]);
        assert_eq!(clock(report.days[0].1.peak.at), "23:00:00");
    }

    #[test]
    fn a_session_over_midnight_is_there_on_both_days_and_begins_once() {
        let report = report(&[("a", DAY_S - 60), ("a", DAY_S + 60)]);
        let days: Vec<_> =
            report.days.iter().map(|(_, s)| (s.sessions, s.sessions_at_once.count)).collect();
        assert_eq!(days, [(1, 1), (0, 1)]);
        assert_eq!(report.all.sessions, 1);
    }

    #[test]
    fn paths_are_counted_without_their_query() {
        let mut visits = VisitorStatistics::new(SessionRules::default());
        visits.add(&line("a", 0));
        visits.add(&Line { target: "/page?x=2".to_owned(), status: 404, ..line("a", 1) });
        visits.unread();
        assert_eq!(visits.targets(10), [("/page".to_owned(), 2)]);
        assert_eq!(visits.statuses(), [(200, 1), (404, 1)]);
        assert_eq!(visits.report().unread, 1);
    }
}
