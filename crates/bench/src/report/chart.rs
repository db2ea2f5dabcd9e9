//! A chart as SVG: lines with bands, or grouped bars. A series has a colour, a marker and a dash
//! pattern.

use std::fmt::Write as _;

use base::html::escape;

use super::scale::Scale;
use super::text::Unit;

const WIDTH: f64 = 720.0;
const PLOT_HEIGHT: f64 = 280.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 704.0;
const LEGEND_ROW: f64 = 20.0;
/// Width of a legend's character, for the layout.
const CHARACTER: f64 = 7.2;

/// Most points of a line with markers.
const MARKED: usize = 20;

/// Colours for light and dark backgrounds that colour-blind people can distinguish (Okabe and Ito).
const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#ff8c42"),
    ("#00795b", "#2ecc9b"),
    ("#b0508a", "#e39cc4"),
    ("#a66f00", "#f0b429"),
    ("#5b4db1", "#a99cf0"),
    ("#555555", "#bbbbbb"),
    ("#8c1c13", "#e57373"),
];
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

/// A series of a chart.
#[derive(Clone, Debug, Default)]
pub(super) struct Plot {
    pub(super) name: String,
    pub(super) points: Vec<Spread>,
}

/// The median at `x`, with the smallest and largest round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    pub(super) x: f64,
    pub(super) low: f64,
    pub(super) middle: f64,
    pub(super) high: f64,
}

/// The labels and units of a chart.
#[derive(Clone, Debug)]
pub(super) struct ChartText<'a> {
    /// Short name, also the file's.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) x: &'a str,
    pub(super) x_unit: Unit,
    pub(super) y: &'a str,
    pub(super) y_unit: Unit,
}

/// A chart under construction.
struct Drawing<'a> {
    labels: &'a ChartText<'a>,
    out: String,
    top: f64,
    bottom: f64,
    names: Vec<&'a str>,
}

/// Draws lines with bands.
pub(super) fn lines(labels: &ChartText<'_>, series: &[Plot]) -> String {
    let mut chart = Drawing::new(labels, series.iter().map(|line| line.name.as_str()).collect());
    let points = || series.iter().flat_map(|line| &line.points);
    let x = Scale::of(points().map(|point| point.x), LEFT, RIGHT);
    let values = points().flat_map(|point| [point.low, point.middle, point.high]);
    let y = match labels.y_unit {
        Unit::Percent => Scale::from_zero([100.0].into_iter(), chart.bottom, chart.top),
        _ => Scale::of(values.clone(), chart.bottom, chart.top),
    };
    let y = if y.ticks().len() < 3 { Scale::from_zero(values, chart.bottom, chart.top) } else { y };
    chart.axes(&x, &y);
    for (line, at) in series.iter().zip(0..) {
        chart.band(at, line, &x, &y);
    }
    for (line, at) in series.iter().zip(0..) {
        chart.line(at, line, &x, &y);
    }
    chart.end()
}

/// Draws bars, those of one `x` side by side.
pub(super) fn bars(labels: &ChartText<'_>, series: &[Plot]) -> String {
    let mut chart = Drawing::new(labels, series.iter().map(|line| line.name.as_str()).collect());
    let points = || series.iter().flat_map(|line| &line.points);
    let mut groups: Vec<f64> = points().map(|point| point.x).collect();
    groups.sort_by(f64::total_cmp);
    groups.dedup();
    let values = points().flat_map(|point| [point.middle, point.high]);
    let y = Scale::from_zero(values, chart.bottom, chart.top);
    chart.grid(&y);
    let width = (RIGHT - LEFT) / groups.len().max(1) as f64;
    let bar = (width * 0.8 / series.len().max(1) as f64).min(60.0);
    let every = (groups.len() as f64 * 44.0 / (RIGHT - LEFT)).ceil().max(1.0) as usize;
    for (group, at) in groups.iter().zip(0_u32..) {
        let middle = LEFT + width * (f64::from(at) + 0.5);
        if (at as usize).is_multiple_of(every) {
            let label = labels.x_unit.show(*group);
            chart.text(middle, chart.bottom + 18.0, "middle", &label);
        }
        for (line, nth) in series.iter().zip(0_u32..) {
            let found = line.points.iter().find(|point| point.x == *group);
            if let Some(point) = found {
                let left = middle + bar * (f64::from(nth) - series.len() as f64 / 2.0);
                chart.bar(nth as usize, left, bar * 0.92, point, &y);
            }
        }
    }
    chart.end()
}

