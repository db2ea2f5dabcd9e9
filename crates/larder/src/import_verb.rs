//! `larder import`: the configuration of another server as larder.toml, and an account of every
//! directive.

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

/// Translate a configuration of nginx, Caddy, Squid or varnishd's service into larder.toml, and say
/// what became of each directive.
///
/// The result goes to standard output or FILE, the report to standard error. Exit status 0: each
/// directive is carried over, is the default, or is not needed. 3: some are left, and the report
/// lists them with reasons. 1: the configuration cannot be read.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
                  larder import /etc/nginx/nginx.conf -o larder.toml\n  \
                  nginx -T | larder import -\n  \
                  larder import /etc/nginx/sites-enabled --json --report report.json\n  \
                  larder import /etc/caddy/Caddyfile -o larder.toml\n  \
                  larder import --compare http://127.0.0.1:80 http://127.0.0.1:6081 urls.txt")]
pub(crate) struct ImportArgs {
    /// File with the configuration, folder of nginx's sites, or `-` for standard input. What
    /// `nginx -T` prints is understood, too. The program is recognised by name and text.
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
    /// Translate nothing: send the requests of a list to the old server and to Larder, and show
    /// where statuses, fields and bodies differ (`larder bench diff --help`).
    #[arg(long, num_args = 3, value_names = ["OLD", "NEW", "LIST"],
          conflicts_with_all = ["output", "report", "json", "prefix", "from"])]
    compare: Vec<String>,
    /// Host that is asked for with --compare, where the list names none.
    #[arg(long, value_name = "HOST", requires = "compare")]
    host: Option<String>,
}

/// Runs the verb.
pub(crate) fn run(args: &ImportArgs) -> ExitCode {
    if !args.compare.is_empty() {
        return compare(args);
    }
    match translate(args) {
        Ok(left) if left > 0 => ExitCode::from(LEFT),
        Ok(_) => ExitCode::SUCCESS,
        Err(message) => {
            base::say!("larder: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the program that compares responses, in place of this one.
fn compare(args: &ImportArgs) -> ExitCode {
    let host = args.host.iter().flat_map(|host| ["--host".to_owned(), host.clone()]);
    let words = std::iter::once("diff".to_owned()).chain(args.compare.iter().cloned()).chain(host);
    // It returns only if the program is missing.
    if let Err(message) = tools::exec_program(crate::BENCH, words.map(Into::into)) {
        base::say!("{message}");
    }
    ExitCode::FAILURE
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
