//! `larder bench diff`: the same requests to two servers, and where their responses differ.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bench::response_diff::{DiffSettings, compare, requests};
use bench::settings::Tls;
use bench::target::TargetServer;
use clap::Args;

use super::VerbError;
use super::args::duration;

const AFTER_HELP: &str = "\
A list has a path or URL on each line, with a method before it where that is not GET. Lines below \
that begin with a blank are fields of the request:

  /
  HEAD /page?x=1
  /account
      Cookie: session=1
  https://other.example/

Date, Server, Via, Age, Expires and some others always differ, and are left out. No redirect is \
followed.

Exit codes: 0 all responses are the same; 1 some differ, or a server did not answer; 2 wrong \
arguments.

Examples:
  larder bench diff http://127.0.0.1:80 http://127.0.0.1:6081 urls.txt --host example.com
  larder import --compare http://127.0.0.1:80 http://127.0.0.1:6081 urls.txt";

/// Send the same requests to two servers, and show where their responses differ.
#[derive(Clone, Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct DiffArgs {
    /// Server whose responses are right, as a URL without a path.
    old: String,
    /// The other server.
    new: String,
    /// List of requests, or `-` for standard input.
    list: PathBuf,
    /// Host that is asked for where the list names none; by default that of each server's URL.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Field that is not compared; repeatable.
    #[arg(long, value_name = "NAME")]
    ignore: Vec<String>,
    /// Requests at once, 64 at most.
    #[arg(short, long, value_name = "NUMBER", default_value_t = 4,
          value_parser = clap::value_parser!(u8).range(1..=64))]
    concurrency: u8,
    /// Time for each response.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    timeout: Duration,
    /// Accept every certificate.
    #[arg(short = 'k', long)]
    insecure: bool,
}

/// Compares.
pub(super) fn run(args: &DiffArgs) -> Result<ExitCode, VerbError> {
    let text = if args.list == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map(|_| text).map_err(|error| format!("standard input: {error}"))?
    } else {
        std::fs::read_to_string(&args.list)
            .map_err(|error| format!("{}: {error}", args.list.display()))?
    };
    let list = requests(&text).map_err(|why| format!("{}: {why}", args.list.display()))?;
    let authorities = (!args.insecure).then(|| base::system_authorities().unwrap_or_default());
    let settings = DiffSettings {
        old: server(&args.old)?,
        new: server(&args.new)?,
        host: args.host.clone(),
        ignored: args.ignore.clone(),
        at_once: usize::from(args.concurrency),
        patience: args.timeout,
        tls: Tls { authorities, resume: true },
    };
    let report = compare(&settings, &list).map_err(VerbError::unmeasured)?;
    base::show!("{}", report.text().trim_end());
    Ok(if report.differing() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn server(url: &str) -> Result<TargetServer, String> {
    let (server, path) = TargetServer::parse(url)?;
    if path != "/" {
        return Err(format!("{url}: the list has the paths, so this is a URL without one"));
    }
    Ok(server)
}