impl<'a> Drawing<'a> {
    fn new(labels: &'a ChartText<'a>, names: Vec<&'a str>) -> Self {
        let mut rows = 1.0;
        let mut at = LEFT;
        for name in &names {
            let width = legend_width(name);
            if at + width > RIGHT && at > LEFT {
                rows += 1.0;
                at = LEFT;
            }
            at += width;
        }
        let top = 40.0 + rows * LEGEND_ROW;
        let bottom = top + PLOT_HEIGHT;
        let height = bottom + 50.0;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\" class=\"chart\"><title id=\"{id}-title\">\
             {title}</title><desc id=\"{id}-desc\">{y} over {x}: {names}. The figures are in \
             the table.</desc>",
            id = labels.id,
            title = escape(labels.title),
            x = escape(labels.x),
            y = escape(labels.y),
            names = escape(&names.join(", ")),
        );
        out.push_str(&style());
        let _ = write!(out, "<rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>");
        let mut chart = Self { labels, out, top, bottom, names };
        chart.labelled("title", LEFT, 22.0, "start", labels.title);
        chart.legend();
        chart
    }

    fn legend(&mut self) {
        let (mut x, mut y) = (LEFT, 44.0);
        for (name, at) in self.names.clone().iter().zip(0..) {
            let width = legend_width(name);
            if x + width > RIGHT && x > LEFT {
                x = LEFT;
                y += LEGEND_ROW;
            }
            let (colour, dash) = (at % COLOURS.len(), DASHES[at % DASHES.len()]);
            let _ = write!(
                self.out,
                "<path class=\"line c{colour}\" stroke-dasharray=\"{dash}\" d=\"M{x:.1} {y:.1}h26\"/>"
            );
            self.marker(at, x + 13.0, y);
            self.text(x + 32.0, y + 4.0, "start", name);
            x += width;
        }
    }

    /// Draws both axes of a chart of lines.
    fn axes(&mut self, x: &Scale, y: &Scale) {
        self.grid(y);
        let mut free_from = f64::NEG_INFINITY;
        for tick in x.ticks() {
            let place = x.place(tick);
            let label = self.labels.x_unit.show(tick);
            let half = label.len() as f64 * CHARACTER / 2.0;
            let _ =
                write!(self.out, "<path class=\"axis\" d=\"M{place:.1} {:.1}v5\"/>", self.bottom);
            if place - half > free_from {
                self.text(place, self.bottom + 18.0, "middle", &label);
                free_from = place + half + 4.0;
            }
        }
    }

    /// Draws grid lines, value labels and axis titles.
    fn grid(&mut self, y: &Scale) {
        for tick in y.ticks() {
            let place = y.place(tick);
            let _ = write!(self.out, "<path class=\"grid\" d=\"M{LEFT} {place:.1}H{RIGHT}\"/>");
            let label = self.labels.y_unit.show(tick);
            self.text(LEFT - 8.0, place + 4.0, "end", &label);
        }
        let bottom = self.bottom;
        let _ = write!(self.out, "<path class=\"axis\" d=\"M{LEFT} {bottom:.1}H{RIGHT}\"/>");
        self.text((LEFT + RIGHT) / 2.0, bottom + 40.0, "middle", self.labels.x);
        let middle = (self.top + bottom) / 2.0;
        let _ = write!(
            self.out,
            "<text class=\"label\" text-anchor=\"middle\" transform=\"translate(18 {middle:.1}) \
             rotate(-90)\">{}</text>",
            escape(self.labels.y)
        );
    }

    fn band(&mut self, at: usize, line: &Plot, x: &Scale, y: &Scale) {
        if line.points.len() < 2 || line.points.iter().all(|point| point.low == point.high) {
            return;
        }
        let upper = line.points.iter().map(|point| (x.place(point.x), y.place(point.high)));
        let lower = line.points.iter().rev().map(|point| (x.place(point.x), y.place(point.low)));
        let path: Vec<_> = upper.chain(lower).map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let _ = write!(
            self.out,
            "<path class=\"band c{}\" d=\"M{}Z\"/>",
            at % COLOURS.len(),
            path.join("L")
        );
    }

    fn line(&mut self, at: usize, line: &Plot, x: &Scale, y: &Scale) {
        let places: Vec<_> =
            line.points.iter().map(|point| (x.place(point.x), y.place(point.middle))).collect();
        let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        let (colour, dash) = (at % COLOURS.len(), DASHES[at % DASHES.len()]);
        if path.len() > 1 {
            let _ = write!(
                self.out,
                "<path class=\"line c{colour}\" stroke-dasharray=\"{dash}\" d=\"M{}\"/>",
                path.join("L")
            );
        }
        if let [point] = line.points.as_slice() {
            let (x, low, high) = (x.place(point.x), y.place(point.low), y.place(point.high));
            let _ = write!(
                self.out,
                "<path class=\"line c{colour}\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>"
            );
        }
        // A line with many points has no markers.
        if places.len() <= MARKED {
            for (x, y) in places {
                self.marker(at, x, y);
            }
        }
    }

    fn bar(&mut self, at: usize, left: f64, width: f64, point: &Spread, y: &Scale) {
        let (top, bottom) = (y.place(point.middle), self.bottom);
        let colour = at % COLOURS.len();
        let _ = write!(
            self.out,
            "<rect class=\"bar c{colour}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{:.1}\"/>",
            (bottom - top).max(0.0)
        );
        if point.high > point.low {
            let (x, low, high) = (left + width / 2.0, y.place(point.low), y.place(point.high));
            let _ = write!(self.out, "<path class=\"range\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
        }
    }

    /// Draws a marker in the series' shape.
    fn marker(&mut self, at: usize, x: f64, y: f64) {
        let shape = match at % 4 {
            0 => format!("M{:.1} {y:.1}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z", x - 3.5),
            1 => format!("M{:.1} {:.1}h6.4v6.4h-6.4Z", x - 3.2, y - 3.2),
            2 => format!("M{x:.1} {:.1}l4.2 7.4h-8.4Z", y - 4.6),
            _ => format!("M{x:.1} {:.1}l4.4 4.4l-4.4 4.4l-4.4 -4.4Z", y - 4.4),
        };
        let colour = at % COLOURS.len();
        let _ = write!(self.out, "<path class=\"marker c{colour}\" d=\"{shape}\"/>");
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        self.labelled("label", x, y, anchor, text);
    }

    fn labelled(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = write!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    fn end(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

fn legend_width(name: &str) -> f64 {
    50.0 + name.chars().count() as f64 * CHARACTER
}

/// The style, which every chart includes because it may be a file of its own.
fn style() -> String {
    let mut style = String::from(
        "<style>.chart{font:13px system-ui,sans-serif}.chart .title{font-weight:600;font-size:15px}\
         .chart .label,.chart .title{fill:#222}.chart .ground{fill:#fff}.chart .grid{stroke:#ddd}\
         .chart .axis,.chart .range{stroke:#444}.chart .line{fill:none;stroke-width:2}\
         .chart .band{stroke:none;opacity:.18}",
    );
    let colours = |style: &mut String, dark: bool| {
        for ((light, on_dark), at) in COLOURS.iter().zip(0..) {
            let colour = if dark { on_dark } else { light };
            let _ = write!(
                style,
                ".chart .line.c{at}{{stroke:{colour}}}.chart .band.c{at},.chart .bar.c{at},\
                 .chart .marker.c{at}{{fill:{colour}}}"
            );
        }
    };
    colours(&mut style, false);
    style.push_str(
        "@media screen and (prefers-color-scheme:dark){.chart .label,.chart .title{fill:#ddd}\
         .chart .ground{fill:#16191d}.chart .grid{stroke:#333a42}.chart .axis,\
         .chart .range{stroke:#aaa}",
    );
    colours(&mut style, true);
    style.push_str("}</style>");
    style
}
