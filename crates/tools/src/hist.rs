//! Histograms of request times, `larder hist`.

use clap::Args;
use observe::Record;
use observe::histogram::{self, Histogram, HitHistograms, PARTS, quantiles};
use observe::ring::FollowStart;
use ratatui::Frame;
use ratatui::crossterm::event::KeyCode;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::Paragraph;

use super::feed::{Feed, FeedArgs, Window};
use super::screen::{self, ScreenView};
use crate::numbers::{grouped, time};
use crate::output::{is_terminal, print};

/// A request's weight falls to a third after this many seconds.
const PERIOD_S: f64 = 30.0;
/// The width and height of a histogram that is printed once.
const WIDTH: usize = 80;
const HEIGHT: usize = 16;

/// Show a live histogram of request times: hits as `|`, all others as `#`.
///
/// The scale is logarithmic, from a microsecond to a hundred seconds, as varnishhist's.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Keys: t whole time or time to first byte, z resets, q quits.")]
pub struct HistArgs {
    #[command(flatten)]
    feed: FeedArgs,
    /// Measure until the response was ready (time to first byte) instead of until it was sent.
    #[arg(long)]
    ttfb: bool,
    /// Print it once.
    #[arg(long)]
    once: bool,
    /// With --once: seconds to count, up to the last request in the ring; 0 for the whole ring.
    #[arg(long, value_name = "N", default_value_t = 10)]
    seconds: u64,
    /// Print the quantiles once, as a JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Default)]
struct TimeHistograms {
    total: HitHistograms,
    ttfb: HitHistograms,
    lost: u64,
}

impl TimeHistograms {
    fn add(&mut self, record: &Record<'_>) {
        self.total.add(record, record.phases.end);
        self.ttfb.add(record, record.ttfb_us());
    }

    fn pair(&self, ttfb: bool) -> &HitHistograms {
        if ttfb { &self.ttfb } else { &self.total }
    }

    fn fade(&mut self, by: f64) {
        self.total.fade(by);
        self.ttfb.fade(by);
    }
}

/// Runs `larder hist`.
///
/// # Errors
/// A message for standard error.
pub fn run(args: &HistArgs) -> Result<(), String> {
    if args.once || args.json || !is_terminal() {
        return once(args);
    }
    let feed = args.feed.open(FollowStart::Now)?;
    screen::show(&mut Hist { feed, both: TimeHistograms::default(), ttfb: args.ttfb })
}

fn once(args: &HistArgs) -> Result<(), String> {
    let mut both = TimeHistograms::default();
    let window = args.feed.read_last(args.seconds, &mut |record, _| both.add(record))?;
    both.lost = window.lost;
    let pair = both.pair(args.ttfb);
    let text = match args.json {
        true => json(pair, &window),
        false => {
            let mut lines = histogram::draw(&pair.hits, &pair.others, WIDTH, HEIGHT);
            lines.extend(legend(pair, args.ttfb, both.lost));
            lines.push(format!("  {:.1} s{}", window.seconds, window.end_text()));
            lines.join("\n") + "\n"
        }
    };
    print(text.as_bytes()).map(|_| ())
}

/// The legend of the signs, and the quantiles.
fn legend(pair: &HitHistograms, ttfb: bool, lost: u64) -> Vec<String> {
    let what = if ttfb { "until the first byte" } else { "whole time" };
    let line = |sign: char, name: &str, histogram: &Histogram| {
        let mut text = format!("{sign} {name:<6} {:>10}", grouped(histogram.total() as u64));
        for (name, part) in PARTS {
            let shown = histogram.quantile_us(part).map_or_else(|| "-".to_owned(), time);
            text.push_str(&format!("  {name} {shown}"));
        }
        text
    };
    let mut lines = vec![
        String::new(),
        line('|', "hits", &pair.hits),
        line('#', "others", &pair.others),
        format!("  {what}"),
    ];
    if lost > 0 {
        lines.push(format!("  {lost} lost: too many to read"));
    }
    lines
}

fn json(pair: &HitHistograms, window: &Window) -> String {
    let value = serde_json::json!({
        "hits": quantiles(&pair.hits),
        "others": quantiles(&pair.others),
        "seconds": window.seconds,
        "ended_ago_seconds": window.ended_ago,
        "lost": window.lost,
    });
    format!("{value}\n")
}

/// The live histogram.
struct Hist {
    feed: Feed,
    both: TimeHistograms,
    ttfb: bool,
}

impl ScreenView for Hist {
    fn look(&mut self, passed: f64) -> Result<(), String> {
        self.both.fade((-passed / PERIOD_S).exp());
        let both = &mut self.both;
        let lost = self.feed.drain(&mut |record, _| both.add(record))?;
        self.both.lost += lost;
        Ok(())
    }

    fn key(&mut self, key: KeyCode) {
        match key {
            KeyCode::Char('t') => self.ttfb = !self.ttfb,
            KeyCode::Char('z') => self.both = TimeHistograms::default(),
            _ => {}
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let pair = self.both.pair(self.ttfb);
        let legend = legend(pair, self.ttfb, self.both.lost);
        let taken = legend.len() + 2 + 2;
        let height = usize::from(area.height).saturating_sub(taken).max(1);
        let picture = histogram::draw(&pair.hits, &pair.others, usize::from(area.width), height);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let mut lines = vec![Line::styled("larder hist", bold)];
        lines.extend(picture.into_iter().chain(legend).map(Line::from));
        let keys = "  t whole time / first byte   z reset   q quit";
        lines.push(Line::styled(keys, Style::new().reversed()));
        frame.render_widget(Paragraph::new(Text::from(lines)), area);
    }
}
