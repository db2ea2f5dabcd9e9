//! Warm, `larder warm`: has the daemon fetch pages before a visitor asks for them, and shows the
//! progress.
//!
//! Reads lists and logs here, as only its caller may read them. It fetches nothing itself.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::client::{AdminArgs, ask, call};
use crate::logstat;
use crate::numbers::grouped;
use crate::output::{is_terminal, print};

/// Pages of one order.
const ORDER_PAGES: usize = 1_000;
/// The longest line of a list; the rest of a longer one is skipped.
const LINE_MAX: u64 = 64 * 1024;
/// The interval of the progress.
const INTERVAL: Duration = Duration::from_millis(500);
/// Characters of the bar.
const BAR: u64 = 30;
/// The width of a line of progress. Shorter ones are filled up, to cover the one before.
const WIDTH: usize = 79;

/// Fetch pages before a visitor asks for them: those of URLs, sitemaps, lists and logs, or what a
/// site's `[site.warm]` names.
///
/// The daemon fetches them itself, behind its visitors, without cookies: only what is missing or
/// near its end, and as many at the same time as the origin's first-byte time allows. The most
/// visited come first. The command shows the progress until the end; ending it stops nothing.
#[derive(Clone, Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
                  larder warm example.org\n  \
                  larder warm https://example.org/ https://example.org/shop/\n  \
                  larder warm --sitemap https://example.org/sitemap.xml\n  \
                  larder warm --log /var/log/nginx/access.log --base https://example.org\n  \
                  larder warm --stop"
)]
pub struct WarmArgs {
    /// URLs to fetch, or the names (first hosts) of sites whose own sitemaps and lists are read.
    #[arg(value_name = "URL|SITE")]
    targets: Vec<String>,
    /// Fetch the pages of this sitemap, or of those that it names; repeatable. The site itself is
    /// asked for it.
    #[arg(long, value_name = "URL")]
    sitemap: Vec<String>,
    /// Fetch the URLs or paths in this file, one in a line; repeatable. `-` is standard input.
    #[arg(long, value_name = "FILE")]
    list: Vec<PathBuf>,
    /// Fetch what visitors asked for according to this access log, the most visited first;
    /// repeatable. The formats are those of `larder logstat`.
    #[arg(long, value_name = "FILE", requires = "base")]
    log: Vec<PathBuf>,
    /// Scheme and host of paths in lists and logs, such as `https://example.org`.
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// Return at once; `larder warm --status` shows the progress.
    #[arg(long)]
    background: bool,
    /// Show what is being warmed.
    #[arg(long, conflicts_with_all = ["targets", "sitemap", "list", "log", "stop"])]
    status: bool,
    /// Stop everything that is being warmed.
    #[arg(long, conflicts_with_all = ["targets", "sitemap", "list", "log"])]
    stop: bool,
    /// Print the campaign as JSON at its end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    admin: AdminArgs,
}

/// Runs `larder warm`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &WarmArgs) -> Result<(), String> {
    let socket = &args.admin.admin_socket;
    if args.stop {
        call(socket, "/api/v1/warm", &json!({ "stop": true }))?;
        base::show!("stopped: what is being fetched ends, and nothing else begins");
        return Ok(());
    }
    if args.status {
        let state = state(socket)?;
        let text = if args.json { format!("{state}\n") } else { listing(&state) };
        return print(text.as_bytes()).map(drop);
    }
    let (urls, sites): (Vec<&String>, Vec<&String>) =
        args.targets.iter().partition(|target| target.contains("://"));
    let mut pages: Vec<Page> =
        urls.into_iter().map(|url| Page { url: url.clone(), visits: 0 }).collect();
    for file in &args.list {
        read_list(file, args.base.as_deref(), &mut pages)?;
    }
    if let Some(base) = &args.base {
        pages.extend(visited(&args.log, base)?);
    }
    let campaign = order(args, &sites, &pages)?;
    let number = campaign["number"].as_u64().unwrap_or_default();
    let ended = if args.background { campaign } else { follow(socket, number)? };
    report(args, &ended)
}

/// A page to be fetched.
struct Page {
    url: String,
    visits: u64,
}

