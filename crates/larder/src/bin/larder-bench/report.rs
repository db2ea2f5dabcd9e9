//! `larder bench report`: pages and charts of runs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench::report::Report;
use bench::result::RunResult;
use clap::Args;

use super::VerbError;

/// The default folder of the charts, in Markdown's links.
const CHARTS: &str = ".";

const AFTER_HELP: &str = "\
Without --html, --markdown or --svg the report is printed as Markdown. Runs of different days or \
machines stand side by side; series of the same name are called by their file's name too.

Example:
  larder bench report monday.json tuesday.json --html report.html";

/// Show runs that were written with --json: an HTML page, Markdown, charts.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct ReportArgs {
    /// Files of runs.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pages: PageArgs,
}

/// The destinations of a report.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Report")]
pub(super) struct PageArgs {
    /// Write a self-contained HTML page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown to this file.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the charts to this folder, as SVG; Markdown shows them from there.
    #[arg(long, value_name = "FOLDER")]
    svg: Option<PathBuf>,
    /// Title.
    #[arg(long, value_name = "TEXT", default_value = "Load test")]
    title: String,
}

/// Writes the reports.
pub(super) fn run(args: &ReportArgs) -> Result<ExitCode, VerbError> {
    let mut runs = Vec::new();
    for path in &args.files {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
        let run = bench::result::from_json(&text).map_err(|error| named(&error))?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        runs.push((name.unwrap_or_default(), run));
    }
    if args.pages.is_none() {
        base::show!("{}", Report::new(&args.pages.title, runs)?.markdown(None).trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    args.pages.write(runs)?;
    Ok(ExitCode::SUCCESS)
}

impl PageArgs {
    /// Returns true if no page is configured.
    pub(super) fn is_none(&self) -> bool {
        self.html.is_none() && self.markdown.is_none() && self.svg.is_none()
    }

    /// Writes the configured pages.
    pub(super) fn write(&self, runs: Vec<(String, RunResult)>) -> Result<(), String> {
        if self.is_none() {
            return Ok(());
        }
        let report = Report::new(&self.title, runs)?;
        if let Some(path) = &self.html {
            write(path, &report.html())?;
        }
        if let Some(folder) = &self.svg {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))?;
            for chart in report.charts() {
                write(&folder.join(format!("{}.svg", chart.id)), &chart.svg)?;
            }
        }
        if let Some(path) = &self.markdown {
            let shown = self.svg.as_deref().map(|folder| self.shown(path, folder));
            write(path, &report.markdown(shown.as_deref()))?;
        }
        Ok(())
    }

    /// The path of the charts' folder relative to the Markdown's folder, if it is inside.
    fn shown(&self, markdown: &Path, folder: &Path) -> String {
        let own = markdown.parent().unwrap_or_else(|| Path::new(""));
        let inside = folder.strip_prefix(own).unwrap_or(folder);
        match inside.to_string_lossy() {
            name if name.is_empty() => CHARTS.to_owned(),
            name => name.into_owned(),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
