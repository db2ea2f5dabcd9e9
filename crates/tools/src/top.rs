//! The top list, `larder top`: the most frequent URLs, clients and more.

use base::tally::Outcome;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use observe::ring::FollowStart;
use observe::tally::{FrequencyTable, GroupingKey, Sort, Sums};
use observe::text::Printable;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};

use super::feed::{Feed, FeedArgs, Window};
use super::screen::{self, ScreenView};
use crate::numbers::{bytes, grouped, time};
use crate::output::{is_terminal, print};

/// A request's weight in the table falls to a third after this many seconds.
const PERIOD_S: f64 = 30.0;

const AFTER_HELP: &str = "\
Keys: u URLs, c clients, a user agents, f referers, s statuses, v cache results, i sites, \
l rules, o origins, x errors; sort by r requests, m misses, b bytes, t time, e errors; \
space pauses the table, q quits.

Examples:
  larder top --by client --sort bytes
  larder top --once --seconds 60 -q 'resp.status == 404'";

/// Show the most frequent URLs, clients, user agents, statuses and more, live.
///
/// On a terminal the table is updated, and rows without requests fade away. Keys select the
/// grouping and the order. Elsewhere, or with --once, it is printed once.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TopArgs {
    #[command(flatten)]
    feed: FeedArgs,
    /// Property by which requests are grouped.
    #[arg(long, value_enum, default_value = "url")]
    by: ByArg,
    /// Figure by which rows are sorted, the largest first.
    #[arg(long, value_enum, default_value = "requests")]
    sort: SortArg,
    /// Print the table once.
    #[arg(long)]
    once: bool,
    /// With --once: seconds to count, up to the last request in the ring; 0 for the whole ring.
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Rows that --once prints.
    #[arg(long, value_name = "N", default_value_t = 20)]
    rows: usize,
    /// Print one JSON object, once.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
struct ByArg(GroupingKey);

impl ValueEnum for ByArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ByArg; GroupingKey::ALL.len()] = {
            let mut all = [ByArg(GroupingKey::Url); GroupingKey::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = ByArg(GroupingKey::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.word()))
    }
}

#[derive(Clone, Copy, Debug)]
struct SortArg(Sort);

impl ValueEnum for SortArg {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [SortArg; Sort::ALL.len()] = {
            let mut all = [SortArg(Sort::Requests); Sort::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = SortArg(Sort::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.word()))
    }
}

/// Runs `larder top`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &TopArgs) -> Result<(), String> {
    let (by, sort) = (args.by.0, args.sort.0);
    if args.once || args.json || !is_terminal() {
        return once(args, by, sort);
    }
    let feed = args.feed.open(FollowStart::Now)?;
    // Every table is kept, so that a key shows counts from the beginning.
    let tallies =
        GroupingKey::ALL.iter().map(|by| FrequencyTable::new(*by, Some(PERIOD_S))).collect();
    screen::show(&mut Top { feed, tallies, by, sort, lost: 0, paused: None })
}

fn once(args: &TopArgs, by: GroupingKey, sort: Sort) -> Result<(), String> {
    let mut tally = FrequencyTable::new(by, None);
    let window =
        args.feed.read_last(args.seconds, &mut |record, fields| tally.add(record, fields))?;
    tally.advance(window.seconds);
    let text = match args.json {
        true => json(&tally, sort, args.rows, &window),
        false => plain(&tally, sort, args.rows, &window),
    };
    print(text.as_bytes()).map(|_| ())
}

const TITLES: [&str; 6] = ["req/s", "hits", "waits/s", "5xx/s", "bytes/s", "mean"];

fn cells(sums: &Sums, per_second: f64) -> [String; 6] {
    let rate = |n: f64| match n * per_second {
        rate if rate >= 99.95 => grouped(rate.round() as u64),
        rate => format!("{rate:.1}"),
    };
    [
        rate(sums.requests),
        sums.hit_ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{:.0} %", ratio * 100.0)),
        rate(sums.waited),
        rate(sums.errors),
        bytes(sums.bytes * per_second),
        time(sums.mean_us()),
    ]
}

/// The classes of responses with their counts or rates.
fn classes(sums: &Sums, shown: impl Fn(f64) -> String) -> String {
    let class =
        |outcome: Outcome| format!("{} {}", outcome.word(), shown(sums.outcomes[outcome as usize]));
    Outcome::ALL.map(class).join(", ")
}

fn plain(tally: &FrequencyTable, sort: Sort, count: usize, window: &Window) -> String {
    let all = tally.all();
    let (seconds, by, sort_word) = (tally.seconds(), tally.by().word(), sort.word());
    let mut out = format!(
        "{} requests in {seconds:.1} s{}, by {by}, most {sort_word} first\n",
        grouped(all.requests as u64),
        window.end_text()
    );
    out.push_str(&format!("{}\n", classes(all, |count| grouped(count as u64))));
    let lost = window.lost;
    if lost > 0 {
        out.push_str(&format!("{lost} more were lost: this reader was too slow\n"));
    }
    let mut line = |cells: [String; 6], name: String| {
        for (cell, width) in cells.iter().zip([9, 6, 9, 8, 11, 10]) {
            out.push_str(&format!("{cell:>width$} "));
        }
        out.push_str(&format!(" {name}\n"));
    };
    line(TITLES.map(str::to_owned), by.to_owned());
    for (key, sums) in tally.rows(sort, count) {
        line(cells(sums, tally.per_second()), Printable(key).to_string());
    }
    out
}

