//! `larder bench urls`: makes lists of URLs, or reads them from other formats.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bench::urls::{List, Makelist, Share, Sizes};
use clap::{Args, Subcommand};

use super::VerbError;
use super::args::{self, ProtocolArgs};

#[derive(Clone, Debug, Subcommand)]
pub(super) enum UrlsVerb {
    Makelist(MakelistArgs),
    /// List the pages of a sitemap; indexes are followed.
    Sitemap {
        /// File or URL.
        #[arg(value_name = "FILE|URL")]
        place: String,
        #[command(flatten)]
        protocol: ProtocolArgs,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// List the requests of an access log, in their order.
    Log {
        /// File: combined, common, or Larder's JSON; `-` reads standard input.
        file: PathBuf,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// The destination of a list.
#[derive(Clone, Debug, Args)]
pub(super) struct OutputArgs {
    /// File to write to; standard output if not given.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const AFTER_HELP: &str = "\
A URL is BASE/gen/KB, and with ?as=N if its response may be stored: the test origin answers with \
so many kilobytes. The totals go to standard error: URLs, those that may be stored, and how many \
of these are different.

Example:
  larder bench urls makelist --total 100000 --sizes 10..40KB --cacheable 89% -o list";

/// Make a list of URLs of several sizes; a share of the responses is cacheable.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct MakelistArgs {
    /// URLs.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    total: u64,
    /// Sizes of the responses.
    #[arg(long, value_name = "SIZES", default_value = "10..40KB")]
    sizes: Sizes,
    /// Share of URLs with cacheable responses.
    #[arg(long, value_name = "SHARE", default_value = "89%")]
    cacheable: Share,
    /// Number of different URLs to draw from; 88 for each size if not given.
    #[arg(long, value_name = "N")]
    unique: Option<u64>,
    /// Prefix of each URL.
    #[arg(long, value_name = "BASE", default_value = "")]
    base: String,
    /// Seed: equal seeds make equal lists.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: OutputArgs,
}

/// Runs a verb.
pub(super) fn run(verb: &UrlsVerb) -> Result<ExitCode, VerbError> {
    match verb {
        UrlsVerb::Makelist(args) => makelist(args),
        UrlsVerb::Sitemap { place, protocol, output } => {
            listed(&args::sitemap(place, &protocol.tls()?)?, output)
        }
        UrlsVerb::Log { file, output } => {
            let (name, text) = args::read(file)?;
            listed(&bench::urls::from_log(&name, &text), output)
        }
    }
}

/// Writes a list that was read, and reports unreadable lines.
fn listed(list: &List, output: &OutputArgs) -> Result<ExitCode, VerbError> {
    let mut text = String::new();
    for ask in list.sequence().iter().filter_map(|number| list.asks().get(*number as usize)) {
        if ask.method != "GET" {
            text.push_str(&ask.method);
            text.push(' ');
        }
        text.push_str(&ask.url);
        text.push('\n');
    }
    output.write(&text)?;
    if list.faults.unread > 0 {
        base::say!("{}", list.faults.to_string().trim_end());
    }
    base::say!("total     {}\nunique    {}", list.len(), list.asks().len());
    if list.is_empty() {
        return Err(VerbError::unmeasured("the list is empty".to_owned()));
    }
    Ok(ExitCode::SUCCESS)
}

impl OutputArgs {
    fn write(&self, text: &str) -> Result<(), String> {
        match &self.output {
            Some(path) => {
                std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
            }
            None => std::io::stdout()
                .write_all(text.as_bytes())
                .map_err(|error| format!("standard output: {error}")),
        }
    }
}

fn makelist(args: &MakelistArgs) -> Result<ExitCode, VerbError> {
    let list = Makelist {
        base: args.base.clone(),
        total: args.total,
        sizes: args.sizes,
        cacheable: args.cacheable,
        unique: args.unique,
        seed: args.seed,
    };
    let mut text = String::new();
    let totals = list.make(|url| {
        text.push_str(url);
        text.push('\n');
        Ok::<(), bench::urls::MakeError>(())
    });
    let totals = totals.map_err(|error| error.to_string())?;
    args.output.write(&text)?;
    base::say!("{}", totals.to_string().trim_end());
    Ok(ExitCode::SUCCESS)
}
