//! `larder import`: nginx's configuration as larder.toml, and an account of every directive.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use import::{Source, Translated};

use crate::preset;

/// Exit status if something is not carried over.
const LEFT: u8 = 3;

/// The name for standard input.
const STDIN: &str = "-";

/// Translate a configuration of nginx into larder.toml, and say what became of each directive.
///
/// The result goes to standard output or FILE, the report to standard error. Exit status 0: each
/// directive is carried over, is the default, or is not needed. 3: some are left, and the report
/// lists them with reasons. 1: the configuration cannot be read.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder import /etc/nginx/nginx.conf -o larder.toml\n  \
                  nginx -T | larder import -\n  \
                  larder import /etc/nginx/sites-enabled --json --report report.json")]
pub(crate) struct ImportArgs {
    /// File with nginx's configuration, folder of sites, or `-` for standard input. What `nginx -T`
    /// prints is understood, too.
    #[arg(value_name = "CONFIGURATION", default_value = "/etc/nginx/nginx.conf")]
    from: PathBuf,
    /// File for the result, in place of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// File for the report, in place of standard error.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the report as JSON.
    #[arg(long)]
    json: bool,
    /// Folder that relative includes start from, by default that of the file.
    #[arg(short, long, value_name = "FOLDER")]
    prefix: Option<PathBuf>,
}

/// Runs the verb.
pub(crate) fn run(args: &ImportArgs) -> ExitCode {
    match translate(args) {
        Ok(left) if left > 0 => ExitCode::from(LEFT),
        Ok(_) => ExitCode::SUCCESS,
        Err(message) => {
            base::say!("larder: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Writes result and report. Returns the number of directives that are left.
fn translate(args: &ImportArgs) -> Result<usize, String> {
    let source = read(args)?;
    let Translated { toml, report } =
        import::translate(&source).map_err(|error| error.to_string())?;
    match &args.output {
        Some(file) => write(file, &toml)?,
        None => preset::print(&toml)?,
    }
    let text = if args.json { format!("{:#}\n", report.json()) } else { report.text() };
    match &args.report {
        Some(file) => write(file, &text)?,
        None => base::say!("{}", text.trim_end()),
    }
    Ok(report.counts().left)
}

fn read(args: &ImportArgs) -> Result<Source, String> {
    let prefix = args.prefix.as_deref();
    let source = if args.from == Path::new(STDIN) {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| format!("standard input: {error}"))?;
        import::read_text("standard input", &String::from_utf8_lossy(&bytes), prefix)
    } else {
        import::read_path(&args.from, prefix)
    };
    source.map_err(|error| error.to_string())
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
