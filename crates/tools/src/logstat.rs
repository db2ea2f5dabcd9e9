//! Log statistics, `larder logstat`: a site's visitors from its access logs.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::read::MultiGzDecoder;
use observe::access::{self, Line};
use observe::text::Printable;
use observe::visitor_statistics::{
    self, Peak, PeriodCounts, Report, SessionRules, VisitorStatistics,
};

use crate::numbers::{bytes, grouped};
use crate::output::print;

/// Longest line; the rest of a longer one is skipped.
const LINE_MAX: u64 = 64 * 1024;

/// Report from access logs how many users there were at once, in how many sessions, how fast their
/// requests came, and how many of them the cache answered.
///
/// Reads the combined and common formats of nginx, Apache and Varnish, and Larder's JSON, gzipped
/// or not; `-` is standard input. A user is an address with a User-Agent. The hit ratio needs a log
/// with cache results: Larder's JSON, or a value such as HIT behind the combined format (nginx:
/// $upstream_cache_status).
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  larder logstat /var/log/nginx/access.log*\n  \
    larder logstat --by month --json /var/log/larder/access.log")]
pub struct LogstatArgs {
    /// The logs, in any order; the lines of each must be in order of time.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The longest pause within a session, in minutes.
    #[arg(long, value_name = "MINUTES", default_value_t = 30)]
    gap: u64,
    /// Users with requests within this many minutes count as users at once.
    #[arg(long, value_name = "MINUTES", default_value_t = 5)]
    window: u64,
    /// Group rows by day or by month, or print none.
    #[arg(long, value_name = "WHAT", default_value = "day", value_parser = ["day", "month", "all"])]
    by: String,
    /// Number of rows of the most frequent paths and user agents.
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs `larder logstat`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &LogstatArgs) -> Result<(), String> {
    let rules = SessionRules {
        gap_s: args.gap.saturating_mul(60),
        window_s: args.window.saturating_mul(60),
    };
    let mut visits = VisitorStatistics::new(rules);
    for file in in_order(&args.files)? {
        for_each_line(&file, &mut |line| {
            match line {
                Some(line) => visits.add(&line),
                None => visits.unread(),
            }
            true
        })?;
    }
    let report = visits.report();
    if report.all.requests == 0 {
        let unread = report.unread;
        return Err(format!(
            "larder: none of {unread} lines is of the combined or common format, or Larder's JSON"
        ));
    }
    let text = match args.json {
        true => json(&visits, &report, args.rows),
        false => plain(&visits, &report, args),
    };
    print(text.as_bytes()).map(|_| ())
}

/// Sorts the files by their first lines' times, so that rotated logs may be given in any order.
fn in_order(files: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut dated = Vec::new();
    for file in files {
        let mut first = u64::MAX;
        // Standard input can be read only once.
        if file != Path::new("-") {
            for_each_line(file, &mut |line| match line {
                Some(line) => {
                    first = line.unix_s;
                    false
                }
                None => true,
            })?;
        }
        dated.push((first, file.clone()));
    }
    dated.sort_by_key(|(first, _)| *first);
    Ok(dated.into_iter().map(|(_, file)| file).collect())
}

/// Gives each line to `sink` until that returns false; `None` for an unreadable line.
pub(crate) fn for_each_line(
    path: &Path,
    sink: &mut dyn FnMut(Option<Line>) -> bool,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("larder: {}: {error}", path.display());
    let source: Box<dyn Read> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(failed)?),
    };
    let mut source = BufReader::with_capacity(1 << 16, source);
    let zipped = source.fill_buf().map_err(failed)?.starts_with(&[0x1f, 0x8b]);
    let mut lines: Box<dyn BufRead> = match zipped {
        true => Box::new(BufReader::new(MultiGzDecoder::new(source))),
        false => Box::new(source),
    };
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        if lines.by_ref().take(LINE_MAX).read_until(b'\n', &mut bytes).map_err(failed)? == 0 {
            return Ok(());
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        if !sink(access::parse(&String::from_utf8_lossy(&bytes))) {
            return Ok(());
        }
    }
}

