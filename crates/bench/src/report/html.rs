//! HTML of a report: one page with its style and charts inside. It must load nothing from
//! elsewhere.

use std::fmt::Write as _;

use super::{Report, figures};
use base::html::escape;

const STYLE: &str = include_str!("page.css");

impl Report {
    /// Writes the report as one self-contained HTML page.
    pub fn html(&self) -> String {
        page(self)
    }
}

fn page(report: &Report) -> String {
    let title = escape(&report.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    );
    remarks(report, &mut out);
    out.push_str("<section>\n<h2>Charts</h2>\n");
    for chart in report.charts() {
        let _ = write!(
            out,
            "<figure>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{caption}\">{}</div>\n\
             <figcaption>{caption}</figcaption>\n</figure>\n",
            chart.svg,
            caption = escape(&chart.caption),
        );
    }
    out.push_str("</section>\n<section>\n<h2>Figures</h2>\n");
    table(report, &mut out);
    out.push_str(
        "<p>Figures are medians of the rounds.</p>\n</section>\n<section>\n<h2>Runs</h2>\n",
    );
    for (name, run) in &report.runs {
        let _ = write!(out, "<h3>{}</h3>\n<dl>\n", escape(name));
        if run.began_s > 0 {
            let _ = writeln!(out, "<dt>began</dt><dd>{}</dd>", escape(&moment(run.began_s)));
        }
        for (name, value) in run.machine.iter().chain(&run.versions).chain(&run.settings) {
            let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        out.push_str("</dl>\n");
        if !run.command.is_empty() {
            let _ = writeln!(out, "<pre tabindex=\"0\">{}</pre>", escape(&run.command));
        }
    }
    out.push_str("</section>\n</main>\n</body>\n</html>\n");
    out
}

/// Formats seconds since 1970 as HTTP dates are.
fn moment(seconds: u64) -> String {
    String::from_utf8_lossy(message::date::HttpDate::new(seconds).as_bytes()).into_owned()
}

fn remarks(report: &Report, out: &mut String) {
    let mut remarks = report.remarks().peekable();
    if remarks.peek().is_none() {
        return;
    }
    out.push_str("<section class=\"remarks\">\n<h2>Remarks</h2>\n<ul>\n");
    for (name, text) in remarks {
        let _ = writeln!(out, "<li><strong>{}</strong> {}</li>", escape(name), escape(&text));
    }
    out.push_str("</ul>\n</section>\n");
}

fn table(report: &Report, out: &mut String) {
    let (heads, rows) = figures::table(&report.series);
    out.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table of figures\">\n<table>\n\
         <thead><tr>",
    );
    for head in heads {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (text, at) in row.iter().zip(0..) {
            let _ = match at {
                0 => write!(out, "<th scope=\"row\">{}</th>", escape(text)),
                _ => write!(out, "<td>{}</td>", escape(text)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}
