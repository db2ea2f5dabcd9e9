//! Markdown of a report: its table, remarks and links to charts.

use std::fmt::Write as _;

use super::text::cell;
use super::{Report, figures};

impl Report {
    /// Writes the report as Markdown. It shows charts from `folder`, where [`Self::charts`] must be
    /// saved as `ID.svg`; without a folder it shows none.
    pub fn markdown(&self, folder: Option<&str>) -> String {
        page(self, folder)
    }
}

fn page(report: &Report, folder: Option<&str>) -> String {
    let mut out = format!("# {}\n", cell(&report.title));
    for ((name, text), at) in report.remarks().zip(0..) {
        let gap = if at == 0 { "\n" } else { "" };
        let _ = writeln!(out, "{gap}- **{}**: {}", cell(name), cell(&text));
    }
    if let Some(folder) = folder {
        for chart in report.charts() {
            let _ = write!(out, "\n![{}]({folder}/{}.svg)\n", cell(&chart.caption), chart.id);
        }
    }
    let (heads, rows) = figures::table(&report.series);
    let _ = write!(out, "\n| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len()));
    for row in rows {
        let cells: Vec<_> = row.iter().map(|text| cell(text)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out.push_str("\nFigures are medians of the rounds.\n");
    for (name, run) in &report.runs {
        let _ = write!(out, "\n## {}\n\n", cell(name));
        for (name, value) in run.machine.iter().chain(&run.versions).chain(&run.settings) {
            let _ = writeln!(out, "- {}: {}", cell(name), cell(value));
        }
        if !run.command.is_empty() {
            let _ = write!(out, "\n```\n{}\n```\n", run.command.replace("```", "` ` `"));
        }
    }
    out
}
