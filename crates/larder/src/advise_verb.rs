//! `larder advise`: what would serve a site's visitors better, by an access log or by the log ring.

mod application;
mod origin;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use advise::sources::{LogVisits, RingVisits, read_log};
use advise::{Advice, Settings, Visit, questions, report};
use clap::Args;
use config::sizing::Machine;

use crate::preset;
use crate::serve_verb::USUAL_CONFIG;

/// The name for standard input.
const STDIN: &str = "-";
/// The share of lines that cannot be read, as a divisor, from which the log is not an access log.
const UNREAD_SHARE: u64 = 2;

/// Find out why the hit ratio is low, what to change, and what the change would do.
///
/// Replays the last requests of the running daemon, or those of an access log, through the policies
/// of a configuration, then once more with each change that may help, and shows the changes that
/// do: what they gain, what proves that they are safe, and the lines. Nothing is changed without
/// --apply, and no server is asked without --origin.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    larder advise                                      the last requests of the running daemon\n  \
    larder advise --log /var/log/nginx/access.log\n  \
    larder advise --log /var/log/nginx/access.log --preset wordpress\n  \
    larder advise --log access.log --origin http://127.0.0.1:8080\n  \
    zcat /var/log/nginx/access.log.*.gz | larder advise --log - --json\n  \
    larder advise --log /var/log/larder/access.json --config /etc/larder/larder.toml --apply 1")]
pub(crate) struct AdviseArgs {
    /// Access log of nginx, Apache, Caddy, HAProxy, varnishncsa or Larder, or `-` for standard
    /// input. The format of each line is recognised: NCSA common and combined with further values
    /// behind (`rt=0.1`, cookies, cache results), JSON by nginx's variables, Caddy's JSON,
    /// HAProxy's httplog [default: the log ring of the running daemon, whose records have proof of
    /// what origins have sent]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Configuration whose policies receive the requests [default: /etc/larder/larder.toml if it is
    /// there, otherwise one site without settings]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// In place of a configuration: one site with this preset. `larder preset list` names them.
    #[arg(long, value_name = "NAME", conflicts_with = "config")]
    preset: Option<String>,
    /// Number of requests that are read, the last ones of the log.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 200_000)]
    last: usize,
    /// Also ask this origin for pages of the log, to learn their fields and compare their bodies:
    /// with GET, without cookies, one request after the other.
    #[arg(long, value_name = "URL", requires = "log")]
    origin: Option<String>,
    /// With --origin: most requests.
    #[arg(long, value_name = "N", default_value_t = 200, requires = "origin")]
    origin_requests: usize,
    /// With --origin: most requests in a second.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "origin")]
    origin_rate: u32,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Write the lines of a finding into the configuration, if `larder check` finds no fault in the
    /// result, keep the former file beside it, and reload the daemon if one runs. N is its number;
    /// by KIND:ABOUT, such as `query-parameter-unused:cid`, it stays the one that you have read,
    /// whatever requests have come since.
    #[arg(long, value_name = "N|KIND:ABOUT", conflicts_with = "preset")]
    apply: Option<String>,
    /// With --apply: also a finding without proof.
    #[arg(long, requires = "apply")]
    unproved: bool,
    #[command(flatten)]
    admin: tools::AdminArgs,
}

/// Runs the verb.
pub(crate) fn run(args: &AdviseArgs) -> Result<(), String> {
    let config = args.config.clone().or_else(|| usual_config(args));
    let settings = settings(args, config.as_deref())?;
    let mut visits = match &args.log {
        Some(log) => log_visits(log, args.last)?,
        None => ring_visits(args)?,
    };
    warn_of_programs(&settings);
    if let Some(url) = &args.origin {
        let questions = questions(&visits, &settings, args.origin_requests);
        visits.extend(origin::ask(&origin::address(url)?, &questions, args.origin_rate)?);
    }
    let outcome = config.as_deref().and_then(|path| application::outcome(path, &visits));
    let advice = advise::advise(visits, &settings);
    if let Some(wanted) = &args.apply {
        let path = config.ok_or("larder: --apply needs a configuration: --config FILE")?;
        let finding = application::find(&advice, wanted, args.unproved)?;
        base::show!("{}", report::finding(&advice, finding).trim_end());
        let socket = &args.admin.admin_socket;
        return application::apply(&path, &settings.text, &advice, finding, socket);
    }
    print(args, &advice, outcome)
}

fn print(args: &AdviseArgs, advice: &Advice, outcome: Option<String>) -> Result<(), String> {
    if args.json {
        let mut object = report::json(advice);
        object["applied"] = outcome.into();
        return preset::print(&format!("{object:#}\n"));
    }
    let outcome = outcome.map(|text| format!("{text}\n\n")).unwrap_or_default();
    preset::print(&format!("{outcome}{}", report::text(advice)))
}

/// The daemon's usual configuration, if there is one and no other is named.
fn usual_config(args: &AdviseArgs) -> Option<PathBuf> {
    let usual = PathBuf::from(USUAL_CONFIG);
    (args.preset.is_none() && usual.exists()).then_some(usual)
}

fn settings(args: &AdviseArgs, config: Option<&Path>) -> Result<Settings, String> {
    let (file, text) = match config {
        Some(path) => {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| format!("larder: {}: {error}", path.display()))?;
            (path.display().to_string(), text)
        }
        None => ("larder.toml".to_owned(), Settings::plain_text(args.preset.as_deref())),
    };
    Settings::read(&file, &text, Machine::read()).map_err(|faults| config::render(&faults, false))
}

/// A program decides by itself: a replay of settings would say nothing about it.
fn warn_of_programs(settings: &Settings) {
    let sites = 0..settings.config.sites.len();
    for site in sites.filter(|site| settings.has_program(*site)) {
        base::say!(
            "larder: {}: a VCL decides for this site, and is not replayed: its requests are left \
             out",
            settings.site_name(site)
        );
    }
}

/// The last requests of the running daemon.
fn ring_visits(args: &AdviseArgs) -> Result<Vec<Visit>, String> {
    let mut visits = RingVisits::new(args.last);
    let read = tools::read_ring(&args.admin, &mut |record, names| visits.push(record, names));
    read.map_err(|why| {
        format!("{why}\nOr name an access log: larder advise --log /var/log/nginx/access.log")
    })?;
    match visits.into_visits() {
        visits if visits.is_empty() => Err("larder: the log ring has no requests yet".to_owned()),
        visits => Ok(visits),
    }
}

/// The last `last` requests of an access log.
fn log_visits(log: &Path, last: usize) -> Result<Vec<Visit>, String> {
    let name = log.display();
    let read = if log == Path::new(STDIN) {
        read_log(io::stdin().lock(), last)
    } else {
        File::open(log).and_then(|file| read_log(BufReader::new(file), last))
    };
    let LogVisits { visits, unread, first_unread } =
        read.map_err(|error| format!("larder: {name}: {error}"))?;
    let Some((number, line)) = first_unread else {
        return if visits.is_empty() {
            Err(format!("larder: {name}: no requests"))
        } else {
            Ok(visits)
        };
    };
    let line: String = line.chars().take(120).collect();
    let line = report::printable(&line);
    if unread * UNREAD_SHARE > visits.len() as u64 {
        return Err(format!(
            "larder: {name}: {unread} lines are of no known format, the first is line {number}: \
             {line}\nknown are NCSA common and combined, JSON with nginx's names, Caddy's JSON, \
             HAProxy's httplog, and Larder's own"
        ));
    }
    base::say!("larder: {name}: {unread} lines were left out, the first is line {number}: {line}");
    Ok(visits)
}