fn plain(visits: &VisitorStatistics, report: &Report, args: &LogstatArgs) -> String {
    let all = &report.all;
    let mut out = String::new();
    let mut line = |name: &str, value: String| out.push_str(&format!("{name:<28} {value}\n"));
    let when =
        |at: u64| format!("{} {}", visitor_statistics::day(at), visitor_statistics::clock(at));
    line("requests", grouped(all.requests));
    line("  per second, average", format!("{:.2}", all.rate()));
    line("  per second, peak", format!("{}  at {}", grouped(all.peak.count), when(all.peak.at)));
    line("bytes sent", bytes(all.bytes as f64));
    line("users", grouped(all.users));
    let Peak { count: users, at } = all.users_at_once;
    let window = args.window;
    line("  most at once", format!("{}  within {window} min from {}", grouped(users), when(at)));
    line("sessions", format!("{}  ({} min apart)", grouped(all.sessions), args.gap));
    let Peak { count: sessions, at } = all.sessions_at_once;
    line("  most at once", format!("{}  at {}", grouped(sessions), when(at)));
    line("errors (5xx)", grouped(all.errors));
    line("hit ratio", ratio(all).unwrap_or_else(|| "the log does not say".to_owned()));
    if report.unread > 0 {
        line("unreadable lines", grouped(report.unread));
    }
    let spans: Vec<(String, &PeriodCounts)> = match args.by.as_str() {
        "day" => {
            report.days.iter().map(|(at, span)| (visitor_statistics::day(*at), span)).collect()
        }
        "month" => report.months.iter().map(|(name, span)| (name.clone(), span)).collect(),
        _ => Vec::new(),
    };
    if !spans.is_empty() {
        out.push_str(&spans_table(&args.by, &spans));
    }
    let statuses = visits.statuses();
    let statuses: Vec<_> = statuses.iter().map(|(s, n)| (s.to_string(), *n)).collect();
    let tables = [
        ("status", statuses),
        ("path", visits.targets(args.rows)),
        ("user agent", visits.agents(args.rows)),
    ];
    for (name, rows) in tables {
        out.push_str(&format!("\n{:>12}  {name}\n", "requests"));
        for (key, count) in rows {
            let key = if key.is_empty() { "-" } else { &key };
            out.push_str(&format!("{:>12}  {}\n", grouped(count), Printable(key.as_bytes())));
        }
    }
    out
}

fn spans_table(by: &str, spans: &[(String, &PeriodCounts)]) -> String {
    let mut out = format!(
        "\n{by:<10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>8}\n",
        "requests", "peak/s", "users", "at once", "sessions", "at once", "5xx", "hits"
    );
    for (name, span) in spans {
        out.push_str(&format!(
            "{name:<10} {:>12} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>8}\n",
            grouped(span.requests),
            grouped(span.peak.count),
            grouped(span.users),
            grouped(span.users_at_once.count),
            grouped(span.sessions),
            grouped(span.sessions_at_once.count),
            grouped(span.errors),
            ratio(span).unwrap_or_else(|| "-".to_owned()),
        ));
    }
    out
}

fn ratio(span: &PeriodCounts) -> Option<String> {
    span.hit_ratio().map(|ratio| format!("{:.1} %", ratio * 100.0))
}

fn json(visits: &VisitorStatistics, report: &Report, rows: usize) -> String {
    let span = |span: &PeriodCounts| {
        serde_json::json!({
            "requests": span.requests,
            "requests_per_second": span.rate(),
            "requests_per_second_peak": span.peak.count,
            "bytes": span.bytes,
            "users": span.users,
            "users_at_once": span.users_at_once.count,
            "sessions": span.sessions,
            "sessions_at_once": span.sessions_at_once.count,
            "errors": span.errors,
            "hit_ratio": span.hit_ratio(),
        })
    };
    let days = report.days.iter().map(|(at, one)| (visitor_statistics::day(*at), span(one)));
    let months = report.months.iter().map(|(name, one)| (name.clone(), span(one)));
    let table = |rows: Vec<(String, u64)>| -> serde_json::Value {
        let row = |(key, requests)| serde_json::json!({ "key": key, "requests": requests });
        rows.into_iter().map(row).collect()
    };
    let statuses = visits.statuses().into_iter().map(|(s, n)| (s.to_string(), n)).collect();
    let value = serde_json::json!({
        "all": span(&report.all),
        "days": days.collect::<serde_json::Map<_, _>>(),
        "months": months.collect::<serde_json::Map<_, _>>(),
        "statuses": table(statuses),
        "paths": table(visits.targets(rows)),
        "agents": table(visits.agents(rows)),
        "unread": report.unread,
    });
    format!("{value}\n")
}