/// Gives the order to the daemon, in as many requests as it takes. Returns the campaign.
fn order(args: &WarmArgs, sites: &[&String], pages: &[Page]) -> Result<Value, String> {
    let mut parts: Vec<Map<String, Value>> = Vec::new();
    let part = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
    if !args.sitemap.is_empty() {
        parts.push(part("sitemaps", json!(args.sitemap)));
    }
    parts.extend(sites.iter().map(|site| part("site", json!(site))));
    parts.extend(pages.chunks(ORDER_PAGES).map(|pages| {
        let page = |page: &Page| json!({ "url": page.url, "visits": page.visits });
        part("pages", pages.iter().map(page).collect())
    }));
    let last = parts.len().checked_sub(1).ok_or("larder: there is nothing to warm")?;
    let mut campaign = Value::Null;
    for (at, mut part) in parts.into_iter().enumerate() {
        part.insert("more".to_owned(), json!(at < last));
        match campaign["number"].as_u64() {
            Some(number) => part.insert("campaign".to_owned(), json!(number)),
            None => part.insert("title".to_owned(), json!(title(args))),
        };
        campaign = call(&args.admin.admin_socket, "/api/v1/warm", &Value::Object(part))?;
    }
    Ok(campaign)
}

/// The title of the campaign: its sources.
fn title(args: &WarmArgs) -> String {
    let files = args.list.iter().chain(&args.log).map(|file| file.display().to_string());
    let all: Vec<String> = args.targets.iter().chain(&args.sitemap).cloned().chain(files).collect();
    match all.as_slice() {
        [first, _, ..] => format!("{first} and {} more", all.len() - 1),
        [one] => one.clone(),
        [] => String::new(),
    }
}

/// Adds the URLs in a file; paths are below `base`.
fn read_list(file: &Path, base: Option<&str>, pages: &mut Vec<Page>) -> Result<(), String> {
    let failed = |error: io::Error| format!("larder: {}: {error}", file.display());
    let source: Box<dyn Read> = match file == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(file).map_err(failed)?),
    };
    let mut source = BufReader::new(source);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        if source.by_ref().take(LINE_MAX).read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let url = match (text.trim(), base) {
            ("", _) => continue,
            (path, Some(base)) if path.starts_with('/') => whole(base, path),
            (path, None) if path.starts_with('/') => {
                return Err(format!(
                    "larder: {}:{number}: {path} is a path: `--base https://HOST` says of what \
                     site",
                    file.display()
                ));
            }
            (url, _) => url.to_owned(),
        };
        pages.push(Page { url, visits: 0 });
    }
}

/// The pages that visitors got according to logs, below `base`, the most visited first.
fn visited(logs: &[PathBuf], base: &str) -> Result<Vec<Page>, String> {
    let mut visits: HashMap<String, u64> = HashMap::new();
    for log in logs {
        logstat::for_each_line(log, &mut |line| {
            let line = line.filter(|line| line.method == "GET" && matches!(line.status, 200 | 304));
            if let Some(line) = line.filter(|line| line.target.starts_with('/')) {
                *visits.entry(line.target).or_default() += 1;
            }
            true
        })?;
    }
    let page = |(target, visits): (String, u64)| Page { url: whole(base, &target), visits };
    let mut pages: Vec<Page> = visits.into_iter().map(page).collect();
    pages.sort_by(|a, b| b.visits.cmp(&a.visits).then_with(|| a.url.cmp(&b.url)));
    if !logs.is_empty() && pages.is_empty() {
        return Err("larder: no page was delivered according to the log".to_owned());
    }
    Ok(pages)
}

fn whole(base: &str, path: &str) -> String {
    format!("{}{path}", base.trim_end_matches('/'))
}

/// The state of warming.
fn state(socket: &Path) -> Result<Value, String> {
    match ask(socket, "GET", "/api/v1/warm")? {
        (200, text) => serde_json::from_str(&text)
            .map_err(|_| "larder: the daemon's answer cannot be read".to_owned()),
        (status, text) => Err(format!("larder: unexpected answer ({status}): {}", text.trim_end())),
    }
}

/// Shows the progress of a campaign until its end, and returns it.
fn follow(socket: &Path, number: u64) -> Result<Value, String> {
    loop {
        let state = state(socket)?;
        let all = state["campaigns"].as_array().into_iter().flatten();
        let own = all.into_iter().find(|own| own["number"] == number).cloned();
        let own = own.ok_or("larder: the daemon has forgotten the campaign")?;
        let is_over = own["over"] == true;
        if is_terminal() {
            let line = if is_over { String::new() } else { progress(&own) };
            if !print(format!("\r{line:<WIDTH$}{}", if is_over { "\r" } else { "" }).as_bytes())? {
                return Ok(own);
            }
        }
        if is_over {
            return Ok(own);
        }
        std::thread::sleep(INTERVAL);
    }
}

fn count(campaign: &Value, name: &str) -> u64 {
    campaign[name].as_u64().unwrap_or_default()
}