fn json(tally: &FrequencyTable, sort: Sort, count: usize, window: &Window) -> String {
    let row = |sums: &Sums| {
        let classes: serde_json::Map<_, _> = Outcome::ALL
            .into_iter()
            .map(|class| (class.word().to_owned(), (sums.outcomes[class as usize] as u64).into()))
            .collect();
        serde_json::json!({
            "requests": sums.requests as u64,
            "cache": classes,
            "hit_ratio": sums.hit_ratio(),
            "waited": sums.waited as u64,
            "errors": sums.errors as u64,
            "bytes": sums.bytes as u64,
            "mean_us": sums.mean_us() as u64,
        })
    };
    let rows = tally.rows(sort, count);
    let rows: Vec<_> = rows
        .iter()
        .map(|(key, sums)| {
            let mut value = row(sums);
            value["key"] = String::from_utf8_lossy(key).into();
            value
        })
        .collect();
    let value = serde_json::json!({
        "seconds": tally.seconds(),
        "by": tally.by().word(),
        "sort": sort.word(),
        "ended_ago_seconds": window.ended_ago,
        "lost": window.lost,
        "all": row(tally.all()),
        "rows": rows,
    });
    format!("{value}\n")
}

/// The live table.
struct Top {
    feed: Feed,
    tallies: Vec<FrequencyTable>,
    by: GroupingKey,
    sort: Sort,
    lost: u64,
    /// The table that is shown while the view is paused.
    paused: Option<FrequencyTable>,
}

impl ScreenView for Top {
    fn look(&mut self, passed: f64) -> Result<(), String> {
        let tallies = &mut self.tallies;
        self.lost += self.feed.drain(&mut |record, fields| {
            tallies.iter_mut().for_each(|tally| tally.add(record, fields));
        })?;
        tallies.iter_mut().for_each(|tally| tally.advance(passed));
        Ok(())
    }

    fn key(&mut self, key: KeyCode) {
        let KeyCode::Char(key) = key else { return };
        if let Some(by) = GroupingKey::ALL.iter().find(|by| by.key() == key) {
            (self.by, self.paused) = (*by, None);
        } else if let Some(sort) = Sort::ALL.iter().find(|sort| sort.key() == key) {
            self.sort = *sort;
        } else if key == ' ' {
            self.paused = match self.paused.take() {
                Some(_) => None,
                None => self.tallies.iter().find(|tally| tally.by() == self.by).cloned(),
            };
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let shown = self.paused.as_ref();
        let Some(tally) = shown.or_else(|| self.tallies.iter().find(|tally| tally.by() == self.by))
        else {
            return;
        };
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(1), Constraint::Length(1)])
                .areas(frame.area());
        let [rate, hits, waits, errors, out, mean] = cells(tally.all(), tally.per_second());
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let paused = if self.paused.is_some() { "  (paused)" } else { "" };
        let lost = match self.lost {
            0 => String::new(),
            lost => format!("  {lost} lost: too many to read"),
        };
        let summary = format!(
            "larder top  {rate} req/s  {hits} hits  {waits} waits/s  {errors} 5xx/s  {out}/s  \
             mean {mean}{lost}{paused}"
        );
        let per_second = tally.per_second();
        let classes = classes(tally.all(), |count| format!("{:.1}", count * per_second));
        let lines = [Line::styled(summary, bold), Line::from(format!("per second: {classes}"))];
        frame.render_widget(Text::from_iter(lines), head);
        // On a narrow screen the name has priority over figures.
        let narrow = body.width < 90;
        let row = |figures: [String; 6], name: String| {
            let figures = figures.into_iter().enumerate();
            let shown = figures.filter(|(at, _)| !narrow || matches!(at, 0 | 1 | 5));
            let right = shown.map(|(_, text)| Cell::from(Text::from(text).right_aligned()));
            Row::new(right.chain([Cell::from(name)]).collect::<Vec<_>>())
        };
        let header = row(TITLES.map(str::to_owned), self.by.word().to_owned());
        let header = header.style(bold.reversed());
        let rows = tally.rows(self.sort, usize::from(body.height));
        let rows = rows
            .into_iter()
            .map(|(key, sums)| row(cells(sums, tally.per_second()), Printable(key).to_string()));
        let widths: &[u16] = if narrow { &[9, 6, 10] } else { &[9, 6, 9, 8, 11, 10] };
        let widths = widths.iter().map(|width| Constraint::Length(*width));
        let widths = widths.chain([Constraint::Fill(1)]);
        frame.render_widget(Table::new(rows, widths).header(header), body);
        let keys = format!(
            " by {}: u c a f s v i l o x   most {}: r m b t e   space pause   q quit",
            self.by.word(),
            self.sort.word()
        );
        frame.render_widget(Line::styled(keys, Style::new().reversed()), foot);
    }
}