fn done(campaign: &Value) -> u64 {
    ["fetched", "fresh", "unstored", "failed", "dropped"]
        .iter()
        .map(|name| count(campaign, name))
        .sum()
}

/// A line with the progress of a campaign: bar, counts, rate and the remaining time.
fn progress(campaign: &Value) -> String {
    let (done, found) = (done(campaign), count(campaign, "found"));
    let filled = (BAR * done).checked_div(found).unwrap_or_default().min(BAR);
    let bar: String = (0..BAR).map(|at| if at < filled { '#' } else { '.' }).collect();
    let took_ms = count(campaign, "took_ms").max(1);
    let rate = count(campaign, "fetched") as f64 * 1000.0 / took_ms as f64;
    let left = match campaign["left_ms"].as_u64() {
        Some(ms) => format!(", {} left", clock(ms)),
        None => String::new(),
    };
    format!("{bar} {} of {}, {rate:.1}/s{left}", grouped(done), grouped(found))
}

/// A time as minutes and seconds.
fn clock(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

/// Prints the end of a campaign.
fn report(args: &WarmArgs, campaign: &Value) -> Result<(), String> {
    for fault in campaign["faults"].as_array().into_iter().flatten() {
        base::say!("larder: {}", fault.as_str().unwrap_or_default());
    }
    if args.json {
        base::show!("{campaign}");
        return Ok(());
    }
    if args.background {
        base::show!("campaign {}: `larder warm --status` shows it", campaign["number"]);
        return Ok(());
    }
    base::show!("{}", summary(campaign));
    match count(campaign, "found") {
        0 => Err("larder: no page was found".to_owned()),
        _ => Ok(()),
    }
}

/// The end of a campaign in words.
fn summary(campaign: &Value) -> String {
    let words = [
        ("fetched", "fetched"),
        ("fresh", "stored before"),
        ("unstored", "not for the cache"),
        ("failed", "failed"),
        ("dropped", "dropped"),
    ];
    let parts = words.iter().filter(|(name, _)| *name == "fetched" || count(campaign, name) > 0);
    let parts: Vec<String> =
        parts.map(|(name, word)| format!("{} {word}", grouped(count(campaign, name)))).collect();
    format!("{} in {}", parts.join(", "), clock(count(campaign, "took_ms")))
}

/// The state of warming, for people.
fn listing(state: &Value) -> String {
    let mut text = String::new();
    for campaign in state["campaigns"].as_array().into_iter().flatten() {
        let line = if campaign["over"] == true { summary(campaign) } else { progress(campaign) };
        let title = campaign["title"].as_str().unwrap_or_default();
        text += &format!("{:>3}  {title}\n     {line}\n", count(campaign, "number"));
    }
    for lane in state["origins"].as_array().into_iter().flatten() {
        let name = lane["origin"].as_str().unwrap_or_default();
        let median = match lane["median_ms"].as_f64() {
            Some(ms) => format!(", first byte after {ms:.0} ms"),
            None => String::new(),
        };
        let rests = if lane["rests"] == true { ", rests after failures" } else { "" };
        let (running, window) = (&lane["running"], &lane["window"]);
        text += &format!("origin {name}: {running} at once, up to {window}{median}{rests}\n");
    }
    if text.is_empty() { "nothing has been warmed\n".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn campaign() -> Value {
        json!({
            "number": 2, "title": "list", "found": 1_200, "fetched": 280, "fresh": 20,
            "unstored": 0, "failed": 0, "dropped": 0, "over": false, "took_ms": 14_000,
            "left_ms": 45_001,
        })
    }

    #[test]
    fn progress_has_a_bar_counts_a_rate_and_the_remaining_time() {
        let bar = format!("{}{}", "#".repeat(7), ".".repeat(23));
        assert_eq!(progress(&campaign()), format!("{bar} 300 of 1,200, 20.0/s, 0:46 left"));
        let mut unknown = campaign();
        (unknown["found"], unknown["left_ms"]) = (json!(0), Value::Null);
        assert!(progress(&unknown).ends_with("300 of 0, 20.0/s"));
    }

    #[test]
    fn an_end_names_what_there_was() {
        assert_eq!(summary(&campaign()), "280 fetched, 20 stored before in 0:14");
        let state = json!({
            "campaigns": [campaign()],
            "origins": [{
                "origin": "app", "running": 1, "window": 4, "median_ms": 81.4, "rests": true,
            }],
        });
        let text = listing(&state);
        assert!(text.starts_with("  2  list\n"), "{text}");
        let lane = "origin app: 1 at once, up to 4, first byte after 81 ms, rests after failures\n";
        assert!(text.ends_with(lane), "{text}");
    }
}
